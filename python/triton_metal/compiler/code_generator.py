"""The front end: from a kernel's Python function to Triton IR."""

from __future__ import annotations

from typing import Any

from .. import _native
from ..generation import module_of
from ..signatures import type_of
from ..sources import ASTSource
from .errors import CompilationError, CompileTimeAssertionFailure, UnsupportedLanguageConstruct


def ast_to_ttir(
    fn: Any,
    src: ASTSource,
    context: Any = None,
    options: Any = None,
    codegen_fns: Any = None,
    module_map: Any = None,
    module: Any = None,
) -> _native.Module:
    """The Triton IR of a source, as a module whose ``str()`` is its text. ``options`` has ``debug`` and
    ``sanitize_overflow``; the rest is there because Triton's function has it.
    """
    return module_of(src, options)[0]


__all__ = [
    "CompilationError",
    "CompileTimeAssertionFailure",
    "UnsupportedLanguageConstruct",
    "ast_to_ttir",
    "module_of",
    "type_of",
]
