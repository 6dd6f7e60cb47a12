"""Stores through one pointer: a barrier stands between two of them only where they may meet."""

from __future__ import annotations

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl


@triton.jit
def halves_kernel(x_ptr, out_ptr, stride, half, shift, BLOCK: tl.constexpr, EQUAL: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    inside = (cols <= half) if EQUAL else (cols < half)
    x = tl.load(x_ptr + row * stride + cols, mask=inside)
    y = tl.load(x_ptr + row * stride + half + cols, mask=inside)
    tl.store(out_ptr + row * stride + cols, x - y, mask=inside)
    tl.store(out_ptr + row * stride + half + shift + cols, x + y, mask=inside)


def expected(x: np.ndarray, half: int, shift: int, equal: bool) -> np.ndarray:
    out = np.full(x.shape, -1, np.float32)
    count = half + equal
    low, high = x[:, :count], x[:, half : half + count]
    out[:, :count] = low - high
    out[:, half + shift : half + shift + count] = low + high
    return out


@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize("half", [2, 31, 64, 250, 511, 1000])
@pytest.mark.parametrize(("shift", "equal"), [(0, False), (3, False), (0, True), (-1, False)])
def test_stores_below_a_bound_and_from_it_on(
    half: int, shift: int, equal: bool, num_warps: int
) -> None:
    x = np.random.default_rng(half).integers(-9, 9, (3, 2 * half + 8)).astype(np.float32)
    out = np.full(x.shape, -1, np.float32)
    halves_kernel[(3,)](
        x, out, x.shape[1], half, shift, BLOCK=1024, EQUAL=equal, num_warps=num_warps
    )
    # Where they meet, the second one comes last.
    np.testing.assert_array_equal(out, expected(x, half, shift, equal))


@triton.jit
def rotate_kernel(out_ptr, x_ptr, stride, half, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    inside = cols < half
    x = tl.load(x_ptr + row * stride + cols, mask=inside)
    y = tl.load(x_ptr + row * stride + half + cols, mask=inside)
    tl.store(out_ptr + row * stride + cols, x - y, mask=inside)
    tl.store(out_ptr + row * stride + half + cols, x + y, mask=inside)


@pytest.mark.parametrize("half", [2, 64, 100, 1000, 1024])
def test_halves_of_a_row_need_no_barrier(half: int) -> None:
    x = np.random.default_rng(half).integers(-9, 9, (4, 2 * half)).astype(np.float32)
    out = np.full(x.shape, -1, np.float32)
    with triton.launch_options(count=True) as log:
        rotate_kernel[(4,)](out, x, 2 * half, half, BLOCK=1024, num_warps=4)
    np.testing.assert_array_equal(out, expected(x, half, 0, False))
    assert log.counters["threadgroup_barriers"] == 0


@triton.jit
def add_sum_kernel(x_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    tl.store(x_ptr + i, x + tl.sum(x))


@triton.jit
def reverse_kernel(x_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    tl.store(x_ptr + N - 1 - i, x + tl.sum(x))


@pytest.mark.parametrize("size", [64, 128, 1024])
@pytest.mark.parametrize("kernel", [add_sum_kernel, reverse_kernel])
def test_what_one_thread_reads_another_one_overwrites_later(kernel, size: int) -> None:
    """More threads than elements read some of them twice, and a reversed tile is stored by other threads."""
    x = np.arange(size, dtype=np.int32)
    expected = x + x.sum(dtype=np.int32)
    with triton.launch_options(check="races"):
        kernel[(1,)](x, N=size, num_warps=4)
    np.testing.assert_array_equal(x, expected if kernel is add_sum_kernel else expected[::-1])
