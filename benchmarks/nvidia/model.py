"""Holds the model of triton_metal.cost against times measured on an NVIDIA H100 or H200.

    PYTHONPATH=python:. .venv/bin/python -m benchmarks.nvidia.model TIMES.json [--kinds] [--json FILE]

TIMES.json is what benchmarks/nvidia/run_ptx.py writes with --json: the time of each kernel's text for each problem and number of
warps; --kinds goes with run_ptx.py's own --kinds. The host device counts a few programs of each launch, which are taken as
often as the measured launch had programs; the model's estimate with the GPU's figures is then compared by rank with the times,
over all and within each kernel.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.nvidia import kernels, kinds
from benchmarks.nvidia.kernels import Case
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


def _gpu(name: str, bandwidth: float) -> cost.Chip:
    return cost.Chip(
        name,
        0,
        132,
        bandwidth,
        1.98,
        50,
        UNITS,
        _OCCUPANCY,
        227 * 1024,
        {
            "cores": "NVIDIA's data sheet",
            "bandwidth": "NVIDIA's data sheet",
            "units": UNITS.source,
        },
    )


#: By what torch calls them.
GPUS = {
    "NVIDIA H200": _gpu("H200", 4800),
    "NVIDIA H100 80GB HBM3": _gpu("H100 SXM", 3350),
}
#: Programs that are counted.
COUNTED = 8


def counted(case: Case, kernel: Any) -> cost.Work:
    """The work of the launch that was measured, from one of a few programs.

    Nothing but places depends on the arrays' values; pages of zeros that no program touches take no memory.
    """
    rng = np.random.default_rng(0)
    arrays = [
        rng.integers(0, case.cols, shape).astype(dtype)
        if name == "place"
        else np.zeros(shape, dtype)
        for name, dtype, shape in case.arrays
    ]
    programs = min(COUNTED, case.grid)
    with cost.counting() as c:
        kernel[(programs,)](*arrays, *case.scalars, **case.constants, num_warps=case.num_warps)
    (work,) = c.works
    one = ("registers_per_thread", "threadgroup_memory_bytes")
    counters = {
        name: value if name in one else round(value * case.grid / programs)
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
    parser.add_argument("--kinds", action="store_true", help="the kernels of kinds.py")
    options = parser.parse_args()
    records = json.loads(options.times.read_text())
    names = {record["gpu"] for record in records}
    if len(names) != 1 or not names <= GPUS.keys():
        print(
            f"{options.times} has times of {sorted(names)}; it must be one of {sorted(GPUS)}",
            file=sys.stderr,
        )
        return 1
    chip = GPUS[names.pop()]
    measured = {
        (record["group"], int(name.split()[1])): ms
        for record in records
        for name, ms in record["milliseconds"].items()
        if name.startswith("ours ")
    }
    chosen = kinds if options.kinds else kernels
    rows = []
    for case in chosen.cases():
        ms = measured.get((case.group, case.num_warps))
        if ms is None:
            continue
        found = cost.bound(chip, counted(case, chosen.KERNELS[case.kernel]))
        rows.append(
            {
                "case": case.name,
                "kernel": case.kernel,
                "group": case.group,
                "megabytes": case.bytes / 1e6,
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
    times = [row["measured_ms"] for row in rows]
    print(
        f"{chip.name}, {len(rows)} configurations of {len({row['group'] for row in rows})} problems"
    )
    print(
        f"bytes alone: rank correlation {correlation([row['megabytes'] for row in rows], times):.3f}"
    )
    for key in ("bound_ms", "estimate_ms"):
        whole = correlation([row[key] for row in rows], times)
        print(f"{key.split('_')[0]}: rank correlation {whole:.3f}")
        # Large launches take long, whatever a model knows: the time of a byte has no size in it.
        each = [row[key] / row["megabytes"] for row in rows]
        time = [row["measured_ms"] / row["megabytes"] for row in rows]
        print(f"  of the time of a byte: {correlation(each, time):.3f}")
        for kernel in dict.fromkeys(row["kernel"] for row in rows):
            own = [row for row in rows if row["kernel"] == kernel]
            value = correlation([row[key] for row in own], [row["measured_ms"] for row in own])
            print(f"  {kernel}: {value:.3f} over {len(own)}")
    above = [row for row in rows if row["bound_ms"] > 1.02 * row["measured_ms"]]
    print(f"bounds above the measured time: {len(above)}")
    first, third = [], []
    for group in dict.fromkeys(row["group"] for row in rows):
        if sum(row["group"] == group for row in rows) == 1:
            continue
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
