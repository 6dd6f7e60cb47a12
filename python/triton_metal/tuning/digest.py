"""A digest of everything that a kernel is compiled from: its text, and the functions and values that it names."""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

from ..constants import is_own, unwrapped
from ..functions import JITCallable, KernelFunction

_PLAIN = (type(None), bool, int, float, complex, str, bytes)


def _codes(code: CodeType) -> Iterator[CodeType]:
    """A function's code, and that of the functions in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


class _Digest:
    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._seen: dict[int, Any] = {}

    def text(self, *parts: object) -> None:
        for part in parts:
            data = str(part).encode()
            self._hash.update(f"{len(data)} ".encode() + data)

    def value(self, name: str, value: Any, names: frozenset[str]) -> None:
        """A value that code with these names refers to."""
        value = unwrapped(value)
        self.text(name, type(value).__name__)
        if isinstance(value, _PLAIN):
            self.text(repr(value))
            return
        if id(value) in self._seen:
            return
        self._seen[id(value)] = value
        if isinstance(value, JITCallable):
            self.callable(value)
        elif isinstance(value, FunctionType):
            if not is_own(value):
                self.function(value)
        elif isinstance(value, functools.partial):
            self.value("func", value.func, names)
            self.value("args", value.args, names)
            self.value("keywords", value.keywords, names)
        elif isinstance(value, (tuple, list, set, frozenset)):
            for part in value if isinstance(value, (tuple, list)) else sorted(value, key=repr):
                self.value("", part, names)
        elif isinstance(value, dict):
            for key, part in value.items():
                self.value(repr(key), part, names)
        elif isinstance(value, (ModuleType, type)) or hasattr(value, "__dict__"):
            # Only what the code may ask for: it reads attributes by names that it contains.
            members = vars(value)
            for member in sorted(names & members.keys()):
                if not (isinstance(value, ModuleType) and isinstance(members[member], ModuleType)):
                    self.value(member, members[member], names)
        else:
            self.text(repr(value))

    def callable(self, function: JITCallable) -> None:
        if is_own(function.function):
            return  # the build is in the key
        if isinstance(function, KernelFunction):
            self.text(function.source.text)
        self.function(function.function)

    def function(self, function: Any) -> None:
        if not isinstance(function, FunctionType):
            self.text(repr(function))
            return
        codes = list(_codes(function.__code__))
        names = frozenset(name for code in codes for name in code.co_names)
        for code in codes:
            constants = [c for c in code.co_consts if not isinstance(c, CodeType)]
            self.text(code.co_code.hex(), code.co_names, code.co_varnames, constants)
        self.value("defaults", function.__defaults__, names)
        self.value("keywords", function.__kwdefaults__, names)
        variables = inspect.getclosurevars(function)
        for found in (variables.nonlocals, variables.globals):
            for name, value in sorted(found.items()):
                self.value(name, value, names)
        # What only the functions inside name.
        for name in sorted(names - variables.globals.keys()):
            if name in function.__globals__:
                self.value(name, function.__globals__[name], names)

    def finished(self) -> str:
        return self._hash.hexdigest()


def digest_of(*functions: Any) -> str:
    """A digest that changes with the functions' texts and with what they refer to, however far away."""
    digest = _Digest()
    for function in functions:
        digest.value("", function, frozenset())
    return digest.finished()
