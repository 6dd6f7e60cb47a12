"""`testing.do_bench` and `assert_close`, and the names of Triton's `testing` that Metal does not have."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import time
from typing import Any

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl
from triton_metal import testing
from triton_metal.testing import bench

from kernel_support import torch_or_skip

pytestmark = pytest.mark.own_check


@triton.jit
def fill_kernel(x_ptr, value, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), value)


def wait() -> None:
    time.sleep(0.002)


@pytest.mark.parametrize("mode", ["min", "max", "mean", "median"])
def test_each_return_mode_is_one_number_in_milliseconds(mode: str) -> None:
    result = testing.do_bench(wait, warmup=1, rep=10, return_mode=mode)
    assert isinstance(result, float)
    assert 2.0 <= result < 2000


def test_all_times_and_quantiles_of_them() -> None:
    times = testing.do_bench(wait, warmup=1, rep=12, return_mode="all")
    assert 1 <= len(times) <= 6
    assert all(t >= 2 for t in times)
    low, median, high = testing.do_bench(wait, warmup=1, rep=12, quantiles=[0.2, 0.5, 0.8])
    assert 2 <= low <= median <= high
    assert isinstance(testing.do_bench(wait, warmup=1, rep=4, quantiles=[0.5]), float)


def test_quantiles_are_numpys() -> None:
    times = [5.0, 1.0, 4.0, 2.0]
    shares = [0.0, 0.1, 0.5, 0.8, 1.0]
    assert np.allclose(bench.quantiles_of(times, shares), np.quantile(times, shares))


def test_the_time_to_spend_decides_about_the_number_of_calls() -> None:
    calls: list[int] = []

    def function() -> None:
        calls.append(1)
        time.sleep(0.001)

    def count(warmup: float, rep: float) -> int:
        calls.clear()
        testing.do_bench(function, warmup, rep)
        return len(calls)

    assert count(0, 1) < count(0, 60)
    assert count(0, 1) < count(60, 1)
    assert count(0, 0) >= 1


def test_gradients_are_forgotten_before_each_call() -> None:
    torch = torch_or_skip()
    x = torch.ones(4, requires_grad=True)
    seen: list[Any] = []

    def function() -> None:
        seen.append(x.grad)
        (x * 2).sum().backward()

    testing.do_bench(function, warmup=0, rep=2, grad_to_none=[x])
    assert seen[-1] is None
    assert x.grad.tolist() == [2.0] * 4


def test_kernels_on_each_kind_of_array_are_measured() -> None:
    torch = torch_or_skip()
    for x in (np.zeros(64, np.float32), torch.zeros(64)):
        time_ms = testing.do_bench(lambda x=x: fill_kernel[(1,)](x, 1.0, BLOCK=64), 1, 2)
        assert 0 < time_ms < 2000
        assert x.sum() == 64


@pytest.mark.own_route
def test_mlx_computes_within_the_measurement() -> None:
    mx = pytest.importorskip("mlx.core")
    x = mx.zeros((64,))
    assert 0 < testing.do_bench(lambda: fill_kernel[(1,)](x, 1.0, BLOCK=64), 1, 2) < 2000
    assert mx.array_equal(x, mx.ones((64,)))
    a = mx.random.normal((256, 256))
    with mx.stream(mx.cpu):
        lazy = testing.do_bench(lambda: a @ a @ a @ a, 1, 5)
        eager = testing.do_bench(lambda: mx.eval(a @ a @ a @ a), 1, 5)
    assert lazy > eager / 4


@pytest.mark.own_route
def test_the_device_is_that_of_the_result() -> None:
    mx = pytest.importorskip("mlx.core")
    x = np.zeros(64, np.float32)
    compiled = fill_kernel[(1,)](x, 1.0, BLOCK=64)
    assert bench.device_of_result(compiled).name == "host"
    assert bench.device_of_result((None, x)).name == "host"
    assert bench.device_of_result([mx.zeros((2,))]).name == "mlx"
    compiled = fill_kernel[(1,)](mx.zeros((64,)), 1.0, BLOCK=64)
    assert bench.device_of_result(compiled).name == "mlx"
    assert bench.device_of_result(None).name == triton.devices.current().name


def test_work_on_a_gpu_is_queued_between_its_events(monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[str] = []

    class Event:
        def record(self) -> None:
            log.append("event")

        def elapsed_time(self, end: Any) -> float:
            return 0.25

    class Device:
        name = "mps"

        def on_gpu(self) -> bool:
            return True

        def event(self) -> Event:
            return Event()

        def synchronize(self) -> None:
            log.append("wait")

        def wait_for(self, value: Any) -> None:
            log.append("wait")

    monkeypatch.setattr(bench, "_flusher", lambda device: lambda: log.append("flush"))
    times = bench.times_on(Device(), lambda: log.append("work"), 0, 1e-9)
    assert times == [0.25]
    assert log[-7:] == ["wait", "wait", "flush", "event", "work", "event", "wait"]
    log.clear()
    times = bench.times_on(Device(), lambda: log.append("work"), 0, 5)
    runs = len(times)
    assert runs > 10
    # The processor runs ahead: it waits at the beginning and at the end alone.
    assert log[-4 * runs - 2 :] == ["wait", *["flush", "event", "work", "event"] * runs, "wait"]


def test_do_bench_cudagraph_measures_as_do_bench() -> None:
    assert 2 <= testing.do_bench_cudagraph(wait, rep=8) < 2000
    assert len(testing.do_bench_cudagraph(wait, rep=8, quantiles=[0.1, 0.9])) == 2


def test_the_signatures_are_tritons() -> None:
    names = ["fn", "warmup", "rep", "grad_to_none", "quantiles", "return_mode"]
    signature = inspect.signature(testing.do_bench)
    assert list(signature.parameters) == names
    defaults = [p.default for p in list(signature.parameters.values())[1:]]
    assert defaults == [25, 100, None, None, "mean"]
    names.remove("warmup")
    assert list(inspect.signature(testing.do_bench_cudagraph).parameters) == names


WRONG = {
    "no function": (lambda: testing.do_bench(3), TypeError, "a function without arguments, not 3"),
    "an unknown mode": (
        lambda: testing.do_bench(wait, return_mode="mode"),
        ValueError,
        "return_mode must be one of min, max, mean, median, all, not 'mode'",
    ),
    "a quantile above 1": (
        lambda: testing.do_bench(wait, quantiles=[0.5, 20]),
        ValueError,
        "quantiles must be from 0 to 1, not 20",
    ),
    "a negative time": (
        lambda: testing.do_bench(wait, rep=-1),
        ValueError,
        "rep must be milliseconds, 0 or more, not -1",
    ),
    "a time as text": (
        lambda: testing.do_bench(wait, warmup="1s"),
        ValueError,
        "warmup must be milliseconds",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments_are_refused(case: str) -> None:
    call, kind, message = WRONG[case]
    with pytest.raises(kind, match=message):
        call()


def test_an_error_of_the_function_is_its_own() -> None:
    with pytest.raises(ZeroDivisionError):
        testing.do_bench(lambda: 1 / 0)


# --- assert_close ----------------------------------------------------------------------------------


def variants(values: list[float]) -> list[Any]:
    torch = torch_or_skip()
    found = [values, np.array(values), np.array(values, np.float16)]
    found += [torch.tensor(values), torch.tensor(values).bfloat16(), torch.tensor(values).half()]
    try:
        import mlx.core as mx
    except ImportError:
        return found
    return [*found, mx.array(values), mx.array(values).astype(mx.bfloat16)]


def test_arrays_of_all_frameworks_are_compared() -> None:
    close, far = variants([1.0, 2.0, 4.0]), variants([1.0, 2.5, 4.0])
    for x in close:
        for y in close:
            testing.assert_close(x, y)
        for y in far:
            with pytest.raises(AssertionError):
                testing.assert_close(x, y)


def test_tolerances_are_numbers_or_functions_of_the_dtype() -> None:
    torch = torch_or_skip()
    x, y = torch.ones(3), torch.full((3,), 1.05)
    with pytest.raises(AssertionError):
        testing.assert_close(x, y)
    testing.assert_close(x, y, atol=0.1)
    testing.assert_close(x, y, atol=0, rtol=0.1)
    seen = []
    testing.assert_close(x, y, atol=lambda dtype: seen.append(dtype) or 0.1)
    assert seen == [torch.float32]


def test_shapes_gradients_and_nan() -> None:
    torch = torch_or_skip()
    with pytest.raises(AssertionError, match=r"[Ss]hape"):
        testing.assert_close(np.ones(3), np.ones(4))
    testing.assert_close(torch.ones(2, requires_grad=True), 1)
    testing.assert_close(np.array([np.nan, 1]), [float("nan"), 1])
    with pytest.raises(AssertionError):
        testing.assert_close(np.array([np.nan, 1]), [1.0, 1])
    with pytest.raises(AssertionError, match=r"norm: 1.0 is not close to 2"):
        testing.assert_close(np.float32(1), 2, err_msg="norm:")
    with pytest.raises(AssertionError, match="rows"):
        testing.assert_close([1.0, 2.0], [1.0, 3.0], err_msg="rows")
    testing.assert_close(np.zeros((0, 3)), np.zeros((0, 3)))


def test_integers_and_booleans_are_compared_exactly_enough() -> None:
    testing.assert_close(np.array([1, 2**40]), np.array([1, 2**40]))
    with pytest.raises(AssertionError):
        testing.assert_close(np.array([True, False]), np.array([True, True]))


# --- What Metal does not have ----------------------------------------------------------------------

ABSENT = {
    "nvsmi": lambda: testing.nvsmi(["clocks.current.sm"]),
    "cublas": lambda: testing.cublas(),
    "get_dram_gbps": lambda: testing.get_dram_gbps(),
    "get_max_tensorcore_tflops": lambda: testing.get_max_tensorcore_tflops("fp16", 1e6),
    "get_max_simd_tflops": lambda: testing.get_max_simd_tflops("fp32", 1e6),
    "set_gpu_clock": lambda: testing.set_gpu_clock().__enter__(),
    "cuda_graph_without_gc": lambda: testing.cuda_graph_without_gc(None).__enter__(),
    "do_bench_proton": lambda: testing.do_bench_proton(wait),
    "do_bench_cudagraph_proton": lambda: testing.do_bench_cudagraph_proton(wait),
    "cuda_memcheck": lambda: testing.cuda_memcheck(x=1)(lambda x: x)(x=1),
}


@pytest.mark.parametrize("name", ABSENT)
def test_what_asks_for_another_vendors_gpu_says_so(name: str) -> None:
    with pytest.raises(
        triton.DeviceError, match=rf"triton_metal.testing.{name} is not available: "
    ):
        ABSENT[name]()


def test_a_test_that_asks_for_no_check_runs() -> None:
    assert testing.cuda_memcheck(x=1)(lambda x: x)(x=2) == 2


def test_all_names_of_tritons_testing_are_there() -> None:
    names = """Benchmark Mark assert_close cublas cuda_graph_without_gc cuda_memcheck do_bench do_bench_cudagraph
        do_bench_cudagraph_proton do_bench_proton get_dram_gbps get_max_simd_tflops get_max_tensorcore_tflops nvsmi
        perf_report set_gpu_clock"""
    assert set(names.split()) <= set(testing.__all__)
    # A module of the package must not take the place of a function when it is imported.
    for module in pkgutil.iter_modules(testing.__path__):
        importlib.import_module(f"{testing.__name__}.{module.name}")
    assert all(callable(getattr(testing, name)) for name in testing.__all__)
