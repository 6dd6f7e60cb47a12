"""Programs from all over a launch, where the first ones may not be like the others: borders, triangles, sequences of all lengths.

A launch begins at its first program. To launch others, the kernel's Metal text gets a prologue that finds another place in the
grid: programs (i, 0) of a launch are the first ones, and programs (i, 1) lie evenly over the whole grid. What the prologue does itself
is the difference between the first program with it and without it, and is taken off.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..array_copies import ArrayCopies
from ..launcher import CompiledKernel
from ..metal_text import PROGRAM_ID, MetalText, Parameter
from .model import Work

#: The programs that are counted elsewhere, and the fewest of long ones.
MOST, LEAST = 16, 3
#: Instructions of lanes that these execute at most.
ENOUGH = 16_000_000
#: What is no sum over programs.
_NO_SUMS = ("registers_per_thread", "threadgroup_memory_bytes")

#: What the prologue changes, or what two launches share.
_NO_DIFFERENCES = ("distinct", "memory_lines")

Grid = tuple[int, int, int]
#: Launches over a grid as above.
LaunchAt = Callable[[Grid], Any]


def step_of(grid: Grid, count: int) -> int:
    """The distance of so many programs that lie over the grid, in every column and row of it rather than in some; 0 if it has too few.

    >>> step_of((64, 64, 1), 16), step_of((5, 2, 1), 16)
    (255, 0)
    """
    step = math.prod(grid) // count
    while step > 1 and any(size > 1 and math.gcd(step, size) > 1 for size in grid):
        step -= 1
    return step if step > 1 else 0


def launcher_of(compiled: Any, named: Mapping[str, Any], grid: Grid, count: int) -> LaunchAt | None:
    """A launch of ``compiled`` at such places; ``named`` has the arguments. None if there is no way to make it."""
    step = step_of(grid, count)
    if not isinstance(compiled, CompiledKernel) or step == 0:
        return None
    if any(name not in named for name in compiled.signature):
        return None  # tuples and descriptors have parts
    text = MetalText.of(compiled.asm["metal"], compiled.metadata)
    place = next((p for p in text.parameters if p.attribute == PROGRAM_ID), None)
    if place is None:
        return None
    groups, linear = text.fresh_name("threadgroup_position"), text.fresh_name("program")
    x, y, _ = grid
    prologue = (
        f"  const uint {linear} = {groups}.y == 0 ? {groups}.x : {groups}.x * {step}u + {step // 2}u;\n"
        f"  const uint3 {place.name} = uint3({linear} % {x}u, {linear} / {x}u % {y}u, {linear} / {x * y}u);\n"
    )
    own = Parameter(groups, "uint3", None, PROGRAM_ID)
    parameters = tuple(own if each is place else each for each in text.parameters)
    turned = copy.copy(compiled)
    metal = text.header + text.kernel(parameters, prologue)
    turned.asm = {"ttir": compiled.asm["ttir"], "metal": metal}
    for name in ("_native", "_function", "_run"):
        setattr(turned, name, None)
    turned._is_loaded = False
    values = [named[name] for name in compiled.signature]
    if any(type(value).__module__.partition(".")[0] == "mlx" for value in values):
        # A compiled kernel takes no arrays of MLX.
        copies = ArrayCopies(values)
        values = list(map(copies.of, values))
    return lambda sizes: turned[sizes](*values)


def programs_for(instructions: float) -> int:
    """How many programs of so many instructions of lanes are counted elsewhere."""
    return max(LEAST, min(MOST, int(ENOUGH / max(instructions, 1.0))))


def counted_elsewhere(
    alone: Work,
    count: int,
    launch_at: LaunchAt,
    counted: Callable[[Callable[[], Any]], Sequence[Work]],
) -> dict[str, float]:
    """The counters of ``count`` programs all over the grid; ``alone`` is the first program without the prologue."""

    def counters(grid: Grid) -> Mapping[str, int]:
        (work,) = counted(lambda: launch_at(grid))
        return work.counters

    one, first, both = (counters(grid) for grid in ((1, 1, 1), (count, 1, 1), (count, 2, 1)))
    return {
        name: max(0.0, both[name] - first[name] - count * (one[name] - value))
        for name, value in alone.counters.items()
        if name not in _NO_SUMS and not any(part in name for part in _NO_DIFFERENCES)
    }
