"""Sums of rows, of columns, and of everything, added in the type of the numbers, as MLX adds them."""

from __future__ import annotations

import triton_metal as triton
import triton_metal.language as tl

from _arrays import Array, empty


@triton.jit
def sum_rows_kernel(
    x_ptr, out_ptr, n_rows, n_cols, last, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    """Each program adds BLOCK_M rows, of which there are as many. The last one begins early rather than being cut.

    The last block of columns begins at `last`: it alone may be cut, and the others are added to it.
    """
    begin = tl.program_id(0) * BLOCK_M
    first = min(begin, n_rows - BLOCK_M)
    rows, cols = tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N)
    x_ptrs = x_ptr + first * n_cols + rows[:, None] * n_cols + cols[None, :]
    total = tl.load(x_ptrs + last, mask=last + cols[None, :] < n_cols, other=0)
    for start in range(0, last, BLOCK_N):
        total += tl.load(x_ptrs + start)
    tl.store(out_ptr + first + rows, tl.sum(total, axis=1), mask=first + rows >= begin)


@triton.jit
def sum_columns_kernel(
    x_ptr, out_ptr, n_rows, n_cols, rows_each, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    """Each program adds `rows_each` rows of some columns; the partial sums are rows of `out`."""
    part = tl.program_id(1)
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    last = min(n_rows, (part + 1) * rows_each)
    total = tl.zeros((BLOCK_M, BLOCK_N), x_ptr.dtype.element_ty)
    for start in range(part * rows_each, last, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M)
        mask = (rows[:, None] < last) & (cols[None, :] < n_cols)
        total += tl.load(x_ptr + rows[:, None] * n_cols + cols[None, :], mask=mask, other=0)
    tl.store(out_ptr + part * n_cols + cols, tl.sum(total, axis=0), mask=cols < n_cols)


def sum_rows(x: Array, BLOCK_M: int, BLOCK_N: int, num_warps: int) -> Array:
    """The sums (rows,) of x (rows, columns)."""
    n_rows, n_cols = x.shape
    out = empty((n_rows,), like=x)
    while n_rows < BLOCK_M:
        BLOCK_M //= 2
    last = (n_cols - 1) // BLOCK_N * BLOCK_N
    sum_rows_kernel[(triton.cdiv(n_rows, BLOCK_M),)](
        x, out, n_rows, n_cols, last, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, num_warps=num_warps
    )
    return out


def sum_columns(x: Array, BLOCK_M: int, BLOCK_N: int, num_warps: int, parts: int = 1) -> Array:
    """The sums (columns,) of x (rows, columns); in so many parts, which a second launch adds."""
    n_rows, n_cols = x.shape
    options = {"BLOCK_M": BLOCK_M, "BLOCK_N": BLOCK_N, "num_warps": num_warps}
    while True:
        out = empty((parts, n_cols), like=x)
        grid = (triton.cdiv(n_cols, BLOCK_N), parts)
        sum_columns_kernel[grid](x, out, n_rows, n_cols, triton.cdiv(n_rows, parts), **options)
        if parts == 1:
            return out[0]
        x, n_rows, parts = out, parts, 1


def sum_all(x: Array, parts: int, BLOCK_N: int, num_warps: int) -> Array:
    """The sum (1,) of x (any shape, side by side): of so many rows of it, and then of their sums."""
    flat = x.reshape(parts, -1)
    partial = sum_rows(flat, BLOCK_M=1, BLOCK_N=BLOCK_N, num_warps=num_warps)
    return sum_rows(
        partial.reshape(1, parts), BLOCK_M=1, BLOCK_N=triton.next_power_of_2(parts), num_warps=1
    )
