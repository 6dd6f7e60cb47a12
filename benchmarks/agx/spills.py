"""Fails if a kernel of this project spills on Apple's G13, and names it.

    PYTHONPATH=python:. python -m benchmarks.agx.spills [--only TEXT]...

Kernels are those of the demo's texts in out/ (`make demo`), and ours of every row of benchmarks/against_mlx.py, in each of
the configurations that it offers; kernels for M5's tensor operations are none of G13's. No GPU is asked: docs/agx.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.agx.measure import ROOT, AgxError, available, measure
from benchmarks.agx.report import Stats

sys.path[:0] = [str(ROOT / folder) for folder in ("benchmarks", "examples", "tests/python")]

#: Rows whose kernels have instructions that G13 does not have.
OTHER_TARGETS = "on tensor operations"


@dataclass(frozen=True)
class Kernel:
    """A kernel's text, and what to call it."""

    name: str
    text: str
    threads: int | None = None
    kernel: str | None = None


@dataclass(frozen=True)
class Found:
    """What spills, as lines to print, and the texts that nothing is known of, with the reason."""

    spilling: list[str]
    refused: list[str]
    count: int


def demo_kernels(folder: Path = ROOT / "out") -> Iterator[Kernel]:
    """The texts that `make demo` has left."""
    for path in sorted(folder.glob("*.metal")):
        yield Kernel(f"demo: {path.stem}", path.read_text(encoding="utf-8"))


def row_kernels(only: Iterable[str] = ()) -> Iterator[Kernel]:
    """Ours of the table against MLX: each launch of each configuration, which is run for its text."""
    import triton_metal as triton

    import against_mlx

    for case in against_mlx.cases(only=list(only)):
        if OTHER_TARGETS in case.name:
            continue
        for configuration, launch in case.make().ours.items():
            with triton.launch_options(count=True) as report:
                launch()
            for each in report.launches:
                kernel = each.kernel
                yield Kernel(
                    f"{case.name}, {configuration}: {kernel.name}",
                    kernel.asm["metal"],
                    32 * kernel.metadata.num_warps,
                    kernel.name,
                )


def find(kernels: Iterable[Kernel], ask: Callable[..., Stats] = measure) -> Found:
    """Asks the compiler about each text once."""
    known: dict[tuple[str, int | None], Stats | AgxError] = {}
    found = Found([], [], 0)
    count = 0
    for each in kernels:
        key = each.text, each.threads
        if key not in known:
            count += 1
            try:
                known[key] = ask(each.text, threads=each.threads, kernel=each.kernel)
            except AgxError as error:
                known[key] = error
        stats = known[key]
        if isinstance(stats, AgxError):
            found.refused.append(f"{each.name}: {str(stats).splitlines()[0]}")
        elif stats.spills or stats.fills:
            found.spilling.append(
                f"{each.name}: {stats.spills} spills and {stats.fills} fills, {stats.registers:g} registers"
            )
    return Found(found.spilling, found.refused, count)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.agx.spills",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--only", action="append", default=[], metavar="TEXT", help="rows whose name contains this"
    )
    options = parser.parse_args(arguments)
    if missing := available():
        print(f"spills: {missing}", file=sys.stderr)
        return 2

    def kernels() -> Iterator[Kernel]:
        demo = [] if options.only else list(demo_kernels())
        if not demo and not options.only:
            print("spills: out/ has no texts of the demo: run `make demo`", file=sys.stderr)
        yield from demo
        yield from row_kernels(options.only)

    found = find(kernels())
    for line in found.refused:
        print(f"not known: {line}")
    for line in found.spilling:
        print(f"spills: {line}", file=sys.stderr)
    print(f"{found.count} texts, {len(found.spilling)} spill")
    return 1 if found.spilling else 0


if __name__ == "__main__":
    sys.exit(main())
