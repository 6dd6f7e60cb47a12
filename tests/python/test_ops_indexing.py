"""triton_metal.ops' functions of indices against NumPy, with their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton_metal.ops as ops
from triton_metal.errors import LaunchTypeError, LaunchValueError

from ops_support import FLOATS, FRAMEWORKS, assert_near, gradients, made, numbers, rounded

EPS = 2.0**-24


def added(
    x: np.ndarray, indices: np.ndarray, updates: np.ndarray, axis: int, along: bool
) -> np.ndarray:
    y = x.copy()
    if along:
        places = list(np.indices(indices.shape))
        places[axis] = indices
        np.add.at(y, tuple(places), updates)
    else:
        np.add.at(y, (slice(None),) * (axis % x.ndim) + (indices,), updates)
    return y


@pytest.mark.parametrize(
    ("shape", "indices", "axis"),
    [
        ((5, 7), (4,), 0), ((5, 7), (2, 3), 1), ((3, 4, 5), (6,), -2), ((9,), (), 0), ((300, 2), (1500,), 0), ((4, 3), (0,), 1),
        ((0, 3), (2,), 1), ((6, 700), (9,), 0),
    ],
)  # fmt: skip
def test_slices(shape: tuple, indices: tuple, axis: int) -> None:
    rng = np.random.default_rng(1)
    x = rng.integers(-9, 9, shape).astype(np.float32)
    at = rng.integers(-shape[axis], shape[axis], indices)
    y = np.take(x, at, axis)
    np.testing.assert_array_equal(ops.take(x, at, axis), y)
    updates = rng.integers(-9, 9, y.shape).astype(np.float32)
    np.testing.assert_array_equal(
        ops.index_add(x, at, updates, axis), added(x, at, updates, axis, False)
    )


@pytest.mark.parametrize(
    ("shape", "count", "axis"),
    [((5, 7), 4, 1), ((5, 7), 9, 0), ((3, 4, 5), 6, 1), ((9,), 1, 0), ((2, 5), 2500, 1), ((4, 3), 0, 0), ((0, 3), 2, 1)],
)  # fmt: skip
def test_along_an_axis(shape: tuple, count: int, axis: int) -> None:
    rng = np.random.default_rng(2)
    x = rng.integers(-9, 9, shape).astype(np.float32)
    sizes = tuple(count if a == axis else n for a, n in enumerate(shape))
    at = rng.integers(-shape[axis], shape[axis], sizes)
    np.testing.assert_array_equal(ops.take_along_axis(x, at, axis), np.take_along_axis(x, at, axis))
    np.testing.assert_array_equal(ops.gather(x, at, axis), np.take_along_axis(x, at, axis))
    updates = rng.integers(-9, 9, sizes).astype(np.float32)
    right = added(x, at, updates, axis, True)
    np.testing.assert_array_equal(ops.scatter_add(x, at, updates, axis), right)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("along", [False, True])
def test_dtypes_and_gradients(along: bool, framework: str, dtype: str) -> None:
    rng = np.random.default_rng(3)
    x = rounded(rng.standard_normal((5, 6)), dtype)
    at = rng.integers(-5, 5, (8, 6) if along else 8).astype(np.int32)
    updates = rounded(rng.standard_normal((8, 6)), dtype)
    take, add = (ops.take_along_axis, ops.scatter_add) if along else (ops.take, ops.index_add)
    own, where, new = (
        made(framework, x, dtype),
        made(framework, at, "int32"),
        made(framework, updates, dtype),
    )
    y = np.take_along_axis(x, at, 0) if along else x[at]
    assert_near(take(own, where, 0), y, 0, dtype)
    size = added(np.abs(x), at, np.abs(updates), 0, along)
    total = added(x, at, updates, 0, along)
    assert_near(add(own, where, new, 0), total, 9 * EPS * size, dtype)
    if framework == "numpy":
        return
    [dx] = gradients(framework, lambda a: take(a, where, 0), [own], updates)
    right = added(np.zeros_like(x), at, updates, 0, along)
    assert_near(dx, right, 9 * EPS * size, dtype)
    weights = rounded(rng.standard_normal((5, 6)), dtype)
    dx, du = gradients(framework, lambda a, b: add(a, where, b, 0), [own, new], weights)
    assert_near(dx, weights, 0, dtype)
    assert_near(du, np.take_along_axis(weights, at, 0) if along else weights[at], 0, dtype)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_integers_and_indices_out_of_range(framework: str) -> None:
    x = np.array([10, 20, 30])
    at = np.array([3, -4, 1, 1, 100, -3])
    for dtype in ("int8", "int32", "int64"):
        own = made(framework, x, dtype)
        where = made(framework, at, "int64")
        np.testing.assert_array_equal(numbers(ops.take(own, where)), [0, 0, 20, 20, 0, 10])
        found = ops.scatter_add(own, where, made(framework, [1, 2, 3, 4, 5, 6], dtype))
        np.testing.assert_array_equal(numbers(found), [16, 27, 30])
        assert str(found.dtype).endswith(dtype)


def test_the_largest_indices_of_64_bits_are_out_of_range() -> None:
    x, updates = np.ones(3, np.float32), np.array([1, 2, 4], np.float32)
    indices = np.array([2**64 - 1, 1, 2**63], np.uint64)
    assert ops.scatter_add(x, indices, updates).tolist() == [1, 3, 1]
    assert ops.index_add(x, indices, updates).tolist() == [1, 3, 1]
    assert ops.take(x, indices).tolist() == [0, 1, 0]


@pytest.mark.parametrize("length", [(1 << 15) - 1, 1 << 15])
def test_sums_at_indices_that_just_fit_16_bits(length: int) -> None:
    rng = np.random.default_rng(5)
    ends = np.array([length - 1, -length, length, -length - 1, 0, -1])
    at = np.concatenate([ends, rng.integers(-length, length, 300)])
    updates = rng.integers(-9, 9, (len(at), 3)).astype(np.float32)
    x = rng.integers(-9, 9, (length, 3)).astype(np.float32)
    inside = (at >= -length) & (at < length)
    expected = added(x, at[inside], updates[inside], 0, False)
    np.testing.assert_array_equal(ops.index_add(x, at, updates), expected)
    rows = ops.scatter_add(x.T.copy(), np.tile(at, (3, 1)), updates.T.copy())
    np.testing.assert_array_equal(rows, expected.T)


def test_the_order_of_additions_is_fixed() -> None:
    rng = np.random.default_rng(4)
    at, updates = rng.integers(0, 7, 3000), rng.standard_normal(3000).astype(np.float32)
    right = np.zeros(7, np.float32)
    np.add.at(right, at, updates)  # one by one, in float32
    np.testing.assert_array_equal(ops.index_add(np.zeros(7, np.float32), at, updates), right)


@pytest.mark.own_route
def test_compiled() -> None:
    torch = pytest.importorskip("torch")
    x, at = torch.randn(5, 6, requires_grad=True), torch.tensor([1, 1, 4])

    def function(x: Any) -> Any:
        taken = ops.take(x, at)
        return ops.index_add(x, at, taken).square().sum()

    y = torch.compile(function, fullgraph=True, backend="aot_eager")(x)
    assert torch.equal(y, function(x))
    assert torch.equal(torch.autograd.grad(y, x)[0], torch.autograd.grad(function(x), x)[0])


X, AT = np.zeros((2, 3), np.float32), np.zeros((2, 1), np.int64)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ops.take(X, AT, 2), LaunchValueError, r"\[take\] axis must be from -2 to 1"),
        (lambda: ops.take(X, X), LaunchValueError, r"\[take\] indices must have dtype int8, .* but has dtype float32"),
        (lambda: ops.take_along_axis(X, AT[0]), LaunchValueError, r"\[take_along_axis\] indices must have 2 dimensions but has 1"),
        (lambda: ops.gather(X, AT, 0), LaunchValueError, r"\[gather\] indices must have shape \(2, 3\), that of x but along axis 0, but has shape \(2, 1\)"),
        (lambda: ops.scatter_add(X, AT, X), LaunchValueError, r"\[scatter_add\] updates must have shape \(2, 1\), that of indices,"),
        (lambda: ops.index_add(X, AT, X), LaunchValueError, r"\[index_add\] updates must have shape \(2, 1, 3\)"),
        (lambda: ops.scatter_add(X, AT, AT), LaunchValueError, r"updates must have the dtype of x, float32, but has dtype int64"),
        (lambda: ops.take(X, [0]), LaunchTypeError, r"\[take\] indices must be an array"),
    ],
)  # fmt: skip
def test_bad_arguments(call, error, message) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("dtype", ["int8", "int16", "uint8", "uint16", "int32", "int64"])
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_an_axis_of_length_1_and_indices_of_any_width(framework: str, dtype: str) -> None:
    x = made(framework, np.arange(1, 4)[None], "float32")
    wrong = 2 if dtype.startswith("u") else -2
    places = np.array([0, wrong, 0 if dtype.startswith("u") else -1])
    indices = made(framework, places, dtype)
    rows = np.array([[1, 2, 3], [0, 0, 0], [1, 2, 3]])
    assert np.array_equal(numbers(ops.take(x, indices)), rows)
    along = made(framework, np.repeat(places[:, None], 3, 1), dtype)
    for function in (ops.take_along_axis, ops.gather):
        assert np.array_equal(numbers(function(x, along, 0)), rows)
    updates = made(framework, np.ones((3, 3)), "float32")
    for found in (ops.index_add(x, indices, updates), ops.scatter_add(x, along, updates, 0)):
        assert np.array_equal(numbers(found), [[3, 4, 5]])
    if framework != "numpy":
        weights = np.arange(3.0)[None]
        for function, at in ((ops.index_add, indices), (lambda *a: ops.scatter_add(*a, 0), along)):
            (dx,) = gradients(
                framework, lambda u, f=function, at=at: f(x, at, u), [updates], weights
            )
            assert np.array_equal(numbers(dx), [[0, 1, 2], [0, 0, 0], [0, 1, 2]])
