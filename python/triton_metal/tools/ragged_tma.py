"""Ragged tensors: parts of one tensor, of different lengths along a dimension, that kernels access in blocks.

A ragged descriptor is a tensor descriptor with two dimensions before the tensor's own. Their strides cancel each other and
the offset of the ragged dimension, in arithmetic modulo 2^64, so that the bound of the ragged dimension is the end of a
part: a block loads zeros behind it, and does not write there.

>>> import numpy as np, triton_metal, triton_metal.language as tl
>>> @triton_metal.jit
... def second(x, out, SIZE: tl.constexpr):
...     tile = load_ragged(x, 3, 2, [0, 0])  # the rows 3 and 4
...     i = tl.arange(0, SIZE)
...     tl.store(out + i[:, None] * SIZE + i[None, :], tile)
>>> x, out = np.arange(32, dtype=np.float32).reshape(8, 4), np.empty((4, 4), np.float32)
>>> kernel = second[(1,)](create_ragged_descriptor(x, [4, 4]), out, SIZE=4)
>>> out[:, 0].tolist()
[12.0, 16.0, 0.0, 0.0]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import LaunchValueError
from ..jit import jit
from ..language import constexpr, reshape, static_assert
from .tensor_descriptor import TensorDescriptor, strides_of

#: The size of the ragged dimension, and so the most rows that a tensor may have.
_ROWS = 1 << 30
#: The size of the dimensions in front, which bounds nothing.
_UNBOUNDED = (1 << 31) - (1 << 16)


def create_ragged_descriptor(
    T: Any, block_shape: Sequence[int], ragged_dim: int = 0
) -> TensorDescriptor:
    """A descriptor of a tensor of 2 or 3 dimensions for `load_ragged`, `store_ragged` and `atomic_add_ragged`.

    ``ragged_dim`` is the dimension that is cut in parts; it is not the last one.
    """
    shape = list(T.shape)
    rank = len(shape)
    if not 2 <= rank <= 3:
        raise LaunchValueError(
            f"a ragged descriptor is of a tensor of 2 or 3 dimensions, not {rank}"
        )
    if len(block_shape) != rank:
        raise LaunchValueError(
            f"block_shape has {len(block_shape)} numbers for a tensor of {rank} dimensions"
        )
    dim = ragged_dim + rank if ragged_dim < 0 else ragged_dim
    if not 0 <= dim < rank - 1:
        raise LaunchValueError(
            f"ragged_dim is {ragged_dim}; it is a dimension of {rank}, and not the last one"
        )
    if shape[dim] > _ROWS:
        raise LaunchValueError(
            f"dimension {dim} has {shape[dim]} rows; a ragged tensor has at most 2^30"
        )
    strides = strides_of(T, shape)
    step = strides[dim]
    shape[dim] = _ROWS
    # 2^30 times the first stride is 2^64 - 2^30 * step: minus the offset of the row 2^30.
    return TensorDescriptor(
        T,
        [_UNBOUNDED, _UNBOUNDED, *shape],
        [(1 << 34) - step, step, *strides],
        [1, 1, *block_shape],
    )


@jit
def to_ragged_indices(slice_off, slice_size, row):
    """The offsets of the two dimensions in front, and of the ragged one, for a row of a part."""
    end = 0x40000000
    return end, slice_off + slice_size, end - slice_size + row


@jit
def _offsets(desc, slice_off, slice_size, coords, ragged_dim: constexpr):
    static_assert(
        len(desc.shape) == len(coords) + 2,
        "the descriptor is one of create_ragged_descriptor, with an offset for each dimension of its tensor",
    )
    first, second, row = to_ragged_indices(slice_off, slice_size, coords[ragged_dim])
    return (first, second) + coords[:ragged_dim] + (row,) + coords[ragged_dim + 1 :]


@jit
def load_ragged(TMA, slice_off, slice_size, coords, ragged_dim: constexpr = 0):
    """The block at ``coords`` of the part of ``slice_size`` rows from row ``slice_off`` on; zeros outside of it."""
    data = TMA.load(_offsets(TMA, slice_off, slice_size, coords, ragged_dim))
    return reshape(data, data.shape[2:])


@jit
def store_ragged(TMA, slice_off, slice_size, coords, data, ragged_dim: constexpr = 0):
    """Writes a block at ``coords`` of a part, and nothing outside of it."""
    block = reshape(data, (1, 1) + data.shape)
    TMA.store(_offsets(TMA, slice_off, slice_size, coords, ragged_dim), block)


@jit
def atomic_add_ragged(TMA, slice_off, slice_size, coords, data, ragged_dim: constexpr = 0):
    """Adds a block to memory at ``coords`` of a part, and nothing outside of it."""
    block = reshape(data, (1, 1) + data.shape)
    TMA.atomic_add(_offsets(TMA, slice_off, slice_size, coords, ragged_dim), block)


__all__ = [
    "TensorDescriptor",
    "atomic_add_ragged",
    "create_ragged_descriptor",
    "load_ragged",
    "store_ragged",
    "to_ragged_indices",
]
