"""What the launches of a program cost at least on Apple's chips.

    python -m triton_metal cost --chip "M3 Max" PROGRAM.py [args]
    python -m triton_metal cost --chip M1 --chip "M4 Max 32 cores" -m MODULE [args]
    python -m triton_metal cost --chips

The program runs on the host device, which counts what its launches do; a model of the chip makes a lower bound of the
time of each. No Apple GPU is asked. Launches of one kernel with equal bounds are one row.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Sequence

from ..as_triton import program
from ..devices.selection import device
from ..errors import LaunchValueError
from .chips import CHIPS, Chip, chip
from .measure import Counted, counting
from .model import Cost, bound, shown


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument(
        "--chip",
        action="append",
        metavar="NAME",
        help='such as "M3 Max" or "M3 Max 30 cores" (default: M1); may be given several times',
    )
    parser.add_argument(
        "--chips", action="store_true", help="list the chips, with the sources of their figures"
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="print JSON; what the program prints goes to the error stream",
    )
    parser.add_argument(
        "program", nargs=argparse.REMAINDER, metavar="PROGRAM.py | -m MODULE | -c TEXT"
    )


def main(options: argparse.Namespace) -> int:
    """Runs the command; returns the exit status."""
    if options.chips:
        print(
            json.dumps([_described(each) for forms in CHIPS.values() for each in forms])
            if options.json
            else listing()
        )
        return 0
    if not options.program:
        print("python -m triton_metal cost: a program is needed, or --chips", file=sys.stderr)
        return 2
    try:
        chips = [chip(name) for name in options.chip or ["M1"]]
    except LaunchValueError as error:
        print(f"python -m triton_metal cost: {error}", file=sys.stderr)
        return 2
    counted = Counted()
    status = 0
    # Only the figures are on the output of --json.
    apart = contextlib.redirect_stdout(sys.stderr) if options.json else contextlib.nullcontext()
    try:
        with device("host"), counting() as counted, apart:
            try:
                program.run(options.program)
            except SystemExit as end:
                status = end.code if isinstance(end.code, int) else int(end.code is not None)
                if isinstance(end.code, str):
                    print(end.code, file=sys.stderr)
    finally:
        costs = [[bound(each, work) for each in chips] for work in counted.works]
        print(_json(costs) if options.json else report(costs))
    return status


def report(costs: Sequence[Sequence[Cost]]) -> str:
    """The costs of launches in their order; equal neighbours are counted."""
    if not costs:
        return "no launch was counted"
    lines: list[str] = []
    texts = ["\n".join(map(str, each)) for each in costs]
    index = 0
    while index < len(texts):
        count = 1
        while index + count < len(texts) and texts[index + count] == texts[index]:
            count += 1
        lines.append((f"{count} launches, each:\n" if count > 1 else "") + texts[index])
        index += count
    for place in range(len(costs[0])):
        total = sum(each[place].seconds for each in costs)
        every = f"all {len(costs)} launches" if len(costs) > 1 else "the launch"
        lines.append(f"{every} on {costs[0][place].chip.name}: at least {shown(total)}")
    return "\n\n".join(lines)


def listing() -> str:
    """The chips with their figures, and where these come from."""
    lines = []
    sources: dict[str, str] = {}
    for forms in CHIPS.values():
        last = forms[-1]
        cores = " or ".join(str(form.cores) for form in forms)
        gbs = " or ".join(dict.fromkeys(f"{form.bandwidth:g}" for form in forms))
        clock = f"{last.clock:g} GHz" if last.clock else "clock unknown"
        cache = f"{last.last_level:g} MB last-level cache" if last.last_level else "cache unknown"
        lines.append(
            f"{last.name:9} Apple{last.family}, {cores} cores, {clock}, {gbs} GB/s, {cache}"
        )
        for what, source in last.sources.items():
            sources.setdefault(f"{what}: {source}", last.name)
    return "\n".join([*lines, "", "Sources:", *(f"  {text}" for text in sources)])


def _described(form: Chip) -> dict[str, object]:
    names = ("name", "family", "cores", "bandwidth", "clock", "last_level", "sources")
    return {name: getattr(form, name) for name in names}


def _json(costs: Sequence[Sequence[Cost]]) -> str:
    return json.dumps(
        [
            {
                "kernel": cost.kernel,
                "chip": cost.chip.name,
                "cores": cost.chip.cores,
                "seconds": cost.seconds,
                "binds": cost.binds,
                "parts": {part.unit: part.seconds for part in cost.parts},
                "in_flight": cost.in_flight,
                "held": cost.held,
                "advice": list(cost.advice),
                "missing": list(cost.missing),
            }
            for each in costs
            for cost in each
        ]
    )
