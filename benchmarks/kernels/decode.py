"""Attention of one query a head, as in generation: the keys are split between programs.

Several heads of queries share the keys and values of one (grouped heads): a program takes some of them or all, so that it reads
each key for them once. A second launch joins the parts.
"""

from __future__ import annotations

import triton_metal as triton
import triton_metal.language as tl

from _arrays import Array, empty, empty_float32


@triton.jit
def decode_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    acc_ptr,
    highest_ptr,
    total_ptr,
    n_keys,
    keys_each,
    scale,
    HEAD: tl.constexpr,
    SHARED: tl.constexpr,
    QUERIES: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    group, part, parts = tl.program_id(0), tl.program_id(1), tl.num_programs(1)
    head = group // (SHARED // QUERIES)
    offs_g, offs_d = tl.arange(0, QUERIES), tl.arange(0, HEAD)
    queries = group * QUERIES + offs_g
    q = tl.load(q_ptr + queries[:, None] * HEAD + offs_d[None, :]).to(tl.float32)
    q = q * (scale * 1.4426950408889634)
    highest = tl.full((QUERIES,), -float("inf"), tl.float32)
    total = tl.zeros((QUERIES,), tl.float32)
    acc = tl.zeros((QUERIES, HEAD), tl.float32)
    first, last = part * keys_each, min(n_keys, (part + 1) * keys_each)
    offs_n = tl.arange(0, BLOCK_N)
    at = offs_n[:, None] * HEAD + offs_d[None, :]
    k_ptr += (head * n_keys + first) * HEAD
    v_ptr += (head * n_keys + first) * HEAD
    for start in range(first, last, BLOCK_N):
        there = start + offs_n < last
        k = tl.load(k_ptr + at, mask=there[:, None], other=0.0).to(tl.float32)
        scores = tl.sum(q[:, None, :] * k[None, :, :], axis=2)
        scores = tl.where(there[None, :], scores, -float("inf"))
        higher = tl.maximum(highest, tl.max(scores, axis=1))
        weights = tl.exp2(scores - higher[:, None])
        fade = tl.exp2(highest - higher)
        v = tl.load(v_ptr + at, mask=there[:, None], other=0.0).to(tl.float32)
        acc = acc * fade[:, None] + tl.sum(weights[:, :, None] * v[None, :, :], axis=1)
        total = total * fade + tl.sum(weights, axis=1)
        highest = higher
        k_ptr += BLOCK_N * HEAD
        v_ptr += BLOCK_N * HEAD
    place = queries * parts + part
    tl.store(acc_ptr + place[:, None] * HEAD + offs_d[None, :], acc)
    tl.store(highest_ptr + place, highest)
    tl.store(total_ptr + place, total)


@triton.jit
def join_kernel(acc_ptr, highest_ptr, total_ptr, out_ptr, HEAD: tl.constexpr, PARTS: tl.constexpr):
    query = tl.program_id(0)
    parts, offs_d = query * PARTS + tl.arange(0, PARTS), tl.arange(0, HEAD)
    highest = tl.load(highest_ptr + parts)
    weights = tl.exp2(highest - tl.max(highest, axis=0))
    total = tl.sum(weights * tl.load(total_ptr + parts), axis=0)
    acc = tl.load(acc_ptr + parts[:, None] * HEAD + offs_d[None, :])
    result = tl.sum(weights[:, None] * acc, axis=0) / total
    tl.store(out_ptr + query * HEAD + offs_d, result.to(out_ptr.dtype.element_ty))


def decode(
    q: Array,
    k: Array,
    v: Array,
    parts: int,
    BLOCK_N: int = 32,
    num_warps: int = 4,
    queries_each: int | None = None,
) -> Array:
    """Attention of q (query heads, head size) over k and v (heads, keys, head size); `parts` is a power of two.

    A program takes `queries_each` of the queries that share keys, or all of them. Few queries and keys at a time take few
    registers, and many read less.
    """
    (queries, head), (heads, keys, _) = q.shape, k.shape
    out = empty(q.shape, like=q)
    acc = empty_float32((queries, parts, head), like=q)
    highest, total = (empty_float32((queries, parts), like=q) for _ in range(2))
    shared = queries // heads
    together = min(queries_each or shared, shared)
    each = triton.cdiv(triton.cdiv(keys, parts), BLOCK_N) * BLOCK_N
    if each * (parts - 1) >= keys:
        raise ValueError(
            f"{parts} parts of {each} keys are more than the {keys} keys that there are."
        )
    decode_kernel[(queries // together, parts)](
        q,
        k,
        v,
        acc,
        highest,
        total,
        keys,
        each,
        head**-0.5,
        HEAD=head,
        SHARED=shared,
        QUERIES=together,
        BLOCK_N=BLOCK_N,
        num_warps=num_warps,
    )
    join_kernel[(queries,)](
        acc,
        highest,
        total,
        out,
        HEAD=head,
        PARTS=parts,
        num_warps=1 if parts * head <= 2048 else 4,
    )
    return out
