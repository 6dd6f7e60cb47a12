"""The values of the walk over a kernel: compile-time values, run-time values, and tuples of both."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from .._native import Builder, dtype, tensor
from ..language.blocks import BLOCKS
from ..reads import Reads
from ..tuples import rebuild_tuple


@dataclass(frozen=True)
class CodegenOptions:
    """Options of the walk."""

    debug: bool = False
    """Assertions are checked at run time."""
    sanitize_overflow: bool = True
    """With ``debug``, additions, subtractions and products of integers are checked, too."""


@dataclass
class BoundMethod:
    """``x.sum``: a function of the language with its tensor."""

    function: Any
    value: Any


@dataclass(eq=False)
class LocalFunction:
    """A lambda, or a function that is defined in a kernel. Its calls are inlined."""

    node: ast.Lambda | ast.FunctionDef
    walk: Any
    scope: dict[str, Any]
    defaults: tuple[Any, ...]
    keyword_defaults: dict[str, Any]

    @property
    def name(self) -> str:
        return getattr(self.node, "name", "lambda")


@dataclass(frozen=True)
class PythonFunction:
    """A function of an aggregate that is plain Python: it runs while compiling, on values of kernels."""

    function: Any


@dataclass
class FunctionResult:
    """A finished function: its symbol, and the structure of what it returns."""

    symbol: str
    template: Any


@dataclass
class ModuleState:
    """State that the functions of one module share."""

    builder: Builder
    options: CodegenOptions
    reads: Reads
    functions: dict[Any, FunctionResult | None] = field(default_factory=dict)
    symbols: set[str] = field(default_factory=set)
    constants: list[Any] = field(default_factory=list)  # kept alive while keys hold their ids


class RuntimeLeaf:
    """In a template: a run-time value of this type. ``flags`` are attributes, where it is an argument of the kernel."""

    __slots__ = ("flags", "type")

    def __init__(self, type: dtype, flags: dict[str, bool] | None = None) -> None:
        self.type = type
        self.flags = flags or {}


@dataclass(frozen=True)
class Memory:
    """What a launch knows about an array's memory."""

    number: int = 0  # arrays with one number may overlap; 0 overlaps with none
    same_as: str = ""  # an earlier argument that is the very same array


def is_runtime(value: Any) -> bool:
    """Whether a value, or a part of a tuple, is only known at run time."""
    if isinstance(value, tuple):
        return any(is_runtime(v) for v in value)
    return isinstance(value, tensor)


def flatten(value: Any, into: list[tensor]) -> list[tensor]:
    """The run-time values in a value, in order."""
    if isinstance(value, tuple):
        for element in value:
            flatten(element, into)
    elif isinstance(value, tensor):
        into.append(value)
    return into


def template_of(value: Any) -> Any:
    """A value with its run-time parts replaced by their types."""
    if isinstance(value, tuple):
        return rebuild_tuple(type(value), [template_of(v) for v in value])
    return RuntimeLeaf(value.type) if isinstance(value, tensor) else value


def fill(template: Any, values: Iterable[tensor]) -> Any:
    """The inverse of template_of."""
    values = iter(values)

    def build(part: Any) -> Any:
        if isinstance(part, tuple):
            return rebuild_tuple(type(part), [build(p) for p in part])
        return next(values) if isinstance(part, RuntimeLeaf) else part

    return build(template)


def describe(value: Any) -> str:
    """A value's type, for messages."""
    if isinstance(value, tensor):
        return str(value)
    if isinstance(value, RuntimeLeaf):
        return str(value.type)
    if isinstance(value, BLOCKS):
        return f"a {type(value).__name__} with blocks {value.block_shape} of {value.contents}"
    if isinstance(value, tuple):
        return "(" + ", ".join(describe(v) for v in value) + ")"
    if isinstance(value, (bool, int, float, str)) or value is None:
        return f"constexpr {value!r}"
    return f"{type(value).__name__} {getattr(value, '__name__', value)!s}"


_assigned_cache: dict[int, tuple[ast.AST, frozenset[str]]] = {}


def assigned_names(node: ast.AST) -> frozenset[str]:
    """The names that a statement's body binds."""
    cached = _assigned_cache.get(id(node))
    if cached is not None and cached[0] is node:
        return cached[1]
    names = frozenset(
        child.id
        for child in ast.walk(node)
        if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store)
    )
    _assigned_cache[id(node)] = (node, names)
    return names


def contains_jump(node: ast.AST) -> bool:
    """Whether a return, break or continue stands in a statement."""
    return any(isinstance(child, (ast.Return, ast.Break, ast.Continue)) for child in ast.walk(node))
