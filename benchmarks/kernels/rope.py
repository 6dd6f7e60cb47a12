"""Rotary position embedding: pairs of a head's elements are turned by an angle that grows with the position.

The pairs are neighbours (traditional), or an element of the first half and one of the second. Heads have the same
angles, so that a program computes them once for HEADS of them.
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
    TRADITIONAL: tl.constexpr,
):
    time = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)
    pair = tl.arange(0, HALF)
    position = scale * (offset + time).to(tl.float32)
    angle = position[:, None] * tl.exp2(pair.to(tl.float32) * (-log2_base / HALF))[None, :]
    sine, cosine = tl.sin(angle), tl.cos(angle)
    there = time[:, None] < length
    for head in tl.static_range(HEADS):
        first_head = tl.program_id(1) * HEADS + head
        if first_head < n_heads:
            at = (first_head * length + time[:, None]) * (2 * HALF)
            if TRADITIONAL:
                both = at + tl.arange(0, 2 * HALF)[None, :]
                x = tl.load(x_ptr + both, mask=there, other=0.0).to(tl.float32)
                a, b = tl.split(tl.reshape(x, (BLOCK_T, HALF, 2)))
                turned = tl.join(a * cosine - b * sine, a * sine + b * cosine)
                y = tl.reshape(turned, (BLOCK_T, 2 * HALF)).to(out_ptr.dtype.element_ty)
                tl.store(out_ptr + both, y, mask=there)
            else:
                low = at + pair[None, :]
                a = tl.load(x_ptr + low, mask=there, other=0.0).to(tl.float32)
                b = tl.load(x_ptr + low + HALF, mask=there, other=0.0).to(tl.float32)
                y = (a * cosine - b * sine).to(out_ptr.dtype.element_ty)
                tl.store(out_ptr + low, y, mask=there)
                y = (a * sine + b * cosine).to(out_ptr.dtype.element_ty)
                tl.store(out_ptr + low + HALF, y, mask=there)


def rope(
    x: Array,
    offset: int,
    log2_base: float,
    traditional: bool,
    BLOCK_T: int = 4,
    HEADS: int = 4,
    num_warps: int = 4,
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
        TRADITIONAL=traditional,
        num_warps=num_warps,
    )
    return out
