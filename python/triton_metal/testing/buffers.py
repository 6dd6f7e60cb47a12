"""The memory of arrays, as the contract devices bind it."""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass
class Buffer:
    """The bytes that a kernel may access, and the object that keeps them alive."""

    address: int
    bytes: int
    writable: bool
    keeper: Any

    @property
    def binding(self) -> tuple[int, int, bool]:
        """The form that `_native.MetalLibrary.dispatch` takes."""
        return self.address, self.bytes, self.writable


def is_tensor(value: Any) -> bool:
    """Whether this is a torch tensor. Does not import torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def buffer_of(array: Any) -> Buffer:
    """The memory from an array's first element to its end, like an MTLBuffer that is bound at an offset."""
    if is_tensor(array):
        storage = array.untyped_storage()
        offset = array.storage_offset() * array.element_size()
        return Buffer(storage.data_ptr() + offset, max(0, storage.nbytes() - offset), True, array)
    address, read_only = array.__array_interface__["data"]
    # The memory of a NumPy array ends where its highest element does.
    end = address + array.itemsize * (array.size > 0)
    for extent, stride in zip(array.shape, array.strides, strict=True):
        end += max(0, stride) * (extent - 1) if array.size else 0
    return Buffer(address, end - address, not read_only, array)


def allocate(bytes: int, *, alignment: int = 64, offset: int = 0) -> np.ndarray:
    """Fresh bytes at an address that is `offset` modulo `alignment`."""
    memory = np.empty(bytes + 2 * alignment, np.uint8)
    start = (offset - memory.ctypes.data) % alignment
    return memory[start : start + bytes]


def is_array(value: Any) -> bool:
    """Whether a framework's array may replace this one: a NumPy array or a tensor."""
    return isinstance(value, np.ndarray) or is_tensor(value)


def is_bindable(value: Any) -> bool:
    """Whether a framework accepts such an argument: a number, a tensor, or a writable array."""
    if isinstance(value, np.ndarray):
        return value.flags.writeable
    return is_tensor(value) or isinstance(value, (int, float, np.number, np.bool_))


def is_reversed(array: Any) -> bool:
    """Whether elements precede the first one in memory. MLX arrays have no such views."""
    strides = getattr(array, "strides", ())
    return isinstance(strides, tuple) and any(stride < 0 for stride in strides)


def shares_memory(arguments: list[Any], written: list[int]) -> bool:
    """Whether a written array shares memory with another one. New arrays never do."""
    ranges = [
        (position, buffer.address, buffer.address + buffer.bytes)
        for position, value in enumerate(arguments)
        if is_array(value)
        for buffer in [buffer_of(value)]
    ]
    return any(
        one < other_end and other < end
        for position, one, end in ranges
        if position in written
        for other_position, other, other_end in ranges
        if other_position != position
    )


def kernels_memory(array: Any) -> np.ndarray:
    """All bytes that a kernel may access from an array's first element on."""
    buffer = buffer_of(array)
    memory = (ctypes.c_uint8 * buffer.bytes).from_address(buffer.address)
    return np.frombuffer(memory, np.uint8)
