"""The page of a launch: one HTML file that needs no other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib import resources

from ..cost.chips import Chip
from ..cost.model import Cost, bound, shown
from . import pictures, roofline
from .access import LINE, Access, accesses_of, touched
from .findings import Finding, findings_of, uses_little
from .layouts import layouts_of
from .memory import buffers_of
from .record import Recorded
from .sources import Line, Sources, sources_of

_MOST_LAYOUTS = 6
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
        _facts(recorded, costs),
        _findings(findings, sources),
        _texts(recorded, sources, findings),
        _accesses(recorded, accesses, sources),
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
    return f"{x * y * z:,} programs ({x} × {y} × {z}) of {threads} threads"


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
        (_size(counters["device_bytes_read"]), "asked for by loads"),
        (_size(counters["device_bytes_written"]), "written by stores"),
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


def _size(count: float) -> str:
    for unit in ("bytes", "KB", "MB"):
        if count < 1000:
            return f"{count:.4g} {unit}"
        count /= 1000
    return f"{count:.4g} GB"


def _links(lines: Iterable[int]) -> str:
    keys = " ".join(map(str, lines))
    return f' data-l="{keys}" tabindex="0"' if keys else ""


def _place(line: int | None, sources: Sources) -> str:
    return "" if line is None else f"line {sources.python[line].number}"


def _findings(findings: Sequence[Finding], sources: Sources) -> str:
    if not findings:
        return '<h2>Warnings</h2><p class="none">None.</p>'
    rows = []
    for finding in findings:
        links = _links([] if finding.line is None else [finding.line])
        place = _place(finding.line, sources)
        rows.append(
            f"<li{links}><b>{escape(finding.what)}</b>{', ' + place if place else ''}<br>{escape(finding.todo)}</li>"
        )
    return f'<h2>Warnings</h2><ul class="warnings">{"".join(rows)}</ul>'


def _texts(recorded: Recorded, sources: Sources, findings: Sequence[Finding]) -> str:
    warned = {finding.line for finding in findings}
    python = []
    for index, line in enumerate(sources.python):
        if line.heading:
            python.append(f'<div class="heading">{escape(line.heading)}</div>')
        python.append(_row(line, [index], "warned" if index in warned else ""))
    ttir = [_row(line, line.links) for line in sources.ttir]
    top = max(recorded.shares.values(), default=0.0)
    metal = []
    for line in sources.metal:
        share = recorded.shares.get(line.number, 0.0)
        heat = f"background:var(--heat);opacity:{share / top:.2f}" if share and top else ""
        note = f"{share:.1%} of the modelled time" if share else ""
        metal.append(_row(line, line.links, heat=heat, note=note))
    panes = "".join(
        f'<section class="pane" id="{key}"><h3>{title}</h3><div class="code" tabindex="0"><div class="rows">{"".join(rows)}</div></div>'
        "</section>"
        for key, title, rows in (
            ("python", "Python", python),
            ("ttir", "Triton IR", ttir),
            ("metal", "Metal", metal),
        )
    )
    return (
        '<h2>Texts</h2><p class="faint">Lines that belong together light up under the pointer. A click or the Enter key keeps '
        "them and scrolls the other texts there; Escape lets go. Bars beside Metal lines show their share of the modelled "
        f'time.</p><div class="panes">{panes}</div>'
    )


def _row(
    line: Line, links: Sequence[int], kind: str = "", heat: str | None = None, note: str = ""
) -> str:
    bar = "" if heat is None else f'<span class="heat" style="{heat}"></span>'
    title = f' title="{note}"' if note else ""
    return (
        f'<div class="row {kind}"{_links(links)}{title}>{bar}<span class="n">{line.number}</span>'
        f"<span>{escape(line.text) or ' '}</span></div>"
    )


def _accesses(recorded: Recorded, accesses: Sequence[Access], sources: Sources) -> str:
    cards = []
    for access in accesses:
        execution = max(
            access.executions, key=lambda e: sum(offset is not None for offset in e.offsets)
        )
        lines, used = touched(execution.offsets, access.bytes)
        counts = recorded.lines.get(access.line, {})
        whole = counts.get(
            "device_bytes_written" if access.kind == "store" else "device_bytes_read", 0
        )
        little = uses_little(access)
        warning = (
            f'<p class="warning">Only {access.use:.0%} of each line is used.</p>' if little else ""
        )
        place = ", ".join(
            filter(None, (_place(access.python, sources), f"Metal line {access.line}"))
        )
        cards.append(
            f'<article class="card{" little" if little else ""}">'
            f"<h3{_links([] if access.python is None else [access.python])}>{access.kind} of <code>{escape(access.array or '?')}</code> "
            f'<span class="faint">{place}</span></h3>'
            f"<p>{access.bytes} bytes a lane, {escape(access.pattern)}. This execution touches {lines} "
            f"line{'s' * (lines != 1)} of {LINE} bytes and uses {used} of {lines * LINE} bytes. All executions of "
            f"Metal line {access.line} move {_size(whole)}; {access.use:.0%} of the lines in those that were kept is used.</p>"
            f"{warning}{pictures.access_picture(execution, access.bytes)}"
            f'<p class="faint">Program {execution.program}, SIMD-group {execution.simdgroup}, execution {execution.number}. '
            "Colours and numbers are lanes; to the left is the line's first byte in the array, to the right its bytes that are "
            "used.</p></article>"
        )
    if not cards:
        return ""
    return f'<h2>Loads and stores</h2><div class="cards" id="accesses">{"".join(cards)}</div>'


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
    note = f'<p class="faint">{escape(roofline.note_of(costs[0].work))}</p>' if picture else ""
    return (
        f'<h2>Time on chips</h2>{picture}{note}<div class="cards" id="chips">{"".join(cards)}</div>'
    )


def _memory(recorded: Recorded) -> str:
    buffers = buffers_of(recorded.kernel)
    if not buffers:
        return ""
    lines = len(recorded.kernel.asm["metal"].rstrip("\n").split("\n"))
    total = recorded.kernel.metadata.threadgroup_bytes
    return (
        f'<h2>Threadgroup memory</h2><p class="faint">{total:,} bytes. A buffer stands from the line of its first use to that of '
        "its last; buffers that are not needed at the same time may share a place.</p>"
        f'<div id="memory">{pictures.memory_picture(buffers, lines, total)}</div>'
    )


def _layouts(recorded: Recorded, sources: Sources) -> str:
    found = layouts_of(recorded.kernel, sources)
    cards = []
    for layout in found[:_MOST_LAYOUTS]:
        picture, note = pictures.layout_picture(layout)
        cards.append(
            f'<article class="card"><h3{_links(layout.links)}>{escape(layout.label)}</h3><p class="faint">{layout.registers} '
            f"element{'s' * (layout.registers != 1)} a thread{'; shown: ' + note if note else ''}.</p>{picture}</article>"
        )
    if not cards:
        return ""
    rest = (
        f" {len(found) - _MOST_LAYOUTS} more tiles are left out."
        if len(found) > _MOST_LAYOUTS
        else ""
    )
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
