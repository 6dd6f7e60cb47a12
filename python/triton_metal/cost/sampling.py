"""The work of a launch from some of its programs, where all of them would take long to count.

A program does the same whatever the size of the grid, unless it asks for that size or works with other programs through
atomics: such launches are counted whole. Of all others the first programs are counted, of the innermost axis first, until they have
executed enough instructions. Where programs from all over the grid do as much (`spread`), so does the rest; else it does what
these do. Nothing of this depends on the time that anything takes.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .measure import works_apart
from .model import Work
from .spread import LaunchAt, counted_elsewhere, programs_for

#: Instructions of lanes after which no further program is counted, and where programs differ.
ENOUGH = 2_000_000
ENOUGH_OF_DIFFERENT = 16_000_000
#: Programs do as much as others if their means differ by no more than this.
NEAR = 0.02
#: What is not a sum over programs.
_OF_ONE = ("registers_per_thread", "threadgroup_memory_bytes")
#: What a Metal text has if its programs depend on each other or on the grid.
_WHOLE = ("threadgroups_per_grid", "atomic")


@dataclass(frozen=True)
class Sampled:
    """The works of a call's launches. ``counted`` of the ``programs`` of the only launch were counted; ``alike`` says whether
    the first of these did as much as all of them. ``spread`` says whether programs from all over the grid were counted.
    """

    works: tuple[Work, ...]
    counted: int
    programs: int
    alike: bool = True
    spread: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether all programs were counted."""
        return self.counted == self.programs


def is_divisible(kernel: Any) -> bool:
    """Whether a part of a compiled kernel's grid does what the same programs of the whole grid do."""
    text = kernel.asm["metal"]
    return not any(word in text for word in _WHOLE)


def sizes_of(grid: Any) -> tuple[int, int, int] | None:
    """A grid with three sizes; None if it is none, as its launch will say."""
    sizes = grid if isinstance(grid, (tuple, list)) else (grid,)
    try:
        found = [operator.index(size) for size in sizes]
    except TypeError:
        return None
    if not 1 <= len(found) <= 3 or min(found) < 1:
        return None
    return (*found, *(1,) * (3 - len(found)))  # type: ignore[return-value]


def part_of(grid: Sequence[int], most: int) -> tuple[int, int, int]:
    """The first programs of a grid, ``most`` at most: of the first axis first.

    >>> part_of((16, 4, 2), 40)
    (16, 2, 1)
    """
    x = min(grid[0], most)
    y = min(grid[1], most // x)
    y = max(y, 1)
    z = max(min(grid[2], most // (x * y)), 1)
    return x, y, z


def scaled(work: Work, programs: int) -> Work:
    """The work of a launch of so many programs, of which ``work`` is a part. Lines of memory that programs share count for each part."""
    share = programs / work.programs
    counters = {
        name: value if name in _OF_ONE else round(value * share)
        for name, value in work.counters.items()
    }
    return dataclasses.replace(work, counters=counters, programs=programs)


def sampled(
    launch: Callable[[Callable[[Any], Any]], Any],
    between: Callable[[], Any] = lambda: None,
    divisible: bool = True,
    elsewhere: Callable[[tuple[int, int, int], int], LaunchAt | None] = lambda grid, count: None,
) -> Sampled:
    """Counts a launch on the host device, or a part of it.

    ``launch`` is given a function that turns a grid into the grid to launch, and launches. It is called several times, and ``between``
    after each. ``divisible`` says whether a part may stand for the whole. ``elsewhere(grid, count)`` gives a launch of programs from all over
    the grid, as `spread` says; without it, the first ones stand for all.
    """
    whole: list[tuple[int, int, int]] = []

    def all_of(grid: Any) -> Any:
        sizes = sizes_of(grid)
        if sizes is not None:
            whole.append(sizes)
        return grid

    def works_of(call: Callable[[], Any]) -> tuple[Work, ...]:
        return works_apart(call, between)

    def count(turn: Callable[[Any], Any]) -> tuple[Work, ...]:
        return works_of(lambda: launch(turn))

    if not divisible:
        works = count(all_of)
        programs = sum(work.programs for work in works)
        return Sampled(works, programs, programs)

    def spread(found: Sampled, alone: Work, grid: tuple[int, int, int]) -> Sampled:
        """What is found of the first programs, or, if these are not like the others, of programs from all over the grid."""
        (work,) = found.works
        mean = work.counters.get("lane_instructions", 0) / work.programs
        places = programs_for(mean)
        launch_at = elsewhere(grid, places)
        if launch_at is None:
            return found
        other = counted_elsewhere(alone, places, launch_at, works_of)
        found = dataclasses.replace(found, spread=True)
        if abs(other.get("lane_instructions", 0) / places - mean) <= NEAR * mean:
            return found
        share = work.programs / places
        counters = work.counters | {name: round(value * share) for name, value in other.items()}
        work = dataclasses.replace(work, counters=counters)
        return dataclasses.replace(found, works=(work,), counted=places, alike=False)

    most, before, differ = 1, 0.0, False
    alone: Work | None = None
    while True:

        def part(grid: Any, most: int = most) -> Any:
            sizes = sizes_of(all_of(grid))
            return grid if sizes is None else part_of(sizes, most)

        whole.clear()
        works = count(part)
        if len(works) != 1 or len(whole) != 1:  # several launches, or none
            works = count(lambda grid: grid)
            programs = sum(work.programs for work in works)
            return Sampled(works, programs, programs)
        (work,), programs = works, whole[0][0] * whole[0][1] * whole[0][2]
        lanes = work.counters.get("lane_instructions", 0)
        mean = lanes / work.programs
        # The first program alone says nothing: it may have a border, or no neighbour before it.
        differ = bool(before) and abs(mean - before) > NEAR * mean
        enough = ENOUGH_OF_DIFFERENT if differ else ENOUGH
        if work.programs == programs:
            return Sampled(works, programs, programs)
        alone = alone or work
        if lanes * 4 > enough and (before or lanes > enough):
            found = Sampled((work,), work.programs, programs, not differ)
            found = spread(found, alone, whole[0])
            return dataclasses.replace(found, works=(scaled(found.works[0], programs),))
        before, most = mean, most * 4
