"""Types by the names that signatures have for them."""

from __future__ import annotations

from typing import Any

from ._native import dtype
from ._utils import type_canonicalisation_dict

#: The language's names of those types whose short ones `dtype` does not take.
_FULL = {"u1": "int1"} | {
    f"{sign}{width}": f"{name}{width}"
    for sign, name in (("i", "int"), ("u", "uint"))
    for width in (8, 16, 32, 64)
}


def type_of(text: str) -> dtype:
    """The dtype that a signature names: "*fp32", "*ki8" for a pointer to constant data, "i32".

    Raises ValueError for another text.

    >>> type_of("*fp32"), type_of("u8")
    (pointer<fp32>, triton_metal.language.uint8)
    """
    if text.startswith("*"):
        is_const = text.startswith("*k")
        return dtype.pointer(type_of(text[1 + is_const :]), const=is_const)
    short = type_canonicalisation_dict.get(text, text)
    return dtype(_FULL.get(short, short))


def made_by(name: str, *arguments: Any) -> dtype:
    """What a method of `dtype` makes: pickled types name this function."""
    return getattr(dtype, name)(*arguments)
