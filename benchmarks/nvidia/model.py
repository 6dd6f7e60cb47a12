"""Holds the model of triton_metal.cost against times measured on an H200.

    PYTHONPATH=python:. .venv/bin/python -m benchmarks.nvidia.model TIMES.json [--json FILE]

TIMES.json is what benchmarks/nvidia/run_ptx.py writes with --json: the time of each kernel's text for each type, number of columns
and number of warps. The host device counts a launch of a few programs of each, which is taken as often as the measured launch
had programs; the model's estimate with an H200's figures is then compared by rank with the times, over all and within each kernel.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import sys
from pathlib import Path

import numpy as np
from benchmarks.nvidia.kernels import KERNELS, Case, cases
from triton_metal import cost

#: A multiprocessor by the registers of a thread: 65,536 registers, 2,048 threads, in steps of 8 registers.
_OCCUPANCY = tuple((float(n), min(2048, 65536 // n // 32 * 32)) for n in range(32, 256, 8))
UNITS = cost.Units(
    float_add=128,
    half_add=256,
    int_add=64,
    int_mul=64,
    conversion=64,
    function=16,
    division=16,
    matrix_half=None,
    matrix_float=None,
    shuffle_bytes=128,
    cache_bytes=128,
    source="CUDA C++ Programming Guide, arithmetic instructions of compute capability 9.0",
    busy=((4, 4.0), (16, 1.0)),
)
H200 = cost.Chip(
    "H200",
    0,
    132,
    4800,
    1.98,
    50,
    UNITS,
    _OCCUPANCY,
    227 * 1024,
    {"cores": "NVIDIA's data sheet", "bandwidth": "NVIDIA's data sheet", "units": UNITS.source},
)
#: Programs that are counted.
COUNTED = 8


def counted(case: Case) -> cost.Work:
    """The work of the launch that was measured, from one of a few programs."""
    rng = np.random.default_rng(0)
    arrays = []
    programs = min(COUNTED, case.grid)
    share = programs / case.grid
    for name, dtype, shape in case.arrays:
        rows = max(1, round(shape[0] * share)) if shape[0] >= case.grid else shape[0]
        few = (rows, *shape[1:])
        if name == "label":
            arrays.append(rng.integers(0, case.cols, few).astype(dtype))
        else:
            arrays.append(rng.standard_normal(few).astype(dtype))
    with cost.counting() as c:
        KERNELS[case.kernel][(programs,)](
            *arrays, *case.scalars, **case.constants, num_warps=case.num_warps
        )
    (work,) = c.works
    one = ("registers_per_thread", "threadgroup_memory_bytes")
    counters = {
        name: value if name in one else round(value / share)
        for name, value in work.counters.items()
    }
    sizes = [np.dtype(dtype).itemsize * math.prod(shape) for _, dtype, shape in case.arrays]
    return dataclasses.replace(
        work,
        counters=counters,
        programs=case.grid,
        read_bytes=sum(sizes[1:]),
        written_bytes=sizes[0],
    )


def ranks(values: list[float]) -> np.ndarray:
    """Ranks from 0 on; equal values share theirs."""
    array = np.asarray(values)
    _, place, count = np.unique(array, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    return (last - (count + 1) / 2)[place]


def correlation(a: list[float], b: list[float]) -> float:
    """Spearman's rank correlation; NaN if one side has equal values alone."""
    if len(set(a)) < 2 or len(set(b)) < 2:
        return float("nan")
    return float(np.corrcoef(ranks(a), ranks(b))[0, 1])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("times", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    measured = {
        (each["kernel"], each["dtype"], each["columns"], int(name.split()[1])): ms
        for each in json.loads(options.times.read_text())
        for name, ms in each["milliseconds"].items()
        if name.startswith("ours ")
    }
    rows = []
    for case in cases():
        ms = measured.get((case.kernel, case.dtype, case.cols, case.num_warps))
        if ms is None:
            continue
        found = cost.bound(H200, counted(case))
        rows.append(
            {
                "case": case.name,
                "kernel": case.kernel,
                "group": f"{case.kernel} {case.dtype} {case.cols}",
                "measured_ms": ms,
                "bound_ms": found.seconds * 1e3,
                "estimate_ms": found.estimate * 1e3,
                "binds": found.binds,
            }
        )
    if not rows:
        print(f"{options.times} has no times of these kernels", file=sys.stderr)
        return 1
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    for key in ("bound_ms", "estimate_ms"):
        whole = correlation([row[key] for row in rows], [row["measured_ms"] for row in rows])
        print(f"{key.split('_')[0]}: rank correlation over {len(rows)} configurations {whole:.3f}")
        for kernel in dict.fromkeys(row["kernel"] for row in rows):
            own = [row for row in rows if row["kernel"] == kernel]
            value = correlation([row[key] for row in own], [row["measured_ms"] for row in own])
            print(f"  {kernel}: {value:.3f} over {len(own)}")
    above = [row for row in rows if row["bound_ms"] > 1.02 * row["measured_ms"]]
    print(f"bounds above the measured time: {len(above)}")
    first, third = [], []
    for group in dict.fromkeys(row["group"] for row in rows):
        own = sorted(
            (row for row in rows if row["group"] == group), key=lambda row: row["estimate_ms"]
        )
        best = min(row["measured_ms"] for row in own)
        first.append(own[0]["measured_ms"] / best)
        third.append(min(row["measured_ms"] for row in own[: -(-len(own) // 3)]) / best)
    for name, ratios in (("first choice", first), ("best of the first third", third)):
        print(
            f"the model's {name} of warps: {np.median(ratios):.3f} of the best time in the median, at most {max(ratios):.3f}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
