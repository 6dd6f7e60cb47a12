"""Softmax of rows that a program holds as several blocks, a thread one number of each.

A block has a power of two of numbers, but a row may have any number of blocks: fewer numbers are computed than in one
block that is longer than the row. Only the last block is cut by the row's end. A block begins at a pointer that all threads
share, so that a thread has one offset for all of them.
"""

from __future__ import annotations

import triton_metal as triton
import triton_metal.language as tl

from _arrays import Array, empty


@triton.jit
def blocks_softmax_kernel(
    out_ptr,
    x_ptr,
    row_stride,
    n_cols,
    BLOCK: tl.constexpr,
    BLOCKS: tl.constexpr,
    EVEN: tl.constexpr,
):
    """Rows of x and out that lie alike, of BLOCKS blocks. The last one ends with the row if EVEN, and behind it otherwise."""
    cols = tl.arange(0, BLOCK)
    first = tl.program_id(0) * row_stride + cols
    last: tl.constexpr = BLOCKS - 1
    inside = None if EVEN else last * BLOCK + cols < n_cols
    other = None if EVEN else -float("inf")
    x = ()
    for block in tl.static_range(last):
        x = x + (tl.load(x_ptr + block * BLOCK + first).to(tl.float32),)
    end = tl.load(x_ptr + last * BLOCK + first, mask=inside, other=other)
    x = x + (end.to(tl.float32),)
    highest = x[0]
    for block in tl.static_range(1, BLOCKS):
        highest = tl.maximum(highest, x[block])
    row_highest = tl.max(highest, axis=0)
    y = ()
    for block in tl.static_range(BLOCKS):
        y = y + (tl.exp(x[block] - row_highest),)
    total = y[0]
    for block in tl.static_range(1, BLOCKS):
        total += y[block]
    row_total = tl.sum(total, axis=0)
    for block in tl.static_range(last):
        share = y[block] / row_total
        tl.store(out_ptr + block * BLOCK + first, share.to(out_ptr.dtype.element_ty))
    share = y[last] / row_total
    tl.store(out_ptr + last * BLOCK + first, share.to(out_ptr.dtype.element_ty), mask=inside)


def softmax(x: Array, num_warps: int) -> Array:
    """Softmax along the last axis of a matrix (rows, columns)."""
    n_rows, n_cols = x.shape
    out = empty(x.shape, like=x)
    block = 32 * num_warps
    blocks_softmax_kernel[(n_rows,)](
        out,
        x,
        n_cols,
        n_cols,
        BLOCK=block,
        BLOCKS=triton.cdiv(n_cols, block),
        EVEN=n_cols % block == 0,
        num_warps=num_warps,
    )
    return out
