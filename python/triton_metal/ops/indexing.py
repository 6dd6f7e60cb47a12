"""Elements at indices, and sums at indices, each the gradient of the other.

Sums at indices use no atomics: the indices are sorted, and each element of the result adds what belongs to it in the order in which it
was given. A result is the same each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import triton_metal as triton
import triton_metal.language as tl

from ._arrays import FLOATS, Array, contiguous, dtype_name, is_torch, size_of
from ._axes import accumulator, is_wide, permuted, unpermuted
from ._checks import (
    check_arrays,
    check_axis,
    check_dtype,
    check_rank,
    check_same_dtype,
    check_shape,
)
from ._launch import launch
from ._operators import Operator
from ._reduce import _TYPES
from ._reducing import ALL, INTEGERS
from ._sort import sorted_rows

_BLOCK = 1024
#: Of so many indices a program finds where they begin among the sorted ones.
_STARTS = 128


@triton.jit
def take_kernel(
    x_ptr, indices_ptr, y_ptr, rows, count, length, inner,
    ALONG: tl.constexpr, FEW: tl.constexpr, WIDE: tl.constexpr, WHOLE: tl.constexpr,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Rows of y (outer, count, inner) from x (outer, length, inner). With ALONG each element has an index.

    A program has ROWS of the `count`, or with FEW of all rows: the whole rows if WHOLE, else a block of each.
    """
    program, outer = tl.program_id(0), tl.program_id(2)
    if WIDE:
        program, outer = program.to(tl.int64), outer.to(tl.int64)
    place = program * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    if not WHOLE:
        column += tl.program_id(1) * BLOCK
    mask = (place < rows) & (column < inner)
    row = place
    if FEW:
        outer, place = row // count, row % count
    else:
        row = outer * count + place
    to = row * inner + column
    if ALONG:
        index = tl.load(indices_ptr + to, mask=mask, other=0)
    else:
        index = tl.load(indices_ptr + place, mask=place < (count if FEW else rows), other=0)
    index = tl.where(index < 0, index + length, index)
    if index.dtype.primitive_bitwidth < 32:
        index = index.to(tl.int32)  # a length of 1 has not widened it
    # One comparison: a negative number is a large one without its sign.
    UNSIGNED: tl.constexpr = tl.uint64 if index.dtype.primitive_bitwidth == 64 else tl.uint32
    inside = mask & (index.to(UNSIGNED, bitcast=True) < length)
    index = index.to(tl.int64) if WIDE else index.to(tl.int32)
    source = (outer * length + index) * inner + column
    tl.store(y_ptr + to, tl.load(x_ptr + source, mask=inside, other=0), mask=mask)


@triton.jit
def plain_indices_kernel(indices_ptr, plain_ptr, n, length, BLOCK: tl.constexpr):
    """Indices from 0 on; `length` for those outside."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    # In their own dtype: the largest of uint64 are no negative numbers.
    index = tl.load(indices_ptr + at, mask=at < n, other=0)
    index = tl.where(index < 0, index + length, index)
    inside = (index >= 0) & (index < length)
    plain = tl.where(inside, index.to(tl.int32), length)
    tl.store(plain_ptr + at, plain.to(plain_ptr.dtype.element_ty), mask=at < n)


@triton.jit
def starts_kernel(sorted_ptr, starts_ptr, count, length, steps, BLOCK: tl.constexpr):
    """Where each index from 0 to `length` begins in a group's sorted indices: (groups, length + 1). 2 ** steps is more than `count`."""
    group = tl.program_id(1).to(tl.int64)
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    sorted_ptr += group * count
    low = tl.zeros((BLOCK,), tl.int32)
    high = low + count
    for _ in range(steps):
        middle = low + (high - low) // 2
        found = tl.load(sorted_ptr + middle, mask=low < high, other=0).to(tl.int32)
        less = (low < high) & (found < index)
        high = tl.where(less, high, middle)
        low = tl.where(less, middle + 1, low)
    tl.store(starts_ptr + group * (length + 1) + index, low, mask=index <= length)


@triton.jit
def sums_at_indices_kernel(
    x_ptr, updates_ptr, starts_ptr, places_ptr, y_ptr, rows, count, length, inner,
    ALONG: tl.constexpr, ONE: tl.constexpr, ACC: tl.constexpr, WIDE: tl.constexpr,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """y (outer, length, inner) = x + the updates (outer, count, inner) at its index, in their order; `rows` is outer * length.

    With ALONG each row of `outer` has indices of its own. ONE says that `outer` is 1.
    """
    program = tl.program_id(0).to(tl.int64) if WIDE else tl.program_id(0)
    row = program * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    inside = row < rows
    mask = inside & (column < inner)
    outer = 0 if ONE else (row // length).to(tl.int64)
    # Each row of `outer` has one start more than places.
    entry = row if ONE else row + outer if ALONG else row % length
    first = tl.load(starts_ptr + entry, mask=inside, other=0)
    many = tl.load(starts_ptr + entry + 1, mask=inside, other=0) - first
    if not ONE:
        updates_ptr += outer * count * inner
        if ALONG:
            places_ptr += outer * count
    at = row.to(tl.int64) * inner + column if WIDE else row * inner + column
    if x_ptr is None:
        total = tl.zeros((ROWS, BLOCK), ACC)
    else:
        total = tl.load(x_ptr + at, mask=mask, other=0).to(ACC)
    for i in range(tl.max(many)):
        place = tl.load(places_ptr + first + i, mask=i < many, other=0)
        source = place.to(tl.int64 if WIDE else tl.int32) * inner + column
        total += tl.load(updates_ptr + source, mask=mask & (i < many), other=0).to(ACC)
    tl.store(y_ptr + at, total.to(y_ptr.dtype.element_ty), mask=mask)


def _sizes(shape: Sequence[int], axis: int) -> tuple[int, int, int]:
    return size_of(tuple(shape[:axis])), shape[axis], size_of(tuple(shape[axis + 1 :]))


def _take(x: Array, indices: Array, axis: int, along: bool) -> tuple[Array, ...]:
    [(shape, dtype)] = _taken(x, indices, axis, along)
    outer, length, inner = _sizes(x.shape, axis)
    count = indices.shape[axis] if along else size_of(tuple(indices.shape))
    # Where each number has an index, a thread has one number, as neighbours lie anywhere; else it has a few of a row.
    block = min(triton.next_power_of_2(max(inner, 1)), 128 if along else _BLOCK)
    many = max(block, 128)
    few = outer == 1 or outer >= 1 << 16 or count < many // block
    rows = outer * count if few else count
    return launch(
        take_kernel,
        (triton.cdiv(rows, many // block), triton.cdiv(inner, block), 1 if few else outer),
        {"y_ptr": (shape, dtype)},
        like=x,
        x_ptr=contiguous(x),
        indices_ptr=contiguous(indices),
        rows=rows,
        count=count,
        length=length,
        inner=inner,
        ALONG=along,
        FEW=few and outer > 1,
        WIDE=is_wide(shape) or is_wide(x.shape),
        WHOLE=inner <= block,
        ROWS=many // block,
        BLOCK=block,
        num_warps=4 if along or inner == 1 else max(1, many // 256),
    )


def _taken(x: Array, indices: Array, axis: int, along: bool) -> list[tuple[Any, str]]:
    inside = indices.shape[axis : axis + 1] if along else indices.shape
    return [((*x.shape[:axis], *inside, *x.shape[axis + 1 :]), dtype_name(x))]


def _add(
    x: Array | None, indices: Array, updates: Array, axis: int, along: bool, length: int
) -> tuple[Array, ...]:
    shape = (*updates.shape[:axis], length)
    shape += tuple(updates.shape[axis + (1 if along else indices.ndim) :])
    order = list(range(len(shape)))
    if along and axis != len(shape) - 1:
        # Each row has indices of its own, which are sorted side by side.
        order = [a for a in order if a != axis] + [axis]
        x = None if x is None else permuted(x, order)
        indices, updates = permuted(indices, order), permuted(updates, order)
        axis = len(shape) - 1
    made = tuple(shape[a] for a in order)
    outer, _, inner = _sizes(made, axis)
    n = size_of(tuple(indices.shape))
    groups, count = (outer, indices.shape[-1]) if along else (1, n)
    (plain,) = launch(
        plain_indices_kernel,
        (triton.cdiv(n, _BLOCK),),
        # Short numbers and their places are sorted together in 32 bits.
        {"plain_ptr": ((groups, count), "int16" if length < 1 << 15 else "int32")},
        like=updates,
        indices_ptr=contiguous(indices),
        n=n,
        length=length,
        BLOCK=_BLOCK,
    )
    ordered, places = sorted_rows(plain, groups, count, count, False)
    (starts,) = launch(
        starts_kernel,
        (triton.cdiv(length + 1, _STARTS), groups),
        {"starts_ptr": ((groups, length + 1), "int32")},
        like=updates,
        sorted_ptr=ordered,
        count=count,
        length=length,
        steps=count.bit_length(),
        BLOCK=_STARTS,
    )
    # Rows side by side in one SIMD-group, which goes on until the last of them has its updates.
    block = min(triton.next_power_of_2(max(inner, 1)), 256)
    rows = max(1, 128 // block)
    (y,) = launch(
        sums_at_indices_kernel,
        (triton.cdiv(outer * length, rows), triton.cdiv(inner, block)),
        {"y_ptr": (made, dtype_name(updates))},
        like=updates,
        x_ptr=None if x is None else contiguous(x),
        updates_ptr=contiguous(updates),
        starts_ptr=starts,
        places_ptr=places,
        rows=outer * length,
        count=count,
        length=length,
        inner=inner,
        ALONG=along,
        ONE=outer == 1,
        ACC=_TYPES[accumulator(dtype_name(updates))],
        # Places of starts and of updates may be far where those of the result are not.
        WIDE=is_wide(made) or is_wide(updates.shape) or is_wide((groups, length + 1)),
        ROWS=rows,
        BLOCK=block,
        num_warps=max(1, block // 128),
    )
    return (unpermuted(y, order),)


def _added(
    x: Array | None, indices: Array, updates: Array, axis: int, along: bool, length: int
) -> list[tuple[Any, str]]:
    behind = updates.shape[axis + (1 if along else indices.ndim) :]
    return [((*updates.shape[:axis], length, *behind), dtype_name(updates))]


def _gradient_of_add(kept: Any, dy: Array) -> dict[str, Array]:
    found = {}
    if "x" in kept.needs:
        found["x"] = _SAME(dy)[0]
    if "updates" in kept.needs:
        found["updates"] = _TAKE(dy, kept.indices, kept.axis, kept.along)[0]
    return found


_TAKE = Operator(
    "take(Tensor x, Tensor indices, int axis, bool along) -> (y)",
    _take,
    _taken,
    lambda kept, dy: {
        "x": _ADD(None, kept.indices, dy, kept.axis, kept.along, kept.x.shape[kept.axis])[0]
    },
    keeps="x indices",
)
_ADD = Operator(
    "add_at_indices(Tensor? x, Tensor indices, Tensor updates, int axis, bool along, int length) -> (y)",
    _add,
    _added,
    _gradient_of_add,
    keeps="indices",
)


def _copied(x: Array) -> tuple[Array, ...]:
    """A copy in row-major order, as the results of all operators are."""
    made = contiguous(x)
    if made is not x:
        return (made,)
    return (x.clone() if is_torch(x) else x + 0,)


#: A gradient that is passed on is an array of its own.
_SAME = Operator("copied(Tensor x) -> (y)", _copied, lambda x: [(x.shape, dtype_name(x))])


def _checked(
    function: str, x: Array, indices: Array, axis: int, allowed: Sequence[str], along: bool
) -> int:
    check_arrays(function, x=x, indices=indices)
    check_dtype(function, "x", x, allowed)
    check_dtype(function, "indices", indices, INTEGERS)
    check_rank(function, "x", x, 1, 1 << 16)
    axis = check_axis(function, axis, x.ndim)
    if along:
        check_rank(function, "indices", indices, x.ndim)
        shape = [*x.shape[:axis], indices.shape[axis], *x.shape[axis + 1 :]]
        check_shape(function, "indices", indices, shape, f", that of x but along axis {axis},")
    return axis


def take(x: Array, indices: Array, axis: int = 0) -> Array:
    """x[…, indices, …]: the slices of x at ``indices`` along ``axis``, as in numpy.take and mx.take.

    ``x`` has at least one dimension and is float16, bfloat16 or float32, an integer or bool; ``indices`` are integers, of any shape, which
    takes the place of ``axis`` in the result. Negative indices count from the end; one that is out of range gives 0. Differentiable in
    ``x``: a slice that is taken several times adds up its gradients in a fixed order.

    Raises LaunchValueError for other dtypes or an axis that ``x`` does not have.

    Exact; gradients have the error of `index_add`.

    >>> import numpy as np, triton_metal.ops as ops
    >>> ops.take(np.array([[1, 2], [3, 4], [5, 6]], np.float32), np.array([2, 0, -1]))
    array([[5., 6.],
           [1., 2.],
           [5., 6.]], dtype=float32)
    """
    axis = _checked("take", x, indices, axis, ALL, False)
    return _TAKE(x, indices, axis, False)[0]


def take_along_axis(x: Array, indices: Array, axis: int = -1) -> Array:
    """y[…, i, …] = x[…, indices[…, i, …], …] along ``axis``, as in numpy.take_along_axis and torch.gather.

    ``indices`` are integers in the shape of ``x``, but for ``axis``; the result has their shape and the dtype of ``x``, any that `take` has.
    Negative indices count from the end; one that is out of range gives 0. Differentiable in ``x``.

    Raises LaunchValueError for other dtypes or shapes, or an axis that ``x`` does not have.

    Exact; gradients have the error of `scatter_add`.

    >>> import numpy as np, triton_metal.ops as ops
    >>> ops.take_along_axis(np.array([[1, 2], [3, 4]], np.float32), np.array([[1], [0]]), axis=1)
    array([[2.],
           [3.]], dtype=float32)
    """
    axis = _checked("take_along_axis", x, indices, axis, ALL, True)
    return _TAKE(x, indices, axis, True)[0]


def gather(x: Array, indices: Array, axis: int = -1) -> Array:
    """`take_along_axis` under PyTorch's name. (`take` is what MLX calls a gather.)

    Differentiable in ``x``, exact, and raises what `take_along_axis` does.

    >>> import numpy as np, triton_metal.ops as ops
    >>> ops.gather(np.array([[1, 2], [3, 4]], np.float32), np.array([[1, 1], [0, 1]]))
    array([[2., 2.],
           [3., 4.]], dtype=float32)
    """
    axis = _checked("gather", x, indices, axis, ALL, True)
    return _TAKE(x, indices, axis, True)[0]


def scatter_add(x: Array, indices: Array, updates: Array, axis: int = -1) -> Array:
    """A new array: x, with updates[…, i, …] added at […, indices[…, i, …], …] along ``axis``, as torch.scatter_add.

    ``x`` and ``updates`` have one dtype, float16, bfloat16, float32 or an integer, and the same shape but for ``axis``; ``indices`` are
    integers in the shape of ``updates``, fewer than 2^31 along ``axis``. Negative indices count from the end; what is out of range is left
    out. What falls on one place is added in the order of ``updates``, in float32 and rounded once, so the result is the same each
    time. Differentiable in ``x`` and ``updates``.

    Raises LaunchValueError for other dtypes or shapes, or an axis that ``x`` does not have.

    Error, with u = 2^-24 and beside the rounding of the result: (n + 1) u Σ |x| of the n updates of a place and what was
    there. Integers are exact, and wrap around.

    >>> import numpy as np, triton_metal.ops as ops
    >>> ops.scatter_add(np.zeros(3, np.float32), np.array([2, 0, 2]), np.array([1, 2, 3], np.float32))
    array([2., 0., 4.], dtype=float32)
    """
    axis = _checked("scatter_add", x, indices, axis, (*INTEGERS, *FLOATS), True)
    check_arrays("scatter_add", x=x, updates=updates)
    check_same_dtype("scatter_add", x=x, updates=updates)
    check_shape("scatter_add", "updates", updates, indices.shape, ", that of indices,")
    return _ADD(x, indices, updates, axis, True, x.shape[axis])[0]


def index_add(x: Array, indices: Array, updates: Array, axis: int = 0) -> Array:
    """A new array: x, with the slices of ``updates`` added at ``indices`` along ``axis``: what `take` undoes.

    ``updates`` has the dtype of ``x`` and the shape of ``take(x, indices, axis)``; all else is as in `scatter_add`.

    Differentiable in ``x`` and ``updates``, with the error of `scatter_add`. Raises what `scatter_add` does.

    >>> import numpy as np, triton_metal.ops as ops
    >>> ops.index_add(np.zeros((2, 2), np.float32), np.array([1, 1]), np.array([[1, 2], [3, 4]], np.float32))
    array([[0., 0.],
           [4., 6.]], dtype=float32)
    """
    axis = _checked("index_add", x, indices, axis, (*INTEGERS, *FLOATS), False)
    check_arrays("index_add", x=x, updates=updates)
    check_same_dtype("index_add", x=x, updates=updates)
    [(shape, _)] = _taken(x, indices, axis, False)
    check_shape("index_add", "updates", updates, shape, ", that of take(x, indices, axis),")
    return _ADD(x, indices, updates, axis, False, x.shape[axis])[0]
