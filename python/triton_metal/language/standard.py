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
    return core.expand_dims(x, dim)
