"""Runs a campaign, or one program again, which is made smaller if it fails."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from .campaign import Tally, campaign, pattern
from .generate import generate
from .report import source
from .shrink import shrink

ROOT = Path(__file__).parents[3]


def write(seed: int, folder: Path, small: bool, answer: dict) -> Path:
    """The file of a program that fails."""
    removed, config = frozenset(), None
    if small:
        removed, config, answer = shrink(seed)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{answer['kind']}_{seed}.py"
    note = f"{answer['kind']}: {answer['detail'][:1000]}".replace("\\", "/").replace('"""', "'''")
    path.write_text(source(generate(seed, removed, config), note))
    return path


def main() -> int:
    parser = argparse.ArgumentParser(prog="random_programs", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="how many programs (1000)")
    parser.add_argument(
        "--seed", type=int, default=0, help="the campaign: other programs for each (0)"
    )
    parser.add_argument("--jobs", type=int, default=1, help="worker processes (1)")
    parser.add_argument(
        "--out", type=Path, default=ROOT / "out" / "programs", help="failures go here"
    )
    parser.add_argument("--shrink", type=int, default=10, help="make so many failures smaller (10)")
    parser.add_argument(
        "--texts", type=Path, help="keep the Triton IR of each program in this folder"
    )
    parser.add_argument("--route", help="run the programs through a contract device: mlx-graph")
    parser.add_argument("--only", type=int, help="one program, by its number")
    options = parser.parse_args()
    if options.route:
        os.environ["RANDOM_PROGRAMS_ROUTE"] = options.route
    if options.only is not None:
        program = generate(options.only)
        print(program.config, program.text(), sep="\n")
        path = write(options.only, options.out, True, {"kind": "ok", "detail": ""})
        print(path)
        return 0

    if options.texts:
        os.environ["RANDOM_PROGRAMS_TEXTS"] = str(options.texts.resolve())
    failures: list[dict] = []

    def on_failure(answer: dict) -> None:
        failures.append(answer)
        first = answer["detail"].splitlines()[0] if answer["detail"] else ""
        print(f"program {answer['seed']}: {answer['kind']}: {first[:200]}", flush=True)
        write(answer["seed"], options.out, False, answer)

    def progress(tally: Tally) -> None:
        if sum(tally.kinds.values()) % 500 == 0:
            print(tally, flush=True)

    start = options.seed * 1_000_000
    tally = campaign(range(start, start + options.count), options.jobs, on_failure, progress)
    shrunk: dict[str, int] = {}
    for answer in failures:
        kind = answer["kind"] + ": " + pattern(answer["detail"]) * (answer["kind"] == "metal")
        if len(shrunk) >= options.shrink or shrunk.setdefault(kind, 0) >= 5:
            continue
        shrunk[kind] += 1
        print("smaller:", write(answer["seed"], options.out / "small", True, answer), flush=True)
    for message, numbers in sorted(tally.refusals.items(), key=lambda item: -len(item[1])):
        some = ", ".join(map(str, numbers[:3]))
        print(f"{len(numbers)} refused ({some}): {message}")
    print(tally)
    return 1 if tally.failures else 0


if __name__ == "__main__":
    sys.exit(main())
