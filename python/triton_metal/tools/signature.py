"""Signatures of kernels that are compiled ahead of time, as they are written on a command line."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..signatures import type_of

#: The types of C for the types of scalars. Floats of 16 bits are passed as their bits.
C_TYPES = {
    "i1": "bool",
    "u1": "bool",
    **{f"i{bits}": f"int{bits}_t" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}_t" for bits in (8, 16, 32, 64)},
    "fp16": "uint16_t",
    "bf16": "uint16_t",
    "fp32": "float",
    "fp64": "double",
}

_INTEGERS = ("8", "16", "32", "64")
_DESCRIPTOR = re.compile(r"tensordesc<\s*(\w+)\s*\[\s*\d+(?:\s*,\s*\d+)*\s*\]\s*>")
_CONSTANTS = {"True": True, "False": False, "None": None}


@dataclass(frozen=True)
class Entry:
    """A parameter: its type and what is known of it (1: the number 1; 16, 8 or 4: a multiple), or the value of a constant."""

    name: str
    type: str
    hint: int | None = None
    value: Any = None

    @property
    def is_constant(self) -> bool:
        return self.type == "constexpr"


def split(text: str) -> list[str]:
    """The parts of a text between its commas, but for those in brackets.

    >>> split("*fp32:16, tensordesc<fp16[8, 8]>, 64")
    ['*fp32:16', 'tensordesc<fp16[8, 8]>', '64']
    """
    parts, depth = [""], 0
    for character in text:
        depth += (character in "([<") - (character in ")]>")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]


def read_signature(text: str, names: Sequence[str]) -> list[Entry]:
    """The entries of a signature such as ``"*fp32:16, i32:16, i32:1, 128"`` for the parameters of a kernel.

    Raises ValueError with the entry that cannot be read.
    """
    parts = split(text)
    if len(parts) != len(names):
        raise ValueError(
            f"the signature {text!r} has {len(parts)} entries, and the kernel has {len(names)} parameters: "
            f"{', '.join(names)}"
        )
    return [_entry(part, name) for part, name in zip(parts, names, strict=True)]


def _entry(part: str, name: str) -> Entry:
    if part in _CONSTANTS:
        return Entry(name, "constexpr", value=_CONSTANTS[part])
    for number in (int, float):
        try:
            return Entry(name, "constexpr", value=number(part))
        except ValueError:
            pass
    type, colon, hint = part.partition(":")
    type, hint = type.strip(), hint.strip()
    is_pointer = type.startswith(("*", "tensordesc"))
    if colon and hint not in (("16",) if is_pointer else ("1", "4", "8", "16")):
        allowed = (
            "the hint of a pointer is 16, for a multiple of 16 bytes"
            if is_pointer
            else "the hints are 1, for the number 1, and 4, 8 or 16, for a multiple"
        )
        raise ValueError(f"{name}: {part!r} has the hint {hint!r}; {allowed}")
    if type.startswith("tensordesc"):
        described = _DESCRIPTOR.fullmatch(type)
        try:
            type_of(described[1] if described else "")
        except (TypeError, ValueError):
            raise ValueError(
                f"{name}: {type!r} is no type; a descriptor's type is as tensordesc<fp16[64, 32]>, with the shape of a block"
            ) from None
    else:
        try:
            type_of(type)
        except (TypeError, ValueError):
            raise ValueError(
                f"{name}: {type!r} is no type; types are *fp32, i32, fp16, ..., and a number is a constant"
            ) from None
        if not is_pointer and type not in C_TYPES:
            raise ValueError(
                f"{name}: a program in C cannot pass a number of the type {type!r}; types of numbers are "
                f"{', '.join(C_TYPES)}"
            )
        if hint and not is_pointer and type.removeprefix("u").removeprefix("i") not in _INTEGERS:
            what = "is 1" if hint == "1" else f"is a multiple of {hint}"
            raise ValueError(
                f"{name}: {part!r} says that the argument {what}, which only integers are"
            )
    return Entry(name, type, int(hint) if colon else None)


def digest(entries: Sequence[Entry], *options: Any) -> str:
    """Eight digits that tell signatures and options apart."""
    text = " ".join(
        [f"{e.type}:{e.hint}:{e.value!r}" for e in entries] + [repr(o) for o in options]
    )
    return hashlib.sha256(text.encode()).hexdigest()[:8]
