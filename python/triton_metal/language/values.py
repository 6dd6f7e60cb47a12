"""Values and types that are no tensors and no dtypes: tuples, slices, and the classes that hold for all values."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from .._native import dtype, tensor
from ..constexpr import base_type, constexpr, constexpr_type, unwrap
from ..tuples import rebuild_tuple
from .blocks import BLOCKS, tensor_descriptor


class _AnyValue(type):
    def __instancecheck__(cls, instance: object) -> bool:
        if cls is not base_value:
            return super().__instancecheck__(instance)
        return (
            isinstance(instance, (tensor, constexpr, tuple, *BLOCKS))
            or getattr(type(instance), "__triton_aggregate__", False)
            or super().__instancecheck__(instance)
        )


class base_value(metaclass=_AnyValue):
    """Base of the values of kernels. Tensors, constexpr, tuples and aggregates are instances."""


class tuple_type(base_type):
    """The type of a tuple: the types of its elements, and their names if it is a named tuple."""

    def __init__(self, types: Iterable[Any], fields: Sequence[str] | None = None) -> None:
        self.types = list(types)
        self.fields = None if fields is None else builtins.tuple(fields)

    @property
    def name(self) -> str:
        if self.fields is None:
            return f"[{','.join(map(str, self.types))}]"
        return f"[{','.join(f'{k}:{t}' for k, t in zip(self.fields, self.types, strict=True))}]"

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__

    def __iter__(self) -> Iterator[Any]:
        return iter(self.types)

    def __getitem__(self, index: int) -> Any:
        return self.types[index]

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, tuple_type)
            and self.types == other.types
            and self.fields == other.fields
        )

    def __hash__(self) -> int:
        return hash((builtins.tuple(map(str, self.types)), self.fields))

    def mangle(self) -> str:
        return f"T{'_'.join(type.mangle() for type in self.types)}T"


def type_of(value: Any) -> Any:
    """The type of any value of a kernel."""
    value = unwrap(value)
    if isinstance(value, tensor):
        return value.type
    if isinstance(value, tensor_descriptor):
        block = dtype.block(value.handle.type.element_ty, value.block_shape)
        strides = type_of(value.member("strides"))
        return tensor_descriptor_type(block, type_of(value.sizes), strides)
    if isinstance(value, BLOCKS):
        return value.member("type")
    if isinstance(value, tuple):
        fields = getattr(value, "_fields", None)
        return tuple_type(map(type_of, value), fields)
    if isinstance(value, base_value):
        return value.type  # type: ignore[attr-defined]
    return constexpr_type(value)


class _TupleMeta(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return (
            isinstance(instance, builtins.tuple)
            and not isinstance(instance, BLOCKS)
            and not getattr(type(instance), "__triton_aggregate__", False)
        )


class tuple(builtins.tuple, metaclass=_TupleMeta):  # type: ignore[misc]
    """A tuple of values, as the language's functions take and return it. In kernels, every tuple is one.

    Elements that are known when compiling are constexpr. ``type.fields`` has the names of a named tuple's elements.
    """

    _kind: type

    def __new__(cls, args: Iterable[Any] = (), type: Any = None) -> tuple:
        values = builtins.tuple(args)
        self = super().__new__(cls, map(wrapped, values))  # type: ignore[type-var]
        self._kind = args.__class__ if hasattr(args, "_fields") else builtins.tuple
        self._fields_given = getattr(type, "fields", None)
        return self

    @property
    def values(self) -> list[Any]:
        """The elements."""
        return list(self)

    @property
    def type(self) -> tuple_type:
        fields = self._fields_given or getattr(self._kind, "_fields", None)
        return tuple_type(map(type_of, self), fields)

    def __getattr__(self, name: str) -> Any:
        fields = self.__dict__.get("_fields_given") or getattr(self._kind, "_fields", ())
        if name not in fields:
            raise AttributeError(f"a tuple has no attribute {name!r}")
        return self[fields.index(name)]

    def __getitem__(self, index: Any) -> Any:
        index = unwrap(index)
        if isinstance(index, (slice, builtins.slice)):
            bounds = builtins.slice(*map(unwrap, (index.start, index.stop, index.step)))
            return tuple(super().__getitem__(bounds))
        return super().__getitem__(index)

    def __add__(self, other: Any) -> tuple:
        return tuple((*self, *other))

    def __eq__(self, other: object) -> Any:
        return constexpr(plain(self) == plain(other))

    def __hash__(self) -> int:
        return hash(plain(self))

    def plain(self) -> builtins.tuple:
        """The same tuple of plain values."""
        return rebuild_tuple(self._kind, map(plain, self))


def wrapped(value: Any) -> Any:
    """A value as functions outside of this package take it: compile-time scalars as constexpr, tuples as `tuple`."""
    if type(value) is tuple:
        return value
    if isinstance(value, tuple):
        return tuple(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return constexpr(value)
    return value


def plain(value: Any) -> Any:
    """The inverse of `wrapped`, at any depth. A list becomes a tuple."""
    value = unwrap(value)
    if type(value) is tuple:
        return value.plain()
    if isinstance(value, list):
        return builtins.tuple(map(plain, value))
    if type(value) is builtins.tuple:
        return builtins.tuple(map(plain, value))
    return value


class slice:
    """A slice ``start:stop:step`` in an index."""

    def __init__(self, start: Any, stop: Any, step: Any) -> None:
        self.start, self.stop, self.step = start, stop, step
        self.type = slice_type()


class slice_type(base_type):
    """The type of slices."""

    name = "slice_type"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, slice_type)

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name

    def mangle(self) -> str:
        return self.name


class tensor_descriptor_base_type(base_type):
    """The type of tensor descriptors with blocks of this type."""

    def __init__(self, block_type: dtype) -> None:
        self.block_type = block_type

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(self.block_type)

    def __str__(self) -> str:
        return f"tensor_descriptor<{self.block_type}>"

    __repr__ = __str__

    def mangle(self) -> str:
        return f"TD{self.block_type.mangle()}"


class tensor_descriptor_type(tensor_descriptor_base_type):
    """The type of tensor descriptors, with the types of their shapes and strides."""

    def __init__(self, block_type: dtype, shape_type: tuple_type, strides_type: tuple_type) -> None:
        super().__init__(block_type)
        self.shape_type, self.strides_type = shape_type, strides_type
