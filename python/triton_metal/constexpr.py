"""Compile-time values outside of kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def unwrap(value: Any) -> Any:
    """The plain Python value of a constexpr; any other value unchanged."""
    return value.value if isinstance(value, constexpr) else value


class base_type:
    """Base of the types of values that are no dtypes. Each has a ``mangle()`` for the names of functions."""

    def __ne__(self, other: object) -> bool:
        return not self == other

    def mangle(self) -> str:
        raise NotImplementedError(f"{type(self).__name__} has no mangled name")


class constexpr_type(base_type):
    """The type of a compile-time value. Types of equal values are equal."""

    def __init__(self, value: Any) -> None:
        self.value = unwrap(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, constexpr_type) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return f"constexpr_type[{self.value!r}]"

    def mangle(self) -> str:
        mangle = getattr(self.value, "mangle", None)
        return f"c{mangle() if callable(mangle) else repr(self.value)}"


class const:
    """An annotation for pointers that a kernel only reads."""


class constexpr:
    """A compile-time value: an annotation of parameters, or a global.

    Inside a kernel, compile-time values are plain Python values. This class only appears outside.
    """

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = unwrap(value)

    @property
    def type(self) -> constexpr_type:
        """The type, which holds the value."""
        return constexpr_type(self.value)

    def __repr__(self) -> str:
        return f"constexpr[{self.value!r}]"

    def __hash__(self) -> int:
        return hash(self.value)

    def __index__(self) -> int:
        return self.value.__index__()

    def __bool__(self) -> bool:
        return bool(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __float__(self) -> float:
        return float(self.value)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.value(*args, **kwargs)

    def __getitem__(self, item: Any) -> Any:
        return self.value[unwrap(item)]

    def __iter__(self) -> Any:
        return iter(self.value)

    def __len__(self) -> int:
        return len(self.value)

    def logical_and(self, other: Any) -> constexpr:
        """``self and other``."""
        return constexpr(self.value and unwrap(other))

    def logical_or(self, other: Any) -> constexpr:
        """``self or other``."""
        return constexpr(self.value or unwrap(other))

    def __not__(self) -> constexpr:
        return constexpr(not self.value)

    def __neg__(self) -> constexpr:
        return constexpr(-self.value)

    def __pos__(self) -> constexpr:
        return constexpr(+self.value)

    def __invert__(self) -> constexpr:
        return constexpr(~self.value)


def _forward(name: str) -> Callable[[constexpr, Any], constexpr]:
    def method(self: constexpr, other: Any) -> constexpr:
        result = getattr(self.value, name)(unwrap(other))
        return NotImplemented if result is NotImplemented else constexpr(result)

    method.__name__ = name
    return method


for _operator in [
    "add",
    "radd",
    "sub",
    "rsub",
    "mul",
    "rmul",
    "truediv",
    "rtruediv",
    "floordiv",
    "rfloordiv",
    "mod",
    "rmod",
    "pow",
    "rpow",
    "lshift",
    "rlshift",
    "rshift",
    "rrshift",
    "and",
    "rand",
    "or",
    "ror",
    "xor",
    "rxor",
    "lt",
    "le",
    "gt",
    "ge",
    "eq",
    "ne",
]:
    setattr(constexpr, f"__{_operator}__", _forward(f"__{_operator}__"))
