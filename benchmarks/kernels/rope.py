"""Rotary position embedding: pairs of a head's elements are turned by an angle that grows with the position.

The pairs are neighbours (traditional), or an element of the first half and one of the second. Heads have the same
angles, so that a thread computes them once for HEADS of them, which it turns one after the other.
"""

from __future__ import annotations

import triton_metal as triton
import triton_metal.language as tl

from _arrays import Array, empty


@triton.jit
def rope_kernel(
    x_ptr,
    out_ptr,
    n_heads,
    length,
    offset,
    scale,
    log2_base,
    HALF: tl.constexpr,
    BLOCK_T: tl.constexpr,
    HEADS: tl.constexpr,
    NEIGHBOURS: tl.constexpr,
):
    time = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)
    pair = tl.arange(0, HALF)
    position = scale * (offset + time).to(tl.float32)
    angle = position[:, None] * tl.exp2(pair.to(tl.float32) * (-log2_base / HALF))[None, :]
    sine, cosine = tl.sin(angle), tl.cos(angle)
    for each in range(HEADS):
        head = tl.program_id(1) * HEADS + each
        rows = (head * length + time) * (2 * HALF)
        there = (head < n_heads) & (time < length)
        if NEIGHBOURS:
            at = rows[:, None, None] + pair[:, None] * 2 + tl.arange(0, 2)[None, :]
            inside = there[:, None, None]
            a, b = tl.split(tl.load(x_ptr + at, mask=inside, other=0.0).to(tl.float32))
            y = tl.join(a * cosine - b * sine, a * sine + b * cosine)
            tl.store(out_ptr + at, y.to(out_ptr.dtype.element_ty), mask=inside)
        else:
            at = rows[:, None] + pair[None, :]
            inside = there[:, None]
            a = tl.load(x_ptr + at, mask=inside, other=0.0).to(tl.float32)
            b = tl.load(x_ptr + at + HALF, mask=inside, other=0.0).to(tl.float32)
            y = (a * cosine - b * sine).to(out_ptr.dtype.element_ty)
            tl.store(out_ptr + at, y, mask=inside)
            y = (a * sine + b * cosine).to(out_ptr.dtype.element_ty)
            tl.store(out_ptr + at + HALF, y, mask=inside)


def rope(
    x: Array,
    offset: int,
    log2_base: float,
    traditional: bool,
    BLOCK_T: int = 1,
    HEADS: int = 4,
    num_warps: int = 1,
) -> Array:
    """x (heads, length, head size) at positions from `offset` on; the head size is a power of two."""
    heads, length, size = x.shape
    out = empty(x.shape, like=x)
    rope_kernel[(triton.cdiv(length, BLOCK_T), triton.cdiv(heads, HEADS))](
        x,
        out,
        heads,
        length,
        offset,
        1.0,
        log2_base,
        HALF=size // 2,
        BLOCK_T=BLOCK_T,
        HEADS=HEADS,
        NEIGHBOURS=traditional,
        num_warps=num_warps,
    )
    return out
