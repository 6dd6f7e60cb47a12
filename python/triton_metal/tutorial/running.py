"""Runs the code of a step, and counts what its launches do."""

from __future__ import annotations

import ast
import contextlib
import io
import linecache
import sys
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TextIO

from ..errors import TritonError
from ..launcher import CompiledKernel, LaunchLog, LaunchRecord, launch_options
from .pages import Step


@dataclass
class Ran:
    """What a piece of code did."""

    output: str = ""
    launches: list[LaunchRecord] = field(default_factory=list)
    error: BaseException | None = None


class _Copy(io.TextIOBase):
    """A stream that keeps what it passes on."""

    def __init__(self, to: TextIO | None) -> None:
        self.to = to
        self.text: list[str] = []

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.text.append(text)
        if self.to is not None:
            self.to.write(text)
        return len(text)

    def flush(self) -> None:
        if self.to is not None:
            self.to.flush()


class Program:
    """The variables of a page's program, and what runs in them."""

    def __init__(self) -> None:
        self.variables: dict[str, Any] = {"__name__": "__main__"}

    def run(
        self,
        code: str,
        file: str,
        to: TextIO | None = None,
        *,
        echoes: bool = False,
        counts: bool = True,
    ) -> Ran:
        """Runs code, whose output goes to a stream too. With ``echoes``, a last expression is printed as at Python's prompt.

        What the code raises is in the result; only SystemExit passes through.
        """
        # Kernels, tracebacks and the compiler's errors read the lines here.
        linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)
        stream, result = _Copy(to), Ran()
        counting = launch_options(count=True) if counts else contextlib.nullcontext(LaunchLog())
        try:
            with contextlib.redirect_stdout(stream), counting as log, _display():
                result.launches = log.launches
                for part in _compiled(code, file, echoes):
                    exec(part, self.variables)
        except SystemExit:
            raise
        except BaseException as error:
            result.error = error
        result.output = "".join(stream.text)
        return result

    def holds(self, check: str) -> bool:
        """Whether an expression is true. Raises NameError if a name is not there yet."""
        try:
            with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return bool(eval(check, self.variables))
        except NameError:
            raise
        except Exception:
            # A wrong shape or type, say: what was to hold does not.
            return False


def _compiled(code: str, file: str, echoes: bool) -> Iterator[Any]:
    tree = ast.parse(code, file)
    last = tree.body[-1:] if echoes and tree.body and isinstance(tree.body[-1], ast.Expr) else []
    body = tree.body[: len(tree.body) - len(last)]
    if body:
        yield compile(ast.Module(body, []), file, "exec", dont_inherit=True)
    if last:
        yield compile(ast.Interactive(last), file, "single", dont_inherit=True)


@contextlib.contextmanager
def _display() -> Iterator[None]:
    """A last expression is printed, unless it is a launch: what that returns is of no interest here."""

    def display(value: Any) -> None:
        if not isinstance(value, CompiledKernel):
            before(value)

    before, sys.displayhook = sys.displayhook, display
    try:
        yield
    finally:
        sys.displayhook = before


def described(error: BaseException) -> str:
    """An error as the learner sees it: the compiler's own with its caret, others with the lines of the step."""
    if isinstance(error, TritonError):
        return f"{type(error).__name__}: {error}"
    frames = list(traceback.extract_tb(error.__traceback__))
    own = [i for i, frame in enumerate(frames) if frame.filename == __file__]
    # What is before the learner's code is ours; a SyntaxError has nothing else.
    frames = [] if isinstance(error, SyntaxError) else frames[own[-1] + 1 if own else 0 :]
    lines = (
        ["Traceback (most recent call last):\n", *traceback.format_list(frames)] if frames else []
    )
    return "".join([*lines, *traceback.format_exception_only(type(error), error)]).rstrip()


def decides(code: str, checks: Sequence[str]) -> bool:
    """Whether code without a launch is to be judged: it assigns to a name that a check asks for."""
    try:
        nodes = list(ast.walk(ast.parse(code)))
    except SyntaxError:
        return False
    assigned = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    asked = {
        n.id for check in checks for n in ast.walk(ast.parse(check)) if isinstance(n, ast.Name)
    }
    return bool(assigned & asked)


#: What is told of launches: the sums of counters.
FIGURES: dict[str, tuple[str, ...]] = {
    "bytes read": ("device_bytes_read",),
    "bytes written": ("device_bytes_written",),
    "lines": ("device_lines_read", "device_lines_written"),
    "barriers": ("threadgroup_barriers",),
    "instructions": ("simdgroup_instructions",),
}


def figures(launches: Sequence[LaunchRecord]) -> dict[str, int]:
    """The figures of launches, by name, with their number."""
    counters: list[Mapping[str, int]] = [launch.counters for launch in launches]
    return {"launches": len(launches)} | {
        name: sum(each.get(key, 0) for each in counters for key in keys)
        for name, keys in FIGURES.items()
    }


def prepare(steps: Sequence[Step]) -> Program:
    """A program after the code of some steps, which prints nothing. Raises what a step raises."""
    program = Program()
    for step in steps:
        error = program.run(step.code, step.file, counts=not step.uncounted).error
        if error is not None:
            raise error
    return program


def missing(needs: Sequence[str]) -> list[str]:
    """Those of the packages that are not installed."""
    from importlib.util import find_spec

    return [name for name in needs if name not in sys.modules and find_spec(name) is None]
