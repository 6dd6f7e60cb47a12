"""The host device against stock Triton's interpreter: the same kernel files, the same arrays, the same machine.

python benchmarks/host_vs_interpreter.py [--least 20] [--json FILE]

Each side runs in a process of its own, with the same wrappers. Times are medians after one call that compiles.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "examples"), str(ROOT / "benchmarks")]


def runs() -> dict[str, Callable[[], object]]:
    """The five kernels, ready to be called."""
    import attention
    import layer_norm
    import matmul
    import softmax
    import vector_add

    rng = np.random.default_rng(0)

    def normal(*shape: int, dtype: type = np.float32) -> np.ndarray:
        return rng.standard_normal(shape, dtype=np.float32).astype(dtype)

    x, y = normal(2**22), normal(2**22)
    rows, weight, bias = normal(1024, 1024), normal(1024), normal(1024)
    a, b = normal(512, 512, dtype=np.float16), normal(512, 512, dtype=np.float16)
    q, k, v = (normal(4, 512, 64, dtype=np.float16) for _ in range(3))
    return {
        "add 2^22 fp32": lambda: vector_add.add(x, y),
        "softmax 1024x1024 fp32": lambda: softmax.softmax(rows),
        "layer norm 1024x1024 fp32": lambda: layer_norm.layer_norm(rows, weight, bias),
        "matmul 512^3 fp16": lambda: matmul.matmul(a, b),
        "attention 4x512x64 fp16": lambda: attention.attention(q, k, v),
    }


def median_ms(function: Callable[[], object], seconds: float) -> float:
    """The median milliseconds of a call, within about so many seconds, of at least three calls."""
    function()
    times: list[float] = []
    while len(times) < 3 or (sum(times) < seconds and len(times) < 200):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def torch_matmul_ms() -> float | None:
    """torch.matmul on the CPU for the same shape and dtype, for the record."""
    try:
        import torch
    except ModuleNotFoundError:
        return None
    a, b = (torch.randn(512, 512).half() for _ in range(2))
    return median_ms(lambda: torch.matmul(a, b), 1.0)


def one_side(stock: bool) -> dict[str, float]:
    """The times of one side, in a fresh process."""
    command = [sys.executable, __file__, "--side", "stock" if stock else "ours"]
    result = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True, env=dict(os.environ)
    )
    return json.loads(result.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--least", type=float, help="fail if a kernel is not this many times faster"
    )
    parser.add_argument("--json", type=Path, help="write the figures here as well")
    parser.add_argument("--side", choices=("stock", "ours"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.side:
        if arguments.side == "stock":
            import stock

            stock.use_stock_interpreter()
        seconds = 3.0 if arguments.side == "stock" else 1.0
        print(json.dumps({name: median_ms(function, seconds) for name, function in runs().items()}))
        return

    ours, theirs = one_side(stock=False), one_side(stock=True)
    records = []
    print(f"{'':28}{'host device':>14}{'interpreter':>14}{'times':>9}")
    for name, ms in ours.items():
        records.append(
            {
                "kernel": name,
                "host_ms": ms,
                "interpreter_ms": theirs[name],
                "ratio": theirs[name] / ms,
            }
        )
        print(f"{name:28}{ms:11.2f} ms{theirs[name]:11.1f} ms{theirs[name] / ms:9.1f}")
    torch_ms = torch_matmul_ms()
    if torch_ms is not None:
        print(f"torch.matmul on the CPU takes {torch_ms:.2f} ms for the same product.")
        records.append({"kernel": "torch.matmul 512^3 fp16", "host_ms": torch_ms})
    if arguments.json:
        arguments.json.write_text(json.dumps(records, indent=2) + "\n")
    slow = [
        r["kernel"]
        for r in records
        if arguments.least and r.get("ratio", arguments.least) < arguments.least
    ]
    if slow:
        sys.exit(f"less than {arguments.least:g} times faster: " + ", ".join(slow))


if __name__ == "__main__":
    main()
