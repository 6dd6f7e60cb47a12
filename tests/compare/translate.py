"""Stock Triton's kernels as kernels of triton_metal: the same code, whose globals are triton_metal's in place of Triton's."""

from __future__ import annotations

import ast
import enum
import importlib
from dataclasses import dataclass
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

import triton
import triton.language as stock
import triton_metal
import triton_metal.language as own
from triton.runtime.jit import ConstexprFunction as StockConstexprFunction
from triton.runtime.jit import JITFunction as StockFunction
from triton_metal.functions import ConstexprFunction, KernelFunction
from triton_metal.source import Source


class Untranslatable(Exception):
    """A kernel uses something that triton_metal does not have, or that this module cannot carry over."""


def own_module(name: str) -> ModuleType | None:
    """The module of triton_metal that stands for a module of Triton."""
    parts = name.split(".")
    if parts[0] != "triton":
        return None
    try:
        return importlib.import_module(".".join(["triton_metal", *parts[1:]]))
    except ModuleNotFoundError:
        return None


def own_dtype(kind: Any) -> Any:
    """A type of stock's language as one of triton_metal's."""
    if isinstance(kind, stock.pointer_type):
        return own.pointer_type(own_dtype(kind.element_ty), kind.const)
    if isinstance(kind, stock.block_type):
        return own.block_type(own_dtype(kind.element_ty), list(kind.shape))
    return own.dtype(kind.name)


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

    def __init__(self) -> None:
        self._made: dict[int, _Made] = {}
        self._globals: dict[int, dict[str, Any]] = {}

    def value(self, value: Any) -> Any:
        """What a global, a cell, a default or a constant of stock's is in triton_metal."""
        if value is None or isinstance(value, (bool, int, float, str, bytes)):
            return value
        known = self._made.get(id(value))
        if known is not None:
            if isinstance(value, StockFunction):
                self._refresh(known.result, value)
            return known.result
        result = self._translated(value)
        self._made.setdefault(id(value), _Made(value, result))
        return result

    def _translated(self, value: Any) -> Any:
        if isinstance(value, stock.constexpr):
            return own.constexpr(self.value(value.value))
        if isinstance(value, stock.dtype):
            return own_dtype(value)
        if isinstance(value, ModuleType):
            found = own_module(value.__name__)
            if found is not None:
                return found
            return _MappedModule(value, self) if _may_use_triton(value) else value
        named = self._by_name(value)
        if named is not None:
            return named
        if isinstance(value, StockFunction):
            return self._function(value)
        if isinstance(value, StockConstexprFunction):
            return ConstexprFunction(self._copied(value.fn))
        if isinstance(value, (tuple, stock.tuple)):
            parts = [self.value(part) for part in value]
            fields = getattr(type(value), "_fields", None)
            return type(value)(*parts) if fields else tuple(parts)
        if isinstance(value, list):
            return [self.value(part) for part in value]
        if isinstance(value, type) and value.__module__.partition(".")[0] == "triton":
            raise Untranslatable(f"triton_metal has no {value.__module__}.{value.__qualname__}")
        return value

    def _by_name(self, value: Any) -> Any:
        """What has the same name in triton_metal, for an object that Triton itself defines."""
        origin = type(value) if isinstance(value, enum.Enum) else value
        module, name = getattr(origin, "__module__", None), getattr(origin, "__name__", None)
        if not isinstance(module, str) or module.partition(".")[0] != "triton" or not name:
            return None
        places = [own_module(module), own, own.core, triton_metal]
        for place in places:
            if place is not None and hasattr(place, name):
                found = getattr(place, name)
                return found[value.name] if isinstance(value, enum.Enum) else found
        if isinstance(value, StockConstexprFunction) or (
            isinstance(value, StockFunction) and module.endswith("_internal_testing")
        ):
            return None
        raise Untranslatable(f"triton_metal has no {module}.{name}")

    def _function(self, function: StockFunction) -> KernelFunction:
        copy = FunctionType(
            function.fn.__code__,
            self._globals_of(function.fn),
            function.fn.__name__,
            None,
            tuple(CellType() for _ in function.fn.__closure__ or ()),
        )
        copy.__qualname__, copy.__module__ = function.fn.__qualname__, function.fn.__module__
        kernel = triton_metal.jit(
            do_not_specialize=function.do_not_specialize or (),
            do_not_specialize_on_alignment=function.do_not_specialize_on_alignment or (),
            noinline=bool(function.noinline),
            debug=bool(function.debug),
        )(copy)
        self._made[id(function)] = _Made(function, kernel)
        self._refresh(kernel, function)
        return kernel

    def _refresh(self, kernel: Any, function: StockFunction) -> None:
        """Takes over what may have changed: the text, cells, globals and defaults."""
        copy = kernel.function
        if copy.__globals__ is not self._globals_of(function.fn):
            return
        state = (function.src, kernel.__dict__.get("_compared"))
        if state[1] is self._round:
            return
        kernel._compared = self._round
        text = function.src
        node = ast.parse(text).body[0]
        for name in _names(node, copy.__code__):
            if name in function.fn.__globals__:
                copy.__globals__[name] = self._lazily(function.fn.__globals__[name])
        for own_cell, cell in zip(
            copy.__closure__ or (), function.fn.__closure__ or (), strict=True
        ):
            try:
                contents = cell.cell_contents
            except ValueError:
                continue
            own_cell.cell_contents = self._lazily(contents)
        copy.__defaults__ = self._all(function.fn.__defaults__)
        keywords = function.fn.__kwdefaults__
        copy.__kwdefaults__ = keywords and {k: self.value(v) for k, v in keywords.items()}
        copy.__annotations__ = {
            name: self._lazily(kind) for name, kind in function.fn.__annotations__.items()
        }
        lines = tuple(text.splitlines())
        first = function.starting_line_number
        source = Source(copy.__code__.co_filename, first, 0, text, node, lines)
        kernel._read()
        kernel._source = lambda: source

    _round: object = object()

    def next_round(self) -> None:
        """What follows may see other globals."""
        self._round = object()

    def _lazily(self, value: Any) -> Any:
        """A translation, or the value itself where there is none: the kernel may not need it."""
        try:
            return self.value(value)
        except Untranslatable:
            return value

    def _all(self, values: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
        return values and tuple(self.value(value) for value in values)

    def _globals_of(self, function: FunctionType) -> dict[str, Any]:
        known = self._globals.get(id(function.__globals__))
        if known is None:
            known = {"__builtins__": __builtins__, "__name__": function.__module__}
            self._globals[id(function.__globals__)] = known
        return known

    def _copied(self, function: Any) -> Any:
        """A Python function whose globals are translated."""
        if not isinstance(function, FunctionType):
            return function
        namespace = self._globals_of(function)
        for name in _names(None, function.__code__):
            if name in function.__globals__:
                namespace[name] = self._lazily(function.__globals__[name])
        copy = FunctionType(
            function.__code__,
            namespace,
            function.__name__,
            self._all(function.__defaults__),
            function.__closure__
            and tuple(CellType(self._lazily(cell.cell_contents)) for cell in function.__closure__),
        )
        copy.__kwdefaults__ = function.__kwdefaults__
        copy.__qualname__, copy.__module__ = function.__qualname__, function.__module__
        return copy


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


def _may_use_triton(module: ModuleType) -> bool:
    """Whether a module of the program may hold kernels."""
    return any(
        value is triton or isinstance(value, (StockFunction, stock.constexpr))
        for value in vars(module).values()
    )
