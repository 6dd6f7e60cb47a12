"""Stock Triton's kernels as kernels of triton_metal."""

from __future__ import annotations

import ast
from typing import Any

import triton_metal
import triton_metal.language as own
from front_ends import OWN, STOCK
from translate import Translator
from triton_metal.functions import KernelFunction
from triton_metal.source import Source


class ToOwn(Translator):
    """Translates what stock's kernels refer to."""

    def __init__(self) -> None:
        super().__init__(STOCK, OWN)

    def dtype(self, kind: Any) -> Any:
        if isinstance(kind, STOCK.language.pointer_type):
            return own.pointer_type(self.dtype(kind.element_ty), kind.const)
        if isinstance(kind, STOCK.language.block_type):
            return own.block_type(self.dtype(kind.element_ty), list(kind.shape))
        return own.dtype(kind.name)

    def function(self, function: Any) -> KernelFunction:
        kernel = triton_metal.jit(
            do_not_specialize=function.do_not_specialize or (),
            do_not_specialize_on_alignment=function.do_not_specialize_on_alignment or (),
            noinline=bool(function.noinline),
            debug=bool(function.debug),
        )(self.empty_copy(function.fn))
        self._note(function, kernel)
        self.refresh(kernel, function)
        return kernel

    def refresh(self, made: Any, function: Any) -> None:
        copy = made.function
        if copy.__globals__ is not self.globals_of(function.fn):
            return
        if made.__dict__.get("_compared") is self._round:
            return
        made._compared = self._round
        text = function.src
        node = ast.parse(text).body[0]
        self.fill(copy, function.fn, node)
        first = function.starting_line_number
        lines = tuple(text.splitlines())
        source = Source(copy.__code__.co_filename, first, 0, text, node, lines)
        made._read()
        made._source = lambda: source
