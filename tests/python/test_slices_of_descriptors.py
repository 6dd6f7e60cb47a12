"""Slices of kernels that store several blocks of one tensor, or to a tensor that they read, through tensor descriptors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl
from triton_metal.tools.tensor_descriptor import TensorDescriptor

from kernel_support import ON_STOCK
from test_slices import integers, is_sliced

pytestmark = pytest.mark.skipif(ON_STOCK, reason="host descriptors are ours here")


@triton.jit
def halves(c, row, column, total, BN: tl.constexpr):
    """Stores both halves of a tile's columns, one after the other."""
    left, right = tl.split(tl.permute(tl.reshape(total, (total.shape[0], 2, BN // 2)), (0, 2, 1)))
    c.store([row, column], left.to(c.dtype))
    c.store([row, column + BN // 2], right.to(c.dtype))


@triton.jit
def product_of(a, b, row, column, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    total = tl.zeros((BM, BN), tl.float32)
    for step in range(0, k, BK):
        total = tl.dot(a.load([row, step]), b.load([step, column]), total)
    return total


@triton.jit
def product_kernel(
    a_ptr, b_ptr, c_ptr, m, n, k, row_stride,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, IS_DENSE: tl.constexpr,
):  # fmt: skip
    """A product whose tiles are stored in two halves. One program makes all tiles."""
    a = tl.make_tensor_descriptor(a_ptr, [m, k], [k, 1], [BM, BK])
    b = tl.make_tensor_descriptor(b_ptr, [k, n], [n, 1], [BK, BN])
    if IS_DENSE:
        c = tl.make_tensor_descriptor(c_ptr, [m, n], [n, 1], [BM, BN // 2])
    else:
        c = tl.make_tensor_descriptor(c_ptr, [m, n], [row_stride, 1], [BM, BN // 2])
    tiles_n = tl.cdiv(n, BN)
    for tile in range(tl.cdiv(m, BM) * tiles_n):
        row, column = tile // tiles_n * BM, tile % tiles_n * BN
        halves(c, row, column, product_of(a, b, row, column, k, BM, BN, BK), BN)


@triton.jit
def product_of_descriptors_kernel(a, b, c, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    halves(c, row, column, product_of(a, b, row, column, k, BM, BN, BK), BN)


@triton.jit
def added_kernel(a, b, c, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Adds a product to a tile of an array, in place."""
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    total = product_of(a, b, row, column, k, BM, BN, BK)
    c.store([row, column], (c.load([row, column]) + total).to(c.dtype))


def factors(m: int, n: int, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two matrices of small integers, and their product, which float32 has exactly."""
    rng = np.random.default_rng(7)
    a, b = integers(rng, m, k), integers(rng, k, n)
    return a, b, a.astype(np.float32) @ b.astype(np.float32)


@pytest.mark.parametrize(("m", "n", "k"), [(128, 128, 64), (200, 264, 72)])
@pytest.mark.parametrize("is_dense", [True, False])
def test_halves_of_tiles_are_stored_in_slices_where_rows_do_not_overlap(
    m: int, n: int, k: int, is_dense: bool
) -> None:
    """The compiler sees that rows of n numbers follow each other. It knows nothing of another number's rows."""
    a, b, expected = factors(m, n, k)
    c = np.full((m, n), -1, np.float32)
    kernel = product_kernel[(1,)](
        a, b, c, m, n, k, n, BM=128, BN=128, BK=32, IS_DENSE=is_dense, num_warps=4
    )
    assert is_sliced(kernel, is_dense)
    np.testing.assert_array_equal(c, expected)


def overlapping(x: np.ndarray, rows: int, columns: int, stride: int, block: list[int]) -> Any:
    return TensorDescriptor(x, [rows, columns], [stride, 1], block)


@pytest.mark.parametrize(("stride", "expected"), [(128, True), (136, True), (120, False)])
def test_a_launch_tells_whether_rows_of_a_descriptor_overlap(stride: int, expected: bool) -> None:
    m, n, k = 128, 128, 64
    a, b, product = factors(m, n, k)
    memory = np.zeros(m * max(stride, n), np.float32)
    kernel = product_of_descriptors_kernel[(1, 1)](
        TensorDescriptor.from_tensor(a, [128, 32]),
        TensorDescriptor.from_tensor(b, [32, 128]),
        overlapping(memory, m, n, stride, [128, 64]),
        k, BM=128, BN=128, BK=32, num_warps=4,
    )  # fmt: skip
    assert is_sliced(kernel, expected)
    if expected:
        found = np.lib.stride_tricks.as_strided(memory, (m, n), (stride * 4, 4))
        np.testing.assert_array_equal(found, product)


@pytest.mark.parametrize(("m", "n"), [(128, 128), (200, 264)])
def test_what_is_added_in_place_is_in_slices(m: int, n: int) -> None:
    k = 64
    a, b, product = factors(m, n, k)
    c = np.arange(m * n, dtype=np.float32).reshape(m, n) % 97
    before = c.copy()
    kernel = added_kernel[(triton.cdiv(m, 128), triton.cdiv(n, 128))](
        TensorDescriptor.from_tensor(a, [128, 32]),
        TensorDescriptor.from_tensor(b, [32, 128]),
        TensorDescriptor.from_tensor(c, [128, 128]),
        k, BM=128, BN=128, BK=32, num_warps=4,
    )  # fmt: skip
    assert is_sliced(kernel, True)
    np.testing.assert_array_equal(c, before + product)


@triton.jit
def moved_kernel(
    x, y, STEPS: tl.constexpr, SHIFT: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr
):
    """Each step adds a block of y and stores the sum SHIFT rows behind the last one, over a part of it."""
    total = tl.zeros((BM, BN), tl.float32)
    other = tl.zeros((BM, BN), tl.float32)
    for step in range(STEPS):
        block = y.load([step * BM, 0])
        total += block
        other -= block
        x.store([step * SHIFT, 0], total)
    x.store([STEPS * SHIFT, 0], other)


@pytest.mark.parametrize("shift", [16, 64, 128])
def test_rows_that_move_from_step_to_step_stay_in_order(shift: int) -> None:
    """A slice's rows of one step are those of another slice in the next one."""
    steps, bm, bn = 3, 128, 64
    y = np.random.default_rng(8).integers(-9, 9, (steps * bm, bn)).astype(np.float32)
    x = np.zeros((steps * shift + bm, bn), np.float32)
    expected, total = x.copy(), np.zeros((bm, bn), np.float32)
    for step in range(steps):
        total = total + y[step * bm : (step + 1) * bm]
        expected[step * shift : step * shift + bm] = total
    expected[steps * shift :] = -total
    moved_kernel[(1,)](
        TensorDescriptor.from_tensor(x, [bm, bn]),
        TensorDescriptor.from_tensor(y, [bm, bn]),
        STEPS=steps, SHIFT=shift, BM=bm, BN=bn, num_warps=2,
    )  # fmt: skip
    np.testing.assert_array_equal(x, expected)
