"""examples/layer_norm.py against NumPy in float64, and its counts."""

from __future__ import annotations

import numpy as np
import pytest

from kernel_support import FLOATS, assert_within, needs_counters, normal, torch_or_skip

from _counts import counting  # isort: skip
from layer_norm import (  # isort: skip
    error_bound,
    error_bound_backward,
    layer_norm,
    layer_norm_backward,
    least_device_bytes,
    least_device_bytes_backward,
    reference,
    reference_backward,
)


def inputs(n_rows: int, n_cols: int, name: str, seed: int = 0) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    x = (normal(rng, (n_rows, n_cols)) * 2 + 0.5).astype(normal(rng, 1, name).dtype)
    return (
        x,
        normal(rng, n_cols, name),
        normal(rng, n_cols, name),
        normal(rng, (n_rows, n_cols), name),
    )


@pytest.mark.parametrize("n_cols", [1, 2, 33, 128, 129, 768, 1000, 1024, 2047, 5000, 16_384])
@pytest.mark.parametrize("name", FLOATS)
def test_forward(name: str, n_cols: int) -> None:
    x, weight, bias, _ = inputs(5, n_cols, name)
    y, mean, rstd = layer_norm(x, weight, bias)
    expected = reference(x, weight, bias)
    assert_within(y, expected, error_bound(x, weight, bias, expected))
    wide = x.astype(np.float64)
    np.testing.assert_allclose(mean, wide.mean(axis=1), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(rstd, 1 / np.sqrt(wide.var(axis=1) + 1e-5), rtol=1e-3)


@pytest.mark.parametrize(
    ("n_rows", "n_cols"), [(1, 1), (3, 17), (64, 256), (65, 100), (200, 1000), (130, 2048)]
)
@pytest.mark.parametrize("name", ["float16", "float32"])
def test_backward(name: str, n_rows: int, n_cols: int) -> None:
    x, weight, bias, dy = inputs(n_rows, n_cols, name)
    _, mean, rstd = layer_norm(x, weight, bias)
    actual = layer_norm_backward(dy, x, weight, mean, rstd)
    expected = reference_backward(dy, x, weight)
    for a, e, b in zip(
        actual, expected, error_bound_backward(dy, x, weight, expected), strict=True
    ):
        assert_within(a, e, b)


def test_backward_is_the_same_every_time() -> None:
    x, weight, bias, dy = inputs(150, 300, "float32")
    _, mean, rstd = layer_norm(x, weight, bias)
    first = layer_norm_backward(dy, x, weight, mean, rstd)
    second = layer_norm_backward(dy, x, weight, mean, rstd)
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.own_check(reason="it wants the variance of equal numbers to be 0")
def test_special_values() -> None:
    x, weight, bias, _ = inputs(4, 100, "float32")
    x[0, 3] = np.nan
    x[1, 3] = np.inf
    x[2, :] = 7.0
    y, _, _ = layer_norm(x, weight, bias)
    assert np.isnan(y[0]).all()
    assert np.isnan(y[1]).all()
    np.testing.assert_array_equal(y[2], bias)


def test_rows_that_lie_apart() -> None:
    wide, weight, bias, _ = inputs(30, 700, "float32")
    x = wide[::2, 3:600]
    weight, bias = weight[:597].copy(), bias[:597].copy()
    expected = reference(x, weight, bias)
    assert_within(layer_norm(x, weight, bias)[0], expected, error_bound(x, weight, bias, expected))


def test_too_long_a_row_is_refused() -> None:
    x, weight, bias, _ = inputs(1, 16_385, "float32")
    with pytest.raises(ValueError, match="at most 16384 columns but has 16385"):
        layer_norm(x, weight, bias)


def test_torch() -> None:
    torch = torch_or_skip()
    generator = torch.Generator().manual_seed(0)
    x, weight, bias = (
        torch.randn(s, generator=generator).bfloat16() for s in ((9, 200), (200,), (200,))
    )
    expected = reference(x, weight, bias)
    assert_within(layer_norm(x, weight, bias)[0], expected, error_bound(x, weight, bias, expected))


@needs_counters
@pytest.mark.parametrize("name", FLOATS)
def test_counts(name: str) -> None:
    x, weight, bias, dy = inputs(128, 1024, name)
    with counting() as counts:
        _, mean, rstd = layer_norm(x, weight, bias)
    assert counts.device_bytes == least_device_bytes(x, weight)
    assert counts.barriers_per_program <= 2
    assert counts.private_bytes == 0
    with counting("layer_norm_backward_kernel") as counts:
        layer_norm_backward(dy, x, weight, mean, rstd)
    # Every thread reads the row's mean and rstd: 8 bytes a thread and row beside the tiles.
    least = least_device_bytes_backward(x, weight)
    # Two sums a row; rows that a program writes one after the other are ordered by the same barriers.
    assert counts.barriers == 2 * 128
    assert least <= counts.device_bytes <= least + 128 * 8 * (128 - 1)
