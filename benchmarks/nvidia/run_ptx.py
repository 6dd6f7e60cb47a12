"""Times a folder of benchmarks/nvidia/make.py on this machine's NVIDIA GPU, beside stock Triton and a copy.

    python3 run_ptx.py FOLDER [--json FILE] [--only softmax] [--rounds 60] [--kinds] [--columns 1536,3000]

Needs torch and Triton, and nothing of this project. The arrays are far larger than the GPU's caches, so every launch
reads from memory. Both sides are assembled by Triton's own ptxas. Ours, stock Triton's and a copy take turns, in a random
order in each round. Each timed launch comes right after an untimed one of the same, so that it pays for the lines that
its own kind leaves in the caches, and for no other's. The figures are medians, and ratios of speeds in bytes a second.
Each side has its best number of warps. In brackets is the range of a ratio over thirds of the rounds.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import random
import statistics
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

os.environ["TRITON_METAL_STOCK"] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parent))

import kinds
import torch
import triton

import kernels
from kernels import Case

cuda = ctypes.CDLL("libcuda.so.1")
#: Each part of the rounds gives ratios of its own, which tell how exact the figures are.
PARTS = 3


def check(status: int) -> None:
    if status:
        text = ctypes.c_char_p()
        cuda.cuGetErrorString(status, ctypes.byref(text))
        raise RuntimeError(f"CUDA: {(text.value or b'').decode()} ({status})")


class Launch:
    """A kernel of PTX with its arguments."""

    def __init__(self, folder: Path, made: dict, case: Case, arrays: list[torch.Tensor]) -> None:
        module, self.function = ctypes.c_void_p(), ctypes.c_void_p()
        code = (folder / f"{made['case']}.cubin").read_bytes()
        check(cuda.cuModuleLoadData(ctypes.byref(module), code))
        name = made["kernel"].encode()
        check(cuda.cuModuleGetFunction(ctypes.byref(self.function), module, name))
        words = (ctypes.c_uint32 * len(made["words"]))(*made["words"])
        given = {i: ctypes.c_uint64(array.data_ptr()) for i, array in enumerate(arrays)}
        given[made["scalar_buffer"]] = words
        self.values = [given[buffer] for buffer in made["buffers"]]
        self.arguments = (ctypes.c_void_p * len(self.values))(
            *[ctypes.cast(ctypes.byref(value), ctypes.c_void_p) for value in self.values]
        )
        self.grid, self.threads = case.grid, made["threads"]

    def __call__(self) -> None:
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        size = (self.grid, 1, 1, self.threads, 1, 1, 0)
        check(cuda.cuLaunchKernel(self.function, *size, stream, self.arguments, None))


def fill(name: str, dtype: str, shape: tuple[int, ...], cols: int) -> torch.Tensor:
    # Places and labels are below the number of columns.
    if name in ("label", "place"):
        return torch.randint(0, cols, shape, dtype=torch.int32, device="cuda")
    return torch.randn(shape, dtype=getattr(torch, dtype), device="cuda")


def assemble(ptx: Path) -> None:
    """Writes machine code beside a PTX."""
    ptxas = triton.knobs.nvidia.ptxas.path
    command = [ptxas, "--gpu-name=sm_90a", str(ptx), "-o", str(ptx.with_suffix(".cubin"))]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{ptx.name}: {done.stdout}{done.stderr}")


def stock_kernel(case: Case) -> triton.JITFunction:
    return (kinds if isinstance(case, kinds.Kind) else kernels).KERNELS[case.kernel]


def compile_stock(case: Case) -> None:
    """Has stock Triton compile a case into its cache on disk."""
    types = [getattr(torch, dtype) for _, dtype, _ in case.arrays]
    stock_kernel(case).warmup(
        *types, *case.scalars, **case.constants, num_warps=case.num_warps, grid=(1,)
    )


def prepare(folder: Path, made: list[Case]) -> None:
    """Compiles both sides on all cores."""
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        list(threads.map(assemble, [folder / f"{case.name}.ptx" for case in made]))
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as processes:
        list(processes.map(compile_stock, made, chunksize=4))


def milliseconds(
    run: Callable[[], None], before: torch.cuda.Event, after: torch.cuda.Event
) -> float:
    # The GPU waits while Python prepares the launches, so that no launch's own cost is measured.
    torch.cuda._sleep(500_000)
    run()
    before.record()
    run()
    after.record()
    after.synchronize()
    return before.elapsed_time(after)


def time_all(runs: dict[str, Callable[[], None]], rounds: int) -> dict[str, list[float]]:
    """The times of each in milliseconds. They take turns, in a random order in each round."""
    before, after = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for run in runs.values():
        run()
    times: dict[str, list[float]] = {name: [] for name in runs}
    order = random.Random(0)
    for _ in range(rounds):
        for name in order.sample(list(runs), len(runs)):
            times[name].append(milliseconds(runs[name], before, after))
    return times


class Ratio:
    """How much faster one is than another, by medians, and the range of that over parts of the rounds."""

    def __init__(self, theirs: list[float], ours: list[float], factor: float = 1.0) -> None:
        def ratio(part: slice) -> float:
            return factor * statistics.median(theirs[part]) / statistics.median(ours[part])

        size = max(1, len(ours) // PARTS)
        parts = [ratio(slice(i, i + size)) for i in range(0, size * PARTS, size)]
        self.value, self.low, self.high = ratio(slice(None)), min(parts), max(parts)

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f})"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--kinds", action="store_true", help="the kernels of kinds.py")
    kernels.add_columns(parser)
    arguments = parser.parse_args()
    torch.manual_seed(0)
    torch.zeros(1, device="cuda")
    made = {m["case"]: m for m in json.loads((arguments.folder / "launches.json").read_text())}
    groups: dict[str, list[Case]] = {}
    columns = {} if arguments.kinds else {"columns": arguments.columns}
    for case in (kinds if arguments.kinds else kernels).cases(only=arguments.only, **columns):
        if case.name in made:
            groups.setdefault(case.group, []).append(case)
    prepare(arguments.folder, [case for group in groups.values() for case in group])
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    print(
        "| kernel | type | columns | GB/s | of a copy | of stock Triton | warps: ours, stock | differ |"
    )
    print("|---|---|---|---|---|---|---|---|")
    records = []
    for name_of_group, group in groups.items():
        first = group[0]
        kernel, dtype, cols = first.kernel, first.dtype, first.cols
        arrays = [fill(name, t, shape, cols) for name, t, shape in first.arrays]
        other = torch.empty_like(arrays[1])
        stock = stock_kernel(first)
        runs: dict[str, Callable[[], None]] = {"copy": lambda o=other, x=arrays[1]: o.copy_(x)}
        for case in group:
            runs[f"ours {case.num_warps}"] = Launch(arguments.folder, made[case.name], case, arrays)
            runs[f"stock {case.num_warps}"] = lambda c=case, a=arrays, k=stock: k[(c.grid,)](
                *a, *c.scalars, **c.constants, num_warps=c.num_warps
            )
        runs[f"stock {first.num_warps}"]()
        expected = arrays[0].float().clone()
        differ = 0.0
        for case in group:
            arrays[0].fill_(float("nan"))
            runs[f"ours {case.num_warps}"]()
            difference = (arrays[0].float() - expected).abs().max()
            differ = torch.maximum(difference.cpu(), torch.tensor(differ)).item()
        times = time_all(runs, arguments.rounds)
        medians = {name: statistics.median(values) for name, values in times.items()}
        ours, theirs = (
            min((name for name in runs if name.startswith(side)), key=medians.__getitem__)
            for side in ("ours ", "stock ")
        )
        of_stock = Ratio(times[theirs], times[ours])
        of_copy = Ratio(times["copy"], times[ours], first.bytes / (2 * other.nbytes))
        speed = first.bytes / medians[ours] / 1e6
        warps = [int(name.split()[1]) for name in (ours, theirs)]
        record = {
            "gpu": torch.cuda.get_device_name(),
            "group": name_of_group,
            "kernel": kernel,
            "dtype": dtype,
            "columns": cols,
            "gigabytes_per_second": speed,
            "of_copy": vars(of_copy),
            "of_stock": vars(of_stock),
            "warps": warps,
            "largest_difference": differ,
            "milliseconds": medians,
        }
        records.append(record)
        print(
            f"| {kernel} | {dtype} | {cols:,} | {speed:,.0f} | {of_copy} | {of_stock} | "
            f"{warps[0]}, {warps[1]} | {differ:.2g} |",
            flush=True,
        )
        del arrays, other, runs, expected
    if arguments.json:
        arguments.json.write_text(json.dumps(records, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
