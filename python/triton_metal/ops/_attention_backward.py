"""The gradient of attention: one kernel for that of the queries, one for those of keys and values, one for that of a bias.

With scores S, weights P = 2^(S - lse) and dP = dO Vᵀ, the gradient of the scores is dS = P (dP - δ), where δ = Σ dO O of each
row. Then dQ = scale dS K, dK = scale dSᵀ Q and dV = Pᵀ dO. Each program computes the scores that it needs again and adds up its
own block in a fixed order, over the heads that share keys too, so that results are the same each time.
"""

from __future__ import annotations

from typing import Any

import triton_metal as triton
import triton_metal.language as tl

from ._arrays import Array, dtype_name, empty
from ._attention_forward import (
    biases,
    far,
    find_block,
    load_rows,
    packed_steps,
    pieces,
    plain_steps,
    products,
    row_ptrs,
    seen_arguments,
    sees,
    span,
    steps_of,
    store_rows,
    with_rows,
)
from ._launch import launch


@triton.jit
def attention_dq_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, dout_ptr, lse_ptr, mask_ptr, bias_ptr, lengths_ptr, q_offsets_ptr, k_offsets_ptr,
    dq_ptr, delta_ptr,
    q_steps, k_steps, v_steps, dout_steps, mask_steps, bias_steps, out_steps, lse_steps,
    sequences, n_queries, n_keys, group, scale, scale_2, left, right,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, A: tl.constexpr, B: tl.constexpr, WIDTH: tl.constexpr,
    BEHIND: tl.constexpr, AHEAD: tl.constexpr, FAR: tl.constexpr,
):  # fmt: skip
    """dQ of a block of queries, and their δ."""
    head, batch, start_m = tl.program_id(1), tl.program_id(2), tl.program_id(0) * BLOCK_M
    q_row, k_row = 0, 0
    if q_offsets_ptr is not None:
        batch, start_m = find_block(q_offsets_ptr, sequences, tl.program_id(0), BLOCK_M)
        q_row, n_queries = span(q_offsets_ptr, batch, n_queries)
        k_row, n_keys = span(k_offsets_ptr, batch, n_keys)
    if lengths_ptr is not None:
        n_keys = min(max(tl.load(lengths_ptr + batch).to(tl.int32), 0), n_keys)
    shared, head, batch = (head // group).to(tl.int64), head.to(tl.int64), batch.to(tl.int64)
    row = (q_row + start_m).to(tl.int64)
    q_ptr += batch * q_steps[0] + head * q_steps[1] + row * q_steps[2]
    dout_ptr += batch * dout_steps[0] + head * dout_steps[1] + row * dout_steps[2]
    at = batch * out_steps[0] + head * out_steps[1] + row * out_steps[2]
    at_row = batch * lse_steps[0] + head * lse_steps[1] + row
    k_ptr += batch * k_steps[0] + shared * k_steps[1] + tl.cast(k_row, tl.int64) * k_steps[2]
    v_ptr += batch * v_steps[0] + shared * v_steps[1] + tl.cast(k_row, tl.int64) * v_steps[2]
    if mask_ptr is not None:
        mask_ptr += batch * mask_steps[0] + head * mask_steps[1]
    if bias_ptr is not None:
        bias_ptr += batch * bias_steps[0] + head * bias_steps[1]

    rows, keys = tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N)
    m = start_m + rows
    inside = m < n_queries
    q = load_rows(row_ptrs(q_ptr, q_steps[2], rows, A, B), 0, inside, A, B, WIDTH)
    dout = load_rows(row_ptrs(dout_ptr, dout_steps[2], rows, A, B), 0, inside, A, B, WIDTH)
    out = load_rows(row_ptrs(out_ptr + at, out_steps[2], rows, A, B), 0, inside, A, B, WIDTH)
    delta = tl.sum(out[0].to(tl.float32) * dout[0].to(tl.float32), axis=1)
    if B:
        delta += tl.sum(out[1].to(tl.float32) * dout[1].to(tl.float32), axis=1)
    tl.store(delta_ptr + at_row + rows, delta, mask=inside)
    lse = tl.load(lse_ptr + at_row + rows, mask=inside, other=float("inf"))

    behind, ahead = n_keys - n_queries - left, n_keys - n_queries + right
    first, last = 0, n_keys
    if BEHIND:
        first = max(0, start_m + behind) // BLOCK_N * BLOCK_N
    if AHEAD:
        last = min(n_keys, start_m + BLOCK_M + ahead)
    if q_offsets_ptr is not None:
        last = tl.where(start_m < n_queries, last, 0)
    k_ptrs = row_ptrs(k_ptr, k_steps[2], keys, A, B)
    v_ptrs = row_ptrs(v_ptr, v_steps[2], keys, A, B)
    dq_a = tl.zeros((BLOCK_M, A), tl.float32)
    dq_b = tl.zeros((BLOCK_M, B if B else 1), tl.float32)
    for start_n in range(first, last, BLOCK_N):
        n = start_n + keys
        step = tl.cast(start_n, tl.int64) if FAR else start_n
        k = load_rows(k_ptrs, step * k_steps[2], n < n_keys, A, B, WIDTH)
        v = load_rows(v_ptrs, step * v_steps[2], n < n_keys, A, B, WIDTH)
        scores = products(q, k, B) * scale_2
        if bias_ptr is not None:
            scores += biases(m[:, None], n[None, :], n_queries, n_keys, bias_ptr, bias_steps)
        see = sees(
            m[:, None], n[None, :], n_queries, n_keys, behind, ahead, mask_ptr, mask_steps, BEHIND, AHEAD
        )  # fmt: skip
        weights = tl.where(see, tl.exp2(scores - lse[:, None]), 0.0)
        change = (weights * (products(dout, v, B) - delta[:, None])).to(k[0].dtype)
        dq_a = tl.dot(change, k[0], dq_a, input_precision="ieee")
        if B:
            dq_b = tl.dot(change, k[1], dq_b, input_precision="ieee")
    store_rows(dq_ptr + at, out_steps[2], rows, inside, dq_a * scale, dq_b * scale, A, B, WIDTH)


@triton.jit
def attention_dkv_kernel(
    q_ptr, k_ptr, v_ptr, dout_ptr, lse_ptr, delta_ptr, mask_ptr, bias_ptr, lengths_ptr, q_offsets_ptr, k_offsets_ptr,
    dk_ptr, dv_ptr,
    q_steps, k_steps, v_steps, dout_steps, mask_steps, bias_steps, dk_steps, lse_steps,
    sequences, n_queries, n_keys, group, scale, scale_2, left, right,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, A: tl.constexpr, B: tl.constexpr, WIDTH: tl.constexpr,
    BEHIND: tl.constexpr, AHEAD: tl.constexpr, FAR: tl.constexpr,
):  # fmt: skip
    """dK and dV of a block of keys, summed over the heads of queries that share them."""
    shared, batch, start_n = tl.program_id(1), tl.program_id(2), tl.program_id(0) * BLOCK_N
    q_row, k_row = 0, 0
    if q_offsets_ptr is not None:
        batch, start_n = find_block(k_offsets_ptr, sequences, tl.program_id(0), BLOCK_N)
        q_row, n_queries = span(q_offsets_ptr, batch, n_queries)
        k_row, n_keys = span(k_offsets_ptr, batch, n_keys)
    all_keys = n_keys
    if lengths_ptr is not None:
        n_keys = min(max(tl.load(lengths_ptr + batch).to(tl.int32), 0), n_keys)
    shared, batch = shared.to(tl.int64), batch.to(tl.int64)
    row = (k_row + start_n).to(tl.int64)
    k_ptr += batch * k_steps[0] + shared * k_steps[1] + row * k_steps[2]
    v_ptr += batch * v_steps[0] + shared * v_steps[1] + row * v_steps[2]
    at = batch * dk_steps[0] + shared * dk_steps[1] + row * dk_steps[2]

    rows, keys = tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N)
    n = start_n + keys
    k = load_rows(row_ptrs(k_ptr, k_steps[2], keys, A, B), 0, n < n_keys, A, B, WIDTH)
    v = load_rows(row_ptrs(v_ptr, v_steps[2], keys, A, B), 0, n < n_keys, A, B, WIDTH)
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
    for head in range(shared * group, (shared + 1) * group):
        head = tl.cast(head, tl.int64)
        q_head = q_ptr + (
            batch * q_steps[0] + head * q_steps[1] + tl.cast(q_row, tl.int64) * q_steps[2]
        )
        dout_head = dout_ptr + (
            batch * dout_steps[0] + head * dout_steps[1] + tl.cast(q_row, tl.int64) * dout_steps[2]
        )
        at_head = batch * lse_steps[0] + head * lse_steps[1] + q_row
        q_ptrs = row_ptrs(q_head, q_steps[2], rows, A, B)
        dout_ptrs = row_ptrs(dout_head, dout_steps[2], rows, A, B)
        for start_m in range(first, last, BLOCK_M):
            m = start_m + rows
            inside = m < n_queries
            step = tl.cast(start_m, tl.int64) if FAR else start_m
            q = load_rows(q_ptrs, step * q_steps[2], inside, A, B, WIDTH)
            dout = load_rows(dout_ptrs, step * dout_steps[2], inside, A, B, WIDTH)
            lse = tl.load(lse_ptr + at_head + m, mask=inside, other=float("inf"))
            delta = tl.load(delta_ptr + at_head + m, mask=inside, other=0.0)
            scores = products(k, q, B) * scale_2
            if bias_ptr is not None:
                base = bias_ptr + (batch * bias_steps[0] + head * bias_steps[1])
                scores += biases(m[None, :], n[:, None], n_queries, n_keys, base, bias_steps)
            base = mask_ptr
            if mask_ptr is not None:
                base = mask_ptr + (batch * mask_steps[0] + head * mask_steps[1])
            see = sees(
                m[None, :], n[:, None], n_queries, n_keys, behind, ahead, base, mask_steps, BEHIND, AHEAD
            )  # fmt: skip
            weights = tl.where(see, tl.exp2(scores - lse[None, :]), 0.0)
            change = (weights * (products(v, dout, B) - delta[None, :])).to(q[0].dtype)
            weights = weights.to(q[0].dtype)
            dv_a = tl.dot(weights, dout[0], dv_a, input_precision="ieee")
            dk_a = tl.dot(change, q[0], dk_a, input_precision="ieee")
            if B:
                dv_b = tl.dot(weights, dout[1], dv_b, input_precision="ieee")
                dk_b = tl.dot(change, q[1], dk_b, input_precision="ieee")
    inside = n < all_keys
    store_rows(dk_ptr + at, dk_steps[2], keys, inside, dk_a * scale, dk_b * scale, A, B, WIDTH)
    store_rows(dv_ptr + at, dk_steps[2], keys, inside, dv_a, dv_b, A, B, WIDTH)


@triton.jit
def attention_dbias_kernel(
    q_ptr, k_ptr, v_ptr, dout_ptr, lse_ptr, delta_ptr, mask_ptr, bias_ptr, lengths_ptr, dbias_ptr,
    q_steps, k_steps, v_steps, dout_steps, mask_steps, bias_steps, dbias_steps, lse_steps,
    batches, heads, bias_heads, n_queries, n_keys, group, scale_2, left, right,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, A: tl.constexpr, B: tl.constexpr, WIDTH: tl.constexpr,
    SUM_B: tl.constexpr, SUM_H: tl.constexpr, SUM_M: tl.constexpr, SUM_N: tl.constexpr,
    BEHIND: tl.constexpr, AHEAD: tl.constexpr,
):  # fmt: skip
    """dS of a block of queries and keys, summed over each dimension that the bias does not have."""
    own_head, own_batch = tl.program_id(2) % bias_heads, tl.program_id(2) // bias_heads
    own_m, own_n = tl.program_id(1) * BLOCK_M, tl.program_id(0) * BLOCK_N
    rows, keys = tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for batch in range(0 if SUM_B else own_batch, batches if SUM_B else own_batch + 1):
        batch = tl.cast(batch, tl.int64)
        length = n_keys
        if lengths_ptr is not None:
            length = min(max(tl.load(lengths_ptr + batch).to(tl.int32), 0), n_keys)
        behind, ahead = length - n_queries - left, length - n_queries + right
        for head in range(0 if SUM_H else own_head, heads if SUM_H else own_head + 1):
            shared, head = tl.cast(head // group, tl.int64), tl.cast(head, tl.int64)
            q_head = q_ptr + (batch * q_steps[0] + head * q_steps[1])
            dout_head = dout_ptr + (batch * dout_steps[0] + head * dout_steps[1])
            k_head = k_ptr + (batch * k_steps[0] + shared * k_steps[1])
            v_head = v_ptr + (batch * v_steps[0] + shared * v_steps[1])
            bias_head = bias_ptr + (batch * bias_steps[0] + head * bias_steps[1])
            mask_head = mask_ptr
            if mask_ptr is not None:
                mask_head = mask_ptr + (batch * mask_steps[0] + head * mask_steps[1])
            q_ptrs = row_ptrs(q_head, q_steps[2], rows, A, B)
            dout_ptrs = row_ptrs(dout_head, dout_steps[2], rows, A, B)
            for start_m in range(0 if SUM_M else own_m, n_queries if SUM_M else own_m + 1, BLOCK_M):
                m = start_m + rows
                inside = m < n_queries
                step = tl.cast(start_m, tl.int64)
                q = load_rows(q_ptrs, step * q_steps[2], inside, A, B, WIDTH)
                dout = load_rows(dout_ptrs, step * dout_steps[2], inside, A, B, WIDTH)
                at = batch * lse_steps[0] + head * lse_steps[1] + m
                lse = tl.load(lse_ptr + at, mask=inside, other=float("inf"))
                delta = tl.load(delta_ptr + at, mask=inside, other=0.0)
                for start_n in range(
                    0 if SUM_N else own_n, n_keys if SUM_N else own_n + 1, BLOCK_N
                ):
                    n = start_n + keys
                    step = tl.cast(start_n, tl.int64)
                    k = load_rows(
                        row_ptrs(k_head + step * k_steps[2], k_steps[2], keys, A, B),
                        0,
                        n < length,
                        A,
                        B,
                        WIDTH,
                    )
                    v = load_rows(
                        row_ptrs(v_head + step * v_steps[2], v_steps[2], keys, A, B),
                        0,
                        n < length,
                        A,
                        B,
                        WIDTH,
                    )
                    scores = products(q, k, B) * scale_2
                    scores += biases(
                        m[:, None], n[None, :], n_queries, length, bias_head, bias_steps
                    )
                    see = sees(
                        m[:, None], n[None, :], n_queries, length, behind, ahead, mask_head, mask_steps,
                        BEHIND, AHEAD,
                    )  # fmt: skip
                    weights = tl.where(see, tl.exp2(scores - lse[:, None]), 0.0)
                    total += weights * (products(dout, v, B) - delta[:, None])
    base = (
        dbias_ptr + own_batch.to(tl.int64) * dbias_steps[0] + own_head.to(tl.int64) * dbias_steps[1]
    )
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


def tiles(width: int, dtype: str) -> tuple[dict[str, int], dict[str, int]]:
    """Blocks of queries and keys, for the gradient of queries, and for that of keys and values, which holds more."""
    wide = width * (2 if dtype == "float32" else 1)
    if wide > 256:
        return ({"BLOCK_M": 8, "BLOCK_N": 8, "num_warps": 4},) * 2
    if wide > 128:
        return ({"BLOCK_M": 16, "BLOCK_N": 16, "num_warps": 8},) * 2
    return (
        {"BLOCK_M": 32, "BLOCK_N": 32, "num_warps": 8},
        {"BLOCK_M": 16, "BLOCK_N": 32, "num_warps": 8},
    )


def backward(
    dout: Array, q: Array, k: Array, v: Array, out: Array, lse: Array,
    mask: Array | None, bias: Array | None, lengths: Array | None,
    left: int, right: int, scale: float, of_bias: bool,
) -> tuple[Array, ...]:  # fmt: skip
    """The gradients of q, k, v and, if it is asked for, of the bias (else an array without elements)."""
    q, k, v, dout = (with_rows(x) for x in (q, k, v, dout))
    (batch, heads, queries, width), (_, kv_heads, keys, _) = q.shape, k.shape
    dtype = dtype_name(q)
    of_queries, of_keys = tiles(width, dtype)
    common: dict[str, Any] = {
        "q_ptr": q, "k_ptr": k, "v_ptr": v, "dout_ptr": dout, "lse_ptr": lse,
        "q_steps": steps_of(q)[:3], "k_steps": steps_of(k)[:3], "v_steps": steps_of(v)[:3],
        "dout_steps": steps_of(dout)[:3], "lse_steps": (heads * queries, queries),
        "n_queries": queries, "n_keys": keys, "group": heads // max(kv_heads, 1),
        **seen_arguments(mask, bias, lengths, left, right, scale),
        **pieces(width),
    }  # fmt: skip
    both = {
        "q_offsets_ptr": None, "k_offsets_ptr": None, "sequences": 0, "scale": scale,
        "FAR": far(q, k, v, dout),
    }  # fmt: skip
    block_m, block_n = of_queries["BLOCK_M"], of_queries["BLOCK_N"]
    dq, delta = launch(
        attention_dq_kernel, (triton.cdiv(queries, block_m), heads, batch),
        {"dq_ptr": (q.shape, dtype), "delta_ptr": (lse.shape, "float32")},
        like=q, out_ptr=out, out_steps=plain_steps(q.shape)[:3], **common, **both, **of_queries,
    )  # fmt: skip
    dk, dv = launch(
        attention_dkv_kernel, (triton.cdiv(keys, of_keys["BLOCK_N"]), kv_heads, batch),
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
        bias_heads=own["H"], **{f"SUM_{name}": n == 1 for name, n in own.items()}, **common, **of_queries,
    )  # fmt: skip
    return dq, dk, dv, dbias


def backward_packed(
    dout: Array, q: Array, k: Array, v: Array, out: Array, lse: Array, q_offsets: Array, k_offsets: Array,
    left: int, right: int, scale: float,
) -> tuple[Array, ...]:  # fmt: skip
    """The gradients of packed q, k and v."""
    q, k, v, dout = (with_rows(x) for x in (q, k, v, dout))
    (queries, heads, width), (keys, kv_heads, _), count = q.shape, k.shape, q_offsets.shape[0] - 1
    dtype = dtype_name(q)
    of_queries, of_keys = tiles(width, dtype)
    common: dict[str, Any] = {
        "q_ptr": q, "k_ptr": k, "v_ptr": v, "dout_ptr": dout, "lse_ptr": lse,
        "q_offsets_ptr": q_offsets, "k_offsets_ptr": k_offsets,
        "q_steps": packed_steps(q), "k_steps": packed_steps(k), "v_steps": packed_steps(v),
        "dout_steps": packed_steps(dout), "lse_steps": (0, queries),
        "sequences": count, "n_queries": queries, "n_keys": keys, "group": heads // max(kv_heads, 1),
        "scale": scale, "FAR": far(q, k, v, dout),
        **seen_arguments(None, None, None, left, right, scale),
        **pieces(width),
    }  # fmt: skip
    blocks = [
        rows // block + count if rows and count else 0
        for rows, block in ((queries, of_queries["BLOCK_M"]), (keys, of_keys["BLOCK_N"]))
    ]
    dq, delta = launch(
        attention_dq_kernel, (blocks[0], heads, 1),
        {"dq_ptr": (q.shape, dtype), "delta_ptr": (lse.shape, "float32")},
        like=q, fill=0, out_ptr=out, out_steps=(0, width, heads * width), **common, **of_queries,
    )  # fmt: skip
    dk, dv = launch(
        attention_dkv_kernel, (blocks[1], kv_heads, 1),
        {"dk_ptr": (k.shape, dtype), "dv_ptr": (k.shape, dtype)},
        like=q, fill=0, delta_ptr=delta, dk_steps=(0, width, kv_heads * width), **common, **of_keys,
    )  # fmt: skip
    return dq, dk, dv
