"""What the compiler's choice of SIMD-groups and stages costs beside every other choice, by counts and occupancy.

python benchmarks/thread_choice.py [--only WORDS] [--limit 1.1] [--json FILE] [--markdown FILE]

Each kernel is launched on the host device with num_warps 1 to 32 and num_stages 1 and 2, and with neither. The cost of
a launch is a number of cycles of one core for one program, which docs/threads.md defines. Registers and threads in
flight are those of Mesa's compiler for Apple's G13 if TRITON_METAL_AGX names the program that asks it, else the host
device's estimate. Kernels in the project: those of thread_choice_kernels.py and of the demo.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import functools
import hashlib
import json
import math
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import triton_metal as triton

import thread_choice_kernels

WARPS = (1, 2, 4, 8, 16, 32)
STAGES = (1, 2)

#: Threads that a G13 core holds by the 16-bit registers of each: (registers, threads).
OCCUPANCY = (
    (104, 1024), (112, 896), (128, 832), (136, 768), (144, 704), (160, 640), (184, 576),
    (208, 512), (232, 448), (256, 384),
)  # fmt: skip
#: Bytes of threadgroup memory of a core.
CORE_BYTES = 60 * 1024
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


def threads_of(registers: float) -> int:
    """The threads that a core holds by a thread's 32-bit registers."""
    return next((threads for most, threads in OCCUPANCY if 2 * registers <= most), 384)


def estimated(figure: Figure, registers: int) -> Machine:
    """The host device's estimate of a text."""
    width = figure.warps * 32
    groups = threads_of(registers) // width
    if figure.threadgroup_bytes:
        groups = min(groups, CORE_BYTES // figure.threadgroup_bytes)
    return Machine(registers, groups * width, 0)


@functools.cache
def judged(text: str) -> Machine | None:
    """What the program that TRITON_METAL_AGX names says of a text; None where it says nothing."""
    cache = os.environ.get("TRITON_METAL_AGX_CACHE")
    kept = Path(cache) / f"{hashlib.sha256(text.encode()).hexdigest()}.json" if cache else None
    if kept is not None and kept.is_file():
        return Machine(**json.loads(kept.read_text()))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.metal"
        path.write_text(text)
        command = [*os.environ["TRITON_METAL_AGX"].split(), "--json", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode and "Mesa" not in done.stderr:
        return None  # a text that it has no words for
    if done.returncode:
        # It gives up where it cannot even spill what a thread holds.
        machine = Machine(math.inf, 0, 0)
    else:
        record = json.loads(done.stdout)
        spills = record["spills"] + record["fills"]
        machine = Machine(record["registers_32"], record["in_flight"], spills)
    if kept is not None:
        kept.write_text(json.dumps(asdict(machine)))
    return machine


def launched(case: Any, options: dict[str, int]) -> tuple[Figure, int] | None:
    """The counts of a launch; None if the kernel cannot be compiled so."""
    try:
        with triton.launch_options(count=True) as report:
            case.launch(**options)
    except triton.TritonError:
        return None
    launch = report.launches[0]
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


def figures(case: Any, pool: concurrent.futures.Executor) -> tuple[Figure, list[Figure]]:
    """The compiler's choice and all others."""
    options = [{}] + [{"num_warps": w, "num_stages": s} for w in WARPS for s in STAGES]
    found = [launched(case, chosen) for chosen in options]
    if found[0] is None:
        raise RuntimeError(f"{case.name} cannot be launched without options")
    known = [one for one in found if one is not None]
    if os.environ.get("TRITON_METAL_AGX"):
        texts = dict.fromkeys(figure.text for figure, _ in known)
        machines = dict(zip(texts, pool.map(judged, texts), strict=True))
        for figure, registers in known:
            figure.machine = machines[figure.text] or estimated(figure, registers)
    else:
        for figure, registers in known:
            figure.machine = estimated(figure, registers)
    for figure, _ in known:
        price(figure)
    return known[0][0], [figure for figure, _ in known[1:]]


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
    parser.add_argument("--limit", type=float, help="fail if a choice costs more, over the best")
    parser.add_argument("--json", type=Path, help="write all figures here")
    parser.add_argument("--markdown", type=Path, help="write the table here")
    parser.add_argument("--all", action="store_true", help="print the whole grid of each case")
    arguments = parser.parse_args()
    rows: list[tuple[str, Figure, Figure]] = []
    record: dict[str, Any] = {}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for case in thread_choice_kernels.cases():
            if arguments.only and arguments.only not in case.name:
                continue
            ours, grid = figures(case, pool)
            best = min(grid, key=lambda figure: figure.cost)
            rows.append((case.name, ours, best))
            record[case.name] = [asdict(figure) | {"text": ""} for figure in [ours, *grid]]
            ratio = ours.cost / best.cost
            print(f"{ratio:5.2f}  {case.name:28} {words(ours)}; best {words(best)}", flush=True)
            if arguments.all:
                for figure in grid:
                    print(
                        f"         {words(figure)}  issue {figure.issue:.0f} lines {figure.device_lines:.0f} barriers {figure.barriers:.0f}"
                    )
    if arguments.json:
        arguments.json.write_text(json.dumps(record) + "\n")
    if arguments.markdown:
        arguments.markdown.write_text(table(rows))
    over = [
        name for name, ours, best in rows if ours.cost > (arguments.limit or math.inf) * best.cost
    ]
    if over:
        sys.exit(f"over {arguments.limit:g} of the best: " + ", ".join(over))


def table(rows: list[tuple[str, Figure, Figure]]) -> str:
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
