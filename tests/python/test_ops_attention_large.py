"""Attention of scores that float32 has in steps of 16 and more, up to its largest number: finite, and right.

Keys are multiples of one vector, two of each, so that the highest score is that of two equal keys whatever is rounded, and all others
are so far below it that they weigh nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton_metal.ops as ops

from attention_exact import Exact, exact_attention
from ops_support import assert_near, gradients, made, rounded

NAMES = ("q", "k", "v")
#: log2 of the largest score to base 2, and the dtypes whose products reach it.
SIZES = [
    *((size, dtype) for size in (10, 20, 24, 27, 27.9, 28, 31, 34) for dtype in ("float16", "bfloat16", "float32")),
    *((size, dtype) for size in (50, 100, 126.9) for dtype in ("bfloat16", "float32")),
]  # fmt: skip
WIDTH, KEYS = 64, 70


def operands(
    size: float, dtype: str, queries: int, scale: float, heads: int = 2, seed: int = 0
) -> tuple[np.ndarray, ...]:
    """q, k, v and the gradient of the result, where the largest score is ±2^size, half of the queries' being negative."""
    rng = np.random.default_rng(seed)
    base = rng.uniform(1, 2, WIDTH)
    k = rng.permutation(np.repeat(np.arange(1, KEYS // 2 + 1), 2))[None, None, :, None] * base
    q = rng.uniform(1, 2, (1, heads, queries, WIDTH)) * rng.choice([-1, 1], (1, heads, queries, 1))
    top = np.abs(q @ np.swapaxes(k, -1, -2)).max()
    # The products, without the scale, are numbers of float32 too.
    times = 2.0 ** min(size, 127.9 + np.log2(abs(scale) * np.log2(np.e))) / (
        top * abs(scale) * np.log2(np.e)
    )
    # Halves reach the largest products only if both factors are large.
    k_times = 2.0 ** min(np.log2(times) / 2, 9.5)
    k = np.broadcast_to(k * k_times, (1, heads, KEYS, WIDTH))
    v = rng.standard_normal((1, heads, KEYS, WIDTH))
    # The gradients of k are products with q: they are to be numbers of the dtype.
    weights = rng.standard_normal(q.shape) / 64
    return tuple(rounded(x, dtype) for x in (q * (times / k_times), k, v, weights))


def exact_of(arrays: tuple[np.ndarray, ...], dtype: str, **options: Any) -> Exact:
    exact = exact_attention(*arrays, dtype, exact_scores=True, **options)
    assert np.isfinite(exact.out).all()
    return exact


@pytest.mark.parametrize("scale", [0.125, 0.7, -0.125])
@pytest.mark.parametrize(("size", "dtype"), SIZES)
def test_large_scores(size: float, dtype: str, scale: float) -> None:
    arrays = operands(size, dtype, 40, scale)
    exact = exact_of(arrays, dtype, scale=scale)
    given = [made("numpy", x, dtype) for x in arrays[:3]]
    assert_near(ops.attention(*given, scale=scale), exact.out, exact.out_bound, dtype)
    assert_near(ops.attention_decode(*given, scale=scale), exact.out, exact.out_bound, dtype)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("size", [28, 33])
@pytest.mark.parametrize("hidden", ["causal", "window", "mask", "bias", "lengths"])
def test_large_scores_where_keys_are_hidden(hidden: str, size: int, dtype: str) -> None:
    arrays = operands(size, dtype, 40, 0.125)
    bias = np.zeros((40, KEYS))
    bias[:, ::3] = -np.inf
    mask = np.random.default_rng(1).random((40, KEYS)) < 0.5
    options: dict[str, Any] = {
        "causal": {"causal": True}, "window": {"window": (9, 3)}, "mask": {"mask": mask},
        "bias": {"bias": bias}, "lengths": {"lengths": [50]},
    }[hidden]  # fmt: skip
    exact = exact_of(arrays, dtype, **options)
    given = [made("numpy", x, dtype) for x in arrays[:3]]
    if "lengths" in options:
        options = {"lengths": np.array([50])}
    if "bias" in options:
        options = {"bias": bias.astype(np.float32)}
    assert_near(ops.attention(*given, **options), exact.out, exact.out_bound, dtype)
    assert_near(ops.attention_decode(*given, **options), exact.out, exact.out_bound, dtype)


@pytest.mark.parametrize("queries", [3, 40])
@pytest.mark.parametrize("scale", [0.125, -0.125])
@pytest.mark.parametrize(
    ("size", "dtype"), [(20, "float16"), (28, "float16"), (33, "float16"), (33, "bfloat16"), (28, "float32"), (100, "float32")]
)  # fmt: skip
def test_gradients_of_large_scores(size: int, dtype: str, scale: float, queries: int) -> None:
    pytest.importorskip("torch")
    # Scores of few queries are added up in another order by the kernels that have no gradient.
    arrays = operands(size, dtype, queries, scale)
    exact = exact_of(arrays, dtype, scale=scale)
    given = [made("torch", x, dtype) for x in arrays[:3]]
    found = gradients("torch", lambda *x: ops.attention(*x, scale=scale), given, arrays[3])
    for name, gradient in zip(NAMES, found, strict=True):
        assert_near(gradient, exact.grads[name], exact.bounds[name], dtype)


def test_gradient_of_a_bias_beside_large_scores() -> None:
    pytest.importorskip("torch")
    arrays = operands(29, "float32", 40, 0.125)
    bias = np.zeros((1, 2, 40, KEYS))
    exact = exact_of(arrays, "float32", bias=bias)
    given = [made("torch", x, "float32") for x in (*arrays[:3], bias)]
    function = lambda q, k, v, b: ops.attention(q, k, v, bias=b)  # noqa: E731
    found = gradients("torch", function, given, arrays[3])
    for name, gradient in zip((*NAMES, "bias"), found, strict=True):
        assert_near(gradient, exact.grads[name], exact.bounds[name], "float32")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_packed_and_paged_large_scores(dtype: str) -> None:
    arrays = operands(31, dtype, 40, 0.125)
    exact = exact_of(arrays, dtype)
    given = [made("numpy", x, dtype) for x in arrays[:3]]
    packed = [np.ascontiguousarray(x[0].swapaxes(0, 1)) for x in given]
    found = ops.attention_varlen(*packed, np.array([0, 40]), np.array([0, KEYS]))
    assert_near(found.swapaxes(0, 1)[None], exact.out, exact.out_bound, dtype)
    pages = [np.ascontiguousarray(x.reshape(7, 10, *x.shape[1:])) for x in packed[1:]]
    found = ops.paged_attention(given[0], *pages, np.arange(7)[None], np.array([KEYS]))
    assert_near(found, exact.out, exact.out_bound, dtype)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_the_largest_halves(dtype: str) -> None:
    """All of q is the largest number of its dtype, and k the largest with which products are float32s."""
    largest = 65_504.0 if dtype == "float16" else float.fromhex("0x1.fep+127")
    _, k, v, weights = operands(0, dtype, 40, 1.0)
    k = rounded(k / k.max() * (largest if dtype == "float16" else 2.0**-8), dtype)
    q = np.full((1, 2, 40, WIDTH), largest)
    for sign in (1.0, -1.0):
        arrays = (sign * q, k, v, weights)
        exact = exact_of(arrays, dtype, scale=0.5)
        given = [made("numpy", x, dtype) for x in arrays[:3]]
        for function in (ops.attention, ops.attention_decode):
            assert_near(function(*given, scale=0.5), exact.out, exact.out_bound, dtype)


def test_scores_grow_past_the_largest_step_in_one_row() -> None:
    """The highest score of a row is below 2^28 at first and above it later, or negative, and then another factor multiplies it."""
    rng = np.random.default_rng(3)
    for sign in (1, -1):
        for order in (1, -1):
            sizes = sign * 2.0 ** np.linspace(20, 36, KEYS)[::order]
            k = np.zeros((1, 1, KEYS, 16))
            k[..., 0] = sizes
            q = np.ones((1, 1, 40, 16))
            v = rng.standard_normal(k.shape)
            arrays = tuple(rounded(x, "float32") for x in (q, k, v, q))
            exact = exact_of(arrays, "float32", scale=0.7)
            given = [made("numpy", x, "float32") for x in arrays[:3]]
            assert_near(ops.attention(*given, scale=0.7), exact.out, exact.out_bound, "float32")


@pytest.mark.parametrize("function", [ops.attention, ops.attention_decode])
@pytest.mark.parametrize("size", [10, 14, 16])
def test_different_keys_with_equal_products_weigh_the_same(function: Any, size: int) -> None:
    """Their products are equal numbers of float32, and so must the scores be: a scale in q rounds each of its elements."""
    rng = np.random.default_rng(size)
    # Numbers of 3 and of 5 change places in the keys, which the queries tell not apart.
    of_three = rng.random(WIDTH) < 0.5
    q = np.where(of_three, 3.0, 5.0) * np.ones((1, 1, 2, 1)) * 2.0**size
    k = np.broadcast_to(rng.integers(1, 9, WIDTH), (1, 1, KEYS, WIDTH)).astype(np.float64)
    for key in range(KEYS):
        for places in (np.flatnonzero(of_three), np.flatnonzero(~of_three)):
            k[0, 0, key, places] = rng.permutation(k[0, 0, key, places])
    assert len(np.unique(q @ np.swapaxes(k, -1, -2))) == 1
    v = rng.standard_normal((1, 1, KEYS, WIDTH)).astype(np.float32)
    found = function(q.astype(np.float32), k.astype(np.float32) * np.float32(2.0**size), v)
    mean = v.astype(np.float64).mean(2, keepdims=True) * np.ones_like(q)
    assert_near(found, mean, 2.0**-20, "float32")
