"""The host device's estimate of a thread's registers beside what Mesa's compiler for Apple's G13 allocates.

    PYTHONPATH=python:. python -m benchmarks.agx.registers [--only TEXT]... [--compiled FOLDER]... [--json FILE]

Texts are those of `make demo` in out/, and both sides' of every row of benchmarks/against_mlx.py in all configurations.
`--compiled` takes the kernels that this project has compiled into a folder instead: the one that TRITON_METAL_CACHE_DIR named
in a run of a program or of tests. No GPU is asked, and no kernel of --compiled runs: docs/agx.md.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.agx.measure import ROOT, AgxError, available, front_end, measure
from benchmarks.agx.spills import OTHER_TARGETS, demo_kernels
from rich.console import Console
from rich.table import Table
from triton_metal.cost.chips import OCCUPANCY

sys.path[:0] = [str(ROOT / folder) for folder in ("benchmarks", "examples", "tests/python")]

#: What an estimate is held to.
WITHIN = 1.15


@dataclass(frozen=True)
class Source:
    """A kernel's text with what its compilers must know. `group` is the line of the summary that counts it."""

    group: str
    name: str
    text: str
    kernel: str | None = None
    threads: int | None = None
    include: str | None = None
    constants: tuple[tuple[int, int], ...] = ()

    @property
    def key(self) -> tuple[Any, ...]:
        return self.text, self.kernel, self.threads, self.include, self.constants


@dataclass(frozen=True)
class Compared:
    """An estimate, and the registers that Mesa allocates: both of 32 bits."""

    group: str
    name: str
    estimate: int
    mesa: float

    @property
    def ratio(self) -> float:
        return self.estimate / self.mesa

    @property
    def is_within(self) -> bool:
        return 1 / WITHIN <= self.ratio <= WITHIN

    @property
    def holds_as_many(self) -> bool:
        """Whether a core holds the same number of threads by both."""
        return threads_of(self.estimate) == threads_of(self.mesa)


def threads_of(registers: float) -> int:
    """The threads that a core of G13 holds by their registers."""
    return next((threads for most, threads in OCCUPANCY if registers <= most), OCCUPANCY[-1][1])


def row_sources(only: Iterable[str] = ()) -> Iterator[Source]:
    """Both sides of the table against MLX: each launch of each configuration, which is run for its text."""
    import against_mlx
    from against.counting import mlx, ours

    for case in against_mlx.cases(only=list(only)):
        if OTHER_TARGETS in case.name or (case.source and against_mlx.source_folder() is None):
            continue
        problem = case.make()
        for group, count, launches in (("ours", ours, problem.ours), ("MLX", mlx, problem.mlx)):
            for configuration, launch in launches.items():
                for text in count(configuration, launch, lambda result: None).texts:
                    yield Source(
                        group,
                        f"{case.name}, {configuration}: {text.name}",
                        text.text,
                        text.name,
                        text.threads,
                        None if text.include is None else str(text.include),
                        tuple((index, int(value)) for index, value in text.constants),
                    )


def compiled_sources(folder: Path) -> Iterator[Source]:
    """The kernels in a folder of compiled ones."""
    for path in sorted(folder.glob("*.json")):
        entry = json.loads(path.read_text(encoding="utf-8"))
        if "metal" not in entry:
            continue
        data = entry["metadata"]
        data = json.loads(data) if isinstance(data, str) else data
        yield Source(folder.name, data["name"], entry["metal"], data["name"], data["threads"])


def estimate(source: Source) -> int:
    """The host device's estimate. Raises AgxError with what it says of a text that it refuses."""
    program = front_end().with_name("metal-run")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.metal"
        path.write_text(source.text, encoding="utf-8")
        command = [str(program), str(path), "--info", "--counters"]
        command += ["--kernel", source.kernel] if source.kernel else []
        command += [f"-I{source.include}"] if source.include else []
        for index, value in source.constants:
            command += ["--constant", f"{index}={value}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    found = re.search(r"registers of a thread \(estimate\) +(\d+)", done.stdout)
    if not found:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise AgxError(f"metal-run: {lines[0]}")
    return int(found[1])


def compare(source: Source) -> Compared | str:
    """Both figures of a text, or why there are none. A kernel that spills has no number of registers that it needs."""
    try:
        stats = measure(
            source.text,
            kernel=source.kernel,
            threads=source.threads,
            include=[source.include] if source.include else [],
            constants=dict(source.constants),
        )
        if stats.spills or stats.fills:
            return f"{source.name}: it spills"
        return Compared(source.group, source.name, estimate(source), stats.registers)
    except AgxError as error:
        return f"{source.name}: {str(error).splitlines()[0]}"


@dataclass(frozen=True)
class Summary:
    """How estimates of a group hold: how many, and the mean and the spread of estimate : Mesa, both geometric."""

    texts: int
    within: int
    in_flight: int
    mean: float
    spread: float
    least: float
    most: float
    rank_correlation: float


def summarise(rows: Sequence[Compared]) -> Summary:
    """The figures of some texts; NaN for a rank correlation of equal figures alone."""
    from scipy.stats import spearmanr

    logarithms = [math.log(row.ratio) for row in rows]
    mean = sum(logarithms) / len(rows)
    spread = math.sqrt(sum((each - mean) ** 2 for each in logarithms) / len(rows))
    estimates, registers = [row.estimate for row in rows], [row.mesa for row in rows]
    varies = len(set(estimates)) > 1 and len(set(registers)) > 1
    return Summary(
        texts=len(rows),
        within=sum(row.is_within for row in rows),
        in_flight=sum(row.holds_as_many for row in rows),
        mean=math.exp(mean),
        spread=math.exp(spread),
        least=min(row.ratio for row in rows),
        most=max(row.ratio for row in rows),
        rank_correlation=float(spearmanr(estimates, registers).statistic) if varies else math.nan,
    )


def table_of(rows: Sequence[Compared]) -> Table:
    """One line for each group, and one for all."""
    table = Table(title="Estimate of registers : Mesa's for G13", title_justify="left")
    table.add_column("texts of")
    for name in (
        "texts",
        f"within {WITHIN - 1:.0%}",
        "threads in flight right",
        "mean",
        "spread",
        "least",
        "most",
        "rank correlation",
    ):
        table.add_column(name, justify="right")
    groups = list(dict.fromkeys(row.group for row in rows))
    for group in [*groups, *(["all"] if len(groups) > 1 else [])]:
        of = summarise([row for row in rows if group in ("all", row.group)])
        table.add_row(
            group,
            str(of.texts),
            f"{of.within} ({of.within / of.texts:.0%})",
            f"{of.in_flight} ({of.in_flight / of.texts:.0%})",
            *(f"{figure:.2f}" for figure in (of.mean, of.spread, of.least, of.most)),
            f"{of.rank_correlation:.3f}",
        )
    return table


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.agx.registers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--only", action="append", default=[], metavar="TEXT", help="rows whose name contains this"
    )
    parser.add_argument("--compiled", action="append", type=Path, default=[], metavar="FOLDER")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every text's figures")
    parser.add_argument("--quiet", action="store_true", help="print the summary alone")
    options = parser.parse_args(arguments)
    if missing := available():
        print(f"registers: {missing}", file=sys.stderr)
        return 2
    for folder in options.compiled:
        if not folder.is_dir():
            parser.error(f"--compiled {folder} is no folder")

    def sources() -> Iterator[Source]:
        if options.compiled:
            for folder in options.compiled:
                yield from compiled_sources(folder)
            return
        if not options.only:
            for kernel in demo_kernels():
                yield Source("demo", kernel.name, kernel.text)
        yield from row_sources(options.only)

    unique = {source.key: source for source in sources()}
    with ThreadPoolExecutor() as pool:
        results = list(pool.map(compare, unique.values()))
    rows = [each for each in results if isinstance(each, Compared)]
    for line in results:
        if isinstance(line, str):
            print(f"not compared: {line}", file=sys.stderr)
    if not rows:
        print("registers: there are no texts to compare", file=sys.stderr)
        return 1
    if not options.quiet:
        for row in sorted(rows, key=lambda row: row.ratio):
            print(f"{row.ratio:5.2f}  {row.estimate:4d} : {row.mesa:<5g} {row.name}")
    Console(width=None if sys.stdout.isatty() else 160).print(table_of(rows))
    if options.json:
        records = [dataclasses.asdict(row) for row in rows]
        options.json.write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
