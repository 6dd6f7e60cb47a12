"""Fails if a kernel of this project spills on Apple's G13, and names it.

    PYTHONPATH=python:. python -m benchmarks.agx.spills [--only TEXT]... [--write-known]

Kernels are those of the demo's texts in out/ (`make demo`), ours of every row of benchmarks/against_mlx.py, in each of the
configurations that it offers, and those of every function of triton_metal.ops (benchmarks/agx/ops_calls.py); kernels for M5's tensor
operations are none of G13's. known_spills.txt names the kernels that are known to spill: one that is not named there fails the run, and so
does a name there whose kernel does not spill any more. No GPU is asked: docs/agx.md.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
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


#: The names of kernels that are known to spill, one a line; what follows # is a comment.
KNOWN = Path(__file__).with_name("known_spills.txt")


@dataclass
class Found:
    """The names of all kernels, what spills by its name, and the texts that nothing is known of, with the reason."""

    names: set[str] = field(default_factory=set)
    spilling: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    count: int = 0


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


def ops_kernels(only: Iterable[str] = ()) -> Iterator[Kernel]:
    """Those of triton_metal.ops: what each call compiles, forwards and backwards. Nothing runs."""
    from benchmarks.agx.ops_calls import calls, compiled_only

    wanted = list(only)
    for call, run in calls():
        name = f"ops.{call}"
        if wanted and not any(text in name for text in wanted):
            continue
        with compiled_only() as kernels:
            run()
        numbers: Counter[str] = Counter()
        for kernel in {each.asm["metal"]: each for each in kernels}.values():
            numbers[kernel.name] += 1
            number = f" {numbers[kernel.name]}" if numbers[kernel.name] > 1 else ""
            yield Kernel(
                f"{name}: {kernel.name}{number}",
                kernel.asm["metal"],
                kernel.metadata.threads,
                kernel.name,
            )


def find(kernels: Iterable[Kernel], ask: Callable[..., Stats] = measure) -> Found:
    """Asks the compiler about each text once, while the next ones are made."""
    asked: dict[tuple[str, int | None], Future[Stats]] = {}
    every: list[tuple[str, Future[Stats]]] = []
    with ThreadPoolExecutor() as pool:
        for each in kernels:
            key = each.text, each.threads
            if key not in asked:
                asked[key] = pool.submit(ask, each.text, threads=each.threads, kernel=each.kernel)
            every.append((each.name, asked[key]))
    found = Found(count=len(asked))
    for name, answer in every:
        found.names.add(name)
        try:
            stats = answer.result()
        except AgxError as error:
            found.refused[name] = str(error).splitlines()[0]
            continue
        if stats.spills or stats.fills:
            found.spilling[name] = (
                f"{stats.spills} spills and {stats.fills} fills, {stats.registers:g} registers"
            )
    return found


def read_known(path: Path = KNOWN) -> list[str]:
    """The names in a list of kernels that are known to spill."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [name for line in lines if (name := line.partition("#")[0].strip())]


def write_known(names: Iterable[str], path: Path = KNOWN) -> None:
    """Writes the list anew; the comment at its beginning stays."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    head = [line for line in lines if line.startswith("#")]
    path.write_text("\n".join([*head, *sorted(names), ""]), encoding="utf-8")


def complaints(found: Found, known: Iterable[str], all_asked: bool) -> list[str]:
    """What fails a run: kernels that spill and are not known to, and names of the list that are wrong.

    ``all_asked`` says that there are no further kernels, so that every name of the list must be one of those.
    """
    listed = list(known)
    said = [
        f"spills: {name}: {what}" for name, what in found.spilling.items() if name not in listed
    ]
    for name in listed:
        if name in found.names and name not in found.spilling and name not in found.refused:
            said.append(f"does not spill any more: {name} (take it out of {KNOWN.name})")
        elif name not in found.names and all_asked:
            said.append(f"is no kernel any more: {name} (take it out of {KNOWN.name})")
    return said


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.agx.spills",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="TEXT",
        help="rows and calls whose name contains this",
    )
    parser.add_argument(
        "--write-known", action="store_true", help=f"write {KNOWN.name} anew from what spills"
    )
    options = parser.parse_args(arguments)
    if options.write_known and options.only:
        parser.error("--write-known needs all kernels, so that it takes no --only")
    if missing := available():
        print(f"spills: {missing}", file=sys.stderr)
        return 2

    def kernels() -> Iterator[Kernel]:
        demo = [] if options.only else list(demo_kernels())
        if not demo and not options.only:
            print("spills: out/ has no texts of the demo: run `make demo`", file=sys.stderr)
        yield from demo
        yield from row_kernels(options.only)
        yield from ops_kernels(options.only)

    found = find(kernels())
    for name, why in found.refused.items():
        print(f"not known: {name}: {why}")
    if options.write_known:
        write_known(found.spilling)
    wrong = complaints(found, read_known(), all_asked=not options.only)
    for line in wrong:
        print(line, file=sys.stderr)
    print(
        f"{len(found.names)} kernels, {found.count} texts; {len(found.spilling)} kernels spill, "
        f"{len(found.spilling) - sum(line.startswith('spills: ') for line in wrong)} of them are known to"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
