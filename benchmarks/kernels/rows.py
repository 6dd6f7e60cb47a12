"""Along each row, which a program holds in registers: the place of the largest, running sums, sorting."""

from __future__ import annotations

import triton_metal as triton
import triton_metal.language as tl

from _arrays import Array, empty, empty_int32, itemsize


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
def in_order(bits):
    """Bits of floats as integers in the order of the floats, and those as bits: negative ones count down."""
    last: tl.constexpr = bits.dtype.primitive_bitwidth - 1
    return bits ^ ((bits >> last) & ((1 << last) - 1))


@triton.jit
def sort_kernel(x_ptr, out_ptr, n_cols, BITS: tl.constexpr, BLOCK: tl.constexpr):
    """Sorts floats by integers in their order, of which any two are in order: NaNs stand at the ends, and -0 before 0."""
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0)
    # What is no column comes last.
    last: tl.constexpr = (1 << (BITS.primitive_bitwidth - 1)) - 1
    keys = tl.sort(tl.where(mask, in_order(x.to(BITS, bitcast=True)), last))
    result = in_order(keys).to(x.dtype, bitcast=True)
    tl.store(out_ptr + row * n_cols + cols, result, mask=mask)


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
    """Each row of x (rows, columns) of floats in ascending order."""
    n_rows, n_cols = x.shape
    out = empty(x.shape, like=x)
    block = triton.next_power_of_2(n_cols)
    bits = {2: tl.int16, 4: tl.int32}[itemsize(x)]
    sort_kernel[(n_rows,)](x, out, n_cols, BITS=bits, BLOCK=block, num_warps=num_warps)
    return out
