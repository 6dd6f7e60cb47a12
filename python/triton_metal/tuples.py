"""Tuples and named tuples: the names of their elements, and the same tuple of other values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def rebuild_tuple(kind: type, values: Iterable[Any]) -> tuple:
    """A tuple of this class: a named tuple or an aggregate, or else a plain tuple."""
    return kind._make(values) if hasattr(kind, "_fields") else tuple(values)  # type: ignore[attr-defined]


def element_name(name: str, kind: type, index: int) -> str:
    """The name of an element of the tuple ``name``: ``x.first`` in a named tuple, ``x.0`` in others."""
    fields = getattr(kind, "_fields", None)
    return f"{name}.{fields[index] if fields else index}"


def named_value(values: Mapping[str, Any], name: str) -> Any:
    """The value of an argument, or of an element of a tuple by the name that `element_name` gives it."""
    whole, *path = name.split(".")
    value = values[whole]
    for step in path:
        value = value[int(step)] if step.isdigit() else getattr(value, step)
    return value
