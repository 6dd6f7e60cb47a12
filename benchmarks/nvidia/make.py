"""Writes each kernel as PTX, with what a launch needs, into a folder: no GPU is needed.

    PYTHONPATH=python:. .venv/bin/python -m benchmarks.nvidia.make build/nvidia [--only softmax-4096] [--kinds] [--columns 1536,3000]

The Metal text goes through the host device's front end and LLVM's back end for NVIDIA. benchmarks/nvidia/run_ptx.py runs the
folder on a machine that has a GPU. With --kinds the kernels are those of kinds.py, for benchmarks/nvidia/model.py.
"""

from __future__ import annotations

import argparse
import json
import shutil
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.agx.measure import AgxError, lower
from benchmarks.nvidia import kernels, kinds
from benchmarks.nvidia.kernels import Case


def words(contract: dict, scalars: list[Any]) -> list[int]:
    """The scalars as the 32-bit words of the kernel's buffer for them."""
    kinds = [argument for argument in contract["args"] if argument["kind"] == "scalar"]
    by_index = {argument["index"]: argument for argument in kinds}
    first = sum(argument["kind"] == "buffer" for argument in contract["args"])
    result = [0] * sum(argument["words"] for argument in kinds)
    for index, value in enumerate(scalars, first):
        argument = by_index[index]
        form = {"f32": "<f", "i32": "<i", "u32": "<I"}.get(argument["type"])
        if form is None:
            raise AgxError(f"scalar '{argument['name']}' is of type {argument['type']}")
        result[argument["slot"]] = struct.unpack("<I", struct.pack(form, value))[0]
    return result


def make(case: Case, folder: Path) -> dict:
    """Compiles one case and writes its Metal text and its PTX."""
    few = [
        np.zeros(
            [min(n, 4) if i == 0 and len(shape) > 1 else n for i, n in enumerate(shape)], dtype
        )
        for _, dtype, shape in case.arrays
    ]
    kernel = (kinds if isinstance(case, kinds.Kind) else kernels).KERNELS[case.kernel]
    compiled = kernel.warmup(
        *few, *case.scalars, **case.constants, num_warps=case.num_warps, grid=(1,)
    )
    contract = json.loads(compiled.contract)
    text = folder / f"{case.name}.metal"
    text.write_text(compiled.asm["metal"])
    scalars = words(contract, case.scalars)
    # As on an Apple GPU, the launch has the scalars themselves, and the threads are those of the launch.
    described = lower(
        text,
        folder / f"{case.name}.ptx",
        target="nvptx",
        threads=contract["threads"],
        by_value={contract["scalar_buffer"]: 4 * len(scalars)},
    )
    return {
        "case": case.name,
        "kernel": described["kernel"],
        "threads": described["threads"],
        "buffers": [parameter["buffer"] for parameter in described["parameters"]],
        "scalar_buffer": contract["scalar_buffer"],
        "words": scalars,
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    parser.add_argument("--kinds", action="store_true", help="the kernels of kinds.py")
    kernels.add_columns(parser)
    arguments = parser.parse_args()
    chosen = kinds if arguments.kinds else kernels
    folder = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    launches, failed = [], 0
    columns = {} if arguments.kinds else {"columns": arguments.columns}
    for case in chosen.cases(only=arguments.only, **columns):
        try:
            launches.append(make(case, folder))
        except AgxError as error:
            print(f"{case.name}: {error}", file=sys.stderr)
            failed += 1
    (folder / "launches.json").write_text(json.dumps(launches))
    for name in ("kernels.py", "kinds.py", "run_ptx.py"):
        shutil.copy(Path(__file__).parent / name, folder / name)
    print(f"{len(launches)} kernels in {folder}, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
