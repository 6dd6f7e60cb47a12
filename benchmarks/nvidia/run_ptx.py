"""Times a folder of benchmarks/nvidia/make.py on this machine's NVIDIA GPU, beside stock Triton and a copy.

    python3 run_ptx.py FOLDER [--json FILE] [--only softmax] [--rounds 15]

Needs torch and Triton, and nothing of this project. The arrays are far larger than the GPU's caches, so every launch
reads from memory. Ours, stock Triton's and a copy take turns; the figures are medians, and ratios of speeds in bytes a
second. Each side has its best number of warps.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

os.environ["TRITON_METAL_STOCK"] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parent))

import torch

from kernels import KERNELS, Case, cases

cuda = ctypes.CDLL("libcuda.so.1")


def check(status: int) -> None:
    if status:
        text = ctypes.c_char_p()
        cuda.cuGetErrorString(status, ctypes.byref(text))
        raise RuntimeError(f"CUDA: {(text.value or b'').decode()} ({status})")


class Launch:
    """A kernel of PTX with its arguments."""

    def __init__(self, folder: Path, made: dict, case: Case, arrays: list[torch.Tensor]) -> None:
        module, self.function = ctypes.c_void_p(), ctypes.c_void_p()
        ptx = (folder / f"{made['case']}.ptx").read_bytes() + b"\0"
        check(cuda.cuModuleLoadData(ctypes.byref(module), ptx))
        name = made["kernel"].encode()
        check(cuda.cuModuleGetFunction(ctypes.byref(self.function), module, name))
        words = [word - (word >> 31 << 32) for word in made["words"]]
        self.words = torch.tensor(words or [0], dtype=torch.int32, device="cuda")
        given = {**dict(enumerate(arrays)), made["scalar_buffer"]: self.words}
        pointers = [ctypes.c_uint64(given[buffer].data_ptr()) for buffer in made["buffers"]]
        self.arguments = (ctypes.c_void_p * len(pointers))(
            *[ctypes.cast(ctypes.byref(pointer), ctypes.c_void_p) for pointer in pointers]
        )
        self.pointers, self.grid, self.threads = pointers, case.grid, made["threads"]

    def __call__(self) -> None:
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        size = (self.grid, 1, 1, self.threads, 1, 1, 0)
        check(cuda.cuLaunchKernel(self.function, *size, stream, self.arguments, None))


def fill(name: str, dtype: str, shape: tuple[int, ...], cols: int) -> torch.Tensor:
    if name == "label":
        return torch.randint(0, cols, shape, dtype=torch.int32, device="cuda")
    return torch.randn(shape, dtype=getattr(torch, dtype), device="cuda")


def milliseconds(
    run: Callable[[], None], before: torch.cuda.Event, after: torch.cuda.Event
) -> float:
    # The GPU waits while Python prepares the launch, so that no launch's own cost is measured.
    torch.cuda._sleep(1_000_000)
    before.record()
    run()
    after.record()
    after.synchronize()
    return before.elapsed_time(after)


def time_all(runs: dict[str, Callable[[], None]], rounds: int) -> dict[str, float]:
    """The median of each in milliseconds; they take turns, in an order that changes."""
    before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for run in runs.values():
        run()
        run()
    times: dict[str, list[float]] = {name: [] for name in runs}
    names = list(runs)
    for turn in range(rounds):
        at = turn % len(names)
        for name in names[at:] + names[:at]:
            times[name].append(milliseconds(runs[name], before, after))
    return {name: statistics.median(values) for name, values in times.items()}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    torch.manual_seed(0)
    torch.zeros(1, device="cuda")
    made = {m["case"]: m for m in json.loads((arguments.folder / "launches.json").read_text())}
    groups: dict[tuple[str, str, int], list[Case]] = {}
    for case in cases(only=arguments.only):
        if case.name in made:
            groups.setdefault((case.kernel, case.dtype, case.cols), []).append(case)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    print(
        "| kernel | type | columns | GB/s | of a copy | of stock Triton | warps: ours, stock | differ |"
    )
    print("|---|---|---|---|---|---|---|---|")
    records = []
    for (kernel, dtype, cols), group in groups.items():
        first = group[0]
        arrays = [fill(name, t, shape, cols) for name, t, shape in first.arrays]
        other = torch.empty_like(arrays[1])
        stock = KERNELS[kernel]
        runs: dict[str, Callable[[], None]] = {"copy": lambda o=other, x=arrays[1]: o.copy_(x)}
        for case in group:
            runs[f"ours {case.num_warps}"] = Launch(arguments.folder, made[case.name], case, arrays)
            runs[f"stock {case.num_warps}"] = lambda c=case, a=arrays, k=stock: k[(c.grid,)](
                *a, *c.scalars, BLOCK=c.block, num_warps=c.num_warps
            )
        runs[f"stock {first.num_warps}"]()
        expected = arrays[0].float().clone()
        arrays[0].fill_(float("nan"))
        runs[f"ours {first.num_warps}"]()
        differ = (arrays[0].float() - expected).abs().max().item()
        times = time_all(runs, arguments.rounds)
        best = {
            side: min((t, n.split()[1]) for n, t in times.items() if n.startswith(side + " "))
            for side in ("ours", "stock")
        }
        speed = first.bytes / best["ours"][0] / 1e6
        copy = 2 * other.nbytes / times["copy"] / 1e6
        record = {
            "kernel": kernel,
            "dtype": dtype,
            "columns": cols,
            "gigabytes_per_second": speed,
            "of_copy": speed / copy,
            "of_stock": best["stock"][0] / best["ours"][0],
            "warps": [best["ours"][1], best["stock"][1]],
            "largest_difference": differ,
            "milliseconds": times,
        }
        records.append(record)
        print(
            f"| {kernel} | {dtype} | {cols:,} | {speed:,.0f} | {record['of_copy']:.3f} | "
            f"{record['of_stock']:.3f} | {best['ours'][1]}, {best['stock'][1]} | {differ:.2g} |",
            flush=True,
        )
        del arrays, other, runs, expected
    if arguments.json:
        arguments.json.write_text(json.dumps(records, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
