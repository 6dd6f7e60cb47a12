"""Compiles changed and drawn texts of Triton IR to Metal, which must end in Metal or in an error with a reason.

    python tests/fuzz/fuzz_ttir.py --mutants 20000 --programs 2000 --seed 1

A text on which the compiler crashes, takes more than 20 seconds, or prints Metal that the host device's front end
refuses is kept in the folder of --out, beside what was said of it. `--corpus FOLDER` compiles the texts of a folder
as they are: the first line of each may say `// num_warps=8 num_stages=1`.
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import random
import re
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from mutate import Mutator
from programs import draw_program
from server import Answer, Compiler, Options

ROOT = Path(__file__).resolve().parents[2]
STATED = re.compile(r"//.*?num_warps=(\d+) num_stages=(\d+)")


def kernels(text: bytes) -> list[bytes]:
    """A text for each public function of a module, without the others."""
    lines = text.split(b"\n")
    functions, at = [], 0
    while at < len(lines):
        begin, depth = at, lines[at].count(b"{") - lines[at].count(b"}")
        if re.match(rb"\s*tt.func\b(?! private)", lines[at]):
            while depth > 0 and at + 1 < len(lines):
                at += 1
                depth += lines[at].count(b"{") - lines[at].count(b"}")
            functions.append((begin, at + 1))
        at += 1
    return [
        b"\n".join(
            line
            for index, line in enumerate(lines)
            if begin <= index < end or not any(b <= index < e for b, e in functions)
        )
        for begin, end in functions
    ]


def fixtures(build: Path) -> list[bytes]:
    """Every text of the lit tests that is Triton IR, and the same in MLIR's generic form."""
    texts = []
    for path in sorted((ROOT / "tests/lit").rglob("*")):
        if path.suffix not in (".mlir", ".ttir"):
            continue
        for part in path.read_bytes().split(b"// -----"):
            code = b"\n".join(
                line for line in part.split(b"\n") if not line.lstrip().startswith(b"//")
            )
            texts += kernels(code)
    generic = []
    for text in texts:
        printed = subprocess.run(
            [str(build / "bin/triton-metal-opt"), "-", "--mlir-print-op-generic"],
            input=text,
            capture_output=True,
        )
        if printed.returncode == 0:
            generic.append(printed.stdout)
    return texts + generic


def stated(text: bytes) -> Options:
    match = STATED.match(text.split(b"\n", 1)[0].decode(errors="replace"))
    return Options(int(match[1]), int(match[2])) if match else Options()


class Run:
    """Texts on their way through several compilers at once."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments = arguments
        self.statuses: collections.Counter[str] = collections.Counter()
        self.reasons: collections.Counter[str] = collections.Counter()
        self.defects: collections.Counter[str] = collections.Counter()
        self.slowest = 0.0
        self.lock = threading.Lock()

    def texts(self) -> Iterator[tuple[bytes, Options]]:
        arguments = self.arguments
        check = arguments.metal
        choice = random.Random(arguments.seed)
        for folder in arguments.corpus:
            for path in sorted(Path(folder).rglob("*.ttir")):
                text = path.read_bytes()
                options = stated(text)
                yield text, Options(options.num_warps, options.num_stages, check)
        for number in range(arguments.programs):
            text = draw_program(random.Random(f"{arguments.seed} {number}")).encode()
            yield text, Options(choice.choice([1, 2, 4, 8]), choice.choice([1, 2, 3, 4]), check)
        if arguments.mutants:
            corpus = fixtures(arguments.build)
            for folder in arguments.corpus:
                corpus += [path.read_bytes() for path in sorted(Path(folder).rglob("*.ttir"))]
            mutator = Mutator(corpus, arguments.seed)
            for _ in range(arguments.mutants):
                yield (
                    mutator.draw(),
                    Options(choice.choice([1, 2, 4, 8, 32]), choice.choice([1, 2, 3]), check),
                )

    def keep(self, text: bytes, options: Options, answer: Answer) -> None:
        # Defects of one kind are counted together, and three texts of each are kept.
        interesting = [
            line
            for line in answer.message.splitlines()
            if re.search(r"ERROR: |runtime error|error: |exit status|LLVM ERROR|Assertion", line)
        ]
        frames = re.findall(r"#\d+ 0x\w+ in (\S+)", answer.message)
        ours = next((frame for frame in frames if "triton_metal" in frame), "")
        kind = " | ".join(
            [answer.status, *(re.sub(r"0x\w+|\d+", "N", line) for line in interesting[:1]), ours]
        )
        self.defects[kind] += 1
        if self.defects[kind] > 3:
            return
        out = self.arguments.out
        out.mkdir(parents=True, exist_ok=True)
        name = f"{answer.status}-{hashlib.sha256(text).hexdigest()[:10]}"
        (out / f"{name}.ttir").write_bytes(text)
        (out / f"{name}.txt").write_text(f"{options}\n{answer.message}\n")

    def work(self, texts: Iterator[tuple[bytes, Options]]) -> None:
        compiler = Compiler(
            [
                *shlex.split(self.arguments.under),
                str(self.arguments.build / "bin/triton-metal-compile-texts"),
            ],
            # The host device takes a minute for what fills thousands of lines.
            self.arguments.limit + (280 if self.arguments.metal else 0),
        )
        while True:
            with self.lock:
                entry = next(texts, None)
            if entry is None:
                break
            answer = compiler.compile(*entry)
            if answer.seconds > self.arguments.limit:
                answer = Answer("hang", f"took {answer.seconds:.0f} s", answer.seconds)
            with self.lock:
                self.statuses[answer.status] += 1
                self.slowest = max(self.slowest, answer.seconds)
                if answer.status == "refused":
                    reason = re.sub(r"^\S*: error: |'[^']*'|\d+", "", answer.message.split("\n")[0])
                    self.reasons[reason[:100]] += 1
                if answer.is_defect:
                    self.keep(*entry, answer)
        compiler.close()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--mutants", type=int, default=0, help="changed texts of the lit tests and the corpus"
    )
    parser.add_argument("--programs", type=int, default=0, help="drawn programs")
    parser.add_argument(
        "--corpus", action="append", default=[], help="a folder of texts to compile"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--out", type=Path, default=ROOT / "build/fuzz-ttir")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=float, default=20.0, help="seconds that a text may take")
    parser.add_argument("--metal", action="store_true", help="compile the Metal text as well")
    parser.add_argument(
        "--under", default="", help="a command that runs the compiler, such as valgrind"
    )
    parser.add_argument(
        "--reasons", type=int, default=0, help="print the most frequent reasons of refusals"
    )
    run = Run(parser.parse_args())
    start = time.monotonic()
    texts = run.texts()
    workers = [threading.Thread(target=run.work, args=(texts,)) for _ in range(run.arguments.jobs)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    counts = ", ".join(f"{count} {status}" for status, count in run.statuses.most_common())
    print(f"{sum(run.statuses.values())} texts in {time.monotonic() - start:.0f} s: {counts}; ")
    print(f"the slowest took {run.slowest:.2f} s")
    for reason, count in run.reasons.most_common(run.arguments.reasons):
        print(f"{count:6} {reason}")
    for kind, count in run.defects.most_common():
        print(f"DEFECT {count:6} {kind}")
    return 1 if run.defects else 0


if __name__ == "__main__":
    sys.exit(main())
