"""The addresses that the SIMD-groups of some threadgroups access."""

from __future__ import annotations

import json
import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class TracedSite:
    """A place in the text that accesses device or constant memory.

    ``line`` and ``column`` count from 1. ``file`` is the name of the file that the line is in, "" for the text itself, and
    ``call_line`` and ``call_column`` the kernel's call of the function that the line is in, 0 in the kernel itself.
    ``reads`` says whether it reads or writes; an atomic operation is two sites. ``bytes`` is what each lane accesses.
    """

    line: int
    column: int
    file: str
    call_line: int
    call_column: int
    reads: bool
    is_constant: bool
    bytes: int


@dataclass(frozen=True)
class TracedAccess:
    """What one execution of a site by a SIMD-group accesses in one buffer.

    ``site`` is a place in `Trace.sites`, ``buffer`` the index of the buffer, or -1 if the addresses are in none, and
    ``offsets`` has where each of the 32 lanes' bytes begin in the buffer; None for lanes that take no part.
    """

    site: int
    simdgroup: int
    buffer: int
    offsets: tuple[int | None, ...]


@dataclass(frozen=True)
class TracedThreadgroup:
    """The accesses of a threadgroup, in the order in which the host device ran its SIMD-groups.

    ``executions`` counts, by site and SIMD-group, how often a site was executed: ``accesses`` has the first ones only.
    """

    position: tuple[int, int, int]
    accesses: tuple[TracedAccess, ...]
    executions: dict[tuple[int, int], int]


@dataclass(frozen=True)
class Trace:
    """What a launch with ``trace=`` kept."""

    sites: tuple[TracedSite, ...]
    threadgroups: tuple[TracedThreadgroup, ...]

    @classmethod
    def read(cls, text: str) -> Trace:
        """The trace that the engine wrote as JSON."""
        found = json.loads(text)
        return cls(
            tuple(TracedSite(**site) for site in found["sites"]),
            tuple(_threadgroup(group) for group in found["threadgroups"]),
        )


def _threadgroup(group: dict[str, Any]) -> TracedThreadgroup:
    x, y, z = group["position"]
    return TracedThreadgroup(
        (x, y, z),
        tuple(
            TracedAccess(site, simdgroup, buffer, tuple(offsets))
            for site, simdgroup, buffer, offsets in group["accesses"]
        ),
        {(site, simdgroup): times for site, simdgroup, times in group["executions"]},
    )


def positions_of(name: str, trace: Iterable[Any], kept: Any) -> tuple[tuple[Any, ...], int]:
    """The positions to trace and the executions to keep, as the engine takes them."""
    if isinstance(trace, (str, bytes)) or not isinstance(trace, Iterable):
        raise TypeError(
            f"{name}: trace takes positions of threadgroups, like [(0, 0, 0)], not {trace!r}"
        )
    if isinstance(kept, bool) or not isinstance(kept, int):
        raise TypeError(f"{name}: trace_executions takes a whole number, not {kept!r}")
    if not 0 < kept < 1 << 32:
        raise ValueError(f"{name}: trace_executions is {kept}; 1 to 4294967295 are allowed")
    return tuple(_position(name, each) for each in trace), kept


def _position(name: str, given: Any) -> tuple[int, int, int]:
    """A position with three coordinates, of which those that are not given are 0."""
    parts = tuple(given) if isinstance(given, (tuple, list)) else (given,)
    try:
        found = tuple(operator.index(part) for part in parts)
    except TypeError:
        found = ()
    if not 1 <= len(found) <= 3 or min(found) < 0:
        raise TypeError(
            f"{name}: trace takes positions of threadgroups, like [(0, 0, 0)], not {given!r}"
        )
    return (*found, *(0,) * (3 - len(found)))  # type: ignore[return-value]
