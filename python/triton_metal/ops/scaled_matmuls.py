"""Products of 8-bit and 4-bit floats with scales: one for a whole operand, for each row, or for each 32 numbers."""

from __future__ import annotations

import numbers
from typing import Any

import triton_metal as triton
import triton_metal.language as tl

from ._arrays import (
    FLOATS,
    Array,
    contiguous,
    converted,
    dtype_name,
    full,
    is_array,
    is_mlx,
    is_torch,
    reshaped,
    size_of,
)
from ._checks import (
    check_arrays,
    check_choice,
    check_dtype,
    check_number,
    check_rank,
    check_shape,
    fail,
    listed,
)
from ._far import FAR_FROM
from ._launch import launch
from ._matrix_kernels import activated, with_bias
from ._operators import Operator
from ._products import FLOATS8, add_parts, product
from ._tiles import scaled_tile
from .matmuls import ACTIVATIONS, check_split, dtype_argument
from .quantized import viewed

FORMATS = ("e4m3", "e5m2", "mxfp4", "mxfp8")
#: What tl.dot_scaled calls the numbers of an operand.
_ELEMENTS = {
    "e4m3": "e4m3",
    "e5m2": "e5m2",
    "mxfp4": "e2m1",
    "mxfp8": "e4m3",
    "float16": "fp16",
    "bfloat16": "bf16",
}
_OF_DTYPE = {"float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2"}
#: The numbers that share a scale.
GROUP = 32


@triton.jit
def scaled_matmul_kernel(
    a_ptr, a_groups_ptr, b_ptr, b_groups_ptr, bias_ptr, row_scale_ptr, column_scale_ptr, c_ptr, z_ptr,
    M, N, K, part_size, A_FORMAT: tl.constexpr, B_FORMAT: tl.constexpr, SPLIT: tl.constexpr,
    ACTIVATION: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    FAR: tl.constexpr,
):  # fmt: skip
    """A tile of a times b's transpose; 32 numbers of a row share a power of two where there are `groups`."""
    A_EACH: tl.constexpr = 2 if A_FORMAT == "e2m1" else 1
    B_EACH: tl.constexpr = 2 if B_FORMAT == "e2m1" else 1
    first_m, first_n = tl.program_id(0) * BLOCK_M, tl.program_id(1) * BLOCK_N
    part = tl.program_id(2)
    m, n, group = tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N), tl.arange(0, BLOCK_K // 32)
    if FAR:
        m, n = m.to(tl.int64), n.to(tl.int64)
    ak, bk = tl.arange(0, BLOCK_K // A_EACH), tl.arange(0, BLOCK_K // B_EACH)
    rows, columns = first_m + m < M, first_n + n < N
    a_ptr += first_m.to(tl.int64) * (K // A_EACH)
    b_ptr += first_n.to(tl.int64) * (K // B_EACH)
    if a_groups_ptr is not None:
        a_groups_ptr += first_m.to(tl.int64) * (K // 32)
    if b_groups_ptr is not None:
        b_groups_ptr += first_n.to(tl.int64) * (K // 32)
    begin, end = 0, K
    if SPLIT:
        begin = part * part_size
        end = min(K, begin + part_size)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(begin, end, BLOCK_K):
        a_scale, b_scale = None, None
        a_at, b_at, groups = k // A_EACH + ak, k // B_EACH + bk, k // 32 + group
        a = tl.load(
            a_ptr + m[:, None] * (K // A_EACH) + a_at[None, :],
            mask=rows[:, None] & (a_at < end // A_EACH)[None, :], other=0,
        )  # fmt: skip
        b = tl.load(
            b_ptr + n[None, :] * (K // B_EACH) + b_at[:, None],
            mask=columns[None, :] & (b_at < end // B_EACH)[:, None], other=0,
        )  # fmt: skip
        if a_groups_ptr is not None:
            inside = rows[:, None] & (groups < end // 32)[None, :]
            a_scale = tl.load(a_groups_ptr + m[:, None] * (K // 32) + groups[None, :], inside, 127)
        if b_groups_ptr is not None:
            inside = columns[:, None] & (groups < end // 32)[None, :]
            b_scale = tl.load(b_groups_ptr + n[:, None] * (K // 32) + groups[None, :], inside, 127)
        acc = tl.dot_scaled(a, a_scale, A_FORMAT, b, b_scale, B_FORMAT, acc)
    row, column = first_m.to(tl.int64) + m[:, None], first_n + n[None, :]
    if SPLIT:
        c_ptr += part.to(tl.int64) * M * N
    else:
        acc = with_bias(
            acc,
            row,
            rows[:, None],
            column,
            columns[None, :],
            bias_ptr,
            row_scale_ptr,
            column_scale_ptr,
        )
    acc = activated(acc, ACTIVATION)
    mask = rows[:, None] & columns[None, :]
    tl.store(c_ptr + row * N + column, acc.to(c_ptr.dtype.element_ty), mask=mask)


def _scale_of_rows(scale: Array | None, rows: int) -> Array | None:
    """One float32 for each row, of one for all of them or for each."""
    if scale is None:
        return None
    scale = contiguous(converted(scale, "float32"))
    if size_of(tuple(scale.shape)) == rows:
        return reshaped(scale, (rows,))
    if is_mlx(scale) or is_torch(scale):
        return contiguous(scale.reshape(1) + full((rows,), 0, "float32", scale))
    return full((rows,), scale.reshape(()), "float32", scale)


def _forward(
    a: Array, b: Array, a_scale: Array | None, b_scale: Array | None, bias: Array | None,
    a_format: str, b_format: str, activation: str, split_k: int, out_dtype: str,
) -> tuple[Array, ...]:  # fmt: skip
    mx = [name.startswith("mx") for name in (a_format, b_format)]
    n = b.shape[0]
    shape = (*a.shape[:-1], n)
    m = size_of(shape[:-1])
    endings: dict[str, Any] = {
        "bias_ptr": None if bias is None else contiguous(bias),
        "row_scale_ptr": None if mx[0] else _scale_of_rows(a_scale, m),
        "column_scale_ptr": None if mx[1] else _scale_of_rows(b_scale, n),
    }
    if not any(mx):
        plain = ["" if dtype_name(x) in (*FLOATS, *FLOATS8) else f for x, f in ((a, a_format), (b, b_format))]  # fmt: skip
        return product(
            a, b, False, True, tuple(a.shape[:-2]), out_dtype, bias=bias, split_k=split_k,
            row_scale=endings["row_scale_ptr"], column_scale=endings["column_scale_ptr"],
            activation=activation, a_format=plain[0], b_format=plain[1],
        )  # fmt: skip
    a, b = (
        contiguous(x) if f in FLOATS else viewed(x, "uint8")
        for x, f in ((a, a_format), (b, b_format))
    )
    k = b.shape[-1] * (2 if b_format == "mxfp4" else 1)
    elements = _ELEMENTS[a_format], _ELEMENTS[b_format]
    tile = scaled_tile(a, *elements, 4 if out_dtype == "float32" else 2, m, n, k, split_k or None)
    outputs: dict[str, Any] = {"c_ptr": (shape, out_dtype)}
    endings["z_ptr"] = None
    whole = tile.parts == 1
    (found,) = launch(
        scaled_matmul_kernel,
        (triton.cdiv(m, tile.m), triton.cdiv(n, tile.n), tile.parts),
        outputs if whole else {"c_ptr": ((tile.parts, *shape), "float32")},
        like=a,
        a_ptr=a,
        a_groups_ptr=viewed(a_scale, "uint8") if mx[0] else None,
        b_ptr=b,
        b_groups_ptr=viewed(b_scale, "uint8") if mx[1] else None,
        M=m,
        N=n,
        K=k,
        part_size=triton.cdiv(triton.cdiv(k, tile.parts), tile.k) * tile.k,
        A_FORMAT=elements[0],
        B_FORMAT=elements[1],
        SPLIT=not whole,
        ACTIVATION=activation if whole else "",
        BLOCK_M=tile.m,
        BLOCK_N=tile.n,
        BLOCK_K=tile.k,
        FAR=max(min(m, tile.m), min(n, tile.n)) * k >= FAR_FROM,
        num_warps=tile.warps,
        **(endings if whole else dict.fromkeys(endings)),
    )
    if whole or not size_of(shape):
        return (found if whole else full(shape, 0, out_dtype, a),)
    return add_parts(found, outputs, n, activation, endings)


_SCALED_MATMUL = Operator(
    "scaled_matmul(Tensor a, Tensor b, Tensor? a_scale, Tensor? b_scale, Tensor? bias, str a_format, str b_format, "
    "str activation, int split_k, str out_dtype) -> (c)",
    _forward,
    lambda a, b, *others: [((*a.shape[:-1], b.shape[0]), others[-1])],
)


def _format(function: str, name: str, x: Array, given: str | None) -> str:
    """The format of an operand, or its dtype; raises unless the two agree."""
    dtype = dtype_name(x)
    if given is None:
        if dtype in _OF_DTYPE or dtype in FLOATS:
            return _OF_DTYPE.get(dtype, dtype)
        raise fail(
            function,
            f"{name}_format must be {listed(FORMATS)} for an {name} of dtype {dtype}, or {name} must have dtype "
            f"{listed((*FLOATS, *FLOATS8))}.",
        )
    check_choice(function, f"{name}_format", given, (None, *FORMATS))
    allowed = {
        "e4m3": ("uint8", "float8_e4m3fn"),
        "e5m2": ("uint8", "float8_e5m2"),
        "mxfp4": ("uint8", "uint32", "int32", "float4_e2m1fn_x2"),
        "mxfp8": ("uint8", "uint32", "int32", "float8_e4m3fn"),
    }[given]
    if dtype not in allowed:
        raise fail(
            function,
            f"{name} must have dtype {listed(allowed)} for {name}_format {given!r} but has dtype {dtype}.",
        )
    return given


def _columns(x: Array, form: str) -> int:
    """How many numbers a row has."""
    bytes_of = {"uint32": 4, "int32": 4}.get(dtype_name(x), 1)
    return x.shape[-1] * bytes_of * (2 if form == "mxfp4" else 1)


def _check_scale(function: str, name: str, x: Array, scale: Any, form: str, k: int) -> None:
    if form.startswith("mx"):
        if scale is None:
            raise fail(
                function, f"{name}_scale must be given for {name}_format {form!r} but is None."
            )
        check_dtype(function, f"{name}_scale", scale, ("uint8", "float8_e8m0fnu"))
        if k % GROUP:
            raise fail(
                function,
                f"{name} must have rows of whole groups of {GROUP} numbers but these have {k}.",
            )
        wanted = (*x.shape[:-1], k // GROUP)
        check_shape(function, f"{name}_scale", scale, wanted, f", one number for {GROUP} of a row,")
    elif scale is not None:
        check_dtype(function, f"{name}_scale", scale, FLOATS)
        rows = tuple(x.shape[:-1])
        shape = tuple(scale.shape)
        # Python's `in` does not find a number among sizes that torch.compile traces.
        if size_of(shape) != 1 and shape != rows and shape != (*rows, 1):
            raise fail(
                function,
                f"{name}_scale must have one element, or one for each row in shape {rows} or {(*rows, 1)}, but has "
                f"shape {shape}.",
            )


def scaled_matmul(
    a: Array,
    b: Array,
    a_scale: Array | float | None = None,
    b_scale: Array | float | None = None,
    *,
    a_format: str | None = None,
    b_format: str | None = None,
    bias: Array | None = None,
    activation: str | None = None,
    split_k: int | None = None,
    out_dtype: Any = None,
) -> Array:
    """activation((a · a_scale) @ (b · b_scale).T + bias) for 8-bit and 4-bit floats, summed in float32.

    ``a`` is (..., M, K), ``b`` (N, K) as the weight of a linear layer, ``bias`` (N,), the result (..., M, N). Each operand is one of these:

    - format "e4m3" or "e5m2": float8_e4m3fn or float8_e5m2 of PyTorch or ml_dtypes (``a_format`` may be None), or uint8 with
      their bytes. The scale is None, a number, an array of one element, or one for each row: (..., M) or (..., M, 1), and (N,) or (N, 1).
    - format "mxfp4": float4_e2m1, two in a byte (the first in the lower bits), K / 2 bytes of uint8 a row, or words of uint32 as
      ``quantize(mode="mxfp4")`` gives; format "mxfp8": bytes of e4m3, or such words. The scale is uint8 (..., K / 32): exponents of 2 plus 127 for
      32 numbers each; 255 is NaN. PyTorch's float4_e2m1fn_x2 and float8_e8m0fnu are such bytes.
    - float16, bfloat16 or float32 without a format (float32 not beside "mxfp4" or "mxfp8"); the scale is as for "e4m3".

    ``activation`` and ``split_k`` are those of ``matmul``. ``out_dtype`` is float16, bfloat16 or float32; without it, that of the operand without
    a format, or bfloat16. Not differentiable.

    Raises LaunchValueError for shapes, dtypes and formats that do not fit, LaunchTypeError for arguments that are no arrays of one framework.

    Error, with u = 2^-24 and beside the rounding of the result: min(K, 6 √K) u Σ |a| |b| of the scaled numbers, and 2^-22
    of it for scales of rows.

    >>> import numpy as np, triton_metal.ops as ops
    >>> a = np.array([[0x38, 0x40]], np.uint8)  # 1 and 2 in e4m3
    >>> ops.scaled_matmul(a, a, 10.0, a_format="e4m3", b_format="e4m3", out_dtype="float32")
    array([[50.]], dtype=float32)
    >>> w, scales = ops.quantize(np.full((3, 32), 1.5, np.float32), mode="mxfp4")
    >>> x = np.ones((2, 32), np.float16)
    >>> ops.scaled_matmul(x, w, None, scales, b_format="mxfp4")
    array([[48., 48., 48.],
           [48., 48., 48.]], dtype=float16)
    """
    name = "scaled_matmul"
    check_arrays(name, a=a, b=b)
    a_scale, b_scale = (
        full((1,), check_number(name, text, scale), "float32", a)
        if isinstance(scale, (int, float, numbers.Real)) and not isinstance(scale, bool)
        else scale
        for text, scale in (("a_scale", a_scale), ("b_scale", b_scale))
    )
    check_arrays(
        name, "a_scale b_scale bias", a=a, b=b, a_scale=a_scale, b_scale=b_scale, bias=bias
    )
    check_rank(name, "a", a, 2, 1 << 16)
    check_rank(name, "b", b, 2)
    forms = _format(name, "a", a, a_format), _format(name, "b", b, b_format)
    k = _columns(a, forms[0])
    if k != _columns(b, forms[1]):
        raise fail(
            name,
            f"a and b must have as many numbers in a row but have {k} and {_columns(b, forms[1])}: their shapes are "
            f"{tuple(a.shape)} and {tuple(b.shape)}.",
        )
    _check_scale(name, "a", a, a_scale, forms[0], k)
    _check_scale(name, "b", b, b_scale, forms[1], k)
    if any(form.startswith("mx") for form in forms) and "float32" in forms:
        side = "ab"[forms.index("float32")]
        raise fail(
            name,
            f"{side} must have dtype float16 or bfloat16 beside mxfp4 or mxfp8 but has dtype float32.",
        )
    if bias is not None:
        check_dtype(name, "bias", bias, FLOATS)
        check_shape(name, "bias", bias, (b.shape[0],), ", one number for each row of b,")
    if activation is not None:
        check_choice(name, "activation", activation, (None, *ACTIVATIONS))
    dtype = next((form for form in forms if form in FLOATS), "bfloat16")
    if forms[0] in FLOATS and forms[1] in FLOATS and forms[0] != forms[1]:
        dtype = "float32"
    if out_dtype is not None:
        dtype = dtype_argument(name, "out_dtype", out_dtype, FLOATS)
    arrays = (a, b, a_scale, b_scale, bias)
    assert all(x is None or is_array(x) for x in arrays)
    split = check_split(name, split_k)
    return _SCALED_MATMUL(*arrays, *forms, activation or "", split, dtype)[0]
