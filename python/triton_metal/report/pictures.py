"""The pictures of a page: SVG, and the data of those that the page's script draws (report.js)."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import prod

from .access import Execution
from .layouts import Layout
from .memory import Buffer

#: Buffers that the picture of threadgroup memory shows.
MOST_BUFFERS = 200
#: Pixels of a letter where the page is narrow (report.css makes letters larger there, as pictures shrink).
LETTER = 11


def svg(width: float, height: float, body: Sequence[str], label: str, kind: str = "") -> str:
    return (
        f'<div class="picture {kind}" tabindex="0"><svg viewBox="0 0 {width:g} {height:g}" role="img" '
        f'aria-label="{escape(label)}" style="width:{width:g}px">{"".join(body)}</svg></div>'
    )


def access_picture(execution: Execution, bytes: int) -> str:
    """Which lane touches which bytes of which 128-byte lines in one execution: the lanes' first bytes, for the script."""
    begin = min((offset for offset in execution.offsets if offset is not None), default=0)
    places = " ".join("-" if o is None else str(o - begin) for o in execution.offsets)
    return (
        f'<div class="picture access" tabindex="0" data-bytes="{bytes}" data-begin="{begin}" '
        f'data-offsets="{places}"></div>'
    )


def memory_picture(buffers: Sequence[Buffer], lines: int, total: int) -> str:
    """Threadgroup memory: bytes downwards, the lines of the Metal text to the right."""
    left, wide, high = 64, 600, 160
    body = [f'<rect class="line" x="{left}" y="8" width="{wide}" height="{high}"/>']
    for buffer in buffers[:MOST_BUFFERS]:
        x = left + wide * (buffer.first - 1) / lines
        width = max(3, wide * (buffer.last - buffer.first + 1) / lines)
        y, height = 8 + high * buffer.offset / total, max(3, high * buffer.bytes / total)
        body.append(
            f"<g><title>{escape(buffer.name)}: {buffer.bytes:,} bytes from {buffer.offset:,} on, lines {buffer.first} to "
            f'{buffer.last}</title><rect class="buffer" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"/>'
        )
        if len(buffer.name) * LETTER <= width and height >= 20:
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


def layout_picture(layout: Layout) -> str:
    """Which lane holds which element of a tile: its shape, and its bases as places in the order of elements, for the script."""
    steps = [prod(layout.shape[axis + 1 :]) for axis in range(len(layout.shape))]
    bases = ";".join(
        " ".join(
            str(sum(place * step for place, step in zip(vector, steps, strict=True)))
            for vector in layout.bases.get(name, [])
        )
        for name in ("simdgroup", "lane", "register")
    )
    shape = " ".join(map(str, layout.shape))
    return (
        f'<div class="picture tile" tabindex="0" data-shape="{shape}" data-bases="{bases}" '
        f'data-label="layout of {escape(layout.label)}"></div>'
    )
