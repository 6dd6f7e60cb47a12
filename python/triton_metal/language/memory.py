"""Loads, stores and atomics. Their rules are in C++ (compiler/language)."""

from __future__ import annotations

from typing import Any

from .._native import AtomicOp, tensor
from ..constexpr import unwrap
from . import blocks
from .building import builder, builtin, describe, read_optional, read_static, tensor_method


def _pointer(name: str, value: Any) -> tensor:
    if not isinstance(value, tensor):
        raise TypeError(f"{name} takes a pointer or a tile of pointers, not {describe(value)}")
    return value


@builtin
def load(
    pointer,
    mask=None,
    other=None,
    boundary_check=(),
    padding_option="",
    cache_modifier="",
    eviction_policy="",
    volatile=False,
):
    """Reads through a pointer or a tile of pointers if the mask is true, and returns ``other`` elsewhere.

    Through a block pointer, ``boundary_check`` lists the dimensions whose bounds are checked; outside of the tensor the
    result is 0 (``padding_option="zero"``), NaN (``"nan"``), or undefined.
    """
    hints = (
        read_static("cache_modifier", cache_modifier) or "",
        read_static("eviction_policy", eviction_policy) or "",
        bool(read_static("volatile", volatile)),
    )
    if isinstance(pointer, blocks.block_pointer):
        return blocks.load_block(pointer, mask, other, boundary_check, padding_option, hints)
    _only_blocks("load", boundary_check, padding_option)
    return builder().load(
        _pointer("load", pointer), read_optional(mask), read_optional(other), *hints
    )


def _only_blocks(name: str, boundary_check: Any, padding_option: Any = "") -> None:
    if unwrap(boundary_check) not in ((), [], None) or unwrap(padding_option):
        raise ValueError(
            f"{name}: boundary_check and padding_option are for block pointers; use mask and other"
        )


@tensor_method
@builtin
def store(pointer, value, mask=None, boundary_check=(), cache_modifier="", eviction_policy=""):
    """Writes through a pointer or a tile of pointers if the mask is true.

    Through a block pointer, ``boundary_check`` lists the dimensions whose bounds are checked.
    """
    hints = (
        read_static("cache_modifier", cache_modifier) or "",
        read_static("eviction_policy", eviction_policy) or "",
    )
    if isinstance(pointer, blocks.block_pointer):
        blocks.store_block(pointer, value, mask, boundary_check, hints)
        return
    _only_blocks("store", boundary_check)
    builder().store(_pointer("store", pointer), unwrap(value), read_optional(mask), *hints)


def _atomic(name: str, op: AtomicOp, doc: str) -> Any:
    def atomic(pointer, val, mask=None, sem=None, scope=None):
        return builder().atomic_rmw(
            op,
            _pointer(name, pointer),
            unwrap(val),
            read_optional(mask),
            read_static("sem", sem) or "",
            read_static("scope", scope) or "",
        )

    atomic.__name__ = atomic.__qualname__ = name
    atomic.__doc__ = f"{doc} in memory, atomically; returns the old value."
    return tensor_method(builtin(atomic))


atomic_add = _atomic("atomic_add", AtomicOp.add, "Adds")
atomic_and = _atomic("atomic_and", AtomicOp.and_, "Bitwise and")
atomic_or = _atomic("atomic_or", AtomicOp.or_, "Bitwise or")
atomic_xor = _atomic("atomic_xor", AtomicOp.xor, "Bitwise exclusive or")
atomic_max = _atomic("atomic_max", AtomicOp.max, "The larger value")
atomic_min = _atomic("atomic_min", AtomicOp.min, "The smaller value")
atomic_xchg = _atomic("atomic_xchg", AtomicOp.xchg, "Exchanges")


@tensor_method
@builtin
def atomic_load(pointer, mask=None, sem=None, scope=None):
    """Loads atomically. ``sem`` is "acquire" (default) or "relaxed"; where ``mask`` is false, the result is undefined."""
    return builder().atomic_load(
        _pointer("atomic_load", pointer),
        read_optional(mask),
        read_static("sem", sem) or "",
        read_static("scope", scope) or "",
    )


@tensor_method
@builtin
def atomic_store(pointer, val, mask=None, sem=None, scope=None):
    """Stores atomically. ``sem`` is "release" (default) or "relaxed"."""
    builder().atomic_store(
        _pointer("atomic_store", pointer),
        unwrap(val),
        read_optional(mask),
        read_static("sem", sem) or "",
        read_static("scope", scope) or "",
    )


@tensor_method
@builtin
def atomic_poll(pointer, expected_value, sem=None, scope=None, timeout_ns=None):
    """Whether memory holds a value. It looks once and needs ``timeout_ns``: Metal has no clock and promises no progress."""
    return builder().atomic_poll(
        _pointer("atomic_poll", pointer),
        unwrap(expected_value),
        read_static("sem", sem) or "",
        read_static("scope", scope) or "",
        read_optional(timeout_ns),
    )


@tensor_method
@builtin
def atomic_cas(pointer, cmp, val, sem=None, scope=None):
    """Atomically replaces the value in memory by ``val`` if it equals ``cmp``; returns the old value."""
    return builder().atomic_cas(
        _pointer("atomic_cas", pointer),
        unwrap(cmp),
        unwrap(val),
        read_static("sem", sem) or "",
        read_static("scope", scope) or "",
    )
