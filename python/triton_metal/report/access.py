"""The loads and stores of a launch: which lane touches which bytes, and how much of each line is used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import pairwise

from .record import Recorded
from .sources import Sources

LINE = 128
#: Where the bytes of the 32 lanes begin; None for lanes that take no part.
Offsets = tuple[int | None, ...]


@dataclass(frozen=True)
class Execution:
    """One execution of an access by a SIMD-group of a program.

    ``number`` counts the executions of this access by the SIMD-group from 0 on. ``offsets`` are bytes in the array
    ``array``, which is None where the addresses are in no array of the launch.
    """

    program: tuple[int, int, int]
    simdgroup: int
    number: int
    array: str | None
    offsets: Offsets


@dataclass
class Access:
    """A load, a store or an atomic operation of the Metal text, with what was kept of its executions.

    ``line`` and ``column`` are its place in the Metal text, ``python`` that in `Sources.python`, None if it is not known.
    ``bytes`` is what a lane accesses. ``times`` counts all executions of the traced programs.
    """

    kind: str
    line: int
    column: int
    python: int | None
    bytes: int
    array: str | None
    dtype: str
    executions: list[Execution] = field(default_factory=list)
    times: int = 0

    @cached_property
    def touches(self) -> list[tuple[int, int]]:
        """What `touched` says of each execution that was kept."""
        return [touched(e.offsets, self.bytes) for e in self.executions]

    @cached_property
    def touched(self) -> int:
        """The 128-byte lines of all executions that were kept."""
        return sum(lines for lines, _ in self.touches)

    @cached_property
    def needed(self) -> int:
        """The bytes of these lines that some lane asks for."""
        return sum(needed for _, needed in self.touches)

    @property
    def use(self) -> float:
        """The part of the lines (0 to 1) that some lane asks for."""
        return self.needed / (LINE * self.touched) if self.touched else 1.0

    @cached_property
    def pattern(self) -> str:
        """What the lanes of most executions have in common, in words."""
        texts = [pattern_of(e.offsets, self.bytes) for e in self.executions]
        return max(texts, key=texts.count) if texts else ""

    @cached_property
    def fullest(self) -> Execution:
        """The first of the executions with the most active lanes."""
        return max(self.executions, key=lambda e: sum(o is not None for o in e.offsets))

    @property
    def moved(self) -> float:
        """About the 128-byte lines that all executions of the traced programs touch."""
        return self.touched / len(self.executions) * self.times

    @property
    def is_of_matrices(self) -> bool:
        """Whether each lane accesses its elements of an 8x8 matrix, as matrix instructions hold them."""
        return is_of_matrices(self.fullest.offsets)


def accesses_of(recorded: Recorded, sources: Sources) -> list[Access]:
    """The accesses to arrays, in the order of the Metal text."""
    arrays = {array.slot: array for array in recorded.arrays}
    sites = recorded.trace.sites
    twice = {
        (s.line, s.column, s.call_line, s.call_column)
        for s in sites
        if s.reads
        and any(
            not o.reads
            and (o.line, o.column, o.call_line, o.call_column)
            == (s.line, s.column, s.call_line, s.call_column)
            for o in sites
        )
    }
    found: dict[tuple[int, ...], Access] = {}
    of_site: dict[int, Access] = {}
    for number, site in enumerate(sites):
        place = (site.line, site.column, site.call_line, site.call_column)
        is_atomic = place in twice
        if site.is_constant or (is_atomic and not site.reads):
            continue
        kind = "atomic" if is_atomic else "load" if site.reads else "store"
        line, column = (
            (site.call_line, site.call_column) if site.call_line else (site.line, site.column)
        )
        key = (*place, site.reads, site.bytes)
        if key not in found:
            python = sources.line_of(line, column - 1, kind)
            found[key] = Access(kind, line, column, python, site.bytes, None, "")
        of_site[number] = found[key]
    for group in recorded.trace.threadgroups:
        counted: dict[tuple[int, int], int] = {}
        for (site_number, _), times in group.executions.items():
            if site_number in of_site:
                of_site[site_number].times += times
        for traced in group.accesses:
            access = of_site.get(traced.site)
            if access is None:
                continue
            array = arrays.get(traced.buffer)
            number = counted.get((id(access), traced.simdgroup), 0)
            counted[id(access), traced.simdgroup] = number + 1
            if array is not None and access.array is None:
                access.array, access.dtype = array.name, array.dtype
            access.executions.append(
                Execution(
                    group.position,
                    traced.simdgroup,
                    number,
                    array.name if array else None,
                    traced.offsets,
                )
            )
    return sorted(
        (access for access in found.values() if access.executions),
        key=lambda access: (access.line, access.column),
    )


def touched(offsets: Offsets, bytes: int) -> tuple[int, int]:
    """The lines that an execution touches, and the bytes of these that some lane asks for.

    >>> touched(tuple(range(0, 128, 4)), 4)
    (1, 128)
    >>> touched(tuple(range(0, 256, 8)), 4)
    (2, 128)
    """
    active = sorted({offset for offset in offsets if offset is not None})
    lines: set[int] = set()
    needed, end = 0, None
    for offset in active:
        lines.update(range(offset // LINE, (offset + bytes - 1) // LINE + 1))
        begin = offset if end is None else max(offset, end)
        needed += max(0, offset + bytes - begin)
        end = offset + bytes
    return len(lines), needed


def is_of_matrices(offsets: Offsets) -> bool:
    """Whether the lanes lie as the elements of an 8x8 matrix do, whatever the bytes from row to row and from column to column.

    >>> is_of_matrices(tuple(range(0, 256, 8)))
    False
    """
    if len(offsets) != 32 or None in offsets[:3]:
        return False
    first, second, third = (offset or 0 for offset in offsets[:3])
    columns, row = second - first, third - first
    return all(
        offset is None
        or offset - first
        == row * ((lane >> 1 & 3) + (lane >> 4) * 4) + columns * ((lane & 1) + (lane >> 3 & 1) * 2)
        for lane, offset in enumerate(offsets)
    ) and bool(columns and row)


@lru_cache(maxsize=4096)
def pattern_of(offsets: Offsets, bytes: int) -> str:
    """What the active lanes' addresses have in common.

    >>> pattern_of(tuple(range(0, 128, 4)), 4)
    'lanes side by side'
    >>> pattern_of(tuple(range(0, 256, 8)), 4)
    'a stride of 8 bytes from lane to lane'
    >>> pattern_of((0,) * 32, 4)
    'all lanes the same bytes'
    """
    active = [offset for offset in offsets if offset is not None]
    if len(active) == 1:
        return "one lane"
    if len(set(active)) == 1:
        return "all lanes the same bytes"
    steps = [b - a for a, b in pairwise(active)]
    if set(steps) == {bytes}:
        return "lanes side by side"
    if len(set(steps)) == 1:
        return f"a stride of {steps[0]:,} bytes from lane to lane"
    rows = _rows(active, bytes)
    if rows is not None:
        length, stride = rows
        return f"rows of {length} lanes side by side, {stride:,} bytes apart"
    if sorted(set(active)) == list(range(min(active), max(active) + 1, bytes)):
        return "lanes side by side in another order"
    places = sorted(set(active))
    rows = _rows(places, bytes) if len(places) > 1 else None
    if rows is not None:
        length, stride = rows
        return (
            f"rows of {length * bytes:,} bytes, {stride:,} bytes apart, the lanes in another order"
        )
    return "no regular pattern"


def _rows(active: Sequence[int], bytes: int) -> tuple[int, int] | None:
    """The lanes of a row and the bytes between rows, if the lanes are rows of equal length at equal distances."""
    begins = [0] + [i for i in range(1, len(active)) if active[i] - active[i - 1] != bytes]
    lengths = {b - a for a, b in pairwise([*begins, len(active)])}
    strides = {active[b] - active[a] for a, b in pairwise(begins)}
    if len(lengths) == 1 and len(strides) == 1 and lengths != {1}:
        return lengths.pop(), strides.pop()
    return None
