"""What the checks of the host device cost: checked launches against unchecked ones, in one process.

python benchmarks/checks.py [--kernels PATTERN] [--most 20]

Prints the time of an unchecked launch, and the wall time and the processor time of launches with checks as multiples of it. The
least of several launches counts. The first one of each kind compiles and does not count.
"""

from __future__ import annotations

import argparse
import fnmatch
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "examples"), str(ROOT / "benchmarks")]

import triton_metal as triton  # noqa: E402

#: What a launch is checked for, by the heads of the columns.
CHECKS = {
    "bounds": "bounds",
    "races": ("bounds", "races"),
    "initialized": "initialized",
    "all": "all",
}


def main() -> None:
    """Prints a row for each kernel."""
    from host_vs_interpreter import runs
    from portable import least, small_kernels

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernels", default="*", help="names, with * and ?")
    parser.add_argument(
        "--most", type=float, help="fail if bounds and races together cost more processor time"
    )
    options = parser.parse_args()
    # Masked lanes divide by zero there.
    kernels = {
        name: kernel
        for name, kernel in {**small_kernels(), **runs()}.items()
        if not name.startswith("division")
    }
    print(f"{'':34}{'unchecked':>12}" + "".join(f"{name:>16}" for name in CHECKS))
    print(f"{'':34}{'ms':>12}" + f"{'wall':>10}{'CPU':>6}" * len(CHECKS))
    costly = False
    for name, function in kernels.items():
        if not fnmatch.fnmatch(name, options.kernels):
            continue
        figures = {}
        for column, check in {"": None, **CHECKS}.items():
            with triton.launch_options(check=check):
                function()
                figures[column] = [
                    least(function, clock, 0.2) for clock in (time.perf_counter, time.process_time)
                ]
        wall, cpu = figures.pop("")
        costly |= figures["races"][1] > (options.most or float("inf")) * cpu
        row = "".join(f"{w / wall:10.1f}{c / cpu:6.1f}" for w, c in figures.values())
        print(f"{name:34}{wall:12.3f}{row}", flush=True)
    if costly:
        raise SystemExit(
            f"bounds and races cost more than {options.most:g} times the unchecked launch"
        )


if __name__ == "__main__":
    main()
