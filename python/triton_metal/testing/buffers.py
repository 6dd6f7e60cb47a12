"""The memory of arrays, as the contract devices bind it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..array_memory import Buffer, buffer_of, is_tensor, kernels_memory

__all__ = [
    "Buffer",
    "allocate",
    "buffer_of",
    "is_array",
    "is_bindable",
    "is_reversed",
    "is_tensor",
    "kernels_memory",
    "shares_memory",
]


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
