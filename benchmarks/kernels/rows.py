"""Along each row, which a program holds in registers: the place of the largest, running sums, sorting."""

from __future__ import annotations

import triton_metal as triton
import triton_metal.language as tl

from _arrays import Array, empty, empty_int32


@triton.jit
def argmax_kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=-float("inf"))
    tl.store(out_ptr + row, tl.argmax(x, axis=0))


@triton.jit
def cumsum_kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0)
    tl.store(out_ptr + row * n_cols + cols, tl.cumsum(x, axis=0), mask=mask)


@triton.jit
def sort_kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=float("inf"))
    tl.store(out_ptr + row * n_cols + cols, tl.sort(x), mask=mask)


def argmax(x: Array, num_warps: int = 4) -> Array:
    """The places (rows,), int32, of the first largest number of each row of x (rows, columns)."""
    n_rows, n_cols = x.shape
    out = empty_int32((n_rows,), like=x)
    block = triton.next_power_of_2(n_cols)
    argmax_kernel[(n_rows,)](x, out, n_cols, BLOCK=block, num_warps=num_warps)
    return out


def cumsum(x: Array, num_warps: int = 4) -> Array:
    """The running sums of each row of x (rows, columns), in x's type."""
    n_rows, n_cols = x.shape
    out = empty(x.shape, like=x)
    block = triton.next_power_of_2(n_cols)
    cumsum_kernel[(n_rows,)](x, out, n_cols, BLOCK=block, num_warps=num_warps)
    return out


def sort(x: Array, num_warps: int = 4) -> Array:
    """Each row of x (rows, columns) in ascending order."""
    n_rows, n_cols = x.shape
    out = empty(x.shape, like=x)
    block = triton.next_power_of_2(n_cols)
    sort_kernel[(n_rows,)](x, out, n_cols, BLOCK=block, num_warps=num_warps)
    return out
