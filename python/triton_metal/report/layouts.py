"""The layouts of a kernel's tiles: which lane of which SIMD-group holds which element in which register."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from .sources import Sources

_ALIAS = re.compile(r"^(#\w+) = #ttm\.linear<\{(.*)\}>$")
_BASES = re.compile(r"(\w+) = (\[(?:\[[^\]]*\](?:, )?)*\])")
_TENSOR = re.compile(r"tensor<((?:\d+x)+)([^<>,]*(?:<[^<>]*>)?), (#\w+)>")
_OPERATION = re.compile(r'^\s*(?:%[\w:#]+(?:, %[\w:#]+)* = )?"?([a-z_]\w*\.[\w.]+)"?')
#: The operations that name a tile, the most telling first, and their Triton IR.
_TELLING = {
    "tt.load": "tt.load",
    "tt.store": "tt.store",
    "ttm.mma": "tt.dot",
    "tt.reduce": "tt.reduce",
}


@dataclass
class Layout:
    """A tile: its shape, its element types, and the bases of its linear layout by "register", "lane" and "simdgroup".

    ``uses`` are operations on it; ``names`` the variables that it is in Python, as far as they are known, and ``links``
    their lines.
    """

    shape: tuple[int, ...]
    bases: dict[str, list[list[int]]]
    types: list[str] = field(default_factory=list)
    uses: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    links: list[int] = field(default_factory=list)

    @property
    def registers(self) -> int:
        """The elements that a thread holds."""
        return 1 << len(self.bases.get("register", []))

    @property
    def label(self) -> str:
        """Its name in a list."""
        shape = "×".join(map(str, self.shape))
        uses = [use for use in self.uses if use != "arith.constant"] or self.uses
        what = ", ".join(self.names) or f"tile of {', '.join(uses[:3])}"
        return f"{what} ({shape} {'/'.join(self.types)})"


def layouts_of(kernel: Any, sources: Sources) -> list[Layout]:
    """The layouts of the tiles that a kernel loads, stores, multiplies and computes with; indices and masks are left out."""
    aliases: dict[str, dict[str, list[list[int]]]] = {}
    found: dict[tuple[tuple[int, ...], str], Layout] = {}
    telling: dict[str, list[tuple[tuple[int, ...], str]]] = {kind: [] for kind in _TELLING}
    pending: list[str] = []
    for row in kernel.asm["ttm"].split("\n"):
        alias = _ALIAS.match(row)
        if alias:
            aliases[alias[1]] = {name: json.loads(some) for name, some in _BASES.findall(alias[2])}
            continue
        operation = _OPERATION.match(row)
        if operation:
            name = operation[1]
            if row.rstrip().endswith("({"):
                pending.append(name)
                continue
        elif row.strip().startswith("})") and pending:
            name = pending.pop()
        else:
            continue
        tensors = _TENSOR.findall(row[row.rfind(" : ") :] if " : " in row else "")
        if not tensors:
            continue
        if name in telling:
            # A load's type is that of its pointers, a store's too; the others' result comes last.
            shape, _, layout = tensors[0] if name in ("tt.load", "tt.store") else tensors[-1]
            telling[name].append((_shape(shape), layout))
        for shape, type, layout in tensors:
            if layout not in aliases:
                continue
            key = _shape(shape), layout
            one = found.setdefault(key, Layout(key[0], aliases[layout]))
            element = re.sub(r"!tt\.ptr<(\w+).*>", r"\1", type)
            if element not in one.types and not type.startswith("!"):
                one.types.append(element)
            if name not in one.uses:
                one.uses.append(name)
    _give_names(kernel, sources, found, telling)
    data = [each for each in found.values() if _is_data(each)]
    order = list(_TELLING)

    def rank(layout: Layout) -> tuple[int, int]:
        known = [order.index(use) for use in layout.uses if use in order]
        return min(known, default=len(order)), -len(layout.names)

    return sorted(data, key=rank)


def _shape(text: str) -> tuple[int, ...]:
    return tuple(int(size) for size in text.rstrip("x").split("x"))


def _is_data(layout: Layout) -> bool:
    """Whether a tile has values of the program's, and not only indices and masks."""
    if any(use in _TELLING for use in layout.uses):
        return True
    return any(not re.fullmatch(r"i\d+", type) for type in layout.types) and 1 not in layout.shape


def _give_names(
    kernel: Any,
    sources: Sources,
    found: dict[tuple[tuple[int, ...], str], Layout],
    telling: dict[str, list[tuple[tuple[int, ...], str]]],
) -> None:
    """Names tiles by the operations of Triton IR that they come from, where these are the same in number and shapes."""
    for kind, places in telling.items():
        known = []
        for line in sources.ttir:
            if re.search(rf'(?:= |^\s*)"?{re.escape(_TELLING[kind])}"?[ (]', line.text):
                tensors = re.findall(r"tensor<((?:\d+x)+)", line.text)
                variable = re.match(r"\s*%([A-Za-z_]\w*?)(?:_\d+)? = ", line.text)
                shape = tensors[-1] if kind == "ttm.mma" else tensors[0] if tensors else ""
                known.append((_shape(shape) if shape else (), variable and variable[1], line.links))
        if kind == "tt.reduce" or len(known) != len(places):
            continue
        if any(shape != place[0] for (shape, _, _), place in zip(known, places, strict=True)):
            continue
        for (_, variable, links), place in zip(known, places, strict=True):
            layout = found.get(place)
            if layout is None:
                continue
            if variable and variable not in layout.names:
                layout.names.append(variable)
            layout.links = sorted({*layout.links, *links})
