"""Attention with a head size that is no power of two, as a sum of two: each operand is loaded in two pieces.

Otherwise this is the attention of `examples/attention.py`. A tile of 128 columns would multiply the 48 that do not exist.
"""

from __future__ import annotations

import triton_metal as triton
import triton_metal.language as tl

from _arrays import Array, empty


@triton.jit
def attention_pieces_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    n_queries,
    n_keys,
    scale,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    HEAD_A: tl.constexpr,
    HEAD_B: tl.constexpr,
    CAUSAL: tl.constexpr,
):
    HEAD: tl.constexpr = HEAD_A + HEAD_B
    start_m = tl.program_id(0) * BLOCK_M
    head = tl.program_id(1)
    offs_m = start_m + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    offs_a = tl.arange(0, HEAD_A)
    offs_b = HEAD_A + tl.arange(0, HEAD_B)
    rows = head * n_queries * HEAD + offs_m[:, None] * HEAD
    keys = head * n_keys * HEAD + offs_n[:, None] * HEAD
    there = offs_m[:, None] < n_queries
    q_a = tl.load(q_ptr + rows + offs_a[None, :], mask=there, other=0.0)
    q_b = tl.load(q_ptr + rows + offs_b[None, :], mask=there, other=0.0)

    scale_2 = scale * 1.4426950408889634
    highest = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc_a = tl.zeros((BLOCK_M, HEAD_A), tl.float32)
    acc_b = tl.zeros((BLOCK_M, HEAD_B), tl.float32)
    last = n_keys
    if CAUSAL:
        last = min(n_keys, start_m + BLOCK_M)
    for start_n in range(0, last, BLOCK_N):
        in_range = start_n + offs_n < n_keys
        k_a = tl.load(k_ptr + (keys + offs_a[None, :]), mask=in_range[:, None], other=0.0)
        k_b = tl.load(k_ptr + (keys + offs_b[None, :]), mask=in_range[:, None], other=0.0)
        scores = tl.dot(q_b, tl.trans(k_b), tl.dot(q_a, tl.trans(k_a)))
        visible = in_range[None, :]
        if CAUSAL:
            visible = visible & (offs_m[:, None] >= start_n + offs_n[None, :])
        scores = tl.where(visible, scores, -float("inf"))
        higher = tl.maximum(highest, tl.max(scores, axis=1) * scale_2)
        weights = tl.exp2(scores * scale_2 - higher[:, None])
        fade = tl.exp2(highest - higher)
        total = total * fade + tl.sum(weights, axis=1)
        v_a = tl.load(v_ptr + (keys + offs_a[None, :]), mask=in_range[:, None], other=0.0)
        v_b = tl.load(v_ptr + (keys + offs_b[None, :]), mask=in_range[:, None], other=0.0)
        acc_a = tl.dot(weights.to(v_a.dtype), v_a, acc_a * fade[:, None])
        acc_b = tl.dot(weights.to(v_b.dtype), v_b, acc_b * fade[:, None])
        highest = higher
        k_ptr += BLOCK_N * HEAD
        v_ptr += BLOCK_N * HEAD

    out = out_ptr + rows
    share = tl.div_rn(1.0, total)[:, None]
    tl.store(out + offs_a[None, :], (acc_a * share).to(out_ptr.dtype.element_ty), mask=there)
    tl.store(out + offs_b[None, :], (acc_b * share).to(out_ptr.dtype.element_ty), mask=there)


def attention_pieces(
    q: Array,
    k: Array,
    v: Array,
    causal: bool,
    pieces: tuple[int, int] = (64, 16),
    BLOCK_M: int = 32,
    BLOCK_N: int = 32,
    num_warps: int = 4,
) -> Array:
    """Attention of q (heads, queries, head size) over k and v (heads, keys, head size), side by side."""
    heads, n_queries, head = q.shape
    if sum(pieces) != head:
        raise ValueError(f"the pieces {pieces} must add up to the head size {head}.")
    out = empty(q.shape, like=q)
    attention_pieces_kernel[(triton.cdiv(n_queries, BLOCK_M), heads)](
        q,
        k,
        v,
        out,
        n_queries,
        k.shape[1],
        head**-0.5,
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        HEAD_A=pieces[0],
        HEAD_B=pieces[1],
        CAUSAL=causal,
        num_warps=num_warps,
    )
    return out
