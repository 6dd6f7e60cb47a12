"""Computes functions of every float32 on the host device, and compares them with the bounds of docs/arithmetic.md.

    python tests/accuracy/every_float.py [FUNCTION...] [--stride N] [--portable SEED] [--precise]

Prints each function's largest error, and exits with 1 if a float breaks a bound. `--stride` takes one float of N.
`--portable` has the host device give the worst that Metal allows. All functions of all floats take half an hour.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "python"))
import triton_metal

from arithmetic_bounds import BOUNDS, PRECISE, computed, largest_error, violations

CHUNK = 1 << 22


def check(name: str, stride: int, portable: int | None, precise: bool) -> bool:
    """Whether a function keeps to its bound for every `stride`-th float."""
    bound = (PRECISE if precise else BOUNDS)[name]
    began, worst, broken = time.monotonic(), 0.0, 0
    options = {} if portable is None else {"check": "portable", "seed": portable}
    for first in range(0, 1 << 32, CHUNK * stride):
        bits = np.arange(first, min(first + CHUNK * stride, 1 << 32), stride, dtype=np.uint32)
        x = np.resize(bits, -(-bits.size // 1024) * 1024).view(np.float32)
        with triton_metal.launch_options(**options):
            y = computed(name, x, precise_math=precise)
        wrong = violations(bound, x, y)
        if wrong.size and broken < 10:
            for place in wrong[: 10 - broken]:
                print(f"{name}({x[place]!r}) = {y[place]!r}, bits {x.view(np.uint32)[place]:08x}")
        broken += wrong.size
        worst = max(worst, largest_error(bound, x, y))
    seconds = time.monotonic() - began
    print(f"{name}: {broken} outside of the bound; at most {worst:.3f} ulp ({seconds:.0f} s)")
    return broken == 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("functions", nargs="*", choices=[*BOUNDS, []], default=[])
    parser.add_argument("--stride", type=int, default=1, help="one float of this many")
    parser.add_argument("--portable", type=int, help="the seed of check='portable'")
    parser.add_argument("--precise", action="store_true", help="with precise_math")
    args = parser.parse_args()
    names = args.functions or list(BOUNDS)
    kept = [check(name, args.stride, args.portable, args.precise) for name in names]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
