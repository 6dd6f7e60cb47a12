"""Kernels of one of the two front ends as kernels of the other: the same code, whose globals are the other's."""

from __future__ import annotations

import ast
import enum
import importlib
from dataclasses import dataclass
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any


class Untranslatable(Exception):
    """A kernel uses something that the other front end does not have, or that this module cannot carry over."""


@dataclass(frozen=True)
class FrontEnd:
    """The names of a front end."""

    name: str  # of its package
    top: ModuleType
    language: ModuleType
    function: type
    constexpr_function: type

    def module(self, name: str) -> ModuleType | None:
        """Its module that stands for another front end's of this name."""
        try:
            return importlib.import_module(".".join([self.name, *name.split(".")[1:]]))
        except ModuleNotFoundError:
            return None

    def has(self, module: Any) -> bool:
        """Whether a module of this name is its own."""
        return isinstance(module, str) and module.partition(".")[0] == self.name


class _MappedModule(ModuleType):
    """A program's module whose attributes are translated when a kernel reads them."""

    def __init__(self, module: ModuleType, translator: Translator) -> None:
        super().__init__(module.__name__)
        self.__dict__["_module"] = module
        self.__dict__["_translator"] = translator

    def __getattr__(self, name: str) -> Any:
        return self._translator.value(getattr(self._module, name))


@dataclass
class _Made:
    source: Any
    result: Any


class Translator:
    """Translates what kernels refer to. Each object has one translation."""

    def __init__(self, given: FrontEnd, wanted: FrontEnd) -> None:
        self._given, self._wanted = given, wanted
        self._made: dict[int, _Made] = {}
        self._globals: dict[int, dict[str, Any]] = {}
        self._round: object = object()

    # --- What each direction has of its own -----------------------------------------------------------

    def dtype(self, kind: Any) -> Any:
        """A type of the language."""
        raise NotImplementedError

    def function(self, function: Any) -> Any:
        """A @jit function."""
        raise NotImplementedError

    def refresh(self, made: Any, function: Any) -> None:
        """Takes over what may have changed since the function was translated."""

    # --------------------------------------------------------------------------------------------------

    def next_round(self) -> None:
        """What follows may see other globals."""
        self._round = object()

    def value(self, value: Any) -> Any:
        """What a global, a cell, a default or a constant is in the other front end."""
        if value is None or isinstance(value, (bool, int, float, str, bytes)):
            return value
        known = self._made.get(id(value))
        if known is not None:
            if isinstance(value, self._given.function):
                self.refresh(known.result, value)
            return known.result
        result = self._translated(value)
        self._note(value, result)
        return result

    def _note(self, value: Any, result: Any) -> None:
        self._made.setdefault(id(value), _Made(value, result))

    def _translated(self, value: Any) -> Any:
        given, wanted = self._given, self._wanted
        if isinstance(value, given.language.constexpr):
            return wanted.language.constexpr(self.value(value.value))
        if isinstance(value, given.language.dtype):
            return self.dtype(value)
        if isinstance(value, ModuleType):
            if given.has(value.__name__):
                found = wanted.module(value.__name__)
                if found is not None:
                    return found
            return _MappedModule(value, self) if self._may_hold_kernels(value) else value
        named = self._by_name(value)
        if named is not None:
            return named
        if isinstance(value, given.function):
            return self.function(value)
        if isinstance(value, given.constexpr_function):
            return wanted.constexpr_function(self._copied(value.fn))
        if isinstance(value, (tuple, given.language.tuple)):
            parts = [self.value(part) for part in value]
            fields = getattr(type(value), "_fields", None)
            return type(value)(*parts) if fields else tuple(parts)
        if isinstance(value, list):
            return [self.value(part) for part in value]
        if isinstance(value, type) and given.has(value.__module__):
            raise Untranslatable(f"{wanted.name} has no {value.__module__}.{value.__qualname__}")
        return value

    def _by_name(self, value: Any) -> Any:
        """What has the same name there, for an object that the front end itself defines."""
        origin = type(value) if isinstance(value, enum.Enum) else value
        module, name = getattr(origin, "__module__", None), getattr(origin, "__name__", None)
        if not self._given.has(module) or not name:
            return None
        wanted = self._wanted
        for place in (wanted.module(module), wanted.language, wanted.language.core, wanted.top):
            if place is not None and hasattr(place, name):
                found = getattr(place, name)
                return found[value.name] if isinstance(value, enum.Enum) else found
        if isinstance(value, self._given.constexpr_function) or (
            isinstance(value, self._given.function) and module.endswith("_internal_testing")
        ):
            return None
        raise Untranslatable(f"{wanted.name} has no {module}.{name}")

    def lazily(self, value: Any) -> Any:
        """A translation, or the value itself where there is none: the kernel may not need it."""
        try:
            return self.value(value)
        except Untranslatable:
            return value

    def all_of(self, values: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
        return values and tuple(self.value(value) for value in values)

    def globals_of(self, function: FunctionType) -> dict[str, Any]:
        """The globals of the copies of functions that have the same globals."""
        known = self._globals.get(id(function.__globals__))
        if known is None:
            known = {"__builtins__": __builtins__, "__name__": function.__module__}
            self._globals[id(function.__globals__)] = known
        return known

    def empty_copy(self, function: FunctionType) -> FunctionType:
        """The same code, with cells that hold nothing yet: functions may name each other."""
        copy = FunctionType(
            function.__code__,
            self.globals_of(function),
            function.__name__,
            None,
            tuple(CellType() for _ in function.__closure__ or ()),
        )
        copy.__qualname__, copy.__module__ = function.__qualname__, function.__module__
        return copy

    def fill(self, copy: FunctionType, function: FunctionType, node: ast.AST | None) -> None:
        """Gives a copy the globals that it names, its cells, defaults and annotations."""
        for name in _names(node, copy.__code__):
            if name in function.__globals__:
                copy.__globals__[name] = self.lazily(function.__globals__[name])
        cells = zip(copy.__closure__ or (), function.__closure__ or (), strict=True)
        for own_cell, cell in cells:
            try:
                contents = cell.cell_contents
            except ValueError:
                continue
            own_cell.cell_contents = self.lazily(contents)
        copy.__defaults__ = self.all_of(function.__defaults__)
        keywords = function.__kwdefaults__
        copy.__kwdefaults__ = keywords and {k: self.value(v) for k, v in keywords.items()}
        copy.__annotations__ = {
            name: self.lazily(kind) for name, kind in function.__annotations__.items()
        }

    def _copied(self, function: Any) -> Any:
        """A Python function whose globals are translated."""
        if not isinstance(function, FunctionType):
            return function
        copy = self.empty_copy(function)
        self.fill(copy, function, None)
        return copy

    def _may_hold_kernels(self, module: ModuleType) -> bool:
        """Whether a module of the program may hold kernels."""
        kinds = (self._given.function, self._given.language.constexpr)
        return any(
            value is self._given.top or isinstance(value, kinds) for value in vars(module).values()
        )


def _names(node: ast.AST | None, code: CodeType) -> set[str]:
    """The names that a function's text and code read."""
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _names(None, constant)
    if node is not None:
        for child in ast.walk(node):
            if isinstance(child, ast.Name):
                found.add(child.id)
            elif isinstance(child, ast.Constant) and isinstance(child.value, str):
                found.add(child.value.partition(".")[0])
    return found
