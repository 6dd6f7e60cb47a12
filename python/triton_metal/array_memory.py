"""The memory of NumPy arrays and torch tensors that a kernel may access."""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .errors import LaunchValueError

if TYPE_CHECKING:
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


def check_sign(kernel: str, name: str, value: Any) -> None:
    """Checks that an argument's numbers are those in memory. Those of a tensor with the negative bit have the other sign, and
    what a kernel writes to it would change its sign, too.
    """
    if getattr(value, "is_neg", bool)():
        raise LaunchValueError(
            f"{kernel}: argument {name} is a tensor with the negative bit, whose numbers lie in memory with the other sign: "
            "pass what its resolve_neg() gives"
        )


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


def kernels_memory(array: Any) -> np.ndarray:
    """All bytes that a kernel may access from an array's first element on."""
    import numpy as np

    buffer = buffer_of(array)
    memory = (ctypes.c_uint8 * buffer.bytes).from_address(buffer.address)
    return np.frombuffer(memory, np.uint8)
