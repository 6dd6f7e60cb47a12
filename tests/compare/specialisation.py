"""The module that triton_metal generates for a specialisation of its own or of stock Triton's."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import triton
from translate import Translator
from triton_metal import _native
from triton_metal.generation import module_of
from triton_metal.sources import ASTSource


def generate(source: Any, options: Any, translator: Translator | None = None) -> _native.Module:
    """The module of an ``ASTSource``: of one of stock's with a translator."""
    debug = options.debug
    if translator is not None:
        translator.next_round()
        debug = debug or triton.knobs.runtime.debug
        source = ASTSource(
            translator.value(source.fn),
            source.signature,
            {path: translator.value(value) for path, value in source.constants.items()},
            source.attrs,
        )
    choices = SimpleNamespace(debug=bool(debug), sanitize_overflow=bool(options.sanitize_overflow))
    return module_of(source, choices, as_descriptors=True)[0]
