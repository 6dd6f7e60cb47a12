"""Arguments of a launch on the host device, where tensors are in another device's memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .tuples import rebuild_tuple


def is_elsewhere(value: Any) -> bool:
    """Whether a value is a torch tensor that is not in the CPU's memory."""
    return hasattr(value, "untyped_storage") and not value.is_cpu


@contextmanager
def host_copies(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    """The arguments with tensors in the CPU's memory, whose contents go back at the end of the block.

    Tensors that share memory share it there, too.
    """
    storages: dict[int, tuple[Any, Any]] = {}

    def moved(value: Any) -> Any:
        if isinstance(value, tuple):
            return rebuild_tuple(type(value), map(moved, value))
        if not is_elsewhere(value):
            return value
        own = value.untyped_storage()
        if own.data_ptr() not in storages:
            storages[own.data_ptr()] = own, own.cpu()
        _, copy = storages[own.data_ptr()]
        place = value.new_empty(0, device="cpu")
        place = place.set_(copy, value.storage_offset(), value.size(), value.stride())
        # A launch refuses the bit by the argument's name.
        return place._neg_view() if getattr(value, "is_neg", bool)() else place

    yield tuple(map(moved, args)), {name: moved(value) for name, value in kwargs.items()}
    for own, copy in storages.values():
        own.copy_(copy)
