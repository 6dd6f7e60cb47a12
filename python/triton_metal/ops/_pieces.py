"""Rows in pieces: a row whose length is well below a power of two is held as several smaller blocks, of which the last alone may be cut.

The block of a row is otherwise the power of two that holds it, and threads would compute with up to as many numbers that are not there. A
piece is of UNIT threads' numbers, of which a thread has as many neighbours as the piece's width is; pieces are joined in a thread first.
"""

from __future__ import annotations

from typing import Any

import triton_metal as triton
import triton_metal.language as tl

#: What a thread reads at once, wherever the row begins.
WIDEST = 4


@triton.jit
def places_of(length, WIDTHS: tl.constexpr, UNIT: tl.constexpr):
    """The places of each piece of a row, and the mask of the last one. Several pieces of width 1 have a thread's neighbours one by one."""
    thread = tl.arange(0, UNIT)[:, None]
    places = ()
    before = 0
    for i in tl.static_range(len(WIDTHS)):
        if WIDTHS[0] == 1:
            places = places + (thread * len(WIDTHS) + i,)
        else:
            places = places + (before + thread * WIDTHS[i] + tl.arange(0, WIDTHS[i])[None, :],)
            before += UNIT * WIDTHS[i]
    return places, places[len(WIDTHS) - 1] < length


@triton.jit
def load_pieces(ptr, places, mask, OTHER: tl.constexpr):
    """The numbers at these places, OTHER for those that are not there."""
    found = ()
    for i in tl.static_range(len(places)):
        if i == len(places) - 1:
            found = found + (tl.load(ptr + places[i], mask=mask, other=OTHER),)
        else:
            found = found + (tl.load(ptr + places[i]),)
    return found


@triton.jit
def store_pieces(ptr, places, mask, pieces):
    """Stores them, and gives what has been stored in float32."""
    found = ()
    for i in tl.static_range(len(places)):
        value = pieces[i].to(ptr.dtype.element_ty)
        tl.store(ptr + places[i], value, mask=mask if i == len(places) - 1 else None)
        found = found + (value.to(tl.float32),)
    return found


@triton.jit
def added(a, b):
    found = ()
    for i in tl.static_range(len(a)):
        found = found + (a[i] + b[i],)
    return found


@triton.jit
def in_float32(pieces):
    found = ()
    for i in tl.static_range(len(pieces)):
        found = found + (pieces[i].to(tl.float32),)
    return found


@triton.jit
def sum_of(pieces):
    total = tl.sum(pieces[0], axis=1)
    for i in tl.static_range(1, len(pieces)):
        total += tl.sum(pieces[i], axis=1)
    return tl.sum(total, axis=0)


@triton.jit
def sum_of_squares(pieces):
    """Two sums for each thread, to which each square is added as it is multiplied."""
    total, single = None, None
    for i in tl.static_range(len(pieces)):
        x = pieces[i]
        if x.shape[1] == 4:
            even, odd = tl.split(tl.reshape(x, (x.shape[0], 2, 2)))
            total = even * even if total is None else even * even + total
            total = odd * odd + total
        elif x.shape[1] == 2:
            total = x * x if total is None else x * x + total
        else:
            single = tl.sum(x, axis=1)
    if total is None:
        return tl.sum(single * single, axis=0)
    total = tl.sum(total, axis=1)
    return tl.sum(total if single is None else single * single + total, axis=0)


@triton.jit
def with_exponentials(highest, total, x):
    """Running maxima, each of some neighbours, and the sums of exponentials of what is below them, with those of more numbers.

    Neighbours that have met -inf alone weigh nothing, and no NaN may come of them; one that is there stays.
    """
    higher = tl.maximum(highest, tl.max(x, axis=1))
    shift = tl.where(higher == -float("inf"), 0.0, higher)
    return higher, total * tl.exp(highest - shift) + tl.sum(tl.exp(x - shift[:, None]), axis=1)


@triton.jit
def max_of(pieces, AXIS: tl.constexpr = 1):
    """The largest number of a row, or of each of several rows, if AXIS is 2."""
    highest = tl.max(pieces[0], axis=AXIS)
    for i in tl.static_range(1, len(pieces)):
        highest = tl.maximum(highest, tl.max(pieces[i], axis=AXIS))
    return tl.max(highest, axis=AXIS - 1)


@triton.jit
def exp_of(pieces):
    found = ()
    for i in tl.static_range(len(pieces)):
        found = found + (tl.exp(pieces[i]),)
    return found


@triton.jit
def less(pieces, number):
    """x - number."""
    found = ()
    for i in tl.static_range(len(pieces)):
        found = found + (pieces[i] - number,)
    return found


@triton.jit
def divided(pieces, number):
    found = ()
    for i in tl.static_range(len(pieces)):
        found = found + (pieces[i] / number,)
    return found


@triton.jit
def centred(pieces, mean, mask):
    """x - mean, and 0 for what is not there."""
    found = ()
    for i in tl.static_range(len(pieces)):
        x = pieces[i] - mean
        found = found + (tl.where(mask, x, 0.0) if i == len(pieces) - 1 else x,)
    return found


def widths_of(units: int) -> tuple[int, ...]:
    """The widths of pieces of so many numbers of a thread: as wide as possible first, so that the last one is narrow."""
    return (WIDEST,) * (units // WIDEST) + tuple(width for width in (2, 1) if units & width)


def pieces(length: int, least: int = 32, most: int = 32) -> dict[str, Any]:
    """WIDTHS and UNIT of a row, and the SIMD-groups of so many threads.

    There are ``least`` threads, or as many as have at most ``most`` numbers each of the power of two that holds the row.
    """
    unit = max(least, triton.next_power_of_2(length) // most)
    widths = widths_of(triton.cdiv(length, unit))
    return {"WIDTHS": widths, "UNIT": unit, "num_warps": unit // 32}


def spread(arguments: dict[str, Any], groups: int) -> dict[str, Any]:
    """The arguments of a launch with so many SIMD-groups. The pieces of a row have all their threads, of which each has neighbours."""
    changed = arguments | {"num_warps": groups}
    unit = arguments.get("UNIT", 0)
    if not unit or unit >= 32 * groups:
        return changed
    length, block = unit * sum(arguments["WIDTHS"]), arguments.get("BLOCK", 0)
    wider = min(32 * groups, block or 32 * groups)
    changed |= {"UNIT": wider, "WIDTHS": widths_of(triton.cdiv(length, wider))}
    if block:
        changed["BLOCK_WIDTHS"] = widths_of(block // wider)
    return changed
