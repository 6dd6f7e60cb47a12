"""Loops over registers that become one (``msl-form-tile-loops``, ``msl-fuse-loops``), against NumPy, in exact arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl

TYPES = [np.int32, np.float32, np.float16]


@triton.jit
def rows_kernel(
    a_ptr,
    x_ptr,
    scale_ptr,
    out_ptr,
    n_rows,
    n_cols,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    EACH: tl.constexpr,
    OP: tl.constexpr,
):
    """Each row's products with x, reduced and scaled; the scale is another array of the rows."""
    LANES: tl.constexpr = BLOCK_N // EACH
    TYPE: tl.constexpr = tl.int32 if a_ptr.dtype.element_ty == tl.int32 else tl.float32
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    acc = tl.zeros((BLOCK_M, LANES), TYPE)
    for start in range(0, n_cols, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        mask = (rows[:, None] < n_rows) & (cols[None, :] < n_cols)
        a = tl.load(a_ptr + rows[:, None] * n_cols + cols[None, :], mask=mask, other=0)
        x = tl.load(x_ptr + cols, mask=cols < n_cols, other=0)
        scale = tl.load(scale_ptr + rows, mask=rows < n_rows, other=0).to(TYPE)
        products = tl.reshape(a.to(TYPE) * x.to(TYPE)[None, :], (BLOCK_M, LANES, EACH))
        if OP == "sum":
            acc = acc * 2 + tl.sum(products, axis=2) * scale[:, None]
        else:
            acc = acc * 2 + tl.max(products, axis=2) * scale[:, None]
    tl.store(out_ptr + rows, tl.sum(acc, axis=1), mask=rows < n_rows)


@pytest.mark.parametrize("op", ["sum", "max"])
@pytest.mark.parametrize("shape", [(4, 64), (7, 100), (16, 256), (5, 33)])
@pytest.mark.parametrize("blocks", [(4, 64, 4), (4, 128, 8), (2, 32, 1), (8, 64, 2), (1, 64, 16)])
@pytest.mark.parametrize("dtype", TYPES)
def test_rows(dtype: type, blocks: tuple[int, int, int], shape: tuple[int, int], op: str) -> None:
    (m, n), (block_m, block_n, each) = shape, blocks
    rng = np.random.default_rng(m * n)
    a, x = rng.integers(-3, 4, (m, n)).astype(dtype), rng.integers(-3, 4, n).astype(dtype)
    scale = rng.integers(-2, 3, m).astype(dtype)
    out = np.full(m, 99, np.int32 if dtype is np.int32 else np.float32)
    rows_kernel[(triton.cdiv(m, block_m),)](
        a, x, scale, out, m, n, BLOCK_M=block_m, BLOCK_N=block_n, EACH=each, OP=op, num_warps=1
    )
    padded = np.zeros((m, -(-n // block_n) * block_n), np.int64)
    padded[:, :n] = a.astype(np.int64) * x.astype(np.int64)
    groups = padded.reshape(m, -1, block_n // each, each)
    reduced = groups.sum(axis=3) if op == "sum" else groups.max(axis=3)
    expected = np.zeros((m, block_n // each), np.int64)
    for step in range(reduced.shape[1]):
        expected = expected * 2 + reduced[:, step] * scale.astype(np.int64)[:, None]
    np.testing.assert_array_equal(out.astype(np.int64), expected.sum(axis=1))


@triton.jit
def columns_kernel(a_ptr, x_ptr, out_ptr, n_rows, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    cols = tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_N,), tl.int32)
    for start in range(0, n_rows, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M)
        mask = rows < n_rows
        a = tl.load(a_ptr + rows[:, None] * BLOCK_N + cols[None, :], mask=mask[:, None], other=0)
        x = tl.load(x_ptr + rows, mask=mask, other=0)
        acc += tl.sum(a * x[:, None], axis=0)
    tl.store(out_ptr + cols, acc)


@pytest.mark.parametrize("rows", [1, 4, 13, 64])
@pytest.mark.parametrize("block_m", [2, 4, 16])
@pytest.mark.parametrize("block_n", [32, 128, 256])
def test_columns(block_n: int, block_m: int, rows: int) -> None:
    rng = np.random.default_rng(rows)
    a = rng.integers(-1000, 1000, (rows, block_n)).astype(np.int32)
    x = rng.integers(-1000, 1000, rows).astype(np.int32)
    out = np.full(block_n, -1, np.int32)
    columns_kernel[(1,)](a, x, out, rows, BLOCK_M=block_m, BLOCK_N=block_n, num_warps=1)
    np.testing.assert_array_equal(out, x @ a)


@triton.jit
def written_kernel(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    """What is loaded from y has been stored before it; the first load came before the store."""
    few, many = tl.arange(0, N), tl.arange(0, 4 * N)
    before = tl.load(y_ptr + many)
    tl.store(y_ptr + many, tl.load(x_ptr + many) + before)
    after = tl.load(y_ptr + few * 4)
    spread = tl.reshape(tl.broadcast_to(after[:, None], (N, 4)), (4 * N,))
    tl.store(out_ptr + many, before * 3 + spread)


@pytest.mark.parametrize("n", [8, 32, 128])
@pytest.mark.parametrize("num_warps", [1, 2])
def test_a_loop_does_not_pass_a_store(num_warps: int, n: int) -> None:
    x, y = np.arange(4 * n, dtype=np.int32), np.arange(4 * n, dtype=np.int32) * 7 + 1
    first, out = y.copy(), np.zeros(4 * n, np.int32)
    written_kernel[(1,)](x, y, out, N=n, num_warps=num_warps)
    np.testing.assert_array_equal(y, first + x)
    np.testing.assert_array_equal(out, first * 3 + np.repeat((first + x)[::4], 4))


@triton.jit
def carried_kernel(x_ptr, out_ptr, n, N: tl.constexpr):
    """Two tiles that change places with their sum, as Fibonacci's numbers do."""
    offs = tl.arange(0, N)
    a, b = tl.load(x_ptr + offs), tl.zeros((N,), tl.int32)
    for _ in range(n):
        a, b = a + b, a
    tl.store(out_ptr + offs, a)
    tl.store(out_ptr + N + offs, b)


@pytest.mark.parametrize("size", [32, 256, 1024])
@pytest.mark.parametrize("n", [0, 1, 2, 10])
def test_tiles_change_places(n: int, size: int) -> None:
    x = np.arange(size, dtype=np.int32) - 5
    a, b = x.copy(), np.zeros(size, np.int32)
    for _ in range(n):
        a, b = a + b, a
    out = np.zeros(2 * size, np.int32)
    carried_kernel[(1,)](x, out, n, N=size, num_warps=1)
    np.testing.assert_array_equal(out, np.concatenate([a, b]))
