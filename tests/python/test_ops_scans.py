"""triton_metal.ops' scans and arg-reductions against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.ops as ops
from triton_metal.errors import LaunchTypeError, LaunchValueError
from triton_metal.ops._arrays import dtype_name
from triton_metal.ops._choices import forced

from ops_support import (
    FLOATS,
    FRAMEWORKS,
    assert_near,
    gradients,
    made,
    numbers,
    on_frameworks,
    rounded,
)

EPS = 2.0**-24
SHAPES = (
    ((4, 33), 1),
    ((3, 5, 7), 1),
    ((70, 3), 0),
    ((1,), 0),
    ((2, 9_001), 1),
    ((40_003,), 0),
    ((5000, 2), 0),
)
EMPTY = (((0, 4), 1), ((2, 0), 1), ((2, 0, 3), -1))
INTEGERS = ("bool", "int8", "int32", "int64", "uint8", "uint64")


def scanned(kind: str, x: np.ndarray, axis: int, reverse: bool, exclusive: bool) -> np.ndarray:
    x = np.flip(x, axis) if reverse else x
    y = np.maximum.accumulate(x, axis) if kind == "cummax" else getattr(np, kind)(x, axis)
    if exclusive and x.size:
        first = np.full_like(np.take(y, [0], axis), 1 if kind == "cumprod" else 0)
        y = np.concatenate([first, np.delete(y, -1, axis)], axis)
    return np.flip(y, axis) if reverse else y


def call(kind: str, x: Any, axis: int, reverse: bool, exclusive: bool) -> Any:
    if kind == "cummax":
        return ops.cummax(x, axis, reverse)
    return getattr(ops, kind)(x, axis, reverse, exclusive)


@pytest.mark.own_route
@pytest.mark.parametrize("kind", ["cumsum", "cumprod", "cummax"])
@pytest.mark.parametrize("length", [257, 300, 511, 1024, 1025, 2500])
def test_many_rows_are_scanned_piece_by_piece(kind: str, length: int) -> None:
    """Each by one SIMD-group: both ways, with NaN, infinities and integers."""
    rng = np.random.default_rng(length)
    for dtype in (*FLOATS, "int32", "int64", "uint8"):
        x = rng.standard_normal((64, length)) / (256 if kind == "cumprod" else 1)
        x = x + 1 if kind == "cumprod" else x
        if dtype not in FLOATS:
            x = rng.integers(0, 3, (64, length)) - (dtype != "uint8")
        x = rounded(x, dtype) if dtype in FLOATS else x.astype(dtype)
        for reverse, exclusive in ((False, False), (True, False), (False, True), (True, True)):
            if kind == "cummax" and exclusive:
                continue
            with triton.launch_options(count=True) as log:
                found = call(kind, made("numpy", x, dtype), 1, reverse, exclusive)
            assert [each.kernel.name for each in log.launches] == ["scan_row_kernel"]
            wide = x.astype(np.int64) if dtype == "int64" else x
            y = scanned(kind, wide, 1, reverse, exclusive)
            if dtype not in FLOATS or kind == "cummax":
                assert np.array_equal(numbers(found) if dtype in FLOATS else found, y)
            else:
                size = scanned(kind, np.abs(x), 1, reverse, exclusive)
                steps = length + 2 if kind == "cumprod" else min(length, length / 64 + 36)
                assert_near(found, y, steps * EPS * size, dtype)
    x = rng.standard_normal((64, length)).astype(np.float32)
    x = 1 + x / 256 if kind == "cumprod" else x
    x[3, length // 2], x[4, 0], x[5, 200], x[6], x[7, -1] = (
        np.nan,
        -np.nan,
        np.inf,
        -np.inf,
        -np.nan,
    )
    for reverse in (False, True):
        y = scanned(kind, x, 1, reverse, False)
        found = call(kind, x, 1, reverse, False)
        assert np.array_equal(np.isnan(found), np.isnan(y))
        assert np.array_equal(np.isinf(found), np.isinf(y))


@pytest.mark.parametrize("kind", ["cumsum", "cumprod", "cummax"])
@pytest.mark.parametrize(("shape", "axis"), SHAPES + EMPTY)
def test_shapes(kind: str, shape: tuple, axis: int) -> None:
    rng = np.random.default_rng(1)
    x = rounded(rng.standard_normal(shape), "float32")
    if kind == "cumprod":
        x = rounded(1 + x / 1000, "float32")
    for reverse, exclusive in ((False, False), (True, True)):
        exclusive = exclusive and kind != "cummax"
        y = scanned(kind, x, axis, reverse, exclusive)
        size = {"cumprod": np.abs, "cummax": np.zeros_like}.get(
            kind,
            lambda y: scanned(kind, np.abs(x), axis, reverse, exclusive),
        )(y)
        steps = 4 + (x.shape[axis] if kind == "cumprod" else x.shape[axis] / 32 + 32)
        assert_near(
            call(kind, x.astype(np.float32), axis, reverse, exclusive),
            y,
            steps * EPS * size,
            "float32",
        )


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_dtypes_and_gradient_of_cumsum(framework: str, dtype: str) -> None:
    rng = np.random.default_rng(2)
    x, weights = (rounded(rng.standard_normal((3, 5, 7)), dtype) for _ in range(2))
    for reverse, exclusive in ((False, False), (True, False), (False, True), (True, True)):
        y = np.cumsum(np.abs(x), 1)[:, -1:]
        own = made(framework, x, dtype)
        assert_near(
            ops.cumsum(own, 1, reverse, exclusive),
            scanned("cumsum", x, 1, reverse, exclusive),
            8 * EPS * y,
            dtype,
        )
        if framework != "numpy":
            [dx] = gradients(
                framework, lambda a: ops.cumsum(a, 1, reverse, exclusive), [own], weights
            )
            right = scanned("cumsum", weights, 1, not reverse, exclusive)
            assert_near(dx, right, 8 * EPS * np.abs(weights).sum(1, keepdims=True), dtype)
    assert_near(ops.cummax(made(framework, x, dtype), 0), np.maximum.accumulate(x, 0), 0, dtype)


@pytest.mark.parametrize(("framework", "dtype"), on_frameworks(INTEGERS, ["uint64"]))
def test_integers(framework: str, dtype: str) -> None:
    x = np.random.default_rng(3).integers(0, 2 if dtype == "bool" else 100, (3, 40)).astype(dtype)
    x[:, ::3] = 0 if dtype.startswith(("u", "b")) else -x[:, ::3]
    total = "uint64" if dtype.startswith("u") and framework != "torch" else "int64"
    own = made(framework, x, dtype)
    for kind in ("cumsum", "cumprod", "cummax"):
        found = call(kind, own, 1, False, False)
        assert str(found.dtype).endswith(dtype if kind == "cummax" else total)
        np.testing.assert_array_equal(np.asarray(found), scanned(kind, x, 1, False, False))
    for kind in ("argmax", "argmin"):
        found = getattr(ops, kind)(own, 1)
        assert dtype_name(found) == ("uint32" if framework == "mlx" else "int64")
        np.testing.assert_array_equal(np.asarray(found), getattr(np, kind)(x, 1))


@pytest.mark.parametrize("kind", ["argmax", "argmin"])
@pytest.mark.parametrize(("shape", "axis"), [*SHAPES, ((3, 5, 7), None), ((0, 4), 1)])
def test_places(kind: str, shape: tuple, axis: int | None) -> None:
    x = np.random.default_rng(4).integers(-20, 20, shape).astype(np.float32)  # with many equal ones
    function, right = getattr(ops, kind), getattr(np, kind)
    np.testing.assert_array_equal(function(x, axis), right(x, axis))
    np.testing.assert_array_equal(function(x, axis, True), right(x, axis, keepdims=True))
    np.testing.assert_array_equal(function(x * np.float32(np.nan), axis), right(x * np.nan, axis))


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_places_of_every_float(framework: str, dtype: str) -> None:
    x = rounded(np.random.default_rng(5).standard_normal((4, 50)), dtype)
    x[1, 30] = x[1, 40] = np.nan
    x[2] = -np.inf
    x[3] = np.inf
    for kind in ("argmax", "argmin"):
        found = getattr(ops, kind)(made(framework, x, dtype), -1)
        np.testing.assert_array_equal(np.asarray(found), getattr(np, kind)(x, -1))


def test_special_values_and_views() -> None:
    x = np.ones((3, 5000), np.float32)
    x[0, 3000], x[1, 3000], x[1, 4000] = np.nan, np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        for kind in ("cumsum", "cumprod", "cummax"):
            np.testing.assert_array_equal(
                call(kind, x, 1, False, False), scanned(kind, x, 1, False, False)
            )
    view = x[::-1, ::7].T
    np.testing.assert_array_equal(ops.cumsum(view, 1), np.cumsum(view, 1))
    np.testing.assert_array_equal(ops.argmax(view, 0), np.argmax(view, 0))


@pytest.mark.own_route
def test_compiled() -> None:
    torch = pytest.importorskip("torch")
    x = torch.randn(4, 6, requires_grad=True)

    def function(x: Any) -> Any:
        return ops.cumsum(x, 1).sum() + ops.argmax(x, 1).sum()

    y = torch.compile(function, fullgraph=True, backend="aot_eager")(x)
    assert torch.equal(y, function(x))
    assert torch.equal(torch.autograd.grad(y, x)[0], torch.arange(6.0, 0, -1).expand(4, 6))


@pytest.mark.own_route
def test_what_has_no_gradient_says_so() -> None:
    torch = pytest.importorskip("torch")
    mx = pytest.importorskip("mlx.core")
    y = ops.cumprod(torch.ones(3, requires_grad=True))
    with pytest.raises(NotImplementedError, match="cumulative has no gradient"):
        y.sum().backward()
    with pytest.raises(ValueError, match="has no derivative"):
        mx.grad(lambda x: ops.cummax(x).sum())(mx.ones(3))


X = np.zeros((2, 3), np.float32)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ops.cumsum(X, 2), LaunchValueError, r"\[cumsum\] axis must be from -2 to 1"),
        (lambda: ops.cumprod(X.astype(np.float64)), LaunchValueError, r"\[cumprod\] x must have dtype bool, .* but has dtype float64"),
        (lambda: ops.cummax(np.zeros((), np.float32)), LaunchValueError, r"\[cummax\] x must have 1 to"),
        (lambda: ops.argmax(X[:0]), LaunchValueError, r"\[argmax\] x must have a number along axis None but has shape \(0, 3\)"),
        (lambda: ops.argmin(3.0), LaunchTypeError, r"\[argmin\] x must be an array"),
        (lambda: ops.argmin(X, 1.5), LaunchTypeError, r"\[argmin\] axis must be an integer but is 1.5"),
    ],
)  # fmt: skip
def test_bad_arguments(call, error, message) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.own_target
def test_places_of_largest_numbers_take_no_float_operation() -> None:
    """Floats are compared as integers; NaNs, and zeros of both signs, are where NumPy finds them."""
    x = np.random.default_rng(3).standard_normal((64, 1024)).astype(np.float32)
    x[3, 700:] = np.nan
    x[5] = -0.0
    x[5, 9] = 0.0
    x[6] = -np.nan
    # As in a launch of many programs; a few have several SIMD-groups, which meet at barriers.
    with triton.launch_options(count=True) as report, forced("groups", (0,)):
        largest, least = ops.argmax(x, axis=1), ops.argmin(x, axis=1)
    np.testing.assert_array_equal(largest, x.argmax(1))
    np.testing.assert_array_equal(least, x.argmin(1))
    for each in report.launches:
        counters = each.counters
        assert not any(counters[f"optimized_f32_{kind}"] for kind in ("add", "mul", "fma", "other"))
        assert counters["device_bytes_read"] == x.nbytes
        assert counters["threadgroup_barriers"] == 0


@pytest.mark.parametrize("shape", [(3, 5), (4, 1024), (2, 5000), (40_000,), (300, 40)])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_cummax_is_nan_from_a_nan_on(shape: tuple, dtype: str) -> None:
    """Also where the NaN is in an earlier block or part, or the first number is -inf."""
    rng = np.random.default_rng(5)
    for share in (0.001, 0.3):
        x = rng.standard_normal(shape).astype(dtype)
        x[rng.random(shape) < share] = np.nan
        x.flat[0] = -np.inf
        for axis in range(x.ndim):
            np.testing.assert_array_equal(ops.cummax(x, axis), np.maximum.accumulate(x, axis))
            flipped = np.flip(np.maximum.accumulate(np.flip(x, axis), axis), axis)
            np.testing.assert_array_equal(ops.cummax(x, axis, reverse=True), flipped)


@pytest.mark.own_target
@pytest.mark.parametrize("kind", ["cumsum", "cummax"])
def test_a_scan_keeps_no_numbers_beside_its_results(kind: str) -> None:
    """What is asked of the numbers, a total or whether there is a NaN, would keep them to the end: 52 and 56 registers."""
    shape = (16, 8192) if kind == "cumsum" else (32, 1024)
    x = np.random.default_rng(5).integers(-9, 9, shape).astype(np.float32)
    with triton.launch_options(count=True) as report, forced("groups", (0,)):
        y = call(kind, x, 1, False, False)
    np.testing.assert_array_equal(y, scanned(kind, x, 1, False, False))
    (launch,) = report.launches
    assert launch.counters["registers_per_thread"] <= 48


@pytest.mark.parametrize("length", [3, 256, 300, 1000])
@pytest.mark.parametrize("dtype", ["int32", "uint8"])
def test_places_of_numbers_like_those_that_are_not_there(dtype: str, length: int) -> None:
    """What lies behind a row's end is the least number for argmax and the largest for argmin, and is never found."""
    limits = np.iinfo(dtype)
    least, largest = (np.full((3, length), n, dtype) for n in (limits.min, limits.max))
    np.testing.assert_array_equal(ops.argmax(least, axis=1), [0] * 3)
    np.testing.assert_array_equal(ops.argmin(largest, axis=1), [0] * 3)
    least[:, -1] += 1
    np.testing.assert_array_equal(ops.argmax(least, axis=1), [length - 1] * 3)
