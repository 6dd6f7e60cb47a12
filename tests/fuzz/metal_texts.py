"""Mutates Metal texts and runs them on the host device: none may end the process or hang the compiler.

    python tests/fuzz/metal_texts.py --count 5000 --seed 1

Texts are the kernels of the examples and those under ``texts/``; ``--texts`` adds folders or files. Each mutant is compiled and
launched in a process that runs others, too, every other one with all checks, the budget of steps among them. Half of the launches have
buffers, sizes, function constants and options that are drawn as well. An error is a good answer, a kernel that does not end is stopped by an
interrupt, and an unchecked kernel may overwrite the process's own memory ("wild"). What else crashes or hangs is run again alone and
written to ``--out``, and the exit status is 1. So is what only fails in company (with the numbers of the others), and what raises another error than the device's own
("surprise"); errors that name a crash inside of the compiler are written, too. ``--only`` runs texts by number.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from metal_launches import Plan
from metal_mutator import Mutator
from metal_workers import Pool, Result, Source

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
SLOWEST = 10


def example_texts() -> list[str]:
    """The Metal texts of the examples' kernels."""
    import numpy as np
    import triton_metal

    sys.path.insert(0, str(ROOT / "examples"))
    import attention
    import layer_norm
    import matmul
    import softmax
    import vector_add

    texts: dict[str, None] = {}
    launch = triton_metal.launch_options
    x = np.ones((64, 64), np.float32)
    with launch(count=True) as log:
        vector_add.add(x.reshape(-1), x.reshape(-1))
        softmax.softmax(x)
        matmul.matmul(x, x)
        layer_norm.layer_norm(x, x[0], x[0])
        attention.attention(*(np.ones((1, 64, 64), np.float16),) * 3)
    for record in log.launches:
        texts[record.kernel.asm["metal"]] = None
    return list(texts)


def in_a_child(function: Callable[[], list[str]]) -> list[str]:
    """What a function gives, in a process of its own: forks must not come after threads."""
    read, write = os.pipe()
    if os.fork() == 0:
        os.close(read)
        with os.fdopen(write, "w") as stream:
            stream.write("\0".join(function()))
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as stream:
        texts = stream.read().split("\0")
    os.wait()
    return [text for text in texts if text]


def texts_of(paths: list[Path]) -> list[str]:
    """The texts of files, and of those under folders."""
    texts = []
    for path in paths:
        files = sorted(path.rglob("*.metal")) if path.is_dir() else [path]
        texts += [file.read_text(errors="replace") for file in files]
    return texts


def replay(paths: list[Path], jobs: int) -> int:
    """Runs texts as they are, unchecked and under all checks."""
    source = Source(
        lambda number: paths[number // 2].read_text(errors="replace"),
        lambda number: Plan(checks="all" if number % 2 else ""),
    )
    for result in sorted(Pool(source, jobs).run(range(2 * len(paths))), key=lambda r: r.number):
        form = "with checks:" if result.number % 2 else "unchecked:"
        print(paths[result.number // 2].name, form, described(result))
    return 0


def described(result: Result) -> str:
    text = f"{result.outcome} (compiled {result.compiling:.1f} s, ran {result.running:.1f} s)"
    if result.company:
        text += f", but {result.failed} after {len(result.company)} others in one process"
    first = result.message.strip().split("\n")[0]
    return f"{text}: {first}" if first else text


class Report:
    """Collects results, and writes the texts of those that a person must see."""

    def __init__(self, source: Source, out: Path, seed: int) -> None:
        self.source, self.out, self.seed = source, out, seed
        self.counts: collections.Counter[str] = collections.Counter()
        self.slowest: list[Result] = []
        self.has_defects = False
        out.mkdir(parents=True, exist_ok=True)

    def add(self, result: Result) -> None:
        is_caught = "crash of the compiler" in result.message
        self.counts["caught" if is_caught else result.outcome] += 1
        if result.failed and not result.company:
            self.counts["repeated alone"] += 1
        if sum(self.counts.values()) % 10000 == 0:
            print(f"{dict(self.counts)}", flush=True)
        self.slowest = sorted([*self.slowest, result], key=lambda r: -r.compiling)[:SLOWEST]
        self.has_defects |= result.is_defect
        if result.is_defect or is_caught:
            print(f"{self.write(result)}: {described(result)}", flush=True)
            if result.company:
                (self.out / f"{self.seed}-{result.number}.json").write_text(
                    json.dumps(result.company)
                )

    def write(self, result: Result) -> Path:
        path = self.out / f"{self.seed}-{result.number}.metal"
        path.write_text(self.source.text(result.number), newline="")
        return path

    def print_slowest(self) -> None:
        print("The slowest compilations:")
        for result in self.slowest:
            print(f"  {self.write(result).name}: {described(result)}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--texts", type=Path, nargs="*", default=[], help="files or folders")
    parser.add_argument("--without-examples", action="store_true", help="only texts of files")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "fuzz-metal")
    parser.add_argument("--replay", type=Path, nargs="*", help="run these texts as they are")
    parser.add_argument("--only", type=int, nargs="*", help="run the mutants of these numbers")
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="begin no text after this time"
    )
    options = parser.parse_args()
    if options.replay:
        return replay(options.replay, options.jobs)

    texts = texts_of([HERE / "texts", *options.texts])
    if not options.without_examples:
        texts += in_a_child(example_texts)
    mutator = Mutator(texts, options.seed)
    source = Source(mutator.mutant, lambda number: Plan.drawn(options.seed, number))
    report = Report(source, options.out, options.seed)
    started = time.monotonic()

    numbers = options.only if options.only is not None else range(options.count)
    pool = Pool(source, options.jobs, options.seconds)
    for result in pool.run(numbers):
        report.add(result)
        if options.only is not None:
            print(result.number, described(result))
    report.print_slowest()
    count = sum(report.counts.values()) - report.counts["repeated alone"]
    print(f"{count} texts in {time.monotonic() - started:.0f} s: {dict(report.counts)}")
    return int(report.has_defects)


if __name__ == "__main__":
    sys.exit(main())
