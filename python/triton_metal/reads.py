"""The reads of the walk over a kernel, which tell the next launch whether the walk would give the same module.

The walk is a function of what it reads: globals, closure cells, attributes, and the results of calls that run while
compiling. Every read is recorded with the way to repeat it. A later launch repeats the reads in order, and takes the
compiled kernel only if each has the same result. Otherwise it walks over the kernel again. The inside of an object
therefore does not matter, except for what the walk read of it. bindings/reads.cpp does the comparison.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Sequence
from types import BuiltinMethodType, CellType, FunctionType, MethodType, ModuleType
from typing import Any

from ._native import Read, ReadResult, same_content, tensor
from .constants import (
    MISSING,
    PURE,
    SCALARS,
    has_identity,
    holds_tensor,
    is_constant,
    is_content,
    is_own,
    is_structural,
    unwrapped,
)
from .constexpr import constexpr, unwrap
from .purity import record_reads
from .tuples import rebuild_tuple


class Reads:
    """The reads of one walk. ``objects`` are the launch's constants that are compared here instead of by the key."""

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
        """A variable of an enclosing function."""
        try:
            value = cell.cell_contents
        except ValueError:  # not yet assigned
            value = MISSING
        if watched:
            self._record(Read.cell, (cell,), "", value)
        return value

    def function(self, function: FunctionType) -> None:
        """A function whose source or code the walk uses."""
        if isinstance(function, FunctionType) and not is_own(function):
            self._record(Read.function, (function,), "", None)

    def attribute(self, owner: Any, name: str, watched: bool = True) -> Any:
        """An attribute of a compile-time value. Raises the same exceptions as Python."""
        if type(owner) is ModuleType and name in owner.__dict__:
            return unwrapped(self.name(owner.__dict__, name, watched))
        if isinstance(owner, tuple) and holds_tensor(owner):
            return self._attribute_of_tensors(owner, name)
        value = getattr(owner, name)
        if watched and not is_constant(owner):
            self._record(Read.attribute, (owner,), name, value)
        return unwrapped(value)

    def _attribute_of_tensors(self, owner: tuple, name: str) -> Any:
        """An attribute of a tuple that holds run-time values of this walk only."""
        found = inspect.getattr_static(type(owner), name, None)
        if type(found).__name__ == "_tuplegetter" or is_constant(found):
            self._record(Read.attribute, (type(owner),), name, getattr(type(owner), name))
        else:
            self.volatile = True
        return unwrap(getattr(owner, name))

    def call(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """The result of a call that runs while compiling."""
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
        """An immutable form of a compile-time value, for the language's functions."""
        value = unwrapped(self.unwrap(value))
        if isinstance(value, tuple):
            parts = [self.settle(part) for part in value]
            if all(map(operator.is_, parts, value)):
                return value
            return rebuild_tuple(type(value), parts)
        if isinstance(value, list):
            return self.settle(self.call(tuple, value))
        if type(value) in SCALARS or isinstance(value, tensor) or has_identity(value):
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
        """Whether a call always has the same result for these operands."""
        if not all(map(is_constant, operands)):
            return False
        if is_own(function):
            return True
        owner = getattr(function, "__self__", None)
        try:
            return function in PURE or (
                owner is not None and not isinstance(owner, ModuleType) and is_constant(owner)
            )
        except TypeError:  # an object that is not hashable
            return False

    def _is_settled(self, function: Any, operands: Sequence[Any]) -> bool:
        """Whether the recorded reads determine the result of a call, so that it need not be repeated."""
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
        """The result that a later read of this kind must have."""
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
        """Remembers the origin of an object."""
        self._kept.append(value)
        first = self._sources.setdefault(id(value), source)
        if first != source:
            self._aliased.add(id(value))
        elif slot is not None:
            self._derived[id(value)] = slot

    def _operand(self, value: Any) -> tuple[Any, int]:
        """An operand as (the object, -1), or as (None, slot) if a later launch may have another object."""
        slot = self._derived.get(id(value))
        if slot is not None:
            return None, slot
        self._pin(value)
        return value, -1

    def _pin(self, value: Any) -> None:
        """Requires that objects inside a tuple stay the same objects."""
        if isinstance(value, tuple):
            for part in value:
                if id(part) in self._derived:
                    self._aliased.add(id(part))
                self._pin(part)

    # --- The result ---------------------------------------------------------------------------------

    def finished(self) -> tuple[list[Any], list[Any], int, bool]:
        """The data for the native launcher's comparison: the kinds of the launch's objects, steps, slots, volatile."""
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


def _key(value: Any) -> Any:
    return (type(value), repr(value)) if is_constant(value) else ("object", id(value))
