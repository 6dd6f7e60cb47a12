"""The exceptions of triton_metal."""

from __future__ import annotations

import ast
import linecache
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_LANGUAGE = Path(__file__).parent / "language"


class TritonError(Exception):
    """Base of every exception that this package defines."""


@dataclass(frozen=True)
class SourceLocation:
    """A location in a Python source file. Line and column count from 1.

    ``function`` is the function that it is in, and ``position`` its place there: the line of the function's source, from 1
    on with the line of its ``def``, and the column without the function's indentation, from 0 on, as Triton counts them.
    """

    file: str
    line: int
    column: int
    text: str = ""
    length: int = 1
    function: str = ""
    position: tuple[int, int] | None = None

    def within(self) -> str:
        """The function and the place in it, "" if they are not known."""
        if self.position is None:
            return ""
        line, column = self.position
        return (
            f"in {self.function} at {line}:{column}:" if self.function else f"at {line}:{column}:"
        )

    def excerpt(self) -> str:
        """The source line with a caret under the location."""
        if not self.text:
            return ""
        stripped = self.text.rstrip("\n")
        indent = len(stripped) - len(stripped.lstrip())
        shift = self.column - 1 - indent
        width = max(1, min(self.length, len(stripped) - self.column + 1))
        return f"    {stripped[indent:]}\n    {' ' * shift}^{'~' * (width - 1)}"


class _PlacedError(TritonError):
    """An error with its location in the kernel. The message shows file, line, source and a caret."""

    def __init__(
        self,
        message: str,
        location: SourceLocation | None = None,
        callers: tuple[SourceLocation, ...] = (),
    ) -> None:
        self.error_message = message
        self.location = location
        self.callers = callers
        super().__init__(message)

    @property
    def message(self) -> str:
        """The message without location and source."""
        return self.error_message

    def __str__(self) -> str:
        if self.location is None:
            return self.error_message
        where = self.location
        place = f"{where.file}:{where.line}:{where.column}: " if where.file else ""
        lines = [f"{place}{self.error_message}", where.within(), where.excerpt()]
        for caller in self.callers:
            within = caller.within()
            lines.append(
                f"called from {caller.file}:{caller.line}:{caller.column}"
                f"{', ' + within if within else ''}"
            )
            lines.append(caller.excerpt())
        return "\n".join(filter(None, lines))

    def __reduce__(self):
        return type(self), (self.error_message, self.location, self.callers)


class CompilationError(_PlacedError):
    """An error in a kernel that prevents its compilation.

    ``error_message`` says what is wrong, ``message`` is the whole text. ``src`` is the source of the function that is to
    be changed, and ``node`` the part of its syntax tree, where the walk over the kernel found the error; else they are
    None. The arguments may be Triton's, too: ``CompilationError(src, node, error_message)``.
    """

    def __init__(
        self,
        message: str | None,
        location: SourceLocation | ast.AST | None = None,
        callers: tuple[SourceLocation, ...] | str | None = (),
        src: str | None = None,
        node: ast.AST | None = None,
    ) -> None:
        if isinstance(location, ast.AST):
            src, node = message, location
            message, callers = str(callers or ""), ()
            location = _within(src, node)
        super().__init__(str(message or ""), location, tuple(callers or ()))
        self.src = src
        self.node = node

    @property
    def message(self) -> str:
        """The whole text: the place, the message, the source and the calls."""
        return str(self)

    def called_from(
        self, location: SourceLocation, src: str | None = None, node: ast.AST | None = None
    ) -> CompilationError:
        """This error with a call of the function that it is in.

        An error in the language's own functions is reported at their call, which is ``node`` of the function ``src``.
        """
        if self.location is not None and _is_ours(self.location):
            return type(self)(self.error_message, location, (), src, node)
        if _is_ours(location):
            return self
        callers = (*self.callers, location)
        return type(self)(self.error_message, self.location, callers, self.src, self.node)

    def __reduce__(self):
        places = (self.location, self.callers)
        return type(self), (self.error_message, *places, self.src, self.node)


def _within(src: str | None, node: ast.AST) -> SourceLocation | None:
    """The location of a node in a text that is in no known file."""
    line, column = getattr(node, "lineno", None), getattr(node, "col_offset", 0)
    if line is None:
        return None
    lines = (src or "").splitlines()
    text = lines[line - 1] if line <= len(lines) else ""
    return SourceLocation("", line, column + 1, text, node_length(node), position=(line, column))


class UnsupportedLanguageConstruct(CompilationError):
    """Python that kernels do not support."""


class CompileTimeAssertionFailure(CompilationError):
    """A failed tl.static_assert."""


class GraphRefusal(CompilationError):
    """A launch that cannot become an MLX graph: its result depends on the order of its programs, or MLX lacks an operation."""


# The names that this package gave these classes first.
TritonMetalError = TritonError
CompileError = CompilationError
UnsupportedConstruct = UnsupportedLanguageConstruct
StaticAssertionError = CompileTimeAssertionFailure


class LaunchTypeError(TritonError, TypeError):
    """A launch argument of a type that the kernel cannot take."""


class LaunchValueError(TritonError, ValueError):
    """A launch argument whose value the kernel cannot take."""


class LaunchOverflowError(LaunchValueError, OverflowError):
    """An integer of more than 64 bits as a launch argument."""


class AutotunerError(TritonError):
    """A search of `autotune` that has found no configuration."""

    def __init__(self, error_message: str | None = None) -> None:
        self.error_message = error_message
        super().__init__(error_message)

    def __str__(self) -> str:
        return f"Autotuner error: {self.error_message or ''}"


class CacheError(TritonError, OSError):
    """A cache directory that cannot be used."""


class CacheWarning(UserWarning):
    """A warning that compiled kernels cannot be kept on disk, so that each process compiles its own."""


class DeviceError(_PlacedError, RuntimeError):
    """An error from a device or its compiler, or a failed check."""


class DeviceAssertionError(DeviceError):
    """A failed tl.device_assert.

    ``program`` is the position in the grid of the program that failed, and ``index`` the element of the condition
    that was false; it is empty for a scalar. Other programs of the launch have run to their end.
    """

    program: tuple[int, int, int] = (0, 0, 0)
    index: tuple[int, ...] = ()

    def __reduce__(self):
        return _assertion, (
            self.error_message,
            self.location,
            self.callers,
            self.program,
            self.index,
        )


def _assertion(
    message: str, location: Any, callers: Any, program: Any, index: Any
) -> DeviceAssertionError:
    error = DeviceAssertionError(message, location, callers)
    error.program, error.index = program, index
    return error


class LostPrintsWarning(UserWarning):
    """A warning that a launch printed more than its buffer holds."""


class DeviceRefusal(DeviceError):
    """Apple's compiler or GPU refused a kernel or ended a launch.

    ``kind`` says which kind of refusal it is (refusals.py lists them), ``framework`` is "mlx" or "mps", and ``said`` is
    the framework's whole message.
    """

    def __init__(
        self,
        message: str,
        location: SourceLocation | None = None,
        callers: tuple[SourceLocation, ...] = (),
        *,
        kind: str = "text",
        framework: str = "",
        said: str = "",
    ) -> None:
        super().__init__(message, location, callers)
        self.kind = kind
        self.framework = framework
        self.said = said

    def __reduce__(self):
        fields = {"kind": self.kind, "framework": self.framework, "said": self.said}
        return _refusal, (self.error_message, self.location, self.callers, fields)


def _refusal(message: str, location: Any, callers: Any, fields: dict[str, str]) -> DeviceRefusal:
    return DeviceRefusal(message, location, callers, **fields)


class RefusalWarning(UserWarning):
    """A warning that a kernel runs in another form because Apple's compiler or GPU refused the first one."""


def launch_error(name: str, compiled: Any, message: str) -> DeviceError:
    """An error of a launch on the host device, with the Python line that the Metal line comes from."""
    places = _source_of(getattr(getattr(compiled, "metadata", None), "text", None), message)
    places = outside_language(places)
    if not places:
        return DeviceError(f"{name}: {message}")
    return DeviceError(f"{name}: {message}", places[0], tuple(places[1:]))


def kernel_places(metadata: Any, message: str = "") -> list[SourceLocation]:
    """The Python location of a kernel, or of the access that a message of Apple's compiler is about, and its callers."""
    text = getattr(metadata, "text", None)
    if not isinstance(text, dict) or "source" not in text:
        return []
    frames = text["source"]
    if match := re.search(r"program_source:(\d+):(\d+): error:", message):
        at_line = [place for place in text.get("places", ()) if place[0] == int(match[1])]
        if at_line:
            frames = at_line[0][3]
    return outside_language(_located(text, frames))


def outside_language(places: list[SourceLocation]) -> list[SourceLocation]:
    """The places without those in the language's own functions: an error there is reported at their call."""
    while len(places) > 1 and _is_ours(places[0]):
        places = places[1:]
    return places


def _source_of(text: dict[str, Any] | None, message: str) -> list[SourceLocation]:
    """The location in the source of a message about the Metal text, and those of the calls that lead to it."""
    if not text or "places" not in text:
        return []
    frames = text["source"]
    # A function in front of the kernel has no places of its own: what counts is its call.
    pattern = (
        r"kernel '[^']*', line (?:\d+:\d+ \(called in line )?(\d+):(\d+)\)?: "
        r"(?:an? (load|store|atomic))?"
    )
    if match := re.match(pattern, message):
        line, column, kind = int(match[1]), int(match[2]), match[3] or "barrier"
        accesses = [place for place in text["places"] if place[0] == line]
        accesses = [place for place in accesses if place[2] == kind] or accesses
        # The last access that begins there or before.
        begun = [place for place in accesses if place[1] <= column] or accesses
        if begun:
            frames = begun[-1][3]
    elif "faulted" not in message:
        return []
    return _located(text, frames)


def _located(text: dict[str, Any], frames: list[int]) -> list[SourceLocation]:
    """The frames of a launch contract as locations."""
    located = []
    for file, line, column in zip(frames[::3], frames[1::3], frames[2::3], strict=True):
        name = text["files"][file]
        located.append(SourceLocation(name, line, column, linecache.getline(name, line)))
    return located


_PLACE = r"(?P<file>[^\n]*?):(?P<line>\d+):(?P<column>\d+): "
_ERROR = re.compile(_PLACE + r"error: (?P<rest>.*)", re.S)
_CALLER = re.compile(r"\n" + _PLACE + "note: called from here")


def compile_error(
    diagnostics: str, kind: type[CompilationError] = CompilationError
) -> CompilationError:
    """The compiler's diagnostics as an exception of a kind that shows the source.

    An error in the language's own functions is reported at their call.
    """
    match = _ERROR.match(diagnostics)
    if match is None:
        return kind(diagnostics.removeprefix("error: "))
    places = [_location(match)]
    message, found = match["rest"], _CALLER.search(match["rest"])
    while found is not None:
        places.append(_location(found))
        message = message[: found.start()] + message[found.end() :]
        found = _CALLER.search(message)
    places = [place for place in places if not _is_ours(place)] or places[:1]
    return kind(message, places[0], tuple(places[1:]))


def _is_ours(place: SourceLocation) -> bool:
    """Whether a location is in the functions of the language that are written in the language."""
    return Path(place.file).parent == _LANGUAGE


def _location(match: re.Match[str]) -> SourceLocation:
    line, column = int(match["line"]), int(match["column"])
    return SourceLocation(match["file"], line, column, linecache.getline(match["file"], line))


def node_length(node: ast.AST) -> int:
    """The number of columns that a node covers on its first line."""
    end_line = getattr(node, "end_lineno", None)
    end_column = getattr(node, "end_col_offset", None)
    if end_column is None or end_line != getattr(node, "lineno", None):
        return 1
    return end_column - node.col_offset  # type: ignore[attr-defined]


class OutOfResources(TritonError):
    """A kernel that needs more of something than the device has. Autotuning passes over such a configuration.

    ``name`` says of what ("shared memory", "threads"), ``required`` how much, and ``limit`` how much there is.
    """

    def __init__(self, required: int, limit: int, name: str) -> None:
        self.required = required
        self.limit = limit
        self.name = name
        super().__init__(required, limit, name)

    def __str__(self) -> str:
        return (
            f"out of resource: {self.name}, Required: {self.required}, Hardware limit: {self.limit}. "
            "Smaller blocks or a smaller num_stages need less"
        )

    def __reduce__(self):
        return type(self), (self.required, self.limit, self.name)


class DoesNotFit(CompilationError, OutOfResources):
    """A kernel that needs more than the device has, with its place in the source."""

    def __init__(
        self,
        message: str,
        location: SourceLocation | None = None,
        callers: tuple[SourceLocation, ...] = (),
        excess: tuple[int, int, str] = (0, 0, ""),
    ) -> None:
        Exception.__init__(self, message)
        self.error_message, self.location, self.callers = message, location, callers
        self.src = self.node = None
        self.required, self.limit, self.name = excess

    __str__ = CompilationError.__str__

    def __reduce__(self):
        excess = (self.required, self.limit, self.name)
        return type(self), (self.error_message, self.location, self.callers, excess)
