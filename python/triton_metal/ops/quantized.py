"""Matrices in the layouts of MLX's mx.quantize: quantising, reading back, and products with them.

A few rows are multiplied by a kernel that scales sums of products, more rows by one that turns a tile of the matrix
into numbers first.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import triton_metal as triton

from ._arrays import FLOATS, Array, contiguous, dtype_name, is_mlx, is_torch, reshaped, size_of
from ._checks import (
    check_arrays,
    check_choice,
    check_dtype,
    check_flag,
    check_rank,
    check_same_dtype,
    check_shape,
    fail,
)
from ._far import FAR_FROM
from ._launch import launch
from ._operators import Operator
from ._products import TYPES, product_type
from ._quantized_kernels import (
    byte_vector_kernel,
    dequantize_kernel,
    mx_quantize_kernel,
    quantize_kernel,
    quantized_matmul_kernel,
    vector_times_kernel,
    word_vector_kernel,
)
from ._tiles import QUANTIZED_VECTOR_ROWS, quantized_tile, quantized_vector_tile
from .matmuls import dtype_argument

MODES = ("affine", "mxfp4", "mxfp8")
_WORDS = ("uint32", "int32")
#: From so many numbers of an array on, products of a few rows count places in 64 bits.
WIDE_FROM = FAR_FROM


def viewed(x: Array, dtype: str) -> Array:
    """The bytes of ``x``, side by side, as numbers of another dtype."""
    x = contiguous(x)
    if dtype_name(x) == dtype:
        return x
    if is_mlx(x):
        return x.view(getattr(sys.modules["mlx.core"], dtype))
    return x.view(getattr(sys.modules["torch"], dtype) if is_torch(x) else np.dtype(dtype))


def _parameters(function: str, mode: Any, group_size: Any, bits: Any) -> tuple[int, int]:
    """The size of a group and the bits of a code; raises unless a mode has them."""
    check_choice(function, "mode", mode, MODES)
    groups, widths = ((32, 64, 128), (4, 8)) if mode == "affine" else ((32,), (int(mode[-1]),))
    group_size = (64 if mode == "affine" else 32) if group_size is None else group_size
    bits = widths[0] if bits is None else bits
    check_choice(function, "group_size", group_size, groups)
    check_choice(function, "bits", bits, widths)
    return int(group_size), int(bits)


def _check_matrix(
    function: str, w: Array, scales: Array, biases: Array | None, group: int, bits: int, mode: str
) -> tuple[int, ...]:
    """The shape of the numbers of a quantised matrix; raises unless its arrays fit each other."""
    check_dtype(function, "w", w, _WORDS)
    check_rank(function, "w", w, 2, 1 << 16)
    width = w.shape[-1] * 32 // bits
    if width % group:
        raise fail(
            function,
            f"w must have rows of whole groups of {group} numbers, {group * bits // 32} words each, but has shape "
            f"{tuple(w.shape)}.",
        )
    wanted, why = (*w.shape[:-1], width // group), f", one number for each group of {group},"
    check_shape(function, "scales", scales, wanted, why)
    if mode == "affine":
        if biases is None:
            raise fail(function, "biases must be given for mode 'affine' but is None.")
        check_dtype(function, "scales", scales, FLOATS)
        check_same_dtype(function, scales=scales, biases=biases)
        check_shape(function, "biases", biases, wanted, why)
    else:
        check_dtype(function, "scales", scales, ("uint8",))
        if biases is not None:
            raise fail(function, f"biases must be None for mode {mode!r}.")
    return (*w.shape[:-1], width)


def _quantized(w: Array, group: int, bits: int, mode: str) -> tuple[Array, ...]:
    shape = tuple(w.shape)
    groups = size_of(shape) // group
    scaled = (*shape[:-1], shape[-1] // group)
    affine = mode == "affine"
    outputs = {
        "q_ptr": ((*shape[:-1], shape[-1] * bits // 32), "uint32"),
        "scales_ptr": (scaled, dtype_name(w) if affine else "uint8"),
    }
    if affine:
        outputs["biases_ptr"] = (scaled, dtype_name(w))
    return launch(
        quantize_kernel if affine else mx_quantize_kernel,
        (triton.cdiv(groups, 2048 // group),),
        outputs,
        like=w,
        w_ptr=contiguous(w),
        groups=groups,
        BITS=bits,
        GROUP=group,
        BLOCK=2048 // group,
    )


_QUANTIZE_ARGUMENTS = "(Tensor w, int group, int bits, str mode)"


def _quantized_results(w: Array, group: int, bits: int, mode: str) -> list[Any]:
    rows = tuple(w.shape)[:-1]
    scaled = (*rows, w.shape[-1] // group)
    packed = ((*rows, w.shape[-1] * bits // 32), "uint32")
    if mode != "affine":
        return [packed, (scaled, "uint8")]
    return [packed, (scaled, dtype_name(w)), (scaled, dtype_name(w))]


_QUANTIZE = Operator(
    f"quantize{_QUANTIZE_ARGUMENTS} -> (q, scales, biases)", _quantized, _quantized_results
)
_MX_QUANTIZE = Operator(
    f"mx_quantize{_QUANTIZE_ARGUMENTS} -> (q, scales)", _quantized, _quantized_results
)


def _dequantized(
    w: Array, scales: Array, biases: Array | None, group: int, bits: int, mode: str, dtype: str
) -> tuple[Array, ...]:
    words = size_of(tuple(w.shape))
    return launch(
        dequantize_kernel,
        (triton.cdiv(words, 256),),
        {"w_ptr": ((*w.shape[:-1], w.shape[-1] * 32 // bits), dtype)},
        like=scales,
        q_ptr=viewed(w, "uint32"),
        scales_ptr=contiguous(scales),
        biases_ptr=None if biases is None else contiguous(biases),
        words=words,
        BITS=bits,
        GROUP=group,
        MODE=mode,
        BLOCK=256,
    )


_DEQUANTIZE = Operator(
    "dequantize(Tensor w, Tensor scales, Tensor? biases, int group, int bits, str mode, str dtype) -> (y)",
    _dequantized,
    lambda w, scales, biases, group, bits, mode, dtype: [
        ((*w.shape[:-1], w.shape[-1] * 32 // bits), dtype)
    ],
)


def _product_shape(x: Array, w: Array, transpose: bool, bits: int) -> tuple[int, ...]:
    return (*x.shape[:-1], w.shape[-2] if transpose else w.shape[-1] * 32 // bits)


def _multiplied(
    x: Array, w: Array, scales: Array, biases: Array | None, transpose: bool, group: int, bits: int,
    mode: str, dtype: str,
) -> tuple[Array, ...]:  # fmt: skip
    shape = _product_shape(x, w, transpose, bits)
    batch, k, n = size_of(tuple(w.shape)[:-2]), x.shape[-1], shape[-1]
    m = size_of(tuple(x.shape)[:-1]) // max(batch, 1)
    few = m <= QUANTIZED_VECTOR_ROWS
    arguments: dict[str, Any] = {
        "like": x,
        "x_ptr": contiguous(x),
        "w_ptr": viewed(w, "uint8" if not few or (bits == 8 and transpose) else "uint32"),
        "scales_ptr": contiguous(scales),
        "biases_ptr": None if biases is None else contiguous(biases),
        "M": m,
        "N": n,
        "K": k,
        "BITS": bits,
        "GROUP": group,
    }
    outputs = {"out_ptr": (shape, dtype)}
    if few:
        block_n, block_k, warps = quantized_vector_tile(
            x, mode, bits, dtype, transpose, m, n, k, batch, group
        )
        kernel, more = vector_times_kernel, {}
        if transpose:
            kernel = byte_vector_kernel if bits == 8 else word_vector_kernel
            shared = "few" if n < block_n else "shared"
            more = {"COLUMNS": shared if n % block_n else "whole"}
        return launch(
            kernel,
            (triton.cdiv(n, block_n), m, batch),
            outputs,
            MODE=mode,
            EVEN=k % block_k == 0 and (n >= block_n or not transpose),
            BLOCK_N=block_n,
            BLOCK_K=block_k,
            WIDE=batch * max(m * n, k * max(m, n)) >= WIDE_FROM,
            num_warps=warps,  # a thread's share of a tile is the kernel's own
            **more,
            **arguments,
        )
    # A float16 has not the range of the scales of small floats. What is multiplied by a float32, as in the gradient of
    # shorter numbers with float32 scales, keeps its digits.
    given = dtype_name(x)
    wide = given == "float32" or (mode != "affine" and given == "float16")
    multiplied = "float32" if wide else dtype
    kind = given if given == "float32" else dtype
    tile = quantized_tile(x, mode, bits, kind, transpose, m, n, k, batch, group)
    return launch(
        quantized_matmul_kernel,
        (triton.cdiv(n, tile.n), triton.cdiv(m, tile.m), batch),
        outputs,
        MODE=mode,
        TRANSPOSE=transpose,
        TYPE=TYPES[multiplied],
        FAR=max(tile.m, tile.n, tile.k) * max(k, n) >= FAR_FROM,
        BLOCK_M=tile.m,
        BLOCK_N=tile.n,
        BLOCK_K=tile.k,
        num_warps=tile.warps,
        **arguments,
    )


def _gradient(kept: Any, dy: Array) -> dict[str, Array]:
    """dx is the product of dy with the matrix the other way round."""
    arrays = (kept.w, kept.scales, kept.biases)
    dx = _QUANTIZED_MATMUL(
        dy, *arrays, not kept.transpose, kept.group, kept.bits, kept.mode, dtype_name(kept.x)
    )
    return {"x": dx[0]}


_QUANTIZED_MATMUL = Operator(
    "quantized_matmul(Tensor x, Tensor w, Tensor scales, Tensor? biases, bool transpose, int group, int bits, "
    "str mode, str dtype) -> (y)",
    _multiplied,
    lambda x, w, scales, biases, transpose, group, bits, mode, dtype: [
        (_product_shape(x, w, transpose, bits), dtype)
    ],
    _gradient,
    keeps="x w scales biases",
    refused="scales biases",
)


def quantize(
    w: Array, group_size: int | None = None, bits: int | None = None, mode: str = "affine"
) -> tuple[Array, ...]:
    """``w`` in the layout of ``mx.quantize``: (w_q, scales, biases), or (w_q, scales) in the modes "mxfp4" and "mxfp8".

    ``w`` is float16, bfloat16 or float32, (..., rows, columns), with columns a multiple of ``group_size``. ``w_q`` is uint32,
    (..., rows, columns * bits / 32), the first number of a word in its lowest bits; scales and biases are (..., rows, columns / group_size).

    - "affine": w ≈ scale * code + bias with codes of ``bits`` 4 (default) or 8 in groups of 32, 64 (default) or 128; scales and
      biases have the dtype of ``w``.
    - "mxfp4", "mxfp8": w ≈ 2**(scale - 127) * code, codes of float4_e2m1 or float8_e4m3 in groups of 32; scales are uint8.
      A scale of 0 makes w 0, as 2**-127 is subnormal, and numbers beyond float32 are infinite.

    Codes are computed in float32, and halves go to even. A group with a NaN or an infinity reads back as NaN. Not differentiable.

    Raises LaunchValueError for another dtype, shape, mode, group size or number of bits.

    Scales and codes are those of MLX, from float32 arithmetic. As wide as a code is the error of a number, beside the
    rounding of scale and bias. In "mxfp4" and "mxfp8" the scale is the power of two nearest to max |w| / 6 or / 448, and numbers beyond
    the largest code become that.

    >>> import numpy as np, triton_metal.ops as ops
    >>> w_q, scales, biases = ops.quantize(np.arange(32, dtype=np.float32)[None], group_size=32, bits=8)
    >>> w_q.shape, float(biases[0, 0])
    ((1, 8), 31.0)
    >>> ops.dequantize(w_q, scales, biases, group_size=32, bits=8)[0, 28:].round(2)
    array([27.96, 29.05, 30.03, 31.  ], dtype=float32)
    """
    check_arrays("quantize", w=w)
    group, bits = _parameters("quantize", mode, group_size, bits)
    check_dtype("quantize", "w", w, FLOATS)
    check_rank("quantize", "w", w, 2, 1 << 16)
    if w.shape[-1] % group:
        raise fail(
            "quantize",
            f"w must have a multiple of {group} (group_size) columns but has shape {tuple(w.shape)}.",
        )
    return (_QUANTIZE if mode == "affine" else _MX_QUANTIZE)(w, group, bits, mode)


def dequantize(
    w: Array,
    scales: Array,
    biases: Array | None = None,
    group_size: int | None = None,
    bits: int | None = None,
    mode: str = "affine",
    dtype: Any = None,
) -> Array:
    """The numbers of a matrix in the layout of ``quantize`` (and of ``mx.quantize``): scale * code + bias.

    ``w`` is uint32 (or int32 with the same bits). ``dtype`` is float16, bfloat16 or float32, by name or as the framework's dtype; without it, that of
    the scales, and bfloat16 for "mxfp4" and "mxfp8". Computed in float32, rounded once. Not differentiable.

    Raises LaunchValueError for shapes and dtypes that do not fit each other.

    Error: the rounding of scale * code + bias to float32, and that of the result.

    >>> import numpy as np, triton_metal.ops as ops
    >>> w = np.array([[0.5, -1, 3, 6] * 8], np.float32)
    >>> ops.dequantize(*ops.quantize(w, mode="mxfp4"), mode="mxfp4", dtype="float32")[0, :4]
    array([ 0.5, -1. ,  3. ,  6. ], dtype=float32)
    """
    check_arrays("dequantize", "biases", w=w, scales=scales, biases=biases)
    group, bits = _parameters("dequantize", mode, group_size, bits)
    _check_matrix("dequantize", w, scales, biases, group, bits, mode)
    found = dtype_name(scales) if mode == "affine" else "bfloat16"
    if dtype is not None:
        found = dtype_argument("dequantize", "dtype", dtype, FLOATS)
    return _DEQUANTIZE(w, scales, biases, group, bits, mode, found)[0]


def quantized_matmul(
    x: Array,
    w: Array,
    scales: Array,
    biases: Array | None = None,
    transpose: bool = True,
    group_size: int | None = None,
    bits: int | None = None,
    mode: str = "affine",
) -> Array:
    """``x`` times the transpose of a quantised matrix (or times the matrix itself), as ``mx.quantized_matmul``.

    ``x`` is (..., M, K) or (K,), float16, bfloat16 or float32; ``w``, ``scales`` and ``biases`` are what ``quantize`` or ``mx.quantize`` gives for a
    matrix (N, K), or (K, N) with ``transpose=False``. A ``w`` with more than two dimensions has the batch dimensions of ``x``. The
    result is (..., M, N), summed in float32, and has the dtype of ``x`` and the scales, float32 where these differ; that of ``x`` for
    "mxfp4" and "mxfp8". Modes, bits and groups are those of ``quantize``.

    Few rows are multiplied in float32. With more, the matrix is rounded to the result's dtype first. Differentiable in ``x``;
    asking for a gradient of scales or biases is an error.

    Raises LaunchValueError for shapes, dtypes and parameters that do not fit each other.

    Error, with u = 2^-24 and beside the rounding of the result: min(K, 6 √K) u Σ |x| (|scale · code| + |bias|), and with
    more than 6 rows of ``x`` in all the rounding of the matrix.

    >>> import numpy as np, triton_metal.ops as ops
    >>> w = np.eye(32, dtype=np.float32)
    >>> parts = ops.quantize(w, group_size=32, bits=4)
    >>> ops.quantized_matmul(np.arange(32, dtype=np.float32), *parts, group_size=32)[1:5].round(3)
    array([1., 2., 3., 4.], dtype=float32)
    """
    name = "quantized_matmul"
    check_arrays(name, "biases", x=x, w=w, scales=scales, biases=biases)
    group, bits = _parameters(name, mode, group_size, bits)
    check_dtype(name, "x", x, FLOATS)
    check_rank(name, "x", x, 1, 1 << 16)
    transpose = check_flag(name, "transpose", transpose)
    rows, columns = _check_matrix(name, w, scales, biases, group, bits, mode)[-2:]
    depth = columns if transpose else rows
    if x.shape[-1] != depth:
        raise fail(
            name,
            f"x must have {depth} elements in its last dimension, as w of shape {tuple(w.shape)} stands for a matrix "
            f"({rows}, {columns}) and transpose is {transpose}, but has shape {tuple(x.shape)}.",
        )
    if w.ndim > 2 and tuple(w.shape[:-2]) != tuple(x.shape[:-2]):
        raise fail(
            name,
            f"w must have 2 dimensions or the batch dimensions of x, {tuple(x.shape[:-2])}, but has shape "
            f"{tuple(w.shape)}.",
        )
    dtype = dtype_name(x)
    if mode == "affine":
        dtype = product_type(dtype, dtype_name(scales))
    left = reshaped(x, (1, x.shape[0])) if x.ndim == 1 else x
    y = _QUANTIZED_MATMUL(left, w, scales, biases, transpose, group, bits, mode, dtype)[0]
    return reshaped(y, (y.shape[-1],)) if x.ndim == 1 else y
