"""triton_metal.ops.embedding against NumPy, with its gradient."""

from __future__ import annotations

import numpy as np
import pytest
import triton_metal.ops as ops
from triton_metal.errors import LaunchTypeError, LaunchValueError

from _bounds import accumulation
from ops_support import FLOATS, FRAMEWORKS, assert_near, gradients, made, numbers, rounded


def exact_gradient(dy: np.ndarray, indices: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The gradient in float64 and how far one in float32 may be off."""
    total, size = np.zeros((n, dy.shape[-1])), np.zeros((n, dy.shape[-1]))
    flat = dy.reshape(indices.size, dy.shape[-1])
    np.add.at(total, indices.reshape(-1), flat)
    np.add.at(size, indices.reshape(-1), np.abs(flat))
    return total, accumulation(size, max(1, indices.size))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize(("n", "width", "shape"), [(9, 33, (4, 7)), (3, 1, (40,)), (5, 4, ())])
def test_forward_and_gradient(n: int, width: int, shape: tuple, framework: str, dtype: str) -> None:
    rng = np.random.default_rng(1)
    weight, dy = (rounded(rng.standard_normal(s), dtype) for s in ((n, width), shape + (width,)))
    indices = np.asarray(rng.integers(0, n, shape))
    places = made(framework, indices, "int32")
    array = made(framework, weight, dtype)
    assert_near(ops.embedding(array, places), weight[indices], 0.0, dtype)
    if framework != "numpy":
        (found,) = gradients(framework, lambda w: ops.embedding(w, places), [array], dy)
        assert_near(found, *exact_gradient(dy, indices, n), dtype)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int64", "uint8", "uint16", "uint32"])
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_dtypes_of_indices(framework: str, dtype: str) -> None:
    weight = np.arange(12.0).reshape(6, 2)
    indices = np.array([[5, 0, 5], [3, 5, 1]])
    array, places = made(framework, weight, "float32"), made(framework, indices, dtype)
    assert_near(ops.embedding(array, places), weight[indices], 0.0, "float32")
    if framework != "numpy":
        dy = np.ones((2, 3, 2))
        (found,) = gradients(framework, lambda w: ops.embedding(w, places), [array], dy)
        assert_near(found, *exact_gradient(dy, indices, 6), "float32")


@pytest.mark.own_route
@pytest.mark.parametrize("framework", ["mlx", "torch"])
@pytest.mark.parametrize(
    ("n", "width", "shape"),
    [(4, 3, (0,)), (4, 0, (3,)), (0, 3, (0, 2)), (2, 300, (1000,)), (700, 1500, (3,))],
)
def test_sizes(n: int, width: int, shape: tuple, framework: str) -> None:
    rng = np.random.default_rng(2)
    weight, dy = rng.standard_normal((n, width)), rng.standard_normal(shape + (width,))
    weight, dy = rounded(weight, "float32"), rounded(dy, "float32")
    indices = rng.integers(0, max(n, 1), shape)
    places, array = made(framework, indices, "int32"), made(framework, weight, "float32")
    assert_near(ops.embedding(array, places), weight[indices], 0.0, "float32")
    (found,) = gradients(framework, lambda w: ops.embedding(w, places), [array], dy)
    assert_near(found, *exact_gradient(dy, indices, n), "float32")


@pytest.mark.own_route
def test_gradients_are_the_same_every_time() -> None:
    rng = np.random.default_rng(3)
    dy, places = rng.standard_normal((500, 20)), made("torch", rng.integers(0, 7, 500), "int64")
    found = []
    for _ in range(2):
        weight = made("torch", np.zeros((7, 20)), "float32")
        found += gradients("torch", lambda w: ops.embedding(w, places), [weight], dy)
    assert np.array_equal(numbers(found[0]), numbers(found[1]))


@pytest.mark.own_route
def test_indices_out_of_range_give_nan_where_the_host_does_not_see_them() -> None:
    mx = pytest.importorskip("mlx.core")
    weight, indices = mx.ones((3, 2)), mx.array([0, 3, -1, 2])
    found = numbers(ops.embedding(weight, indices))
    assert np.isnan(found).all(1).tolist() == [False, True, True, False]
    gradient = mx.grad(lambda w: ops.embedding(w, indices)[mx.array([0, 3])].sum())(weight)
    assert numbers(gradient).tolist() == [[1, 1], [0, 0], [1, 1]]


@pytest.mark.own_route
def test_compiled_by_torch_and_mlx() -> None:
    torch, mx = pytest.importorskip("torch"), pytest.importorskip("mlx.core")
    rng = np.random.default_rng(4)
    weight, dy = (rounded(rng.standard_normal(s), "float32") for s in ((6, 5), (3, 4, 5)))
    indices = rng.integers(0, 6, (3, 4))
    places = made("torch", indices, "int64")
    compiled = torch.compile(
        lambda w: ops.embedding(w * 1.0, places), fullgraph=True, backend="aot_eager"
    )
    (found,) = gradients("torch", compiled, [made("torch", weight, "float32")], dy)
    assert_near(found, *exact_gradient(dy, indices, 6), "float32")
    weights, places = made("mlx", dy, "float32"), made("mlx", indices, "int32")
    step = mx.compile(mx.grad(lambda w, i: (ops.embedding(w, i) * weights).sum()))
    found = step(made("mlx", weight, "float32"), places)
    assert_near(found, *exact_gradient(dy, indices, 6), "float32")


def test_special_values_and_views() -> None:
    weight = np.random.default_rng(5).standard_normal((6, 8)).astype(np.float32)
    weight[1, 2], weight[2, 3], weight[3, 3] = np.nan, np.inf, -0.0
    indices = np.arange(12)[::2] // 2
    for view in (weight, weight[::-1, ::2], np.asfortranarray(weight)):
        assert np.array_equal(ops.embedding(view, indices), view[indices], equal_nan=True)


W, INDICES = np.zeros((3, 2), np.float32), np.zeros(4, np.int32)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ops.embedding(W, W), LaunchValueError, r"\[embedding\] indices must have dtype int8, .* but has dtype float32"),
        (lambda: ops.embedding(W[0], INDICES), LaunchValueError, r"weight must have 2 dimensions but has 1: its shape is \(2,\)"),
        (lambda: ops.embedding(W.astype(np.float64), INDICES), LaunchValueError, r"weight must have dtype float16, bfloat16 or float32 but has dtype float64"),
        (lambda: ops.embedding(W, INDICES + 3), LaunchValueError, r"indices must be from 0 to 2, but is 3 at \(0,\)"),
        (lambda: ops.embedding(W, INDICES - 1), LaunchValueError, r"indices must be from 0 to 2, but is -1 at \(0,\)"),
        (lambda: ops.embedding(W[:0], INDICES), LaunchValueError, r"indices must be"),
        (lambda: ops.embedding(W, 1), LaunchTypeError, r"indices must be an array of NumPy, MLX or PyTorch but is a int"),
    ],
)  # fmt: skip
def test_bad_arguments(call, error, message) -> None:
    with pytest.raises(error, match=message):
        call()
