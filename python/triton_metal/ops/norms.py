"""Layer norm and RMS norm of the last axis, with gradients.

A program holds one row in registers, in pieces, and reads it once; rows of more than LONGEST numbers, and of more than LONGEST_BACK for the
gradient, are walked over in blocks. Mean and scale are not kept for the gradient, which has the row in registers again.

With x̂ = (x - mean) scale and g = dy weight, the gradient of a row is dx = (g - mean(g) - x̂ mean(g x̂)) scale; RMS norm has no
mean. The gradients of weight and bias are sums over rows: each program takes every P-th row and keeps its sums, and a
second kernel adds up those of the P programs, so that the result is the same on every run. Beside a row of more than
LONGEST_SUMMED numbers there are no registers for these sums: another kernel has blocks of columns, and reads the rows again.
"""

from __future__ import annotations

from typing import Any

import triton_metal as triton
import triton_metal.language as tl

from ..devices.selection import chosen
from ._arrays import FLOATS, Array, contiguous, dtype_name, full, size_of
from ._checks import (
    check_arrays,
    check_dtype,
    check_number,
    check_rank,
    check_same_dtype,
    check_shape,
)
from ._launch import Spec, launch
from ._long_norms import long_norm_backward_kernel, long_norm_kernel, weight_gradients_kernel
from ._operators import Operator
from ._pieces import (
    added,
    centred,
    in_float32,
    load_pieces,
    pieces,
    places_of,
    store_pieces,
    sum_of,
    sum_of_squares,
)

#: The most numbers of a row that a program holds at once, and the block of longer rows.
LONGEST, BLOCK = 16_384, 8_192
#: The same for the gradient, which has x, dy and weights of a row; and the most beside which it keeps the sums over rows, too.
LONGEST_BACK, BLOCK_BACK, LONGEST_SUMMED = 8_192, 4_096, 4_096
#: So short rows are one block; longer ones are held in pieces.
SHORT = 64
#: The most programs whose sums of weights' gradients are added up.
PROGRAMS = 256


@triton.jit
def norm_kernel(
    x_ptr, residual_ptr, weight_ptr, bias_ptr, y_ptr, total_ptr, n_cols, share, eps,
    CENTRE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """A row of x (+ residual, rounded and stored to total), normalised; share is 1 / n_cols."""
    first = tl.program_id(0).to(tl.int64) * n_cols
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + first + cols, mask=mask, other=0.0).to(tl.float32)
    if residual_ptr is not None:
        x += tl.load(residual_ptr + first + cols, mask=mask, other=0.0).to(tl.float32)
        total = x.to(total_ptr.dtype.element_ty)
        tl.store(total_ptr + first + cols, total, mask=mask)
        x = total.to(tl.float32)
    if CENTRE:
        x = tl.where(mask, x - tl.sum(x, axis=0) * share, 0.0)
    y = x * tl.rsqrt(tl.sum(x * x, axis=0) * share + eps)
    if weight_ptr is not None:
        weight = tl.load(weight_ptr + cols, mask=mask, other=0.0)
        y = y.to(weight.dtype) * weight
    if bias_ptr is not None:
        y += tl.load(bias_ptr + cols, mask=mask, other=0.0)
    tl.store(y_ptr + first + cols, y.to(y_ptr.dtype.element_ty), mask=mask)


@triton.jit
def norm_row_kernel(
    x_ptr, residual_ptr, weight_ptr, bias_ptr, y_ptr, total_ptr, n_cols, share, eps,
    CENTRE: tl.constexpr, WIDTHS: tl.constexpr, UNIT: tl.constexpr,
):  # fmt: skip
    """The same of a row that is held in pieces."""
    first = tl.program_id(0).to(tl.int64) * n_cols
    places, mask = places_of(n_cols, WIDTHS, UNIT)
    x = in_float32(load_pieces(x_ptr + first, places, mask, 0.0))
    if residual_ptr is not None:
        x = added(x, in_float32(load_pieces(residual_ptr + first, places, mask, 0.0)))
        x = store_pieces(total_ptr + first, places, mask, x)
    if CENTRE:
        x = centred(x, sum_of(x) * share, mask)
    scale = tl.rsqrt(sum_of_squares(x) * share + eps)
    for i in tl.static_range(len(WIDTHS)):
        there = mask if i == len(WIDTHS) - 1 else None
        other: tl.constexpr = 0.0 if i == len(WIDTHS) - 1 else None
        y = x[i] * scale
        if weight_ptr is not None:
            weight = tl.load(weight_ptr + places[i], mask=there, other=other)
            y = y.to(weight.dtype) * weight
        if bias_ptr is not None:
            y += tl.load(bias_ptr + places[i], mask=there, other=other)
        tl.store(y_ptr + first + places[i], y.to(y_ptr.dtype.element_ty), mask=there)


@triton.jit
def norm_backward_kernel(
    dy_ptr, dtotal_ptr, x_ptr, weight_ptr, dx_ptr, dweight_ptr, dbias_ptr, mean_ptr, scale_ptr,
    n_rows, n_cols, share, eps, CENTRE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """dx (+ dtotal) of every P-th row, and this program's sums of dweight and dbias, or mean and scale of its rows."""
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    weight = tl.full((BLOCK,), 1.0, tl.float32)
    if weight_ptr is not None:
        weight = tl.load(weight_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    dweight = tl.zeros((BLOCK,), tl.float32)
    dbias = tl.zeros((BLOCK,), tl.float32)
    for row in range(tl.program_id(0), n_rows, tl.num_programs(0)):
        first = row.to(tl.int64) * n_cols
        x = tl.load(x_ptr + first + cols, mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + first + cols, mask=mask, other=0.0).to(tl.float32)
        g = dy * weight
        dx = g
        mean = 0.0
        if CENTRE:
            mean = tl.sum(x, axis=0) * share
            x = tl.where(mask, x - mean, 0.0)
            dx -= tl.sum(g, axis=0) * share
        scale = tl.rsqrt(tl.sum(x * x, axis=0) * share + eps)
        if scale_ptr is not None:
            tl.store(mean_ptr + row, mean)
            tl.store(scale_ptr + row, scale)
        normalised = x * scale
        dx = (dx - normalised * (tl.sum(g * normalised, axis=0) * share)) * scale
        if dtotal_ptr is not None:
            dx += tl.load(dtotal_ptr + first + cols, mask=mask, other=0.0).to(tl.float32)
        tl.store(dx_ptr + first + cols, dx.to(dx_ptr.dtype.element_ty), mask=mask)
        dweight += dy * normalised
        dbias += dy
    at = tl.program_id(0).to(tl.int64) * n_cols + cols
    if dweight_ptr is not None:
        tl.store(dweight_ptr + at, dweight, mask=mask)
    if dbias_ptr is not None:
        tl.store(dbias_ptr + at, dbias, mask=mask)


@triton.jit
def column_sums_kernel(
    x_ptr, y_ptr, n_rows, n_cols, BLOCK_ROWS: tl.constexpr, BLOCK_COLS: tl.constexpr
):
    """The sum over the rows of a block of columns."""
    cols = tl.program_id(0) * BLOCK_COLS + tl.arange(0, BLOCK_COLS)
    sums = tl.zeros((BLOCK_ROWS, BLOCK_COLS), tl.float32)
    for start in range(0, n_rows, BLOCK_ROWS):
        rows = start + tl.arange(0, BLOCK_ROWS)
        mask = (rows[:, None] < n_rows) & (cols[None, :] < n_cols)
        at = rows[:, None].to(tl.int64) * n_cols + cols[None, :]
        sums += tl.load(x_ptr + at, mask=mask, other=0.0)
    total = tl.sum(sums, axis=0).to(y_ptr.dtype.element_ty)
    tl.store(y_ptr + cols, total, mask=cols < n_cols)


def _column_sums(x: Array, dtype: str) -> Array:
    n_rows, n_cols = x.shape
    blocks = {"BLOCK_ROWS": 32, "BLOCK_COLS": 32}
    grid, outputs = (triton.cdiv(n_cols, 32),), {"y_ptr": ((n_cols,), dtype)}
    sizes = {"n_rows": n_rows, "n_cols": n_cols}
    return launch(column_sums_kernel, grid, outputs, like=x, x_ptr=x, **sizes, **blocks)[0]


def _sizes(
    x: Array, eps: float, centre: bool, longest: int = LONGEST, block: int = BLOCK
) -> tuple[int, int, dict[str, Any]]:
    """Rows, columns, and what every kernel of rows takes."""
    n_rows, n_cols = size_of(tuple(x.shape)[:-1]), x.shape[-1]
    if n_cols <= longest:
        block = triton.next_power_of_2(n_cols)
    sizes = {"n_cols": n_cols, "share": 1.0 / max(n_cols, 1), "eps": eps}
    return n_rows, n_cols, sizes | {"CENTRE": centre, "BLOCK": block}


def _launched(x: Array, outputs: dict[str, Spec], **arguments: Any) -> tuple[Array, ...]:
    """A launch for rows of at most LONGEST numbers. MLX's own norms take the place of the kernel of whole blocks."""
    n_rows, n_cols = size_of(tuple(x.shape)[:-1]), arguments["n_cols"]
    if n_cols <= SHORT or chosen() == "mlx-graph":
        return launch(norm_kernel, (n_rows,), outputs, like=x, **arguments)
    del arguments["BLOCK"]
    held = pieces(n_cols, most=16)
    return launch(norm_row_kernel, (n_rows,), outputs, like=x, **arguments, **held)


def _contiguous(**arrays: Array | None) -> dict[str, Array | None]:
    return {f"{name}_ptr": None if x is None else contiguous(x) for name, x in arrays.items()}


def _norm(
    x: Array, weight: Array | None, bias: Array | None, eps: float, centre: bool
) -> tuple[Array, ...]:
    n_rows, n_cols, sizes = _sizes(x, eps, centre)
    given = _contiguous(x=x, weight=weight, bias=bias)
    outputs = {"y_ptr": (x.shape, dtype_name(x))}
    if n_cols > LONGEST:
        return launch(long_norm_kernel, (n_rows,), outputs, like=x, **given, **sizes)
    given |= {"residual_ptr": None, "total_ptr": None}
    return _launched(x, outputs, **given, **sizes)


def _residual_norm(
    x: Array, residual: Array, weight: Array | None, bias: Array | None, eps: float, centre: bool
) -> tuple[Array, ...]:
    _, n_cols, sizes = _sizes(x, eps, centre)
    if n_cols > LONGEST:
        total = x + residual
        return _norm(total, weight, bias, eps, centre) + (total,)
    given = _contiguous(x=x, residual=residual, weight=weight, bias=bias)
    outputs = {"y_ptr": (x.shape, dtype_name(x)), "total_ptr": (x.shape, dtype_name(x))}
    return _launched(x, outputs, **given, **sizes)


def _backward(
    dy: Array, dtotal: Array | None, x: Array, weight: Array | None, eps: float, centre: bool,
    weight_dtype: str, bias_dtype: str,
) -> tuple[Array, ...]:  # fmt: skip
    """dx, dweight and dbias; of the last two, one whose dtype is "" is not wanted and has no elements."""
    n_rows, n_cols, sizes = _sizes(x, eps, centre, LONGEST_BACK, BLOCK_BACK)
    dtypes = {"dweight_ptr": weight_dtype, "dbias_ptr": bias_dtype}
    wanted = {name: dtype for name, dtype in dtypes.items() if dtype}
    absent = {name: None for name in dtypes if name not in wanted}
    # Each has a part of the sums over rows, of which the second launch reads 32 at once.
    programs = min(PROGRAMS, max(triton.cdiv(n_rows, 4), min(n_rows, 32))) if wanted else n_rows
    parts = dict.fromkeys(wanted, ((programs, n_cols), "float32"))
    given = _contiguous(dy=dy, dtotal=dtotal, x=x, weight=weight)
    outputs = {"dx_ptr": (x.shape, dtype_name(x))}
    if n_cols <= LONGEST_SUMMED:
        given |= {"n_rows": n_rows, "mean_ptr": None, "scale_ptr": None} | absent
        made = launch(norm_backward_kernel, (programs,), outputs | parts, like=x, **given, **sizes)
        dx, partial = made[0], made[1:]
    else:
        kernel = long_norm_backward_kernel
        if n_cols <= LONGEST_BACK:
            kernel = norm_backward_kernel
            given |= {"n_rows": n_rows} | dict.fromkeys(dtypes)
        outputs |= {"mean_ptr": ((n_rows,), "float32"), "scale_ptr": ((n_rows,), "float32")}
        dx, mean, scale = launch(kernel, (n_rows,), outputs, like=x, **given, **sizes)
        given = _contiguous(dy=dy, x=x, mean=mean, scale=scale) | absent
        given |= {"n_rows": n_rows, "n_cols": n_cols, "BLOCK": 1024}
        grid = (programs if wanted else 0, triton.cdiv(n_cols, 1024))
        partial = launch(weight_gradients_kernel, grid, parts, like=x, **given)
    sums = dict(zip(wanted, partial, strict=True))
    return dx, *(
        _column_sums(sums[name], dtype) if dtype else full((0,), 0, "float32", x)
        for name, dtype in dtypes.items()
    )


def _like_first(x: Array, *_: Any) -> list[Spec]:
    return [(x.shape, dtype_name(x))]


def _like_first_twice(x: Array, *_: Any) -> list[Spec]:
    return [(x.shape, dtype_name(x))] * 2


def _backward_results(
    dy: Array, dtotal: Any, x: Array, weight: Any, eps: float, centre: bool, *dtypes: str
) -> list[Spec]:
    sums = [((x.shape[-1],), dtype) if dtype else ((0,), "float32") for dtype in dtypes]
    return [(x.shape, dtype_name(x)), *sums]


_BACKWARD = Operator(
    "norm_backward(Tensor dy, Tensor? dtotal, Tensor x, Tensor? weight, float eps, bool centre, "
    "str weight_dtype, str bias_dtype) -> (dx, dweight, dbias)",
    _backward,
    _backward_results,
)


def _gradients(kept: Any, x: Array, dy: Array, dtotal: Array | None) -> dict[str, Array]:
    weight, bias = (
        dtype_name(getattr(kept, name)) if name in kept.needs else "" for name in ("weight", "bias")
    )
    dx, dweight, dbias = _BACKWARD(dy, dtotal, x, kept.weight, kept.eps, kept.centre, weight, bias)
    found = {"weight": dweight, "bias": dbias, "x": dx, "residual": dx}
    return {name: found[name] for name in kept.needs}


def _residual_gradients(kept: Any, dy: Array | None, dtotal: Array | None) -> dict[str, Array]:
    if dy is None:
        return dict.fromkeys(kept.needs & {"x", "residual"}, dtotal)
    return _gradients(kept, kept.total, dy, dtotal)


_NORM = Operator(
    "norm(Tensor x, Tensor? weight, Tensor? bias, float eps, bool centre) -> (y)",
    _norm,
    _like_first,
    lambda kept, dy: _gradients(kept, kept.x, dy, None),
    keeps="x weight bias",
)
_RESIDUAL_NORM = Operator(
    "residual_norm(Tensor x, Tensor residual, Tensor? weight, Tensor? bias, float eps, bool centre) "
    "-> (y, total)",
    _residual_norm,
    _like_first_twice,
    _residual_gradients,
    keeps="weight bias total",
)


def _normalised(
    function: str, x: Array, weight: Array | None, bias: Array | None, residual: Array | None,
    eps: float, centre: bool,
) -> Any:  # fmt: skip
    check_arrays(function, "weight bias residual", x=x, weight=weight, bias=bias, residual=residual)
    check_dtype(function, "x", x, FLOATS)
    check_rank(function, "x", x, 1, 1 << 16)
    eps = check_number(function, "eps", eps, least=0)
    for name, each in (("weight", weight), ("bias", bias)):
        if each is not None:
            check_dtype(function, name, each, FLOATS)
            check_shape(function, name, each, (x.shape[-1],), ", the last axis of x,")
    if residual is None:
        return _NORM(x, weight, bias, eps, centre)[0]
    check_same_dtype(function, x=x, residual=residual)
    check_shape(function, "residual", residual, x.shape, ", that of x,")
    return _RESIDUAL_NORM(x, residual, weight, bias, eps, centre)


def layer_norm(
    x: Array,
    weight: Array | None = None,
    bias: Array | None = None,
    eps: float = 1e-5,
    *,
    residual: Array | None = None,
) -> Any:
    """(x - mean) / sqrt(variance + eps) · weight + bias over the last axis.

    ``x`` (…, columns) is float16, bfloat16 or float32; ``weight`` and ``bias`` (columns,), either of which may be None, are of
    any of these dtypes. The result is like ``x``. The variance is that of the population, Σ (x - mean)² / columns. A row is normalised in
    float32, then rounded to the dtype of ``weight`` and multiplied in it, as in MLX; so is ``bias`` added. Squares are added in
    float32, too: where they are infinite, from about 2^64 for x on, a row is normalised to 0, as in MLX and PyTorch.

    With ``residual``, an array like ``x``, the sum t = x + residual is normalised instead, and the result is the pair (y, t): what a
    block of a transformer needs, in one kernel. t is rounded to the dtype of ``x`` before it is normalised.

    Differentiable in all arrays. Raises LaunchValueError for shapes that do not fit, another dtype or a negative ``eps``,
    LaunchTypeError for arrays of different frameworks.

    Error: that of float32 sums of a row, and the roundings that are named above; the formula is in docs/ops.md.

    >>> import numpy as np, triton_metal.ops as ops
    >>> x = np.array([[1.0, 3.0], [-2.0, 2.0]], np.float32)
    >>> ops.layer_norm(x, weight=np.array([1, 10], np.float32)).round(2)
    array([[-1., 10.],
           [-1., 10.]], dtype=float32)
    >>> y, total = ops.layer_norm(x, residual=np.ones((2, 2), np.float32))
    >>> total
    array([[ 2.,  4.],
           [-1.,  3.]], dtype=float32)
    """
    return _normalised("layer_norm", x, weight, bias, residual, eps, True)


def rms_norm(
    x: Array,
    weight: Array | None = None,
    bias: Array | None = None,
    eps: float = 1e-5,
    *,
    residual: Array | None = None,
) -> Any:
    """x / sqrt(mean(x²) + eps) · weight + bias over the last axis.

    ``x`` (…, columns) is float16, bfloat16 or float32; ``weight`` and ``bias`` (columns,), either of which may be None, are of
    any of these dtypes. The result is like ``x``. A row is normalised in float32, then rounded to the dtype of ``weight`` and
    multiplied in it, as in MLX; so is ``bias`` added. Squares that are infinite in float32 normalise a row to 0, as in `layer_norm`.

    With ``residual``, an array like ``x``, the sum t = x + residual is normalised instead, and the result is the pair (y, t).
    t is rounded to the dtype of ``x`` before it is normalised.

    Differentiable in all arrays. Raises LaunchValueError for shapes that do not fit, another dtype or a negative ``eps``,
    LaunchTypeError for arrays of different frameworks.

    Error: that of float32 sums of a row, and the roundings that are named above; the formula is in docs/ops.md.

    >>> import numpy as np, triton_metal.ops as ops
    >>> ops.rms_norm(np.array([3.0, 4.0], np.float32), eps=0.0).round(3)
    array([0.849, 1.131], dtype=float32)
    """
    return _normalised("rms_norm", x, weight, bias, residual, eps, False)
