"""The pictures of a page, as SVG."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from itertools import product

from ..cost.chips import Chip
from ..cost.model import Cost, Work, memory_bytes
from .access import LINE, Execution
from .layouts import Layout
from .memory import Buffer

_MOST_LINES = 16
_MOST_ROWS, _MOST_COLUMNS = 32, 64


def _lane_color(lane: int, simdgroup: int = 0) -> str:
    return f"hsl({lane * 360 // 32} 65% {78 - 9 * (simdgroup % 4)}%)"


def _numbers(lanes: Sequence[int]) -> str:
    """Lanes as ranges: "0-3, 8"."""
    ranges: list[list[int]] = []
    for lane in lanes:
        if ranges and ranges[-1][1] == lane - 1:
            ranges[-1][1] = lane
        else:
            ranges.append([lane, lane])
    return ", ".join(str(a) if a == b else f"{a}–{b}" for a, b in ranges)


#: Pixels below which the numbers of a picture cannot be read: a card that is narrower scrolls.
_READABLE = 540


def _svg(width: float, height: float, body: Sequence[str], label: str, kind: str = "") -> str:
    return (
        f'<div class="picture {kind}" tabindex="0"><svg viewBox="0 0 {width:g} {height:g}" role="img" '
        f'aria-label="{escape(label)}" style="width:{width:g}px;min-width:{min(width, _READABLE):g}px">{"".join(body)}</svg></div>'
    )


def access_picture(execution: Execution, bytes: int) -> str:
    """Which lane touches which bytes of which 128-byte lines in one execution."""
    by_place: dict[int, list[int]] = {}
    for lane, offset in enumerate(execution.offsets):
        if offset is not None:
            by_place.setdefault(offset, []).append(lane)
    pieces: dict[int, list[tuple[int, int, list[int]]]] = {}
    for offset, lanes in sorted(by_place.items()):
        begin = offset
        while begin < offset + bytes:
            end = min(offset + bytes, (begin // LINE + 1) * LINE)
            pieces.setdefault(begin // LINE, []).append((begin % LINE, end - begin, lanes))
            begin = end
    scale, left, row = 4.5, 96, 24
    shown = list(pieces.items())[:_MOST_LINES]
    body = []
    for place in range(0, LINE + 1, 32):
        body.append(
            f'<text class="axis" x="{left + place * scale:g}" y="11" text-anchor="middle">{place}</text>'
        )
    for number, (line, parts) in enumerate(shown):
        y = 16 + number * row
        used = len({b for begin, size, _ in parts for b in range(begin, begin + size)})
        body.append(
            f'<text class="axis" x="{left - 6}" y="{y + 15}" text-anchor="end">{line * LINE:,}</text>'
        )
        body.append(f'<rect class="line" x="{left}" y="{y}" width="{LINE * scale:g}" height="20"/>')
        for begin, size, lanes in parts:
            width = size * scale
            text = _numbers(lanes)
            body.append(
                f"<g><title>lane {text}: bytes {line * LINE + begin:,} to {line * LINE + begin + size - 1:,}</title>"
                f'<rect class="lane" data-lanes="{" ".join(map(str, lanes))}" x="{left + begin * scale:g}" y="{y}" '
                f'width="{width:g}" height="20" fill="{_lane_color(lanes[0])}"/>'
            )
            if len(text) * 6.5 <= width:
                body.append(
                    f'<text class="on" x="{left + begin * scale + width / 2:g}" y="{y + 14}" text-anchor="middle">{text}</text>'
                )
            body.append("</g>")
        body.append(
            f'<text class="axis" x="{left + LINE * scale + 6:g}" y="{y + 15}">{used} of {LINE}</text>'
        )
    height = 20 + row * len(shown)
    if len(pieces) > len(shown):
        height += 18
        body.append(
            f'<text class="axis" x="{left}" y="{height - 6}">and {len(pieces) - len(shown)} more lines</text>'
        )
    return _svg(
        left + LINE * scale + 76, height, body, f"{len(pieces)} lines of 128 bytes", "access"
    )


def memory_picture(buffers: Sequence[Buffer], lines: int, total: int) -> str:
    """Threadgroup memory: bytes downwards, the lines of the Metal text to the right."""
    left, wide, high = 64, 600, 160
    body = [f'<rect class="line" x="{left}" y="8" width="{wide}" height="{high}"/>']
    for buffer in buffers:
        x = left + wide * (buffer.first - 1) / lines
        width = max(3, wide * (buffer.last - buffer.first + 1) / lines)
        y, height = 8 + high * buffer.offset / total, max(3, high * buffer.bytes / total)
        body.append(
            f"<g><title>{escape(buffer.name)}: {buffer.bytes:,} bytes from {buffer.offset:,} on, lines {buffer.first} to "
            f'{buffer.last}</title><rect class="buffer" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"/>'
        )
        if len(buffer.name) * 7 <= width and height >= 14:
            body.append(
                f'<text class="on" x="{x + 5:g}" y="{y + 14:g}">{escape(buffer.name)}</text>'
            )
        body.append("</g>")
    for line in range(5):
        number = max(1, round(lines * line / 4))
        body.append(
            f'<text class="axis" x="{left + wide * line / 4:g}" y="{high + 24}" text-anchor="middle">{number}</text>'
        )
    body.append(f'<text class="axis" x="{left - 6}" y="18" text-anchor="end">0</text>')
    body.append(
        f'<text class="axis" x="{left - 6}" y="{high + 8}" text-anchor="end">{total:,}</text>'
    )
    body.append(
        f'<text class="axis" x="{left + wide / 2}" y="{high + 40}" text-anchor="middle">line of the Metal text</text>'
    )
    return _svg(
        left + wide + 24, high + 46, body, "threadgroup memory over the lines of the Metal text"
    )


def layout_picture(layout: Layout) -> tuple[str, str]:
    """Which lane holds which element, and a note on what is shown of the tile."""
    owners = owners_of(layout)
    *outer, columns = layout.shape
    rows = outer[-1] if outer else 1
    if not outer and columns > 32:
        rows, columns = columns // 32, 32
        owners = {divmod(place[0], 32): owner for place, owner in owners.items()}
    elif not outer:
        owners = {(0, place[0]): owner for place, owner in owners.items()}
    else:
        owners = {place[-2:]: owner for place, owner in owners.items() if not any(place[:-2])}
    shown_rows, shown_columns = min(rows, _MOST_ROWS), min(columns, _MOST_COLUMNS)
    cell = max(10, min(20, 640 // shown_columns))
    body = []
    for r in range(shown_rows):
        c = 0
        while c < shown_columns:
            owner = owners[r, c]
            end = c + 1
            while end < shown_columns and owners[r, end][:2] == owner[:2]:
                end += 1
            simdgroup, lane, register = owner
            width = (end - c) * cell
            registers = register if end == c + 1 else f"{register} to {owners[r, end - 1][2]}"
            body.append(
                f"<g><title>row {r}, columns {c} to {end - 1}: SIMD-group {simdgroup}, lane {lane}, register {registers}</title>"
                f'<rect class="element" x="{c * cell}" y="{r * cell}" width="{width}" height="{cell}" '
                f'fill="{_lane_color(lane, simdgroup)}"/>'
            )
            if width >= 18 and cell >= 10:
                body.append(
                    f'<text class="tiny" x="{c * cell + width / 2:g}" y="{r * cell + cell * 0.78:g}" text-anchor="middle">'
                    f"{simdgroup}:{lane}</text>"
                    if width >= 28
                    else f'<text class="tiny" x="{c * cell + width / 2:g}" y="{r * cell + cell * 0.78:g}" '
                    f'text-anchor="middle">{lane}</text>'
                )
            body.append("</g>")
            c = end
    note = ""
    if (shown_rows, shown_columns) != (rows, columns):
        note = f"the first {shown_rows} rows and {shown_columns} columns of {rows} by {columns}"
    picture = _svg(shown_columns * cell, shown_rows * cell, body, f"layout of {layout.label}")
    return picture, note


def owners_of(layout: Layout) -> dict[tuple[int, ...], tuple[int, int, int]]:
    """The SIMD-group, the lane and the register that hold each element; the lowest where there are several."""
    found: dict[tuple[int, ...], tuple[int, int, int]] = {}
    bases = [layout.bases.get(name, []) for name in ("simdgroup", "lane", "register")]
    for simdgroup, lane, register in product(*(range(1 << len(each)) for each in bases)):
        place = [0] * len(layout.shape)
        for value, vectors in zip((simdgroup, lane, register), bases, strict=True):
            for bit, vector in enumerate(vectors):
                if value >> bit & 1:
                    place = [a ^ b for a, b in zip(place, vector, strict=True)]
        found.setdefault(tuple(place), (simdgroup, lane, register))
    return found


def operations_of(work: Work) -> float:
    """Float operations: a fused one counts once, a product of 8x8x8 as 512 of them."""
    types = ("f32", "f16", "bf16")
    kinds = ("add", "mul", "fma", "other")
    counters = work.counters
    simple = sum(counters.get(f"optimized_{t}_{kind}", 0) for t in types for kind in kinds)
    return float(simple + 512 * counters.get("simdgroup_matrix_multiplies", 0))


def peak_of(chip: Chip, work: Work) -> float | None:
    """The most such operations a second, None if no clock is published or no rate of its matrix products.

    Matrix products run beside other operations in the model, so that their rates add up.
    """
    if chip.clock is None:
        return None
    units = chip.units
    rate = max(units.half_add, units.float_add)
    if work.counters.get("simdgroup_matrix_multiplies", 0):
        matrix = units.matrix_half if work.half_products else units.matrix_float
        if matrix is None or work.tensor_operations:
            return None
        rate += matrix
    return chip.cores * chip.clock * 1e9 * rate


def roofline_picture(costs: Sequence[Cost]) -> str:
    """Operations a second over operations a byte: the chips' roofs, and the launch at the model's bound."""
    work = costs[0].work
    moved, operations = sum(memory_bytes(work)), operations_of(work)
    if not moved or not operations:
        return ""
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
        f'<text class="axis" x="{left + wide / 2}" y="{high + 42}" text-anchor="middle">operations a byte of memory '
        "(upwards: operations a second)</text>"
    )
    return _svg(left + wide + 20, high + 50, body, "roofline", "roofline")


def _rate(value: float) -> str:
    for unit, scale in (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6)):
        if value >= scale:
            return f"{value / scale:.3g}{unit}"
    return f"{value:.3g}"
