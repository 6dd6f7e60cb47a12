"""How near a launch comes to what a chip can do, by the model: operations a second over operations a byte."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from ..cost.chips import Chip
from ..cost.model import Cost, Work, memory_bytes
from .pictures import svg


def float_operations(work: Work) -> float:
    """Float operations: a fused one counts once, a product of 8x8x8 as 512 of them."""
    types = ("f32", "f16", "bf16")
    kinds = ("add", "mul", "fma", "other")
    counters = work.counters
    simple = sum(counters.get(f"optimized_{t}_{kind}", 0) for t in types for kind in kinds)
    return float(simple + 512 * counters.get("simdgroup_matrix_multiplies", 0))


def kind_of(work: Work) -> str:
    """The operations that the roofline counts: "float", "integer" where there are no floats, "" where there is neither."""
    if float_operations(work):
        return "float"
    return "integer" if _integers(work) else ""


def operations_of(work: Work) -> float:
    """The operations of `kind_of`."""
    return float_operations(work) or _integers(work)


def _integers(work: Work) -> float:
    counters = work.counters
    every = sum(counters.get(f"optimized_int_{kind}", 0) for kind in ("add", "mul", "other"))
    return max(0.0, float(every - counters.get("optimized_function_int", 0)))


def peak_of(chip: Chip, work: Work) -> float | None:
    """The most such operations a second, None if no clock is published or no rate of its matrix products.

    Matrix products run beside other operations in the model, and multiplications of integers beside other integers: their rates add up.
    """
    if chip.clock is None:
        return None
    units = chip.units
    if kind_of(work) == "integer":
        rate = units.int_add + (units.int_mul if work.counters.get("optimized_int_mul", 0) else 0)
    else:
        rate = max(units.half_add, units.float_add)
    if work.counters.get("simdgroup_matrix_multiplies", 0):
        matrix = units.matrix_half if work.half_products else units.matrix_float
        if matrix is None or work.tensor_operations:
            return None
        rate += matrix
    return chip.cores * chip.clock * 1e9 * rate


def note_of(work: Work) -> str:
    """What is to be known of the picture."""
    what = {
        "float": "A fused multiply-add is one operation, a product of 8×8×8 is 512 of them.",
        "integer": "The launch has no float arithmetic: operations are those of integers.",
        "": "The launch computes nothing: bars are bytes a second, and their ends the chips' bandwidths.",
    }[kind_of(work)]
    return (
        f"{what} Points are the most that the model allows, not measurements; a chip without a published clock has the roof of "
        "its memory only."
        if kind_of(work)
        else f"{what} They are the most that the model allows, not measurements."
    )


def bandwidth_picture(costs: Sequence[Cost]) -> str:
    """Bytes a second at the model's bound, of what each chip's memory can do."""
    moved = sum(memory_bytes(costs[0].work))
    if not moved:
        return ""
    left, wide, row = 130, 460, 28
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
    return svg(left + wide + 160, 16 + row * len(costs), body, "bytes a second", "roofline")


def roofline_picture(costs: Sequence[Cost]) -> str:
    """Operations a second over operations a byte: the chips' roofs, and the launch at the model's bound.

    Bytes a second, where the launch computes nothing; nothing, where it moves nothing either.
    """
    work = costs[0].work
    moved, operations = sum(memory_bytes(work)), operations_of(work)
    if not moved or not operations:
        return bandwidth_picture(costs)
    at = operations / moved
    left, wide, high = 70, 560, 240
    low_x, high_x = math.floor(math.log10(at) - 1), math.ceil(math.log10(at) + 1)
    rates = []
    for cost in costs:
        peak = peak_of(cost.chip, work)
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
            f'<text class="axis" x="{x(10**power):g}" y="{high + 24}" text-anchor="middle">{10.0**power:g}</text>'
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
        peak = peak_of(cost.chip, work)
        points = [10**low_x, 10**high_x]
        if peak is not None and points[0] < peak / bandwidth < points[1]:
            points.insert(1, peak / bandwidth)
        path = " ".join(f"{x(p):.1f},{y(min(p * bandwidth, peak or math.inf)):.1f}" for p in points)
        color = f"chip{number % 4}"
        body.append(f'<polyline class="roof {color}" points="{path}"/>')
        if cost.seconds:
            body.append(
                f'<circle class="point {color}" cx="{x(at):.1f}" cy="{y(operations / cost.seconds):.1f}" r="5">'
                f"<title>{escape(cost.chip.name)}: {at:.3g} operations a byte, at most "
                f"{_rate(operations / cost.seconds)} a second</title></circle>"
            )
        body.append(
            f'<text class="label {color}" x="{left + wide - 6}" y="{high - 6 - 16 * number}" text-anchor="end">'
            f"{escape(cost.chip.name)} ({cost.chip.cores} cores)</text>"
        )
    body.append(
        f'<text class="axis" x="{left + wide / 2}" y="{high + 42}" text-anchor="middle">{kind_of(work)} operations a byte of memory '
        "(upwards: operations a second)</text>"
    )
    return svg(left + wide + 20, high + 50, body, "roofline", "roofline")


def _rate(value: float) -> str:
    for unit, scale in (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6)):
        if value >= scale:
            return f"{value / scale:.3g}{unit}"
    return f"{value:.3g}"
