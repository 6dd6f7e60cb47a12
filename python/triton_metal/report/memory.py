"""Threadgroup memory over a kernel's text: where its buffers are, and from which line to which each holds something."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Buffer:
    """A buffer of threadgroup memory: its place in bytes, and the lines of the Metal text from its first use to its last."""

    name: str
    type: str
    offset: int
    bytes: int
    first: int
    last: int
    #: All lines that access it.
    lines: tuple[int, ...]


def buffers_of(kernel: Any) -> list[Buffer]:
    """The buffers of a kernel in the order of their first use, as the compiler placed them."""
    if not kernel.metadata.threadgroup_bytes:
        return []
    loops = _loops(kernel.asm["metal"].split("\n"))
    result = []
    for buffer in getattr(kernel.asm, "lines", {}).get("buffers", ()):
        lines = buffer["lines"]
        if lines:
            result.append(
                Buffer(
                    buffer["name"],
                    buffer["type"],
                    buffer["offset"],
                    buffer["bytes"],
                    *_live(loops, lines),
                    tuple(lines),
                )
            )
    return sorted(result, key=lambda buffer: (buffer.first, buffer.offset))


def _live(loops: list[tuple[int, int]], lines: list[int]) -> tuple[int, int]:
    """From the first use to the last, or to the end of a loop that uses what was there before it."""
    first, last = lines[0], lines[-1]
    for begin, end in loops:
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
