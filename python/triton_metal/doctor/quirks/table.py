"""The findings on defects as text: for a terminal, for a pipe, and as Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .survey import BAD

#: How the table names the routes.
SHORT = {"mps": "PyTorch", "mlx": "MLX", "mlx-in-place": "MLX in place", "host": "host"}


def merged(results: Mapping[str, Mapping[str, Any]]) -> str:
    """The results of all routes in a few words.

    >>> merged({"mps": {"says": "wrong: 3723 for 2379"}, "mlx": {"says": "right"}, "host": {"says": "right"}})
    'PyTorch: wrong: 3723 for 2379; MLX, host: right'
    >>> merged({"mps": {"says": "right"}, "host": {"says": "right"}})
    'right'
    """
    routes: dict[str, list[str]] = {}
    for route, result in results.items():
        routes.setdefault(result["says"], []).append(SHORT.get(route, route))
    if not routes:
        return "-"
    if len(routes) == 1:
        return next(iter(routes))
    return "; ".join(f"{', '.join(names)}: {says}" for says, names in routes.items())


def facts(survey: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What is probed here: the machine, the compiler, the routes."""
    machine = survey["machine"]
    result = []
    if machine["system"] == "Darwin":
        version = machine["macos"] or "of an unknown version"
        build = f" ({machine['build']})" if machine["build"] else ""
        result.append(("this Mac", f"{machine['chip'] or 'unknown chip'}, macOS {version}{build}"))
        result.append(
            (
                "Metal compiler",
                machine["metal_compiler"] or "version unknown (xcrun metal is not installed)",
            )
        )
    else:
        result.append(("this machine", f"{machine['system']} {machine['machine']}, no Apple GPU"))
    versions = [f"{name} {machine[name]}" for name in ("mlx", "torch") if machine[name]]
    result.append(("frameworks", ", ".join(versions) or "none"))
    for route in survey["routes"].values():
        words = (
            f"not available: {route['problem']}"
            if route["problem"]
            else "a stand-in, on the host device"
            if route["stand_in"]
            else "available"
        )
        result.append((route["name"], words))
    return result


def style(results: Mapping[str, Mapping[str, Any]], ours: bool) -> str:
    """The colour of a cell."""
    states = {result["state"] for result in results.values()}
    if states & set(BAD):
        return "bold red" if ours else "yellow"
    return "green" if "right" in states else "dim"


def show(survey: Mapping[str, Any]) -> None:
    """Prints the findings, with rich if it is installed and this is a terminal."""
    try:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ImportError:
        print(plain(survey))
        return
    console = Console()
    if not console.is_terminal:
        print(plain(survey))
        return
    head = Table(title="Known defects", title_style="bold", show_header=False, box=None)
    head.add_column(style="bold", no_wrap=True)
    head.add_column(overflow="fold")
    for name, value in facts(survey):
        head.add_row(name, Text(value))
    console.print(head)
    if survey["rows"]:
        rows = Table(padding=(0, 1))
        for title in ("row", "construct", "as reported", "our form", "source"):
            rows.add_column(title, overflow="fold")
        for row in survey["rows"]:
            rows.add_row(
                str(row["row"]),
                Text(row["construct"]),
                Text(merged(row["raw"]), style=style(row["raw"], False)),
                Text(merged(row["ours"]), style=style(row["ours"], True)),
                Text(row["source"], style="dim"),
            )
        console.print(rows)
    if survey["answers"]:
        answers = Table(title="What Metal does not promise", title_style="bold", padding=(0, 1))
        answers.add_column("question", overflow="fold")
        answers.add_column("here", overflow="fold")
        for entry in survey["answers"]:
            answers.add_row(Text(entry["asks"]), Text(merged(entry["answers"])))
        console.print(answers)
    console.print(
        Text(survey["conclusion"] + ".", style="bold green" if survey["ok"] else "bold red")
    )
    for line in (*survey["advice"], *([survey["saved"]] if "saved" in survey else [])):
        console.print(Text("-> ", style="bold cyan") + Text(line))


def plain(survey: Mapping[str, Any]) -> str:
    """The findings without colours."""
    lines = [f"{name:26} {value}" for name, value in facts(survey)]
    for row in survey["rows"]:
        lines += [
            "",
            f"row {row['row']}: {row['construct']}",
            f"  as reported: {merged(row['raw'])}",
            f"  our form:    {merged(row['ours'])}",
            f"  source:      {row['source']} (there: {row['happens']})",
        ]
    if survey["answers"]:
        lines += ["", "What Metal does not promise:"]
        lines += [f"  {e['asks']}: {merged(e['answers'])}" for e in survey["answers"]]
    lines += ["", survey["conclusion"] + "."]
    lines += [f"-> {line}" for line in survey["advice"]]
    if "saved" in survey:
        lines.append(f"-> {survey['saved']}")
    return "\n".join(lines)


def markdown(survey: Mapping[str, Any]) -> list[str]:
    """The findings as lines of a report."""

    def cell(text: str) -> str:
        return text.replace("|", "\\|").replace("\n", " ")

    lines = ["", "## Known defects", "", f"**{survey['conclusion']}.**", "", "| | |", "|---|---|"]
    lines += [f"| {name} | {cell(value)} |" for name, value in facts(survey)]
    lines += ["", "| row | construct | as reported | our form | source |", "|---|---|---|---|---|"]
    for row in survey["rows"]:
        lines.append(
            f"| {row['row']} | {cell(row['construct'])} | {cell(merged(row['raw']))} | {cell(merged(row['ours']))} "
            f"| {cell(row['source'])} |"
        )
    lines += ["", "| what Metal does not promise | here |", "|---|---|"]
    lines += [f"| {cell(e['asks'])} | {cell(merged(e['answers']))} |" for e in survey["answers"]]
    lines += ["", *(f"- {line}" for line in survey["advice"])]
    return lines
