"""tl.fma of bfloats rounds once: the product and the sum are exact, and ties go to even."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl

from kernel_support import dtype


@triton.jit
def fused(out, x, y, z, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.fma(tl.load(x + i), tl.load(y + i), tl.load(z + i)))


def nearest(exact: Fraction) -> float:
    """The bfloat nearest to a number in the range of normal ones, the even one of two."""
    if exact == 0:
        return 0.0
    magnitude = abs(exact)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    unit = Fraction(2) ** (exponent - 7)
    if magnitude / unit >= 256:
        unit *= 2
    elif magnitude / unit < 128:
        unit /= 2
    # Python rounds halves to even.
    rounded = float(round(magnitude / unit) * unit)
    return rounded if exact > 0 else -rounded


def operands(count: int, seed: int) -> list[np.ndarray]:
    """Any bfloats, and products that lie between two bfloats or next to one, with a small number that decides."""
    rng = np.random.default_rng(seed)
    x, y = rng.integers(128, 256, (2, count)) * rng.choice((-1.0, 1.0), (2, count))
    z = (
        rng.integers(128, 256, count)
        * 2.0 ** rng.integers(-40, 20, count)
        * rng.choice((-1, 1), count)
    )
    # 16 bits of which the lower 8 are a half: 129 ... 255 times a power of two, and odd products.
    x[: count // 4] = rng.choice((129.0, 131.0, 193.0, 255.0), count // 4)
    y[: count // 4] = rng.choice((128.0, 136.0, 144.0, 160.0, 192.0), count // 4)
    z[: count // 8] *= 2.0**-12
    return [v.astype(dtype("bfloat16")) for v in (x * 2.0**-7, y, z)]


@pytest.mark.parametrize("seed", range(2))
def test_the_result_is_the_nearest_bfloat(seed: int) -> None:
    count = 4096
    x, y, z = operands(count, seed)
    out = np.empty(count, dtype("bfloat16"))
    fused[(count // 1024,)](out, x, y, z, BLOCK=1024)
    wide = [[Fraction(float(v)) for v in each] for each in (x, y, z)]
    exact = [nearest(a * b + c) for a, b, c in zip(*wide, strict=True)]
    np.testing.assert_array_equal(out.astype(np.float64), exact)
    # Some of them are such that two roundings give another result.
    twice = (x.astype(np.float32) * y.astype(np.float32) + z.astype(np.float32)).astype(out.dtype)
    assert np.any(twice != out)


def test_infinities_nan_and_zeros_keep_their_meaning() -> None:
    inf, nan, large = np.inf, np.nan, 3.3895314e38
    cases = [
        (inf, 1, 1, inf), (inf, 0, 1, nan), (1, 1, -inf, -inf), (inf, 1, -inf, nan), (nan, 1, 1, nan),
        (large, large, 1, inf), (large, 2, -large, large), (-large, 2, 1, -inf), (1, -1, 1, 0),
        (2, 3, 0, 6), (0, 5, 0, 0), (large, 1, large, inf), (large, large, -inf, -inf), (-large, large, inf, inf),
        (inf, 2.0**-86, 1, inf), (-(2.0**-100), inf, 1, -inf), (2.0**-126, inf, -large, inf), (2.0**-120, -inf, inf, nan),
        (large, 2, -inf, -inf), (2.0**64, 2.0**64, -large, 2.0**120), (inf, large, -inf, nan),
    ]  # fmt: skip
    x, y, z, wanted = (
        np.array(each, np.float32).astype(dtype("bfloat16")) for each in zip(*cases, strict=True)
    )
    padded = [np.concatenate([v, np.zeros(32 - len(v), v.dtype)]) for v in (x, y, z)]
    out = np.empty(32, x.dtype)
    fused[(1,)](out, *padded, BLOCK=32)
    np.testing.assert_array_equal(out[: len(x)].astype(np.float32), wanted.astype(np.float32))
    assert not np.signbit(out[8].astype(np.float32))


def test_a_negative_zero_stays() -> None:
    x = np.full(16, -0.0, np.float32).astype(dtype("bfloat16"))
    out = np.empty_like(x)
    fused[(1,)](out, x, np.ones_like(x), x, BLOCK=16)
    assert np.all(np.signbit(out.astype(np.float32)))
