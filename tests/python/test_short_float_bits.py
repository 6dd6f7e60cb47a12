"""Bits of one 16-bit float type read as another, and words whose bits are read one by one."""

import ml_dtypes
import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl

WORDS = np.arange(0, 65536, 257, dtype=np.uint16).view(np.int16)
WORDS[:8] = np.array([0, 0x8000, 1, 0x8001, 0x7C00, 0xFC00, 0x7F80, 0xFF80], np.uint16).view(
    np.int16
)


@triton.jit
def are_not_zero(x, halves, bfloats, back):
    i = tl.arange(0, 256)
    word = tl.load(x + i)
    half = word.to(tl.float16, bitcast=True)
    bfloat = half.to(tl.bfloat16, bitcast=True)
    tl.store(halves + i, half != 0.0)
    tl.store(bfloats + i, bfloat != 0.0)
    tl.store(back + i, bfloat.to(tl.float16, bitcast=True) == 0.0)


def test_zero_of_either_format():
    halves, bfloats, back = (np.zeros(256, bool) for _ in range(3))
    are_not_zero[(1,)](WORDS, halves, bfloats, back, num_warps=1)
    expected = (WORDS & 0x7FFF) != 0
    np.testing.assert_array_equal(halves, expected)
    np.testing.assert_array_equal(bfloats, expected)
    np.testing.assert_array_equal(back, ~expected)


@triton.jit
def read_bfloats_as_halves(x, nonzero, number):
    i = tl.arange(0, 256)
    value = tl.load(x + (i ^ 102) * 3)
    tl.store(nonzero + i, value.to(tl.float16, bitcast=True).to(tl.int1))
    tl.store(number + i, value.to(tl.bfloat16))


@pytest.mark.parametrize("dtype", [np.int16, np.uint16, ml_dtypes.bfloat16])
def test_one_tile_in_both_formats(dtype):
    words = WORDS.view(dtype)
    scattered = np.zeros(3 * 256, dtype)
    scattered[(np.arange(256) ^ 102) * 3] = words
    nonzero, number = np.zeros(256, bool), np.zeros(256, ml_dtypes.bfloat16)
    read_bfloats_as_halves[(1,)](scattered, nonzero, number, num_warps=1)
    np.testing.assert_array_equal(nonzero, (WORDS & 0x7FFF) != 0)
    np.testing.assert_array_equal(
        number.view(np.uint16), words.astype(ml_dtypes.bfloat16).view(np.uint16)
    )


@triton.jit
def clamp_in_both_formats(x, low: tl.constexpr, o, p):
    i = tl.arange(0, 256)
    half = tl.minimum(tl.load(x + i).to(tl.float16, bitcast=True), 1.0)
    tl.store(o + i, tl.maximum(half.to(tl.bfloat16, bitcast=True), low))
    bfloat = tl.minimum(tl.load(x + i).to(tl.bfloat16, bitcast=True), 1.0)
    tl.store(p + i, tl.maximum(bfloat.to(tl.float16, bitcast=True), low))


@pytest.mark.parametrize("low", [3, 0.5])
def test_constants_read_as_the_other_format(low):
    # No NaNs, whose bits are nobody's business.
    words = np.array([0, 0x3800, 0x3C00, 0x4000, 0x3F80, 0x4040, 0x7000, 0x0001], np.int16)
    words = np.tile(words, 32)
    o, p = np.zeros(256, ml_dtypes.bfloat16), np.zeros(256, np.float16)
    clamp_in_both_formats[(1,)](words, low, o, p, num_warps=1)
    one, bone = np.float16(1), ml_dtypes.bfloat16(1)
    half = np.minimum(words.view(np.float16), one).view(ml_dtypes.bfloat16)
    bfloat = np.minimum(words.view(ml_dtypes.bfloat16), bone).view(np.float16)
    np.testing.assert_array_equal(o, np.maximum(half, ml_dtypes.bfloat16(low)))
    np.testing.assert_array_equal(p, np.maximum(bfloat, np.float16(low)))


@triton.jit
def choose_by_bits(x, o, n: tl.constexpr, m: tl.constexpr):
    i, j, k = tl.arange(0, m)[:, None, None], tl.arange(0, m)[None, :, None], tl.arange(0, n)
    even = tl.load(x + ((tl.arange(0, m)[:, None] + 1) & 7) + ((k[None, :] + 51) % 64) * m) % 2 == 0
    value = tl.where(even, 1, tl.expand_dims(tl.load(x + tl.arange(0, m)[:, None] * n + k), 1))
    tl.store(o + (i * m + j) * n + k[None, None, :], value)


def test_tiles_of_conditions_read_again():
    m, n = 8, 64
    x = np.random.default_rng(0).integers(0, 1 << 20, m * n).astype(np.uint32)
    o = np.zeros((m, m, n), np.uint32)
    choose_by_bits[(1,)](x, o, n, m, num_warps=4)
    even = np.roll(np.roll(x.reshape(n, m), -51, 0), -1, 1).T % 2 == 0
    expected = np.where(even, 1, x.reshape(m, n)[:, None, :])
    np.testing.assert_array_equal(o, expected)
