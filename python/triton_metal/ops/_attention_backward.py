"""The gradient of attention: one kernel for that of the queries, one for those of keys and values, one for that of a bias.

With scores S, weights P = 2^(S - highest) / total and dP = dO Vᵀ, the gradient of the scores is dS = P (dP - δ), where δ = Σ dO O of each
row. Then dQ = scale dS K, dK = scale dSᵀ Q and dV = Pᵀ dO. Each program computes the scores that it needs again and adds up its
own block in a fixed order, over the heads that share keys too, so that results are the same each time.
"""

from __future__ import annotations

from typing import Any

import triton_metal as triton
import triton_metal.language as tl

from ._arrays import Array, dtype_name, empty
from ._attention_parts import (
    arranged,
    biases,
    block_of,
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
    weights_again,
    with_rows,
)
from ._far import far, far_steps, index
from ._launch import launch


@triton.jit
def attention_dq_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, dout_ptr, highest_ptr, share_ptr, mask_ptr, bias_ptr, lengths_ptr, q_offsets_ptr, k_offsets_ptr,
    dq_ptr, delta_ptr,
    q_steps, k_steps, v_steps, dout_steps, mask_steps, bias_steps, out_steps, row_steps,
    sequences, n_queries, n_keys, group, scale, scale_2, power, left, right,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, A: tl.constexpr, B: tl.constexpr, WIDTH: tl.constexpr,
    BATCHED: tl.constexpr, BEHIND: tl.constexpr, AHEAD: tl.constexpr, POSITIVE: tl.constexpr, FAR: tl.constexpr,
):  # fmt: skip
    """dQ of a block of queries, and their δ."""
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
    if FAR:
        q_steps, k_steps, v_steps = far_steps(q_steps), far_steps(k_steps), far_steps(v_steps)
        dout_steps, out_steps = far_steps(dout_steps), far_steps(out_steps)
    head = tl.program_id(1)
    shared, head, batch = index(head // group, FAR), index(head, FAR), index(batch, FAR)
    row, k_row = index(q_row + start_m, FAR), index(k_row, FAR)
    q_ptr = of_head(q_ptr, batch, head, row, q_steps)
    dout_ptr = of_head(dout_ptr, batch, head, row, dout_steps)
    out_ptr = of_head(out_ptr, batch, head, row, out_steps)
    dq_ptr = of_head(dq_ptr, batch, head, row, out_steps)
    highest_ptr = of_head(highest_ptr, batch, head, row, row_steps)
    share_ptr = of_head(share_ptr, batch, head, row, row_steps)
    delta_ptr = of_head(delta_ptr, batch, head, row, row_steps)
    k_ptr = of_head(k_ptr, batch, shared, k_row, k_steps)
    v_ptr = of_head(v_ptr, batch, shared, k_row, v_steps)
    mask_ptr = of_head(mask_ptr, batch, head, 0, mask_steps)
    bias_ptr = of_head(bias_ptr, batch, head, 0, bias_steps)

    rows, keys = tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N)
    m = start_m + rows
    inside = m < n_queries
    q = load_rows(q_ptr, q_steps[2], rows, inside, A, B, WIDTH)
    dout = load_rows(dout_ptr, dout_steps[2], rows, inside, A, B, WIDTH)
    out = load_rows(out_ptr, out_steps[2], rows, inside, A, B, WIDTH)
    delta = tl.sum(out[0].to(tl.float32) * dout[0].to(tl.float32), axis=1)
    if B:
        delta += tl.sum(out[1].to(tl.float32) * dout[1].to(tl.float32), axis=1)
    tl.store(delta_ptr + rows, delta, mask=inside)
    highest = tl.load(highest_ptr + rows, mask=inside, other=0.0)[:, None]
    share = tl.load(share_ptr + rows, mask=inside, other=0.0)[:, None]

    behind, ahead = n_keys - n_queries - left, n_keys - n_queries + right
    first, last = keys_seen(start_m, n_keys, behind, ahead, BLOCK_M, BLOCK_N, BEHIND, AHEAD)
    if q_offsets_ptr is not None:
        last = tl.where(start_m < n_queries, last, 0)
    if BEHIND:
        k_ptr += index(first, FAR) * k_steps[2]
        v_ptr += index(first, FAR) * v_steps[2]
    dq_a = tl.zeros((BLOCK_M, A), tl.float32)
    dq_b = tl.zeros((BLOCK_M, B if B else 1), tl.float32)
    for start_n in range(first, last, BLOCK_N):
        n = start_n + keys
        k = load_rows(k_ptr, k_steps[2], keys, n < n_keys, A, B, WIDTH)
        v = load_rows(v_ptr, v_steps[2], keys, n < n_keys, A, B, WIDTH)
        dots = products(q, k, B)
        bias = None
        if bias_ptr is not None:
            bias = biases(m[:, None], n[None, :], n_queries, n_keys, bias_ptr, bias_steps, FAR)
        see = sees(
            m[:, None], n[None, :], n_queries, n_keys, behind, ahead, mask_ptr, mask_steps,
            BEHIND, AHEAD, FAR,
        )  # fmt: skip
        weights = weights_again(dots, bias, highest, share, scale_2, power, see, POSITIVE)
        change = (weights * (products(dout, v, B) - delta[:, None])).to(k[0].dtype)
        dq_a = tl.dot(change, k[0], dq_a, input_precision="ieee")
        if B:
            dq_b = tl.dot(change, k[1], dq_b, input_precision="ieee")
        k_ptr += BLOCK_N * index(k_steps[2], FAR)
        v_ptr += BLOCK_N * index(v_steps[2], FAR)
    store_rows(dq_ptr, out_steps[2], rows, inside, dq_a * scale, dq_b * scale, A, B, WIDTH)


@triton.jit
def attention_dkv_kernel(
    q_ptr, k_ptr, v_ptr, dout_ptr, highest_ptr, share_ptr, delta_ptr, mask_ptr, bias_ptr, lengths_ptr, q_offsets_ptr, k_offsets_ptr,
    dk_ptr, dv_ptr,
    q_steps, k_steps, v_steps, dout_steps, mask_steps, bias_steps, dk_steps, row_steps,
    sequences, n_queries, n_keys, group, scale, scale_2, power, left, right,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, A: tl.constexpr, B: tl.constexpr, WIDTH: tl.constexpr,
    BATCHED: tl.constexpr, BEHIND: tl.constexpr, AHEAD: tl.constexpr, POSITIVE: tl.constexpr, FAR: tl.constexpr,
):  # fmt: skip
    """dK and dV of a block of keys, summed over the heads of queries that share them."""
    batch, start_n, q_row, k_row, n_queries, all_keys = block_of(
        k_offsets_ptr,
        q_offsets_ptr,
        k_offsets_ptr,
        sequences,
        n_keys,
        n_queries,
        n_keys,
        BLOCK_N,
        BATCHED,
    )
    n_keys = limited(all_keys, lengths_ptr, batch)
    if FAR:
        q_steps, k_steps, v_steps = far_steps(q_steps), far_steps(k_steps), far_steps(v_steps)
        dout_steps, dk_steps = far_steps(dout_steps), far_steps(dk_steps)
    shared, batch = index(tl.program_id(1), FAR), index(batch, FAR)
    q_row, row = index(q_row, FAR), index(k_row + start_n, FAR)
    k_ptr = of_head(k_ptr, batch, shared, row, k_steps)
    v_ptr = of_head(v_ptr, batch, shared, row, v_steps)
    dk_ptr = of_head(dk_ptr, batch, shared, row, dk_steps)
    dv_ptr = of_head(dv_ptr, batch, shared, row, dk_steps)

    rows, keys = tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N)
    n = start_n + keys
    k = load_rows(k_ptr, k_steps[2], keys, n < n_keys, A, B, WIDTH)
    v = load_rows(v_ptr, v_steps[2], keys, n < n_keys, A, B, WIDTH)
    dk_a = tl.zeros((BLOCK_N, A), tl.float32)
    dk_b = tl.zeros((BLOCK_N, B if B else 1), tl.float32)
    dv_a = tl.zeros((BLOCK_N, A), tl.float32)
    dv_b = tl.zeros((BLOCK_N, B if B else 1), tl.float32)
    # The queries that may see one of these keys.
    behind, ahead = n_keys - n_queries - left, n_keys - n_queries + right
    first, last = 0, n_queries
    if AHEAD:
        first = max(0, start_n - ahead) // BLOCK_M * BLOCK_M
    if BEHIND:
        last = min(n_queries, start_n + BLOCK_N - behind)
    last = tl.where(start_n < n_keys, last, 0)
    # Pointers go from row to row and from head to head, so that no registers hold where all heads begin.
    head, begin = shared * group, q_row + first
    q_ptr = of_head(q_ptr, batch, head, begin, q_steps)
    dout_ptr = of_head(dout_ptr, batch, head, begin, dout_steps)
    highest_ptr = of_head(highest_ptr, batch, head, begin, row_steps)
    share_ptr = of_head(share_ptr, batch, head, begin, row_steps)
    delta_ptr = of_head(delta_ptr, batch, head, begin, row_steps)
    mask_head = of_head(mask_ptr, batch, head, 0, mask_steps)
    bias_head = of_head(bias_ptr, batch, head, 0, bias_steps)
    back = max(0, tl.cdiv(last - first, BLOCK_M)) * BLOCK_M
    for _ in range(group):
        for start_m in range(first, last, BLOCK_M):
            m = start_m + rows
            inside = m < n_queries
            q = load_rows(q_ptr, q_steps[2], rows, inside, A, B, WIDTH)
            dout = load_rows(dout_ptr, dout_steps[2], rows, inside, A, B, WIDTH)
            highest = tl.load(highest_ptr + rows, mask=inside, other=0.0)[None, :]
            share = tl.load(share_ptr + rows, mask=inside, other=0.0)[None, :]
            delta = tl.load(delta_ptr + rows, mask=inside, other=0.0)
            dots = products(k, q, B)
            bias = None
            if bias_ptr is not None:
                bias = biases(m[None, :], n[:, None], n_queries, n_keys, bias_head, bias_steps, FAR)
            see = sees(
                m[None, :], n[:, None], n_queries, n_keys, behind, ahead, mask_head, mask_steps,
                BEHIND, AHEAD, FAR,
            )  # fmt: skip
            weights = weights_again(dots, bias, highest, share, scale_2, power, see, POSITIVE)
            change = (weights * (products(v, dout, B) - delta[None, :])).to(q[0].dtype)
            weights = weights.to(q[0].dtype)
            dv_a = tl.dot(weights, dout[0], dv_a, input_precision="ieee")
            dk_a = tl.dot(change, q[0], dk_a, input_precision="ieee")
            if B:
                dv_b = tl.dot(weights, dout[1], dv_b, input_precision="ieee")
                dk_b = tl.dot(change, q[1], dk_b, input_precision="ieee")
            q_ptr += BLOCK_M * index(q_steps[2], FAR)
            dout_ptr += BLOCK_M * index(dout_steps[2], FAR)
            highest_ptr += BLOCK_M
            share_ptr += BLOCK_M
            delta_ptr += BLOCK_M
        q_ptr += index(q_steps[1], FAR) - back * index(q_steps[2], FAR)
        dout_ptr += index(dout_steps[1], FAR) - back * index(dout_steps[2], FAR)
        highest_ptr += row_steps[1] - back
        share_ptr += row_steps[1] - back
        delta_ptr += row_steps[1] - back
        if mask_ptr is not None:
            mask_head += index(mask_steps[1], FAR)
        if bias_ptr is not None:
            bias_head += index(bias_steps[1], FAR)
    inside = n < all_keys
    store_rows(dk_ptr, dk_steps[2], keys, inside, dk_a * scale, dk_b * scale, A, B, WIDTH)
    store_rows(dv_ptr, dk_steps[2], keys, inside, dv_a, dv_b, A, B, WIDTH)


@triton.jit
def attention_dbias_kernel(
    q_ptr, k_ptr, v_ptr, dout_ptr, highest_ptr, share_ptr, delta_ptr, mask_ptr, bias_ptr, lengths_ptr, dbias_ptr,
    q_steps, k_steps, v_steps, dout_steps, mask_steps, bias_steps, dbias_steps, row_steps,
    batches, heads, bias_heads, n_queries, n_keys, group, scale_2, power, left, right,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, A: tl.constexpr, B: tl.constexpr, WIDTH: tl.constexpr,
    SUM_B: tl.constexpr, SUM_H: tl.constexpr, SUM_M: tl.constexpr, SUM_N: tl.constexpr,
    BEHIND: tl.constexpr, AHEAD: tl.constexpr, POSITIVE: tl.constexpr, FAR: tl.constexpr,
):  # fmt: skip
    """dS of a block of queries and keys, summed over each dimension that the bias does not have."""
    if FAR:
        q_steps, k_steps = far_steps(q_steps), far_steps(k_steps)
        v_steps, dout_steps = far_steps(v_steps), far_steps(dout_steps)
    own_head, own_batch = tl.program_id(2) % bias_heads, tl.program_id(2) // bias_heads
    own_m, own_n = tl.program_id(1) * BLOCK_M, tl.program_id(0) * BLOCK_N
    rows, keys = tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for batch in range(0 if SUM_B else own_batch, batches if SUM_B else own_batch + 1):
        batch = tl.cast(batch, tl.int64)
        length = n_keys
        if lengths_ptr is not None:
            length = limited(n_keys, lengths_ptr, batch)
        behind, ahead = length - n_queries - left, length - n_queries + right
        for head in range(0 if SUM_H else own_head, heads if SUM_H else own_head + 1):
            shared, head = tl.cast(head // group, tl.int64), tl.cast(head, tl.int64)
            q_head = of_head(q_ptr, batch, head, 0, q_steps)
            dout_head = of_head(dout_ptr, batch, head, 0, dout_steps)
            k_head = of_head(k_ptr, batch, shared, 0, k_steps)
            v_head = of_head(v_ptr, batch, shared, 0, v_steps)
            bias_head = of_head(bias_ptr, batch, head, 0, bias_steps)
            mask_head = of_head(mask_ptr, batch, head, 0, mask_steps)
            highest_head = of_head(highest_ptr, batch, head, 0, row_steps)
            share_head = of_head(share_ptr, batch, head, 0, row_steps)
            delta_head = of_head(delta_ptr, batch, head, 0, row_steps)
            for start_m in range(0 if SUM_M else own_m, n_queries if SUM_M else own_m + 1, BLOCK_M):
                m = start_m + rows
                inside = m < n_queries
                step = tl.cast(start_m, tl.int64)
                q = load_rows(q_head + step * q_steps[2], q_steps[2], rows, inside, A, B, WIDTH)
                dout = load_rows(
                    dout_head + step * dout_steps[2], dout_steps[2], rows, inside, A, B, WIDTH
                )
                highest = tl.load(highest_head + m, mask=inside, other=0.0)[:, None]
                share = tl.load(share_head + m, mask=inside, other=0.0)[:, None]
                delta = tl.load(delta_head + m, mask=inside, other=0.0)
                for start_n in range(
                    0 if SUM_N else own_n, n_keys if SUM_N else own_n + 1, BLOCK_N
                ):
                    n = start_n + keys
                    step = tl.cast(start_n, tl.int64)
                    seen = n < length
                    k = load_rows(k_head + step * k_steps[2], k_steps[2], keys, seen, A, B, WIDTH)
                    v = load_rows(v_head + step * v_steps[2], v_steps[2], keys, seen, A, B, WIDTH)
                    bias = biases(
                        m[:, None], n[None, :], n_queries, length, bias_head, bias_steps, True
                    )
                    see = sees(
                        m[:, None], n[None, :], n_queries, length, behind, ahead, mask_head, mask_steps,
                        BEHIND, AHEAD, True,
                    )  # fmt: skip
                    weights = weights_again(
                        products(q, k, B), bias, highest, share, scale_2, power, see, POSITIVE
                    )
                    total += weights * (products(dout, v, B) - delta[:, None])
    base = of_head(dbias_ptr, own_batch.to(tl.int64), own_head.to(tl.int64), 0, dbias_steps)
    at_m, at_n = (own_m + rows).to(tl.int64) * dbias_steps[2], own_n + keys
    element = dbias_ptr.dtype.element_ty
    if SUM_M and SUM_N:
        tl.store(base, tl.sum(total).to(element))
    elif SUM_M:
        tl.store(base + at_n, tl.sum(total, axis=0).to(element), mask=at_n < n_keys)
    elif SUM_N:
        tl.store(base + at_m, tl.sum(total, axis=1).to(element), mask=own_m + rows < n_queries)
    else:
        mask = (own_m + rows < n_queries)[:, None] & (at_n < n_keys)[None, :]
        tl.store(base + (at_m[:, None] + at_n[None, :]), total.to(element), mask=mask)


def tiles(
    width: int, dtype: str, biased: bool, masked: bool, shared: bool
) -> tuple[dict[str, int], dict[str, int]]:
    """Blocks of queries and keys, for the gradient of queries, and for that of keys and values, which holds more.

    Those for wide heads, and for heads in two pieces with all options, are the largest of those tried that spill nothing on G13.
    """
    wide, full = width * (2 if dtype == "float32" else 1), biased and masked and shared
    if wide > 256:
        small = {"BLOCK_M": 8, "BLOCK_N": 8}
        return small | {"num_warps": 8 if biased else 4}, small | {"num_warps": 16 if full else 8}
    if wide > 128:
        rows = 16 if (wide <= 160 and not biased) or (dtype == "float32" and not full) else 8
        return (
            {"BLOCK_M": 16, "BLOCK_N": 16, "num_warps": 8},
            {"BLOCK_M": rows, "BLOCK_N": 16, "num_warps": 8},
        )
    keys = 16 if biased and masked and pieces(width)["B"] and width > 64 else 32
    return (
        {"BLOCK_M": 32, "BLOCK_N": keys, "num_warps": 8},
        {"BLOCK_M": 16, "BLOCK_N": 32, "num_warps": 8},
    )


def far_behind(rows: int, *steps: tuple[int, ...]) -> bool:
    """Whether the rows of a block behind the last one are 2^31 elements from the first one: from there a program goes back."""
    return (rows + 16) * max(each[2] for each in steps) >= 1 << 31


def backward(
    dout: Array, q: Array, k: Array, v: Array, out: Array, highest: Array, share: Array,
    mask: Array | None, bias: Array | None, lengths: Array | None,
    left: int, right: int, scale: float, of_bias: bool,
) -> tuple[Array, ...]:  # fmt: skip
    """The gradients of q, k, v and, if it is asked for, of the bias (else an array without elements)."""
    q, k, v, dout = (with_rows(x) for x in (q, k, v, dout))
    (batch, heads, queries, width), (_, kv_heads, keys, _) = q.shape, k.shape
    dtype = dtype_name(q)
    hidden = mask is not None or bias is not None or lengths is not None
    batched, (q_steps, k_steps, v_steps, dout_steps) = arranged(hidden, q, k, v, dout)
    group = heads // max(kv_heads, 1)
    of_queries, of_keys = tiles(width, dtype, bias is not None, mask is not None, group > 1)
    common: dict[str, Any] = {
        "q_ptr": q, "k_ptr": k, "v_ptr": v, "dout_ptr": dout, "highest_ptr": highest, "share_ptr": share,
        "q_steps": q_steps, "k_steps": k_steps, "v_steps": v_steps, "dout_steps": dout_steps,
        "row_steps": (heads * queries, queries, 1),
        "n_queries": queries, "n_keys": keys, "group": group,
        **factors(scale, bias is not None, False), **seen_arguments(mask, bias, lengths, left, right, scale),
        **pieces(width),
    }  # fmt: skip
    both = {
        "q_offsets_ptr": None, "k_offsets_ptr": None, "sequences": 0, "scale": scale,
        "BATCHED": batched,
        "FAR": far(q, k, v, dout, mask, bias) or far_behind(queries, q_steps, dout_steps),
    }  # fmt: skip
    block_m, block_n = of_queries["BLOCK_M"], of_queries["BLOCK_N"]
    dq, delta = launch(
        attention_dq_kernel, grid_of(triton.cdiv(queries, block_m), heads, batch, batched),
        {"dq_ptr": (q.shape, dtype), "delta_ptr": (highest.shape, "float32")},
        like=q, out_ptr=out, out_steps=plain_steps(q.shape)[:3], **common, **both, **of_queries,
    )  # fmt: skip
    dk, dv = launch(
        attention_dkv_kernel, grid_of(triton.cdiv(keys, of_keys["BLOCK_N"]), kv_heads, batch, batched),
        {"dk_ptr": (k.shape, dtype), "dv_ptr": (k.shape, dtype)},
        like=q, delta_ptr=delta, dk_steps=plain_steps(k.shape)[:3], **common, **both, **of_keys,
    )  # fmt: skip
    if not of_bias or bias is None:
        return dq, dk, dv, empty((0,), "float32", q)
    own = dict(zip("BHMN", bias.shape, strict=True))
    (dbias,) = launch(
        attention_dbias_kernel,
        (triton.cdiv(own["N"], block_n), triton.cdiv(own["M"], block_m), own["B"] * own["H"]),
        {"dbias_ptr": (bias.shape, dtype_name(bias))},
        like=q, delta_ptr=delta, dbias_steps=plain_steps(bias.shape), batches=batch, heads=heads,
        bias_heads=own["H"], FAR=both["FAR"], **{f"SUM_{name}": n == 1 for name, n in own.items()}, **common, **of_queries,
    )  # fmt: skip
    return dq, dk, dv, dbias


def backward_packed(
    dout: Array, q: Array, k: Array, v: Array, out: Array, highest: Array, share: Array, q_offsets: Array, k_offsets: Array,
    left: int, right: int, scale: float,
) -> tuple[Array, ...]:  # fmt: skip
    """The gradients of packed q, k and v."""
    q, k, v, dout = (with_rows(x) for x in (q, k, v, dout))
    (queries, heads, width), (keys, kv_heads, _), count = q.shape, k.shape, q_offsets.shape[0] - 1
    dtype = dtype_name(q)
    of_queries, of_keys = tiles(width, dtype, False, False, heads > kv_heads)
    common: dict[str, Any] = {
        "q_ptr": q, "k_ptr": k, "v_ptr": v, "dout_ptr": dout, "highest_ptr": highest, "share_ptr": share,
        "q_offsets_ptr": q_offsets, "k_offsets_ptr": k_offsets,
        "q_steps": packed_steps(q), "k_steps": packed_steps(k), "v_steps": packed_steps(v),
        "dout_steps": packed_steps(dout), "row_steps": (0, queries, 1),
        "sequences": count, "n_queries": queries, "n_keys": keys, "group": heads // max(kv_heads, 1),
        "scale": scale, "BATCHED": False,
        "FAR": far(q, k, v, dout) or far_behind(queries, packed_steps(q), packed_steps(dout)),
        **factors(scale, False, False), **seen_arguments(None, None, None, left, right, scale),
        **pieces(width),
    }  # fmt: skip
    blocks = [
        rows // block + count if rows and count else 0
        for rows, block in ((queries, of_queries["BLOCK_M"]), (keys, of_keys["BLOCK_N"]))
    ]
    dq, delta = launch(
        attention_dq_kernel, (blocks[0], heads, 1),
        {"dq_ptr": (q.shape, dtype), "delta_ptr": (highest.shape, "float32")},
        like=q, fill=0, out_ptr=out, out_steps=(0, width, heads * width), **common, **of_queries,
    )  # fmt: skip
    dk, dv = launch(
        attention_dkv_kernel, (blocks[1], kv_heads, 1),
        {"dk_ptr": (k.shape, dtype), "dv_ptr": (k.shape, dtype)},
        like=q, fill=0, delta_ptr=delta, dk_steps=(0, width, kv_heads * width), **common, **of_keys,
    )  # fmt: skip
    return dq, dk, dv
