"""The functions of the language that are written in the language itself."""

from __future__ import annotations

from ..functions import constexpr_function, kernel_function
from . import core, math
from .core import tensor_method


@tensor_method
@kernel_function
def cdiv(x, div):
    """x / div, rounded up. Both must be positive."""
    return (x + (div - 1)) // div


@tensor_method
@kernel_function
def sigmoid(x):
    """1 / (1 + exp(-x))."""
    return 1 / (1 + math.exp(-x))


@tensor_method
@kernel_function
def softmax(x, dim=None, keep_dims=False, ieee_rounding=False):
    """exp(x), normalised to sum to 1 along an axis (default 0)."""
    axis: core.constexpr = 0 if dim is None else dim
    shifted = x - max(x, axis, keep_dims=True)
    numerator = math.exp(shifted)
    denominator = sum(numerator, axis, keep_dims=True)
    return math.fdiv(numerator, denominator, ieee_rounding)


@tensor_method
@kernel_function
def ravel(x, can_reorder=False):
    """The tile as one dimension."""
    return core.reshape(x, (x.numel,), can_reorder=can_reorder)


@kernel_function
def swizzle2d(i, j, size_i, size_j, size_g):
    """The index (i, j) in a row-major size_i x size_j grid, renumbered column by column in groups of size_g rows."""
    place = i * size_j + j
    group_size = size_g * size_j
    group = place // group_size
    first_row = group * size_g
    rows = core.minimum(size_i - first_row, size_g)
    place = place % group_size
    return first_row + place % rows, place // rows


@kernel_function
def count_steps(lower, upper, step):
    """The first index of range(lower, upper, step), how many there are, and the step, all in one type."""
    index_dtype: core.constexpr = (lower + upper + step).dtype
    unsigned: core.constexpr = core.dtype("uint" + str(index_dtype.primitive_bitwidth))
    first, last, stride = lower.to(index_dtype), upper.to(index_dtype), step.to(index_dtype)
    runs, distance, size = first < last, last - first, stride
    if index_dtype.is_int_signed():
        down = stride < 0
        runs = core.where(down, last < first, runs)
        distance = core.where(down, first - last, distance)
        size = core.where(down, -stride, stride)
    runs = runs & (size != 0)
    count = (distance.to(unsigned) - 1) // core.where(runs, size, 1).to(unsigned) + 1
    return first, core.where(runs, count, 0).to(unsigned), stride


@kernel_function
def next_step(left, index, step):
    """What is left of a loop after a step, and its next index."""
    return (left - 1).to(left.dtype), (index + step).to(index.dtype)


@kernel_function
def zeros(shape, dtype):
    """A tile of zeros."""
    return core.full(shape, 0, dtype)


@kernel_function
def zeros_like(input):
    """Zeros in the shape and dtype of a tile."""
    return core.full(input.shape, 0, input.dtype)


# --- Maximum and minimum ---------------------------------------------------------------------------


@kernel_function
def _larger(a, b):
    return core.maximum(a, b)


@kernel_function
def _smaller(a, b):
    return core.minimum(a, b)


@kernel_function
def _first_larger(value1, index1, value2, index2):
    tie = value1 == value2 and index1 < index2
    take = value1 > value2 or tie
    return core.where(take, value1, value2), core.where(take, index1, index2)


@kernel_function
def _any_larger(value1, index1, value2, index2):
    take = value1 > value2
    return core.where(take, value1, value2), core.where(take, index1, index2)


@kernel_function
def _first_smaller(value1, index1, value2, index2):
    tie = value1 == value2 and index1 < index2
    take = value1 < value2 or tie
    return core.where(take, value1, value2), core.where(take, index1, index2)


@kernel_function
def _any_smaller(value1, index1, value2, index2):
    take = value1 < value2
    return core.where(take, value1, value2), core.where(take, index1, index2)


@constexpr_function
def _comparison_dtype(dtype):
    """The dtype of comparisons: narrow types are compared as 32-bit types."""
    if dtype.primitive_bitwidth >= 32:
        return dtype
    return core.float32 if dtype.is_floating() else core.int32


@tensor_method
@kernel_function
def max(
    input, axis=None, return_indices=False, return_indices_tie_break_left=True, keep_dims=False
):
    """The maximum along an axis, or of all elements. ``return_indices`` also returns its index."""
    if return_indices:
        if return_indices_tie_break_left:
            return core._reduce_with_indices(input, axis, _first_larger, keep_dims=keep_dims)
        return core._reduce_with_indices(input, axis, _any_larger, keep_dims=keep_dims)
    wide = input.to(_comparison_dtype(input.dtype))
    return core.reduce(wide, axis, _larger, keep_dims=keep_dims)


@tensor_method
@kernel_function
def min(
    input, axis=None, return_indices=False, return_indices_tie_break_left=True, keep_dims=False
):
    """The minimum along an axis, or of all elements. ``return_indices`` also returns its index."""
    if return_indices:
        if return_indices_tie_break_left:
            return core._reduce_with_indices(input, axis, _first_smaller, keep_dims=keep_dims)
        return core._reduce_with_indices(input, axis, _any_smaller, keep_dims=keep_dims)
    wide = input.to(_comparison_dtype(input.dtype))
    return core.reduce(wide, axis, _smaller, keep_dims=keep_dims)


@tensor_method
@kernel_function
def argmax(input, axis, tie_break_left=True, keep_dims=False):
    """The index of the maximum along an axis; with ``tie_break_left``, the first such index."""
    _, index = max(
        input,
        axis,
        return_indices=True,
        return_indices_tie_break_left=tie_break_left,
        keep_dims=keep_dims,
    )
    return index


@tensor_method
@kernel_function
def argmin(input, axis, tie_break_left=True, keep_dims=False):
    """The index of the minimum along an axis; with ``tie_break_left``, the first such index."""
    _, index = min(
        input,
        axis,
        return_indices=True,
        return_indices_tie_break_left=tie_break_left,
        keep_dims=keep_dims,
    )
    return index


# --- Sums and other folds --------------------------------------------------------------------------


@kernel_function
def _plus(a, b):
    return a + b


@kernel_function
def _times(a, b):
    return a * b


@kernel_function
def _xor(a, b):
    return a ^ b


@kernel_function
def _or(a, b):
    return a | b


@constexpr_function
def _sum_dtype(input_dtype, dtype):
    """The dtype of sums: narrow integers are summed in 32 bits, so that they do not overflow early."""
    if dtype is not None:
        return dtype
    if input_dtype.is_int_signed() and input_dtype.int_bitwidth < 32:
        return core.int32
    if input_dtype.is_int_unsigned() and input_dtype.int_bitwidth < 32:
        return core.uint32
    return input_dtype


@tensor_method
@kernel_function
def sum(input, axis=None, keep_dims=False, dtype: core.constexpr = None):
    """The sum along an axis, or of all elements."""
    wide = input.to(_sum_dtype(input.dtype, dtype))
    return core.reduce(wide, axis, _plus, keep_dims=keep_dims)


@tensor_method
@kernel_function
def xor_sum(input, axis=None, keep_dims=False):
    """The exclusive or of integers along an axis, or of all elements."""
    core.static_assert(input.dtype.is_int(), "xor_sum takes integers")
    return core.reduce(input, axis, _xor, keep_dims=keep_dims)


@tensor_method
@kernel_function
def reduce_or(input, axis, keep_dims=False):
    """The bitwise or of integers along an axis."""
    core.static_assert(input.dtype.is_int(), "reduce_or takes integers")
    return core.reduce(input, axis, _or, keep_dims=keep_dims)


@tensor_method
@kernel_function
def cumsum(input, axis=0, reverse=False, dtype: core.constexpr = None):
    """Running sums along an axis."""
    wide = input.to(_sum_dtype(input.dtype, dtype))
    return core.associative_scan(wide, axis, _plus, reverse)


@tensor_method
@kernel_function
def cumprod(input, axis=0, reverse=False, dtype: core.constexpr = None):
    """Running products along an axis."""
    wide = input.to(_sum_dtype(input.dtype, dtype))
    return core.associative_scan(wide, axis, _times, reverse)


@kernel_function
def interleave(a, b):
    """The elements of a and b, alternating along the last dimension."""
    pairs = core.join(a, b)
    if len(pairs.shape) == 1:
        return pairs
    return core.reshape(pairs, pairs.shape[:-2] + (2 * pairs.shape[-2],))


@constexpr_function
def _log2(size):
    return size.bit_length() - 1


@constexpr_function
def _axis_of(rank, dim):
    """A dimension as a number from 0; the last one by default."""
    axis = rank - 1 if dim is None else dim
    if not -rank <= axis < rank:
        raise ValueError(f"dim {dim} is not in {-rank} to {rank - 1}")
    return axis % rank


@constexpr_function
def _bits_of(dtype):
    """The integers in which elements of the type are exchanged."""
    return core.dtype("int" + str(dtype.primitive_bitwidth)) if dtype.is_floating() else dtype


@constexpr_function
def _in_halves(size):
    """A dimension as dimensions of size 2."""
    return (2,) * (size.bit_length() - 1)


@kernel_function
def _exchanged(bits, axis: core.constexpr):
    """The elements along an axis of size 2 in each other's place: the exclusive or of both and one of them is the
    other."""
    return bits ^ xor_sum(bits, axis, keep_dims=True)


@tensor_method
@kernel_function
def flip(x, dim=None):
    """The elements along a dimension (default: the last) from the last to the first."""
    # One gather moves each element once. Stock Triton exchanges halves, then quarters, and so on.
    axis: core.constexpr = _axis_of(len(x.shape), dim)
    size: core.constexpr = x.shape[axis]
    places = core.reshape(size - 1 - core.arange(0, size), _along(len(x.shape), axis, size))
    return core.gather(x, core.broadcast_to(places, x.shape), axis)


@constexpr_function
def _along(rank, axis, size):
    return (1,) * axis + (size,) + (1,) * (rank - axis - 1)


@kernel_function
def _is_second(rank: core.constexpr, level: core.constexpr):
    """0 and 1 along the dimension of size 2 that is ``level`` dimensions before the last."""
    return core.reshape(core.arange(0, 2), (1,) * (rank - 1 - level) + (2,) + (1,) * level)


@kernel_function
def _compare_exchange(x, down, level: core.constexpr):
    """Puts the elements of each pair along a dimension in order: where ``down``, the larger one first."""
    rank: core.constexpr = len(x.shape)
    bits = _exchanged(x.to(_bits_of(x.dtype), bitcast=True), rank - 1 - level)
    other = bits.to(x.dtype, bitcast=True)
    second = _is_second(rank, level)
    swaps = (x > other) != (down ^ second).to(core.int1)
    return core.where(swaps, other, x)


@kernel_function
def _merge(x, stage: core.constexpr, order: core.constexpr):
    """Sorts runs of 2^stage elements, which rise and then fall or the other way. ``order`` is False for rising results,
    True for falling ones and 2 for both in turn. All dimensions of ``x`` have size 2."""
    if order == 2:
        down = _is_second(len(x.shape), stage)
    else:
        down = order
    for level in core.static_range(stage):
        x = _compare_exchange(x, down, stage - 1 - level)
    return x


@kernel_function
def _turned(x, second):
    """Integers with all bits turned where ``second`` is 1, which orders them the other way."""
    if x.dtype.primitive_bitwidth == 64:
        # A mask of 64 bits would take two registers for as long as a thread's registers are turned one after the other.
        return core.where(second != 0, ~x, x)
    return x ^ (-second).to(x.dtype)


@tensor_method
@kernel_function
def bitonic_merge(x, dim: core.constexpr = None, descending: core.constexpr = False):
    """A tile whose rows rise and then fall, or the other way, with its rows sorted."""
    axis: core.constexpr = _axis_of(len(x.shape), dim)
    core.static_assert(axis == len(x.shape) - 1, "bitonic_merge works along the last dimension")
    cube = core.reshape(x, _in_halves(x.numel))
    cube = _merge(cube, _log2(x.shape[axis]), descending)
    return core.reshape(cube, x.shape)


@kernel_function
def _sort(x, k: core.constexpr, dim: core.constexpr, descending: core.constexpr):
    """The k first elements of each row, in order."""
    axis: core.constexpr = _axis_of(len(x.shape), dim)
    core.static_assert(axis == len(x.shape) - 1, "only the last dimension can be sorted")
    size: core.constexpr = x.shape[axis]
    core.static_assert(k >= 1 and k & (k - 1) == 0, "k must be a power of two")
    core.static_assert(k <= size, "k must not exceed the size of the last dimension")
    if k == 1:
        # Rows of one number, too, become what max and min give: at least 32 bits, as in Triton.
        return max(x, axis, keep_dims=True) if descending else min(x, axis, keep_dims=True)
    cube = core.reshape(x, _in_halves(x.numel))
    stages: core.constexpr = _log2(size)
    kept: core.constexpr = _log2(k)
    if x.dtype.is_floating() or kept < stages:
        for stage in core.static_range(1, kept + 1):
            cube = _merge(cube, stage, 2 if stage < stages else descending)
    else:
        # Runs that would fall are turned and rise, so that no comparison depends on the run. From stage to stage, those
        # are turned that change.
        turned = 0
        for stage in core.static_range(1, stages):
            falls = _is_second(len(cube.shape), stage)
            cube = _merge(_turned(cube, turned ^ falls), stage, False)
            turned = falls
        cube = _merge(_turned(cube, turned), stages, descending)
    # Of two sorted runs, one rising and one falling, the better of each pair are the k best; they rise and then fall.
    for stage in core.static_range(kept + 1, stages + 1):
        pairs: core.constexpr = len(cube.shape) - 1 - kept
        cube = max(cube, pairs) if descending else min(cube, pairs)
        cube = _merge(cube, kept, 2 if stage < stages else descending)
    return core.reshape(cube, x.shape[:-1] + (k,))


@tensor_method
@kernel_function
def sort(x, dim: core.constexpr = None, descending: core.constexpr = False):
    """The tile with the elements along its last dimension in order."""
    return _sort(x, x.shape[_axis_of(len(x.shape), dim)], dim, descending)


@tensor_method
@kernel_function
def topk(x, k: core.constexpr, dim: core.constexpr = None, descending: core.constexpr = True):
    """The k largest elements along the last dimension in falling order; the k smallest in rising order without
    ``descending``. ``k`` is a power of two."""
    return _sort(x, k, dim, descending)


@tensor_method
@kernel_function
def squeeze(x, dim: core.constexpr):
    """The tile without a dimension of size 1."""
    core.static_assert(x.shape[dim] == 1, "squeeze takes a dimension of size 1")
    axis: core.constexpr = dim % len(x.shape)
    return core.reshape(x, x.shape[:axis] + x.shape[axis + 1 :])


@tensor_method
@kernel_function
def unsqueeze(x, dim: core.constexpr):
    """The tile with an additional dimension of size 1."""
    axis: core.constexpr = _axis_of(len(x.shape) + 1, dim)
    return core.reshape(x, x.shape[:axis] + (1,) + x.shape[axis:])
