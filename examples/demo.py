"""Compiles and runs the examples on the host Metal device: one table, and the Metal text of every kernel.

Below the examples' own kernels stand those of `triton_metal.ops` that do the same, on the same inputs and held to the same bounds.
The table also goes to out/demo.json, a list of records. Every result is compared with NumPy in float64; the counts are
those of the host device, the same on every machine. "compile" is from Triton IR to Metal text; the first launch does
that too, and all of the front end's and the host device's work besides.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import triton_metal
from triton_metal import ops

import attention
import dropout
import layer_norm
import matmul
import softmax
import vector_add
from _arrays import available, dtype_name, numpy_dtype, to_float64
from _bounds import rounding, share_of_bound
from _counts import Counts, counting

ROOT = Path(__file__).resolve().parents[1]


@dataclass
class Case:
    """One row of the table. ``kernel`` is the one that is counted, ``function`` the one of ops that launches it."""

    kernel: str
    shape: str
    inputs: Any
    run: Callable[[], Any]
    expected: Any
    bound: Any
    lower_bound: int | Callable[[], int]
    least_multiplies: int = 0
    function: str = ""

    @property
    def name(self) -> str:
        return self.function or self.kernel

    @property
    def least_bytes(self) -> int:
        """The bytes of device memory that cannot be avoided with the kernel's tiles."""
        return self.lower_bound() if callable(self.lower_bound) else self.lower_bound

    @property
    def text_name(self) -> str:
        return "-".join((self.name, self.shape, dtype_name(self.inputs))).replace(" ", "_")


def normal(shape: Any, dtype: str, seed: int = 0) -> np.ndarray:
    """Normal random numbers."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal(shape, dtype=np.float32).astype(numpy_dtype(dtype))


Convert = Callable[[np.ndarray], Any]


def elementwise_cases(to: Convert) -> Iterator[Case]:
    n = 2**20
    for dtype in available("float32", "float16", "bfloat16"):
        x, y = normal(n, dtype), normal(n, dtype, 1)
        expected = x.astype(np.float64) + y.astype(np.float64)
        bound = vector_add.error_bound(expected, dtype)
        least = vector_add.least_device_bytes(x)
        yield Case(
            "add_kernel",
            f"{n}",
            x,
            partial(vector_add.add, to(x), to(y)),
            expected,
            bound,
            least,
        )
    x = normal(n, "float32")
    expected = dropout.reference(x, 0.5, 7)
    bound = dropout.error_bound(expected, "float32")
    least = dropout.least_device_bytes(x)
    yield Case(
        "dropout_kernel",
        f"{n}",
        x,
        partial(dropout.dropout, to(x), 0.5, 7),
        expected,
        bound,
        least,
    )


def softmax_cases(to: Convert) -> Iterator[Case]:
    sizes = [(256, 1024, dtype) for dtype in available("float32", "float16", "bfloat16")]
    sizes += [(256, 4096, "float32"), (256, 781, "float32"), (16, 65_536, "float32")]
    for rows, cols, dtype in sizes:
        x = normal((rows, cols), dtype)
        expected = softmax.reference(x)
        yield Case(
            "softmax_kernel" if cols <= softmax.LONGEST_IN_REGISTERS else "long_softmax_kernel",
            f"{rows}x{cols}",
            x,
            partial(softmax.softmax, to(x)),
            expected,
            softmax.error_bound(x, expected),
            softmax.least_device_bytes(x),
        )


def normalise(x: Any, weight: Any, bias: Any) -> Any:
    """layer_norm's result without the mean and the rstd beside it."""
    return layer_norm.layer_norm(x, weight, bias)[0]


def layer_norm_cases(to: Convert) -> Iterator[Case]:
    for dtype in available("float32", "float16", "bfloat16"):
        x, weight, bias = normal((256, 1024), dtype), normal(1024, dtype, 1), normal(1024, dtype, 2)
        expected = layer_norm.reference(x, weight, bias)
        yield Case(
            "layer_norm_kernel",
            "256x1024",
            x,
            partial(normalise, to(x), to(weight), to(bias)),
            expected,
            layer_norm.error_bound(x, weight, bias, expected),
            layer_norm.least_device_bytes(x, weight),
        )
    x, weight, bias, dy = (
        normal(s, "float32", i) for i, s in enumerate([(256, 1024), 1024, 1024, (256, 1024)])
    )
    mean, rstd = x.mean(axis=1), 1 / np.sqrt(x.var(axis=1) + np.float32(1e-5))
    expected = layer_norm.reference_backward(dy, x, weight)
    bounds = layer_norm.error_bound_backward(dy, x, weight, expected)

    arguments = [to(array) for array in (dy, x, weight, mean, rstd)]

    def backward() -> tuple[Any, ...]:
        return layer_norm.layer_norm_backward(*arguments)

    least = layer_norm.least_device_bytes_backward(x, weight)
    yield Case(
        "layer_norm_backward_kernel",
        "256x1024",
        x,
        lambda: backward()[0],
        expected[0],
        bounds[0],
        least,
    )
    yield Case(
        "sum_partials_kernel",
        "64x1024",
        x,
        lambda: np.stack([to_float64(part) for part in backward()[1:]]),
        np.stack(expected[1:]),
        np.stack(bounds[1:]),
        (2 * 64 + 2) * 1024 * 4,
    )


def matmul_cases(to: Convert) -> Iterator[Case]:
    rng = np.random.default_rng(0)
    tile = (64, 64, 16)
    square, odd = (512, 512, 512), (500, 300, 200)
    choices = [(square, dtype, 1) for dtype in available("float16", "bfloat16", "float32", "int8")]
    for (m, n, k), dtype, stages in [*choices, (square, "float16", 2), (odd, "float16", 1)]:
        a, b = matmul.random_matrix(rng, (m, k), dtype), matmul.random_matrix(rng, (k, n), dtype)
        extra: dict[str, Any] = {}
        note = ""
        if (m, n, k) == odd:
            b = np.ascontiguousarray(b.T).T
            extra = {
                "bias": matmul.random_matrix(rng, (1, n), dtype)[0],
                "activation": "leaky_relu",
            }
            note = " transposed B, bias, leaky ReLU"
        elif stages == 2:
            note = " double-buffered"
        expected = matmul.reference(a, b, **extra)
        c = np.empty((m, n), np.int32 if dtype == "int8" else a.dtype)
        converted = extra | ({"bias": to(extra["bias"])} if extra else {})
        yield Case(
            "matmul_kernel",
            f"{m}x{n}x{k}{note}",
            a,
            partial(matmul.matmul, to(a), to(b), **converted, num_stages=stages),
            expected,
            matmul.error_bound(a, b, expected, extra.get("bias")),
            matmul.least_device_bytes(a, b, c, tile, extra.get("bias")),
            matmul.least_multiplies(a, b, tile),
        )


def attention_cases(to: Convert) -> Iterator[Case]:
    choices = [(4, 512, 64, "float16", False), (4, 512, 64, "float16", True)]
    choices += [(2, 500, 128, dtype, True) for dtype in available("bfloat16")]
    for heads, n, head, dtype, causal in choices:
        q, k, v = (normal((heads, n, head), dtype, seed) for seed in range(3))
        expected = attention.reference(q, k, v, causal)
        yield Case(
            "attention_kernel",
            f"{heads}x{n}x{head}{' causal' if causal else ''}",
            q,
            partial(attention.attention, to(q), to(k), to(v), causal),
            expected,
            attention.error_bound(q, k, v, expected, causal),
            attention.least_device_bytes(q, k, causal),
            attention.least_multiplies(q, k, causal),
        )


def least_bytes_of_product(a: np.ndarray, b: np.ndarray) -> int:
    """What the tiles read and write that `ops.matmul` chooses for these matrices."""
    with counting("matmul_kernel") as counts:
        ops.matmul(a, b)
    constants = counts.kernels[0].constants
    tile = constants["BLOCK_M"], constants["BLOCK_N"], constants["BLOCK_K"]
    return matmul.least_device_bytes(a, b, np.empty((a.shape[0], b.shape[1]), a.dtype), tile)


def ops_cases(to: Convert) -> Iterator[Case]:
    """Functions of `triton_metal.ops` on inputs of the examples above."""

    def case(
        function: Callable[..., Any], kernel: str, shape: str, x: np.ndarray, run: Callable[[], Any],
        expected: np.ndarray, bound: Any, least_bytes: int | Callable[[], int],
        least_multiplies: int = 0,
    ) -> Case:  # fmt: skip
        name = f"ops.{function.__name__}"
        return Case(kernel, shape, x, run, expected, bound, least_bytes, least_multiplies, name)

    x = normal(2**20, "float32")
    expected = dropout.reference(x, 0.5, 7)
    yield case(
        ops.dropout, "dropout_kernel", f"{2**20}", x, partial(ops.dropout, to(x), 0.5, 7),
        expected, dropout.error_bound(expected, "float32"), dropout.least_device_bytes(x),
    )  # fmt: skip
    for dtype in ("float32", "float16"):
        x, weight, bias = normal((256, 1024), dtype), normal(1024, dtype, 1), normal(1024, dtype, 2)
        expected = softmax.reference(x)
        yield case(
            ops.softmax, "softmax_kernel", "256x1024", x, partial(ops.softmax, to(x)),
            expected, softmax.error_bound(x, expected), softmax.least_device_bytes(x),
        )  # fmt: skip
        expected = layer_norm.reference(x, weight, bias)
        # ops rounds once more before the product and before the sum, in the dtype of the weight.
        rounded = rounding(np.abs(expected - bias), dtype) * (2 + np.abs(weight))
        yield case(
            ops.layer_norm, "norm_row_kernel", "256x1024", x,
            partial(ops.layer_norm, to(x), to(weight), to(bias)),
            expected, layer_norm.error_bound(x, weight, bias, expected) + rounded,
            layer_norm.least_device_bytes(x, weight) - 8 * 256,  # no mean and no rstd are kept
        )  # fmt: skip
        rng = np.random.default_rng(0)
        a, b = (matmul.random_matrix(rng, (512, 512), dtype) for _ in range(2))
        expected = matmul.reference(a, b)
        yield case(
            ops.matmul, "matmul_kernel", "512x512x512", a, partial(ops.matmul, to(a), to(b)),
            expected, matmul.error_bound(a, b, expected),
            partial(least_bytes_of_product, a, b), matmul.least_multiplies(a, b, (8, 8, 8)),
        )  # fmt: skip
    q, k, v = (normal((4, 512, 64), "float16", seed) for seed in range(3))
    for causal in (False, True):
        expected = attention.reference(q, k, v, causal)
        yield case(
            ops.attention, "attention_kernel", f"4x512x64{' causal' if causal else ''}", q,
            partial(ops.attention, *(to(each[None]) for each in (q, k, v)), causal=causal),
            expected[None], attention.error_bound(q, k, v, expected, causal)[None],
            attention.least_device_bytes(q, k, causal), attention.least_multiplies(q, k, causal),
        )  # fmt: skip


def cases(to: Convert = lambda array: array) -> Iterator[Case]:
    """Every kernel with its inputs, which ``to`` makes arrays of another kind of."""
    yield from elementwise_cases(to)
    yield from softmax_cases(to)
    yield from layer_norm_cases(to)
    yield from matmul_cases(to)
    yield from attention_cases(to)
    yield from ops_cases(to)


def measure(case: Case, out: Path) -> dict[str, Any]:
    """Runs a case: once to compile, once to count and compare, and then for the time."""
    start = time.perf_counter()
    case.run()
    first = time.perf_counter() - start
    with counting(case.kernel) as counts:
        result = case.run()
    times = []
    while len(times) < 3 or (sum(times) < 0.2 and len(times) < 50):
        start = time.perf_counter()
        case.run()
        times.append(time.perf_counter() - start)
    run = statistics.median(times)
    error, bound = share_of_bound(np.asarray(result).astype(np.float64), case.expected, case.bound)
    text = out / f"{case.text_name}.metal"
    text.write_text(counts.kernels[0].asm["metal"])
    return record(case, counts, error, bound, compile_seconds(counts), first - run, run, text)


def compile_seconds(counts: Counts) -> float:
    """The median time from the kernel's Triton IR to its Metal text, warm."""
    kernel = counts.kernels[0]
    options = {"num_warps": kernel.metadata.num_warps, "num_stages": kernel.metadata.num_stages}
    times = []
    for _ in range(5):
        start = time.perf_counter()
        triton_metal.compile_ttir(kernel.asm["ttir"], **options)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def record(
    case: Case,
    counts: Counts,
    error: float,
    bound: float,
    compiled: float,
    built: float,
    run: float,
    text: Path,
) -> dict[str, Any]:
    """One element of out/demo.json."""
    return {
        "kernel": case.kernel,
        "name": case.name,
        "shape": case.shape,
        "dtype": dtype_name(case.inputs),
        "error": error,
        "bound": bound,
        "within_bound": error <= bound,
        "device_bytes": counts.device_bytes,
        "least_device_bytes": case.least_bytes,
        "device_bytes_ratio": counts.device_bytes / case.least_bytes,
        "simdgroup_multiplies": counts.multiplies,
        "least_simdgroup_multiplies": case.least_multiplies,
        "simdgroup_multiplies_ratio": counts.multiplies / case.least_multiplies
        if case.least_multiplies
        else None,
        "barriers": counts.barriers_per_program,
        "registers": counts.registers,
        "private_bytes": counts.private_bytes,
        "threadgroup_bytes": counts.threadgroup_bytes,
        "programs": counts.programs,
        "compile_ms": compiled * 1e3,
        "first_launch_ms": built * 1e3,
        "run_ms": run * 1e3,
        "metal": str(text.relative_to(ROOT)) if text.is_relative_to(ROOT) else str(text),
    }


def table(records: list[dict[str, Any]]) -> Any:
    """The records as a table for the terminal."""
    from rich.table import Table

    result = Table(title="Triton kernels as Metal, on the host device", title_style="bold")
    names = [
        "kernel",
        "shape",
        "dtype",
        "error",
        "bound",
        "bytes ÷ least",
        "multiplies ÷ least",
        "barriers",
    ]
    names += ["registers", "private B", "threadgroup B", "compile ms", "first launch ms", "run ms"]
    for i, name in enumerate(names):
        result.add_column(
            name, justify="left" if i < 3 else "right", overflow="fold", no_wrap=i == 0
        )
    for r in records:
        ratio = r["simdgroup_multiplies_ratio"]
        style = "" if r["within_bound"] else "bold red"
        result.add_row(
            r["name"].removesuffix("_kernel"),
            r["shape"],
            r["dtype"],
            f"{r['error']:.2g}",
            f"{r['bound']:.2g}",
            f"{r['device_bytes_ratio']:.2f}",
            "-" if ratio is None else f"{ratio:.2f}",
            f"{r['barriers']:g}",
            str(r["registers"]),
            str(r["private_bytes"]),
            str(r["threadgroup_bytes"]),
            f"{r['compile_ms']:.1f}",
            f"{r['first_launch_ms']:.0f}",
            f"{r['run_ms']:.2f}",
            style=style,
        )
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--out", type=Path, default=ROOT / "out", help="where the texts and demo.json go (out/)"
    )
    parser.add_argument(
        "--only",
        default="",
        help="only rows whose kernel's or function's name has this in it; no digits",
    )
    arguments = parser.parse_args()
    out = arguments.out.resolve()
    out.mkdir(parents=True, exist_ok=True)

    from rich.console import Console
    from rich.progress import track

    console = Console(width=None if sys.stdout.isatty() else 170)
    chosen = [case for case in cases() if arguments.only in case.name]
    records = [
        measure(case, out)
        for case in track(
            chosen, description="kernels", console=console, disable=not sys.stdout.isatty()
        )
    ]
    console.print(table(records))

    failed = [f"{r['name']} {r['shape']} {r['dtype']}" for r in records if not r["within_bound"]]
    if not arguments.only:
        import digits

        accuracy, seconds = digits.train_with_progress()
        console.print(f"digits: {accuracy:.1%} of the held-out images are right, {seconds:.1f} s")
        records.append(
            {
                "kernel": "digits",
                "name": "digits",
                "accuracy": accuracy,
                "least_accuracy": 0.96,
                "seconds": seconds,
            }
        )
        if accuracy < 0.96:
            failed.append("digits")
    (out / "demo.json").write_text(json.dumps(records, indent=2) + "\n")
    console.print(
        f"The Metal text of each kernel is in {out}/*.metal, the table in {out / 'demo.json'}."
    )
    if failed:
        sys.exit("Not within its bound: " + "; ".join(failed))


if __name__ == "__main__":
    # A cache of its own, so that the milliseconds of compiling are those of compiling. Kernels that are optimised in the
    # background may still write to it at the end.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as cache:
        os.environ.setdefault("TRITON_METAL_CACHE_DIR", cache)
        main()
