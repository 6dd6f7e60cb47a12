"""Copies of arrays for launches that must not change them: with the same strides, alignment and shared memory."""

from __future__ import annotations

import copy
import ctypes
import sys
from typing import Any, NamedTuple

from .arguments import is_descriptor
from .tuples import rebuild_tuple

#: Copies begin at the same place within so many bytes as what they are copies of: kernels are specialised to aligned
#: arrays.
_ALIGNMENT = 256


class Extent(NamedTuple):
    """The memory that an array is a part of, from its first byte to its end."""

    begin: int
    end: int


class ArrayCopies:
    """Makes arrays that a launch may change in the place of others.

    ``ArrayCopies(arguments).of(argument)`` is an array with the same values, dtype, shape and strides. Arrays that share
    memory share it as copies, too, and memory around a view is copied with it, so that a kernel that is told strides
    finds what it would find. Arrays of MLX and of a GPU become ones of the CPU. Copies of what is read-only are read-only.
    Tuples and tensor descriptors become those of copies, and other values are themselves.
    """

    def __init__(self, arguments: Any) -> None:
        self._moved: dict[int, tuple[Any, Any]] = {}  # what arrays that are elsewhere have become
        extents = []
        for value in _leaves(list(arguments)):
            found = extent_of(self._local(value))
            if found is not None and found.begin != found.end:
                extents.append(found)
        self._memory: list[tuple[Extent, Any, int]] = []  # with its copy, and where that begins
        for extent in _merged(extents):
            self._memory.append((extent, *_copy_of(extent)))

    def of(self, value: Any) -> Any:
        """The copy of an argument."""
        if isinstance(value, tuple):
            return rebuild_tuple(type(value), map(self.of, value))
        if is_descriptor(value):
            other = copy.copy(value)
            other.base = self.of(value.base)
            return other
        value = self._local(value)
        extent = extent_of(value)
        if extent is None or extent.begin == extent.end:
            return value
        for known, memory, offset in self._memory:
            if known.begin <= extent.begin and extent.end <= known.end:
                return _view(value, memory, offset - known.begin)
        raise ValueError("the array is not one of those that the copies were made for")

    def _local(self, value: Any) -> Any:
        """The array in the CPU's memory."""
        if type(value).__module__.partition(".")[0] == "mlx" and hasattr(value, "dtype"):
            return self._once(value, _of_mlx)
        if hasattr(value, "untyped_storage") and not value.is_cpu:
            return self._once(value, lambda tensor: tensor.detach().cpu())
        if isinstance(value, (bytearray, memoryview)):
            return self._once(value, bytearray)
        return value

    def _once(self, value: Any, make: Any) -> Any:
        if id(value) not in self._moved:
            self._moved[id(value)] = value, make(value)
        return self._moved[id(value)][1]


def extent_of(value: Any) -> Extent | None:
    """The memory of an array or a CPU tensor; None for anything else."""
    if hasattr(value, "untyped_storage"):
        storage = value.untyped_storage()
        return Extent(storage.data_ptr(), storage.data_ptr() + storage.nbytes())
    numpy = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, numpy.ndarray):
        return None
    whole = value
    while isinstance(whole.base, numpy.ndarray):
        whole = whole.base
    low, high = _bounds(value)
    first, last = _bounds(whole)
    return Extent(min(low, first), max(high, last))


def may_change(value: Any) -> bool:
    """Whether a launch may write an array: one of NumPy may be read-only."""
    flags = getattr(value, "flags", None)
    return flags is None or bool(getattr(flags, "writeable", True))


def address_of(value: Any) -> int:
    """Where the first element of an array or a CPU tensor is."""
    if hasattr(value, "untyped_storage"):
        return int(value.data_ptr())
    return int(value.__array_interface__["data"][0])


def _bounds(array: Any) -> tuple[int, int]:
    """From the first byte of an array to its end."""
    low = high = address_of(array)
    if 0 in array.shape:
        return low, high
    for size, stride in zip(array.shape, array.strides, strict=True):
        if stride < 0:
            low += (size - 1) * stride
        else:
            high += (size - 1) * stride
    return low, high + array.itemsize


def _leaves(values: Any) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if is_descriptor(value):
            value = (value.base,)
        found += _leaves(value) if isinstance(value, tuple) else [value]
    return found


def _merged(extents: list[Extent]) -> list[Extent]:
    """The extents, those that overlap as one."""
    result: list[Extent] = []
    for extent in sorted(extents):
        if result and extent.begin < result[-1].end:
            result[-1] = Extent(result[-1].begin, max(result[-1].end, extent.end))
        else:
            result.append(extent)
    return result


def _copy_of(extent: Extent) -> tuple[Any, int]:
    """An array of bytes, and where in it the copy of the memory begins."""
    import numpy as np

    size = extent.end - extent.begin
    memory = np.empty(size + _ALIGNMENT, np.uint8)
    offset = (extent.begin - address_of(memory)) % _ALIGNMENT
    source = (ctypes.c_uint8 * size).from_address(extent.begin)
    memory[offset : offset + size] = np.frombuffer(source, np.uint8)
    return memory, offset


def _view(value: Any, memory: Any, shift: int) -> Any:
    """An array like another one in copied memory. ``shift`` leads from the old addresses to places in it."""
    place = address_of(value) + shift
    if hasattr(value, "untyped_storage"):
        import torch

        storage = value.untyped_storage()
        begin = storage.data_ptr() + shift
        copied = torch.from_numpy(memory[begin : begin + storage.nbytes()]).untyped_storage()
        empty = torch.empty(0, dtype=value.dtype)
        return empty.set_(copied, value.storage_offset(), value.size(), value.stride())
    import numpy as np

    view = np.ndarray(value.shape, value.dtype, buffer=memory, offset=place, strides=value.strides)
    view.flags.writeable = value.flags.writeable
    return view


def _of_mlx(array: Any) -> Any:
    import mlx.core as mx
    import numpy as np

    if array.dtype == mx.bfloat16:
        import ml_dtypes

        return np.array(array.view(mx.uint16)).view(ml_dtypes.bfloat16)
    return np.array(array)
