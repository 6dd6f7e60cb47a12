"""Mathematical functions under libdevice's names: ``tl.extra.libdevice.erfinv(x)``."""

from __future__ import annotations

from typing import Any

from ...constexpr import unwrap
from ...libdevice import TESTS, Form, functions
from .. import types
from ..building import broadcast_all, builder, builtin, read_tensor

_DTYPES = {
    "int32": types.int32,
    "int64": types.int64,
    "uint32": types.uint32,
    "uint64": types.uint64,
    "fp32": types.float32,
    "fp64": types.float64,
}


def _function(name: str, forms: tuple[Form, ...]) -> Any:
    def function(*args):
        if len(args) != len(forms[0].arguments):
            raise TypeError(f"{name} takes {len(forms[0].arguments)} arguments, not {len(args)}")
        values = [read_tensor(f"{name}'s argument", unwrap(argument)) for argument in args]
        given = tuple(value.dtype.scalar.name for value in values)
        for form in forms:
            if form.arguments == given:
                break
        else:
            known = ", ".join(f"({', '.join(form.arguments)})" for form in forms)
            raise TypeError(f"{name} takes {known}, not ({', '.join(given)}): convert with .to()")
        result = builder().extern_elementwise(
            form.symbol, broadcast_all(values), _DTYPES[form.result]
        )
        return result.to(types.int1) if name in TESTS else result

    function.__name__ = function.__qualname__ = name
    function.__module__ = __name__
    function.__doc__ = f"libdevice's {name}; docs/libdevice.md says how exact it is."
    return builtin(function)


globals().update({name: _function(name, forms) for name, forms in functions().items()})
__all__ = sorted(functions())
