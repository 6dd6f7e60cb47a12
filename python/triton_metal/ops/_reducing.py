"""What `reductions` does: its launches, operators and checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import triton_metal as triton
import triton_metal.language as tl

from ..errors import LaunchTypeError
from ._arrays import FLOATS, Array, contiguous, dtype_name, full, reshaped, size_of
from ._axes import as_rows, is_wide, total_dtype, unpermuted
from ._checks import check_arrays, check_axis, check_dtype, check_flag, fail, integer
from ._launch import launch
from ._operators import Operator
from ._reduce import centred_rows, reduce_rows

Axes = int | Sequence[int] | None
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
ALL = ("bool", *INTEGERS, *FLOATS)


@triton.jit
def reduction_gradient_kernel(
    x_ptr,
    y_ptr,
    dy_ptr,
    extra_ptr,
    dx_ptr,
    n,
    length,
    inner,
    factor,
    KIND: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """dx of each number from the dy of its row; `extra` is the number of places that share it, the mean, or the product."""
    program = tl.program_id(0).to(tl.int64) if WIDE else tl.program_id(0)
    if WIDE:
        length = tl.cast(length, tl.int64)
    at = program * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    row = at // (inner * length) * inner + at % inner
    dx = tl.load(dy_ptr + row, mask=mask, other=0.0).to(tl.float32)
    if KIND == "mean":
        dx *= factor
    elif KIND != "sum":
        x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
        y = tl.load(y_ptr + row, mask=mask, other=1.0).to(tl.float32)
        if KIND == "logsumexp":
            dx *= tl.exp(x - y)  # NaN where both are infinite, as softmax is
        elif KIND == "norm":
            dx *= tl.where(y == 0.0, 0.0, x / y)
        elif KIND == "norm1":
            dx *= tl.where(x > 0, 1.0, tl.where(x < 0, -1.0, x * 0.0))
        else:
            extra = tl.load(extra_ptr + row, mask=mask, other=1.0).to(tl.float32)
            if KIND == "extreme":
                dx = tl.where(x == y, dx / extra, 0.0)
            elif KIND == "norminf":
                dx = tl.where(tl.abs(x) == y, dx / extra, 0.0)
                dx = tl.where(x < 0, -dx, tl.where(x == 0, 0.0, dx))
            elif KIND == "var":
                dx *= 2.0 * factor * (x - extra)
            elif KIND == "std":
                dx *= factor * (x - extra) / y
            else:
                # prod: y is how many zeros a row has, and extra the product of the other numbers.
                others = tl.where(y == 0, extra / x, 0.0)
                dx *= tl.where((x == 0) & (y == 1), extra, others)
    tl.store(dx_ptr + at, dx.to(dx_ptr.dtype.element_ty), mask=mask)


#: How each reduction joins and maps numbers and ends: see `_reduce`.
_PLAIN = {
    "sum": ("sum", "", ""),
    "mean": ("sum", "", "divide"),
    "prod": ("prod", "", ""),
    "max": ("max", "", ""),
    "min": ("min", "", ""),
    "norm1": ("sum", "abs", ""),
    "norm": ("sum", "square", "root"),
    "norminf": ("max", "abs", ""),
    "any": ("max", "nonzero", ""),
    "all": ("min", "nonzero", ""),
}
_CENTRED = {"var": "divide", "std": "deviation", "logsumexp": "log"}


def _shape(x: Array, axes: Sequence[int], keepdims: bool) -> tuple[int, ...]:
    shape = enumerate(x.shape)
    if keepdims:
        return tuple(1 if axis in axes else size for axis, size in shape)
    return tuple(size for axis, size in shape if axis not in axes)


def _results(
    x: Array, kind: str, axes: Sequence[int], keepdims: bool, ddof: float
) -> list[tuple[Any, str]]:
    dtype = dtype_name(x)
    if kind in ("any", "all"):
        dtype = "bool"
    elif kind in ("sum", "prod"):
        dtype = total_dtype(x)
    elif kind == "mean" and dtype not in FLOATS:
        dtype = "float32"
    return [(_shape(x, axes, keepdims), dtype)]


def _forward(
    x: Array, kind: str, axes: Sequence[int], keepdims: bool, ddof: float
) -> tuple[Array, ...]:
    [(shape, dtype)] = _results(x, kind, axes, keepdims, ddof)
    x, sizes, _ = as_rows(x, axes)
    if kind in _CENTRED:
        divisor = max(sizes[1] - ddof, 0.0)
        y = centred_rows(x, sizes, _CENTRED[kind], dtype, divisor)
    else:
        join, map, end = _PLAIN[kind]
        how: dict[str, Any] = {"accumulate": "int32"} if map == "nonzero" else {}
        if kind == "mean":
            how["accumulate"] = "float32"
        y = reduce_rows(x, sizes, join, dtype, map=map, end=end, divisor=sizes[1], **how)
    return (reshaped(y, shape),)


def _gradient(
    x: Array, y: Array, dy: Array, kind: str, axes: Sequence[int], ddof: float
) -> tuple[Array, ...]:
    shape, dtype = tuple(x.shape), dtype_name(x)
    x, (outer, length, inner), order = as_rows(x, axes)
    sizes, extra, factor = (outer, length, inner), None, 1.0
    if kind in ("max", "min"):
        extra, kind = (
            reduce_rows(x, sizes, "sum", "float32", map="equal", m=contiguous(y)),
            "extreme",
        )
    elif kind == "norminf":
        extra = reduce_rows(x, sizes, "sum", "float32", map="equal_abs", m=contiguous(y))
    elif kind in ("var", "std"):
        extra = reduce_rows(x, sizes, "sum", "float32", end="divide", divisor=length)
        factor = 1.0 / (length - ddof) if length > ddof else float("nan")
    elif kind == "logsumexp" and dtype != "float32":
        # As it was rounded, a large one would be wrong by a factor of the exponentials.
        y = centred_rows(x, sizes, "log", "float32", 1.0)
    elif kind == "norm" and dtype == "float16":
        # The result may be infinite or 0, and x / y is not.
        y = reduce_rows(x, sizes, "sum", "float32", map="square", end="root")
    elif kind == "prod":
        zero = full((outer, inner), 0, dtype, x)
        y = reduce_rows(x, sizes, "sum", "float32", map="equal", m=zero)
        extra = reduce_rows(x, sizes, "prod", "float32", map="zeros_as_ones")
    elif kind == "mean":
        factor = 1.0 / max(length, 1)
    block = 1024
    (dx,) = launch(
        reduction_gradient_kernel,
        (triton.cdiv(size_of(shape), block),),
        {"dx_ptr": (x.shape, dtype)},
        like=x,
        x_ptr=x,
        y_ptr=contiguous(y),
        dy_ptr=contiguous(dy),
        extra_ptr=extra,
        n=size_of(shape),
        length=length,
        inner=inner,
        factor=factor,
        KIND=kind,
        WIDE=is_wide(sizes),
        BLOCK=block,
    )
    return (reshaped(unpermuted(dx, order), shape),)


_REDUCTION_GRADIENT = Operator(
    "reduction_gradient(Tensor x, Tensor y, Tensor dy, str kind, int[] axes, float ddof) -> (dx)",
    _gradient,
    lambda x, *_: [(x.shape, dtype_name(x))],
)
_REDUCTION = Operator(
    "reduction(Tensor x, str kind, int[] axes, bool keepdims, float ddof) -> (y)",
    _forward,
    _results,
    lambda kept, dy: {
        "x": _REDUCTION_GRADIENT(kept.x, kept.y, dy, kept.kind, kept.axes, kept.ddof)[0]
    },
    keeps="x y",
)
#: Those whose gradients do not need the result, which may then be changed in place, as losses are.
_TOTALS = ("sum", "mean", "prod", "var")
_TOTAL = Operator(
    "total(Tensor x, str kind, int[] axes, bool keepdims, float ddof) -> (y)",
    _forward,
    _results,
    lambda kept, dy: {"x": _REDUCTION_GRADIENT(kept.x, dy, dy, kept.kind, kept.axes, kept.ddof)[0]},
    keeps="x",
)
_PREDICATE = Operator(
    "predicate(Tensor x, str kind, int[] axes, bool keepdims, float ddof) -> (y)",
    _forward,
    _results,
)


def check_axes(function: str, axis: Any, rank: int) -> list[int]:
    """The axes from 0 on, in order; None is all of them."""
    if axis is None:
        return list(range(rank))
    if isinstance(axis, bool) or integer(axis) is not None:
        return [check_axis(function, axis, rank)]
    if not isinstance(axis, (tuple, list)):
        raise LaunchTypeError(
            f"[{function}] axis must be an integer, several or None but is {axis!r}."
        )
    axes = [check_axis(function, each, rank) for each in axis]
    if len(set(axes)) != len(axes):
        raise fail(function, f"axis must name each axis once but is {axis!r}.")
    return sorted(axes)


def reduced(
    function: str,
    x: Array,
    axis: Axes,
    keepdims: bool,
    allowed: Sequence[str],
    kind: str | None = None,
    ddof: float = 0.0,
    some: bool = False,
) -> Array:
    check_arrays(function, x=x)
    check_dtype(function, "x", x, allowed)
    axes = check_axes(function, axis, x.ndim)
    if some and any(x.shape[each] == 0 for each in axes):
        raise fail(
            function,
            f"x must have a number along axis {axis} but has none: its shape is {tuple(x.shape)}.",
        )
    kind = kind or function
    if dtype_name(x) not in FLOATS or kind in ("any", "all"):
        operator = _PREDICATE
    else:
        operator = _TOTAL if kind in _TOTALS else _REDUCTION
    return operator(x, kind, axes, check_flag(function, "keepdims", keepdims), float(ddof))[0]
