"""What the walk over a kernel reads from Python, so that the next launch can tell whether it would read the same.

The walk is a function of what it reads: the values of globals, closure cells, attributes and of calls that run while
compiling. Every such read is recorded with the way to do it again. A later launch does them again, in order, and takes
the compiled kernel only if each answers as it did; else the kernel is walked over anew. So nothing has to be known of an
object's insides: what the walk did not read of it cannot matter. The native side that compares is bindings/Reads.cpp.
"""

from __future__ import annotations

import functools
import inspect
import math
import operator
import sys
from collections.abc import Callable, Sequence
from enum import Enum
from pathlib import Path
from types import BuiltinMethodType, CellType, FunctionType, MethodType, ModuleType
from typing import Any

from ._native import Read, ReadResult, dtype, same_content, tensor
from .constexpr import constexpr, unwrap

_PACKAGE = Path(__file__).parent

MISSING: Any = type("Missing", (), {"__repr__": lambda self: "<missing>"})()
"""What a read gives where there is nothing."""

_SCALARS = frozenset({type(None), bool, int, float, complex, str, bytes, type(Ellipsis), dtype})


def is_constant(value: Any) -> bool:
    """Whether a value can never change, and two of one type and content are the same in every way."""
    kind = type(value)
    return kind in _SCALARS or (kind is tuple and all(map(is_constant, value)))


def is_plain_tuple(value: Any) -> bool:
    """Whether a value is a tuple, or a named tuple without anything beside its fields."""
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
    """Whether a value is told from others by its type and content: constants, and named tuples of them."""
    return is_constant(value) or (is_plain_tuple(value) and all(map(is_content, value)))


def has_identity(value: Any) -> bool:
    """Whether a value stands for itself, and no other object will do in its place."""
    kinds = (type, ModuleType, Enum, int, float, complex, str, bytes, tuple, frozenset)
    return callable(value) or isinstance(value, kinds)


def holds_tensor(value: Any) -> bool:
    """Whether a value, or anything in a tuple, is known only at run time."""
    if isinstance(value, tuple):
        return any(map(holds_tensor, value))
    return isinstance(value, tensor)


def is_own(function: Any) -> bool:
    """Whether a function or a class is a part of this package, which changes with its build only."""
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
    """``value in container``, as the operands of `Reads.call`."""
    return value in container


_PURE: frozenset[Any] = frozenset(
    {
        *(getattr(operator, name) for name in dir(operator) if not name.startswith("__")),
        *(f for f in vars(math).values() if callable(f)),
        *(bool, int, float, str, tuple, len, range, repr, ascii, format, isinstance),
        *(getattr, hasattr, contains),
    }
)


def is_structural(function: Any, operands: Sequence[Any]) -> bool:
    """Whether a call only takes a tuple apart, or asks a run-time value, which is the walk's own doing."""
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
        return (holds_tensor(first) or is_constant(first)) and all(
            type(cls) is type or is_own(type(cls)) or is_own(cls) for cls in classes
        )
    return function in (getattr, hasattr) and isinstance(first, tensor)


def is_constant_slice(value: Any) -> bool:
    return isinstance(value, slice) and all(map(is_constant, (value.start, value.stop, value.step)))


class Reads:
    """The reads of one walk. ``objects`` are the launch's constants that are compared here, and not by the key."""

    def __init__(self, objects: Sequence[Any] = ()) -> None:
        self.steps: list[tuple[Any, ...]] = []
        self.objects = list(objects)
        self.volatile = False
        self._kept: list[Any] = []  # so that no id comes to mean another object
        self._sources: dict[int, Any] = {}  # id of an object: where it was met first
        self._derived: dict[
            int, int
        ] = {}  # id of an object that may be another one next time: its slot
        self._aliased: set[int] = set()  # ids of objects that were met in two places
        self._seen: dict[Any, Any] = {}  # what has been read: its value
        self._slots = len(self.objects)
        for slot, value in enumerate(self.objects):
            if not is_content(value):
                self._meet(value, ("object", slot), slot)

    # --- Reading ------------------------------------------------------------------------------------

    def name(self, namespace: dict[str, Any], name: str, watched: bool = True) -> Any:
        """A variable in a namespace."""
        value = namespace.get(name, MISSING)
        if watched:
            self._record(Read.name, (namespace,), name, value)
        return value

    def cell(self, cell: CellType, watched: bool = True) -> Any:
        """A variable of a function around."""
        try:
            value = cell.cell_contents
        except ValueError:  # not yet assigned
            value = MISSING
        if watched:
            self._record(Read.cell, (cell,), "", value)
        return value

    def function(self, function: FunctionType) -> None:
        """A function whose source is walked over, or whose code is known."""
        if isinstance(function, FunctionType) and not is_own(function):
            self._record(Read.function, (function,), "", None)

    def attribute(self, owner: Any, name: str, watched: bool = True) -> Any:
        """An attribute of a compile-time value. Raises what Python raises."""
        if type(owner) is ModuleType and name in owner.__dict__:
            return unwrapped(self.name(owner.__dict__, name, watched))
        if isinstance(owner, tuple) and holds_tensor(owner):
            return self._attribute_of_tensors(owner, name)
        value = getattr(owner, name)
        if watched and not is_constant(owner):
            self._record(Read.attribute, (owner,), name, value)
        return unwrapped(value)

    def _attribute_of_tensors(self, owner: tuple, name: str) -> Any:
        """An attribute of a tuple that holds values which no later launch has."""
        found = inspect.getattr_static(type(owner), name, None)
        if type(found).__name__ == "_tuplegetter" or is_constant(found):
            self._record(Read.attribute, (type(owner),), name, getattr(type(owner), name))
        else:
            self.volatile = True
        return unwrap(getattr(owner, name))

    def call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """What a function answers while compiling."""
        value = function(*args, **kwargs)
        operands = (*args, *kwargs.values())
        if is_structural(function, operands):
            return self.unwrap(value)
        if any(map(holds_tensor, operands)):
            self.volatile = True  # nothing can ask this again without this walk's values
            return unwrapped(value)
        if self._is_pure(function, operands) or self._is_settled(function, operands):
            return unwrapped(value)
        self._record(Read.call, (function, *operands), tuple(kwargs), value)
        return unwrapped(value)

    def settle(self, value: Any) -> Any:
        """A compile-time value in the form in which the language's functions take it: nothing in it can change."""
        value = unwrapped(self.unwrap(value))
        if isinstance(value, tuple):
            parts = [self.settle(part) for part in value]
            if all(map(operator.is_, parts, value)):
                return value
            return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
        if isinstance(value, list):
            return self.settle(self.call(tuple, value))
        if type(value) in _SCALARS or isinstance(value, tensor) or has_identity(value):
            return value
        if isinstance(value, slice):
            return slice(*map(self.settle, (value.start, value.stop, value.step)))
        self.volatile = True
        return value

    def unwrap(self, value: Any) -> Any:
        """The value of a constexpr."""
        while isinstance(value, constexpr):
            inner = value.value
            self._record(Read.attribute, (value,), "value", inner)
            value = inner
        return value

    # --- Recording ----------------------------------------------------------------------------------

    @staticmethod
    def _is_pure(function: Any, operands: Sequence[Any]) -> bool:
        """Whether a call answers the same for ever, for these operands."""
        if not all(map(is_constant, operands)):
            return False
        if is_own(function):
            return True
        owner = getattr(function, "__self__", None)
        try:
            return function in _PURE or (
                owner is not None and not isinstance(owner, ModuleType) and is_constant(owner)
            )
        except TypeError:  # an object that is not hashable
            return False

    def _is_settled(self, function: Any, operands: Sequence[Any]) -> bool:
        """Whether a call is known to depend on what has been recorded, and so need not be done again."""
        from .purity import record_reads

        if not isinstance(function, FunctionType) or not all(map(is_constant, operands)):
            return False
        return record_reads(function, self)

    def _record(self, kind: Read, owners: tuple[Any, ...], name: Any, value: Any) -> None:
        key = (kind, *map(_key, owners), name)
        plain = unwrapped(value)
        if key in self._seen:
            before = self._seen[key]
            if before is plain or (is_content(before) and same_content(before, plain)):
                return
        self._seen[key] = plain
        self._kept.extend((*owners, value))
        result, expected, slot = self._expect(kind, owners, plain, key)
        operands = tuple(map(self._operand, owners))
        self.steps.append((kind, operands, name, result, expected, slot, plain))

    def _expect(
        self, kind: Read, owners: tuple[Any, ...], value: Any, key: Any
    ) -> tuple[ReadResult, Any, int]:
        """What a later read of this kind must give."""
        if value is MISSING:
            return ReadResult.missing, None, -1
        if kind is Read.function:
            function = owners[0]
            state = (function.__code__, function.__defaults__, function.__kwdefaults__)
            for name in function.__kwdefaults__ or ():
                self._record(
                    Read.name, (function.__kwdefaults__,), name, function.__kwdefaults__[name]
                )
            return ReadResult.function, state, -1
        if is_content(value):
            return ReadResult.equal, value, -1
        if isinstance(value, (MethodType, BuiltinMethodType)) and (
            value.__self__ is owners[0] or value.__self__ is type(owners[0])
        ):
            slot = -1
            if value.__self__ is owners[0] and id(owners[0]) in self._derived:
                slot = self._derived[id(value)] = self._new_slot()
            return ReadResult.method, value, slot
        fresh = kind is Read.call or (
            kind is Read.attribute
            and (id(owners[0]) in self._derived or getattr(*owners, key[-1]) is not value)
        )
        if fresh and not has_identity(value):
            slot = self._new_slot()
            self._meet(value, key, slot)
            return ReadResult.alike, value, slot
        self._meet(value, key, None)
        return ReadResult.same, value, -1

    def _new_slot(self) -> int:
        self._slots += 1
        return self._slots - 1

    def _meet(self, value: Any, source: Any, slot: int | None) -> None:
        """Keeps in mind where an object came from."""
        self._kept.append(value)
        first = self._sources.setdefault(id(value), source)
        if first != source:
            self._aliased.add(id(value))
        elif slot is not None:
            self._derived[id(value)] = slot

    def _operand(self, value: Any) -> tuple[Any, int]:
        """An operand as (the object, -1), or (None, slot) where a later launch may have another."""
        slot = self._derived.get(id(value))
        if slot is not None:
            return None, slot
        self._pin(value)
        return value, -1

    def _pin(self, value: Any) -> None:
        """Objects inside of a tuple must be the same ones."""
        if isinstance(value, tuple):
            for part in value:
                if id(part) in self._derived:
                    self._aliased.add(id(part))
                self._pin(part)

    # --- The result ---------------------------------------------------------------------------------

    def finished(self) -> tuple[list[Any], list[Any], int, bool]:
        """What the native launcher compares: the results that the launch's objects must be, steps, slots, volatile."""
        kinds = [
            ReadResult.equal
            if is_content(value)
            else ReadResult.same
            if has_identity(value) or id(value) in self._aliased
            else ReadResult.alike
            for value in self.objects
        ]
        steps = [
            (kind, operands, name, self._strict(result, value), expected, slot)
            for kind, operands, name, result, expected, slot, value in self.steps
        ]
        return kinds, steps, self._slots, self.volatile

    def _strict(self, result: ReadResult, value: Any) -> ReadResult:
        is_alike = result is ReadResult.alike
        return ReadResult.same if is_alike and id(value) in self._aliased else result


def unwrapped(value: Any) -> Any:
    """The plain value of a constexpr, however deep."""
    while isinstance(value, constexpr):
        value = value.value
    return value


def _key(value: Any) -> Any:
    return (type(value), repr(value)) if is_constant(value) else ("object", id(value))
