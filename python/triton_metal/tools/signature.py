"""Signatures and grids of kernels that are compiled ahead of time, as they are written on a command line."""

from __future__ import annotations

import ast
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
    hints = ("1", "16") if type.startswith(("*", "tensordesc")) else ("1", "4", "8", "16")
    if colon and hint not in hints:
        raise ValueError(
            f"{name}: {part!r} has the hint {hint!r}; the hints are 1, for the number 1, and {' or '.join(hints[1:])}, "
            "for a multiple"
        )
    if not type.startswith("tensordesc<"):
        try:
            type_of(type)
        except (TypeError, ValueError):
            raise ValueError(
                f"{name}: {type!r} is no type; types are *fp32, i32, fp16, ..., and a number is a constant"
            ) from None
        if hint in ("1", "4", "8") and type.removeprefix("u").removeprefix("i") not in _INTEGERS:
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


_C_OPERATORS = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "/",
    ast.Mod: "%",
}


def read_grid(text: str, scalars: Sequence[str], constants: dict[str, Any]) -> list[str]:
    """The sizes of a grid as expressions of C, from a text such as ``"(n + BLOCK - 1) / BLOCK, 1, 1"``.

    They may name integer parameters and constants, and call ``cdiv``, ``min`` and ``max``; all divisions are of integers.
    """
    parts = split(text)
    if not 1 <= len(parts) <= 3:
        raise ValueError(f"the grid {text!r} has {len(parts)} sizes; it has 1 to 3")

    def emit(node: ast.AST) -> str:
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return f"INT64_C({node.value})"
        if isinstance(node, ast.Name) and node.id in scalars:
            return f"(int64_t){identifier(node.id)}"
        if isinstance(node, ast.Name) and type(constants.get(node.id)) is int:
            return f"INT64_C({constants[node.id]})"
        if isinstance(node, ast.BinOp) and type(node.op) in _C_OPERATORS:
            return f"({emit(node.left)} {_C_OPERATORS[type(node.op)]} {emit(node.right)})"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 2:
            a, b = map(emit, node.args)
            if node.func.id == "cdiv":
                return f"(({a} + {b} - 1) / {b})"
            if node.func.id in ("min", "max"):
                return f"({a} {'<' if node.func.id == 'min' else '>'} {b} ? {a} : {b})"
        known = ", ".join([*scalars, *constants]) or "none"
        raise ValueError(
            f"the grid {text!r} holds {ast.unparse(node)!r}: its sizes are integers, parameters ({known}), + - * / %, "
            "cdiv, min and max"
        )

    sizes = []
    for part in parts:
        try:
            sizes.append(emit(ast.parse(part, mode="eval").body))
        except SyntaxError:
            raise ValueError(f"the grid {text!r} holds {part!r}, which is no expression") from None
    return [*sizes, *["INT64_C(1)"] * (3 - len(sizes))]


#: Names that C, Objective-C or the headers' own functions have taken.
_TAKEN = frozenset(
    [
        "auto",
        "bool",
        "break",
        "case",
        "char",
        "const",
        "continue",
        "default",
        "do",
        "double",
        "else",
        "enum",
        "extern",
        "float",
        "for",
        "goto",
        "id",
        "if",
        "inline",
        "int",
        "long",
        "register",
        "restrict",
        "return",
        "self",
        "short",
        "signed",
        "sizeof",
        "static",
        "struct",
        "super",
        "switch",
        "typedef",
        "union",
        "unsigned",
        "void",
        "volatile",
        "while",
        "algorithm",
        "encoder",
        "grid",
        "numbers",
        "packed",
        "pipeline",
        "pipelines",
        "size_0",
        "size_1",
        "size_2",
    ]
)


def identifier(name: str) -> str:
    """A name as one of C.

    >>> identifier("x.shape.0"), identifier("int")
    ('x_shape_0', 'int_')
    """
    name = re.sub(r"\W", "_", name)
    return f"{name}_" if name in _TAKEN else name
