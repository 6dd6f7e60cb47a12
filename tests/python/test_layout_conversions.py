"""Tiles that two parts of a program want in different layouts: by registers, by shuffles, and through threadgroup
memory, in rounds where it is too small for the tile."""

from __future__ import annotations

import numpy as np
import pytest

from kernel_support import tl, triton


@triton.jit
def add_transposed_kernel(x_ptr, out_ptr, N: tl.constexpr):
    r = tl.arange(0, N)
    at = r[:, None] * N + r[None, :]
    x = tl.load(x_ptr + at)
    tl.store(out_ptr + at, x + tl.trans(x))


@pytest.mark.parametrize("num_warps", [1, 4, 16])
@pytest.mark.parametrize("size", [2, 8, 32, 128, 256])
@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "int64"])
def test_add_transposed(dtype: str, size: int, num_warps: int) -> None:
    x = np.random.default_rng(size).integers(-50, 50, (size, size)).astype(dtype)
    out = np.zeros_like(x)
    add_transposed_kernel[(1,)](x, out, N=size, num_warps=num_warps)
    np.testing.assert_array_equal(out, x + x.T)


@triton.jit
def add_reshaped_kernel(x_ptr, y_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    """x as (M, N) meets y's rows of twice the length."""
    a = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    b = tl.arange(0, M // 2)[:, None] * (2 * N) + tl.arange(0, 2 * N)[None, :]
    x = tl.load(x_ptr + a)
    x = x - tl.max(x, axis=1)[:, None]
    y = tl.load(y_ptr + b)
    y = y - tl.max(y, axis=0)[None, :]
    tl.store(out_ptr + b, y * 2 + tl.reshape(x, (M // 2, 2 * N)))


@pytest.mark.parametrize("num_warps", [1, 2, 8, 32])
@pytest.mark.parametrize("shape", [(2, 2), (4, 64), (64, 4), (128, 128), (2, 2048)], ids=str)
def test_add_reshaped(shape: tuple[int, int], num_warps: int) -> None:
    m, n = shape
    rng = np.random.default_rng(m)
    x, y = (rng.integers(-500, 500, (m, n)).astype(np.int32) for _ in range(2))
    out = np.zeros((m // 2, 2 * n), np.int32)
    add_reshaped_kernel[(1,)](x, y, out, M=m, N=n, num_warps=num_warps)
    wide = y.reshape(out.shape)
    expected = (wide - wide.max(axis=0)) * 2 + (x - x.max(axis=1, keepdims=True)).reshape(out.shape)
    np.testing.assert_array_equal(out, expected)


@triton.jit
def masks_kernel(x_ptr, out_ptr, N: tl.constexpr):
    """Booleans travel too."""
    r = tl.arange(0, N)
    at = r[:, None] * N + r[None, :]
    x = tl.load(x_ptr + at)
    positive = x > 0
    tl.store(out_ptr + at, tl.where(positive & tl.trans(positive), x, -1))


@pytest.mark.parametrize("size", [4, 64])
def test_masks(size: int) -> None:
    x = np.random.default_rng(size).integers(-50, 50, (size, size)).astype(np.int32)
    out = np.zeros_like(x)
    masks_kernel[(1,)](x, out, N=size, num_warps=4)
    np.testing.assert_array_equal(out, np.where((x > 0) & (x.T > 0), x, -1))


@triton.jit
def three_dimensions_kernel(x_ptr, out_ptr, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    a, b, c = tl.arange(0, A), tl.arange(0, B), tl.arange(0, C)
    x = tl.load(x_ptr + a[:, None, None] * (B * C) + b[None, :, None] * C + c[None, None, :])
    y = tl.permute(x, (2, 0, 1)) - tl.sum(x, axis=1).trans()[:, :, None]
    tl.store(out_ptr + c[:, None, None] * (A * B) + a[None, :, None] * B + b[None, None, :], y)


@pytest.mark.parametrize("num_warps", [1, 4, 8])
@pytest.mark.parametrize("shape", [(2, 4, 8), (16, 16, 16), (1, 64, 4), (32, 2, 128)], ids=str)
def test_three_dimensions(shape: tuple[int, int, int], num_warps: int) -> None:
    x = np.random.default_rng(0).integers(-50, 50, shape).astype(np.int32)
    out = np.zeros((shape[2], shape[0], shape[1]), np.int32)
    three_dimensions_kernel[(1,)](x, out, *shape, num_warps=num_warps)
    np.testing.assert_array_equal(out, x.transpose(2, 0, 1) - x.sum(axis=1).T[:, :, None])


@triton.jit
def weighted_kernel(x_ptr, w_ptr, at_ptr, y_ptr, z_ptr, K: tl.constexpr, N: tl.constexpr, M: tl.constexpr):  # fmt: skip
    """Halves of pairs, their sums and what is gathered of them have one load, and the rows of a tile ask for its layout."""
    k, n, m = tl.arange(0, K), tl.arange(0, N), tl.arange(0, M)
    pairs = tl.load(x_ptr + k[:, None] * 2 + tl.arange(0, 2)[None, :])
    even, odd = tl.split(pairs * 2)
    both = tl.join(odd, even)
    sums, highest = tl.sum(pairs, axis=1), tl.max(both, axis=1)
    at = n[:, None] * K + k[None, :]
    w = tl.load(w_ptr + at)
    tl.store(y_ptr + at, (w * even[None, :] + odd[None, :]) * sums[None, :] - highest[None, :])
    tl.store(z_ptr + m, tl.gather(even + sums, tl.load(at_ptr + m), 0))


@pytest.mark.parametrize("num_warps", [1, 2, 4, 16])
@pytest.mark.parametrize("shape", [(2, 32, 16), (16, 8, 64), (32, 64, 16), (64, 4, 512), (256, 16, 32)], ids=str)  # fmt: skip
def test_uses_of_a_load_follow_each_other(shape: tuple[int, int, int], num_warps: int) -> None:
    k, n, m = shape
    rng = np.random.default_rng(k)
    x, w = (rng.integers(-50, 50, each).astype(np.int32) for each in ((k, 2), (n, k)))
    at = rng.integers(0, k, m).astype(np.int32)
    y, z = np.zeros((n, k), np.int32), np.zeros(m, np.int32)
    weighted_kernel[(1,)](x, w, at, y, z, K=k, N=n, M=m, num_warps=num_warps)
    even, odd, sums = 2 * x[:, 0], 2 * x[:, 1], x.sum(1, dtype=np.int32)
    np.testing.assert_array_equal(y, (w * even + odd) * sums - np.maximum(even, odd))
    np.testing.assert_array_equal(z, (even + sums)[at])
