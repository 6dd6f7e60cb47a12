"""Properties of compile-time values: which of them can change, and how to compare them."""

from __future__ import annotations

import functools
import math
import operator
import sys
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from ._native import dtype, tensor
from .constexpr import constexpr

_PACKAGE = Path(__file__).parent

MISSING: Any = type("Missing", (), {"__repr__": lambda self: "<missing>"})()
"""The result of a read that finds nothing."""

SCALARS = frozenset({type(None), bool, int, float, complex, str, bytes, type(Ellipsis), dtype})


def is_constant(value: Any) -> bool:
    """Whether a value is immutable, and equal to any other value of the same type and content."""
    kind = type(value)
    return kind in SCALARS or (kind is tuple and all(map(is_constant, value)))


def is_plain_tuple(value: Any) -> bool:
    """Whether a value is a tuple, or a named tuple without other attributes."""
    kind = type(value)
    if kind is tuple:
        return True
    return (
        isinstance(value, tuple)
        and hasattr(kind, "_fields")
        and kind.__getitem__ is tuple.__getitem__
        and kind.__len__ is tuple.__len__
        and kind.__iter__ is tuple.__iter__
        and not getattr(value, "__dict__", None)
    )


def is_content(value: Any) -> bool:
    """Whether type and content identify a value: constants, and named tuples of them."""
    return is_constant(value) or (is_plain_tuple(value) and all(map(is_content, value)))


def has_identity(value: Any) -> bool:
    """Whether identity matters for a value, so that no other object can replace it."""
    kinds = (type, ModuleType, Enum, int, float, complex, str, bytes, tuple, frozenset)
    return callable(value) or isinstance(value, kinds)


def holds_tensor(value: Any) -> bool:
    """Whether a value, or a part of a tuple, is only known at run time."""
    if isinstance(value, tuple):
        return any(map(holds_tensor, value))
    return isinstance(value, tensor)


def is_own(function: Any) -> bool:
    """Whether a function or a class belongs to this package, which only changes with its build."""
    if isinstance(function, type):
        module = sys.modules.get(function.__module__)
        return _is_ours(getattr(module, "__file__", None)) and (
            getattr(module, function.__name__, None) is function
        )
    return isinstance(function, FunctionType) and _is_ours(function.__code__.co_filename)


@functools.cache
def _is_ours(file: str | None) -> bool:
    return file is not None and Path(file).is_relative_to(_PACKAGE)


def contains(container: Any, value: Any) -> bool:
    """``value in container``, with the operands in the order that `Reads.call` needs."""
    return value in container


PURE: frozenset[Any] = frozenset(
    {
        *(getattr(operator, name) for name in dir(operator) if not name.startswith("__")),
        *(f for f in vars(math).values() if callable(f)),
        *(bool, int, float, str, tuple, len, range, repr, ascii, format, isinstance),
        *(getattr, hasattr, contains),
    }
)


def is_structural(function: Any, operands: Sequence[Any]) -> bool:
    """Whether a call only takes a tuple apart or inspects a run-time value. The walk itself determines its result."""
    if not operands or isinstance(function, type):
        return bool(operands) and is_own(function)
    first, rest = operands[0], operands[1:]
    if function is len:
        return is_plain_tuple(first)
    if function is operator.getitem:
        return is_plain_tuple(first) and all(is_constant(i) or is_constant_slice(i) for i in rest)
    if function is operator.add:
        return all(type(operand) is tuple for operand in operands)
    if function is isinstance:
        classes = rest[0] if isinstance(rest[0], tuple) else rest
        known = holds_tensor(first) or is_constant(first) or is_own(type(first))
        return known and all(
            type(cls) is type or is_own(type(cls)) or is_own(cls) for cls in classes
        )
    return function in (getattr, hasattr) and isinstance(first, tensor)


def is_constant_slice(value: Any) -> bool:
    return isinstance(value, slice) and all(map(is_constant, (value.start, value.stop, value.step)))


def unwrapped(value: Any) -> Any:
    """The plain value of a constexpr, at any depth of nesting."""
    while isinstance(value, constexpr):
        value = value.value
    return value


def plain(value: Any) -> Any:
    """A constant without nested constexpr, as in the native launcher's key."""
    value = unwrapped(value)
    return tuple(map(plain, value)) if type(value) is tuple else value
