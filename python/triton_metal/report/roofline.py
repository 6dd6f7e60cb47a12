"""How near a launch comes to what a chip can do, by the model: operations a second over operations a byte.

The model lets each unit of a core work beside the others, and the slowest sets the time. So the picture counts the operations of
one unit, the one that a launch's arithmetic keeps busy longest, and the roof is that unit's rate (docs/report.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from ..cost.chips import Chip
from ..cost.model import (
    PRODUCT,
    Cost,
    Work,
    arithmetic_cycles,
    matrix_rate,
    memory_bytes,
    sums_of,
)
from ..words import number_of
from .pictures import svg

#: The units that compute, by the names that `Part.unit` gives them in the model.
_COMPUTING = ("arithmetic", "matrices")
#: A point that is nearer to its roof than this lies on it.
_ON_THE_ROOF = 0.98


@dataclass(frozen=True)
class Counted:
    """The operations of a launch that its roofline counts.

    ``kind`` is "matrices", "simple" or "slow" as in `Units`, "" where the launch computes nothing. ``rate`` are those that a
    core does in a cycle, None if it is not known; operations with different rates have the rate of their mixture.
    """

    kind: str
    words: str
    operations: float
    rate: float | None

    @property
    def cycles(self) -> float:
        """What a core needs for all of them; no end where the rate is not known."""
        return self.operations / self.rate if self.rate else math.inf


_NOTHING = Counted("", "", 0.0, None)


def _every(chip: Chip, work: Work) -> dict[str, Counted]:
    """What each unit of a core that computes has to do, as `unit_cycles` of the model has it."""
    sums = sums_of(work)
    floats = sums.halves + sums.floats
    simple, slow = arithmetic_cycles(chip, sums)
    words = " and ".join(
        word for word, count in (("float", floats), ("integer", sums.integers)) if count
    )
    found = (
        Counted(
            "matrices",
            "multiply-adds of matrix products",
            PRODUCT * sums.multiplies,
            matrix_rate(chip, work.half_products, work.tensor_operations),
        ),
        _mixed("simple", f"{words} operations", floats + sums.integers, simple),
        _mixed(
            "slow",
            "functions, divisions and integer products",
            sums.products + sums.functions + sums.divisions,
            slow,
        ),
    )
    return {counted.kind: counted for counted in found if counted.operations}


def _mixed(kind: str, words: str, operations: float, cycles: float) -> Counted:
    return Counted(kind, words, operations, operations / cycles if cycles else None)


def counted_of(costs: Sequence[Cost]) -> Counted:
    """The operations that the roofline counts: those of the unit that computes longest on the first chip whose clock is known."""
    cost = next((cost for cost in costs if cost.chip.clock), costs[0])
    every = _every(cost.chip, cost.work)
    unit = next((part.unit for part in cost.parts if part.unit in _COMPUTING), "")
    among = [
        counted
        for kind, counted in every.items()
        if not unit or counted.rate is None or (kind == "matrices") is (unit == "matrices")
    ]
    return max(among, key=lambda counted: counted.cycles, default=_NOTHING)


def peak_of(chip: Chip, work: Work, kind: str) -> float | None:
    """The most operations of a kind a second, None if no clock of the chip is published or no such rate."""
    counted = _every(chip, work).get(kind)
    if chip.clock is None or counted is None or counted.rate is None:
        return None
    return chip.cores * chip.clock * 1e9 * counted.rate


def notes_of(costs: Sequence[Cost]) -> list[str]:
    """What is to be known of the picture: what it counts, and why points lie under their roofs."""
    counted = counted_of(costs)
    if not counted.kind:
        return [
            "The launch computes nothing: bars are bytes a second, and their ends the chips' bandwidths. They are the most that "
            "the model allows, not measurements."
        ]
    what = {
        "matrices": "The roof is the rate of matrix instructions: of all that computes, they take longest here. A product of "
        "8×8×8 is 512 multiply-adds.",
        "simple": "The roof is the rate of additions, multiplications, comparisons and the like: of all that computes, they take "
        "longest here. A fused multiply-add is one operation.",
        "slow": "The roof is the rate of functions, divisions and products of integers, in the mixture of this launch: of all "
        "that computes, they take longest here.",
    }[counted.kind]
    notes = [
        f"{what} Points are the most that the model allows, not measurements; a chip without a published clock or rate has the "
        "roof of its memory only."
    ]
    return notes + [note for cost in costs if (note := _under(cost, counted))]


def _under(cost: Cost, counted: Counted) -> str:
    """Why a launch's point lies under the roof; nothing if it lies on it."""
    moved = sum(memory_bytes(cost.work))
    peak = peak_of(cost.chip, cost.work, counted.kind)
    if not cost.seconds or not moved:
        return ""
    roof = min(
        counted.operations / moved * cost.chip.bandwidth * 1e9, math.inf if peak is None else peak
    )
    share = counted.operations / cost.seconds / roof
    if share >= _ON_THE_ROOF:
        return ""
    text = f"{cost.chip.name}: the point is at {share:.0%} of the roof, as "
    if cost.binds != ("matrices" if counted.kind == "matrices" else "arithmetic"):
        return f"{text}the {cost.binds} of the cores, which the roof leaves out, {'take' if cost.binds == 'shuffles' else 'takes'} longest."
    return (
        f"{text}the launch does not keep all cores busy: {number_of(cost.work.programs, 'program')} on {cost.chip.cores} cores, "
        f"and {cost.held} threads on a core at a time."
    )


def bandwidth_picture(costs: Sequence[Cost]) -> str:
    """Bytes a second at the model's bound, of what each chip's memory can do."""
    moved = sum(memory_bytes(costs[0].work))
    if not moved:
        return ""
    left, wide, row = 130, 420, 28
    body = []
    for number, cost in enumerate(costs):
        rate, peak = moved / cost.seconds, cost.chip.bandwidth * 1e9
        y, share = 8 + row * number, min(1.0, rate / peak)
        color = f"chip{number % 4}"
        body.append(
            f'<text class="label {color}" x="{left - 8}" y="{y + 15}" text-anchor="end">{escape(cost.chip.name)}</text>'
            f'<rect class="line" x="{left}" y="{y}" width="{wide}" height="20"/>'
            f'<rect class="point {color}" x="{left}" y="{y}" width="{max(1, wide * share):.1f}" height="20"/>'
            f'<text class="axis" x="{left + wide + 6}" y="{y + 15}">{rate / 1e9:.3g} of {peak / 1e9:.3g} GB/s</text>'
        )
    return svg(left + wide + 200, 16 + row * len(costs), body, "bytes a second", "roofline")


def roofline_picture(costs: Sequence[Cost]) -> str:
    """Operations a second over operations a byte: the chips' roofs, and the launch at the model's bound.

    Bytes a second, where the launch computes nothing; nothing, where it moves nothing either.
    """
    work = costs[0].work
    counted = counted_of(costs)
    moved, operations = sum(memory_bytes(work)), counted.operations
    if not moved or not operations:
        return bandwidth_picture(costs)
    at = operations / moved
    left, wide, high = 80, 560, 240
    low_x, high_x = math.floor(math.log10(at) - 1), math.ceil(math.log10(at) + 1)
    rates = []
    for cost in costs:
        peak = peak_of(cost.chip, work, counted.kind)
        high_rate = 10**high_x * cost.chip.bandwidth * 1e9
        rates += [min(peak or high_rate, high_rate), 10**low_x * cost.chip.bandwidth * 1e9]
        if cost.seconds:
            rates.append(operations / cost.seconds)
    low_y, high_y = math.floor(math.log10(min(rates))), math.ceil(math.log10(max(rates)))

    def x(value: float) -> float:
        return left + wide * (math.log10(value) - low_x) / (high_x - low_x)

    def y(value: float) -> float:
        return 8 + high * (high_y - math.log10(value)) / (high_y - low_y)

    body = []
    for power in range(low_x, high_x + 1):
        body.append(
            f'<line class="grid" x1="{x(10**power):g}" x2="{x(10**power):g}" y1="8" y2="{high + 8}"/>'
        )
        body.append(
            f'<text class="axis" x="{x(10**power):g}" y="{high + 24}" text-anchor="middle">{_plain(10.0**power)}</text>'
        )
    for power in range(low_y, high_y + 1):
        body.append(
            f'<line class="grid" x1="{left}" x2="{left + wide}" y1="{y(10**power):g}" y2="{y(10**power):g}"/>'
        )
        body.append(
            f'<text class="axis" x="{left - 6}" y="{y(10**power) + 4:g}" text-anchor="end">{_rate(10.0**power)}</text>'
        )
    for number, cost in enumerate(costs):
        bandwidth = cost.chip.bandwidth * 1e9
        peak = peak_of(cost.chip, work, counted.kind)
        points = [10**low_x, 10**high_x]
        if peak is not None and points[0] < peak / bandwidth < points[1]:
            points.insert(1, peak / bandwidth)
        path = " ".join(f"{x(p):.1f},{y(min(p * bandwidth, peak or math.inf)):.1f}" for p in points)
        color = f"chip{number % 4}"
        body.append(f'<polyline class="roof {color}" points="{path}"/>')
        if cost.seconds:
            body.append(
                f'<circle class="point {color}" cx="{x(at):.1f}" cy="{y(operations / cost.seconds):.1f}" r="5">'
                f"<title>{escape(cost.chip.name)}: {_plain(at)} operations a byte, at most "
                f"{_rate(operations / cost.seconds)} a second</title></circle>"
            )
        body.append(
            f'<text class="label {color}" x="{left + wide - 6}" y="{high - 6 - 20 * number}" text-anchor="end">'
            f"{escape(cost.chip.name)} ({cost.chip.cores} cores)</text>"
        )
    for number, words in enumerate(
        (f"{counted.words} a byte of memory", "(upwards: operations a second)")
    ):
        body.append(
            f'<text class="axis" x="{left + wide / 2}" y="{high + 46 + 20 * number}" text-anchor="middle">{words}</text>'
        )
    return svg(left + wide + 20, high + 74, body, "roofline", "roofline")


def _rate(value: float) -> str:
    for unit, scale in (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6)):
        if value >= scale:
            return f"{value / scale:.3g}{unit}"
    return f"{value:.3g}"


def _plain(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
