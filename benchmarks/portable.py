"""What the checks of the host device cost: a portable launch against an unchecked one, in one process.

python benchmarks/portable.py [--seed 1] [--kernels PATTERN] [--most 10]

Prints the wall time and the processor time of a launch with ``check="portable"``, each as a multiple of the same launch without a
check. The least of several launches counts. The first one of each kind compiles and does not count.
"""

from __future__ import annotations

import argparse
import fnmatch
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import triton_metal as triton
import triton_metal.language as tl

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "examples"), str(ROOT / "benchmarks")]


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask) + tl.load(y + at, mask), mask)


@triton.jit
def scale(x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(x + at, tl.load(x + at, mask) * 2 + 1, mask)


@triton.jit
def total(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out, tl.sum(tl.load(x + at, at < n, 0)))


@triton.jit
def ratio(x, y, out, n, BLOCK: tl.constexpr):
    """Divides by zero where a divisor is zero and where the mask is off, which decides nothing."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    divisor = tl.load(y + at, mask, 0)
    quotient = tl.load(x + at, mask, 0) // divisor
    tl.store(out + at, tl.where(divisor == 0, 0, quotient), mask)


@triton.jit
def row_max(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    tl.store(out + row, tl.max(tl.load(x + row * columns + at, at < columns, float("-inf"))))


def small_kernels() -> dict[str, Callable[[], object]]:
    """Kernels whose threads do little, as the cost of a threadgroup and of an access shows most there."""
    n = 2**20
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(n, dtype=np.float32) for _ in range(2))
    out, one = np.empty_like(x), np.zeros(1, np.int32)
    numbers = rng.integers(0, 9, n, dtype=np.int32)
    divisors, zeros, quotients = numbers + 1, numbers * 0, np.empty_like(numbers)
    maxima = np.empty(n // 256, np.float32)

    def launch(kernel: object, block: int, warps: int, *arguments: object) -> Callable[[], object]:
        return lambda: kernel[triton.cdiv(n, block),](*arguments, n, BLOCK=block, num_warps=warps)

    return {
        "add, groups of 64": launch(add, 64, 2, x, y, out),
        "add, groups of 128, 8 each": launch(add, 1024, 4, x, y, out),
        "in place, groups of 64": launch(scale, 64, 2, out),
        "in place, groups of 128, 8 each": launch(scale, 1024, 4, out),
        "division, the last group fires": lambda: ratio[triton.cdiv(n - 5, 1024),](
            numbers, divisors, quotients, n - 5, BLOCK=1024
        ),
        "division, all groups fire": lambda: ratio[n // 512,](
            numbers, zeros, quotients, n, BLOCK=512
        ),
        "sum by atomics, groups of 128": launch(total, 1024, 4, numbers, one),
        "row maxima, groups of 128": lambda: row_max[n // 256,](x, maxima, 256, BLOCK=256),
    }


def least(function: Callable[[], object], clock: Callable[[], float], seconds: float) -> float:
    """The least milliseconds of a call by the clock, within about so many seconds of it."""
    best, spent = float("inf"), 0.0
    while spent < seconds or best == float("inf"):
        start = clock()
        function()
        best = min(best, clock() - start)
        spent += clock() - start
    return best * 1e3


def main() -> None:
    """Prints a row for each kernel."""
    from host_vs_interpreter import runs

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kernels", default="*", help="names, with * and ?")
    parser.add_argument("--most", type=float, help="fail if a launch costs more wall time")
    options = parser.parse_args()
    kernels = {**small_kernels(), **runs()}
    print(f"{'':34}{'unchecked':>12}{'bounds':>16}{'portable':>16}")
    print(f"{'':34}{'ms':>12}{'wall':>10}{'CPU':>6}{'wall':>10}{'CPU':>6}")
    costly = False
    for name, function in kernels.items():
        if not fnmatch.fnmatch(name, options.kernels):
            continue
        figures = []
        for check in (None, "bounds", "portable"):
            seed = options.seed if check == "portable" else None
            with triton.launch_options(check=check, seed=seed):
                function()
                figures.append(
                    [
                        least(function, clock, 0.3)
                        for clock in (time.perf_counter, time.process_time)
                    ]
                )
        (wall, cpu), *checked = figures
        costly |= checked[-1][0] > (options.most or float("inf")) * wall
        row = "".join(f"{w / wall:10.1f}{c / cpu:6.1f}" for w, c in checked)
        print(f"{name:34}{wall:12.3f}{row}", flush=True)
    if costly:
        raise SystemExit(
            f"a portable launch costs more than {options.most:g} times an unchecked one"
        )


if __name__ == "__main__":
    main()
