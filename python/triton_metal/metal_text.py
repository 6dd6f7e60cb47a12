"""The parts of a kernel's Metal text, for launch interfaces that write their own signature."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NamedTuple

from .errors import LaunchValueError

MAX_BUFFERS = 31
PROGRAM_ID = "threadgroup_position_in_grid"
NUM_PROGRAMS = "threadgroups_per_grid"


@dataclass(frozen=True)
class Parameter:
    """One parameter of the kernel: a buffer, or a position that an attribute names."""

    name: str
    type: str
    buffer: int | None
    attribute: str | None

    def declared(self, name: str | None = None) -> str:
        """The type and the name, as in a declaration."""
        gap = "" if self.type.endswith("*") else " "
        return f"{self.type}{gap}{name or self.name}"


@dataclass(frozen=True)
class MetalText:
    """The parts of a kernel's text: the header, the parameters and the body.

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
        """The parts of a text, from the offsets in the launch contract."""
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
        """The bound parameters, in the order of their bindings."""
        found = [parameter for parameter in self.parameters if parameter.buffer is not None]
        return tuple(sorted(found, key=lambda parameter: parameter.buffer or 0))

    def whole(self) -> str:
        """The text that the compiler printed."""
        return self.header + self.kernel(self.parameters, "")

    def kernel(self, parameters: tuple[Parameter, ...], prologue: str) -> str:
        """The kernel with other parameters, and with statements before its own."""
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
        """``base``, or ``base_1``, ...: a name that is not a word of this text."""
        return unused(base, self.header + self.body + " ".join(p.name for p in self.parameters))

    def folded(self) -> str:
        """The text for a launch with a folded grid, whose programs are counted along x, then y.

        One more buffer, the last, holds the three sizes of the original grid. Threadgroups past its end do nothing.
        """
        if len(self.buffers) >= MAX_BUFFERS:
            raise LaunchValueError(
                f"{self.name} has {MAX_BUFFERS} buffers, and a grid this wide needs one more for its sizes"
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
        """Statements that compute the program's position in the original grid from the one in the folded grid."""
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
    """``base``, or ``base_1``, ...: a name that is not a word of the text.

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
    """A grid with at least as many programs, and no side longer than the limit.

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
            f"the launch interface does not support a grid of {programs} programs"
        )
    return width, height, 1


class Threads(NamedTuple):
    """A grid of programs for an interface that counts threads.

    If the grid is too wide for the interface, it is ``folded``, and ``words`` has the three sizes of the original grid.
    """

    size: tuple[int, int, int]
    group: tuple[int, int, int]
    folded: bool
    words: bytes


def threads_of(grid: tuple[int, int, int], threads: int, limit: int) -> Threads:
    """The threads of a grid whose programs have so many threads, with at most ``limit`` in each dimension.

    >>> threads_of((3, 2, 1), 128, 1000)
    Threads(size=(384, 2, 1), group=(128, 1, 1), folded=False, words=b'')
    >>> threads_of((10, 2, 1), 128, 1000).size
    (896, 3, 1)
    """
    words = b""
    folded = max(grid[0] * threads, grid[1], grid[2]) > limit
    if folded:
        words = b"".join(size.to_bytes(4, "little") for size in grid)
        grid = fold(grid, limit // threads)
    return Threads((grid[0] * threads, grid[1], grid[2]), (threads, 1, 1), folded, words)
