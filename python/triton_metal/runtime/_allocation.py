"""Allocators of memory for kernels. Metal's kernels need none, so that allocators are kept and not called."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Protocol


class Buffer(Protocol):
    """Memory."""

    def data_ptr(self) -> int: ...


#: (size, alignment, stream) -> memory.
Allocator = Callable[[int, int, Any], Buffer]


class NullAllocator:
    """The allocator while none is set."""

    def __call__(self, size: int, alignment: int, stream: Any) -> Buffer:
        raise RuntimeError(
            f"a kernel needs {size} bytes of memory, and no allocator was set: call triton.set_allocator"
        )


_NULL_ALLOCATOR = NullAllocator()

_allocator: ContextVar[Allocator] = ContextVar("_allocator", default=_NULL_ALLOCATOR)


def set_allocator(allocator: Allocator) -> None:
    """Sets the function that allocates memory for kernels which need more than their arguments, in this context.

    Kernels for Metal need none: descriptors that a kernel makes are values in registers.
    """
    _allocator.set(allocator)


class _AllocatorWrapper:
    """An allocator of the whole process, with the methods of a ContextVar."""

    def __init__(self, allocator: Allocator) -> None:
        self._allocator = allocator

    def get(self) -> Allocator:
        return self._allocator

    def set(self, allocator: Allocator) -> None:
        self._allocator = allocator

    def __call__(self, size: int, alignment: int, stream: Any) -> Buffer:
        return self._allocator(size, alignment, stream)


_profile_allocator = _AllocatorWrapper(_NULL_ALLOCATOR)


def set_profile_allocator(allocator: Allocator | None) -> None:
    """Sets the function that allocates memory for profilers; None takes it away."""
    _profile_allocator.set(_NULL_ALLOCATOR if allocator is None else allocator)


def has_profile_allocator() -> bool:
    """Whether there is one."""
    return not isinstance(_profile_allocator.get(), NullAllocator)
