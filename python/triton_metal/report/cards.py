"""The loads and stores of a page: a card with a picture for each kind of access, a table of those that there is no room for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from ..words import number_of
from . import pictures
from .access import LINE, Access, touched
from .findings import uses_little
from .record import Recorded
from .sources import Sources
from .text import links

#: Cards with pictures, and rows of the table below them.
_MOST_CARDS, _MOST_ROWS = 60, 1_400
#: Lines of the Metal text that a card or a row names.
_MOST_LINES = 300


def size(count: float) -> str:
    """A number of bytes in words: "4.096 KB"."""
    if count == 1:
        return "1 byte"
    for unit in ("bytes", "KB", "MB"):
        if count < 1000:
            return f"{count:.4g} {unit}"
        count /= 1000
    return f"{count:.4g} GB"


def left_out(count: int, what: str) -> str:
    """What there is no room for: "3 more tiles are left out"; nothing if nothing is."""
    return (
        f"{number_of(count, f'more {what}')} {'is' if count == 1 else 'are'} left out"
        if count > 0
        else ""
    )


def place_of(line: int | None, sources: Sources) -> str:
    """A line of Python in words; nothing if it is not known."""
    return "" if line is None else f"line {sources.python[line].number}"


class Alike:
    """Accesses of one line of Python that differ only in their line of the Metal text."""

    def __init__(self, recorded: Recorded, access: Access) -> None:
        self.first = access
        self.metal = [access.line]
        self.shown = touched(access.fullest.offsets, access.bytes)
        counts = recorded.lines.get(access.line, {})
        use = "written" if access.kind == "store" else "read"
        self.moved = counts.get(f"device_bytes_{use}", 0)
        self.weight = access.moved
        self.is_little = uses_little(access)

    @property
    def key(self) -> tuple[object, ...]:
        """What all of them have in common: everything that the page says."""
        a = self.first
        use = f"{a.use:.0%}"
        return (a.python, a.kind, a.array, a.bytes, a.pattern, use, self.is_little, *self.shown, self.moved)  # fmt: skip

    def join(self, other: Alike) -> None:
        """Takes in an access that is alike."""
        self.metal += other.metal
        self.weight += other.weight


def access_cards(recorded: Recorded, accesses: Iterable[Access], sources: Sources) -> str:
    """The part of the page about loads and stores; nothing for a launch without any."""
    groups: dict[tuple[object, ...], Alike] = {}
    for access in accesses:
        one = Alike(recorded, access)
        known = groups.setdefault(one.key, one)
        if known is not one:
            known.join(one)
    every = list(groups.values())
    ranked = sorted(every, key=lambda one: (not one.is_little, -one.weight))
    with_cards = {id(one) for one in ranked[:_MOST_CARDS]}
    cards = [_card(one, sources) for one in every if id(one) in with_cards]
    if not cards:
        return ""
    return (
        f'<h2>Loads and stores</h2><div class="cards" id="accesses">{"".join(cards)}</div>'
        f"{_table(ranked[_MOST_CARDS:], sources)}"
    )


def _card(one: Alike, sources: Sources) -> str:
    access = one.first
    execution = access.fullest
    lines, used = one.shown
    warning = (
        f'<p class="warning">Only {access.use:.0%} of each line is used.</p>'
        if one.is_little
        else ""
    )
    place = ", ".join(filter(None, (place_of(access.python, sources), _metal(one.metal))))
    lines_of = (
        f"Metal line {one.metal[0]}" if len(set(one.metal)) == 1 else "each of these Metal lines"
    )
    return (
        f'<article class="card{" little" if one.is_little else ""}">'
        f"<h3{links([] if access.python is None else [access.python])}>{access.kind} of "
        f'<code>{escape(access.array or "?")}</code> <span class="faint">{place}</span></h3>'
        f"<p>{number_of(access.bytes, 'byte')} a lane, {escape(access.pattern)}. This execution touches "
        f"{number_of(lines, 'line')} of {LINE} bytes and uses {used:,} of {lines * LINE:,} bytes. In all programs, {lines_of} "
        f"{'writes' if access.kind == 'store' else 'reads'} {size(one.moved)}. The executions that were kept use {access.use:.0%} "
        "of the bytes of their lines.</p>"
        f"{warning}{pictures.access_picture(execution, access.bytes)}"
        f'<p class="faint">Program {execution.program}, SIMD-group {execution.simdgroup}, execution {execution.number}. '
        "Colours and numbers are lanes; to the left is the line's first byte in the array, to the right its bytes that are "
        "used.</p></article>"
    )


def _metal(lines: Sequence[int]) -> str:
    """Lines of the Metal text in words."""
    numbers = list(dict.fromkeys(lines))
    if len(numbers) == 1:
        return f"Metal line {numbers[0]}"
    *some, last = numbers[:_MOST_LINES]
    rest = len(numbers) - len(some) - 1
    if rest:
        return f"Metal lines {', '.join(map(str, [*some, last]))} and {rest:,} more"
    return f"Metal lines {', '.join(map(str, some))} and {last}"


def _table(rest: Sequence[Alike], sources: Sources) -> str:
    """The accesses without cards, those that touch the most lines first."""
    if not rest:
        return ""
    rows = "".join(_row(one, sources) for one in rest[:_MOST_ROWS])
    hidden = left_out(len(rest) - _MOST_ROWS, "kind")
    heads = (
        "Access", "Lines", "A lane", "Lanes", "Lines touched", "Bytes used", "In all programs", "Use of lines",
    )  # fmt: skip
    head = "".join(f"<th>{each}</th>" for each in heads)
    return (
        f'<p class="faint">So that the page has less than 2 MB, only {_MOST_CARDS} kinds of accesses have pictures: those with '
        "warnings before others, and those that touch the most lines first. The table has the next "
        f"{min(len(rest), _MOST_ROWS):,}{', and ' + hidden if hidden else ''}.</p>"
        f'<div class="scroll"><table id="others"><tr>{head}</tr>{rows}</table></div>'
    )


def _row(one: Alike, sources: Sources) -> str:
    access = one.first
    lines, used = one.shown
    place = ", ".join(filter(None, (place_of(access.python, sources), _metal(one.metal[:20]))))
    if len(one.metal) > 20:
        place += f" and {len(one.metal) - 20:,} more"
    cells = (
        f"{access.kind} of {escape(access.array or '?')}", place, number_of(access.bytes, "byte"), escape(access.pattern),
        f"{lines:,}", f"{used:,}", size(one.moved), f"{access.use:.0%}",
    )  # fmt: skip
    belongs = links([] if access.python is None else [access.python])
    return f"<tr{belongs}>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
