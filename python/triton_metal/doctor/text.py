"""The doctor's report as text, for a terminal and as Markdown."""

from __future__ import annotations

import json
from typing import Any


def size(value: int | None) -> str:
    """Bytes as GiB.

    >>> size(17179869184), size(None)
    ('16.0 GiB', 'unknown')
    """
    return "unknown" if value is None else f"{value / 2**30:.1f} GiB"


def facts(report: dict[str, Any]) -> list[tuple[str, str]]:
    """The findings as names and values."""
    system, gpu = report["system"], report["gpu"]
    result = [
        ("triton_metal", report["triton_metal"]),
        ("system", f"{system['os']} ({system['machine']}), Python {system['python']}"),
    ]
    if "chip" in gpu:
        unknown = "unknown"
        result += [
            ("chip", gpu["chip"] or unknown),
            ("GPU cores", str(gpu["gpu_cores"] or unknown)),
            ("GPU family", gpu["gpu_family"] or unknown),
            ("Metal language", gpu["msl_version"] or unknown),
            ("memory", size(gpu["memory_bytes"])),
            ("working set", size(gpu["working_set_bytes"])),
        ]
        said = {True: "yes", False: "no", None: "unknown"}
        result.append(
            (
                "features",
                ", ".join(f"{n}: {said[v]}" for n, v in gpu["features"].items()) or unknown,
            )
        )
    else:
        result.append(("Apple GPU", "none"))
    result.append(
        (
            "packages",
            ", ".join(
                f"{name} {version}" for name, version in report["packages"].items() if version
            ),
        )
    )
    return result


_STYLES = {"ok": "green", "skipped": "yellow", "FAILED": "bold red"}
_WORDS = {"ok": "detail", "skipped": "skipped", "FAILED": "error"}


def state_of(record: dict[str, Any]) -> str:
    """The result of a record in one word."""
    return "FAILED" if not record.get("ok") else "skipped" if "skipped" in record else "ok"


def measured(record: dict[str, Any]) -> str:
    """The figures of a record in a few words."""
    if not record.get("ok"):
        return record.get("error", "failed").strip().splitlines()[0]
    for state in ("refused", "skipped"):
        if state in record:
            return f"{state}: {record[state]}"
    parts = []
    if "largest_error" in record:
        parts.append(f"error {record['largest_error']:.2g} of {record['tolerance']:.2g}")
    if "accuracy" in record:
        parts.append(f"{record['accuracy']:.1%} right")
    if "us" in record:
        parts.append(f"{record['us']:.1f} us")
    if "ms" in record:
        parts.append(f"{record['ms']:.3f} ms")
    elif "first_ms" in record:
        parts.append(f"first launch {record['first_ms']:.0f} ms")
    if "gb_per_s" in record:
        parts.append(f"{record['gb_per_s']:.1f} GB/s")
    if "gflop_per_s" in record:
        parts.append(f"{record['gflop_per_s']:.1f} GFLOP/s")
    return ", ".join(parts)


def label(record: dict[str, Any]) -> str:
    """The name of a record."""
    return " ".join(
        str(part) for part in (record["name"], record.get("shape"), record.get("dtype")) if part
    )


def show(report: dict[str, Any]) -> None:
    """Prints the report, with rich if it is installed."""
    try:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ImportError:
        print(plain(report))
        return
    console = Console()
    table = Table(title="What is here", title_style="bold", show_header=False, box=None)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts(report):
        table.add_row(name, Text(value))
    console.print(table)
    for device in report["devices"]:
        console.print()
        title = Text(f"{device['name']} ", style="bold")
        if device["problem"]:
            console.print(title + Text(f"not available: {device['problem']}", style="yellow"))
            continue
        title += Text(device["properties"]["name"], style="")
        title += Text(
            "  works" if device["ok"] else "  does not work",
            style="green" if device["ok"] else "bold red",
        )
        console.print(title)
        rows = Table(box=None, show_header=False, padding=(0, 1))
        for record in device["records"]:
            state = state_of(record)
            rows.add_row(
                Text(state, style=_STYLES[state]),
                Text(label(record)),
                Text(measured(record), style="red" if state == "FAILED" else ""),
            )
        console.print(rows)
    console.print()
    if "quirks" in report:
        console.print(Text(f"known defects: {report['quirks']['conclusion']}"))
    for check in report["checks"]:
        state = state_of(check)
        words = check[_WORDS[state]]
        console.print(Text(f"{state} ", style=_STYLES[state]) + Text(f"{check['name']}: {words}"))
    for line in report["advice"]:
        console.print(Text("-> ", style="bold cyan") + Text(line))


def plain(report: dict[str, Any]) -> str:
    """The report without colours."""
    lines = [f"{name:15} {value}" for name, value in facts(report)]
    for device in report["devices"]:
        lines.append("")
        if device["problem"]:
            lines.append(f"{device['name']}: not available: {device['problem']}")
            continue
        works = "works" if device["ok"] else "does not work"
        lines.append(f"{device['name']}: {works} ({device['properties']['name']})")
        for record in device["records"]:
            lines.append(f"  {state_of(record):7} {label(record)}: {measured(record)}")
    lines.append("")
    if "quirks" in report:
        lines.append(f"known defects: {report['quirks']['conclusion']}")
    for check in report["checks"]:
        state = state_of(check)
        lines.append(f"{state:7} {check['name']}: {check[_WORDS[state]]}")
    lines += [f"-> {line}" for line in report["advice"]]
    return "\n".join(lines)


def markdown(report: dict[str, Any]) -> str:
    """The report as a file for an issue: tables, the Metal text of failed kernels, and everything as JSON."""
    lines = ["# triton_metal doctor", "", "| | |", "|---|---|"]
    lines += [f"| {name} | {value} |" for name, value in facts(report)]
    for device in report["devices"]:
        lines += ["", f"## {device['name']}", ""]
        if device["problem"]:
            lines.append(f"Not there: {device['problem']}")
            continue
        lines += [
            f"{device['properties']['name']}, compiled for `{device['target']}`",
            "",
            "| | kernel | |",
            "|---|---|---|",
        ]
        for record in device["records"]:
            state = {"FAILED": "**failed**"}.get(state_of(record), state_of(record))
            lines.append(f"| {state} | {label(record)} | {measured(record).replace('|', '/')} |")
        for record in device["records"]:
            if record.get("ok"):
                continue
            lines += ["", f"### {label(record)}", "", "```", record.get("error", ""), "```"]
            if record.get("metal"):
                lines += ["", "```cpp", record["metal"].rstrip(), "```"]
    if "quirks" in report:
        from .quirks.table import markdown as quirks

        lines += quirks(report["quirks"])
    lines += ["", "## What to do", ""]
    lines += [f"- {line}" for line in report["advice"]] or ["Nothing."]
    shortened = json.loads(json.dumps(report))
    for device in shortened["devices"]:
        for record in device["records"]:
            record.pop("metal", None)
    lines += ["", "<details><summary>As JSON</summary>", "", "```json"]
    lines += [json.dumps(shortened, indent=1), "```", "", "</details>", ""]
    return "\n".join(lines)
