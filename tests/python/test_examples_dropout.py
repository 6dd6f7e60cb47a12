"""examples/dropout.py against a Philox in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from kernel_support import FLOATS, assert_within, needs_counters, normal

from _bounds import FLOAT32  # isort: skip
from _counts import counting  # isort: skip
from dropout import dropout, error_bound, least_device_bytes, philox, random, reference, uniform  # isort: skip


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


def test_a_dropped_nan_is_zero() -> None:
    x = np.full(1000, np.nan, np.float32)
    out = dropout(x, 0.5, 3)
    assert (np.isnan(out) | (out == 0)).all()
    assert 400 < np.isnan(out).sum() < 600


def test_p_out_of_range_is_refused() -> None:
    with pytest.raises(ValueError, match="less than 1 but is 1"):
        dropout(np.ones(3, np.float32), 1.0, 0)


@needs_counters
def test_counts() -> None:
    x = normal(np.random.default_rng(0), 64 * 1024)
    with counting() as counts:
        dropout(x, 0.5, 3)
    assert counts.device_bytes == least_device_bytes(x)
    assert counts.barriers == 0
