"""The kernel of attention: a program owns a block of queries of one head and walks over the keys that they see.

The scores of one block of keys live in registers only: they become weights relative to the highest score so far, and what
was summed before is scaled down whenever a higher one comes. Sequences lie in batches, or packed one behind the other,
where cumulative offsets tell where each begins.

What is kept for the gradient is the highest score of each row and one over the sum of its weights, which is 0 for a row that sees no key.
"""

from __future__ import annotations

import triton_metal as triton
import triton_metal.language as tl

from ._arrays import Array, dtype_name
from ._attention_parts import (
    LOWEST,
    arranged,
    biases,
    block_of,
    factor_of,
    factors,
    grid_of,
    keys_seen,
    limited,
    load_rows,
    of_head,
    packed_steps,
    pieces,
    plain_steps,
    products,
    seen_arguments,
    sees,
    store_rows,
    with_rows,
)
from ._far import far, far_steps, index
from ._launch import Spec, launch


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, mask_ptr, bias_ptr, lengths_ptr, q_offsets_ptr, k_offsets_ptr, out_ptr, highest_ptr, share_ptr,
    q_steps, k_steps, v_steps, mask_steps, bias_steps, out_steps, row_steps,
    sequences, n_queries, n_keys, group, scale_2, power, limit, left, right,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, A: tl.constexpr, B: tl.constexpr, WIDTH: tl.constexpr,
    BATCHED: tl.constexpr, ALIKE: tl.constexpr, BEHIND: tl.constexpr, AHEAD: tl.constexpr,
    EVEN: tl.constexpr, POSITIVE: tl.constexpr, FAR: tl.constexpr,
):  # fmt: skip
    """softmax(scale Q Kᵀ + bias) V; steps are those of (batch, head, row).

    EVEN says that the end of the keys cuts no block. ALIKE says that rows lie equally far apart in all arrays, the values as the keys do, and the result as the queries.
    """
    batch, start_m, q_row, k_row, n_queries, n_keys = block_of(
        q_offsets_ptr,
        q_offsets_ptr,
        k_offsets_ptr,
        sequences,
        n_queries,
        n_queries,
        n_keys,
        BLOCK_M,
        BATCHED,
    )
    n_keys = limited(n_keys, lengths_ptr, batch)
    if ALIKE:
        k_steps = (k_steps[0], k_steps[1], q_steps[2])
        v_steps, out_steps = k_steps, q_steps
    if FAR:
        q_steps, k_steps = far_steps(q_steps), far_steps(k_steps)
        v_steps, out_steps = far_steps(v_steps), far_steps(out_steps)
    head = tl.program_id(1)
    shared, head, batch = index(head // group, FAR), index(head, FAR), index(batch, FAR)
    row, k_row = index(q_row + start_m, FAR), index(k_row, FAR)
    q_ptr = of_head(q_ptr, batch, head, row, q_steps)
    k_ptr = of_head(k_ptr, batch, shared, k_row, k_steps)
    v_ptr = of_head(v_ptr, batch, shared, k_row, v_steps)
    if bias_ptr is None:
        # Queries from the block's first one on: fewer operations, but with a bias more registers.
        mask_ptr = of_head(mask_ptr, batch, head, index(start_m, FAR), mask_steps)
        n_queries -= start_m
        start_m = 0
    else:
        mask_ptr = of_head(mask_ptr, batch, head, 0, mask_steps)
        bias_ptr = of_head(bias_ptr, batch, head, 0, bias_steps)

    rows, keys = tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N)
    m = start_m + rows
    q = load_rows(q_ptr, q_steps[2], rows, m < n_queries, A, B, WIDTH)
    # The last query is at the place of the last key: query m sees the keys from m + behind to m + ahead.
    behind, ahead = n_keys - n_queries - left, n_keys - n_queries + right
    first, last = keys_seen(start_m, n_keys, behind, ahead, BLOCK_M, BLOCK_N, BEHIND, AHEAD)
    if q_offsets_ptr is not None:
        last = tl.where(start_m < n_queries, last, 0)
    if BEHIND:
        k_ptr += index(first, FAR) * k_steps[2]
        v_ptr += index(first, FAR) * v_steps[2]

    highest = tl.full((BLOCK_M,), LOWEST, tl.float32)
    # Few numbers of a thread have sums of their own, which are added up behind the loop, where there are registers for them.
    APART: tl.constexpr = BLOCK_N <= 16 and not BEHIND and bias_ptr is None
    total = tl.zeros((BLOCK_M, BLOCK_N if APART else 1), tl.float32)
    acc_a = tl.zeros((BLOCK_M, A), tl.float32)
    acc_b = tl.zeros((BLOCK_M, B if B else 1), tl.float32)
    # Rows in two pieces have three places in a step. One number moves all of them, where pointers would take two registers each.
    COUNTED: tl.constexpr = B != 0 and not FAR
    k_at = v_at = 0
    for start_n in range(first, last, BLOCK_N):
        n = start_n + keys
        block_ptr = k_ptr + k_at if COUNTED else k_ptr
        k = load_rows(block_ptr, k_steps[2], keys, None if EVEN else n < n_keys, A, B, WIDTH)
        scores = products(q, k, B)
        if not POSITIVE:
            scores *= scale_2
        if bias_ptr is not None:
            scores += biases(m[:, None], n[None, :], n_queries, n_keys, bias_ptr, bias_steps, FAR)
        if not EVEN or BEHIND or AHEAD or mask_ptr is not None:
            see = sees(
                m[:, None], n[None, :], n_queries, n_keys, behind, ahead, mask_ptr, mask_steps,
                BEHIND, AHEAD, FAR,
            )  # fmt: skip
            scores = tl.where(see, scores, -float("inf"))
        top = tl.max(scores, axis=1)
        if POSITIVE:
            # Maxima are taken before the scale, which then is in one operation with the subtraction.
            factor = factor_of(top, scale_2, power, limit)
            higher = tl.maximum(highest, top * factor)
            weights = tl.exp2(scores * factor[:, None] - higher[:, None])
        else:
            higher = tl.maximum(highest, top)
            weights = tl.exp2(scores - higher[:, None])
        fade = tl.exp2(highest - higher)
        added = weights if APART else tl.sum(weights, axis=1)[:, None]
        total = total * fade[:, None] + added
        block_ptr = v_ptr + (k_at if ALIKE else v_at) if COUNTED else v_ptr
        v = load_rows(block_ptr, v_steps[2], keys, None if EVEN else n < n_keys, A, B, WIDTH)
        weights = weights.to(v[0].dtype)
        acc_a = tl.dot(weights, v[0], acc_a * fade[:, None], input_precision="ieee")
        if B:
            acc_b = tl.dot(weights, v[1], acc_b * fade[:, None], input_precision="ieee")
        highest = higher
        if COUNTED:
            k_at += BLOCK_N * k_steps[2]
            v_at += BLOCK_N * v_steps[2]
        else:
            k_ptr += BLOCK_N * index(k_steps[2], FAR)
            v_ptr += BLOCK_N * index(v_steps[2], FAR)

    total = tl.sum(total, axis=1)
    # A total is no more than the number of keys, so that its reciprocal is a number like any other.
    share = tl.where(total == 0, 0.0, tl.div_rn(1.0, total))
    acc_a *= share[:, None]
    acc_b *= share[:, None]
    out_ptr = of_head(out_ptr, batch, head, row, out_steps)
    store_rows(out_ptr, out_steps[2], rows, m < n_queries, acc_a, acc_b, A, B, WIDTH)
    if highest_ptr is not None:
        highest_ptr = of_head(highest_ptr, batch, head, row, row_steps)
        share_ptr = of_head(share_ptr, batch, head, row, row_steps)
        tl.store(highest_ptr + rows, highest, mask=m < n_queries)
        tl.store(share_ptr + rows, share, mask=m < n_queries)


def tiles(width: int, dtype: str, biased: bool) -> dict[str, int]:
    """The blocks of queries and keys: few registers and little threadgroup memory, so that many threads are in flight.

    None spills on G13, also where rows are not aligned, which takes more registers, as a bias does.
    """
    wide = width * (2 if dtype == "float32" else 1)
    if wide > 256:
        return {"BLOCK_M": 16, "BLOCK_N": 8, "num_warps": 8}
    if wide > 128:
        return {"BLOCK_M": 16 if width > 192 else 32, "BLOCK_N": 16, "num_warps": 8}
    if 96 < wide < 128:
        return {"BLOCK_M": 32, "BLOCK_N": 16, "num_warps": 8}
    return {
        "BLOCK_M": 32,
        "BLOCK_N": 16 if wide == 128 or (wide > 64 and (biased or width % 16)) else 32,
        "num_warps": 4,
    }


#: What is kept for the gradient.
KEPT = ("highest_ptr", "share_ptr")


def results(q: Array, rows: tuple[int, ...], keep: bool) -> dict[str, Spec]:
    """What the kernel writes."""
    made: dict[str, Spec] = {"out_ptr": (tuple(q.shape), dtype_name(q))}
    return made | dict.fromkeys(KEPT, (rows, "float32")) if keep else made


def forward(
    q: Array, k: Array, v: Array, mask: Array | None, bias: Array | None, lengths: Array | None,
    left: int, right: int, scale: float, keep: bool = True,
) -> tuple[Array, ...]:  # fmt: skip
    """The result and, if they are kept, the highest scores and the shares of a weight, of (batch, heads, rows, width); -1 is a side without an end."""
    q, k, v = with_rows(q), with_rows(k), with_rows(v)
    (batch, heads, queries, width), (_, kv_heads, keys, _) = q.shape, k.shape
    sizes = tiles(width, dtype_name(q), bias is not None)
    outputs = results(q, (batch, heads, queries), keep)
    hidden = mask is not None or bias is not None or lengths is not None
    batched, (q_steps, k_steps, v_steps) = arranged(hidden, q, k, v)
    out_steps = plain_steps(q.shape)[:3]
    alike = (q_steps[1:], v_steps) == (out_steps[1:], k_steps) and q_steps[2] == k_steps[2]
    return launch(
        attention_kernel,
        grid_of(triton.cdiv(queries, sizes["BLOCK_M"]), heads, batch, batched),
        outputs, like=q, q_ptr=q, k_ptr=k, v_ptr=v, q_offsets_ptr=None, k_offsets_ptr=None,
        q_steps=q_steps, k_steps=k_steps, v_steps=v_steps,
        out_steps=out_steps, row_steps=(heads * queries, queries, 1),
        sequences=0, n_queries=queries, n_keys=keys, group=heads // max(kv_heads, 1),
        BATCHED=batched, ALIKE=alike and not batched, EVEN=lengths is None and keys % sizes["BLOCK_N"] == 0, FAR=far(q, k, v, mask, bias),
        **factors(scale, bias is not None), **seen_arguments(mask, bias, lengths, left, right, scale), **sizes, **pieces(width),
        **({} if keep else dict.fromkeys(KEPT)),
    )  # fmt: skip


def forward_packed(
    q: Array, k: Array, v: Array, q_offsets: Array, k_offsets: Array, left: int, right: int, scale: float,
    keep: bool = True,
) -> tuple[Array, ...]:  # fmt: skip
    """The same of packed sequences (rows, heads, width); rows of no sequence give 0."""
    q, k, v = with_rows(q), with_rows(k), with_rows(v)
    (queries, heads, width), (keys, kv_heads, _), count = q.shape, k.shape, q_offsets.shape[0] - 1
    sizes = tiles(width, dtype_name(q), False)
    outputs = results(q, (heads, queries), keep)
    blocks = queries // sizes["BLOCK_M"] + count if queries and count else 0
    return launch(
        attention_kernel,
        (blocks, heads, 1),
        outputs, like=q, fill=0, q_ptr=q, k_ptr=k, v_ptr=v, q_offsets_ptr=q_offsets, k_offsets_ptr=k_offsets,
        q_steps=packed_steps(q), k_steps=packed_steps(k), v_steps=packed_steps(v),
        out_steps=(0, width, heads * width), row_steps=(0, queries, 1),
        sequences=count, n_queries=queries, n_keys=keys, group=heads // max(kv_heads, 1),
        BATCHED=False, ALIKE=False, EVEN=False, FAR=far(q, k, v),
        **factors(scale, False), **seen_arguments(None, None, None, left, right, scale), **sizes, **pieces(width),
        **({} if keep else dict.fromkeys(KEPT)),
    )  # fmt: skip
