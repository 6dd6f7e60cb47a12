"""Functions of reductions and scans that make a tile only to ask for its type, as PyTorch's Inductor writes them."""

from __future__ import annotations

import numpy as np
import pytest
import triton_metal
import triton_metal.language as tl


@triton_metal.jit
def promoted(x):
    return x + tl.zeros((1,), tl.int1)


@triton_metal.jit
def largest(a, b):
    mask = a > b
    if promoted(a).dtype.is_floating():
        mask |= a != a
    return tl.where(mask, a, b)


@triton_metal.jit
def reduce_rows(x, y, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i, j = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    tile = tl.load(x + i[:, None] * COLUMNS + j[None, :])
    tl.store(y + i, tl.reduce(tile, 1, largest))


@triton_metal.jit
def scan_row(x, y, COLUMNS: tl.constexpr):
    j = tl.arange(0, COLUMNS)
    tl.store(y + j, tl.associative_scan(tl.load(x + j), 0, largest))


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_a_tile_of_which_only_the_type_is_asked(dtype: type) -> None:
    x = (np.random.default_rng(0).standard_normal((8, 64)) * 100).astype(dtype)
    if dtype is np.float32:
        x[3, 20] = np.nan
    y = np.zeros(8, dtype)
    reduce_rows[(1,)](x, y, 8, 64)
    np.testing.assert_array_equal(y, x.max(1))
    z = np.zeros(64, dtype)
    scan_row[(1,)](x[3], z, 64)
    np.testing.assert_array_equal(z, np.maximum.accumulate(x[3]))
