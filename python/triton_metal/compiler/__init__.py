"""Compilation without a launch."""

from .text import CompiledText, compile_ttir

__all__ = ["CompiledText", "compile_ttir"]
