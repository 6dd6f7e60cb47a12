"""The page of a launch: one HTML file that needs no other."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib import resources

from ..cost.chips import Chip
from ..cost.model import Cost, bound, shown
from ..words import number_of
from . import pictures, roofline, text
from .access import accesses_of
from .cards import access_cards, left_out, place_of, size
from .findings import Finding, findings_of
from .layouts import layouts_of
from .memory import buffers_of
from .record import Recorded
from .sources import Sources, sources_of
from .text import links

_MOST_LAYOUTS = 6
_MOST_FINDINGS = 50
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def page_of(recorded: Recorded, chips: Sequence[Chip]) -> str:
    """The HTML text of a launch's page with the bounds of its time on the chips."""
    sources = sources_of(recorded.kernel)
    accesses = accesses_of(recorded, sources)
    costs = [bound(chip, recorded.work) for chip in chips]
    findings = findings_of(accesses, costs)
    name = escape(recorded.kernel.name)
    body = [
        f"<h1><code>{name}</code></h1>",
        f'<p class="faint">{_launch(recorded)}. The host device ran the Metal text and counted what it did; times are lower '
        "bounds by a model of the chips, and no GPU was asked.</p>",
        '<noscript><p class="warning">The pictures of accesses and tiles are drawn by a script of the page, which this browser '
        "does not run.</p></noscript>",
        _facts(recorded, costs),
        _findings(findings, sources),
        _texts(recorded, sources, findings),
        access_cards(recorded, accesses, sources),
        _chips(costs),
        _memory(recorded),
        _layouts(recorded, sources),
        _counts(recorded),
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n<link rel="icon" href="data:,">\n'
        f"<title>{name}: report</title>\n<style>\n{_file('report.css')}</style>\n</head>\n<body>\n"
        + "\n".join(part for part in body if part)
        + f"\n<script>\n{_file('report.js')}</script>\n</body>\n</html>\n"
    )


def _file(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _launch(recorded: Recorded) -> str:
    x, y, z = recorded.grid
    threads = recorded.kernel.metadata.threads
    return f"{number_of(x * y * z, 'program')} ({x} × {y} × {z}) of {number_of(threads, 'thread')}"


def _facts(recorded: Recorded, costs: Sequence[Cost]) -> str:
    counters = recorded.counters
    facts = [
        (f"{counters['registers_per_thread']:g}", "registers a thread (estimate)"),
        *(
            (
                f"{cost.held} of {cost.chip.core_threads}",
                f"threads in flight on a core, {cost.chip.name}",
            )
            for cost in costs
        ),
        (f"{counters['threadgroup_memory_bytes']:,}", "bytes of threadgroup memory"),
        (size(counters["device_bytes_read"]), "asked for by loads"),
        (size(counters["device_bytes_written"]), "written by stores"),
        *(
            (f"≥ {shown(cost.seconds)}", f"{cost.chip.name}, bound by {cost.binds}")
            for cost in costs
        ),
    ]
    return (
        '<ul class="facts">'
        + "".join(f"<li><b>{escape(value)}</b>{escape(what)}</li>" for value, what in facts)
        + "</ul>"
    )


def _findings(findings: Sequence[Finding], sources: Sources) -> str:
    if not findings:
        return '<h2>Warnings</h2><p class="none">None.</p>'
    placed = [finding for finding in findings if finding.line is not None]
    rest = placed[_MOST_FINDINGS:]
    rows = []
    for finding in [*placed[:_MOST_FINDINGS], *(each for each in findings if each.line is None)]:
        belongs = links([] if finding.line is None else [finding.line])
        place = place_of(finding.line, sources)
        rows.append(
            f"<li{belongs}><b>{escape(finding.what)}</b>{', ' + place if place else ''}<br>{escape(finding.todo)}</li>"
        )
    hidden = left_out(len(rest), "warning")
    more = f'<p class="faint">{hidden}, about accesses that touch fewer lines.</p>' if rest else ""
    return f'<h2>Warnings</h2><ul class="warnings">{"".join(rows)}</ul>{more}'


def _texts(recorded: Recorded, sources: Sources, findings: Sequence[Finding]) -> str:
    warned = {finding.line for finding in findings}
    return (
        '<h2>Texts</h2><p class="faint">Lines that belong together light up under the pointer. A click or the Enter key keeps '
        "them and scrolls the other texts there; Escape lets go. Bars beside Metal lines show their share of the modelled "
        f"time.</p>{text.panes(sources, recorded.shares, warned)}"
    )


def _chips(costs: Sequence[Cost]) -> str:
    cards = []
    for cost in costs:
        slowest = max(cost.seconds, 1e-30)
        rows = "".join(
            f'<tr><td>{escape(part.unit)}</td><td class="number">{shown(part.seconds)}</td><td>'
            f'<span class="bar" style="width:{100 * part.seconds / slowest:.1f}%"></span>{escape(part.why)}</td></tr>'
            for part in cost.parts
        )
        missing = "".join(
            f'<p class="faint">Not in it: {escape(text)}.</p>' for text in cost.missing
        )
        advice = "".join(f"<p>To lower it: {escape(text)}.</p>" for text in cost.advice)
        cards.append(
            f'<article class="card chip"><h3>{escape(cost.chip.name)} ({cost.chip.cores} cores): at least {shown(cost.seconds)}, '
            f'bound by {escape(cost.binds)}</h3><div class="scroll"><table>{rows}</table></div>{advice}{missing}</article>'
        )
    picture = roofline.roofline_picture(costs)
    notes = roofline.notes_of(costs) if picture else []
    note = "".join(f'<p class="faint">{escape(each)}</p>' for each in notes)
    return (
        f'<h2>Time on chips</h2>{picture}{note}<div class="cards" id="chips">{"".join(cards)}</div>'
    )


def _memory(recorded: Recorded) -> str:
    buffers = buffers_of(recorded.kernel)
    if not buffers:
        return ""
    lines = len(recorded.kernel.asm["metal"].rstrip("\n").split("\n"))
    total = recorded.kernel.metadata.threadgroup_bytes
    hidden = left_out(len(buffers) - pictures.MOST_BUFFERS, "buffer")
    rest = f" {hidden}." if hidden else ""
    return (
        f'<h2>Threadgroup memory</h2><p class="faint">{number_of(total, "byte")}. A buffer stands from the line of its first use to that of '
        f"its last; buffers that are not needed at the same time may share a place.{rest}</p>"
        f'<div id="memory">{pictures.memory_picture(buffers, lines, total)}</div>'
    )


def _layouts(recorded: Recorded, sources: Sources) -> str:
    found = layouts_of(recorded.kernel, sources)
    cards = []
    for layout in found[:_MOST_LAYOUTS]:
        cards.append(
            f'<article class="card"><h3{links(layout.links)}>{escape(layout.label)}</h3><p class="faint">'
            f'{number_of(layout.registers, "element")} a thread<span class="shown"></span>.</p>{pictures.layout_picture(layout)}</article>'
        )
    if not cards:
        return ""
    hidden = left_out(len(found) - _MOST_LAYOUTS, "tile")
    rest = f" {hidden}." if hidden else ""
    return (
        '<h2>Tiles</h2><p class="faint">Which lane holds which element: colours are lanes, shades SIMD-groups; 2:5 is lane 5 of '
        f'SIMD-group 2.{rest}</p><div class="cards" id="layouts">{"".join(cards)}</div>'
    )


def _counts(recorded: Recorded) -> str:
    rows = "".join(
        f'<tr><td><code>{escape(name)}</code></td><td class="number">{value:,}</td></tr>'
        for name, value in recorded.counters.items()
        if value
    )
    return f'<h2>Counts</h2><div class="scroll"><table id="counts">{rows}</table></div>'
