"""Sorts along an axis, their permutations, and the first elements in order. All give the same each time."""

from __future__ import annotations

from typing import Any

import triton_metal as triton
import triton_metal.language as tl

from ..errors import LaunchTypeError
from ._arrays import FLOATS, Array, contiguous, dtype_name, places_dtype, reshaped, size_of
from ._axes import is_wide, permuted, unpermuted
from ._checks import check_arrays, check_axis, check_dtype, check_flag, check_rank, fail, integer
from ._launch import launch
from ._operators import Operator
from ._sort import sorted_rows

SORTED = ("bool", "int8", "int16", "int32", "uint8", "uint16", "uint32", *FLOATS)


@triton.jit
def put_kernel(
    dy_ptr, places_ptr, dx_ptr, n, kept, length, BLOCK: tl.constexpr, WIDE: tl.constexpr
):
    """dx[row, places[row, i]] = dy[row, i]; the places of a row differ. Quotients of 64 bits (WIDE) are long."""
    if WIDE:
        at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    else:
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    place = tl.load(places_ptr + at, mask=mask, other=0)
    dy = tl.load(dy_ptr + at, mask=mask, other=0)
    tl.store(dx_ptr + (at // kept).to(tl.int64) * length + place, dy, mask=mask)


def _axis_last(x: Array, axis: int) -> tuple[Array, list[int]]:
    """Contiguous `x` with this axis last, and the order of its axes."""
    order = [a for a in range(x.ndim) if a != axis] + [axis]
    return contiguous(x if order == list(range(x.ndim)) else permuted(x, order)), order


def _shape(x: Array, axis: int, kept: int) -> tuple[int, ...]:
    return tuple(kept if a == axis else n for a, n in enumerate(x.shape))


def _sorted(x: Array, axis: int, kept: int, descending: bool, wanted: str) -> tuple[Array, ...]:
    length = x.shape[axis]
    moved, order = _axis_last(x, axis)
    rows = size_of(tuple(moved.shape[:-1]))
    found = sorted_rows(moved, rows, length, kept, descending, wanted)
    last = (*moved.shape[:-1], kept)
    return tuple(unpermuted(reshaped(y, last), order) for y in found)


def _put(dy: Array, places: Array, axis: int, length: int) -> tuple[Array, ...]:
    (dy, order), (places, _) = _axis_last(dy, axis), _axis_last(places, axis)
    n, kept = size_of(tuple(dy.shape)), dy.shape[-1]
    (dx,) = launch(
        put_kernel,
        (triton.cdiv(n, 1024),),
        {"dx_ptr": ((*dy.shape[:-1], length), dtype_name(dy))},
        like=dy,
        fill=0,
        dy_ptr=dy,
        places_ptr=places,
        n=n,
        kept=kept,
        length=length,
        BLOCK=1024,
        WIDE=is_wide(tuple(dy.shape)),
    )
    return (unpermuted(dx, order),)


def _both(x: Array, axis: int, kept: int, descending: bool) -> list[tuple[Any, str]]:
    return [(_shape(x, axis, kept), dtype_name(x)), (_shape(x, axis, kept), places_dtype(x))]


_PUT = Operator(
    "put_along_axis(Tensor dy, Tensor places, int axis, int length) -> (dx)",
    _put,
    lambda dy, places, axis, length: [(_shape(dy, axis, length), dtype_name(dy))],
)
_HOW = "(Tensor x, int axis, int kept, bool descending)"
_TOPK = Operator(
    f"topk{_HOW} -> (values, places)",
    lambda *arguments: _sorted(*arguments, "values places"),
    _both,
    lambda kept, dy, _: {"x": _PUT(dy, kept.places, kept.axis, kept.x.shape[kept.axis])[0]},
    keeps="x places",
)
_TOPK_PLAIN = Operator(
    f"topk_plain{_HOW} -> (values, places)",
    lambda *arguments: _sorted(*arguments, "values places"),
    _both,
)
_ARGSORT = Operator(
    f"argsort{_HOW} -> (places)",
    lambda *arguments: _sorted(*arguments, "places"),
    lambda *arguments: _both(*arguments)[1:],
)


def _gradient(kept: Any, dy: Array) -> dict[str, Array]:
    # The places are found again, as in MLX: most sorts have no gradient, and would write them for nothing.
    places = _ARGSORT(kept.x, kept.axis, kept.kept, kept.descending)[0]
    return {"x": _PUT(dy, places, kept.axis, kept.kept)[0]}


_SORT = Operator(
    f"sort{_HOW} -> (values)",
    lambda *arguments: _sorted(*arguments, "values"),
    lambda *arguments: _both(*arguments)[:1],
    _gradient,
    keeps="x",
)
_SORT_PLAIN = Operator(
    f"sort_plain{_HOW} -> (values)",
    lambda *arguments: _sorted(*arguments, "values"),
    lambda *arguments: _both(*arguments)[:1],
)


def _checked(function: str, x: Array, axis: int, **flag: bool) -> int:
    check_arrays(function, x=x)
    check_dtype(function, "x", x, SORTED)
    check_rank(function, "x", x, 1, 1 << 16)
    for name, value in flag.items():
        check_flag(function, name, value)
    return check_axis(function, axis, x.ndim)


def sort(x: Array, axis: int = -1, descending: bool = False) -> Array:
    """The elements of x in order along ``axis``, like ``x``.

    ``x`` has at least one dimension and is float16, bfloat16 or float32, an integer of at most 32 bits, or bool, of fewer than 2^31
    elements along ``axis``. A NaN is larger than any number: last, as in NumPy, and first if ``descending``. -0 and 0, which are
    equal, come as -0, 0. Differentiable.

    Raises LaunchValueError for another dtype or an axis that ``x`` does not have.

    Exact.

    >>> import numpy as np, triton_metal.ops as ops
    >>> ops.sort(np.array([[3, 1, 2], [0, np.nan, -1]], np.float32))
    array([[ 1.,  2.,  3.],
           [-1.,  0., nan]], dtype=float32)
    """
    axis = _checked("sort", x, axis, descending=descending)
    operator = _SORT if dtype_name(x) in FLOATS else _SORT_PLAIN
    return operator(x, axis, x.shape[axis], bool(descending))[0]


def argsort(x: Array, axis: int = -1, descending: bool = False) -> Array:
    """The places of the elements of x in order along ``axis``: int64, and of MLX's arrays uint32, as in MLX.

    Arguments and order are as in `sort`. Equal elements, such as -0 and 0, keep their order.

    Exact. Without gradients. Raises what `sort` does.

    >>> import numpy as np, triton_metal.ops as ops
    >>> ops.argsort(np.array([3, 1, 2, 1], np.int32))
    array([1, 3, 2, 0])
    """
    axis = _checked("argsort", x, axis, descending=descending)
    return _ARGSORT(x, axis, x.shape[axis], bool(descending))[0]


def topk(x: Array, k: int, axis: int = -1, largest: bool = True) -> tuple[Array, Array]:
    """The k largest elements of x along ``axis``, or the least, in order, and their places as in `argsort`.

    Arguments are as in `sort`, and the order as in `argsort`, descending if ``largest``: a NaN is larger than any number, and of equal
    elements those in front are taken. The values are differentiable.

    Raises LaunchValueError, beside what `sort` says, unless ``k`` is from 0 to the number of elements.

    Exact.

    >>> import numpy as np, triton_metal.ops as ops
    >>> ops.topk(np.array([3, 1, 2, 3], np.float32), 2)
    (array([3., 3.], dtype=float32), array([0, 3]))
    """
    axis = _checked("topk", x, axis, largest=largest)
    kept = integer(k)
    if kept is None:
        raise LaunchTypeError(f"[topk] k must be an integer but is {k!r}.")
    if not 0 <= kept <= x.shape[axis]:
        raise fail(
            "topk",
            f"k must be from 0 to {x.shape[axis]}, as many as x has along axis {axis}, but is {kept}.",
        )
    operator = _TOPK if dtype_name(x) in FLOATS else _TOPK_PLAIN
    values, places = operator(x, axis, kept, bool(largest))
    return values, places
