"""Offsets of unrolled loops as multiples of a stride (``msl-step-offsets``), where products of 32 bits wrap around."""

from __future__ import annotations

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl


@triton.jit
def rows_kernel(
    x_ptr, out_ptr, first, stride, end, steps, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    rows = first + tl.arange(0, ROWS) * 8
    columns = tl.arange(0, COLUMNS)
    places = tl.arange(0, ROWS)[:, None] * COLUMNS + columns[None, :]
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for _step in range(steps):
        total += tl.load(x_ptr + (rows * stride)[:, None] + columns[None, :])
        x_ptr += COLUMNS
    for _step in range(steps):
        mask = (rows[:, None] < end) & (columns[None, :] < COLUMNS - 3)
        total += tl.load(x_ptr + (rows * stride)[:, None] + columns[None, :], mask=mask, other=-1.0)
        x_ptr += COLUMNS
    tl.store(out_ptr + places, total)


@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize("high", [0, 1, 3, 7])
@pytest.mark.parametrize(("first", "stride"), [(0, 16), (0, 5), (8, 24), (16, 1)])
def test_products_that_wrap_around(first: int, stride: int, high: int, num_warps: int) -> None:
    # Eight times this stride is eight times the small one, modulo 2^32.
    wrapping = (stride + (high << 29) + 2**31) % 2**32 - 2**31
    rows, columns, steps = 16, 32, 3
    x = (np.arange((first + rows * 8) * stride + 2 * steps * columns + columns) % 97).astype("f4")
    out = np.zeros((rows, columns), "f4")
    end = first + 8 * rows - 20
    rows_kernel[(1,)](
        x, out, first, wrapping, end, steps, ROWS=rows, COLUMNS=columns, num_warps=num_warps
    )
    expected = np.zeros((rows, columns), "f4")
    places = ((first + np.arange(rows) * 8) * stride)[:, None] + np.arange(columns)
    inside = (first + np.arange(rows)[:, None] * 8 < end) & (np.arange(columns) < columns - 3)
    for step in range(2 * steps):
        value = x[places + step * columns]
        expected += value if step < steps else np.where(inside, value, np.float32(-1))
    assert np.array_equal(out, expected)


@triton.jit
def quotients_kernel(x_ptr, y_ptr, out_ptr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    a, b = tl.load(x_ptr + at), tl.load(y_ptr + at)
    tl.store(out_ptr + at, a // b)
    tl.store(out_ptr + SIZE + at, a % b)
    tl.store(out_ptr + 2 * SIZE + at, b % a)
    tl.store(out_ptr + 3 * SIZE + at, b // a)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_one_division_for_both(dtype: str) -> None:
    rng = np.random.default_rng(0)
    most = np.iinfo(dtype).max
    a, b = (rng.integers(-most, most, 256, dtype=dtype) >> rng.integers(0, 7) for _ in range(2))
    a, b = np.where(a == 0, 1, a).astype(dtype), np.where(b == 0, -3, b).astype(dtype)
    out = np.zeros((4, 256), dtype)
    quotients_kernel[(1,)](a, b, out, SIZE=256)
    for (x, y), (quotient, rest) in (((a, b), (out[0], out[1])), ((b, a), (out[3], out[2]))):
        exact = np.trunc(x.astype(np.longdouble) / y.astype(np.longdouble)).astype(dtype)
        assert np.array_equal(quotient, exact)
        assert np.array_equal(rest, x - exact * y)
