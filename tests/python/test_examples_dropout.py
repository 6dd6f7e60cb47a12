"""examples/dropout.py against a Philox in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from kernel_support import FLOATS, assert_within, needs_counters, normal

from _bounds import FLOAT32  # isort: skip
from _counts import counting  # isort: skip
from _arrays import numpy_dtype  # isort: skip
from dropout import (  # isort: skip
    dropout,
    dropout_kernel,
    error_bound,
    least_device_bytes,
    philox,
    random,
    reference,
    uniform,
)


def test_philox_known_answers() -> None:
    """The zero and the pi vectors of Random123's known answers, for what the reference itself is worth."""
    assert [int(c[0]) for c in philox(0, np.array([0]))] == [
        0x6627E8D5,
        0xE169C58D,
        0xBC57AC4C,
        0x9B00DBD8,
    ]


@pytest.mark.parametrize("seed", [0, 1, 123, 2**31 - 1, 2**31 + 5, 2**40 + 17])
def test_integers(seed: int) -> None:
    np.testing.assert_array_equal(random("integers", 3000, seed), philox(seed, np.arange(3000))[0])


@pytest.mark.parametrize("seed", [0, 5, 2**31 - 1])
def test_uniform(seed: int) -> None:
    actual = random("uniform", 10_001, seed)
    np.testing.assert_array_equal(actual, uniform(philox(seed, np.arange(10_001))[0]))
    assert actual.min() >= 0
    assert actual.max() < 1


def test_normal() -> None:
    """Box and Muller on the first two words: the radius of the first, the angle of the second."""
    n = 20_000
    actual = random("normal", n, 42)
    words = philox(42, np.arange(n))
    u1, u2 = (uniform(w).astype(np.float64) for w in words[:2])
    u1 = np.maximum(u1, np.float32(1e-7))
    expected = np.sqrt(-2 * np.log(u1)) * np.cos(6.283185307179586 * u2)
    # The angle is rounded to fp32, up to 2π in size; near u1 = 1 the logarithm is small, and its error with it.
    radius = np.sqrt(-2 * np.log(u1))
    bound = radius * 16 * FLOAT32 * 2 * np.pi + 8 * FLOAT32 * (
        radius + 1 / np.maximum(radius, 1e-3)
    )
    assert_within(actual, expected, bound)
    assert abs(actual.mean()) < 5 / n**0.5
    assert abs(actual.std() - 1) < 5 / n**0.5


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("n", [1, 1000, 1025])
def test_dropout(name: str, p: float, n: int) -> None:
    x = normal(np.random.default_rng(n), n, name)
    expected = reference(x, p, 77)
    assert_within(dropout(x, p, 77), expected, error_bound(expected, name))


def test_the_blocks_do_not_matter() -> None:
    x = normal(np.random.default_rng(0), (37, 41))
    np.testing.assert_array_equal(dropout(x, 0.3, 9, block=64), dropout(x, 0.3, 9, block=2048))


@pytest.mark.parametrize("num_warps", [1, 2, 8])
@pytest.mark.parametrize("block", [4, 256, 4096])
def test_a_launch_does_not_choose_the_mask(block: int, num_warps: int) -> None:
    """Zeros where the reference has them, for blocks below and above what the threads hold in one register."""
    n, seed = 5003, 2**40 + 5
    out = np.empty(n, np.float32)
    x = np.ones(n, np.float32)
    grid = (-(-n // block),)
    dropout_kernel[grid](x, out, n, 0.4, 1 / 0.6, seed, BLOCK=block, num_warps=num_warps)
    np.testing.assert_array_equal(out == 0, reference(x, 0.4, seed) == 0)


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, 1021, 1023, 2049, 4099])
def test_lengths_that_four_does_not_divide(name: str, n: int) -> None:
    x = normal(np.random.default_rng(n), n, name)
    expected = reference(x, 0.25, 5)
    assert_within(dropout(x, 0.25, 5), expected, error_bound(expected, name))


@pytest.mark.parametrize("name", FLOATS)
def test_rows_that_are_not_aligned(name: str) -> None:
    """The array starts one element behind an aligned address; each of its elements has the word of its own index."""
    whole = normal(np.random.default_rng(1), 3001, name)
    expected = reference(whole[1:], 0.25, 5)
    assert_within(dropout(whole[1:], 0.25, 5), expected, error_bound(expected, name))


@pytest.mark.parametrize("name", FLOATS)
def test_backward_drops_what_forward_dropped(name: str) -> None:
    """Whatever launch either has: the gradient gets the mask from the seed again."""
    n, seed = 3001, 21
    forward = dropout(np.ones(n, numpy_dtype(name)), 0.3, seed, block=2048)
    gradient = normal(np.random.default_rng(2), n, name)
    gradient[gradient == 0] = 1
    backward = dropout(gradient, 0.3, seed, block=128)
    np.testing.assert_array_equal(forward == 0, backward == 0)
    assert 0.25 < (forward == 0).mean() < 0.35


def test_all_words_of_a_call_are_used() -> None:
    """Each of a call's four words drops its own share, and no two drop the same elements."""
    dropped = (dropout(np.ones(2**16, np.float32), 0.5, 11) == 0).reshape(-1, 4)
    assert (abs(dropped.mean(axis=0) - 0.5) < 0.02).all()
    correlation = np.corrcoef(dropped.T) - np.eye(4)
    assert abs(correlation).max() < 0.04


@pytest.mark.parametrize("p", [0.0, 2.0**-31, 2.0**-12, 0.3, 1 - 2.0**-24])
def test_the_threshold_is_exact(p: float) -> None:
    """Integers are compared, so words that differ from the threshold in their last bit are told apart."""
    n = 2**17
    np.testing.assert_array_equal(
        dropout(np.ones(n, np.float32), p, 3) == 0, reference(np.ones(n, np.float32), p, 3) == 0
    )


def test_a_dropped_nan_is_zero() -> None:
    x = np.full(1000, np.nan, np.float32)
    out = dropout(x, 0.5, 3)
    assert (np.isnan(out) | (out == 0)).all()
    assert 400 < np.isnan(out).sum() < 600


def test_p_out_of_range_is_refused() -> None:
    with pytest.raises(ValueError, match="less than 1 but is 1"):
        dropout(np.ones(3, np.float32), 1.0, 0)


@pytest.mark.parametrize("p", [1 - 1e-9, -0.1, float("nan")])
def test_p_that_is_no_probability_in_float32_is_refused(p: float) -> None:
    """1 - 1e-9 is 1 in float32, which is what the kernel gets."""
    with pytest.raises(ValueError, match="at least 0 and less than 1"):
        dropout(np.ones(3, np.float32), p, 0)


@needs_counters
def test_counts() -> None:
    x = normal(np.random.default_rng(0), 64 * 1024)
    with counting() as counts:
        dropout(x, 0.5, 3)
    assert counts.device_bytes == least_device_bytes(x)
    assert counts.barriers == 0


@needs_counters
@pytest.mark.parametrize("name", FLOATS)
def test_four_numbers_for_one_call_of_philox(name: str) -> None:
    """17 products of 32 bits by 32 a call, two instructions each at most, and what indices and keys take."""
    x = normal(np.random.default_rng(0), 64 * 1024, name)
    with counting() as counts:
        dropout(x, 0.5, 3)
    assert counts.counters["int_mul"] <= 10 * len(x)
    assert counts.counters["device_accesses_16"] * 16 == counts.device_bytes
