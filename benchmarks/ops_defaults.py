"""How near the defaults of `triton_metal.ops` come to the best configuration that their functions have, by the cost model.

    PYTHONPATH=python:. python -m benchmarks.ops_defaults [--shapes 240] [--seed 7] [--only TEXT] [--chip NAME]... [--limit 1.1] [--json FILE]

Shapes are drawn over functions, dtypes, odd and even sizes (`benchmarks/ops_shapes.py`). For each, every configuration of the function's grid
is launched on the host device, on the shape itself (--within inf; else, where there is a table, the four that it puts first for
each chip), and counted as `autotune` counts: some programs until there are enough instructions. Where a function has no grid of tiles, it is 1 to 32
SIMD-groups for each of its launches, from a fourth of the default's to eight times as many. The model's estimate of these counts for a chip, over the least of the grid, is the ratio. The tables
that defaults come from are made from other launches, of one program of few steps. No Apple GPU is asked.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import triton_metal as triton
from benchmarks.ops_shapes import Shape, shapes
from triton_metal import knobs
from triton_metal.cost import Chip, Work, bound, full_name, ranking_chip, scaled
from triton_metal.ops._choices import MOST_REGISTERS, asked, forced, seconds
from triton_metal.ops._families import FAMILIES
from triton_metal.ops._family import Family
from triton_metal.ops._groups import GROUPS, PRODUCTS
from triton_metal.ops._launch import forced_warps
from triton_metal.ops._products import GROUPING
from triton_metal.ops._table_counts import counted

CHIPS = ("M1", "M2 Ultra", "M3 Max", "M4 Pro", "M5 Max")
#: So many configurations of a table are counted for a chip.
MOST_NEAR = 4
#: Instructions of lanes after which no further program is counted, and where programs differ: the first ones of causal attention see
#: few keys, and say nothing of the last.
ENOUGH, ENOUGH_OF_DIFFERENT = 8_000_000, 1 << 33
#: The SIMD-groups that are tried, times the default's.
WARPS = (0.25, 0.5, 2, 4, 8)
#: Tables and rules are made with shapes of seeds up to 6; those of others are held out.
SEED = 7


@dataclass(frozen=True)
class Result:
    """The default of a shape on a chip beside the best of the grid; configurations are by their names.

    ``without`` is the ratio without the table of SIMD-groups.
    """

    function: str
    shape: str
    chip: str
    ratio: float
    without: float
    default: str
    best: str
    microseconds: float


def sampled(call: Callable[[], Any]) -> list[Work]:
    """The work of each launch of a call, from some of its programs, as `triton_metal.cost.sampled` counts.

    Products go over single rows of tiles: the last group of some may have more rows than there are, whose programs do nothing.
    """
    most, before = 1, 0.0
    while True:
        with forced(GROUPING, (1,)):
            found = counted(call, most)
        lanes = sum(work.counters.get("lane_instructions", 0) for work, _ in found)
        mean = max((w.counters.get("lane_instructions", 0) / w.programs for w, _ in found), default=0)  # fmt: skip
        differ = bool(before) and abs(mean - before) > 0.02 * mean
        enough = ENOUGH_OF_DIFFERENT if differ else ENOUGH
        whole = all(work.programs == programs for work, programs in found)
        # The first program alone does not say whether programs differ.
        if whole or (before and lanes * 4 > enough):
            return [scaled(work, programs) for work, programs in found]
        before, most = mean, most * 4


def estimates(works: Sequence[Work], chips: Sequence[Chip]) -> list[float]:
    """The model's estimate for each chip, in seconds."""
    return [sum(bound(chip, work).estimate for work in works) for chip in chips]


def _near(
    family: Family, kind: str, sizes: tuple[int, ...], chips: Sequence[Chip], within: float
) -> list[tuple[int, ...]]:
    """For each chip the MOST_NEAR configurations that the tables put first, and no farther than ``within`` times the best; all of the
    grid if that is infinite, or if there is no table.
    """
    tables: dict[tuple[int, ...], list[float]] = {}
    for each in family.candidates(kind, sizes):
        found = [seconds(chip, each.launches) for chip in chips]
        # A configuration of one launch may stand beside several of another.
        tables[each.config] = list(map(min, found, tables.get(each.config, found)))
    if not tables or math.isinf(within):
        return list(family.grid(kind, sizes))
    near: dict[tuple[int, ...], None] = {}
    for place in range(len(chips)):
        best = sorted(tables, key=lambda config: tables[config][place])
        least = tables[best[0]][place]
        near |= dict.fromkeys(c for c in best[:MOST_NEAR] if tables[c][place] <= within * least)
    return list(near)


@dataclass
class Grid:
    """The estimates of one choice of a call, by configuration and chip, and the default for each chip."""

    defaults: list[Any]
    found: dict[Any, list[float]]
    named: Callable[[Any], str]


def of_families(shape: Shape, chips: Sequence[Chip], within: float) -> list[Grid]:
    """The grids of a call's choices that families make."""
    with asked() as questions:
        counted(shape.call)
    grids = []
    for name, kind, sizes in dict.fromkeys(questions):
        family = FAMILIES[name]
        if family is GROUPS:
            continue
        found: dict[tuple[int, ...], list[float]] = {}
        defaults = [family.best(chip, kind, sizes) for chip in chips]
        for config in dict.fromkeys([*_near(family, kind, sizes, chips, within), *defaults]):
            try:
                with forced(name, config):
                    works = sampled(shape.call)
                # What spills is no side's best: the model knows nothing of it.
                if config in defaults or works[0].registers <= MOST_REGISTERS:
                    found[config] = estimates(works, chips)
            except triton.TritonError:
                if config in defaults:
                    raise
        grids.append(Grid(defaults, found, _names(family)))
    return grids


def _names(family: Family) -> Callable[[Any], str]:
    return lambda config: f"{family.name} {dict(zip(family.choice, config, strict=True))}"


def _of_launch(kernel: str, own: int) -> Callable[[Any], str]:
    return lambda warps: f"{kernel} num_warps {warps or f'{own}, its own'}"


Known = tuple[str, tuple[int, ...]]


def _asked_of(works: Sequence[Work], questions: Sequence[Known]) -> list[Known | None]:
    """What each launch asked the table, which knows not all of them: a call may launch a kernel several times."""
    left = list(questions)
    found: list[Known | None] = []
    for work in works:
        mine = bool(left) and (left[0][0].split()[0], left[0][1][0]) == (work.kernel, work.programs)
        found.append(left.pop(0) if mine else None)
    if left:
        raise RuntimeError(f"questions of no launch: {left}")
    return found


def of_warps(shape: Shape, chips: Sequence[Chip]) -> list[Grid]:
    """The grids of each launch's SIMD-groups: 0 is its own number, without the table.

    A thread has at least one number, where the table knows how many there are: two that have the same do its work twice.
    """

    def each(works: Sequence[Work]) -> list[list[float]]:
        return [estimates([work], chips) for work in works]

    with forced(GROUPS.name, (0,)), asked() as questions:
        counted(shape.call)
    with forced(GROUPS.name, (0,)):
        own = sampled(shape.call)
    tabled = _asked_of(own, [(kind, sizes) for name, kind, sizes in questions if name == GROUPS.name])  # fmt: skip
    default = max(own, key=lambda work: bound(chips[0], work).estimate).threads // 32
    grids, most, fewest, least = [], [], [], 1
    for work, known, values in zip(own, tabled, each(own), strict=True):
        defaults = [GROUPS.best(chip, *known)[0] if known else 0 for chip in chips]
        grids.append(Grid(defaults, {0: values}, _of_launch(work.kernel, work.threads // 32)))
        most.append(max(GROUPS.grid(*known))[0] if known else 32)
        # With fewer SIMD-groups than they name, products of tiles spill on G13, or leave half as many threads in flight.
        fewest.append(known[1][4] if known and work.kernel in PRODUCTS else 0)
        # Threads of more than 64 numbers spill, and their texts take long to compile.
        least = max(least, known[1][1] // 2048 if known else 1)
    wanted = {int(default * factor) for factor in WARPS if least <= default * factor <= 32}
    wanted |= {warps for grid in grids for warps in grid.defaults if warps}
    for warps in sorted(wanted):
        try:
            with forced_warps(warps):
                works = sampled(shape.call)
        except triton.TritonError:
            continue
        for grid, work, values, low, top in zip(grids, works, each(works), fewest, most, strict=True):  # fmt: skip
            if warps in grid.defaults or (work.registers <= MOST_REGISTERS and low <= warps <= top):
                grid.found[warps] = values
    return grids


def alike(shape: Shape, chips: Sequence[Chip]) -> list[list[Chip]]:
    """The chips on which a call has the same launches: some functions take another kernel where a chip has many cores."""
    groups: dict[tuple[Known, ...], list[Chip]] = {}
    for chip in chips:
        with knobs.autotuning.scope(), forced(GROUPS.name, (0,)), asked() as questions:
            knobs.autotuning.chip = chip.name
            counted(shape.call)
        key = tuple((kind, sizes) for name, kind, sizes in questions if name == GROUPS.name)
        groups.setdefault(key, []).append(chip)
    return list(groups.values())


def compared(shape: Shape, chips: Sequence[Chip], within: float) -> Iterator[Result]:
    """The estimate of a call's defaults for each chip over that of the best configurations of its launches."""
    grids = of_families(shape, chips, within)
    if grids:
        yield from _results(shape, chips, grids, False)
        return
    for same in alike(shape, chips):
        with knobs.autotuning.scope():
            knobs.autotuning.chip = same[0].name
            grids = of_warps(shape, same)
        yield from _results(shape, same, grids, True)


def _results(
    shape: Shape, chips: Sequence[Chip], grids: Sequence[Grid], is_sum: bool
) -> Iterator[Result]:
    for place, chip in enumerate(chips):
        mine = [grid.found[grid.defaults[place]][place] for grid in grids]
        best = [min(grid.found, key=lambda config, g=grid: g.found[config][place]) for grid in grids]  # fmt: skip
        gains = [own - grid.found[config][place] for own, config, grid in zip(mine, best, grids, strict=True)]  # fmt: skip
        # Grids of families have the estimate of the whole call, those of launches that of the launch.
        whole = math.fsum(mine) if is_sum else mine[0]
        least = whole - math.fsum(gains)
        own = math.fsum(grid.found[0][place] for grid in grids) if is_sum else whole
        worst = max(range(len(grids)), key=lambda i: gains[i])
        grid = grids[worst]
        yield Result(
            shape.function, shape.text, full_name(chip), whole / least, own / least,
            grid.named(grid.defaults[place]), grid.named(best[worst]), whole * 1e6,
        )  # fmt: skip


def summary(results: Sequence[Result]) -> str:
    """The table that is printed: for each function and for all of them."""
    lines = [
        f"{'function':28} {'shapes':>6} {'max':>6} {'median':>7} {'at most 1.1':>12} {'without':>8}  worst"
    ]
    groups = {name: [r for r in results if r.function == name] for name in sorted({r.function for r in results})}  # fmt: skip
    for name, group in [*groups.items(), ("all", list(results))]:
        ratios = [result.ratio for result in group]
        share = sum(ratio <= 1.1 for ratio in ratios) / len(ratios)
        before = sum(result.without <= 1.1 for result in group) / len(group)
        count = len({(result.function, result.shape) for result in group})
        worst = max(group, key=lambda result: result.ratio)
        text = f"{worst.shape} on {worst.chip}: {worst.default}, best {worst.best}"
        lines.append(f"{name:28} {count:6} {max(ratios):6.3f} {statistics.median(ratios):7.3f} {share:12.1%} {before:8.1%}  {text}")  # fmt: skip
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shapes", type=int, default=240, help="how many shapes")
    parser.add_argument(
        "--seed", type=int, default=SEED, help="those from 7 on are held out (default: 7)"
    )
    parser.add_argument("--only", default="", help="functions whose names contain this")
    parser.add_argument("--chip", action="append", help=f"default: {', '.join(CHIPS)}")
    parser.add_argument("--within", type=float, default=1.5, help="count no configuration that a table puts beyond so many times the best (inf: count all)")  # fmt: skip
    parser.add_argument("--limit", type=float, help="fail if a ratio is larger")
    parser.add_argument("--json", type=Path, help="write all ratios here")
    options = parser.parse_args()
    chips = [ranking_chip(name) for name in options.chip or CHIPS]
    results: list[Result] = []
    begin = time.monotonic()
    for place, shape in enumerate(shapes(options.shapes, options.seed, options.only)):
        try:
            own = list(compared(shape, chips, options.within))
        except KeyboardInterrupt:
            break  # the shapes so far
        results += own
        worst = max(own, key=lambda result: result.ratio)
        print(
            f"{place + 1:4} {time.monotonic() - begin:5.0f} s  {worst.ratio:.3f}  {shape.function} {shape.text}: on {worst.chip} {worst.default}; best {worst.best}",
            file=sys.stderr, flush=True,
        )  # fmt: skip
    print(summary(results))
    if options.json:
        options.json.write_text(json.dumps([asdict(result) for result in results], indent=1) + "\n")
    return int(options.limit is not None and max(r.ratio for r in results) > options.limit)


if __name__ == "__main__":
    sys.exit(main())
