"""What Apple's G13 would run, for Metal texts.

    python -m benchmarks.agx KERNEL.metal...        what each kernel takes
    python -m benchmarks.agx --table                this project's kernels beside MLX's

Run it in the project's folder, with PYTHONPATH=python:. for --table. No GPU is asked: docs/agx.md.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from pathlib import Path

from benchmarks.agx.measure import AgxError, available, measure
from benchmarks.agx.report import ASSUMED_TRIPS, Stats
from rich.console import Console
from rich.table import Table


def show_mix(mix: dict[str, int]) -> str:
    """Kinds with their counts, the most frequent first."""
    return ", ".join(f"{count} {kind}" for kind, count in sorted(mix.items(), key=lambda i: -i[1]))


def table_of(measured: list[tuple[str, Stats]]) -> Table:
    table = Table(title="Apple G13, by Mesa's compiler", title_justify="left")
    table.add_column("kernel")
    for name in (
        "registers",
        "in flight",
        "threadgroup B",
        "spills",
        "instr.",
        "cycles",
        "weighted",
    ):
        table.add_column(name, justify="right")
    for name, stats in measured:
        table.add_row(
            name,
            f"{stats.registers:g}",
            str(stats.in_flight),
            str(stats.threadgroup_bytes),
            f"{stats.spills}+{stats.fills}" if stats.spills or stats.fills else "",
            str(stats.instructions),
            str(stats.cycles),
            str(stats.weighted_cycles),
            end_section=not stats.loops,
        )
        for number, loop in enumerate(stats.loops):
            times = f"× {loop.trips}" if loop.trips else "× ?"
            place = f" at line {loop.line}" if loop.line else ""
            table.add_row(
                f"{'  ' * loop.depth}loop{place} {times}: {show_mix(loop.mix)}",
                *[""] * 5,
                str(loop.cycles),
                "",
                end_section=number == len(stats.loops) - 1,
            )
    return table


def pair(text: str) -> tuple[int, int]:
    index, _, value = text.partition("=")
    return int(index), int(value, 0)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.agx",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("texts", nargs="*", type=Path, metavar="KERNEL.metal")
    parser.add_argument("--include", action="append", default=[], metavar="FOLDER")
    parser.add_argument("--constant", action="append", default=[], type=pair, metavar="INDEX=VALUE")
    parser.add_argument("--threads", type=int, help="of a threadgroup (default: the kernel's most)")
    parser.add_argument("--kernel", help="the one to measure in a text with several")
    parser.add_argument(
        "--trips",
        type=int,
        default=ASSUMED_TRIPS,
        help=f"steps of a loop whose length the text does not say (default: {ASSUMED_TRIPS})",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--table", action="store_true", help="this project's kernels beside MLX's")
    parser.add_argument("--markdown", action="store_true", help="--table as Markdown")
    parser.add_argument("--only", default="", help="rows of --table whose name has this in it")
    arguments = parser.parse_args()
    if missing := available():
        print(f"agx: {missing}", file=sys.stderr)
        return 2
    if arguments.table:
        from benchmarks.agx.table import print_table

        return print_table(arguments)
    if not arguments.texts:
        parser.error("name the Metal texts, or --table")
    measured, status = [], 0
    for path in arguments.texts:
        try:
            stats = measure(
                path,
                include=arguments.include,
                constants=dict(arguments.constant),
                threads=arguments.threads,
                kernel=arguments.kernel,
                assumed_trips=arguments.trips,
            )
            measured.append((path.stem, stats))
        except AgxError as error:
            print(f"agx: {path}: {error}", file=sys.stderr)
            status = 1
    if arguments.json:
        print(json.dumps([{"text": n, **dataclasses.asdict(s)} for n, s in measured], indent=1))
    else:
        Console(width=None if sys.stdout.isatty() else 160).print(table_of(measured))
    return status


if __name__ == "__main__":
    sys.exit(main())
