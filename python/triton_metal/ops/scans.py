"""Running sums, products and maxima along an axis, and the places of the largest and the least numbers.

An array is seen as (outer, length, inner) around the axis. Where there are few long rows they are cut into parts: the first launch
of a scan finds what each part comes to, the second scans these, and the third begins each part with what came before it.
"""

from __future__ import annotations

from typing import Any

import triton_metal as triton
import triton_metal.language as tl

from ._arrays import FLOATS, Array, contiguous, dtype_name, places_dtype, reshaped, size_of
from ._axes import (
    Walk,
    accumulator,
    as_rows,
    item_size,
    limits,
    power_of_two_within,
    total_dtype,
    walk,
    walked_rows,
)
from ._checks import check_arrays, check_axis, check_dtype, check_flag, check_rank, fail
from ._choices import chip_for
from ._launch import launch
from ._operators import Operator
from ._reduce import _TYPES, LONGEST, PARTS, _joined, _max, _prod, _sum
from ._reducing import ALL

#: With fewer programs, rows are cut into parts.
FEW = 8
#: What a SIMD-group scans at once, four numbers of each thread; and with so many rows for each core or more, a SIMD-group has one
#: alone: it needs no barrier. Fewer rows leave a core without work, and have more.
PIECE = tl.constexpr(128)
ROWS_OF_CORE = 8


@triton.jit
def _greater(a, b):
    return tl.maximum(a, b)


@triton.jit
def _numbers_at(
    x_ptr, first, place, length, end, given, inner,
    REVERSE: tl.constexpr, EXCLUSIVE: tl.constexpr, ACC: tl.constexpr, IDENTITY: tl.constexpr,
):  # fmt: skip
    """The numbers that are joined at these places of a walk, where those go in memory, and which there are."""
    mask = (place < end) & given
    # An exclusive scan is one of the numbers moved on by one place.
    source = place - 1 if EXCLUSIVE else place
    if REVERSE:
        source, place = length - 1 - source, length - 1 - place
    read = mask & (source >= 0) & (source < length) if EXCLUSIVE else mask
    x = tl.load(x_ptr + first + source * inner, mask=read, other=0).to(ACC)
    return tl.where(read, x, IDENTITY).to(ACC), first + place * inner, mask


@triton.jit
def _turned(bits):
    """Integers that order as the floats of these bits do, and the other way round: of negative ones all bits but the sign are turned."""
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


@triton.jit
def _ordered(x):
    """Integers that order as float32 do, of which a NaN is the largest: the greater of a number and NaN is the number."""
    return tl.where(x != x, 0x7FC00000, _turned(x.to(tl.int32, bitcast=True)))


@triton.jit
def _unordered(order):
    return _turned(order).to(tl.float32, bitcast=True)


@triton.jit
def _scanned_block(x, carry, JOIN: tl.constexpr, ACC: tl.constexpr, ALONE: tl.constexpr):
    """The running results in a block, from what came before it on unless it is ALONE, and what comes before the next one."""
    places = tl.arange(0, x.shape[0])[:, None]
    begun = x if ALONE else tl.where(places == 0, _joined(carry, x, JOIN), x).to(ACC)
    # What comes after is of the numbers alone, and so before the scan: they then leave their registers to its results.
    if JOIN == "sum":
        after = carry if ALONE else carry + tl.reduce(x, 0, _sum)[None, :]
        return tl.associative_scan(begun, 0, _sum), after
    if JOIN == "prod":
        after = carry if ALONE else carry * tl.reduce(x, 0, _prod)[None, :]
        return tl.associative_scan(begun, 0, _prod), after
    after = carry if ALONE else _max(carry, tl.reduce(x, 0, _max)[None, :])
    if tl.float32 == ACC:
        y = _unordered(tl.associative_scan(_ordered(begun), 0, _greater))
    else:
        y = tl.associative_scan(begun, 0, _greater)
    return y, after


@triton.jit
def scan_kernel(
    x_ptr, before_ptr, y_ptr, rows, length, inner, part_length, parts,
    JOIN: tl.constexpr, REVERSE: tl.constexpr, EXCLUSIVE: tl.constexpr, TOTALS: tl.constexpr,
    SINGLE: tl.constexpr, ACC: tl.constexpr, IDENTITY: tl.constexpr,
    FORM: tl.constexpr, PARTED: tl.constexpr, WIDE: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """One part of ROWS rows, from what came before it on; with TOTALS, what it comes to alone. SINGLE: of one block."""
    begin, end, origin, _, first, of_part, given = walked_rows(
        rows, length, inner, part_length, parts, FORM, PARTED, WIDE, ROWS
    )
    x_ptr += origin
    inner += 0 * begin  # of 64 bits, if offsets are
    to_ptr = y_ptr if TOTALS else y_ptr + origin
    places = tl.arange(0, BLOCK)[:, None]
    carry = tl.full((1, ROWS), IDENTITY, ACC)
    if before_ptr is not None:
        carry = tl.load(before_ptr + of_part, mask=given, other=IDENTITY)
    if SINGLE:
        x, at, mask = _numbers_at(
            x_ptr, first, places, length, length, given, inner, REVERSE, EXCLUSIVE, ACC, IDENTITY
        )  # fmt: skip
        y, _ = _scanned_block(x, carry, JOIN, ACC, True)
        tl.store(to_ptr + at, y.to(y_ptr.dtype.element_ty), mask=mask)
    else:
        for start in range(begin, end, BLOCK):
            x, at, mask = _numbers_at(
                x_ptr, first, start + places, length, end, given, inner, REVERSE, EXCLUSIVE, ACC, IDENTITY
            )  # fmt: skip
            y, carry = _scanned_block(x, carry, JOIN, ACC, False)
            if not TOTALS:
                tl.store(to_ptr + at, y.to(y_ptr.dtype.element_ty), mask=mask)
        if TOTALS:
            tl.store(y_ptr + of_part, carry, mask=given)


@triton.jit
def _before(upto, first):
    """For each of 32 threads what the one before it has; `first` for the first one."""
    thread = tl.arange(0, 32)
    return tl.where(thread == 0, first, tl.gather(upto, tl.maximum(thread - 1, 0), 0))[:, None]


@triton.jit
def _ends(x):
    """The first and the last of each thread's four numbers."""
    even, odd = tl.split(tl.reshape(x, (32, 2, 2)))
    first, _ = tl.split(even)
    _, last = tl.split(odd)
    return first, last


@triton.jit
def _scanned_piece(x, carry, JOIN: tl.constexpr, IDENTITY: tl.constexpr):
    """The running results in (32, 4) numbers, of which a thread has neighbours, and what comes before the next piece.

    `carry` is what comes before these, or None.
    """
    if JOIN == "sum":
        y = tl.associative_scan(x, 1, _sum)
        _, own = _ends(y)
        upto, total = tl.associative_scan(own, 0, _sum), tl.reduce(own, 0, _sum)
        if carry is None:
            # A sum with -0.0 is the number itself.
            return y + _before(upto, -0.0 if own.dtype.is_floating() else 0), total
        return y + _before(upto + carry, carry), carry + total
    if JOIN == "prod":
        y = tl.associative_scan(x, 1, _prod)
        _, own = _ends(y)
        upto, total = tl.associative_scan(own, 0, _prod), tl.reduce(own, 0, _prod)
        if carry is None:
            return y * _before(upto, IDENTITY), total
        return y * _before(upto * carry, carry), carry * total
    y = tl.associative_scan(x, 1, _greater)
    first, own = _ends(y)
    upto, total = tl.associative_scan(own, 0, _greater), tl.reduce(own, 0, _greater)
    if carry is None:
        return tl.maximum(y, _before(upto, first)), total
    return tl.maximum(y, _before(tl.maximum(upto, carry), carry)), tl.maximum(carry, total)


@triton.jit
def scan_row_kernel(
    x_ptr, y_ptr, length, JOIN: tl.constexpr, REVERSE: tl.constexpr, EXCLUSIVE: tl.constexpr,
    ACC: tl.constexpr, IDENTITY: tl.constexpr, LOOP: tl.constexpr, LAST: tl.constexpr,
):  # fmt: skip
    """A row by one SIMD-group, piece after piece: LOOP of them in each step of a loop, or 0, and the LAST ones, of which one may be cut."""
    x_ptr += tl.program_id(0).to(tl.int64) * length
    y_ptr += tl.program_id(0).to(tl.int64) * length
    ORDERED: tl.constexpr = JOIN == "max" and tl.float32 == ACC
    carry, begin = None, 0
    if LOOP:
        carry = tl.full((), IDENTITY, ACC)
        if ORDERED:
            carry = _ordered(carry)
        begin = (length - 1) // (LOOP * PIECE) * (LOOP * PIECE)
        for start in range(0, begin, LOOP * PIECE):
            for i in tl.static_range(LOOP):
                x, to, _ = _piece_at(x_ptr, start + i * PIECE, length, False, REVERSE, EXCLUSIVE, ACC, IDENTITY)  # fmt: skip
                y, carry = _scanned_piece(_ordered(x) if ORDERED else x, carry, JOIN, IDENTITY)
                y = _unordered(y) if ORDERED else y
                tl.store(y_ptr + to, y.to(y_ptr.dtype.element_ty))
    for i in tl.static_range(LAST):
        CUT: tl.constexpr = i == LAST - 1
        x, to, mask = _piece_at(x_ptr, begin + i * PIECE, length, CUT, REVERSE, EXCLUSIVE, ACC, IDENTITY)  # fmt: skip
        y, carry = _scanned_piece(_ordered(x) if ORDERED else x, carry, JOIN, IDENTITY)
        y = _unordered(y) if ORDERED else y
        tl.store(y_ptr + to, y.to(y_ptr.dtype.element_ty), mask=mask)


@triton.jit
def _piece_at(
    x_ptr, start, length,
    CUT: tl.constexpr, REVERSE: tl.constexpr, EXCLUSIVE: tl.constexpr, ACC: tl.constexpr, IDENTITY: tl.constexpr,
):  # fmt: skip
    """The numbers of a piece of a row, where their results go in memory, and which there are if it may be cut."""
    place = start + tl.arange(0, 32)[:, None] * 4 + tl.arange(0, 4)[None, :]
    mask = place < length if CUT else None
    source, read = place, mask
    if EXCLUSIVE:
        source = place - 1
        read = (source >= 0) & mask if CUT else source >= 0
    if REVERSE:
        source, place = length - 1 - source, length - 1 - place
    x = tl.load(x_ptr + source, mask=read, other=None if read is None else 0).to(ACC)
    if read is not None and IDENTITY != 0:
        x = tl.where(read, x, IDENTITY).to(ACC)
    return x, place, mask


@triton.jit
def column_scan_kernel(
    x_ptr, before_ptr, y_ptr, rows, length, inner, part_length, parts,
    JOIN: tl.constexpr, REVERSE: tl.constexpr, EXCLUSIVE: tl.constexpr, TOTALS: tl.constexpr,
    SINGLE: tl.constexpr, ACC: tl.constexpr, IDENTITY: tl.constexpr,
    FORM: tl.constexpr, PARTED: tl.constexpr, WIDE: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """The same of rows side by side, which lanes go along number by number: BLOCK of them are stored at once."""
    begin, end, origin, _, first, of_part, given = walked_rows(
        rows, length, inner, part_length, parts, FORM, PARTED, WIDE, ROWS
    )
    x_ptr += origin
    inner += 0 * begin  # of 64 bits, if offsets are
    to_ptr = y_ptr if TOTALS else y_ptr + origin
    there = given if FORM == "columns" else None
    carry = tl.full((1, ROWS), IDENTITY, ACC)
    if before_ptr is not None:
        carry = tl.load(before_ptr + of_part, mask=given, other=IDENTITY)
    at = first + (length - 1 - begin if REVERSE else begin) * inner
    whole = begin + (end - begin) // BLOCK * BLOCK
    for _ in range(begin, whole, BLOCK):
        results, places = (), ()
        for _ in tl.static_range(BLOCK):
            before = carry
            carry = _joined(carry, tl.load(x_ptr + at, mask=there).to(ACC), JOIN)
            results, places = results + (before if EXCLUSIVE else carry,), places + (at,)
            at = at - inner if REVERSE else at + inner
        if not TOTALS:
            # One store, as a barrier comes before each: what it writes might have been read.
            y = _together(results, 0, 1, BLOCK).to(y_ptr.dtype.element_ty)
            mask = _together((given,) * BLOCK, 0, 1, BLOCK)
            tl.store(to_ptr + _together(places, 0, 1, BLOCK), y, mask=mask)
    for _ in range(whole, end):
        before = carry
        carry = _joined(carry, tl.load(x_ptr + at, mask=there).to(ACC), JOIN)
        if not TOTALS:
            y = (before if EXCLUSIVE else carry).to(y_ptr.dtype.element_ty)
            tl.store(to_ptr + at, y, mask=given)
        at = at - inner if REVERSE else at + inner
    if TOTALS:
        tl.store(y_ptr + of_part, carry, mask=given)


@triton.jit
def _together(tiles, FIRST: tl.constexpr, STEP: tl.constexpr, COUNT: tl.constexpr):
    """COUNT tiles of a tuple, every STEP-th from FIRST on, in new last dimensions of 2."""
    if COUNT == 1:
        return tiles[FIRST]
    even = _together(tiles, FIRST, 2 * STEP, COUNT // 2)
    return tl.join(even, _together(tiles, FIRST + STEP, 2 * STEP, COUNT // 2))


@triton.jit
def _order(x):
    """Integers that order as the numbers do: 0 and -0 are equal, and NaNs are equal and larger than all numbers."""
    if not x.dtype.is_floating():
        return x
    bits = x.to(tl.int32, bitcast=True)
    size = bits & 0x7FFFFFFF
    # Of negative numbers the larger size is the lesser; -size of -0 is 0.
    return tl.where(size > 0x7F800000, 0x7FFFFFFF, tl.where(bits < 0, -size, size))


@triton.jit
def _placed(
    x_ptr, i_ptr, first, start, places, end, given, inner,
    LEAST: tl.constexpr, ACC: tl.constexpr, IDENTITY: tl.constexpr, FORM: tl.constexpr,
):  # fmt: skip
    """What orders the numbers of a block, and their places if these are given, else where the block starts."""
    at = start + places
    mask = (at < end) & given if FORM == "columns" else at < end
    x = tl.load(x_ptr + first + at * inner, mask=mask, other=0).to(ACC)
    key = _order(x)
    if LEAST and tl.float32 == ACC:
        key = tl.where(key == 0x7FFFFFFF, key, -key)  # a NaN is the least, too
    key = tl.where(mask, key, IDENTITY).to(key.dtype)
    if i_ptr is None:
        return key, tl.full(key.shape, 0, tl.int32) + start.to(tl.int32)
    here = tl.load(i_ptr + first + at * inner, mask=mask, other=0).to(tl.int32)
    return key, tl.where(mask, here, 2147483647)


@triton.jit
def place_kernel(
    x_ptr, i_ptr, found_ptr, place_ptr, rows, length, inner, part_length, parts,
    LEAST: tl.constexpr, ACC: tl.constexpr, IDENTITY: tl.constexpr,
    FORM: tl.constexpr, PARTED: tl.constexpr, WIDE: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """The place of the largest or least number of one part of ROWS rows; the numbers' own places may be given.

    Floats are compared as integers that order as they do, which a SIMD-group does at once.
    """
    begin, end, origin, _, first, to, given = walked_rows(
        rows, length, inner, part_length, parts, FORM, PARTED, WIDE, ROWS
    )
    x_ptr += origin
    if i_ptr is not None:
        i_ptr += origin
    places = tl.arange(0, BLOCK)[:, None]
    DOWN: tl.constexpr = LEAST and tl.float32 != ACC
    best, place = _placed(
        x_ptr, i_ptr, first, begin, places, end, given, inner, LEAST, ACC, IDENTITY, FORM
    )
    for start in range(begin + BLOCK, end, BLOCK):
        x, here = _placed(
            x_ptr, i_ptr, first, start, places, end, given, inner, LEAST, ACC, IDENTITY, FORM
        )
        # Of equals the first stays, and so does a number before what is not there.
        better = x < best if DOWN else x > best
        best, place = tl.where(better, x, best), tl.where(better, here, place)
    if i_ptr is None:
        # The loop keeps the blocks' starts: a place in each of its steps would take a register more for each number.
        at = place + (places + first * 0)
        place = tl.where(at < end, at, 2147483647).to(tl.int32)
    top = (tl.min(best, axis=0) if DOWN else tl.max(best, axis=0))[None, :]
    place = tl.min(tl.where(best == top, place, 2147483647), axis=0)
    tl.store(place_ptr + to, place[None, :].to(place_ptr.dtype.element_ty), mask=given)
    if found_ptr is not None:
        # Of the next launch's numbers, as which it reads x at this place.
        at = first + (place[None, :]).to(first.dtype) * inner
        found = tl.load(x_ptr + at, mask=given, other=0)
        tl.store(found_ptr + to, found.to(found_ptr.dtype.element_ty), mask=given)


def _scan(
    x: Array, sizes: tuple[int, int, int], join: str, dtype: str, reverse: bool, exclusive: bool
) -> Array:
    outer, length, inner = sizes
    acc = accumulator(dtype)
    identity = {"sum": 0, "prod": 1, "max": limits(acc)[0]}[join]
    how = {"JOIN": join, "REVERSE": reverse, "EXCLUSIVE": exclusive, "ACC": _TYPES[acc], "IDENTITY": identity}  # fmt: skip
    piece = PIECE.value
    alone = inner == 1 and 2 * piece < length < 2**31 - piece
    if alone and outer >= ROWS_OF_CORE * chip_for(x).cores:
        looped = length > 8 * piece
        last = triton.cdiv((length - 1) % (4 * piece) + 1 if looped else length, piece)
        (y,) = launch(
            scan_row_kernel, (outer,), {"y_ptr": (x.shape, dtype)}, like=x, x_ptr=x, length=length,
            LOOP=4 if looped else 0, LAST=last, num_warps=1, **how,
        )  # fmt: skip
        return y
    if inner > 1:
        # So many results that are stored at once fit into registers.
        block = min(power_of_two_within(length), 8 if item_size(acc) == 8 else 16)
        kernel, of = column_scan_kernel, walk(sizes, 4, 32)._replace(block=block)
    else:
        block = min(triton.next_power_of_2(max(length, 1)), LONGEST // 4)
        if length > block and item_size(acc) == 8:
            block //= 2  # what came before a block of 64 bits must fit beside it
        side = power_of_two_within(min(outer, max(1, 512 // block)))
        kernel, of = scan_kernel, Walk(sizes, block, side, "rows")
    # Few programs leave most of a chip without work, and parts are read twice.
    if of.programs < FEW:
        of = of.in_parts(max(1, 1024 // of.block), max(1, PARTS // (4 * max(of.programs, 1))))
    common = {
        "x_ptr": x, "SINGLE": inner == 1 and length <= of.block and of.parts == 1, **how, **of.arguments(),
    }  # fmt: skip
    if inner > 1 or of.block * of.side <= 512:
        common["num_warps"] = 1  # nothing crosses SIMD-groups
    elif item_size(acc) == 8:
        common["num_warps"] = min(16, max(1, of.block * of.side // 128))  # with 32, 64 bits spill
    elif join == "max" and reverse and not common["SINGLE"]:
        common["num_warps"] = max(1, of.block * of.side // 256)  # 16 numbers of a thread spill
    elif join == "max":
        common["num_warps"] = (
            of.block * of.side // 512
        )  # a comparison costs more than what is done once
    before = None
    if of.parts > 1:
        totals = {"y_ptr": (of.result, acc)}
        (before,) = launch(kernel, of.grid, totals, like=x, before_ptr=None, TOTALS=True, **common)
        before = _scan(before, of.result, join, acc, False, True)
    if not common["SINGLE"]:
        # Of 16 numbers of a thread, results and what is carried on leave too few registers.
        common.setdefault("num_warps", of.block * of.side // 256)
    outputs = {"y_ptr": (x.shape, dtype)}
    (y,) = launch(kernel, of.grid, outputs, like=x, before_ptr=before, TOTALS=False, **common)
    return y


def _scanned(x: Array, join: str, axis: int, reverse: bool, exclusive: bool) -> tuple[Array, ...]:
    shape = tuple(x.shape)
    sizes = (size_of(shape[:axis]), shape[axis], size_of(shape[axis + 1 :]))
    [(_, dtype)] = _results(x, join)
    return (reshaped(_scan(contiguous(x), sizes, join, dtype, reverse, exclusive), shape),)


def _results(x: Array, join: str, *_: Any) -> list[tuple[Any, str]]:
    return [(tuple(x.shape), dtype_name(x) if join == "max" else total_dtype(x))]


_SCHEMA = "(Tensor x, str join, int axis, bool reverse, bool exclusive) -> (y)"
_CUMSUM = Operator(
    f"cumulative_sum{_SCHEMA}",
    _scanned,
    _results,
    lambda kept, dy: {"x": _CUMSUM(dy, "sum", kept.axis, not kept.reverse, kept.exclusive)[0]},
)
_SCAN = Operator(f"cumulative{_SCHEMA}", _scanned, _results)


def _cumulative(
    function: str, join: str, x: Array, axis: int, reverse: bool, exclusive: bool
) -> Array:
    check_arrays(function, x=x)
    check_dtype(function, "x", x, ALL)
    check_rank(function, "x", x, 1, 1 << 16)
    operator = _CUMSUM if join == "sum" and dtype_name(x) in FLOATS else _SCAN
    axis = check_axis(function, axis, x.ndim)
    reverse = check_flag(function, "reverse", reverse)
    return operator(x, join, axis, reverse, check_flag(function, "exclusive", exclusive))[0]


def cumsum(x: Array, axis: int = -1, reverse: bool = False, exclusive: bool = False) -> Array:
    """The sums of the numbers up to each place along ``axis``, added in float32.

    ``x`` has at least one dimension and is float16, bfloat16 or float32, of which the result is like ``x``, or an integer or bool:
    their sums are int64, and those of unsigned integers uint64, but int64 in PyTorch. ``reverse`` adds from the end on;
    ``exclusive`` leaves out the number at the place itself, so that the first is 0. The order of additions is fixed. Differentiable.

    Raises LaunchValueError for another dtype or an axis that ``x`` does not have.

    Error: that of `sum`, of the numbers up to the place; where the numbers of ``axis`` do not lie side by side they are added one
    after another, with (n + 4) u Σ |x| for n of them and u = 2^-24.

    >>> import numpy as np, triton_metal.ops as ops
    >>> ops.cumsum(np.array([1, 2, 3], np.float32))
    array([1., 3., 6.], dtype=float32)
    >>> ops.cumsum(np.array([1, 2, 3], np.float32), reverse=True, exclusive=True)
    array([5., 3., 0.], dtype=float32)
    """
    return _cumulative("cumsum", "sum", x, axis, reverse, exclusive)


def cumprod(x: Array, axis: int = -1, reverse: bool = False, exclusive: bool = False) -> Array:
    """The products of the numbers up to each place along ``axis``; arguments and dtypes as in `cumsum`. Not differentiable.

    Error: that of `prod`, of the numbers up to the place. Raises what `cumsum` does.

    >>> import numpy as np, triton_metal.ops as ops
    >>> ops.cumprod(np.array([1, 2, 3, 4], np.int8))
    array([ 1,  2,  6, 24])
    """
    return _cumulative("cumprod", "prod", x, axis, reverse, exclusive)


def cummax(x: Array, axis: int = -1, reverse: bool = False) -> Array:
    """The largest of the numbers up to each place along ``axis``, of the dtype of ``x``: any that `cumsum` takes.

    From a NaN on all are NaN, as in numpy.maximum.accumulate. ``reverse`` begins at the end. Not differentiable.

    Exact. Raises what `cumsum` does.

    >>> import numpy as np, triton_metal.ops as ops
    >>> ops.cummax(np.array([1, 3, 2, 4], np.float32))
    array([1., 3., 3., 4.], dtype=float32)
    """
    return _cumulative("cummax", "max", x, axis, reverse, False)


def _place(function: str, x: Array, axis: int | None, keepdims: bool) -> Array:
    check_arrays(function, x=x)
    check_dtype(function, "x", x, ALL)
    axes = list(range(x.ndim)) if axis is None else [check_axis(function, axis, x.ndim)]
    shape = tuple(x.shape)
    if not size_of(tuple(shape[a] for a in axes)):
        raise fail(function, f"x must have a number along axis {axis} but has shape {shape}.")
    if size_of(tuple(shape[a] for a in axes)) >= 2**31:
        raise fail(
            function,
            f"x must have fewer than 2^31 numbers along axis {axis} but has shape {shape}.",
        )
    keepdims = check_flag(function, "keepdims", keepdims)
    return _PLACE(x, axes, function == "argmin", keepdims)[0]


def _place_shape(x: Array, axes: list[int], least: bool, keepdims: bool) -> list[tuple[Any, str]]:
    sizes, dtype = enumerate(x.shape), places_dtype(x)
    if keepdims:
        return [(tuple(1 if a in axes else n for a, n in sizes), dtype)]
    return [(tuple(n for a, n in sizes if a not in axes), dtype)]


def _places(x: Array, axes: list[int], least: bool, keepdims: bool) -> tuple[Array, ...]:
    [(shape, dtype)] = _place_shape(x, axes, least, keepdims)
    found, sizes, _ = as_rows(x, axes)
    acc, place = accumulator(dtype_name(x)), None
    low, high = (-0x80000000, 0) if acc == "float32" else limits(acc)
    identity = high if least and acc != "float32" else low
    while True:
        of = walk(sizes, item_size(dtype_name(found)), 256)
        most = PARTS // max(4 * of.programs, 1) if place is None else 1
        of = of.in_parts(4 if sizes[2] == 1 else max(1, 256 // of.block), max(1, most))
        outputs = {"place_ptr": (of.result, dtype)}
        if of.parts > 1:
            outputs["found_ptr"] = (of.result, acc)
        made = launch(
            place_kernel, of.grid, outputs, like=x, x_ptr=found, i_ptr=place,
            **({} if of.parts > 1 else {"found_ptr": None}),
            LEAST=least, ACC=_TYPES[acc], IDENTITY=identity, num_warps=1, **of.arguments(),
        )  # fmt: skip
        if of.parts == 1:
            return (reshaped(made[0], shape),)
        (place, found), sizes = made, of.result


_PLACE = Operator(
    "place_of(Tensor x, int[] axes, bool least, bool keepdims) -> (y)", _places, _place_shape
)


def argmax(x: Array, axis: int | None = None, keepdims: bool = False) -> Array:
    """The place of the largest number along ``axis``, or in the flattened array if it is None: int64, and of MLX's
    arrays uint32, as in MLX.

    Of equal numbers it is the first, and the first NaN if there is one, as in NumPy. ``x`` is float16, bfloat16 or float32, an
    integer or bool, of fewer than 2^31 numbers along ``axis``.

    Raises LaunchValueError for another dtype, an axis that ``x`` does not have, or one without numbers.

    Exact. Without gradients.

    >>> import numpy as np, triton_metal.ops as ops
    >>> ops.argmax(np.array([[1, 7, 7], [9, 8, 7]], np.float32), axis=1)
    array([1, 0])
    """
    return _place("argmax", x, axis, keepdims)


def argmin(x: Array, axis: int | None = None, keepdims: bool = False) -> Array:
    """The place of the least number along ``axis``; all else is as in `argmax`.

    Exact. Without gradients. Raises what `argmax` does.

    >>> import numpy as np, triton_metal.ops as ops
    >>> ops.argmin(np.array([[1, 7, 7], [9, 8, 7]], np.float32), axis=1)
    array([0, 2])
    """
    return _place("argmin", x, axis, keepdims)
