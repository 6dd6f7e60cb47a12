"""Divisions of 64-bit numbers that came from 32 bits, at both ends of their ranges, against exact integers."""

from __future__ import annotations

import re

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl

ENDS = (-(2**31), -(2**31) + 1, -65537, -7, -2, -1, 1, 2, 7, 65536, 2**31 - 2, 2**31 - 1)
PAIRS = np.array([(a, b) for a in (*ENDS, 0) for b in ENDS], np.int32)


@triton.jit
def divide_kernel(a_ptr, b_ptr, out_ptr, scalar, n, N: tl.constexpr):
    i = tl.arange(0, N)
    mask = i < n
    a = tl.load(a_ptr + i, mask=mask, other=-2147483648)
    b = tl.load(b_ptr + i, mask=mask, other=-1)
    wide, by = a.to(tl.int64), b.to(tl.int64)
    tl.store(out_ptr + i, wide // by, mask=mask)
    tl.store(out_ptr + N + i, wide % by, mask=mask)
    tl.store(out_ptr + 2 * N + i, wide // scalar, mask=mask)
    tl.store(out_ptr + 3 * N + i, wide % scalar, mask=mask)
    tl.store(out_ptr + 4 * N + i, wide // -7, mask=mask)
    up = a.to(tl.uint32, bitcast=True).to(tl.uint64)
    tl.store(out_ptr + 5 * N + i, (up // b.to(tl.uint32, bitcast=True)).to(tl.int64), mask=mask)


def quotients(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Rounded towards zero, as in C."""
    return np.array(
        [abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) for x, y in zip(a, b, strict=True)]
    )


@pytest.mark.parametrize("scalar", [-1, 3, -(2**31), 2**31 - 1])
def test_64_bit_divisions_of_32_bit_numbers_take_32_bits_and_are_exact(scalar: int) -> None:
    a, b = np.ascontiguousarray(PAIRS[:, 0]), np.ascontiguousarray(PAIRS[:, 1])
    out = np.full((6, 256), 5, np.int64)
    kernel = divide_kernel[(1,)](a, b, out, scalar, len(a), N=256)
    wide, by = a.astype(object), b.astype(object)
    scalars = [scalar] * len(a)
    for row, divisors in ((0, by), (2, scalars), (4, [-7] * len(a))):
        np.testing.assert_array_equal(out[row, : len(a)], quotients(wide, divisors))
    for row, divisors in ((1, by), (3, scalars)):
        exact = wide - quotients(wide, divisors) * divisors
        np.testing.assert_array_equal(out[row, : len(a)], exact.astype(np.int64))
    up = (wide % 2**32) // (by % 2**32)
    np.testing.assert_array_equal(out[5, : len(a)], up.astype(np.int64))
    assert (out[:, len(a) :] == 5).all()
    text = kernel.asm["metal"]
    divided = re.findall(r"(\w+\)?) / (\w+\(?)", text)
    assert divided
    wide_names = set(re.findall(r"\bu?long\d? (\w+) =", text))
    assert wide_names
    # No division of the text has an operand of 64 bits.
    for operand in (operand for pair in divided for operand in pair):
        assert operand not in wide_names
        assert not re.fullmatch(r"u?long\d?\(", operand)
