"""examples/softmax.py against NumPy in float64, and its counts."""

from __future__ import annotations

import numpy as np
import pytest

from kernel_support import FLOATS, assert_within, needs_counters, normal, torch_or_skip

from _counts import counting  # isort: skip
from softmax import (
    error_bound,
    least_device_bytes,
    long_softmax_kernel,
    reference,
    softmax,
    strides,
)  # isort: skip

WIDTHS = (
    1,
    2,
    3,
    31,
    32,
    33,
    127,
    129,
    781,
    1000,
    1024,
    1025,
    4096,
    4097,
    8191,
    20_000,
    32_768,
    32_769,
    65_535,
    65_536,
)


def check(x: np.ndarray) -> None:
    expected = reference(x)
    assert_within(softmax(x), expected, error_bound(x, expected))


@pytest.mark.parametrize("n_cols", WIDTHS)
def test_widths(n_cols: int) -> None:
    check(normal(np.random.default_rng(n_cols), (3, n_cols)) * 3)


@pytest.mark.parametrize("n_cols", [1, 5, 100, 1024, 1031, 32_769])
@pytest.mark.parametrize("name", FLOATS)
def test_dtypes(name: str, n_cols: int) -> None:
    check(normal(np.random.default_rng(n_cols), (2, n_cols), name))


@pytest.mark.parametrize("n_cols", [37, 1024, 32_771])
def test_special_values(n_cols: int) -> None:
    x = normal(np.random.default_rng(0), (7, n_cols))
    x[0, 5] = np.nan
    x[1, 5] = np.inf
    x[2, 5] = -np.inf
    x[3, :] = -np.inf
    x[3, n_cols // 2] = 1.0
    x[4, :] = -np.inf
    x[5, :] = 3.0e38
    x[6, ::2] = -0.0
    check(x)


@pytest.mark.own_check(reason="it wants exp(0) exactly")
def test_long_rows_of_the_last_element_only() -> None:
    x = np.full((1, 40_001), -np.inf, np.float32)
    x[0, -1] = -3.0
    expected = np.zeros((1, 40_001))
    expected[0, -1] = 1
    assert_within(softmax(x), expected, 0)


@pytest.mark.parametrize(("n_cols", "block"), [(33, 32), (257, 64), (1025, 1024), (999, 128)])
@pytest.mark.parametrize("num_warps", [1, 2, 4])
def test_the_loop_with_other_blocks(n_cols: int, block: int, num_warps: int) -> None:
    x = normal(np.random.default_rng(n_cols), (3, n_cols))
    out = np.empty_like(x)
    long_softmax_kernel[(3,)](
        out, x, strides(out)[0], strides(x)[0], n_cols, BLOCK=block, num_warps=num_warps
    )
    expected = reference(x)
    assert_within(out, expected, error_bound(x, expected))


def test_rows_that_lie_apart() -> None:
    wide = normal(np.random.default_rng(1), (40, 3000))
    check(wide[1:40:3, 7:1500])


def test_torch() -> None:
    torch = torch_or_skip()
    x = torch.randn(5, 333, generator=torch.Generator().manual_seed(0)).to(torch.bfloat16)
    out, expected = softmax(x), reference(x)
    assert out.dtype == torch.bfloat16
    assert_within(out, expected, error_bound(x, expected))


@needs_counters
@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("n_cols", [1024, 2048, 4096])
def test_counts_of_a_row_that_fits(name: str, n_cols: int) -> None:
    x = normal(np.random.default_rng(0), (8, n_cols), name)
    with counting() as counts:
        softmax(x)
    assert counts.device_bytes == least_device_bytes(x)
    assert counts.barriers_per_program <= 2
    assert counts.private_bytes == 0
    assert counts.device_accesses * 16 == counts.device_bytes


@needs_counters
def test_a_long_row_is_read_twice_and_no_more() -> None:
    x = normal(np.random.default_rng(0), (2, 65_536))
    with counting() as counts:
        softmax(x)
    assert counts.device_bytes == least_device_bytes(x) * 3 // 2
