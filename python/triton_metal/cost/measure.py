"""What launches do, counted on the host device, and their cost on a chip."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from .. import _native
from ..array_copies import ArrayCopies
from ..devices.selection import device
from ..errors import LaunchValueError
from ..launcher import LaunchLog, counted, has_checks
from ..profiling import profile
from .chips import Chip
from .chips import chip as find
from .model import Cost, Work, bound


@dataclass
class Counted:
    """The work of the launches in a block, in their order; it is there when the block has ended.

    ``left_out`` launches were in functions that `mx.compile`, `mx.grad` or `mx.vmap` traced: there were no values to count with.
    ``elsewhere`` launches were those of other threads, which are not counted.
    """

    works: list[Work] = field(default_factory=list)
    left_out: int = 0
    elsewhere: int = 0


class _Apart(threading.local):
    """For each block of this thread, the outermost first: when the blocks in it that stand apart began and ended."""

    def __init__(self) -> None:
        self.times: list[list[tuple[int, int]]] = []


_apart = _Apart()


@contextmanager
def counting() -> Iterator[Counted]:
    """Counts the launches of a block in this thread, all of which must be on the host device.

    A block inside of another one counts for both. What `cost_of`, `sampled` and a kernel's report launch counts for none of them.
    """
    with _counting(apart=False, checked=True) as found:
        yield found


@contextmanager
def counting_apart(checked: bool = True) -> Iterator[Counted]:
    """The same for launches that are no launches of the program's: the blocks around this one have none of them.

    They have the checks of the block around this one if ``checked`` is true.
    """
    begin = _native.profile_clock()
    try:
        with _counting(apart=True, checked=checked) as found:
            yield found
    finally:
        if _apart.times:
            _apart.times[-1].append((begin, _native.profile_clock()))


@contextmanager
def _counting(apart: bool, checked: bool) -> Iterator[Counted]:
    found = Counted()
    times: list[tuple[int, int]] = []
    _apart.times.append(times)
    p, log, ended = profile(), LaunchLog(), False
    try:
        with p, counted(apart, checked) as log:
            yield found
        ended = True
    finally:
        _apart.times.pop()
        if _apart.times:
            _apart.times[-1] += times
        # Also where the block has raised. A launch that fails is in neither list; one that is interrupted may be in one.
        _add_works(found, p, log, times, strict=ended)


def works_apart(
    call: Callable[[], object], between: Callable[[], object] = lambda: None
) -> tuple[Work, ...]:
    """The work of a call's launches, which are no launches of the program's. ``between`` follows each call.

    In a block with checks the launches are checked in a call of their own, as the arithmetic of checks would be counted.
    """
    for checked in (True, False) if has_checks() else (False,):
        try:
            with counting_apart(checked) as found:
                call()
        finally:
            between()
    return tuple(found.works)


def _add_works(
    found: Counted, p: profile, log: LaunchLog, apart: Sequence[tuple[int, int]], strict: bool
) -> None:
    """Adds the work of this thread's launches to what a block counted."""
    thread = threading.get_ident()
    found.elsewhere = sum(launch.thread != thread for launch in p.launches)
    launches = [
        launch
        for launch in p.launches
        if launch.thread == thread
        and not any(first <= p.clock_of(launch) < last for first, last in apart)
    ]
    for launch, record in zip(launches, log.launches, strict=strict):
        if not record.counters:
            found.left_out += 1
            continue
        found.works.append(
            work_of(
                record.kernel,
                record.counters,
                launch.grid,
                read_bytes=launch.bytes_read,
                written_bytes=launch.bytes_written,
            )
        )


def work_of(
    kernel: Any,
    counters: Mapping[str, int],
    grid: tuple[int, int, int],
    read_bytes: int | None = None,
    written_bytes: int | None = None,
) -> Work:
    """The work of one counted launch of a compiled kernel."""
    text = kernel.asm["metal"]
    return Work(
        kernel=kernel.name,
        counters=counters,
        programs=grid[0] * grid[1] * grid[2],
        threads=kernel.metadata.threads,
        registers=counters["registers_per_thread"],
        threadgroup_bytes=counters["threadgroup_memory_bytes"],
        read_bytes=read_bytes,
        written_bytes=written_bytes,
        half_products="simdgroup_matrix<half" in text or "simdgroup_half8x8" in text,
        tensor_operations="matmul2d" in text,
    )


def cost_of(kernel: Any, chip: str | Chip, grid: Any, args: tuple, kwargs: dict[str, Any]) -> Cost:
    """The cost of ``kernel[grid](*args, **kwargs)``, which runs on copies of the arrays on the host device."""
    gpu = find(chip) if not isinstance(chip, Chip) else chip

    def launch() -> None:
        copies = ArrayCopies([*args, *kwargs.values()])
        kernel[grid](*map(copies.of, args), **{n: copies.of(v) for n, v in kwargs.items()})

    with device("host"):
        works = works_apart(launch)
    if not works:
        raise LaunchValueError(
            f"[cost] {kernel.name}: the grid has no programs, so there is no cost."
        )
    return bound(gpu, works[-1])
