"""The reduction under `reductions`: an array seen as (outer, length, inner), of which `length` goes.

A program reduces one part of ROWS rows; a row is what is reduced to one number. Where there are few long rows they are cut into
parts, and a second launch joins what they gave. The order is fixed: a result is the same each time.
"""

from __future__ import annotations

from typing import Any

import triton_metal as triton
import triton_metal.language as tl

from ._arrays import Array, dtype_name, reshaped
from ._axes import (
    FEW,
    Walk,
    accumulator,
    form_of,
    is_wide,
    item_size,
    limits,
    power_of_two_within,
    walk,
    walked_rows,
)
from ._far import index
from ._launch import launch
from ._pieces import (
    centred,
    exp_of,
    in_float32,
    less,
    load_pieces,
    max_of,
    pieces,
    places_of,
    sum_of,
    sum_of_squares,
    widths_of,
)

#: The numbers that a program holds at once: one SIMD-group reduces them, whose sums cross lanes once and need no barrier.
BLOCK = 512
#: The numbers of rows that are read once, and the most parts into which rows are cut.
LONGEST = 16_384
PARTS = 256
#: So many rows are not cut: they have more SIMD-groups instead.
MANY = 64
#: So short rows are centred several at once, longer ones alone: a SIMD-group then has one row, which it adds up at once.
SHORT = 64


@triton.jit
def _sum(a, b):
    return a + b


@triton.jit
def _prod(a, b):
    return a * b


@triton.jit
def _max(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def _min(a, b):
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def _mapped(x, m, MAP: tl.constexpr):
    """What is reduced of a number `x`, and of the number `m` of its row."""
    if MAP == "abs":
        x = tl.abs(x)
    elif MAP == "square":
        x = x * x
    elif MAP == "distance":
        x = (x - m) * (x - m)
    elif MAP == "exp":
        # An infinite m is taken off last, so that no inf - inf comes of it.
        x = tl.exp(x - tl.where(tl.abs(m) == float("inf"), 0.0, m))
    elif MAP == "nonzero":
        x = x != 0
    elif MAP == "equal":
        x = x == m
    elif MAP == "equal_abs":
        x = tl.abs(x) == m
    elif MAP == "zeros_as_ones":
        x = tl.where(x == 0, 1, x)
    return x


@triton.jit
def _joined(a, b, JOIN: tl.constexpr):
    if JOIN == "sum":
        return a + b
    if JOIN == "prod":
        return a * b
    # Of NaN and a number, NaN.
    if a.dtype.is_floating():
        return tl.where(((a > b) if JOIN == "max" else (a < b)) | (a != a), a, b)
    return _max(a, b) if JOIN == "max" else _min(a, b)


@triton.jit
def _numbers(
    x_ptr,
    m,
    at,
    mask,
    MAP: tl.constexpr,
    READ: tl.constexpr,
    ACC: tl.constexpr,
    OTHER: tl.constexpr,
    IDENTITY: tl.constexpr,
):
    """The numbers to be joined: OTHER in place of those that are not there, or else IDENTITY if it is None."""
    if mask is None:
        return _mapped(tl.load(x_ptr + at).to(READ), m, MAP).to(ACC)
    if OTHER is not None:
        return _mapped(tl.load(x_ptr + at, mask=mask, other=OTHER).to(READ), m, MAP).to(ACC)
    x = _mapped(tl.load(x_ptr + at, mask=mask, other=0).to(READ), m, MAP)
    return tl.where(mask, x.to(ACC), IDENTITY).to(ACC)


@triton.jit
def _ended(y, m, divisor, END: tl.constexpr):
    if END == "divide":
        y = tl.math.div_rn(y, divisor)
    elif END == "root":
        y = tl.math.sqrt_rn(y)
    elif END == "deviation":
        y = tl.math.sqrt_rn(tl.math.div_rn(y, divisor))
    elif END == "log":
        y = tl.log(y) + m
    return y


@triton.jit
def reduce_kernel(
    x_ptr, m_ptr, y_ptr, rows, length, inner, part_length, parts, divisor,
    JOIN: tl.constexpr, MAP: tl.constexpr, END: tl.constexpr, READ: tl.constexpr, ACC: tl.constexpr,
    OTHER: tl.constexpr, IDENTITY: tl.constexpr, FORM: tl.constexpr, PARTED: tl.constexpr, WIDE: tl.constexpr,
    BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """y[row, part] = JOIN of MAP(x) over a part of each row, and END of it."""
    begin, end, origin, row, first, to, given = walked_rows(
        rows, length, inner, part_length, parts, FORM, PARTED, WIDE, ROWS
    )
    x_ptr += origin
    inner += 0 * begin  # of 64 bits, if offsets are
    places = tl.arange(0, BLOCK)[:, None]
    at = places * inner
    whole = given if FORM == "columns" else None
    m = 0.0
    if m_ptr is not None:
        m = tl.load(m_ptr + row, mask=given, other=0).to(READ)
    # The last block, which alone may be cut, and then the whole ones.
    whole_blocks = max(end - begin - 1, 0) // BLOCK
    last = begin + whole_blocks * BLOCK
    mask = (places < end - last) & given if FORM == "columns" else places < end - last
    total = _numbers(x_ptr + first + last * inner, m, at, mask, MAP, READ, ACC, OTHER, IDENTITY)
    x_ptr += begin * inner
    for _ in range(whole_blocks):
        x = _numbers(x_ptr + first, m, at, whole, MAP, READ, ACC, OTHER, IDENTITY)
        total = _joined(total, x, JOIN)
        x_ptr += BLOCK * inner
    if JOIN == "sum":
        y = tl.reduce(total, 0, _sum)[None, :]
    elif JOIN == "prod":
        y = tl.reduce(total, 0, _prod)[None, :]
    elif JOIN == "max":
        y = tl.reduce(total, 0, _max)[None, :]
    else:
        y = tl.reduce(total, 0, _min)[None, :]
    y = _ended(y, m, divisor, END)
    if y_ptr.dtype.element_ty == tl.int1:
        y = y != 0
    tl.store(y_ptr + to, y.to(y_ptr.dtype.element_ty), mask=given)


@triton.jit
def _greater(a, b):
    return tl.maximum(a, b)


@triton.jit
def _lesser(a, b):
    return tl.minimum(a, b)


@triton.jit
def _either(a, b):
    return a | b


@triton.jit
def _reduced(x, AXIS: tl.constexpr, JOIN: tl.constexpr):
    """The JOIN of numbers along an axis; of the greatest and the least, a NaN does not count."""
    if JOIN == "sum":
        return tl.reduce(x, AXIS, _sum)
    if JOIN == "prod":
        return tl.reduce(x, AXIS, _prod)
    return tl.reduce(x, AXIS, _greater if JOIN == "max" else _lesser)


@triton.jit
def _joined_totals(a, b, JOIN: tl.constexpr):
    if JOIN == "sum":
        return a + b
    if JOIN == "prod":
        return a * b
    return _greater(a, b) if JOIN == "max" else _lesser(a, b)


@triton.jit
def _has_nan(x):
    """Which threads have a NaN among some neighbours: of two numbers, one comparison tells."""
    if x.shape[1] == 4:
        even, odd = tl.split(tl.reshape(x, (x.shape[0], 2, 2)))
        return tl.reduce((even != even) | (odd != odd), 1, _either)
    return tl.reduce(x != x, 1, _either)


@triton.jit
def _reduced_in_threads(
    x_ptr, m, places, mask,
    JOIN: tl.constexpr, MAP: tl.constexpr, READ: tl.constexpr, ACC: tl.constexpr, OTHER: tl.constexpr, IDENTITY: tl.constexpr,
):  # fmt: skip
    """What each thread's numbers of these pieces come to, and whether one is a NaN if that must be known: else None."""
    total, broken = None, None
    for i in tl.static_range(len(places)):
        there = mask if i == len(places) - 1 else None
        x = _numbers(x_ptr, m, places[i], there, MAP, READ, ACC, OTHER, IDENTITY)
        own = _reduced(x, 1, JOIN)
        total = own if i == 0 else _joined_totals(total, own, JOIN)
        if x.dtype.is_floating() and (JOIN == "max" or JOIN == "min"):
            broken = _has_nan(x) if i == 0 else broken | _has_nan(x)
    return total, broken


@triton.jit
def reduce_row_kernel(
    x_ptr, m_ptr, y_ptr, rows, length, divisor,
    JOIN: tl.constexpr, MAP: tl.constexpr, END: tl.constexpr, READ: tl.constexpr, ACC: tl.constexpr,
    OTHER: tl.constexpr, IDENTITY: tl.constexpr, WIDE: tl.constexpr,
    WIDTHS: tl.constexpr, UNIT: tl.constexpr, BLOCK: tl.constexpr, BLOCK_WIDTHS: tl.constexpr, ROWS: tl.constexpr, EVEN: tl.constexpr,
):  # fmt: skip
    """The same of ROWS rows that lie one behind the other, each in pieces: those of whole blocks, if BLOCK is not 0, and WIDTHS."""
    program = tl.program_id(0).to(tl.int64) if WIDE else tl.program_id(0)
    base = program * ROWS
    # The last program begins early rather than being cut.
    first = base if EVEN else tl.minimum(base, rows - ROWS)
    begin = 0
    if BLOCK:
        begin = (length - 1) // BLOCK * BLOCK
    places, mask = places_of(length - begin, WIDTHS, UNIT)
    x_ptr += first * length
    y_ptr += first
    for r in tl.static_range(ROWS):
        m = 0.0
        if m_ptr is not None:
            m = tl.load(m_ptr + first + r).to(READ)
        x_row = x_ptr + r * length
        total, broken = _reduced_in_threads(
            x_row + begin, m, places, mask, JOIN, MAP, READ, ACC, OTHER, IDENTITY
        )
        if BLOCK:
            block, _ = places_of(BLOCK, BLOCK_WIDTHS, UNIT)
            for _ in range(0, begin, BLOCK):
                more, wrong = _reduced_in_threads(
                    x_row, m, block, None, JOIN, MAP, READ, ACC, OTHER, IDENTITY
                )
                total = _joined_totals(total, more, JOIN)
                if broken is not None:
                    broken = broken | wrong
                x_row += BLOCK
        if broken is None:
            y = _reduced(total, 0, JOIN)
        else:
            y = tl.reduce(tl.where(broken, float("nan"), total), 0, _max if JOIN == "max" else _min)
        y = _ended(y, m, divisor, END)
        if y_ptr.dtype.element_ty == tl.int1:
            y = y != 0
        there = None if EVEN else first + r >= base
        tl.store(y_ptr + r, y.to(y_ptr.dtype.element_ty), mask=there)


@triton.jit
def _shift(top):
    """What is taken off before exponentials, given the largest number; a NaN comes back by the sum.

    No inf - inf: the exponential of what is infinite is 0 or infinite beside 0, too.
    """
    infinite = (top.to(tl.int32, bitcast=True) & 0x7FFFFFFF) == 0x7F800000
    return tl.where(infinite, 0.0, top)


@triton.jit
def centred_kernel(
    x_ptr, y_ptr, rows, length, inner, part_length, parts, divisor,
    END: tl.constexpr, FORM: tl.constexpr, PARTED: tl.constexpr, WIDE: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """The variance, deviation or log Σ exp of rows of at most BLOCK numbers, which are read once."""
    _, _, origin, row, first, _, given = walked_rows(
        rows, length, inner, part_length, parts, FORM, PARTED, WIDE, ROWS
    )
    x_ptr += origin
    places = index(tl.arange(0, BLOCK)[:, None], WIDE)
    at = first + places * inner
    mask = (places < length) & given
    if END == "log":
        x = tl.load(x_ptr + at, mask=mask, other=-float("inf")).to(tl.float32)
        shift = _shift(tl.max(x, axis=0)[None, :])
        y = tl.log(tl.sum(tl.exp(x - shift), axis=0)[None, :]) + shift
    else:
        x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
        mean = tl.sum(x, axis=0)[None, :] / length
        x = tl.where(mask, x - mean, 0.0)
        y = _ended(tl.sum(x * x, axis=0)[None, :], 0.0, divisor, END)
    tl.store(y_ptr + row, y.to(y_ptr.dtype.element_ty), mask=given)


@triton.jit
def centred_row_kernel(
    x_ptr, y_ptr, length, divisor, END: tl.constexpr, WIDTHS: tl.constexpr, UNIT: tl.constexpr
):
    """The same of one row, which is held in pieces."""
    row = tl.program_id(0).to(tl.int64)
    places, mask = places_of(length, WIDTHS, UNIT)
    other: tl.constexpr = -float("inf") if END == "log" else 0.0
    x = in_float32(load_pieces(x_ptr + row * length, places, mask, other))
    if END == "log":
        shift = _shift(max_of(x))
        y = tl.log(sum_of(exp_of(less(x, shift)))) + shift
    else:
        x = centred(x, sum_of(x) / length, mask)
        y = _ended(sum_of_squares(x), 0.0, divisor, END)
    tl.store(y_ptr + row, y.to(y_ptr.dtype.element_ty))


@triton.jit
def _sums_with(distance, square, x, c):
    """The sums of a thread with those of x - c and its squares, each of which is added as it is multiplied."""
    d = x.to(tl.float32) - c[:, None]
    return distance + tl.sum(d, axis=1), _products_with(square, d, None)


@triton.jit
def _products_with(total, x, SHARE: tl.constexpr):
    """A thread's sums, of which it has two for four numbers, with such products, each of which is added as it is made."""
    if x.shape[1] == 4:
        even, odd = tl.split(tl.reshape(x, (x.shape[0], 2, 2)))
        return _plus_product(_plus_product(total, even, SHARE), odd, SHARE)
    return _plus_product(total, x, SHARE)


@triton.jit
def _plus_product(total, x, SHARE: tl.constexpr):
    """total + x · SHARE, or x · x if it is None."""
    return x * (x if SHARE is None else SHARE) + total


@triton.jit
def variance_row_kernel(
    x_ptr, y_ptr, length, divisor,
    END: tl.constexpr, WIDTHS: tl.constexpr, UNIT: tl.constexpr, BLOCK: tl.constexpr, BLOCK_WIDTHS: tl.constexpr,
):  # fmt: skip
    """The variance or deviation of one row that is longer than BLOCK, which is read once.

    A thread adds up the distances of its numbers from the mean c of those of its first block, and their squares:
    Σ (x - mean)² = Σ (x - c)² + (c - mean) · (2 Σ (x - c) + n · (c - mean)). As c is the mean of some of them, no term is much
    larger than the sum.
    """
    row = tl.program_id(0).to(tl.int64)
    x_row = x_ptr + row * length
    block, _ = places_of(BLOCK, BLOCK_WIDTHS, UNIT)
    side: tl.constexpr = min(BLOCK_WIDTHS[0], 2)
    first, parts = (), tl.zeros((UNIT, side), tl.float32)
    for i in tl.static_range(len(block)):
        first = first + (tl.load(x_row + block[i]).to(tl.float32),)
        parts = _products_with(parts, first[i], UNIT / BLOCK)
    c = tl.sum(parts, axis=1)
    distance, square = tl.zeros((UNIT,), tl.float32), tl.zeros((UNIT, side), tl.float32)
    for i in tl.static_range(len(block)):
        distance, square = _sums_with(distance, square, first[i], c)
    begin = (length - 1) // BLOCK * BLOCK
    x_block = x_row
    for _ in range(BLOCK, begin, BLOCK):
        x_block += BLOCK
        for i in tl.static_range(len(block)):
            distance, square = _sums_with(distance, square, tl.load(x_block + block[i]), c)
    squares = tl.sum(square, axis=1)
    # The last block, which alone may be cut.
    places, mask = places_of(length - begin, WIDTHS, UNIT)
    x_row += begin
    n, before = begin // UNIT, 0
    for i in tl.static_range(len(places)):
        if i == len(places) - 1:
            d = tl.load(x_row + places[i], mask=mask, other=0.0).to(tl.float32) - c[:, None]
            d = tl.where(mask, d, 0.0)
            there = length - begin - before - tl.arange(0, UNIT) * WIDTHS[i]
            n += tl.minimum(tl.maximum(there, 0), WIDTHS[i])
        else:
            d = tl.load(x_row + places[i]).to(tl.float32) - c[:, None]
            n += WIDTHS[i]
            before += UNIT * WIDTHS[i]
        distance += tl.sum(d, axis=1)
        squares += tl.sum(d * d, axis=1)
    count = n.to(tl.float32)
    mean = tl.sum(count * c + distance, axis=0) / length
    apart = c - mean
    # Squares that are infinite stay so, unless a number is: its row has no variance.
    overflows = (squares == float("inf")) & (tl.abs(distance) < float("inf"))
    terms = tl.where(overflows, squares, squares + apart * (2 * distance + count * apart))
    total = tl.sum(terms, axis=0)
    tl.store(y_ptr + row, _ended(total, 0.0, divisor, END).to(y_ptr.dtype.element_ty))


_TYPES = {
    "float16": tl.float16, "float32": tl.float32, "int32": tl.int32, "uint32": tl.uint32, "int64": tl.int64, "uint64": tl.uint64,
}  # fmt: skip


def reduce_rows(
    x: Array,
    sizes: tuple[int, int, int],
    join: str,
    dtype: str,
    *,
    map: str = "",
    end: str = "",
    m: Array | None = None,
    divisor: float = 1.0,
    accumulate: str | None = None,
) -> Array:
    """The reduction (outer, inner) of contiguous `x`, seen as (outer, length, inner), as an array of `dtype`."""
    outer, _, inner = sizes
    read = accumulator(dtype_name(x))
    if dtype_name(x) == "float16" and join in ("max", "min") and map in ("", "abs"):
        read = "float16"  # they can be compared as they are
    acc = accumulate or (read if read == "float32" or join in ("max", "min") else "int64")
    low, high = (0, 1) if map == "nonzero" else limits(acc)
    identity = {"sum": 0, "prod": 1, "max": low, "min": high}[join]

    def other(map: str, read: str) -> float | None:
        """What a masked load gives if that maps to the identity."""
        if join == "sum" and map in ("", "abs", "square"):
            return 0
        return identity if map == "" and read.startswith("float") else None

    def run(x: Array, of: Walk, read: str, result: str, **how: Any) -> Array:
        kernel, grid, form = reduce_kernel, of.grid, of.arguments() | {"num_warps": 1}
        if of.form == "rows" and of.parts == 1 and of.sizes[1] > SHORT:
            kernel, grid, form = reduce_row_kernel, *_in_pieces(of)
        (y,) = launch(
            kernel, grid, {"y_ptr": (of.result, result)}, like=x, x_ptr=x, divisor=float(divisor),
            JOIN=join, READ=_TYPES[read], ACC=_TYPES[acc], OTHER=other(how["MAP"], read), IDENTITY=identity,
            **form, **how,
        )  # fmt: skip
        return y

    of = walk(sizes, item_size(dtype_name(x)), BLOCK)
    of = of.in_parts(*_least_parts(of))
    if of.parts == 1:
        y = run(x, of, read, dtype, m_ptr=m, MAP=map, END=end)
    else:
        y = run(x, of, read, acc, m_ptr=m, MAP=map, END="")
        of = walk(of.result, item_size(acc), BLOCK)
        y = run(y, of, acc, dtype, m_ptr=m if end == "log" else None, MAP="", END=end)
    return reshaped(y, (outer, inner))


def _in_pieces(of: Walk) -> tuple[tuple[int], dict[str, Any]]:
    """The grid of whole rows, and how they are held: each by one SIMD-group, many short ones four at once, which share their masks."""
    rows, length, _ = of.sizes
    in_blocks = length > 2 * BLOCK
    if in_blocks:
        held = _blocks_of(length)
    else:
        held = pieces(length, most=64) | {"BLOCK": 0}
        held["BLOCK_WIDTHS"] = widths_of(BLOCK // held["UNIT"])
    side = 1 if in_blocks or rows < 4 * MANY or (rows < FEW and rows % 4) else 4
    sizes = {"rows": rows, "length": length, "WIDE": is_wide(of.sizes)}
    return (triton.cdiv(rows, side),), sizes | held | {
        "ROWS": side,
        "EVEN": rows % side == 0,
    }


def _blocks_of(length: int) -> dict[str, Any]:
    """How one SIMD-group holds a row in blocks, and the last of them, which may be cut, in pieces."""
    held = pieces((length - 1) % BLOCK + 1, most=64)
    return held | {"BLOCK": BLOCK, "BLOCK_WIDTHS": widths_of(BLOCK // held["UNIT"])}


def _least_parts(of: Walk) -> tuple[int, int]:
    """The least blocks of a part and the most parts: few of neighbours, of which a second launch reads all again.

    A row that is not long has none, since a second launch takes longer than to read it.
    """
    if of.sizes[2] > 1:
        return max(1, 256 // of.block), max(1, min(PARTS, 2 * PARTS // max(of.programs, 1)))
    return 4, 1 if of.sizes[0] >= MANY or of.sizes[1] <= LONGEST else min(
        PARTS, 2 * PARTS // max(of.programs, 1)
    )


def centred_rows(
    x: Array, sizes: tuple[int, int, int], end: str, dtype: str, divisor: float
) -> Array:
    """The variance ("divide"), deviation or log Σ exp ("log") of rows, which may be long."""
    outer, length, inner = sizes
    block = triton.next_power_of_2(max(length, 1))
    outputs = {"y_ptr": ((outer, inner), dtype)}
    common = {"x_ptr": x, "divisor": float(divisor), "END": end}
    if inner == 1 and end != "log" and 2 * BLOCK < length <= LONGEST:
        how = _blocks_of(length)
        (y,) = launch(variance_row_kernel, (outer,), outputs, like=x, length=length, **common, **how)  # fmt: skip
        return y
    if inner == 1 and SHORT < length <= LONGEST:
        how = pieces(length)
        (y,) = launch(centred_row_kernel, (outer,), outputs, like=x, length=length, **common, **how)
        return y
    if block <= (SHORT if inner == 1 else LONGEST // 32) and length > 0:
        side = min(inner, 32) if inner > 1 else min(outer, BLOCK // block)
        form = form_of(inner)
        side = triton.next_power_of_2(side) if form == "columns" else power_of_two_within(side)
        of = Walk(sizes, block, side, form)
        # One SIMD-group needs no barrier, while a thread can hold its numbers.
        alone = {"num_warps": 1} if block * side <= 2 * BLOCK else {}
        (y,) = launch(centred_kernel, of.grid, outputs, like=x, **common, **of.arguments(), **alone)
        return y
    if end == "log":
        top = reduce_rows(x, sizes, "max", "float32")
        return reduce_rows(x, sizes, "sum", dtype, map="exp", end="log", m=top)
    mean = reduce_rows(x, sizes, "sum", "float32", end="divide", divisor=length)
    return reduce_rows(x, sizes, "sum", dtype, map="distance", end=end, m=mean, divisor=divisor)
