"""What the kernels of attention share: packed rows, heads in two pieces, which keys a query sees, and biases.

A head whose width is no power of two is two pieces, such as 64 + 16. Scores are to base 2, so that the exponential is one
instruction: log2(e) is in ``scale_2``, and `biases` multiplies by it.
"""

from __future__ import annotations

import math
from typing import Any

import triton_metal as triton
import triton_metal.language as tl

from ._arrays import Array, contiguous, is_mlx, is_whole, strides
from ._far import index

LOG2_E = 1.4426950408889634
#: The highest score of no key: the least float32. -inf less this is no NaN, as -inf less -inf is.
LOWEST = tl.constexpr(-3.4028234663852886e38)
#: From this size on, float32 has scores to base 2 in steps of 32: see `factor_of`.
COARSE = tl.constexpr(2.0**28)
#: A weight is at most 2 to this, relative to the rounded highest score of its row: half a step below COARSE.
MOST_ABOVE = tl.constexpr(8.0)
Steps = tuple[int, ...]


@triton.jit
def row_at(offsets_ptr, sequence, rows):
    """The first row of a packed sequence, within the rows that there are."""
    return min(max(tl.load(offsets_ptr + sequence), 0), rows).to(tl.int32)


@triton.jit
def find_block(offsets_ptr, sequences, rows, block, BLOCK: tl.constexpr):
    """The sequence and the first row in it of a block, where every sequence of packed rows begins a new block.

    A sequence has at most one block more than its share of all rows, so that these numbers of blocks grow from sequence to
    sequence, and the search finds the last one that begins at or before this block.
    """
    origin = row_at(offsets_ptr, 0, rows)
    low, high = 0, sequences
    while low < high:
        middle = (low + high) // 2
        if (row_at(offsets_ptr, middle, rows) - origin) // BLOCK + middle <= block:
            low = middle + 1
        else:
            high = middle
    sequence = low - 1
    before = (row_at(offsets_ptr, sequence, rows) - origin) // BLOCK + sequence
    return sequence, (block - before) * BLOCK


@triton.jit
def span(offsets_ptr, sequence, rows):
    """The first row of a packed sequence and how many it has, within the rows that there are."""
    first = row_at(offsets_ptr, sequence, rows)
    return first, max(row_at(offsets_ptr, sequence + 1, rows), first) - first


@triton.jit
def block_of(
    own_offsets_ptr, q_offsets_ptr, k_offsets_ptr, sequences, own_rows, n_queries, n_keys,
    BLOCK: tl.constexpr, BATCHED: tl.constexpr,
):  # fmt: skip
    """The program's sequence and the first row of its block; the sequence's first rows and numbers of queries and keys.

    Rows are packed where there are offsets; the block is one of those whose offsets and number of rows are its own.
    """
    batch, start = tl.program_id(2) if BATCHED else 0, tl.program_id(0) * BLOCK
    q_row, k_row = 0, 0
    if own_offsets_ptr is not None:
        batch, start = find_block(own_offsets_ptr, sequences, own_rows, tl.program_id(0), BLOCK)
        q_row, n_queries = span(q_offsets_ptr, batch, n_queries)
        k_row, n_keys = span(k_offsets_ptr, batch, n_keys)
    return batch, start, q_row, k_row, n_queries, n_keys


@triton.jit
def limited(n_keys, lengths_ptr, batch):
    """The number of keys of a sequence, of which a cache may not have as many."""
    if lengths_ptr is not None:
        n_keys = min(max(tl.load(lengths_ptr + batch), 0), n_keys).to(tl.int32)
    return n_keys


@triton.jit
def of_head(ptr, batch, head, row, steps):
    """Where a row of a head of a sequence begins; None of an array that there is not."""
    if ptr is not None:
        ptr += batch * steps[0] + head * steps[1] + row * steps[2]
    return ptr


@triton.jit
def row_ptrs(base, step, rows, A: tl.constexpr, B: tl.constexpr, WIDTH: tl.constexpr):
    """Pointers to a block of rows in two pieces of A and B columns; the second is the first where B is 0."""
    at, columns = rows[:, None] * step, tl.arange(0, A)[None, :]
    if B and WIDTH % 16 == 0 and WIDTH < 112:
        # Aligned vectors, with an offset each: fewer operations, but more registers.
        return base + (at + columns), base + (at + (A + tl.arange(0, B))[None, :])
    # A pointer to each row, whose neighbours are read at once wherever it begins.
    if B:
        return base + at + columns, base + at + (A + tl.arange(0, B))[None, :]
    ptrs = base + at + columns
    return ptrs, ptrs


@triton.jit
def piece_mask(inside, FIRST: tl.constexpr, PIECE: tl.constexpr, WIDTH: tl.constexpr):
    """Which elements of a piece there are; None if that is all of them. Without `inside`, there are all rows."""
    mask = None if inside is None else inside[:, None]
    if FIRST + PIECE > WIDTH:
        columns = (FIRST + tl.arange(0, PIECE) < WIDTH)[None, :]
        mask = columns if inside is None else mask & columns
    return mask


@triton.jit
def load_piece(ptrs, mask):
    """A piece of a block of rows."""
    return tl.load(ptrs) if mask is None else tl.load(ptrs, mask=mask, other=0.0)


@triton.jit
def load_rows(base, step, rows, inside, A: tl.constexpr, B: tl.constexpr, WIDTH: tl.constexpr):
    """A block of rows in two pieces, with 0 where `inside`, if it is given, says that there is no row."""
    ptrs = row_ptrs(base, step, rows, A, B, WIDTH)
    a = load_piece(ptrs[0], piece_mask(inside, 0, A, WIDTH))
    if B:
        return a, load_piece(ptrs[1], piece_mask(inside, A, B, WIDTH))
    return a, a


@triton.jit
def store_rows(
    base, step, rows, inside, a, b, A: tl.constexpr, B: tl.constexpr, WIDTH: tl.constexpr
):
    """Stores rows in two pieces, converted to the elements of `base`."""
    row_ptrs = base + rows[:, None] * step
    element = base.dtype.element_ty
    ptrs = row_ptrs + tl.arange(0, A)[None, :]
    tl.store(ptrs, a.to(element), mask=piece_mask(inside, 0, A, WIDTH))
    if B:
        ptrs = row_ptrs + (A + tl.arange(0, B))[None, :]
        tl.store(ptrs, b.to(element), mask=piece_mask(inside, A, B, WIDTH))


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
def factor_of(top, scale_2, power, limit):
    """What multiplies the scores of rows with these highest products, which is positive: `scale_2`, or a power of two from `limit` on.

    A weight is 2^(product · factor - highest), in one fma: its product is not rounded, while the highest score is, by up to
    half a step of float32. All weights of a row have this in common, so that it does no harm until it is a large number. From 2^28 on it may be 16
    or more; but a product with a power of two is not rounded. Neighbours then are at least 16 apart, and none but the highest
    weigh anything: `power` is the next one from `scale_2` on, so that they stay as far apart, and larger scores stay larger.
    """
    return tl.where(tl.abs(top) < limit, scale_2, power)


@triton.jit
def weights_again(dots, bias, highest, share, scale_2, power, see, POSITIVE: tl.constexpr):
    """The weights of the forward pass from products that are the same numbers there; a limit keeps those finite that are not."""
    if POSITIVE:
        factor = factor_of(highest, scale_2, power, COARSE)
        scores = tl.minimum(dots * factor - highest, MOST_ABOVE)
    else:
        scores = dots * scale_2
        if bias is not None:
            scores += bias
        # The scores are rounded here as they were there, before the highest is taken off.
        scores = tl.minimum(scores, highest) - highest
    return tl.where(see, tl.exp2(scores) * share, 0.0)


@triton.jit
def keys_seen(
    start_m, n_keys, behind, ahead, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BEHIND: tl.constexpr, AHEAD: tl.constexpr,
):  # fmt: skip
    """The keys that queries from `start_m` on may see: from the first, a multiple of BLOCK_N, to before the last."""
    first, last = 0, n_keys
    if BEHIND:
        first = max(0, start_m + behind) // BLOCK_N * BLOCK_N
    if AHEAD:
        last = min(n_keys, start_m + BLOCK_M + ahead)
    return first, last


@triton.jit
def sees(
    m, n, n_queries, n_keys, behind, ahead, mask_ptr, steps,
    BEHIND: tl.constexpr, AHEAD: tl.constexpr, FAR: tl.constexpr,
):  # fmt: skip
    """Whether the queries m see the keys n, in any orientation of the two.

    AHEAD is 0 if they see all keys behind their own place, 1 if they see none of them, and 2 if they see some.
    """
    # With none, the last query sees the last key, and no query sees one that there is not.
    see = n <= m + ahead if AHEAD == 1 else n < n_keys
    if AHEAD == 2:
        see = see & (n <= m + ahead)
    if BEHIND:
        see = see & (n >= m + behind)
    if mask_ptr is not None:
        ptrs = mask_ptr + index(m, FAR) * steps[2] + index(n, FAR) * steps[3]
        inside = (m < n_queries) & (n < n_keys)
        see = see & (tl.load(ptrs, mask=inside, other=0) != 0)
    return see


@triton.jit
def biases(m, n, n_queries, n_keys, bias_ptr, steps, FAR: tl.constexpr):
    """The bias of the queries m and keys n, to base 2; a query that there is not has that of the last one."""
    m = tl.minimum(m, n_queries - 1)
    ptrs = bias_ptr + index(m, FAR) * steps[2] + index(n, FAR) * steps[3]
    inside = n < n_keys
    return tl.load(ptrs, mask=inside, other=0.0).to(tl.float32) * 1.4426950408889634


def pieces(width: int) -> dict[str, int]:
    """Powers of two that cover a head: the largest one in it, and one for the rest."""
    a = max(16, 1 << (width.bit_length() - 1))
    rest = width - a
    return {"A": a, "B": max(16, triton.next_power_of_2(rest)) if rest > 0 else 0, "WIDTH": width}


def with_rows(x: Array) -> Array:
    """``x``, or a copy of it if the elements of its rows do not lie side by side."""
    if is_mlx(x):
        return x
    steps = strides(x)
    plain = (steps[-1] == 1 or x.shape[-1] == 1) and min(steps) >= 0
    return x if plain and is_whole(x) else contiguous(x)


def steps_of(x: Array | None) -> Steps:
    """The steps of an array, and 0 along each dimension of length 1."""
    if x is None:
        return (0, 0, 0, 0)
    return tuple(0 if n == 1 else step for n, step in zip(x.shape, strides(x), strict=True))


def plain_steps(shape: tuple[int, ...]) -> Steps:
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
        "left": max(left, 0), "right": max(right, 0), "BEHIND": left >= 0, "AHEAD": min(right, 1) + 1,
        "scale_2": scale * LOG2_E,
    }  # fmt: skip


def factors(scale: float, biased: bool, limit: bool = True) -> dict[str, Any]:
    """What `factor_of` and, without the `limit`, `weights_again` take. With a bias, or if larger products are not larger scores,
    scores are rounded before their maximum is taken.
    """
    # Not the nearest float32: what is just below a power of two may be it.
    power = 2.0 ** max(-126, min(127, math.ceil(math.log2(scale * LOG2_E)))) if scale > 0 else 1.0
    found = {"POSITIVE": scale > 0 and not biased, "power": power}
    least = COARSE.value / power
    return found | ({"limit": least if least < 2.0**128 else math.inf} if limit else {})


def packed_steps(x: Array) -> Steps:
    """The steps of (batch, head, row) of packed sequences."""
    rows, heads, _ = steps_of(x)
    return (0, heads, rows)


def arranged(hidden: bool, *arrays: Array) -> tuple[bool, list[Steps]]:
    """Whether kernels must tell sequences of a batch from heads, and the steps of (batch, head, row) of arrays.

    A batch whose heads are equally far apart is nothing but more heads, unless what is `hidden` from a query depends on its sequence.
    """
    steps = [steps_of(x)[:3] for x in arrays]
    joined = []
    for x, (batch, head, row) in zip(arrays, steps, strict=True):
        if x.shape[1] == 1:
            head = batch if x.shape[0] > 1 else x.shape[2] * row
        elif x.shape[0] > 1 and batch != head * x.shape[1]:
            hidden = True
        joined.append((0, head, row))
    several = arrays[0].shape[0] > 1
    return (True, steps) if hidden and several else (False, joined)


def grid_of(blocks: int, heads: int, batch: int, batched: bool) -> tuple[int, int, int]:
    """The grid of a kernel over blocks of rows, heads and sequences."""
    return (blocks, heads, batch) if batched else (blocks, heads * batch, 1)
