"""The doctor's runs on one device. They are in their own process, so that a crash of a driver ends only that process."""

from __future__ import annotations

import contextlib
import importlib
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from .. import devices
from ..errors import CompilationError
from ..launcher import Launcher

Progress = Callable[[dict[str, Any]], None]

WITHOUT_BFLOAT16 = "NumPy has no bfloat16: pip install ml_dtypes"


@contextlib.contextmanager
def compiled_kernels() -> Iterator[list[Any]]:
    """Collects the kernels that are compiled in this block."""
    kernels: list[Any] = []
    compile = Launcher.compile

    def collect(self: Launcher, *arguments: Any, **options: Any) -> Any:
        kernel = compile(self, *arguments, **options)
        kernels.append(kernel)
        return kernel

    Launcher.compile = collect  # type: ignore[method-assign]
    try:
        yield kernels
    finally:
        Launcher.compile = compile  # type: ignore[method-assign]


def failure(error: BaseException, kernels: list[Any]) -> dict[str, Any]:
    """The fields of a record for an error, with the Metal text of the kernel that caused it."""
    if isinstance(error, CompilationError) and " the target (" in error.error_message:
        # The compiler refuses what a GPU lacks; that is not a failure.
        return {"ok": True, "refused": error.error_message}
    if isinstance(error, ModuleNotFoundError) and error.name == "ml_dtypes":
        return {"ok": True, "skipped": WITHOUT_BFLOAT16}
    record: dict[str, Any] = {"ok": False, "error": f"{type(error).__name__}: {error}"}
    if kernels:
        record["metal"] = kernels[-1].asm["metal"]
    return record


def timed(
    device: devices.Device, run: Callable[[], Any], seconds: float = 0.3
) -> tuple[float, int]:
    """The median seconds of a call including its result, and the number of measurements."""
    times: list[float] = []
    while len(times) < 5 or (sum(times) < seconds and len(times) < 200):
        start = time.perf_counter()
        device.wait_for(run())
        times.append(time.perf_counter() - start)
    return statistics.median(times), len(times)


def probe(name: str, progress: Progress) -> None:
    """Runs the small kernels, and measures a launch."""
    import numpy as np

    from .kernels import axpy_kernel, probes

    device = devices.get(name)
    device.require()
    for item in probes():
        record: dict[str, Any] = {"kind": "probe", "name": item.name, "needs": item.needs}
        with compiled_kernels() as kernels:
            try:
                inputs = item.arrays()
                expected = np.asarray(item.expected(inputs), np.float64)
                arrays = [device.from_numpy(array) for array in inputs]
                start = time.perf_counter()
                item.launch(arrays)
                result = device.to_numpy(arrays[item.output]).astype(np.float64)
                record["first_ms"] = (time.perf_counter() - start) * 1e3
                error = float(np.max(np.abs(result - expected.reshape(result.shape))))
                record |= {"largest_error": error, "tolerance": item.tolerance}
                record["ok"] = bool(error <= item.tolerance)
                if not record["ok"]:
                    record["error"] = (
                        f"the result is off by {error:.3g}, and {item.tolerance:g} is allowed"
                    )
                    record["metal"] = kernels[-1].asm["metal"] if kernels else None
            except Exception as error:
                record |= failure(error, kernels)
        progress(record)
    if name == "mlx":
        probe_functional(device, progress)
    record = {"kind": "launch", "name": "launch of a cached kernel"}
    try:
        x, y = (device.from_numpy(np.ones(64, np.float32)) for _ in range(2))
        for _ in range(20):
            axpy_kernel[(1,)](x, y, 64, 0.0, BLOCK=64, num_warps=1)
        device.synchronize()
        count = 200
        start = time.perf_counter()
        for _ in range(count):
            axpy_kernel[(1,)](x, y, 64, 0.0, BLOCK=64, num_warps=1)
        device.synchronize()
        record |= {"ok": True, "us": (time.perf_counter() - start) / count * 1e6}
    except Exception as error:
        record |= failure(error, [])
    progress(record)


def probe_functional(device: devices.Device, progress: Progress) -> None:
    """Runs MLX's other route: a new output as a part of a lazy graph, also inside mx.compile."""
    import mlx.core as mx
    import numpy as np

    from ..mlx import call
    from .kernels import probes, softmax_kernel

    item = next(item for item in probes() if item.name == "softmax of rows")
    record: dict[str, Any] = {
        "kind": "probe",
        "name": "functional form, in mx.compile",
        "needs": "mx.fast.metal_kernel",
    }
    with compiled_kernels() as kernels:
        try:
            x = item.arrays()[0]
            rows, columns = x.shape

            def softmax(x: Any) -> Any:
                return call(
                    softmax_kernel, x, columns, BLOCK=1024, grid=(rows,), outputs={"y_ptr": x}
                )

            start = time.perf_counter()
            result = device.to_numpy(mx.compile(softmax)(device.from_numpy(x)))
            record["first_ms"] = (time.perf_counter() - start) * 1e3
            error = float(np.max(np.abs(result.astype(np.float64) - item.expected([x]))))
            record |= {"largest_error": error, "tolerance": item.tolerance}
            record["ok"] = bool(error <= item.tolerance)
            if not record["ok"]:
                record |= {
                    "error": f"the result is off by {error:.3g}",
                    "metal": _text(kernels, "softmax_kernel"),
                }
        except Exception as error:
            record |= failure(error, kernels)
    progress(record)


def digits(progress: Progress) -> None:
    """Runs the training example. Its kernels change views of one NumPy array, so it runs on the host device."""
    record: dict[str, Any] = {"kind": "example", "name": "digits"}
    try:
        start = time.perf_counter()
        _, accuracy = importlib.import_module("digits").train(epochs=10)
        record |= {
            "ms": (time.perf_counter() - start) * 1e3,
            "accuracy": accuracy,
            "ok": bool(accuracy >= 0.93),
        }
        if not record["ok"]:
            record["error"] = f"{accuracy:.1%} of the held-out images are right, and 93% should be"
    except ImportError:
        return  # scikit-learn, which has the images, is not installed
    except Exception as error:
        record |= failure(error, [])
    progress(record)


def examples_folder() -> Path | None:
    """The folder of the examples: in the installed package, or in a checkout."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "examples", package.parents[1] / "examples"):
        if (folder / "demo.py").exists():
            return folder
    return None


def example_names(progress: Progress) -> None:
    """Tells the name of each example once; of none where the examples are not installed."""
    folder = examples_folder()
    if folder is None:
        return
    sys.path.insert(0, str(folder))
    cases = importlib.import_module("demo").cases()
    for name in sorted({case.name for case in cases} | {"digits"}):
        progress({"kind": "example", "name": name, "ok": True})


def self_test(name: str, only: str, progress: Progress) -> None:
    """Runs every example on its inputs, with timings, and compares it with NumPy in float64."""
    import numpy as np

    device = devices.get(name)
    device.require()
    folder = examples_folder()
    if folder is None:
        progress({"kind": "example", "name": "examples", "ok": False, "error": "are not installed"})
        return
    sys.path.insert(0, str(folder))
    demo = importlib.import_module("demo")
    bounds = importlib.import_module("_bounds")
    arrays = importlib.import_module("_arrays")
    with compiled_kernels() as kernels:
        for case in demo.cases(device.from_numpy):
            if only not in case.name:
                continue
            del kernels[:]
            record: dict[str, Any] = {
                "kind": "example",
                "name": case.name,
                "shape": case.shape,
                "dtype": arrays.dtype_name(case.inputs),
            }
            try:
                start = time.perf_counter()
                result = case.run()
                device.wait_for(result)
                record["first_ms"] = (time.perf_counter() - start) * 1e3
                error, bound = bounds.share_of_bound(
                    arrays.to_float64(result), case.expected, case.bound
                )
                record |= {
                    "largest_error": float(error),
                    "tolerance": float(bound),
                    "ok": bool(error <= bound),
                }
                if not record["ok"]:
                    record["error"] = (
                        f"the result is off by {error:.3g}, and {bound:.3g} is allowed"
                    )
                    record["metal"] = _text(kernels, case.kernel)
                seconds, count = timed(device, case.run)
                record |= {"ms": seconds * 1e3, "runs": count}
                record["gb_per_s"] = case.least_bytes / seconds / 1e9
                if case.least_multiplies:
                    # One product of simdgroup matrices is 8 x 8 x 8 multiplications and additions.
                    record["gflop_per_s"] = case.least_multiplies * 1024 / seconds / 1e9
            except Exception as error:
                record |= failure(error, kernels)
            progress(record)
    if arrays.available("bfloat16") == []:
        progress(
            {"kind": "example", "name": "all in bfloat16", "ok": True, "skipped": WITHOUT_BFLOAT16}
        )
    if name == "host" and only in "digits":
        digits(progress)
    bandwidth(device, np, progress)


def bandwidth(device: devices.Device, np: Any, progress: Progress) -> None:
    """The memory benchmark: a large addition."""
    from .kernels import axpy_kernel

    n = 1 << (25 if device.name == "mps" or getattr(device, "on_gpu", bool)() else 22)
    record: dict[str, Any] = {
        "kind": "benchmark",
        "name": "y += a * x",
        "shape": f"{n}",
        "dtype": "float32",
    }
    try:
        x, y = device.from_numpy(np.ones(n, np.float32)), device.from_numpy(np.zeros(n, np.float32))

        def run() -> None:
            axpy_kernel[(n // 1024,)](x, y, n, 0.5, BLOCK=1024)

        run()
        device.synchronize()
        seconds, count = timed(device, run)
        result = device.to_numpy(y)
        expected = (count + 1) * 0.5
        record |= {
            "ok": bool((result == expected).all()),
            "ms": seconds * 1e3,
            "runs": count,
            "gb_per_s": 12 * n / seconds / 1e9,
        }
        if not record["ok"]:
            record["error"] = f"elements are {result.min()} to {result.max()} and not {expected}"
    except Exception as error:
        record |= failure(error, [])
    progress(record)


def _text(kernels: list[Any], name: str) -> str | None:
    texts = [kernel.asm["metal"] for kernel in kernels if kernel.name == name]
    return texts[-1] if texts else None
