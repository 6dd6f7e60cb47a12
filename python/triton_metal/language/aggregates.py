"""Aggregates: classes whose instances hold values of kernels.

An instance is a tuple of its fields' values, so that control flow, calls and returns carry it as they carry tuples.
"""

from __future__ import annotations

import builtins
import inspect
import typing
from collections.abc import Iterable
from typing import Any

from ..constexpr import base_type, constexpr, constexpr_type
from ..functions import JITCallable
from .building import walk_parameters
from .values import base_value, plain, type_of, wrapped

_MISSING: Any = object()


class _aggregate_type(base_type):
    """The type of an aggregate: its class, and the names and types of its fields."""

    def __init__(self, base_cls: type, fields: list[tuple[str, Any]]) -> None:
        self.base_cls, self.fields = base_cls, fields

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _aggregate_type)
            and self.base_cls is other.base_cls
            and self.fields == other.fields
        )

    def __hash__(self) -> int:
        return hash((self.base_cls, builtins.tuple(name for name, _ in self.fields)))

    def __repr__(self) -> str:
        return f"{self.base_cls.__name__}<{', '.join(f'{n}: {t}' for n, t in self.fields)}>"

    def mangle(self) -> str:
        fields = ", ".join(type.mangle() for _, type in self.fields)
        return f"{self.base_cls.__module__}.{self.base_cls.__qualname__}<{fields}>"


def is_aggregate(value: Any) -> bool:
    """Whether a value is an instance of an aggregate."""
    return getattr(type(value), "__triton_aggregate__", False) is True


def is_aggregate_class(value: Any) -> bool:
    """Whether a value is an aggregate's class."""
    return isinstance(value, type) and getattr(value, "__triton_aggregate__", False) is True


class AggregateValue(builtins.tuple):
    """Base of all aggregates. Fields are read-only; `aggregate_replace` makes a copy with others."""

    __slots__ = ()
    __triton_aggregate__ = True
    _fields: builtins.tuple[str, ...] = ()
    #: The user's `__init__`, or None where the fields are the parameters.
    _initialize: Any = None

    def __new__(
        cls, *args: Any, _semantic: Any = None, _generator: Any = None, **kwargs: Any
    ) -> AggregateValue:
        if cls._initialize is None:
            return cls._make(cls._bound(args, kwargs))
        return cls._made_by_init(args, kwargs, _semantic, _generator)

    @classmethod
    def _make(cls, values: Iterable[Any]) -> Any:
        """An instance with these values of its fields, without `__init__`."""
        return builtins.tuple.__new__(cls, values)

    @classmethod
    def _bound(cls, args: builtins.tuple, kwargs: dict[str, Any]) -> list[Any]:
        """The values of the fields, which are the parameters."""
        name = cls.__name__
        if len(args) > len(cls._fields):
            raise TypeError(f"{name} takes {len(cls._fields)} values, but {len(args)} are given")
        given = dict(zip(cls._fields, args, strict=False))
        for field in kwargs:
            if field not in cls._fields:
                raise TypeError(
                    f"{name}.__init__() got an unexpected keyword argument {field!r}; "
                    f"the fields are {', '.join(cls._fields)}"
                )
            if field in given:
                raise TypeError(f"{name}.__init__() got multiple values for argument {field!r}")
        given = {**cls.__aggregate_defaults__, **given, **kwargs}  # type: ignore[attr-defined]
        for field in cls._fields:
            if field not in given:
                raise TypeError(f"{name}.__init__() missing required argument: {field!r}")
        return [cls._checked(field, given[field]) for field in cls._fields]

    @classmethod
    def _made_by_init(
        cls, args: builtins.tuple, kwargs: dict[str, Any], semantic: Any, generator: Any
    ) -> Any:
        """What the user's `__init__` makes. It assigns the fields of a draft."""
        wants = walk_parameters(cls._initialize)
        for parameter, value in (("_semantic", semantic), ("_generator", generator)):
            if parameter in wants:
                kwargs[parameter] = value
        draft = builtins.tuple.__new__(cls._draft)  # type: ignore[attr-defined]
        cls._initialize(draft, *args, **kwargs)
        for field in cls._fields:
            if field not in draft.__dict__:
                raise AttributeError(
                    f"constructor for {cls.__name__} did not initialize attribute {field!r}"
                )
        return cls._make(plain(draft.__dict__[field]) for field in cls._fields)

    @classmethod
    def _checked(cls, field: str, value: Any) -> Any:
        """The plain value of a field, of the type that is declared."""
        declared = cls.__aggregate_types__[field]  # type: ignore[attr-defined]
        value = wrapped(plain(value))
        # Functions and dtypes are compile-time values that need no wrapping.
        fits = isinstance(value, declared) or (
            declared is constexpr and isinstance(type_of(value), constexpr_type)
        )
        if not fits:
            raise TypeError(
                f"Expected {declared} for attribute {field!r} of {cls.__name__}, got {type_of(value)}"
            )
        return plain(value)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._fields:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        raise AttributeError(
            f"cannot assign to field {name!r} on immutable aggregate {type(self).__name__}; "
            "use aggregate_replace() to construct a modified copy"
        )

    @property
    def type(self) -> _aggregate_type:
        fields = [(name, type_of(value)) for name, value in zip(self._fields, self, strict=True)]
        return _aggregate_type(type(self), fields)

    def __repr__(self) -> str:
        fields = ", ".join(f"{n}={v!r}" for n, v in zip(self._fields, self, strict=True))
        return f"{type(self).__name__}({fields})"


def _declared(cls: type) -> tuple[dict[str, Any], dict[str, Any]]:
    """The types of the fields and their defaults, those of the bases first."""
    types: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    for base in reversed(cls.__mro__[1:]):
        if base in (object, builtins.tuple, AggregateValue, base_value):
            continue
        if not getattr(base, "__triton_aggregate__", False):
            raise TypeError(
                f"Aggregates can only inherit from other aggregates, but got non-aggregate base: {base}"
            )
        types.update(getattr(base, "__aggregate_types__", {}))
        defaults.update(getattr(base, "__aggregate_defaults__", {}))
    own = inspect.get_annotations(cls)
    hints = typing.get_type_hints(cls) if own else {}
    for name in own:
        types[name] = hints[name]
        value = cls.__dict__.get(name, _MISSING)
        if value is not _MISSING and (not callable(value) or isinstance(value, base_value)):
            defaults[name] = value
    return types, defaults


def _field(name: str, index: int) -> property:
    return property(
        lambda self: wrapped(builtins.tuple.__getitem__(self, index)), doc=f"The field {name}."
    )


def _draft_of(cls: type, types: dict[str, Any]) -> type:
    """The class of the object that a user's `__init__` fills."""

    def assign(self: Any, name: str, value: Any) -> None:
        if name not in types:
            raise AttributeError(f"{cls.__name__} has no attribute {name!r}")
        if not isinstance(value, types[name]):
            raise TypeError(
                f"Expected {types[name]} for attribute {name!r} of {cls.__name__}, got {type(value)}"
            )
        self.__dict__[name] = value

    def reader(name: str) -> property:
        def read(self: Any) -> Any:
            try:
                return self.__dict__[name]
            except KeyError:
                raise AttributeError(
                    f"{cls.__name__} has not assigned attribute {name!r} yet"
                ) from None

        return property(read)

    members = {name: reader(name) for name in types}
    bases = (cls,) if issubclass(cls, builtins.tuple) else (cls, builtins.tuple)
    return type(cls.__name__, bases, {**members, "__setattr__": assign})


def _aggregate(cls: type) -> Any:
    """Makes a class whose annotated fields are values of kernels, and whose methods kernels can call.

    Fields are annotated with ``tl.tensor``, ``tl.constexpr``, ``tl.tuple`` or an aggregate. Without an ``__init__`` of its
    own, the class takes the values of the fields.

    >>> import triton_metal, triton_metal.language as tl
    >>> @triton_metal.aggregate
    ... class Shape:
    ...     rows: tl.constexpr
    ...     columns: tl.constexpr = 4
    >>> Shape(2).columns
    constexpr[4]
    """
    types, defaults = _declared(cls)
    initialize = cls.__dict__.get("__init__")
    if isinstance(initialize, JITCallable):
        initialize = initialize.function
    namespace: dict[str, Any] = {
        name: member
        for name, member in vars(cls).items()
        if name not in types
        and name not in ("__init__", "__dict__", "__weakref__", "__annotations__")
        and not name.startswith("__annotate")
    }
    names = builtins.tuple(types)
    namespace.update({name: _field(name, index) for index, name in enumerate(names)})
    namespace.update(
        __slots__=(),
        __triton_aggregate__=True,
        __aggregate_fields__=names,
        __aggregate_types__=types,
        __aggregate_defaults__=defaults,
        _fields=names,
        _initialize=staticmethod(initialize) if initialize else None,
    )
    if initialize:
        namespace["_draft"] = _draft_of(cls, types)
    bases = [base for base in cls.__bases__ if base is not object]
    result = type(cls.__name__, builtins.tuple(bases) or (AggregateValue,), namespace)
    result.__module__, result.__qualname__ = cls.__module__, cls.__qualname__
    return result


def aggregate_replace(instance: Any, **changes: Any) -> Any:
    """A copy of an aggregate with other values of some fields."""
    if not is_aggregate(instance):
        raise TypeError(f"aggregate_replace() expects an aggregate instance, got {type(instance)}")
    kind = type(instance)
    for name in changes:
        if name not in kind._fields:
            raise TypeError(f"{kind.__name__} has no field {name!r}")
    values = dict(zip(kind._fields, builtins.tuple.__iter__(instance), strict=True))
    values.update({name: kind._checked(name, value) for name, value in changes.items()})
    return kind._make(values.values())
