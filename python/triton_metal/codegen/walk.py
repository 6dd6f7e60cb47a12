"""What all parts of the walk share: state, locations, errors, and the dispatch on nodes."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from typing import Any, ClassVar

from ..constants import is_own
from ..errors import CompilationError, SourceLocation, UnsupportedLanguageConstruct, node_length
from ..functions import KernelFunction
from ..language import random
from .values import ModuleState

_REFUSED = {
    ast.Try: "try: kernels have no exceptions",
    ast.Raise: "raise: kernels have no exceptions; see tl.static_assert and tl.device_assert",
    ast.ClassDef: "class definitions",
    ast.AsyncFunctionDef: "async functions",
    ast.Yield: "yield",
    ast.YieldFrom: "yield",
    ast.Await: "await",
    ast.Dict: "dictionaries: use a tuple, a NamedTuple or @triton.aggregate",
    ast.Set: "sets",
    ast.DictComp: "dictionary comprehensions",
    ast.SetComp: "set comprehensions",
    ast.GeneratorExp: "generator expressions",
    ast.Global: "global: a kernel changes nothing but memory; use tl.store",
    ast.Nonlocal: "nonlocal",
    ast.Delete: "del",
    ast.Import: "import: import modules outside the kernel",
    ast.ImportFrom: "import: import modules outside the kernel",
    ast.With: "with",
    ast.Match: "match: use if and elif",
    ast.Starred: "* in this place",
}


#: Expressions of fewer levels do not reach Python's recursion limit by themselves.
_DEEP = 100


def depth_of(node: ast.AST) -> int:
    """The levels of a syntax tree."""
    level, depth = [node], 0
    while level:
        level = [child for parent in level for child in ast.iter_child_nodes(parent)]
        depth += 1
    return depth


class Walk:
    """The walk over one function of a module."""

    visitors: ClassVar[dict[type[ast.AST], Callable[[Any, Any], Any]]] = {}

    def __init__(self, function: KernelFunction, state: ModuleState) -> None:
        self.function = function
        self.state = state
        self.builder = state.builder
        self.options = state.options
        self.scope: dict[str, Any] = {}
        self.lost: dict[str, str] = {}
        self.reads = state.reads
        self.reads.function(function.function)
        # What this package's own functions read changes with its build only.
        self.watched = not is_own(function.function)
        # Random numbers are products that wrap around.
        self.may_overflow = function.function.__module__ != random.__name__
        self.returns: list[tuple[Any, Any, ast.AST]] = []
        self.pending: dict[str, Any] = {}
        self.terminated = False
        # The loops around a statement whose break or continue is a jump, and the run-time branches around it.
        self.loops: list[Any] = []
        self.branches = 0
        #: The local functions whose bodies are being inlined, and the call whose result is not used.
        self.inlining: list[Any] = []
        self.outer_scopes: list[dict[str, Any]] = []
        self.unused: ast.AST | None = None
        self._semantic: Any = None
        source = function.source
        # A path that is no text, because of its bytes, has question marks in locations.
        self.file = source.file.encode(errors="replace").decode()
        self.line_offset = source.first_line - 1
        self.column_offset = source.indent + 1
        self.lines = source.lines

    # --- Places and errors ---------------------------------------------------------------------

    def at(self, node: ast.AST) -> None:
        """Sets the location of the following operations."""
        self.builder.set_location(
            self.file,
            self.line_offset + node.lineno,  # type: ignore[attr-defined]
            self.column_offset + node.col_offset,  # type: ignore[attr-defined]
        )

    def location(self, node: ast.AST) -> SourceLocation:
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        text = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        return SourceLocation(
            self.file,
            self.line_offset + line,
            self.column_offset + column,
            text,
            node_length(node),
            self.function.name,
            (line, column),
        )

    def error(
        self, node: ast.AST, message: str, kind: type[CompilationError] = CompilationError
    ) -> CompilationError:
        return kind(message, self.location(node), (), self.function.source.text, node)

    def unsupported(self, node: ast.AST, message: str) -> CompilationError:
        return self.error(node, message, UnsupportedLanguageConstruct)

    def called_from(self, error: CompilationError, node: ast.AST) -> CompilationError:
        """An error with the call of the function that it is in."""
        return error.called_from(self.location(node), self.function.source.text, node)

    def statements(self, body: list[ast.stmt]) -> None:
        for statement in body:
            if self.terminated:
                return
            try:
                self.visit(statement)
            except RecursionError:
                # A statement that is not deep itself is within functions that call each other.
                if depth_of(statement) < _DEEP:
                    raise
                raise self.error(
                    statement,
                    f"the expression is too deep for Python's recursion limit of {sys.getrecursionlimit()}: divide it into "
                    "several statements, or raise the limit with sys.setrecursionlimit",
                ) from None

    def visit(self, node: ast.AST) -> Any:
        method = self.visitors.get(type(node))
        try:
            if method is None:
                what = _REFUSED.get(type(node), f"{type(node).__name__} nodes")
                raise self.unsupported(node, f"kernels do not support {what}")
            return method(self, node)
        except CompilationError:
            raise
        except RecursionError:
            raise
        except (TypeError, ValueError) as error:
            raise self.error(node, str(error) or repr(error)) from error
        except Exception as error:  # of Python that runs while compiling
            raise self.error(node, f"{type(error).__name__}: {error}") from error
