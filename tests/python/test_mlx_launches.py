"""Launches on MLX arrays: lazy graphs, transforms, options, errors, the installation, and what they cost."""

from __future__ import annotations

import doctest
import gc
import json
import os
import re
import subprocess
import sys
import threading
import time
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl
import triton_metal.mlx
from triton_metal import _native
from triton_metal.errors import CompileError, DeviceError, LaunchTypeError, LaunchValueError

import mlx_support
from mlx_support import (
    BLOCK,
    ROOT,
    add,
    blocks,
    in_place,
    increase,
    increment,
    mx,
    only_read,
    rotate,
    same,
    sample,
)

# Fixtures: arrays in each state, and every test with both ways of a launch.
state = mlx_support.state
way = mlx_support.way
pytestmark = [
    pytest.mark.own_route,
    pytest.mark.own_check("launch_options keeps launches away from the routes"),
]


# --- lazy graphs and transforms


def test_nothing_waits(way: str) -> None:
    x = mx.ones((1 << 20,))
    mx.eval(x)
    slow = x
    for _ in range(60):
        slow = mx.sin(slow)
    start = time.perf_counter()
    increase(slow)
    launched = time.perf_counter() - start
    mx.eval(slow)
    assert launched < 0.5 * (time.perf_counter() - start)


def test_inside_compile() -> None:
    @mx.compile
    def step(x: Any, y: Any) -> Any:
        out = mx.zeros_like(x)
        add[blocks(300)](mx.exp(x), y, out, 300, BLOCK=BLOCK)
        increase(out)
        return out * 2

    for seed in range(3):
        a, b = sample(300, seed), sample(300, seed + 10)
        x, y = mx.array(a), mx.array(b)
        same(step(x, y), (np.array(mx.exp(x)) + b + 1) * 2)
        same(x, a)
        same(y, b)


def test_compiled_functions_change_no_argument() -> None:
    @mx.compile
    def step(x: Any) -> Any:
        increase(x)
        return x

    x = mx.array(sample())
    for _ in range(2):
        result = step(x)
        same(x, sample())
        same(result, sample() + 1)
    same(step(mx.array(sample(300, 4))), sample(300, 4) + 1)


def test_compile_with_state() -> None:
    state = [mx.zeros((4,))]

    def step(x: Any) -> Any:
        add[(1,)](state[0], x, state[0], 4, BLOCK=4)
        return x + 0

    compiled = mx.compile(step, inputs=state, outputs=state)
    for value in range(1, 5):
        compiled(mx.full((4,), value))
    same(state[0], [10, 10, 10, 10])


def test_a_kernel_off_the_path_of_a_gradient() -> None:
    def loss(x: Any) -> Any:
        weights = mx.zeros((300,))
        increase(weights, 2.0)
        return (x * weights).sum()

    same(mx.grad(loss)(mx.array(sample())), np.full(300, 2, np.float32))


def test_other_shapes_are_another_launch() -> None:
    def step(x: Any) -> Any:
        increase(x)
        return x

    compiled = mx.compile(step)
    for size in (4, 300, 4):
        same(compiled(mx.ones((size,))), np.full(size, 2, np.float32))
    shapeless = mx.compile(step, shapeless=True)
    with pytest.raises(ValueError, match=r"kernel increment has the grid .*shapeless=True"):
        mx.eval(shapeless(mx.ones((4,))), shapeless(mx.ones((300,))))


@pytest.mark.parametrize("transform", ["grad", "jvp", "vmap"])
def test_transforms_are_refused(transform: str) -> None:
    def launch(x: Any) -> Any:
        y = x * 1
        increment[(1,)](y, 4, 1.0, BLOCK=4)
        return y

    x = mx.ones((4,))
    apply = {
        "grad": lambda: mx.eval(mx.grad(lambda value: launch(value).sum())(x)),
        "jvp": lambda: mx.eval(mx.jvp(launch, [x], [x])),
        "vmap": lambda: mx.eval(mx.vmap(launch)(mx.ones((3, 4)))),
    }[transform]
    with pytest.raises(ValueError, match=r"triton_metal kernel increment .*mx\.custom_function"):
        apply()
    same(launch(x), [2, 2, 2, 2])


def test_a_custom_gradient() -> None:
    @mx.custom_function
    def shifted(x: Any) -> Any:
        out = mx.zeros_like(x)
        add[(1,)](x, x, out, 4, BLOCK=4)
        return out

    @shifted.vjp
    def shifted_vjp(primals: Any, cotangent: Any, output: Any) -> Any:
        out = mx.zeros_like(cotangent)
        add[(1,)](cotangent, cotangent, out, 4, BLOCK=4)
        return out

    x = mx.array([1.0, 2.0, 3.0, 4.0])
    same(mx.grad(lambda value: (shifted(value) ** 2).sum())(x), [8, 16, 24, 32])


def test_streams(state: Any) -> None:
    stream = mx.new_stream(mx.cpu)
    x = state(sample())
    with mx.stream(stream):
        y = mx.exp(x)
        increase(y)
    z = y + 1
    increase(z)
    expected = np.array(mx.exp(mx.array(sample())) + 1 + 1 + 1)
    same(z, expected)


def test_writes_on_streams_in_turn() -> None:
    streams = [mx.new_stream(mx.cpu) for _ in range(3)]
    x = mx.zeros((1 << 16,))
    for index in range(60):
        with mx.stream(streams[index % 3]):
            increase(x)
            if index % 7 == 0:
                part = x[:5] + 0
                mx.async_eval(part)
    same(x, np.full(1 << 16, 60, np.float32))
    same(part, np.full(5, 57, np.float32))


def test_a_reader_on_another_stream_sees_what_was() -> None:
    stream = mx.new_stream(mx.cpu)
    x = mx.zeros((1 << 18,))
    read = []
    for _step in range(20):
        with mx.stream(stream):
            slow = mx.sin(mx.cos(x))
            for _ in range(4):
                slow = mx.sin(slow)
            mx.async_eval(slow)
        read.append(slow)
        increase(x)
    for index, slow in enumerate(read):
        wanted = mx.sin(mx.cos(mx.array(np.full(4, index, np.float32))))
        for _ in range(4):
            wanted = mx.sin(wanted)
        assert (slow == wanted[0]).all().item()


def test_threads() -> None:
    results: dict[int, np.ndarray] = {}

    def work(index: int) -> None:
        x = mx.zeros((1000,))
        for _ in range(200):
            increase(x)
        results[index] = np.array(x)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    for values in results.values():
        np.testing.assert_array_equal(values, np.full(1000, 200, np.float32))


# --- options and errors


def test_checks_raise_at_the_call(state: Any) -> None:
    x = state(sample(100))
    with triton.launch_options(check="bounds"):
        increase(x)
        with pytest.raises(DeviceError, match="increment"):
            increment[(1,)](x, 101, 1.0, BLOCK=BLOCK)
        part = x[:10]
        with pytest.raises(DeviceError):
            increment[(1,)](part, 11, 1.0, BLOCK=BLOCK)
    # The kernel stopped; what it had written by then stays, as in a NumPy array.
    y = state(sample(100))
    with triton.launch_options(check="bounds"):
        increase(y)
    same(y, sample(100) + 1)


def test_counting(state: Any) -> None:
    x, y, out = (state(sample(256, seed)) for seed in range(3))
    with triton.launch_options(count=True) as log:
        add[(2,)](x, y, out, 256, BLOCK=BLOCK)
    arrays = [np.array(value) for value in (x, y)]
    with triton.launch_options(count=True) as expected:
        add[(2,)](arrays[0], arrays[1], np.zeros(256, np.float32), 256, BLOCK=BLOCK)
    assert log.launches[0].kernel.name == "add"
    for name in ("device_load_bytes", "device_store_bytes"):
        if name in expected.counters:
            assert log.counters[name] == expected.counters[name] > 0
    assert set(log.counters) == set(expected.counters)
    same(out, arrays[0] + arrays[1])


def test_shuffled_schedules(state: Any) -> None:
    x = state(sample(1000))
    with triton.launch_options(schedule=7):
        increase(x)
    same(x, sample(1000) + 1)


def test_options_inside_compile_are_refused() -> None:
    @mx.compile
    def step(x: Any) -> Any:
        increase(x)
        return x

    with (
        triton.launch_options(check="bounds"),
        pytest.raises(DeviceError, match=r"launch_options.*mx.compile"),
    ):
        step(mx.ones((4,)))


def test_a_launch_without_outputs(state: Any) -> None:
    x = state(sample(10))
    only_read[(1,)](x, 10, BLOCK=16)
    same(x, sample(10))


def test_mixed_frameworks_are_refused(state: Any) -> None:
    x, y = state(sample(10)), sample(10)
    with pytest.raises(
        LaunchTypeError, match=r"add: argument x is an MLX array, but argument y is a numpy.ndarray"
    ):
        add[(1,)](x, y, x, 10, BLOCK=16)
    with pytest.raises(
        LaunchTypeError, match=r"argument x is a numpy.ndarray, but argument out is an MLX array"
    ):
        add[(1,)](y, y, x, 10, BLOCK=16)
    same(x, sample(10))
    np.testing.assert_array_equal(y, sample(10))


def test_mixed_with_a_tensor_is_refused() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(LaunchTypeError, match="argument y is a Tensor"):
        add[(1,)](mx.ones((4,)), torch.ones(4), mx.ones((4,)), 4, BLOCK=4)


def test_arrays_for_numbers_are_refused() -> None:
    x = mx.ones((4,))
    with pytest.raises(LaunchTypeError, match=r"BLOCK.*constexpr.*not an array"):
        increment[(1,)](x, 4, 1.0, BLOCK=mx.array(4))

    @triton.jit
    def annotated(x, n: tl.int32):
        tl.store(x, n)

    with pytest.raises(LaunchTypeError, match="takes a number, not an array"):
        annotated[(1,)](x, mx.array(4))
    same(x, [1, 1, 1, 1])


def test_a_kernel_that_does_not_compile_changes_nothing(state: Any) -> None:
    @triton.jit
    def wrong(x):
        tl.store(x, undefined_name)  # noqa: F821

    x = state(sample(4))
    with pytest.raises(CompileError, match="undefined_name"):
        wrong[(1,)](x)
    same(x, sample(4))


def test_arguments_that_cannot_be_computed_change_nothing() -> None:
    x = mx.ones((4,))

    @mx.compile
    def traced(y: Any) -> Any:
        kept.append(y)
        return y + 1

    kept: list[Any] = []
    mx.eval(traced(mx.ones((4,))))
    # What tracing left behind has neither a value nor a way to one.
    with pytest.raises((ValueError, RuntimeError)):
        add[(1,)](kept[0], kept[0], x, 4, BLOCK=4)
    same(x, [1, 1, 1, 1])


def test_memory_that_is_not_there_changes_nothing(state: Any) -> None:
    huge = mx.broadcast_to(mx.array(1.0), (1 << 24, 1 << 24))
    mx.eval(huge)
    x, y = state(sample(8, 1)), state(sample(8, 2))
    with pytest.raises(DeviceError, match=r"^rotate: .*[Uu]nable to allocate"):
        rotate[(1,)](x, huge, y, 8, BLOCK=8)
    same(x, sample(8, 1))
    same(y, sample(8, 2))
    assert huge.shape == (1 << 24, 1 << 24)
    assert huge[5, 5].item() == 1
    rotate[(1,)](x, y, y, 8, BLOCK=8)
    same(x, sample(8, 2))


def test_grids_are_checked_first() -> None:
    x = mx.ones((4,))
    with pytest.raises(LaunchValueError):
        increment[(-1,)](x, 4, 1.0, BLOCK=4)
    same(x, [1, 1, 1, 1])


def failing_kernel() -> Any:
    """A kernel whose contract asks for more threads than a threadgroup has, which the device finds when it runs."""
    compiled = increment.warmup(mx.ones((4,)), 4, 1.0, BLOCK=BLOCK)
    metadata = dict(vars(compiled.metadata), threads=4096)
    metadata.pop("num_stages", None)
    return types.SimpleNamespace(native=_native.Kernel(compiled.asm["metal"], json.dumps(metadata)))


def words_of(count: int) -> bytes:
    return bytes(4 * count)


def test_device_errors_are_raised(way: str) -> None:
    kernel = failing_kernel()
    x = mx.ones((4,)) * 1
    arguments = [x, 4, 1.0]
    if way == "at once":
        mx.eval(x)
        with pytest.raises(DeviceError, match="thread"):
            in_place.launch(kernel, (1, 1, 1), arguments, words_of(2))
    else:
        in_place.launch(kernel, (1, 1, 1), arguments, words_of(2))
        mx.eval(x)
        with pytest.raises(DeviceError, match=r"an earlier launch failed.*thread"):
            increase(x)
        in_place.launch(kernel, (1, 1, 1), [mx.ones((4,)) * 1, 4, 1.0], words_of(2))
        with pytest.raises(DeviceError, match="thread"):
            triton_metal.mlx.synchronize()
    increase(x)  # told once
    same(x, [2, 2, 2, 2])


def test_a_device_error_that_nobody_asks_for_is_printed() -> None:
    program = """
import mlx.core as mx, sys
sys.path[:0] = ["python", "tests/python"]
import test_mlx_launches as tests
tests.in_place.native().run_at_once(False)
x = mx.ones((4,)) * 1
tests.in_place.launch(tests.failing_kernel(), (1, 1, 1), [x, 4, 1.0], tests.words_of(2))
mx.eval(x)
print("still here")
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT)
    assert run.returncode == 0, run.stderr
    assert run.stdout == "still here\n"
    assert re.search(r"triton_metal: a launch failed: increment: .*thread", run.stderr)


def test_wrong_calls_of_the_route_are_refused() -> None:
    compiled = increment.warmup(mx.ones((4,)), 4, 1.0, BLOCK=BLOCK)
    with pytest.raises(LaunchTypeError, match="arguments"):
        in_place.launch(compiled, (1, 1, 1), [mx.ones((4,))], b"")
    words = words_of(sum(1 for _ in compiled.metadata.args) - 1)
    with pytest.raises(LaunchTypeError, match=r"argument x must be an mlx.core.array"):
        in_place.launch(compiled, (1, 1, 1), [sample(4), 4, 1.0], words)


# --- the installation


def test_another_mlx_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    version = in_place.built_for()[0]
    for name, value in (("_module", None), ("_problem", None)):
        monkeypatch.setattr(in_place, name, value)
    monkeypatch.setattr(mx, "__version__", "0.99.1")
    x = mx.ones((4,))
    before = _native.set_route("mlx", in_place.launch)
    try:
        for _ in range(2):
            with pytest.raises(
                DeviceError,
                match=rf"built for MLX {version}, and MLX 0\.99\.1 is installed.*triton_metal\.mlx\.call",
            ):
                increase(x)
    finally:
        _native.set_route("mlx", before)
    same(x, [1, 1, 1, 1])


def test_other_types_of_nanobind_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("_module", None), ("_problem", None)):
        monkeypatch.setattr(in_place, name, value)
    stranger = types.SimpleNamespace(knows_arrays=False)
    monkeypatch.setattr(in_place.importlib, "import_module", lambda name: stranger)
    with pytest.raises(DeviceError, match=r"nanobind.*triton_metal\.mlx\.call"):
        in_place.native()


def test_importing_imports_neither_torch_nor_mlx() -> None:
    program = """
import sys
sys.path.insert(0, "python")
import triton_metal, triton_metal.mlx
import numpy as np
import triton_metal.language as tl
assert not {"torch", "mlx", "mlx.core"} & set(sys.modules), sorted(sys.modules)
print("ok")
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT)
    assert run.stdout == "ok\n", run.stderr


@pytest.mark.parametrize("last", ["print('leaving')", "sys.exit(0)", "raise SystemExit"])
def test_a_program_may_end_while_launches_run(last: str) -> None:
    program = f"""
import sys
sys.path[:0] = ["python", "tests/python"]
from mlx_support import *
in_place.native().run_at_once(False)
x = mx.zeros((1 << 20,))
for _ in range(100):
    increase(x)
{last}
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT)
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.parametrize("module", [triton_metal.mlx, in_place])
def test_examples_in_docstrings(module: Any) -> None:
    results = doctest.testmod(module)
    assert results.attempted > 0
    assert results.failed == 0


def test_warmup_with_dtypes_and_arrays() -> None:
    compiled = increment.warmup(mx.zeros((4,), mx.bfloat16), 4, 1.0, BLOCK=BLOCK)
    assert "bf16" in compiled.signature["x"]
    assert "bf16" in increment.warmup(mx.bfloat16, 4, 1.0, BLOCK=BLOCK).signature["x"]


# --- what launches leave behind


def resident() -> int:
    fields = Path("/proc/self/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
def test_memory_stays_flat(way: str) -> None:
    x, out = mx.ones((1024,)), mx.zeros((1024,))
    n = 200_000 if way == "at once" else 20_000
    bound = add[blocks(1024)]

    def work(count: int) -> None:
        for index in range(count):
            bound(x, out, out, 1024, BLOCK=BLOCK)
            if index % 100 == 0:
                part = out[:4]  # makes the next launch copy
                bound(x, out, out, 1024, BLOCK=BLOCK)
                del part
        mx.eval(out)

    work(n // 10)
    gc.collect()
    before, active = resident(), mx.get_active_memory()
    work(n)
    gc.collect()
    assert resident() - before < 4 << 20
    assert mx.get_active_memory() <= active + (1 << 16)


# --- Metal text that only a GPU stream runs


@pytest.mark.parametrize("width", [1, 2, 4, 8])
def test_the_copy_kernel_of_gpu_streams(tmp_path: Path, width: int) -> None:
    from metal_run import run

    source = (ROOT / "runtime/mlx/EvalGpu.cpp").read_text()
    text = source.split('R"metal(')[1].split(')metal"')[0]
    dtype = np.dtype(f"uint{8 * width}")
    base = np.arange(60).astype(dtype)
    shape, strides = (3, 4, 3), (20, 5, 2)
    expected = np.lib.stride_tricks.as_strided(base, shape, [width * stride for stride in strides])
    for rank, size, wanted in ((3, 36, expected.ravel()), (0, 50, base[:50])):
        (out,) = run(
            text,
            tmp_path,
            {
                "from": base,
                "to": np.zeros(60, dtype),
                "shape": np.array(shape, np.int32),
                "strides": np.array(strides, np.int64),
                "rank": np.array([rank], np.int32),
                "size": np.array([size], np.uint64),
            },
            ["to"],
            f"--kernel=triton_metal_copy_{width}",
            "--grid=16,4,1",
            "--group=16,1,1",
        )
        np.testing.assert_array_equal(out, np.concatenate([wanted, np.zeros(60 - size, dtype)]))
