"""What the launches of a program cost at least on Apple's chips.

    python -m triton_metal cost --chip "M3 Max" PROGRAM.py [args]
    python -m triton_metal cost --chip M1 --chip "M4 Max 32 cores" -m MODULE [args]
    python -m triton_metal cost --chips

The program runs on the host device, which counts what its launches do; a model of the chip makes a lower bound of the
time of each. No Apple GPU is asked. Launches of one kernel with equal bounds are one row.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from ..as_triton import program
from ..as_triton.streams import keep_output
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
    words = list(options.program)
    if words[:1] == ["--"]:
        del words[0]
    if not words:
        print("python -m triton_metal cost: a program is needed, or --chips", file=sys.stderr)
        return 2
    try:
        chips = [chip(name) for name in options.chip or ["M1"]]
    except LaunchValueError as error:
        print(f"python -m triton_metal cost: {error}", file=sys.stderr)
        return 2
    counted = Counted()
    if options.json:
        keep_output()
    try:
        with device("host"), counting() as counted:
            # Only the figures are on the output of --json.
            status = program.run_for_command(words, output_to_errors=options.json)
    except program.NoProgram as end:
        return program.exit_status(end)
    except BaseException:
        # What was launched before has its cost.
        _print(counted, chips, options.json)
        raise
    _print(counted, chips, options.json)
    return status


def _print(counted: Counted, chips: Sequence[Chip], as_json: bool) -> None:
    costs = [[bound(each, work) for each in chips] for work in counted.works]
    print(_json(costs) if as_json else report(costs))
    for count, why in (
        (
            counted.left_out,
            "mx.compile, mx.grad or mx.vmap traced the function, and there were no values to count with",
        ),
        (counted.elsewhere, "only launches of the program's main thread are counted"),
    ):
        if count:
            what = f"{count} launch was" if count == 1 else f"{count} launches were"
            # On the output of --json are the figures alone.
            print(f"{what} left out: {why}", file=sys.stderr if as_json else sys.stdout)


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
    sources: dict[tuple[str, str], list[str]] = {}
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
            sources.setdefault((what, source), []).append(last.name)
    lines += ["", "Sources:"]
    order = [what for what, _ in sources]
    for (what, source), names in sorted(sources.items(), key=lambda each: order.index(each[0][0])):
        lines.append(f"  {_FIGURES.get(what, what)} of {_together(names)}: {source}")
    return "\n".join(lines)


#: What the figures are called that have more than one word.
_FIGURES = {"units": "operations in a cycle", "last_level": "last-level cache"}


def _together(names: Sequence[str]) -> str:
    """Names of chips in the order of the list, with "to" between those that stand next to each other there.

    >>> _together(["M1", "M1 Pro", "M1 Max", "M3"])
    'M1 to M1 Max, M3'
    >>> _together(list(CHIPS))
    'all chips'
    """
    every = list(CHIPS)
    if list(names) == every:
        return "all chips"
    runs: list[list[str]] = []
    for name in names:
        if runs and every.index(name) == every.index(runs[-1][-1]) + 1:
            runs[-1].append(name)
        else:
            runs.append([name])
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(run) for run in runs)


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
