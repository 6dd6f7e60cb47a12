"""Threadgroup memory over a kernel's text: where its buffers are, and from which line to which each holds something."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

_ALLOCATION = re.compile(r'msl\.alloc "([^"]+)", (\d+) at (\d+) : <([^,]+), threadgroup>')
_DERIVED = re.compile(r"^\s*threadgroup (?:const )?\w+ \*(\w+) = (.*);$")
_SIZES = {
    "f16": 2, "bf16": 2, "i16": 2, "f32": 4, "i32": 4, "i64": 8, "f64": 8, "i8": 1, "i1": 1,
}  # fmt: skip


@dataclass(frozen=True)
class Buffer:
    """A buffer of threadgroup memory: its place in bytes, and the lines of the Metal text from its first use to its last."""

    name: str
    type: str
    offset: int
    bytes: int
    first: int
    last: int
    #: All lines that use it.
    lines: tuple[int, ...]


def buffers_of(kernel: Any) -> list[Buffer]:
    """The buffers of a kernel in the order of their first use."""
    if not kernel.metadata.threadgroup_bytes:
        return []
    metal = kernel.asm["metal"].split("\n")
    result = []
    for name, count, offset, type in _ALLOCATION.findall(kernel.asm["msl"]):
        lines = _uses(metal, name)
        if not lines:
            continue
        first, last = _live(metal, lines)
        size = int(count) * size_of(type)
        result.append(Buffer(name, type, int(offset), size, first, last, tuple(lines)))
    return sorted(result, key=lambda buffer: (buffer.first, buffer.offset))


def size_of(type: str) -> int:
    """The bytes of an element."""
    vector = re.fullmatch(r"vector<(\d+)x(\w+)>", type)
    if vector:
        return int(vector[1]) * size_of(vector[2])
    if type in _SIZES:
        return _SIZES[type]
    digits = re.search(r"(\d+)", type)
    return max(1, int(digits[1]) // 8) if digits else 1


def _uses(metal: list[str], name: str) -> list[int]:
    """The lines that access a buffer, by its own name or a pointer into it; declarations of pointers are none."""
    names, lines = {name}, []
    for number, text in enumerate(metal, 1):
        derived = _DERIVED.match(text)
        if derived:
            if derived[1] != name and any(_mentions(derived[2], one) for one in names):
                names.add(derived[1])
            continue
        if any(_mentions(text, one) for one in names):
            lines.append(number)
    return lines


def _mentions(text: str, name: str) -> bool:
    return re.search(rf"\b{re.escape(name)}\b", text) is not None


def _live(metal: list[str], lines: list[int]) -> tuple[int, int]:
    """From the first use to the last, or to the end of a loop that uses what was there before it."""
    first, last = lines[0], lines[-1]
    for begin, end in _loops(metal):
        if first < begin and any(begin <= line <= end for line in lines):
            last = max(last, end)
    return first, last


def _loops(metal: list[str]) -> list[tuple[int, int]]:
    """The first and the last line of each loop with braces."""
    result, open_lines = [], []
    for number, text in enumerate(metal, 1):
        stripped = text.strip()
        if stripped.startswith("}") and open_lines:
            begin, is_loop = open_lines.pop()
            if is_loop:
                result.append((begin, number))
        if stripped.endswith("{"):
            open_lines.append((number, stripped.startswith(("for ", "while ", "do "))))
    return result
