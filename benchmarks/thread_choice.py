"""What the compiler's choice of SIMD-groups and stages costs beside every other choice, by counts and occupancy.

    PYTHONPATH=python:. python -m benchmarks.thread_choice [--only WORDS] [--limit 1.1] [--json FILE] [--markdown FILE]

Each kernel is launched on the host device with num_warps 1 to 32 and num_stages 1 and 2, and with neither. The cost of
a launch is a number of cycles of one core for one program, which docs/threads.md defines. Registers and threads in
flight are those of Mesa's compiler for Apple's G13 where benchmarks/agx has been built (`make agx`), else the host
device's estimate. The kernels are those of thread_choice_kernels.py, of thread_choice_held_out.py, which were looked at
while the model was changed, and of thread_choice_unseen.py and thread_choice_further.py, which were not.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import triton_metal as triton
from benchmarks import (
    thread_choice_further,
    thread_choice_held_out,
    thread_choice_kernels,
    thread_choice_unseen,
)
from benchmarks.agx import AgxError, available, measure
from benchmarks.agx.report import threads_in_flight

WARPS = (1, 2, 4, 8, 16, 32)
STAGES = (1, 2)

#: SIMD-groups of which a core issues an instruction in each cycle.
SCHEDULERS = 4
#: Programs that a launch is assumed to have for each core at a time.
PROGRAMS = 8
#: Cycles until a SIMD-group may use what its own last instruction computed.
DEPENDENT = 2
#: Cycles until a line of device memory arrives, over the lines that a SIMD-group waits for at once.
LINE_WAIT = 40
#: Cycles beyond 1 that operations take.
EXTRA = {
    "simdgroup_matrix_multiplies": 15,
    "simd_reductions": 15,
    "simd_shuffles": 1,
    "f32_div": 0,
}


@dataclass
class Machine:
    """What a compiler for the machine makes of a text: 32-bit registers of a thread, and threads that a core holds."""

    registers: float
    in_flight: int
    spills: int


@dataclass
class Figure:
    """One launch of a kernel."""

    warps: int
    stages: int
    text: str
    issue: float = 0
    waits: float = 0
    barriers: float = 0
    threadgroup_bytes: int = 0
    device_lines: float = 0
    machine: Machine = field(default_factory=lambda: Machine(0, 0, 0))
    cost: float = math.inf


def estimated(figure: Figure, registers: int) -> Machine:
    """The host device's estimate of a text."""
    threads = threads_in_flight(registers, figure.threadgroup_bytes, figure.warps * 32)
    return Machine(registers, threads, 0)


@functools.cache
def judged(text: str) -> Machine | None:
    """What benchmarks/agx says of a text; None where it refuses it."""
    try:
        stats = measure(text)
    except AgxError:
        return None
    return Machine(stats.registers, stats.in_flight, stats.spills + stats.fills)


def launched(case: Any, options: dict[str, int]) -> tuple[Figure, int] | None:
    """The counts of a launch; None if the kernel cannot be compiled so."""
    try:
        with triton.launch_options(count=True) as report:
            case.launch(**options)
    except triton.TritonError:
        return None
    launch = next(
        one for one in report.launches if case.kernel is None or one.kernel.name == case.kernel
    )
    counts, metadata = launch.counters, launch.kernel.metadata
    programs = counts["threadgroups"]
    lines = counts["device_lines_read"] + counts["device_lines_written"]
    staged = counts["threadgroup_bytes_read"] + counts["threadgroup_bytes_written"]
    issue = counts["simdgroup_instructions"] + staged / 128 + counts["threadgroup_bank_conflicts"]
    issue += sum(counts.get(name, 0) * cycles for name, cycles in EXTRA.items())
    issue += (counts["math_calls"] + counts["f32_div"] + counts["f16_div"]) * 4 / 32
    issue += lines
    figure = Figure(
        metadata.num_warps,
        metadata.pipeline_stages,
        launch.kernel.asm["metal"],
        issue / programs,
        lines * LINE_WAIT / programs,
        counts["threadgroup_barriers"] / programs,
        metadata.threadgroup_bytes,
        lines / programs,
    )
    return figure, counts["registers_per_thread"]


def price(figure: Figure) -> None:
    """Sets the cost of a launch, from its counts and what a core holds of it."""
    warps, machine = figure.warps, figure.machine
    # A program that a core cannot hold by its registers is not run at all.
    programs = min(machine.in_flight // (32 * warps), PROGRAMS)
    if not programs:
        figure.cost = math.inf
        return
    issue = figure.issue + 4 * machine.spills * warps
    alone = (DEPENDENT * issue + figure.waits + LINE_WAIT * machine.spills) / warps
    alone += figure.barriers * (30 + 2 * warps)
    figure.cost = issue / SCHEDULERS + alone / programs


def figures(case: Any, judge: bool) -> tuple[Figure, list[Figure], int]:
    """The compiler's choice, all others, and how many the judge refused: their registers are estimated."""
    options = [{}] + [{"num_warps": w, "num_stages": s} for w in WARPS for s in STAGES]
    found = [launched(case, chosen) for chosen in options]
    if found[0] is None:
        raise RuntimeError(f"{case.name} cannot be launched without options")
    known = [one for one in found if one is not None]
    refused = 0
    for figure, registers in known:
        machine = judged(figure.text) if judge else None
        refused += judge and machine is None
        figure.machine = machine or estimated(figure, registers)
        price(figure)
    return known[0][0], [figure for figure, _ in known[1:]], refused


def words(figure: Figure) -> str:
    machine = figure.machine
    return (
        f"{figure.warps}/{figure.stages} ({machine.registers:g} registers, {machine.in_flight} in flight"
        + (f", {machine.spills} spills" if machine.spills else "")
        + f", {figure.threadgroup_bytes} B) {figure.cost:.0f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="the cases whose names contain this")
    parser.add_argument(
        "--part", choices=("fitted", "held out", "unseen", "further"), help="the cases of this part"
    )
    parser.add_argument("--limit", type=float, help="fail if a choice costs more, over the best")
    parser.add_argument("--json", type=Path, help="write all figures here")
    parser.add_argument("--markdown", type=Path, help="write the table here")
    parser.add_argument("--all", action="store_true", help="print the whole grid of each case")
    arguments = parser.parse_args()
    judge = available() is None
    if not judge:
        print(f"registers are the host device's estimate: {available()}", file=sys.stderr)
    parts = {
        "fitted": thread_choice_kernels.cases(),
        "held out": thread_choice_held_out.cases(),
        "unseen": thread_choice_unseen.cases(),
        "further": thread_choice_further.cases(),
    }
    tables: dict[str, list[Row]] = {part: [] for part in parts}
    record: dict[str, Any] = {}
    for part, cases in parts.items():
        for case in cases:
            if (arguments.only and arguments.only not in case.name) or (
                arguments.part and arguments.part != part
            ):
                continue
            ours, grid, refused = figures(case, judge)
            best = min(grid, key=lambda figure: figure.cost)
            tables[part].append((case.name, ours, best))
            record[case.name] = [asdict(figure) | {"text": ""} for figure in [ours, *grid]]
            note = f" ({refused} not measured)" if refused else ""
            ratio = ours.cost / best.cost
            print(
                f"{ratio:5.2f}  {case.name:28} {words(ours)}; best {words(best)}{note}", flush=True
            )
            if arguments.all:
                for figure in grid:
                    counts = f"issue {figure.issue:.0f} lines {figure.device_lines:.0f} barriers {figure.barriers:.0f}"
                    print(f"         {words(figure)}  {counts}")
    if arguments.json:
        arguments.json.write_text(json.dumps(record) + "\n")
    if arguments.markdown:
        arguments.markdown.write_text("\n".join(table(rows) for rows in tables.values() if rows))
    limit = arguments.limit or math.inf
    rows = [row for part in tables.values() for row in part]
    over = [name for name, ours, best in rows if ours.cost > limit * best.cost]
    if over:
        sys.exit(f"over {limit:g} of the best: " + ", ".join(over))


#: A case, the choice, and the best of the grid.
Row = tuple[str, Figure, Figure]


def table(rows: list[Row]) -> str:
    """The rows as Markdown."""
    lines = [
        "| kernel | chosen: warps, stages | registers | in flight | best of the grid | chosen ÷ best |",
        "|---|---|---|---|---|---|",
    ]
    for name, ours, best in rows:
        machine = ours.machine
        lines.append(
            f"| {name} | {ours.warps}, {ours.stages} | {machine.registers:g} | {machine.in_flight} "
            f"| {best.warps}, {best.stages} | {ours.cost / best.cost:.2f} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
