"""Memory of arrays, as the contract devices bind it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass
class Buffer:
    """Bytes that a kernel may reach, and whoever keeps them."""

    address: int
    bytes: int
    writable: bool
    keeper: Any

    @property
    def binding(self) -> tuple[int, int, bool]:
        """What `_native.MetalLibrary.dispatch` takes."""
        return self.address, self.bytes, self.writable


def is_tensor(value: Any) -> bool:
    """Whether this is a torch tensor; torch is not imported for the question."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def buffer_of(array: Any) -> Buffer:
    """From an array's first element to the end of its memory: an MTLBuffer, bound at an offset."""
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
