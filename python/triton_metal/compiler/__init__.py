"""Compilation without a launch."""

from .compiler import (
    ASTSource,
    CompiledKernel,
    IRSource,
    LazyDict,
    compile,
    get_cache_key,
    make_backend,
    max_shared_mem,
)
from .errors import CompilationError
from .text import CompiledText, compile_ttir

__all__ = [
    "ASTSource",
    "CompilationError",
    "CompiledKernel",
    "CompiledText",
    "IRSource",
    "LazyDict",
    "compile",
    "compile_ttir",
    "get_cache_key",
    "make_backend",
    "max_shared_mem",
]
