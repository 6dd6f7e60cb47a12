"""The texts of a compiled kernel at each stage of the compiler."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from . import _native

_TOKEN = re.compile(r"[A-Za-z_]\w*|[^\sA-Za-z_]+|\n")


def renamed(a: str, b: str) -> dict[str, str] | None:
    """For each name in a text the one that another has in its first place; None if they differ in more than names.

    >>> renamed("int x = 1;\\n", "int y = 1;\\n")
    {'int': 'int', 'x': 'y'}
    >>> renamed("int x = 1;\\n", "int x = 2;\\n") is None
    True
    """
    ours, theirs = _TOKEN.findall(a), _TOKEN.findall(b)
    if len(ours) != len(theirs):
        return None
    names: dict[str, str] = {}
    for one, other in zip(ours, theirs, strict=True):
        if not (one.isidentifier() and other.isidentifier()):
            if one != other:
                return None
        else:
            names.setdefault(one, other)
    return names


class Stages(Mapping[str, str]):
    """The texts by stage: "ttir", "ttm", "msl" (the dialects) and "metal".

    A launch needs none of the dialects' texts between Triton IR and Metal. They are made when they are first asked for.
    """

    names = ("ttir", "ttm", "msl", "metal")

    def __init__(self, ttir: str, metal: str, options: tuple[int, int, str, str]) -> None:
        """``options`` are those of the compilation: warps, stages, the target's text and the words on arithmetic."""
        self._texts = {"ttir": ttir, "metal": metal}
        self._lines: dict[str, Any] | None = None
        self.options = options

    def __getitem__(self, name: str) -> str:
        if name not in self.names:
            raise KeyError(f"{name!r} is not a stage: the stages are {', '.join(self.names)}")
        if name not in self._texts:
            self._make()
        return self._texts[name]

    @property
    def lines(self) -> dict[str, Any]:
        """Where each line of the Metal text comes from, and what is in threadgroup memory.

        "lines" has a list for each line: its number and, for each operation in it, the numbers (file, line, column) of its place in the
        source and of the calls that lead there, the innermost first; "files" are the names of files. "buffers" have their name, type, offset
        and bytes, and the lines that access them. Empty if the compiler makes another text of this Triton IR by now.
        """
        if self._lines is None:
            self._make()
        assert self._lines is not None
        return self._lines

    def _make(self) -> None:
        made: Any = _native.compile_text(self._texts["ttir"], "<ttir>", *self.options, stages=True)
        self._texts.update(ttm=made.ttm, msl=made.msl)
        # The text of Triton IR lacks the names of values that go around in loops, which variables of Metal have.
        names = renamed(made.metal, self._texts["metal"])
        self._lines = {} if names is None else json.loads(made.lines)
        for buffer in self._lines.get("buffers", ()):
            buffer["name"] = (names or {}).get(buffer["name"], buffer["name"])

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"Stages({', '.join(self.names)})"
