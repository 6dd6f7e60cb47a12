"""Kernels of triton_metal as stock Triton's."""

from __future__ import annotations

from typing import Any

import triton
from front_ends import OWN, STOCK
from translate import Translator


class ToStock(Translator):
    """Translates what kernels of triton_metal refer to."""

    def __init__(self) -> None:
        super().__init__(OWN, STOCK)

    def dtype(self, kind: Any) -> Any:
        if kind.is_ptr():
            return STOCK.language.pointer_type(self.dtype(kind.element_ty), const=kind.is_const())
        if kind.is_block():
            return STOCK.language.block_type(self.dtype(kind.element_ty), list(kind.shape))
        return STOCK.language.dtype(kind.name)

    def function(self, function: Any) -> Any:
        copy = self.empty_copy(function.fn)
        # Stock reads the annotations and defaults of parameters when it makes the kernel.
        for name in ("__defaults__", "__kwdefaults__"):
            setattr(copy, name, getattr(function.fn, name))
        copy.__annotations__ = {
            name: self.lazily(kind) for name, kind in function.fn.__annotations__.items()
        }
        kernel = triton.jit(
            do_not_specialize=function.do_not_specialize,
            do_not_specialize_on_alignment=function.do_not_specialize_on_alignment,
            noinline=function.noinline,
            debug=function.debug,
        )(copy)
        self._note(function, kernel)
        if kernel.src != function.src:
            kernel._unsafe_update_src(function.src)
        self.refresh(kernel, function)
        return kernel

    def refresh(self, made: Any, function: Any) -> None:
        if made.__dict__.get("_compared") is not self._round:
            made._compared = self._round
            made.hash = None
            self.fill(made.fn, function.fn, function.source.node)
