"""Kernels as MLX graphs, against MLX's functions that do the same, on the CPU.

python benchmarks/mlx_graphs.py [--only TEXT] [--json FILE] [--targets] [--processor-time]

Both sides run in turn, in one process. A ratio is the median of those of all turns. "in mx.compile" is the ratio where
mx.compile has made our side, and MLX's side is as before: what is left is without the walk over the kernel's program.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "examples")]


@dataclasses.dataclass
class Figures:
    """What was measured of a problem. Ratios are times of ours over times of MLX."""

    name: str
    against: str
    target: float
    ms: float | None = None
    mlx_ms: float | None = None
    ratio: float | None = None
    #: The middle half of the turns' ratios.
    spread: tuple[float, float] | None = None
    compiled_ratio: float | None = None
    refused: str = ""
    wrong: str = ""

    @property
    def meets_target(self) -> bool:
        return self.ratio is not None and self.ratio <= self.target

    def row(self) -> str:
        head = f"{self.name:52}"
        if self.refused or self.wrong:
            return (
                f"{head} {'refused: ' + self.refused if self.refused else 'WRONG: ' + self.wrong}"
            )
        ratio = f"{self.ratio:7.2f} ({self.spread[0]:.2f} to {self.spread[1]:.2f})"
        mark = "" if self.meets_target else "  above"
        return (
            f"{head} {self.ms:9.2f} {self.mlx_ms:9.2f} {ratio:26} {self.compiled_ratio:7.2f} "
            f"{self.target:7.1f}{mark}"
        )


HEAD = f"{'':52} {'graph, ms':>9} {'MLX, ms':>9} {'  ratio (middle half)':26} {'in mx.compile':>7} target"


def problems() -> Iterator[Callable[[], Any]]:
    from benchmarks.graphs import attending, elements, matrices, rows

    for module in (matrices, rows, attending, elements):
        yield from module.problems()


Clock = Callable[[], float]


def milliseconds(function: Callable[..., Any], arrays: tuple[Any, ...], clock: Clock) -> float:
    """The time of one call, with its results computed."""
    import mlx.core as mx

    start = clock()
    mx.eval(function(*arrays))
    return 1e3 * (clock() - start)


def in_turn(
    functions: list[Callable[..., Any]], arrays: tuple[Any, ...], seconds: float, clock: Clock
) -> list[list[float]]:
    """The times of functions that are called in turn: at least five turns, and not more than so many seconds."""
    times: list[list[float]] = [[] for _ in functions]
    start = time.perf_counter()
    order = list(range(len(functions)))
    while len(times[0]) < 5 or (time.perf_counter() - start < seconds and len(times[0]) < 200):
        for index in order:
            times[index].append(milliseconds(functions[index], arrays, clock))
        order.reverse()
    return times


def listed(results: Any) -> list[Any]:
    return list(results) if isinstance(results, (list, tuple)) else [results]


def difference(problem: Any, ours: Any, theirs: Any) -> str:
    """How the results differ; nothing where they are close."""
    for number, (one, other) in enumerate(zip(listed(ours), listed(theirs), strict=True)):
        a, b = np.array(one), np.array(other)
        if not np.allclose(a, b, rtol=problem.rtol, atol=problem.atol):
            return f"result {number} differs from MLX's by up to {np.abs(a - b).max():.3g}"
    return ""


def measure(problem: Any, seconds: float, clock: Clock) -> Figures:
    """Checks the results of a problem, and times both sides."""
    import mlx.core as mx
    from triton_metal.errors import CompilationError

    figures = Figures(problem.name, problem.against, problem.target)
    ours, theirs = problem.functions()
    try:
        results = ours(*problem.arrays)
        figures.wrong = difference(problem, results, theirs(*problem.arrays))
        compiled = ours if problem.compiled else mx.compile(problem.ours)
        mx.eval(compiled(*problem.arrays))
    except CompilationError as error:
        place = (
            f"{Path(error.location.file).name}:{error.location.line}: " if error.location else ""
        )
        figures.refused = place + error.error_message
        return figures
    if figures.wrong:
        return figures
    times = in_turn([ours, theirs, compiled], problem.arrays, seconds, clock)
    ratios = [one / other for one, other in zip(times[0], times[1], strict=True)]
    figures.ms, figures.mlx_ms = statistics.median(times[0]), statistics.median(times[1])
    figures.ratio = statistics.median(ratios)
    quartiles = statistics.quantiles(ratios, n=4)
    figures.spread = (quartiles[0], quartiles[2])
    figures.compiled_ratio = statistics.median(
        one / other for one, other in zip(times[2], times[1], strict=True)
    )
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", metavar="TEXT", help="only problems whose name contains this")
    parser.add_argument("--json", type=Path, help="write the figures here as well")
    parser.add_argument(
        "--seconds", type=float, default=3.0, help="how long a problem is timed (3)"
    )
    parser.add_argument(
        "--targets", action="store_true", help="fail if a kernel is refused or above its target"
    )
    parser.add_argument(
        "--processor-time",
        action="store_true",
        help="measure the time of all of the process's threads, which other programs disturb less",
    )
    arguments = parser.parse_args()
    clock = time.process_time if arguments.processor_time else time.perf_counter
    import mlx.core as mx

    mx.set_default_device(mx.cpu)
    mx.random.seed(0)
    print(HEAD)
    table = []
    for make in problems():
        problem = make()
        if arguments.only and arguments.only not in problem.name:
            continue
        table.append(measure(problem, arguments.seconds, clock))
        print(table[-1].row(), flush=True)
    if not table:
        sys.exit(f"no problem's name contains {arguments.only!r}")
    if arguments.json:
        rows = [dataclasses.asdict(figures) for figures in table]
        arguments.json.write_text(json.dumps(rows, indent=2) + "\n")
    met = sum(figures.meets_target for figures in table)
    refused = sum(bool(figures.refused) for figures in table)
    print(f"{met} of {len(table)} meet their target; {refused} refused")
    if wrong := [figures.name for figures in table if figures.wrong]:
        sys.exit("wrong: " + ", ".join(wrong))
    if arguments.targets and met < len(table):
        sys.exit("above their target: " + ", ".join(f.name for f in table if not f.meets_target))


if __name__ == "__main__":
    main()
