"""triton_metal.ops.sort, argsort and topk against NumPy, with the gradients of the values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.ops as ops
from triton_metal.errors import LaunchTypeError, LaunchValueError
from triton_metal.ops._arrays import dtype_name
from triton_metal.ops._choices import forced
from triton_metal.ops._sort import block_of, key_dtype

from ops_support import FLOATS, FRAMEWORKS, gradients, made, numbers, on_frameworks, rounded

SHAPES = (
    ((3, 5), -1), ((2, 100), 1), ((5, 3, 4), 1), ((1,), 0), ((70, 3), 0), ((2, 1500), 1), ((4999,), 0), ((0, 4), 1), ((3, 0), 1),
)  # fmt: skip


def order(x: np.ndarray, axis: int, descending: bool) -> np.ndarray:
    """A stable order; numpy.sort has NaN last, so it is first in the other direction."""
    if not descending:
        return np.argsort(x, axis, kind="stable")
    last = np.argsort(np.flip(x, axis), axis, kind="stable")
    return x.shape[axis] - 1 - np.flip(last, axis)


@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_shapes(shape: tuple, axis: int) -> None:
    x = np.random.default_rng(1).integers(-20, 20, shape).astype(np.float32)  # with many equal ones
    for descending in (False, True):
        places = order(x, axis, descending)
        values = np.take_along_axis(x, places, axis)
        np.testing.assert_array_equal(ops.argsort(x, axis, descending), places)
        np.testing.assert_array_equal(ops.sort(x, axis, descending), values)
        k = min(7, shape[axis])
        found, at = ops.topk(x, k, axis, descending)
        kept = tuple(slice(k) if a == axis % x.ndim else slice(None) for a in range(x.ndim))
        np.testing.assert_array_equal(found, values[kept])
        np.testing.assert_array_equal(at, places[kept])


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_floats_and_gradients(framework: str, dtype: str) -> None:
    rng = np.random.default_rng(2)
    x = rounded(rng.standard_normal((4, 30)), dtype)
    weights = rounded(rng.standard_normal((4, 30)), dtype)
    right = np.zeros_like(x)
    np.put_along_axis(right, order(x, 1, True), weights, 1)
    if framework != "numpy":
        [dx] = gradients(
            framework, lambda a: ops.sort(a, 1, True), [made(framework, x, dtype)], weights
        )
        np.testing.assert_array_equal(numbers(dx), right)
        right = np.zeros_like(x)
        np.put_along_axis(right, order(x, 0, False)[:2], weights[:2], 0)
        [dx] = gradients(
            framework,
            lambda a: ops.topk(a, 2, 0, False)[0],
            [made(framework, x, dtype)],
            weights[:2],
        )
        np.testing.assert_array_equal(numbers(dx), right)
    x[0, 5] = x[0, 9] = np.nan
    x[1, 3], x[1, 7] = np.inf, -np.inf
    x[2, ::2], x[2, 1::2] = 0.0, -0.0
    for descending in (False, True):
        own = made(framework, x, dtype)
        found = ops.argsort(own, 1, descending)
        assert dtype_name(found) == ("uint32" if framework == "mlx" else "int64")
        places = order(x, 1, descending)
        np.testing.assert_array_equal(np.asarray(found)[1:], places[1:])
        values = numbers(ops.sort(own, 1, descending))
        np.testing.assert_array_equal(values, np.take_along_axis(x, places, 1))
        zeros = np.signbit(values[2])
        np.testing.assert_array_equal(zeros, np.sort(zeros) if descending else np.sort(zeros)[::-1])
        kept = numbers(ops.topk(own, 30, 1, descending)[0])[2]
        np.testing.assert_array_equal(np.signbit(kept), np.signbit(x[2]))  # stable for zeros
        np.testing.assert_array_equal(
            np.asarray(found)[0, :2] if descending else np.asarray(found)[0, -2:], [5, 9]
        )


@pytest.mark.parametrize(
    ("framework", "dtype"), on_frameworks(["bool", "int8", "int32", "uint8", "uint32"], ["uint32"])
)
def test_integers(framework: str, dtype: str) -> None:
    rng = np.random.default_rng(3)
    low, high = (0, 2) if dtype == "bool" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    x = rng.integers(low, high, (3, 50)).astype(dtype)
    x[:, 3], x[:, 4] = low, high
    own = made(framework, x, dtype)
    np.testing.assert_array_equal(np.asarray(ops.sort(own)), np.sort(x))
    np.testing.assert_array_equal(np.asarray(ops.topk(own, 5)[1]), order(x, 1, True)[:, :5])


@pytest.mark.parametrize("dtype", ["float16", "int8", "float32"])
@pytest.mark.parametrize("length", [4097, 9000])
def test_rows_of_several_blocks(length: int, dtype: str) -> None:
    """Runs are merged by pairs, of which the last may be short or alone; many elements are equal."""
    rng = np.random.default_rng(length)
    x = rng.integers(-90, 90, (2, length)).astype(dtype)
    if dtype == "float16":
        x[:, ::50] = np.nan
    for descending in (False, True):
        places = order(x, 1, descending)
        if dtype != "float16":
            np.testing.assert_array_equal(ops.argsort(x, 1, descending), places)
        values = np.take_along_axis(x, places, 1)
        np.testing.assert_array_equal(ops.sort(x, 1, descending), values)
        for k in (1, 50, length // 2 + 1):
            found, at = ops.topk(x, k, 1, descending)
            np.testing.assert_array_equal(found, values[:, :k])
            np.testing.assert_array_equal(np.take_along_axis(x, at, 1), values[:, :k])


def test_keys_are_as_short_as_they_may_be() -> None:
    assert [key_dtype(t, 5000, False) for t in ("bool", "float16", "int32")] == [
        "uint8", "uint16", "uint32",
    ]  # fmt: skip
    assert [key_dtype("int16", n, True) for n in (32768, 32769)] == ["uint32", "uint64"]
    assert key_dtype("float32", 3, True) == "uint64"
    x = np.arange(32768)[None, ::-1].astype(np.int16)
    np.testing.assert_array_equal(ops.argsort(x), np.arange(32768)[None, ::-1])


@pytest.mark.parametrize("itemsize", [1, 4, 8])
def test_blocks_of_rows_fit_a_threadgroup(itemsize: int) -> None:
    for length in (1, 2, 100, 2048, 4096, 4097, 5000, 8192, 100_000):
        block = block_of(length, itemsize)
        assert block * itemsize <= 16384
        assert block & (block - 1) == 0
        assert block >= length or block in (
            4096 * 4 // max(itemsize, 4),
            2048 * 4 // max(itemsize, 4),
        )


@pytest.mark.own_route
def test_compiled() -> None:
    torch = pytest.importorskip("torch")
    x = torch.randn(4, 6, requires_grad=True)

    def function(x: Any) -> Any:
        values, places = ops.topk(x, 3)
        return (values * (places + 1)).sum()

    y = torch.compile(function, fullgraph=True, backend="aot_eager")(x)
    assert torch.equal(y, function(x))
    assert torch.equal(torch.autograd.grad(y, x)[0], torch.autograd.grad(function(x), x)[0])


X = np.zeros((2, 3), np.float32)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ops.sort(X, 2), LaunchValueError, r"\[sort\] axis must be from -2 to 1"),
        (lambda: ops.sort(X.astype(np.int64)), LaunchValueError, r"\[sort\] x must have dtype bool, .* but has dtype int64"),
        (lambda: ops.argsort(np.zeros((), np.float32)), LaunchValueError, r"\[argsort\] x must have 1 to"),
        (lambda: ops.topk(X, 4), LaunchValueError, r"\[topk\] k must be from 0 to 3, as many as x has along axis 1, but is 4"),
        (lambda: ops.topk(X, 1.5), LaunchTypeError, r"\[topk\] k must be an integer but is 1.5"),
        (lambda: ops.sort([1, 2]), LaunchTypeError, r"\[sort\] x must be an array"),
    ],
)  # fmt: skip
def test_bad_arguments(call, error, message) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.own_target
@pytest.mark.parametrize("length", [2048, 4096])
def test_a_thread_sorts_eight_keys_of_32_bits(length: int) -> None:
    """With sixteen, a thread would have more than the 52 registers up to which a core holds 1,024."""
    x = np.random.default_rng(7).standard_normal((4, length)).astype(np.float32)
    with triton.launch_options(count=True) as report, forced("groups", (0,)):
        y = ops.sort(x, axis=1)
    np.testing.assert_array_equal(y, np.sort(x, 1))
    (launch,) = report.launches
    assert launch.kernel.metadata.num_warps == length // 256
    assert launch.counters["registers_per_thread"] <= 52


@pytest.mark.own_target
@pytest.mark.parametrize("length", [1024, 2048])
def test_a_core_holds_1024_threads_that_sort_places(length: int) -> None:
    """Keys of 64 bits are sorted by twice as many threads as those of 32 bits; a block of 2,048 takes 16 of 60 KB."""
    x = np.random.default_rng(8).standard_normal((2, length)).astype(np.float32)
    with triton.launch_options(count=True) as report, forced("groups", (0,)):
        places = ops.argsort(x, axis=1)
    np.testing.assert_array_equal(places, np.argsort(x, 1, kind="stable"))
    for launch in report.launches:
        memory = launch.counters["threadgroup_memory_bytes"]
        threads = 32 * launch.kernel.metadata.num_warps
        assert launch.counters["registers_per_thread"] <= 52
        assert not memory or (60 << 10) // memory * threads >= 1024
