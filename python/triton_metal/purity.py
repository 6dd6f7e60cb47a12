"""Functions that run while compiling, and whose result the recorded constants determine.

If a function only computes on constants, the constants that it reads from outside determine its result; they are
recorded instead of the call. Every launch calls any other function again.
"""

from __future__ import annotations

import builtins
import dis
import inspect
import math
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, ModuleType
from typing import Any, Protocol

from .constants import MISSING, is_constant, is_own, unwrapped
from .functions import JITCallable

_BUILTINS: tuple[Any, ...] = (
    *(abs, all, any, ascii, bin, bool, bytes, chr, complex, dict, divmod, enumerate, filter, float, format),
    *(frozenset, hex, int, isinstance, len, list, map, max, min, oct, ord, pow, range, repr, reversed, round),
    *(set, slice, sorted, str, sum, tuple, zip, ArithmeticError, AssertionError, IndexError, KeyError),
    *(NotImplementedError, OverflowError, RuntimeError, TypeError, ValueError, ZeroDivisionError),
)  # fmt: skip

_LOADS = ("LOAD_GLOBAL", "LOAD_DEREF")
_REFUSED = (
    "IMPORT",
    "STORE_GLOBAL",
    "DELETE_GLOBAL",
    "DELETE_ATTR",
    "LOAD_NAME",
    "LOAD_FROM_DICT",
    "LOAD_LOCALS",
    "LOAD_BUILD_CLASS",
    "LOAD_CLASSDEREF",
    "LOAD_SUPER",
    "LOAD_SPECIAL",
    "BEFORE_WITH",
    "SETUP",
    "GET_AWAITABLE",
)


class Recorder(Protocol):
    """The interface that records reads; see `Reads` in reads.py."""

    def name(self, namespace: dict[str, Any], name: str) -> Any: ...
    def cell(self, cell: CellType) -> Any: ...
    def function(self, function: FunctionType) -> None: ...
    def attribute(self, owner: Any, name: str) -> Any: ...


class _Impure(Exception):
    """The function's code does not determine its result."""


def functions_of(kind: type) -> Iterator[Any]:
    """The functions of an aggregate's class that run while compiling: its methods, and its ``__init__``."""
    for base in kind.__mro__:
        if not getattr(base, "__triton_aggregate__", False) or is_own(base):
            continue
        for name, member in vars(base).items():
            if isinstance(member, (staticmethod, classmethod)):
                member = member.__func__
            if isinstance(member, property) and name not in base._fields:  # type: ignore[attr-defined]
                member = member.fget
            if isinstance(member, FunctionType) or type(member).__name__ == "ConstexprFunction":
                yield inspect.unwrap(member) if isinstance(member, FunctionType) else member


def record_reads(function: FunctionType, reads: Recorder) -> bool:
    """Records what a function of constants reads from outside, if that determines its result."""
    found: list[Callable[[], Any]] = []
    seen: set[int] = set()

    def take(value: Any) -> None:
        """Handles a value that the code uses."""
        value = unwrapped(value)
        if isinstance(value, JITCallable):
            value = value.function
            if is_own(value):
                return
        if is_constant(value) or _is_pure_builtin(value):
            return
        is_language = isinstance(value, type) or getattr(value, "__triton_builtin__", False)
        if is_language and is_own(value):  # which changes with the build only
            return
        if isinstance(value, type) and getattr(value, "__triton_aggregate__", False):
            if id(value) not in seen:
                seen.add(id(value))
                for member in functions_of(value):
                    take(member)
            return
        if not isinstance(value, FunctionType):
            raise _Impure
        if id(value) not in seen:
            seen.add(id(value))
            found.append(lambda: reads.function(value))
            for default in (*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()):
                take(default)
            walk(value, value.__code__)

    def walk(owner: FunctionType, code: CodeType) -> None:
        instructions = iter(list(dis.get_instructions(code)))
        cells = dict(zip(owner.__code__.co_freevars, owner.__closure__ or (), strict=True))
        for instruction in instructions:
            name = instruction.opname
            if name.startswith(_REFUSED) or str(instruction.argval).startswith("__"):
                raise _Impure
            if name.startswith(_LOADS):
                load(owner, cells, instruction.argval, instructions)
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                walk(owner, constant)

    def load(
        owner: FunctionType, cells: dict[str, Any], name: str, rest: Iterator[dis.Instruction]
    ) -> None:
        if name in cells:
            cell = cells[name]
            found.append(lambda: reads.cell(cell))
            return take(cell.cell_contents)
        namespace = owner.__globals__
        if name not in namespace and not hasattr(builtins, name):
            return None  # a variable of the function around it, in its own code
        found.append(lambda: reads.name(namespace, name))
        if name in namespace:
            value = namespace[name]
        else:
            value = getattr(builtins, name)
            found.append(lambda: reads.name(vars(builtins), name))
        while isinstance(value, ModuleType):
            following = next(rest)
            if following.opname not in ("LOAD_ATTR", "LOAD_METHOD"):
                raise _Impure
            attribute, module = following.argval, value
            value = vars(module).get(attribute, MISSING)
            found.append(lambda m=module, a=attribute: reads.attribute(m, a))
        return take(value)

    try:
        take(function)
    except (_Impure, ValueError):  # an empty cell
        return False
    for record in found:
        record()
    return True


def _is_pure_builtin(value: Any) -> bool:
    if any(value is builtin for builtin in _BUILTINS):
        return True
    return isinstance(value, BuiltinFunctionType) and getattr(math, value.__name__, None) is value
