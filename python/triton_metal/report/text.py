"""The texts of a page: rows of Python, Triton IR and Metal, as many as there is room for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

from .sources import Line, Sources

#: Bytes of the page that all texts may take together: more is left out, as a page has less than 2 MB.
ROOM = 1_200_000
#: Letters of a line that are shown.
_MOST_LETTERS = 2_000
#: Shares of the modelled time have so many lengths of bars.
_LEVELS = 10


class Row(NamedTuple):
    """A row of a text as HTML, and the number of its line."""

    html: str
    number: int


class Pane(NamedTuple):
    """A text: its name in the page, its title, its rows, and where the whole text is."""

    key: str
    title: str
    rows: list[Row]
    whole: str


def links(lines: Iterable[int]) -> str:
    """The attribute that says to which lines of Python an element belongs."""
    keys = " ".join(map(str, lines))
    return f' data-l="{keys}"' if keys else ""


def panes(sources: Sources, shares: dict[int, float], warned: set[int | None]) -> str:
    """The three texts side by side."""
    every = (
        Pane("python", "Python", _python(sources, warned), "the program's file has them"),
        Pane(
            "ttir",
            "Triton IR",
            [_row(line, line.links) for line in sources.ttir],
            'asm["ttir"] of the compiled kernel has them',
        ),
        Pane(
            "metal",
            "Metal",
            _metal(sources, shares),
            'asm["metal"] of the compiled kernel has them',
        ),
    )
    rooms = _rooms([_size(pane.rows) for pane in every])
    return '<div class="panes">' + "".join(map(_pane, every, rooms)) + "</div>"


def _python(sources: Sources, warned: set[int | None]) -> list[Row]:
    return [
        _row(line, [index], ' class="warned"' if index in warned else "")
        for index, line in enumerate(sources.python)
    ]


def _metal(sources: Sources, shares: dict[int, float]) -> list[Row]:
    top = max(shares.values(), default=0.0) or 1.0
    rows = []
    for line in sources.metal:
        share = shares.get(line.number, 0.0)
        level = round(_LEVELS * share / top)
        heat = f' class="h{level}"' if level else ""
        note = f' title="{share:.1%} of the modelled time"' if share >= 0.0005 else ""
        rows.append(_row(line, line.links, heat + note))
    return rows


def _row(line: Line, belongs: Sequence[int], more: str = "") -> Row:
    text = line.text
    if len(text) > _MOST_LETTERS:
        text = f"{text[:_MOST_LETTERS]} … {len(text) - _MOST_LETTERS:,} more letters"
    heading = _heading(line.heading, line.number) if line.heading else ""
    return Row(f"{heading}<p{links(belongs)}{more}>{escape(text, quote=False)}</p>", line.number)


def _heading(text: str, number: int) -> str:
    """A heading, after which a block of rows begins whose first line has the number."""
    return (
        f'</div><div class="heading">{escape(text)}</div><div style="counter-reset:n {number - 1}">'
    )


def _size(rows: Iterable[Row]) -> int:
    return sum(len(row.html.encode()) for row in rows)


def _rooms(sizes: Sequence[int]) -> list[int]:
    """The bytes that each text may take: all that it wants, or an equal part of what shorter ones leave."""
    rooms, left = [0] * len(sizes), ROOM
    order = sorted(range(len(sizes)), key=lambda index: sizes[index])
    for done, index in enumerate(order):
        rooms[index] = min(sizes[index], left // (len(sizes) - done))
        left -= rooms[index]
    return rooms


def _pane(pane: Pane, room: int) -> str:
    rows = "".join(row.html for row in _shortened(pane, room))
    return (
        f'<section class="pane" id="{pane.key}"><h3>{pane.title}</h3><div class="code" tabindex="0"><div class="rows">'
        f"<div>{rows}</div></div></div></section>"
    )


def _shortened(pane: Pane, room: int) -> list[Row]:
    """The rows that there is room for: the first ones and, with half of the room, the last ones."""
    rows = pane.rows
    if _size(rows) <= room:
        return rows
    begin = _count(rows, room // 2)
    end = len(rows) - _count(rows[::-1], room // 2)
    left_out = (
        f"… {end - begin:,} lines are left out, so that the page has less than 2 MB: {pane.whole}."
    )
    number = rows[end].number if end < len(rows) else 1
    return [*rows[:begin], Row(_heading(left_out, number), 0), *rows[end:]]


def _count(rows: Iterable[Row], room: int) -> int:
    """How many of the first rows there is room for."""
    count = 0
    for row in rows:
        room -= len(row.html.encode())
        if room < 0:
            break
        count += 1
    return count
