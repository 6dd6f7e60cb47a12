"""Products of a matrix and a vector: along the matrix's rows, and along its columns."""

from __future__ import annotations

import triton_metal as triton
import triton_metal.language as tl

from _arrays import Array, empty, itemsize


@triton.jit
def gemv_kernel(
    a_ptr,
    x_ptr,
    out_ptr,
    n_rows,
    n_cols,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    EACH: tl.constexpr,
):
    """out = a x: a program adds up whole rows. A thread loads EACH neighbours of a row, and has one sum for a row."""
    LANES: tl.constexpr = min(32, BLOCK_N // EACH)
    STEPS: tl.constexpr = BLOCK_N // (LANES * EACH)
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    acc = tl.zeros((BLOCK_M, LANES), tl.float32)
    for start in range(0, n_cols, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        mask = (rows[:, None] < n_rows) & (cols[None, :] < n_cols)
        a = tl.load(a_ptr + rows[:, None] * n_cols + cols[None, :], mask=mask, other=0.0)
        x = tl.load(x_ptr + cols, mask=cols < n_cols, other=0.0)
        products = a.to(tl.float32) * x.to(tl.float32)[None, :]
        acc += tl.sum(tl.sum(tl.reshape(products, (BLOCK_M, STEPS, LANES, EACH)), axis=3), axis=1)
    result = tl.sum(acc, axis=1).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + rows, result, mask=rows < n_rows)


@triton.jit
def gemv_t_kernel(
    a_ptr,
    x_ptr,
    out_ptr,
    n_rows,
    n_cols,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    ROWS: tl.constexpr,
):
    """out = x a: a program adds up some columns. Its threads load ROWS rows at a time, and have one sum for a column."""
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((ROWS, BLOCK_N), tl.float32)
    for start in range(0, n_rows, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M)
        mask = (rows[:, None] < n_rows) & (cols[None, :] < n_cols)
        a = tl.load(a_ptr + rows[:, None] * n_cols + cols[None, :], mask=mask, other=0.0)
        x = tl.load(x_ptr + rows, mask=rows < n_rows, other=0.0)
        products = a.to(tl.float32) * x.to(tl.float32)[:, None]
        acc += tl.sum(tl.reshape(products, (BLOCK_M // ROWS, ROWS, BLOCK_N)), axis=0)
    result = tl.sum(acc, axis=0).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + cols, result, mask=cols < n_cols)


def neighbours(a: Array) -> int:
    """How many numbers of a row a thread reads at once: 16 bytes, or four numbers where rows begin anywhere."""
    return 16 // itemsize(a) if a.shape[1] * itemsize(a) % 16 == 0 else 4


def gemv(a: Array, x: Array, BLOCK_M: int, BLOCK_N: int, num_warps: int) -> Array:
    """The product (rows,) of a (rows, columns), side by side, and x (columns,)."""
    n_rows, n_cols = a.shape
    out = empty((n_rows,), like=a)
    gemv_kernel[(triton.cdiv(n_rows, BLOCK_M),)](
        a,
        x,
        out,
        n_rows,
        n_cols,
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        EACH=neighbours(a),
        num_warps=num_warps,
    )
    return out


def gemv_t(a: Array, x: Array, BLOCK_M: int, BLOCK_N: int, num_warps: int) -> Array:
    """The product (columns,) of x (rows,) and a (rows, columns), side by side."""
    n_rows, n_cols = a.shape
    out = empty((n_cols,), like=a)
    gemv_t_kernel[(triton.cdiv(n_cols, BLOCK_N),)](
        a,
        x,
        out,
        n_rows,
        n_cols,
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        ROWS=min(BLOCK_M, max(1, 32 * num_warps * neighbours(a) // BLOCK_N)),
        num_warps=num_warps,
    )
    return out
