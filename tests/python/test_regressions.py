"""Kernels that once gave wrong results, each as small as it still failed."""

from __future__ import annotations

import numpy as np
import pytest

from kernel_support import assert_same, integers, tl, triton


@triton.jit
def two_masks_kernel(flags_ptr, x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    flags = tl.load(flags_ptr + offsets, mask=offsets < n, other=0)
    x = tl.load(x_ptr + offsets, mask=flags, other=-1)
    tl.store(out_ptr + offsets, x)


@pytest.mark.parametrize("n", [64, 60])
def test_a_loaded_mask_beside_a_uniform_one(n: int) -> None:
    rng = np.random.default_rng(0)
    flags, x = rng.integers(0, 2, 64).astype(bool), integers(rng, 64, "int32")
    out = np.empty_like(x)
    two_masks_kernel[(1,)](flags, x, out, n, BLOCK=64, num_warps=1)
    assert_same(out, np.where(flags & (np.arange(64) < n), x, np.int32(-1)))


@triton.jit
def column_argmax_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    rows, cols = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(x_ptr + rows[:, None] * N + cols[None, :])
    tl.store(out_ptr + cols, tl.argmax(x, 0))


@pytest.mark.parametrize("num_warps", [1, 4, 16])
def test_argmax_of_columns_that_are_spread_anew(num_warps: int) -> None:
    x = np.random.default_rng(0).integers(-3, 4, (8, 512)).astype(np.float16)
    out = np.empty(512, np.int32)
    column_argmax_kernel[(1,)](x, out, M=8, N=512, num_warps=num_warps)
    assert_same(out, x.argmax(axis=0).astype(np.int32))
