"""Libraries of Metal text, and their functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from . import _engine
from .reflection import FunctionInfo, parse


class Functions(Mapping[str, FunctionInfo]):
    """The kernels of a library by name. What is known about one is found out when it is asked for."""

    def __init__(self, handle: Any, names: list[str]) -> None:
        self._handle = handle
        self._known: dict[str, FunctionInfo | None] = dict.fromkeys(names)

    def __getitem__(self, name: str) -> FunctionInfo:
        info = self._known[name]
        if info is None:
            info = self._known[name] = parse(_engine.describe(self._handle, name))[0]
        return info

    def __contains__(self, name: object) -> bool:
        return name in self._known

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def __repr__(self) -> str:
        return f"<functions {', '.join(self._known)}>"


class Library:
    """Metal text without errors. Each of its kernels is compiled when it is asked for."""

    def __init__(self, handle: Any, source: str, names: list[str]) -> None:
        self.source = source
        self._handle = handle
        self._functions = Functions(handle, names)

    @property
    def functions(self) -> Mapping[str, FunctionInfo]:
        """The kernels by name, as they are without values for function constants.

        Raises CompileError if a kernel that is looked up cannot be compiled.
        """
        return self._functions

    @property
    def function_names(self) -> list[str]:
        return list(self._functions)

    def function(self, name: str, constants: Mapping[str | int, Any] | None = None) -> Function:
        """A kernel, with values for its function constants by name or index.

        A value is a number (True, 3, 0.5), or a tuple for a vector. Raises ValueError for an unknown function or
        constant, for a value that its type does not have, and if a constant that the kernel needs has none.
        """
        if not isinstance(name, str):
            raise TypeError(f"a function has a name, not {name!r}")
        if constants is not None and not isinstance(constants, Mapping):
            raise TypeError(
                f"'{name}': constants takes values by name or index, like {{'flag': True}}, not {constants!r}"
            )
        values = []
        for key, value in (constants or {}).items():
            if isinstance(key, bool) or not isinstance(key, (int, str)):
                raise TypeError(f"a function constant has a name or an index, not {key!r}")
            numbers = tuple(value) if isinstance(value, (tuple, list)) else (value,)
            plain = tuple(_number(number, name, key) for number in numbers)
            if any(isinstance(number, int) and abs(number) >> 64 for number in plain):
                raise ValueError(
                    f"'{name}': function constant {key!r}: {value!r} does not fit into 64 bits"
                )
            if isinstance(key, int) and not 0 <= key <= 65535:
                raise ValueError(
                    f"'{name}': function constant {key} does not exist: indices are 0 to 65535"
                )
            values.append((key, plain))
        handle, described = _engine.function(self._handle, name, values)
        return Function(self, handle, parse(described)[0])

    def __repr__(self) -> str:
        return f"<Library of {', '.join(self._functions) or 'no functions'}>"


class Function:
    """A kernel of a library with its function constants."""

    def __init__(self, library: Library, handle: Any, info: FunctionInfo) -> None:
        self.library = library
        self.info = info
        self._handle = handle

    @property
    def name(self) -> str:
        return self.info.name

    def __repr__(self) -> str:
        return f"<Function {self.info}>"


def _number(value: Any, function: str, key: str | int) -> Any:
    if isinstance(value, (bool, int, float)):
        return value
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        return value.item()
    raise TypeError(f"'{function}': function constant {key!r} takes a number, not {value!r}")
