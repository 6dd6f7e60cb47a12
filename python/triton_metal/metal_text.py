"""A kernel's Metal text in its parts, for launch interfaces that want a signature of their own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from .errors import LaunchValueError

MAX_BUFFERS = 31
PROGRAM_ID = "threadgroup_position_in_grid"
NUM_PROGRAMS = "threadgroups_per_grid"


@dataclass(frozen=True)
class Parameter:
    """One parameter of the kernel: a buffer, or what the attribute names of the thread's place."""

    name: str
    type: str
    buffer: int | None
    attribute: str | None

    def declared(self, name: str | None = None) -> str:
        """Type and name, as a declaration begins."""
        gap = "" if self.type.endswith("*") else " "
        return f"{self.type}{gap}{name or self.name}"


@dataclass(frozen=True)
class MetalText:
    """The parts of a kernel's text: what stands before it, its parameters, the statements of its body.

    >>> import triton_metal
    >>> compiled = triton_metal.compile_ttir(
    ...     "module { tt.func public @k(%out: !tt.ptr<i32>, %n: i32) "
    ...     "{ tt.store %out, %n : !tt.ptr<i32> tt.return } }")
    >>> text = MetalText.of(compiled.asm["metal"], compiled.metadata)
    >>> [(parameter.name, parameter.buffer) for parameter in text.parameters][0]
    ('out', 0)
    >>> text.header.splitlines()[0]
    '#include <metal_stdlib>'
    >>> text.whole() == compiled.asm["metal"]
    True
    """

    name: str
    header: str
    attributes: str
    parameters: tuple[Parameter, ...]
    body: str

    @classmethod
    def of(cls, metal: str, metadata: Mapping[str, Any] | SimpleNamespace) -> MetalText:
        """The parts of a text, at the places that the compiler noted in the launch contract."""
        fields = vars(metadata) if isinstance(metadata, SimpleNamespace) else metadata
        layout = fields["text"]
        # The places count bytes; the text is ASCII, and MPS takes no other.
        if not metal.isascii():
            raise ValueError("the Metal text of a kernel must be ASCII")
        parameters = tuple(
            Parameter(entry["name"], entry["type"], entry.get("buffer"), entry.get("attribute"))
            for entry in layout["parameters"]
        )
        signature = metal[layout["begin"] : layout["body_begin"]]
        return cls(
            name=fields["name"],
            header=metal[: layout["begin"]],
            attributes=signature[: signature.index("]] void ") + 2],
            parameters=parameters,
            body=metal[layout["body_begin"] : layout["body_end"]],
        )

    @property
    def buffers(self) -> tuple[Parameter, ...]:
        """The parameters that are bound, in the order of their bindings."""
        found = [parameter for parameter in self.parameters if parameter.buffer is not None]
        return tuple(sorted(found, key=lambda parameter: parameter.buffer or 0))

    def whole(self) -> str:
        """The text that the compiler printed."""
        return self.header + self.kernel(self.parameters, "")

    def kernel(self, parameters: tuple[Parameter, ...], prologue: str) -> str:
        """The kernel with other parameters, and statements before its own."""
        listed = ",\n".join(
            f"    {parameter.declared()} [["
            + (
                parameter.attribute or ""
                if parameter.buffer is None
                else f"buffer({parameter.buffer})"
            )
            + "]]"
            for parameter in parameters
        )
        begin = f"{self.attributes} void {self.name}(\n{listed}) {{\n"
        return f"{begin}{prologue}{self.body}}}\n"

    def fresh_name(self, base: str) -> str:
        """``base``, or ``base_1``, ...: no word of this text."""
        return unused(base, self.header + self.body + " ".join(p.name for p in self.parameters))

    def folded(self) -> str:
        """The text for a launch whose grid is folded: programs are counted along x, then y.

        One more buffer, the last, holds the three sizes of the grid that is meant. Threadgroups past its end do
        nothing.
        """
        if len(self.buffers) >= MAX_BUFFERS:
            raise LaunchValueError(
                f"{self.name} has {MAX_BUFFERS} buffers, which leaves none for the sizes of so wide a grid"
            )
        sizes = self.fresh_name("grid_sizes")
        groups = self.fresh_name("threadgroup_position")
        counts = self.fresh_name("threadgroup_counts")
        parameters = [p for p in self.parameters if p.attribute not in (PROGRAM_ID, NUM_PROGRAMS)]
        first_place = next(
            (i for i, parameter in enumerate(parameters) if parameter.buffer is None),
            len(parameters),
        )
        parameters[first_place:first_place] = [
            Parameter(sizes, "constant uint *", len(self.buffers), None),
            Parameter(groups, "uint3", None, PROGRAM_ID),
            Parameter(counts, "uint3", None, NUM_PROGRAMS),
        ]
        return self.header + self.kernel(
            tuple(parameters), self.unfold(groups, counts, [f"{sizes}[{i}]" for i in range(3)])
        )

    def unfold(self, groups: str, counts: str, sizes: list[str]) -> str:
        """Statements that give the program's place in the grid that is meant, from the place in the folded one."""
        linear = self.fresh_name("program")
        lines = [
            f"const uint {linear} = {groups}.x + {groups}.y * {counts}.x;",
            f"if ({linear} >= {sizes[0]} * {sizes[1]} * {sizes[2]})",
            "  return;",
        ]
        for parameter in self.parameters:
            if parameter.attribute == PROGRAM_ID:
                lines.append(
                    f"const uint3 {parameter.name} = uint3({linear} % {sizes[0]}, "
                    f"{linear} / {sizes[0]} % {sizes[1]}, {linear} / {sizes[0]} / {sizes[1]});"
                )
            elif parameter.attribute == NUM_PROGRAMS:
                lines.append(f"const uint3 {parameter.name} = uint3({', '.join(sizes)});")
        return "".join(f"  {line}\n" for line in lines)


def unused(base: str, text: str) -> str:
    """``base``, or ``base_1``, ...: no word of the text.

    >>> unused("x", "y = x + x_1;")
    'x_2'
    """
    words = set(re.findall(r"\w+", text))
    name, number = base, 0
    while name in words:
        number += 1
        name = f"{base}_{number}"
    return name


def fold(grid: tuple[int, int, int], limit: int) -> tuple[int, int, int]:
    """A grid with the same programs or some more, of which none is wider than the limit.

    >>> fold((10, 3, 1), 100)
    (30, 1, 1)
    >>> fold((1000, 1000, 1), 4096)
    (4096, 245, 1)
    """
    programs = grid[0] * grid[1] * grid[2]
    width = min(programs, limit)
    height = -(-programs // width)
    if height > limit:
        raise LaunchValueError(
            f"a grid of {programs} programs is more than the launch interface takes"
        )
    return width, height, 1
