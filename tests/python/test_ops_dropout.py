"""triton_metal.ops.dropout against its definition, with its gradient."""

from __future__ import annotations

import numpy as np
import pytest
import triton_metal.ops as ops
from triton_metal.errors import LaunchTypeError, LaunchValueError

from _bounds import FLOAT32
from dropout import philox
from ops_support import FLOATS, FRAMEWORKS, assert_near, gradients, made, numbers, rounded

SEED = 2**40 + 12345


def exact(x: np.ndarray, p: float, seed: int) -> np.ndarray:
    words = np.stack(philox(seed, np.arange(-(-x.size // 4))), 1).reshape(-1)[: x.size]
    keep = (words >> np.uint32(8)) >= p * 2**24
    return np.where(keep.reshape(x.shape), x / (1 - p) if p < 1 else 0.0, 0.0)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_forward_and_gradient(framework: str, dtype: str) -> None:
    rng = np.random.default_rng(1)
    x, dy = (rounded(rng.standard_normal((3, 347)), dtype) for _ in range(2))
    y = exact(x, 0.25, SEED)
    function = lambda a: ops.dropout(a, 0.25, SEED)  # noqa: E731
    assert_near(function(made(framework, x, dtype)), y, 3 * FLOAT32 * np.abs(y), dtype)
    if framework != "numpy":
        dx = exact(dy, 0.25, SEED)
        (found,) = gradients(framework, function, [made(framework, x, dtype)], dy)
        assert_near(found, dx, 3 * FLOAT32 * np.abs(dx), dtype)


@pytest.mark.parametrize("seed", [0, 1, 2, 2**31 - 1, 2**31, 2**32 + 1, 2**63 - 1])
def test_seeds(seed: int) -> None:
    x = np.ones(1500, np.float32)
    y = exact(x.astype(np.float64), 0.5, seed)
    assert_near(ops.dropout(x, 0.5, seed), y, 0.0, "float32")


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_seed_of_an_array(framework: str, dtype: str) -> None:
    seed = {"int8": 100, "int32": 2**31 - 1, "uint32": 2**32 - 2}.get(dtype, SEED)
    x = np.ones(1500)
    for shape in ((), (1,)):
        given = made(framework, np.full(shape, seed), dtype)
        found = ops.dropout(made(framework, x, "float32"), 0.5, given)
        assert_near(found, exact(x, 0.5, seed), 0.0, "float32")


@pytest.mark.parametrize("shape", [(), (1,), (0,), (2, 0), (1023,), (1024,), (1025,), (2, 3, 5)])
def test_shapes(shape: tuple) -> None:
    x = np.asarray(np.random.default_rng(2).standard_normal(shape), np.float32)
    y = exact(x.astype(np.float64), 0.3, 9)
    assert_near(ops.dropout(x, 0.3, 9), y, 3 * FLOAT32 * np.abs(y), "float32")


def test_probabilities_of_nothing_and_everything() -> None:
    x = np.array([1.5, -0.0, np.inf, np.nan], np.float32)
    kept = ops.dropout(x, 0, 7)
    assert np.array_equal(kept, x, equal_nan=True)
    assert kept is not x
    assert np.array_equal(ops.dropout(x, 1.0, 7), np.zeros(4, np.float32))


def test_share_of_dropped_elements() -> None:
    dropped = (ops.dropout(np.ones(40_000, np.float32), 0.1, 5) == 0).sum()
    assert abs(dropped - 4000) < 5 * (40_000 * 0.1 * 0.9) ** 0.5


def test_views_are_read_in_their_order() -> None:
    x = np.random.default_rng(3).standard_normal((20, 30)).astype(np.float32)
    for view in (x.T, x[::2, 1::3], x[::-1]):
        assert np.array_equal(ops.dropout(view, 0.5, 1), ops.dropout(view.copy(), 0.5, 1))


@pytest.mark.own_route
def test_compiled_by_torch_for_changing_seeds() -> None:
    torch = pytest.importorskip("torch")
    x = np.ones((3, 40))
    traced = []

    def backend(graph, _inputs):
        traced.append(graph)
        return graph.forward

    compiled = torch.compile(
        lambda a, s: ops.dropout(a, 0.5, s) * 1.0, fullgraph=True, backend=backend
    )
    for seed in (3, 5, 8, 13, 21):
        arrays = [made("torch", x, "float32")]
        (dx,) = gradients("torch", lambda a: compiled(a, seed), arrays, x)
        assert_near(dx, exact(x, 0.5, seed), 0.0, "float32")
    assert len(traced) <= 2


@pytest.mark.own_route
def test_compiled_by_mlx() -> None:
    mx = pytest.importorskip("mlx.core")
    x = np.ones((3, 40))
    step = mx.compile(mx.grad(lambda a, seed: ops.dropout(a, 0.5, seed).sum()))
    for seed in (3, 2**40):
        dx = step(made("mlx", x, "float32"), mx.array(seed))
        assert_near(dx, exact(x, 0.5, seed), 0.0, "float32")
    step = mx.compile(mx.value_and_grad(lambda a: ops.dropout(a, 0.5, 4).sum()))
    total, dx = step(made("mlx", x, "float32"))
    assert_near(dx, exact(x, 0.5, 4), 0.0, "float32")
    assert numbers(total) == exact(x, 0.5, 4).sum()


X = np.zeros(3, np.float32)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ops.dropout(X.astype(np.int32), 0.5, 1), LaunchValueError, r"\[dropout\] x must have dtype float16, bfloat16 or float32 but has dtype int32"),
        (lambda: ops.dropout(X, 1.5, 1), LaunchValueError, r"p must be at least 0 and at most 1 but is 1.5"),
        (lambda: ops.dropout(X, float("nan"), 1), LaunchValueError, r"p must be at least 0"),
        (lambda: ops.dropout(X, 0.5, -1), LaunchValueError, r"seed must be from 0 to 2\*\*63 - 1 but is -1"),
        (lambda: ops.dropout(X, 0.5, 2**63), LaunchValueError, r"seed must be from 0 to 2\*\*63 - 1"),
        (lambda: ops.dropout(X, 0.5, 0.5), LaunchTypeError, r"seed must be an integer but is 0.5"),
        (lambda: ops.dropout(X, 0.5, np.zeros(2, np.int32)), LaunchValueError, r"seed must have shape \(\) or \(1,\) but has shape \(2,\)"),
        (lambda: ops.dropout(X, 0.5, X[:1]), LaunchValueError, r"seed must have dtype int8, .* or uint64 but has dtype float32"),
        (lambda: ops.dropout([0.0], 0.5, 1), LaunchTypeError, r"x must be an array"),
    ],
)  # fmt: skip
def test_bad_arguments(call, error, message) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("more", [0.0, 0.3, 0.5, 0.7])
def test_a_word_is_kept_if_it_is_at_least_p(more: float) -> None:
    """Of a probability between two words the upper one is the least that is kept."""
    x = np.ones(1500, np.float32)
    words = np.stack(philox(SEED, np.arange(375)), 1).reshape(-1) >> np.uint32(8)
    p = (int(words[700]) + more) / 2**24
    y = ops.dropout(x, p, SEED)
    assert (y[700] != 0) == (more == 0)
    assert_near(y, exact(x, p, SEED), 3 * FLOAT32 * np.abs(exact(x, p, SEED)), "float32")


def test_a_seed_at_any_address() -> None:
    memory = np.zeros(9, np.uint8)
    seed = np.frombuffer(memory.data, np.int64, 1, offset=1)
    seed[0] = SEED
    x = np.ones(1500, np.float32)
    assert np.array_equal(ops.dropout(x, 0.5, seed), ops.dropout(x, 0.5, SEED))
