"""Tuples and named tuples: the names of their elements, and the same tuple of other values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any


def rebuild_tuple(kind: type, values: Iterable[Any]) -> tuple:
    """A tuple of this class: a named tuple or an aggregate, or else a plain tuple."""
    return kind._make(values) if hasattr(kind, "_fields") else tuple(values)  # type: ignore[attr-defined]


def element_name(name: str, kind: type, index: int) -> str:
    """The name of an element of the tuple ``name``: ``x.first`` in a named tuple, ``x.0`` in others."""
    fields = getattr(kind, "_fields", None)
    return f"{name}.{fields[index] if fields else index}"


def flattened(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Names and values with the elements of tuples, and of tuples in these, in their places."""
    for name, value in values.items():
        if isinstance(value, tuple):
            elements = enumerate(value)
            yield from flattened({element_name(name, type(value), i): x for i, x in elements})
        else:
            yield name, value
