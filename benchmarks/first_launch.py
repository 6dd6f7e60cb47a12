"""How long the first launch of a kernel takes on the host device: compiled anew, and from the cache on disk.

python benchmarks/first_launch.py [--kernels PATTERN] [--limit 150] [--json FILE]

Each figure is the least of three processes. A process has launched one other kernel before, so that libraries are loaded. The first launch of an example
is all of it: Python to Triton IR, Triton IR to Metal, Metal to the processor's code, and the run. MLX's kernels are
Metal texts; the figure is the time from the text to a pipeline.
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "examples"))

K = "mlx/backend/metal/kernels"
#: Headers, the function and its template arguments, for instantiate_kernel of MLX's utils.h.
MLX = {
    "MLX steel GEMM 64x64x16 fp16": (
        ["steel/gemm/gemm.h", "steel/gemm/kernels/steel_gemm_fused.h"],
        "gemm, half, 64, 64, 16, 2, 2, false, false, float",
        [10, 100, 110, 200, 201, 202],
    ),
    "MLX steel attention 32x32x64 fp16": (
        ["steel/attn/attn.h", "steel/attn/kernels/steel_attention.h"],
        "attention, half, 32, 32, 64, 4, 1, half, float",
        [200, 201, 300, 301, 302],
    ),
}


def include_folder() -> Path | None:
    spec = importlib.util.find_spec("mlx")
    for place in (spec and spec.submodule_search_locations) or ():
        if (Path(place) / "include" / K).exists():
            return Path(place) / "include"
    return None


def example_names() -> list[str]:
    import demo

    return [case.text_name for case in demo.cases()]


def one_example(name: str) -> dict[str, float]:
    """Launches an example for the first time in this process."""
    import numpy as np

    import demo
    import vector_add

    vector_add.add(np.ones(70, np.float32), np.ones(70, np.float32))
    case = next(case for case in demo.cases() if case.text_name == name)
    start = time.perf_counter()
    case.run()
    return {"ms": (time.perf_counter() - start) * 1e3}


def one_text(name: str) -> dict[str, float]:
    """Compiles one of MLX's texts for the first time in this process."""
    import numpy as np
    import triton_metal_host as metal

    folder = include_folder()
    headers, arguments, constants = MLX[name]
    text = "".join(f'#include "{K}/{header}"\n' for header in ["utils.h", *headers])
    text += f'instantiate_kernel("k", {arguments})\n'
    device = metal.Device()
    tiny = device.library("kernel void k(device int *o) { *o = 1; }")
    device.pipeline(tiny.function("k"))(np.zeros(1, np.int32), threads=1)
    start = time.perf_counter()
    library = device.library(text, include=[str(folder)])
    device.pipeline(library.function("k", constants=dict.fromkeys(constants, False)))
    return {"ms": (time.perf_counter() - start) * 1e3}


def in_a_process(name: str, cache: str) -> float:
    # NumPy's threads for the reference results would go on waiting on a core while the launch is measured.
    environment = dict(os.environ, TRITON_METAL_CACHE_DIR=cache, OPENBLAS_NUM_THREADS="1")
    command = [sys.executable, __file__, "--only", name]
    result = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    return json.loads(result.stdout.splitlines()[-1])["ms"]


def measure(name: str) -> dict[str, float]:
    """The milliseconds without and with what an earlier process has left on disk."""
    cold, warm = [], []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as cache:
            cold.append(in_a_process(name, cache))
            warm.append(in_a_process(name, cache))
    return {"cold": min(cold), "cached": min(warm)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernels", default="*", help="names, with * and ?")
    parser.add_argument(
        "--limit", type=float, help="fail if the first launch of an example takes longer, in ms"
    )
    parser.add_argument("--json", type=Path, help="write the figures here as well")
    parser.add_argument("--only", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        print(
            json.dumps(one_text(options.only) if options.only in MLX else one_example(options.only))
        )
        return
    names = example_names() + (list(MLX) if include_folder() else [])
    figures: dict[str, Any] = {}
    print(f"{'':66}{'anew':>10}{'from disk':>12}")
    for name in fnmatch.filter(names, options.kernels):
        figures[name] = row = measure(name)
        print(f"{name:66}{row['cold']:7.0f} ms{row['cached']:9.1f} ms", flush=True)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
    slow = [
        name
        for name, row in figures.items()
        if options.limit and name not in MLX and row["cold"] > options.limit
    ]
    if slow:
        sys.exit(f"over {options.limit:g} ms: " + ", ".join(slow))


if __name__ == "__main__":
    main()
