"""Stock Triton's libdevice on Metal: ``tl.extra.libdevice`` has its functions from here."""

from __future__ import annotations

from typing import Any

from triton.language import core
from triton_metal.libdevice import Form, functions


def _function(name: str, forms: tuple[Form, ...]) -> Any:
    symbols = {
        tuple(core.dtype(argument) for argument in form.arguments): (
            form.symbol,
            core.dtype(form.result),
        )
        for form in forms
    }

    def function(*args: Any, _semantic: Any = None) -> Any:
        return core.extern_elementwise(
            "", "", list(args), symbols, is_pure=True, _semantic=_semantic
        )

    function.__name__ = function.__qualname__ = name
    function.__module__ = __name__
    return core.extern(function)


globals().update({name: _function(name, forms) for name, forms in functions().items()})
