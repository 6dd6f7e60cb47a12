"""A kernel's Python, Triton IR and Metal text line by line, and which lines belong together.

The compiler says of each statement of the Metal text where it comes from. Its signature and what it declares in threadgroup memory are
linked by names, and so is all of a text that this compiler does not make any more.
"""

from __future__ import annotations

import inspect
import linecache
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..sources import ASTSource

_OURS = str(Path(__file__).resolve().parents[1])
#: A place in Python: the file and the line.
Place = tuple[str, int]


@dataclass
class Line:
    """A line of a text. ``links`` are the lines of Python that it comes from, by their places in `Sources.python`.

    ``heading`` stands before the first line of a function.
    """

    text: str
    number: int
    links: list[int] = field(default_factory=list)
    heading: str = ""


@dataclass
class Sources:
    """The lines of all three texts. ``places`` has the place of each line in ``python``."""

    python: list[Line]
    ttir: list[Line]
    metal: list[Line]
    places: dict[Place, int]
    #: By line of the Metal text: (column, kind of access, line of Python) in the order of columns.
    accesses: dict[int, list[tuple[int, str, int | None]]]
    #: The lines of Python that give a variable its value, by its name.
    names: dict[str, list[int]]

    def line_of(self, line: int, column: int, kind: str) -> int | None:
        """The line of Python of an access of the Metal text."""
        known = self.accesses.get(line, [])
        known = [access for access in known if access[1] == kind] or known
        begun = [access for access in known if access[0] <= column] or known
        return begun[-1][2] if begun else None


def sources_of(kernel: Any) -> Sources:
    """The texts of a compiled kernel."""
    ir = _TritonIR(kernel.asm["ttir"])
    python: list[Line] = []
    places: dict[Place, int] = {}
    parameters: dict[str, int] = {}
    for block in _blocks(kernel, ir):
        for line in block.lines:
            places[block.file, line.number] = len(python)
            python.append(line)
        for name, number in block.parameters.items():
            if (block.file, number) in places:
                parameters.setdefault(name, places[block.file, number])

    def linked(frames: Iterable[Place]) -> list[int]:
        return sorted({places[frame] for frame in frames if frame in places})

    ttir = [Line(text, i, linked(frames)) for i, (text, frames) in enumerate(ir.lines, 1)]
    names = {name: linked(frames) for name, frames in ir.names.items()}
    names = {name: lines for name, lines in names.items() if lines}
    names |= {name: [line] for name, line in parameters.items()}
    text = getattr(kernel.metadata, "text", None) or {}
    accesses: dict[int, list[tuple[int, str, int | None]]] = {}
    metal = [Line(t, i) for i, t in enumerate(kernel.asm["metal"].rstrip("\n").split("\n"), 1)]
    for number, column, kind, frames in text.get("places", ()):
        found = linked(_frames(text, frames))
        innermost = next((places[f] for f in _frames(text, frames) if f in places), None)
        accesses.setdefault(number, []).append((column, kind, innermost))
        metal[number - 1].links = sorted({*metal[number - 1].links, *found})
    lines = getattr(kernel.asm, "lines", {})
    known = _linked_lines(lines, linked)
    buffers = {
        buffer["name"]: sorted({link for line in buffer["lines"] for link in known.get(line, ())})
        for buffer in lines.get("buffers", ())
    }
    for line in metal:
        if line.number in known:
            line.links = known[line.number]
        elif line.number not in accesses:
            line.links = _declared(line.text, buffers) or _by_names(line.text, names)
            if line.text.startswith("[[kernel") and python:
                line.links = [_definition(python)]
    return Sources(python, ttir, metal, places, accesses, names)


def _linked_lines(
    lines: dict[str, Any], linked: Callable[[Iterable[Place]], list[int]]
) -> dict[int, list[int]]:
    """The links of lines of the Metal text, by the compiler's table."""
    found: dict[int, set[int]] = {}
    for number, *sources in lines.get("lines", ()):
        for frames in sources:
            found.setdefault(number, set()).update(linked(_frames(lines, frames)))
    return {number: sorted(links) for number, links in found.items() if links}


def _declared(text: str, buffers: dict[str, list[int]]) -> list[int]:
    """The links of a line that declares threadgroup memory: those of all buffers, if these share one array."""
    found = re.match(r"\s*(?:alignas\(\d+\) )?threadgroup (?:atomic<)?\w+>? \*?(\w+)(\[| =)", text)
    if not found:
        return []
    if found[1] in buffers:
        return buffers[found[1]]
    return sorted({link for links in buffers.values() for link in links})


def _definition(python: list[Line]) -> int:
    """The line with the kernel's ``def``."""
    return next((i for i, line in enumerate(python) if line.text.startswith("def ")), 0)


def _frames(text: dict[str, Any], frames: list[int]) -> list[Place]:
    """The frames of a launch contract, the innermost first."""
    files = text["files"]
    return [(files[file], line) for file, line in zip(frames[::3], frames[1::3], strict=True)]


# --- Python -----------------------------------------------------------------------------------------


@dataclass
class _Block:
    """A function, and the lines of its parameters by their names."""

    file: str
    lines: list[Line]
    parameters: dict[str, int] = field(default_factory=dict)


def _blocks(kernel: Any, ir: _TritonIR) -> Iterator[_Block]:
    """The kernel's function, and those of the program that it calls."""
    shown: set[Place] = set()
    source = getattr(getattr(kernel.src, "fn", None), "source", None)
    if isinstance(kernel.src, ASTSource) and source is not None:
        names = source.node.args
        every = [*names.posonlyargs, *names.args, *names.kwonlyargs]
        block = _Block(
            source.file,
            _numbered(source.lines, source.first_line, source.file, source.node.name),
            {each.arg: each.lineno + source.first_line - 1 for each in every},
        )
        shown |= {(block.file, line.number) for line in block.lines}
        yield block
    for file, first in ir.functions:
        if (file, first) in shown or file.startswith(_OURS):
            continue
        lines = linecache.getlines(file)[first - 1 :]
        if not lines:
            continue
        try:
            found = inspect.getblock(lines)
        except (SyntaxError, IndentationError):
            continue
        name = re.search(r"def (\w+)", "".join(found))
        block = _Block(file, _numbered(found, first, file, name[1] if name else ""))
        if shown.isdisjoint((file, line.number) for line in block.lines):
            shown |= {(file, line.number) for line in block.lines}
            yield block


def _numbered(lines: Iterable[str], first: int, file: str, name: str) -> list[Line]:
    texts = [line.rstrip("\n").expandtabs() for line in lines]
    margin = min((len(t) - len(t.lstrip()) for t in texts if t.strip()), default=0)
    result = [Line(text[margin:], number) for number, text in enumerate(texts, first)]
    if result:
        result[0].heading = f"{name} in {Path(file).name}"
    return result


# --- Triton IR --------------------------------------------------------------------------------------

_DEFINITION = re.compile(r"^#loc(\d*) = loc\((.*)\)$")
_FILE = re.compile(r'^"((?:[^"\\]|\\.)*)":(\d+):(\d+)$')
_NAME = re.compile(r'^"((?:[^"\\]|\\.)*)"\((.*)\)$')
_REFERENCE = re.compile(r"#loc(\d*)")
_RESULTS = re.compile(r"^\s*(%[\w#:]+(?:, %[\w#:]+)*) = ")


class _TritonIR:
    """The lines of a module without its locations, each with its places in Python."""

    def __init__(self, text: str) -> None:
        self._known: dict[str, str] = {}
        rows = []
        for row in text.split("\n"):
            found = _DEFINITION.match(row)
            if found:
                self._known[found[1]] = found[2]
            else:
                rows.append(row)
        while rows and not rows[-1].strip():
            rows.pop()
        self.names: dict[str, list[Place]] = {}
        #: Where the functions of the module are defined.
        self.functions: list[Place] = []
        self.lines: list[tuple[str, list[Place]]] = []
        for body in self._known.values():
            named = _NAME.match(body)
            if named:
                self._add_name(named[1], self._places(named[2]))
        self._read(rows)

    def _add_name(self, name: str, places: list[Place]) -> None:
        known = self.names.setdefault(name, [])
        known += [place for place in places if place not in known]

    def _read(self, rows: list[str]) -> None:
        open_lines: list[list[int]] = []  # lines of operations whose location stands at their end
        for row in rows:
            text, location = _without_locations(row)
            places = self._places(location) if location else []
            index = len(self.lines)
            self.lines.append((text, places))
            stripped = text.strip()
            begun = open_lines.pop() if stripped.startswith("}") and open_lines else []
            if places:
                for earlier in begun:
                    self.lines[earlier] = (self.lines[earlier][0], places)
            if stripped.endswith(("{", "({")):
                open_lines.append([*begun, index])
            if stripped.startswith("}") and places and begun:
                header = self.lines[begun[0]][0]
                if "tt.func" in header:
                    self.functions.append(places[0])
                variable = re.search(r"scf\.for %([A-Za-z_]\w*) ", header)
                if variable:
                    self._add_name(re.sub(r"_\d+$", "", variable[1]), places)

    def _places(self, location: str, depth: int = 0) -> list[Place]:
        """The places of a location, the innermost first."""
        if depth > 64:
            return []
        found = _FILE.match(location)
        if found:
            return [(found[1].replace('\\"', '"'), int(found[2]))]
        named = _NAME.match(location)
        if named:
            return self._places(named[2], depth + 1)
        if location.startswith("#loc") and (one := _REFERENCE.fullmatch(location)):
            return self._places(self._known.get(one[1], ""), depth + 1)
        result: list[Place] = []  # callsite(a at b), fused[a, b]
        for reference in _REFERENCE.finditer(location):
            result += self._places(reference[0], depth + 1)
        for file, line, _ in re.findall(r'"((?:[^"\\]|\\.)*)":(\d+):(\d+)', location):
            result.append((file, int(line)))
        return result


def _without_locations(row: str) -> tuple[str, str]:
    """A line without its locations, and the last of these."""
    location = ""
    while True:
        begin = row.find(" loc(")
        if begin < 0:
            return row.rstrip(), location
        depth, end, quoted = 0, begin + 4, False
        while end < len(row):
            letter = row[end]
            if letter == '"' and row[end - 1] != "\\":
                quoted = not quoted
            elif not quoted:
                depth += (letter == "(") - (letter == ")")
                if not depth:
                    break
            end += 1
        location = row[begin + 5 : end]
        row = row[:begin] + row[end + 1 :]


# --- Metal ------------------------------------------------------------------------------------------

_TARGETS = (
    # A declaration with a value: int offset = …, device const half *q = …, float2 weights[4] = …
    re.compile(r"^\s*(?:const |device |threadgroup |constant |volatile )*[A-Za-z_][\w:<>, ]*?[ *&]+(\w+)(?:\[[^\]]*\])?\s*(?:=[^=]|;)"),
    re.compile(r"^\s*for \((?:const )?\w+ (\w+) ="),
    re.compile(r"^\s*(\w+)(?:\[[^\]]*\])*(?:\.\w+)? [-+*/&|^]?= "),
    re.compile(r"^\s*elements\((\w+)"),
    re.compile(r"^\s*simdgroup_\w+\((\w+)"),
    # A parameter of the kernel.
    re.compile(r"^\s*(?:device|constant) [^=;]*?(\w+) \[\[buffer"),
)  # fmt: skip


def _by_names(text: str, names: dict[str, list[int]]) -> list[int]:
    """The lines of Python that give the variable a value that this line of Metal text does."""
    for pattern in _TARGETS:
        found = pattern.match(text)
        if not found:
            continue
        name = found[1]
        for candidate in (name, re.sub(r"_\d+$", "", name)):
            if candidate in names:
                return names[candidate]
    return []
