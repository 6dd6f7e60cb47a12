"""The exceptions of triton_metal."""

from __future__ import annotations

import ast
import linecache
import re
from dataclasses import dataclass
from pathlib import Path

_LANGUAGE = Path(__file__).parent / "language"


class TritonMetalError(Exception):
    """Base of every exception that this package defines."""


@dataclass(frozen=True)
class SourceLocation:
    """A place in a Python source file: line and column count from 1."""

    file: str
    line: int
    column: int
    text: str = ""
    length: int = 1

    def excerpt(self) -> str:
        """The source line with a caret under the place."""
        if not self.text:
            return ""
        stripped = self.text.rstrip("\n")
        indent = len(stripped) - len(stripped.lstrip())
        shift = self.column - 1 - indent
        width = max(1, min(self.length, len(stripped) - self.column + 1))
        return f"    {stripped[indent:]}\n    {' ' * shift}^{'~' * (width - 1)}"


class CompileError(TritonMetalError):
    """A kernel that does not compile. The message shows file, line, source and a caret."""

    def __init__(
        self,
        message: str,
        location: SourceLocation | None = None,
        callers: tuple[SourceLocation, ...] = (),
    ) -> None:
        self.message = message
        self.location = location
        self.callers = callers
        super().__init__(message)

    def called_from(self, location: SourceLocation) -> CompileError:
        """The same error, seen from a call of the function that it is in.

        What goes wrong in this language's own functions went wrong where they were called.
        """
        if self.location is not None and Path(self.location.file).parent == _LANGUAGE:
            return type(self)(self.message, location)
        return type(self)(self.message, self.location, (*self.callers, location))

    def __str__(self) -> str:
        if self.location is None:
            return self.message
        where = self.location
        lines = [f"{where.file}:{where.line}:{where.column}: {self.message}"]
        if excerpt := where.excerpt():
            lines.append(excerpt)
        for caller in self.callers:
            lines.append(f"called from {caller.file}:{caller.line}:{caller.column}")
            if excerpt := caller.excerpt():
                lines.append(excerpt)
        return "\n".join(lines)

    def __reduce__(self):
        return type(self), (self.message, self.location, self.callers)


class UnsupportedConstruct(CompileError):
    """Python that kernels do not have."""


class StaticAssertionError(CompileError):
    """A failed tl.static_assert."""


class LaunchTypeError(TritonMetalError, TypeError):
    """A launch argument of a type that the kernel cannot take."""


class LaunchValueError(TritonMetalError, ValueError):
    """A launch argument whose value the kernel cannot take."""


class CacheError(TritonMetalError, OSError):
    """A cache directory that cannot be used."""


class CacheWarning(UserWarning):
    """Compiled kernels cannot be kept on disk: each process compiles its own."""


class DeviceError(TritonMetalError, RuntimeError):
    """What a device or its compiler refused, or a check found."""


def compile_error(diagnostics: str) -> CompileError:
    """The compiler's diagnostics as an exception that shows the source."""
    match = re.match(
        r"(?P<file>.*?):(?P<line>\d+):(?P<column>\d+): error: (?P<rest>.*)", diagnostics, re.S
    )
    if match is None:
        return CompileError(diagnostics.removeprefix("error: "))
    line, column = int(match["line"]), int(match["column"])
    text = linecache.getline(match["file"], line)
    return CompileError(match["rest"], SourceLocation(match["file"], line, column, text))


def node_length(node: ast.AST) -> int:
    """Columns that a node covers on its first line."""
    end_line = getattr(node, "end_lineno", None)
    end_column = getattr(node, "end_col_offset", None)
    if end_column is None or end_line != getattr(node, "lineno", None):
        return 1
    return end_column - node.col_offset  # type: ignore[attr-defined]
