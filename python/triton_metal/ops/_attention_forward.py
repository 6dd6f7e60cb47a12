"""The kernel of attention: a program owns a block of queries of one head and walks over the keys that they see.

The scores of one block of keys live in registers only: they become weights relative to the highest score so far, and what
was summed before is scaled down whenever a higher one comes. A head whose width is no power of two is two pieces, such as
64 + 16. Sequences lie in batches, or packed one behind the other, where cumulative offsets tell where each begins.

Scores are to base 2, so that the exponential is one instruction: log2(e) is in ``scale_2``. What is kept for the gradient
is log2 Σ 2^score of each row, and +inf for a row that sees no key, so that all its weights are 0.
"""

from __future__ import annotations

from typing import Any

import triton_metal as triton
import triton_metal.language as tl

from ._arrays import Array, contiguous, dtype_name, is_mlx, is_torch, size_of, strides
from ._launch import Spec, launch

LOG2_E = 1.4426950408889634


@triton.jit
def find_block(offsets_ptr, sequences, block, BLOCK: tl.constexpr):
    """The sequence and the first row in it of a block, where every sequence of packed rows begins a new block.

    A sequence has at most one block more than its share of all rows, so that these numbers of blocks grow from sequence to
    sequence, and the search finds the last one that begins at or before this block.
    """
    origin = tl.load(offsets_ptr).to(tl.int32)
    low, high = 0, sequences
    while low < high:
        middle = (low + high) // 2
        if (tl.load(offsets_ptr + middle).to(tl.int32) - origin) // BLOCK + middle <= block:
            low = middle + 1
        else:
            high = middle
    sequence = low - 1
    before = (tl.load(offsets_ptr + sequence).to(tl.int32) - origin) // BLOCK + sequence
    return sequence, (block - before) * BLOCK


@triton.jit
def span(offsets_ptr, sequence, rows):
    """The first row of a packed sequence and how many it has, within the rows that there are."""
    first = tl.load(offsets_ptr + sequence).to(tl.int32)
    first = min(max(first, 0), rows)
    last = tl.load(offsets_ptr + sequence + 1).to(tl.int32)
    return first, min(max(last, first), rows) - first


@triton.jit
def row_ptrs(base, step, rows, A: tl.constexpr, B: tl.constexpr):
    """Pointers to a block of rows in two pieces of A and B columns; the second is the first where B is 0."""
    at, columns = rows[:, None] * step, tl.arange(0, A)[None, :]
    if B:
        return base + (at + columns), base + (at + (A + tl.arange(0, B))[None, :])
    ptrs = base + at + columns
    return ptrs, ptrs


@triton.jit
def piece_mask(inside, FIRST: tl.constexpr, PIECE: tl.constexpr, WIDTH: tl.constexpr):
    """Which elements of a piece there are."""
    mask = inside[:, None]
    if FIRST + PIECE > WIDTH:
        mask = mask & (FIRST + tl.arange(0, PIECE) < WIDTH)[None, :]
    return mask


@triton.jit
def load_rows(ptrs, shift, inside, A: tl.constexpr, B: tl.constexpr, WIDTH: tl.constexpr):
    """A block of rows in two pieces, `shift` elements behind the pointers."""
    a = tl.load(ptrs[0] + shift, mask=piece_mask(inside, 0, A, WIDTH), other=0.0)
    if B:
        return a, tl.load(ptrs[1] + shift, mask=piece_mask(inside, A, B, WIDTH), other=0.0)
    return a, a


@triton.jit
def products(x, y, B: tl.constexpr):
    """x yᵀ of rows in two pieces."""
    # Both are turned before the first product, so that they are staged together.
    a, b = tl.trans(y[0]), tl.trans(y[1])
    dots = tl.dot(x[0], a, input_precision="ieee")
    if B:
        dots = tl.dot(x[1], b, dots, input_precision="ieee")
    return dots


@triton.jit
def store_rows(
    base, step, rows, inside, a, b, A: tl.constexpr, B: tl.constexpr, WIDTH: tl.constexpr
):
    """Stores rows in two pieces, converted to the elements of `base`."""
    ptrs = row_ptrs(base, step, rows, A, B)
    element = base.dtype.element_ty
    tl.store(ptrs[0], a.to(element), mask=piece_mask(inside, 0, A, WIDTH))
    if B:
        tl.store(ptrs[1], b.to(element), mask=piece_mask(inside, A, B, WIDTH))


@triton.jit
def sees(
    m,
    n,
    n_queries,
    n_keys,
    behind,
    ahead,
    mask_ptr,
    steps,
    BEHIND: tl.constexpr,
    AHEAD: tl.constexpr,
):
    """Whether the queries m see the keys n, in any orientation of the two."""
    see = n < n_keys
    if AHEAD:
        see = see & (n <= m + ahead)
    if BEHIND:
        see = see & (n >= m + behind)
    if mask_ptr is not None:
        at = m.to(tl.int64) * steps[2] + n.to(tl.int64) * steps[3]
        inside = (m < n_queries) & (n < n_keys)
        see = see & (tl.load(mask_ptr + at, mask=inside, other=0) != 0)
    return see


@triton.jit
def biases(m, n, n_queries, n_keys, bias_ptr, steps):
    """The bias of the queries m and keys n, to base 2."""
    at = m.to(tl.int64) * steps[2] + n.to(tl.int64) * steps[3]
    inside = (m < n_queries) & (n < n_keys)
    return tl.load(bias_ptr + at, mask=inside, other=0.0).to(tl.float32) * 1.4426950408889634


@triton.jit
def index(x, FAR: tl.constexpr):
    """A number of rows or heads that is multiplied by a step: 64 bits where arrays are far across."""
    return tl.cast(x, tl.int64) if FAR else x


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, mask_ptr, bias_ptr, lengths_ptr, q_offsets_ptr, k_offsets_ptr, out_ptr, lse_ptr,
    q_steps, k_steps, v_steps, mask_steps, bias_steps, out_steps, lse_steps,
    sequences, n_queries, n_keys, group, scale_2, left, right,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, A: tl.constexpr, B: tl.constexpr, WIDTH: tl.constexpr,
    BEHIND: tl.constexpr, AHEAD: tl.constexpr, POSITIVE: tl.constexpr, EMPTY_ROWS: tl.constexpr, FAR: tl.constexpr,
):  # fmt: skip
    """softmax(scale Q Kᵀ + bias) V; steps are those of (batch, head, row)."""
    head, batch, start_m = tl.program_id(1), tl.program_id(2), tl.program_id(0) * BLOCK_M
    q_row, k_row = 0, 0
    if q_offsets_ptr is not None:
        batch, start_m = find_block(q_offsets_ptr, sequences, tl.program_id(0), BLOCK_M)
        q_row, n_queries = span(q_offsets_ptr, batch, n_queries)
        k_row, n_keys = span(k_offsets_ptr, batch, n_keys)
    if lengths_ptr is not None:
        n_keys = min(max(tl.load(lengths_ptr + batch).to(tl.int32), 0), n_keys)
    shared, head, batch = index(head // group, FAR), index(head, FAR), index(batch, FAR)
    row, k_row = index(q_row + start_m, FAR), index(k_row, FAR)
    q_ptr += batch * q_steps[0] + head * q_steps[1] + row * q_steps[2]
    k_ptr += batch * k_steps[0] + shared * k_steps[1] + k_row * k_steps[2]
    v_ptr += batch * v_steps[0] + shared * v_steps[1] + k_row * v_steps[2]
    if mask_ptr is not None:
        mask_ptr += batch * mask_steps[0] + head * mask_steps[1]
    if bias_ptr is not None:
        bias_ptr += batch * bias_steps[0] + head * bias_steps[1]

    rows, keys = tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N)
    m = start_m + rows
    q = load_rows(row_ptrs(q_ptr, q_steps[2], rows, A, B), 0, m < n_queries, A, B, WIDTH)
    k_ptrs = row_ptrs(k_ptr, k_steps[2], keys, A, B)
    v_ptrs = row_ptrs(v_ptr, v_steps[2], keys, A, B)
    # The last query is at the place of the last key: query m sees the keys from m + behind to m + ahead.
    behind, ahead = n_keys - n_queries - left, n_keys - n_queries + right
    first, last = 0, n_keys
    if BEHIND:
        first = max(0, start_m + behind) // BLOCK_N * BLOCK_N
    if AHEAD:
        last = min(n_keys, start_m + BLOCK_M + ahead)
    if q_offsets_ptr is not None:
        last = tl.where(start_m < n_queries, last, 0)

    # With a positive factor, maxima are taken before the scale, which then is in one operation with the subtraction.
    factor = scale_2 if POSITIVE else 1.0
    highest = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc_a = tl.zeros((BLOCK_M, A), tl.float32)
    acc_b = tl.zeros((BLOCK_M, B if B else 1), tl.float32)
    for start_n in range(first, last, BLOCK_N):
        n = start_n + keys
        step = index(start_n, FAR)
        k = load_rows(k_ptrs, step * k_steps[2], n < n_keys, A, B, WIDTH)
        scores = products(q, k, B)
        if not POSITIVE:
            scores *= scale_2
        if bias_ptr is not None:
            scores += biases(m[:, None], n[None, :], n_queries, n_keys, bias_ptr, bias_steps)
        see = sees(
            m[:, None], n[None, :], n_queries, n_keys, behind, ahead, mask_ptr, mask_steps, BEHIND, AHEAD
        )  # fmt: skip
        scores = tl.where(see, scores, -float("inf"))
        higher = tl.maximum(highest, tl.max(scores, axis=1) * factor)
        # A row that has seen no key yet weighs nothing, and no NaN may come of it.
        shift = tl.where(higher == -float("inf"), 0.0, higher) if EMPTY_ROWS else higher
        weights = tl.exp2(scores * factor - shift[:, None])
        fade = tl.exp2(highest - shift)
        total = total * fade + tl.sum(weights, axis=1)
        v = load_rows(v_ptrs, step * v_steps[2], n < n_keys, A, B, WIDTH)
        weights = weights.to(v[0].dtype)
        acc_a = tl.dot(weights, v[0], acc_a * fade[:, None], input_precision="ieee")
        if B:
            acc_b = tl.dot(weights, v[1], acc_b * fade[:, None], input_precision="ieee")
        highest = higher

    # A total is no more than the number of keys, so that its reciprocal is a number like any other.
    share = tl.where(total == 0, 0.0, tl.div_rn(1.0, total))[:, None]
    out_ptr += batch * out_steps[0] + head * out_steps[1] + row * out_steps[2]
    store_rows(
        out_ptr, out_steps[2], rows, m < n_queries, acc_a * share, acc_b * share, A, B, WIDTH
    )
    if lse_ptr is not None:
        lse_ptr += batch * lse_steps[0] + head * lse_steps[1] + row
        lse = tl.where(total == 0, float("inf"), highest + tl.log2(total))
        tl.store(lse_ptr + rows, lse, mask=m < n_queries)


def pieces(width: int) -> dict[str, int]:
    """Powers of two that cover a head: the largest one in it, and one for the rest."""
    a = max(16, 1 << (width.bit_length() - 1))
    rest = width - a
    return {"A": a, "B": max(16, triton.next_power_of_2(rest)) if rest > 0 else 0, "WIDTH": width}


def tiles(width: int, dtype: str) -> dict[str, int]:
    """The blocks of queries and keys: few registers and little threadgroup memory, so that many threads are in flight."""
    wide = width * (2 if dtype == "float32" else 1)
    if wide > 256:
        return {"BLOCK_M": 16, "BLOCK_N": 8, "num_warps": 8}
    if wide > 128:
        return {"BLOCK_M": 32, "BLOCK_N": 16, "num_warps": 8}
    return {"BLOCK_M": 32, "BLOCK_N": 32 if wide < 128 else 16, "num_warps": 4}


def with_rows(x: Array) -> Array:
    """``x``, or a copy of it if the elements of its rows do not lie side by side."""
    if is_mlx(x):
        return x
    steps = strides(x)
    plain = (steps[-1] == 1 or x.shape[-1] == 1) and min(steps) >= 0
    return x if plain and (is_torch(x) or x.flags.aligned) else contiguous(x)


def steps_of(x: Array | None) -> tuple[int, ...]:
    """The steps of an array, and 0 along each dimension of length 1."""
    if x is None:
        return (0, 0, 0, 0)
    return tuple(0 if n == 1 else step for n, step in zip(x.shape, strides(x), strict=True))


def plain_steps(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The steps of a row-major array of this shape."""
    found = [1]
    for n in reversed(shape[1:]):
        found.insert(0, found[0] * n)
    return tuple(found)


def seen_arguments(
    mask: Array | None, bias: Array | None, lengths: Array | None, left: int, right: int, scale: float
) -> dict[str, Any]:  # fmt: skip
    """What the kernels of attention and its gradient take to tell which keys a query sees, and how much."""
    return {
        "mask_ptr": mask, "bias_ptr": bias, "lengths_ptr": lengths,
        "mask_steps": steps_of(mask), "bias_steps": steps_of(bias),
        "left": max(left, 0), "right": max(right, 0), "BEHIND": left >= 0, "AHEAD": right >= 0,
        "scale_2": scale * LOG2_E,
    }  # fmt: skip


def results(q: Array, rows: tuple[int, ...], keep: bool) -> dict[str, Spec]:
    """What the kernel writes."""
    made: dict[str, Spec] = {"out_ptr": (tuple(q.shape), dtype_name(q))}
    return made | {"lse_ptr": (rows, "float32")} if keep else made


def forward(
    q: Array, k: Array, v: Array, mask: Array | None, bias: Array | None, lengths: Array | None,
    left: int, right: int, scale: float, keep: bool = True,
) -> tuple[Array, ...]:  # fmt: skip
    """The result and, if they are kept, the logarithms of the sums, of (batch, heads, rows, width); -1 is a side without an end."""
    q, k, v = with_rows(q), with_rows(k), with_rows(v)
    (batch, heads, queries, width), (_, kv_heads, keys, _) = q.shape, k.shape
    sizes = tiles(width, dtype_name(q))
    outputs = results(q, (batch, heads, queries), keep)
    empty_rows = (
        mask is not None or bias is not None or lengths is not None
        or left >= 0 or (right >= 0 and keys < queries)
    )  # fmt: skip
    return launch(
        attention_kernel,
        (triton.cdiv(queries, sizes["BLOCK_M"]), heads, batch),
        outputs, like=q, q_ptr=q, k_ptr=k, v_ptr=v, q_offsets_ptr=None, k_offsets_ptr=None,
        q_steps=steps_of(q)[:3], k_steps=steps_of(k)[:3], v_steps=steps_of(v)[:3],
        out_steps=plain_steps(q.shape)[:3], lse_steps=(heads * queries, queries),
        sequences=0, n_queries=queries, n_keys=keys, group=heads // max(kv_heads, 1),
        FAR=far(q, k, v, mask, bias), POSITIVE=scale > 0 and bias is None, EMPTY_ROWS=empty_rows,
        **seen_arguments(mask, bias, lengths, left, right, scale), **sizes, **pieces(width),
        **({} if keep else {"lse_ptr": None}),
    )  # fmt: skip


def forward_packed(
    q: Array, k: Array, v: Array, q_offsets: Array, k_offsets: Array, left: int, right: int, scale: float,
    keep: bool = True,
) -> tuple[Array, ...]:  # fmt: skip
    """The same of packed sequences (rows, heads, width); rows of no sequence give 0."""
    q, k, v = with_rows(q), with_rows(k), with_rows(v)
    (queries, heads, width), (keys, kv_heads, _), count = q.shape, k.shape, q_offsets.shape[0] - 1
    sizes = tiles(width, dtype_name(q))
    outputs = results(q, (heads, queries), keep)
    blocks = queries // sizes["BLOCK_M"] + count if queries and count else 0
    return launch(
        attention_kernel,
        (blocks, heads, 1),
        outputs, like=q, fill=0, q_ptr=q, k_ptr=k, v_ptr=v, q_offsets_ptr=q_offsets, k_offsets_ptr=k_offsets,
        q_steps=packed_steps(q), k_steps=packed_steps(k), v_steps=packed_steps(v),
        out_steps=(0, width, heads * width), lse_steps=(0, queries),
        sequences=count, n_queries=queries, n_keys=keys, group=heads // max(kv_heads, 1),
        FAR=far(q, k, v), POSITIVE=scale > 0, EMPTY_ROWS=True,
        **seen_arguments(None, None, None, left, right, scale), **sizes, **pieces(width),
        **({} if keep else {"lse_ptr": None}),
    )  # fmt: skip


def far(*arrays: Array | None) -> bool:
    """Whether one of these arrays, or one of its shape, reaches over 2^31 elements or more."""
    for x in arrays:
        if x is not None:
            spans = ((n - 1) * max(step, 0) for n, step in zip(x.shape, strides(x), strict=True))
            if max(sum(spans), size_of(x.shape)) >= (1 << 31) - (1 << 20):
                return True
    return False


def packed_steps(x: Array) -> tuple[int, ...]:
    """The steps of (batch, head, row) of packed sequences."""
    rows, heads, _ = steps_of(x)
    return (0, heads, rows)
