"""The pictures of a page, as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import product

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


def svg(width: float, height: float, body: Sequence[str], label: str, kind: str = "") -> str:
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
    return svg(
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
    return svg(
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
    picture = svg(shown_columns * cell, shown_rows * cell, body, f"layout of {layout.label}")
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
