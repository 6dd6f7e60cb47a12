"""triton_metal.ops.histogram and bincount against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import triton_metal.ops as ops
from triton_metal.errors import LaunchTypeError, LaunchValueError

from ops_support import FLOATS, FRAMEWORKS, made, numbers, rounded


@pytest.mark.parametrize("bins", [1, 7, 64, 1500])
@pytest.mark.parametrize("n", [0, 1, 1000, 30_001])
def test_sizes(n: int, bins: int) -> None:
    x = (np.random.default_rng(1).standard_normal(n) * 2).astype(np.float32)
    counts, edges = ops.histogram(x, bins, range=(-1.5, 2.25))
    np.testing.assert_array_equal(edges, np.linspace(-1.5, 2.25, bins + 1).astype(np.float32))
    np.testing.assert_array_equal(counts, np.histogram(x, edges)[0])
    at = np.random.default_rng(2).integers(-5, bins + 5, n)
    np.testing.assert_array_equal(
        ops.bincount(at, bins), np.bincount(at[(at >= 0) & (at < bins)], minlength=bins)
    )


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("dtype", [*FLOATS, "int8", "uint8", "int16"])
def test_dtypes(framework: str, dtype: str) -> None:
    x = np.random.default_rng(3).integers(0, 100, (20, 30))
    x = rounded(x / 10, dtype) if dtype in FLOATS else x
    counts, edges = ops.histogram(made(framework, x, dtype), 13, range=(0.5, 60))
    assert str(counts.dtype).endswith("int64")
    np.testing.assert_array_equal(numbers(counts), np.histogram(x, np.asarray(edges))[0])
    if dtype not in FLOATS:
        np.testing.assert_array_equal(
            numbers(ops.bincount(made(framework, x, dtype), 100)),
            np.bincount(x.ravel(), minlength=100),
        )


def test_edges_and_special_values() -> None:
    edges = np.linspace(0.1, 0.7, 31).astype(np.float32)
    x = np.concatenate([np.nextafter(edges, -np.inf), edges, np.nextafter(edges, np.inf)])
    x = np.concatenate([x, [np.nan, np.inf, -np.inf, 3e38, -3e38]]).astype(np.float32)
    counts, found = ops.histogram(x, 30, range=(0.1, 0.7))
    np.testing.assert_array_equal(found, edges)
    np.testing.assert_array_equal(counts, np.histogram(x[: 3 * 31], edges)[0])
    assert ops.bincount(np.array([-(2**62), 2**62, 3]), 5).tolist() == [0, 0, 0, 1, 0]
    assert ops.bincount(np.array([2**64 - 1, 3], np.uint64), 5).tolist() == [0, 0, 0, 1, 0]
    assert ops.bincount(np.array([1]), 0).shape == (0,)


@pytest.mark.parametrize(
    ("bins", "low", "high"),
    [
        (1000, 1, 1.00001),  # edges that are equal in float32
        (100, 1e8, 1e8 + 100),
        (7, 0, 1e-40),
        (9, -3e38, 3e38),
        (1 << 22, 0, 1),  # a float32 is not precise enough to number them
    ],
)
def test_edges_decide_where_arithmetic_is_too_coarse(bins: int, low: float, high: float) -> None:
    edges = np.linspace(low, high, bins + 1).astype(np.float32)
    rng = np.random.default_rng(4)
    x = np.concatenate([rng.choice(edges, 900), rng.uniform(low, high, 300).astype(np.float32)])
    x = np.concatenate([x, np.nextafter(x, np.float32(np.inf)), edges[[0, -1]]])
    counts, found = ops.histogram(x, bins, range=(low, high))
    assert np.array_equal(found, edges)
    assert np.array_equal(counts, np.histogram(x, edges)[0])


@pytest.mark.own_route
def test_compiled() -> None:
    torch = pytest.importorskip("torch")
    x = torch.randint(0, 9, (40,))
    compiled = torch.compile(lambda x: ops.bincount(x, 9) * 2, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(x), torch.bincount(x, minlength=9) * 2)
    y = torch.randn(50, requires_grad=True)
    function = lambda x: ops.histogram(x, 4, range=(-1, 2))  # noqa: E731
    for found, wanted in zip(
        torch.compile(function, fullgraph=True, backend="aot_eager")(y), function(y), strict=True
    ):
        assert torch.equal(found, wanted)
        assert not wanted.requires_grad


X = np.zeros((2, 3), np.float32)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ops.histogram(X, 0, range=(0, 1)), LaunchValueError, r"\[histogram\] bins must be from 1 to \d+ but is 0"),
        (lambda: ops.histogram(X, 3, range=(1, 1)), LaunchValueError, r"range must be finite and begin below its end but is \(1, 1\)"),
        (lambda: ops.histogram(X, 3, range=2), LaunchTypeError, r"range must be two numbers but is 2"),
        (lambda: ops.histogram(X.astype(np.int32), 3, range=(0, 1)), LaunchValueError, r"x must have dtype int8, .* but has dtype int32"),
        (lambda: ops.bincount(X, 3), LaunchValueError, r"\[bincount\] x must have dtype"),
        (lambda: ops.bincount(np.array([1]), 2.5), LaunchTypeError, r"length must be an integer but is 2.5"),
        (lambda: ops.bincount([1], 2), LaunchTypeError, r"x must be an array"),
    ],
)  # fmt: skip
def test_bad_arguments(call, error, message) -> None:
    with pytest.raises(error, match=message):
        call()
