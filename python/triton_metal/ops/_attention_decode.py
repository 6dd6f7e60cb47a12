"""Attention of few queries over many keys, as in generation: the keys that a query sees are split between programs.

A program of one SIMD-group takes one query and one part of its keys, and reads key after key; a second launch joins the parts. Keys and
values lie in one block of memory, or in pages that a table lists for each sequence.
"""

from __future__ import annotations

from typing import Any

import triton_metal as triton
import triton_metal.language as tl

from ._arrays import Array, contiguous, dtype_name, size_of
from ._attention_parts import LOWEST, seen_arguments, steps_of, with_rows
from ._decode_family import groups_to_join, parts_and_groups
from ._far import FAR_FROM, far, index
from ._launch import launch
from ._pieces import in_float32, load_pieces, pieces, places_of, store_pieces


@triton.jit
def zeros_at(places):
    found = ()
    for i in tl.static_range(len(places)):
        found = found + (tl.zeros(places[i].shape, tl.float32),)
    return found


@triton.jit
def sum_of_products(a, b):
    total = tl.sum(a[0] * b[0], axis=1)
    for i in tl.static_range(1, len(a)):
        total += tl.sum(a[i] * b[i], axis=1)
    return tl.sum(total, axis=0)


@triton.jit
def faded(acc, fade, weight, v):
    """acc fade + weight v."""
    found = ()
    for i in tl.static_range(len(acc)):
        found = found + (acc[i] * fade + weight * v[i],)
    return found


@triton.jit
def decode_kernel(
    q_ptr, k_ptr, v_ptr, mask_ptr, bias_ptr, lengths_ptr, table_ptr, acc_ptr, highest_ptr, total_ptr,
    q_steps, k_steps, v_steps, mask_steps, bias_steps, table_step,
    n_queries, n_keys, n_pages, group, scale_2, left, right,
    PAGE: tl.constexpr, WIDTHS: tl.constexpr, UNIT: tl.constexpr, WIDTH: tl.constexpr,
    BEHIND: tl.constexpr, AHEAD: tl.constexpr, FAR: tl.constexpr,
):  # fmt: skip
    """One part of one query's keys: Σ 2^(score - highest) V, the highest score and Σ 2^(score - highest)."""
    row, batch = tl.program_id(0), tl.program_id(2).to(tl.int64)
    part, parts = tl.program_id(1), tl.num_programs(1)
    head, m = row // n_queries, row % n_queries
    shared, head = (head // group).to(tl.int64), head.to(tl.int64)
    columns, inside = places_of(WIDTH, WIDTHS, UNIT)
    at = batch * q_steps[0] + head * q_steps[1] + m.to(tl.int64) * q_steps[2]
    q = in_float32(load_pieces(q_ptr + at, columns, inside, 0.0))
    if lengths_ptr is not None:
        n_keys = min(max(tl.load(lengths_ptr + batch), 0), n_keys).to(tl.int32)
    k_ptr += shared * k_steps[1]
    v_ptr += shared * v_steps[1]
    if table_ptr is None:
        k_ptr += batch * k_steps[0]
        v_ptr += batch * v_steps[0]
    else:
        table_ptr += batch * table_step
    if mask_ptr is not None:
        mask_ptr += batch * mask_steps[0] + head * mask_steps[1] + m.to(tl.int64) * mask_steps[2]
    if bias_ptr is not None:
        bias_ptr += batch * bias_steps[0] + head * bias_steps[1] + m.to(tl.int64) * bias_steps[2]

    low, high = 0, n_keys
    if BEHIND:
        low = max(0, n_keys - n_queries + m - left)
    if AHEAD:
        high = min(n_keys, n_keys - n_queries + m + right + 1)
    each = tl.cdiv(max(high - low, 0), parts)
    first = low + part * each
    if table_ptr is None:
        k_ptr += tl.cast(first, tl.int64) * k_steps[2]
        v_ptr += tl.cast(first, tl.int64) * v_steps[2]
    highest = LOWEST
    total = 0.0
    acc = zeros_at(columns)
    for n in range(first, min(high, first + each)):
        k_row, v_row = k_ptr, v_ptr
        if table_ptr is None:
            k_ptr += k_steps[2]
            v_ptr += v_steps[2]
        else:
            page = tl.load(table_ptr + n // PAGE).to(tl.int64)
            page = min(max(page, 0), n_pages - 1)
            k_row += page * k_steps[0] + index(n % PAGE, FAR) * k_steps[2]
            v_row += page * v_steps[0] + index(n % PAGE, FAR) * v_steps[2]
        k = in_float32(load_pieces(k_row, columns, inside, 0.0))
        v = in_float32(load_pieces(v_row, columns, inside, 0.0))
        # Scaled here, not in q: keys whose products are equal have equal scores, however large.
        score = sum_of_products(q, k) * scale_2
        if bias_ptr is not None:
            at_bias = bias_ptr + index(n, FAR) * bias_steps[3]
            score += tl.load(at_bias).to(tl.float32) * 1.4426950408889634
        if mask_ptr is not None:
            at_mask = mask_ptr + index(n, FAR) * mask_steps[3]
            score = tl.where(tl.load(at_mask) != 0, score, -float("inf"))
        higher = max(highest, score)
        weight = tl.exp2(score - higher)
        fade = tl.exp2(highest - higher)
        total = total * fade + weight
        acc = faded(acc, fade, weight, v)
        highest = higher
    place = (batch * tl.num_programs(0) + row) * parts + part
    store_pieces(acc_ptr + place * WIDTH, columns, inside, acc)
    tl.store(highest_ptr + place, highest)
    tl.store(total_ptr + place, total)


@triton.jit
def join_kernel(
    acc_ptr, highest_ptr, total_ptr, out_ptr,
    PARTS: tl.constexpr, BLOCK: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """The result of one query from those of all parts of its keys."""
    query, columns = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    place = query * PARTS + tl.arange(0, PARTS)
    highest = tl.load(highest_ptr + place)
    top = tl.max(highest, axis=0)
    weights = tl.exp2(highest - top)
    total = tl.sum(weights * tl.load(total_ptr + place), axis=0)
    mask = (columns < WIDTH)[None, :]
    acc = tl.load(acc_ptr + (place[:, None] * WIDTH + columns[None, :]), mask=mask, other=0.0)
    result = tl.sum(weights[:, None] * acc, axis=0) * tl.where(
        total == 0, 0.0, tl.div_rn(1.0, total)
    )
    tl.store(
        out_ptr + query * WIDTH + columns, result.to(out_ptr.dtype.element_ty), mask=columns < WIDTH
    )


def _pieces_of(width: int, groups: int) -> dict[str, Any]:
    """The pieces of a row of a head. Three neighbours of a thread are read one by one, which GPUs do at once."""
    made = pieces(width, least=32 * groups)
    return made | {"WIDTHS": (1, 1, 1)} if width == 3 * made["UNIT"] else made


def suits(queries: int, group: int) -> bool:
    """Whether so few queries share keys that each of them reads the keys by itself."""
    return queries <= 8 and queries * group <= 32


def decode(
    q: Array, k: Array, v: Array, mask: Array | None, bias: Array | None, lengths: Array | None,
    left: int, right: int, scale: float, table: Array | None = None,
) -> tuple[Array, ...]:  # fmt: skip
    """The result of (batch, heads, rows, width).

    With a table, k and v are pages (pages, rows of one page, heads, width).
    """
    q, k, v = with_rows(q), with_rows(k), with_rows(v)
    batch, heads, queries, width = q.shape
    k_steps, v_steps = steps_of(k)[:3], steps_of(v)[:3]
    if table is None:
        kv_heads, keys, page = k.shape[1], k.shape[2], 1
    else:
        table = contiguous(table)
        kv_heads, page, keys = k.shape[2], k.shape[1], table.shape[1] * k.shape[1]
        k_steps, v_steps = ((each[0], each[2], each[1]) for each in (k_steps, v_steps))
    # Pointers go from key to key; from a page's first one an offset leads to the others.
    across = (page - 1) * max(k_steps[2], v_steps[2])
    rows, block = heads * queries, max(16, triton.next_power_of_2(width))
    parts, groups = parts_and_groups(q, batch * kv_heads, batch * rows, keys, left, right)
    acc, highest, total = launch(
        decode_kernel, (rows, parts, batch),
        {
            "acc_ptr": ((batch, heads, queries, parts, width), "float32"),
            "highest_ptr": ((batch, heads, queries, parts), "float32"),
            "total_ptr": ((batch, heads, queries, parts), "float32"),
        },
        like=q, q_ptr=q, k_ptr=k, v_ptr=v, table_ptr=table,
        q_steps=steps_of(q)[:3], k_steps=k_steps, v_steps=v_steps,
        table_step=0 if table is None else table.shape[1],
        n_queries=queries, n_keys=keys, n_pages=k.shape[0], group=heads // max(kv_heads, 1),
        PAGE=page, WIDTH=width, FAR=far(mask, bias) or across >= FAR_FROM, **_pieces_of(width, groups),
        **seen_arguments(mask, bias, lengths, left, right, scale),
    )  # fmt: skip
    return launch(
        join_kernel, (size_of(q.shape[:3]),), {"out_ptr": (q.shape, dtype_name(q))}, like=q,
        acc_ptr=acc, highest_ptr=highest, total_ptr=total, PARTS=parts,
        BLOCK=block, WIDTH=width, num_warps=groups_to_join(parts, block),
    )  # fmt: skip
