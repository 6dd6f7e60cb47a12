"""Softmax and its logarithm along any axis, with gradients.

An array is seen as (outer, length, inner) around the axis. A program takes one row, and where the axis is not the last
one some neighbouring rows at once, so that its threads read what lies side by side. A row that fits into a threadgroup's
registers is read once, in pieces where a power of two is much more than it; a longer one is walked over twice, with running maxima and sums for the places of a block.
The logarithm of a sum is Metal's own function: each thread of a row computes it, and `tl.log` takes more operations.
"""

from __future__ import annotations

from typing import Any

import triton_metal as triton
import triton_metal.language as tl
from triton_metal.language.extra import libdevice

from ..devices.selection import chosen
from ._arrays import FLOATS, Array, contiguous, dtype_name, size_of
from ._checks import check_arrays, check_axis, check_dtype, check_rank
from ._choices import chip_for
from ._far import FAR_FROM, index
from ._launch import launch
from ._operators import Operator
from ._pieces import (
    divided,
    in_float32,
    less,
    load_pieces,
    max_of,
    pieces,
    places_of,
    store_pieces,
    widths_of,
    with_exponentials,
)

#: The most numbers of a row that a program holds at once.
LONGEST = 16_384
#: The block of longer rows, and of those of a last axis, of which a program has one alone.
BLOCK, BLOCK_OF_ROW = 8_192, 4_096
#: So many rows for each core are many: a SIMD-group takes several short ones, of which a thread has up to MOST numbers. Fewer
#: would leave a core without work.
ROWS_OF_CORE, MOST = 64, 32
#: Rows that are no longer have a block of their own, or are few pieces of several rows.
ALONE = 64


@triton.jit
def softmax_kernel(
    x_ptr, y_ptr, length, inner,
    LOG: tl.constexpr, FAR: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """The softmax of ROWS rows, each of `length` numbers that lie `inner` apart, held in registers."""
    places = index(tl.arange(0, BLOCK)[:, None], FAR)
    rows = index(tl.program_id(1), FAR) * ROWS + tl.arange(0, ROWS)[None, :]
    at = tl.program_id(0).to(tl.int64) * length * inner + places * inner + rows
    mask = (places < length) & (rows < inner)
    x = tl.load(x_ptr + at, mask=mask, other=-float("inf")).to(tl.float32)
    x -= tl.max(x, axis=0)[None, :]
    numerator = tl.exp(x)
    total = tl.sum(numerator, axis=0)[None, :]
    y = x - libdevice.log(total) if LOG else numerator / total
    tl.store(y_ptr + at, y.to(y_ptr.dtype.element_ty), mask=mask)


@triton.jit
def exponentials(x, top, AXIS: tl.constexpr):
    """x - top, the exponentials of it and their sums for each thread: piece after piece, as registers hold few exponentials at once."""
    below, found, total = (), (), None
    for i in tl.static_range(len(x)):
        below = below + (x[i] - top,)
        found = found + (tl.exp(below[i]),)
        own = tl.sum(found[i], axis=AXIS)
        total = own if i == 0 else total + own
    return below, found, total


@triton.jit
def uneven_softmax_kernel(
    x_ptr, y_ptr, length, LOG: tl.constexpr, WIDTHS: tl.constexpr, UNIT: tl.constexpr
):
    """The same of one row of a last axis, in pieces."""
    first = tl.program_id(0).to(tl.int64) * length
    places, mask = places_of(length, WIDTHS, UNIT)
    x = in_float32(load_pieces(x_ptr + first, places, mask, -float("inf")))
    below, numerator, sums = exponentials(x, max_of(x), 1)
    total = tl.sum(sums, axis=0)
    y = less(below, libdevice.log(total)) if LOG else divided(numerator, total)
    store_pieces(y_ptr + first, places, mask, y)


@triton.jit
def short_softmax_kernel(
    x_ptr, y_ptr, rows, length,
    LOG: tl.constexpr, WIDTHS: tl.constexpr, UNIT: tl.constexpr, ROWS: tl.constexpr, EVEN: tl.constexpr,
):  # fmt: skip
    """The same of ROWS short rows, each of UNIT threads; EVEN says that all of them are there."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None, None]
    first = row.to(tl.int64) * length
    plain, cut = places_of(length, WIDTHS, UNIT)
    x, places, masks = (), (), ()
    for i in tl.static_range(len(WIDTHS)):
        there = None if EVEN else row < rows
        if i == len(WIDTHS) - 1:
            there = cut[None, :, :] if EVEN else there & cut[None, :, :]
        at = first + plain[i][None, :, :]
        # A number that is not there weighs nothing, and a row without any is not stored.
        found = tl.load(x_ptr + at, mask=there, other=None if there is None else -float("inf"))
        x, places, masks = x + (found.to(tl.float32),), places + (at,), masks + (there,)
    below, numerator, sums = exponentials(x, max_of(x, 2)[:, None, None], 2)
    total = tl.sum(sums, axis=1)[:, None, None]
    y = less(below, libdevice.log(total)) if LOG else divided(numerator, total)
    for i in tl.static_range(len(WIDTHS)):
        tl.store(y_ptr + places[i], y[i].to(y_ptr.dtype.element_ty), mask=masks[i])


@triton.jit
def long_row_softmax_kernel(
    x_ptr, y_ptr, length, LOG: tl.constexpr, FAR: tl.constexpr, BLOCK: tl.constexpr
):
    """The same of one row of a last axis that is longer than BLOCK: four places have a running maximum and sum together."""
    first = tl.program_id(0).to(tl.int64) * length
    x_ptr += first
    y_ptr += first
    places = index(tl.arange(0, BLOCK // 4)[:, None] * 4 + tl.arange(0, 4)[None, :], FAR)
    highest = tl.full((BLOCK // 4,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK // 4,), tl.float32)
    for start in range(0, length, BLOCK):
        at = start + places
        x = tl.load(x_ptr + at, mask=at < length, other=-float("inf")).to(tl.float32)
        highest, total = with_exponentials(highest, total, x)
    top = tl.max(highest, axis=0)
    total = tl.sum(total * tl.exp(highest - top), axis=0)
    # At least 1: the largest number is there.
    end = libdevice.log(total) if LOG else tl.div_rn(1.0, total)
    for start in range(0, length, BLOCK):
        at = start + places
        x = tl.load(x_ptr + at, mask=at < length, other=-float("inf")).to(tl.float32)
        y = (x - top) - end if LOG else tl.exp(x - top) * end
        tl.store(y_ptr + at, y.to(y_ptr.dtype.element_ty), mask=at < length)


@triton.jit
def long_softmax_kernel(
    x_ptr, y_ptr, length, inner,
    LOG: tl.constexpr, FAR: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """The same of rows of another axis."""
    places = index(tl.arange(0, BLOCK)[:, None], FAR)
    rows = index(tl.program_id(1), FAR) * ROWS + tl.arange(0, ROWS)[None, :]
    first = tl.program_id(0).to(tl.int64) * length * inner + rows
    inside = rows < inner
    highest = tl.full((BLOCK, ROWS), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK, ROWS), tl.float32)
    for start in range(0, length, BLOCK):
        at = start + places
        mask = (at < length) & inside
        x = tl.load(x_ptr + first + at * inner, mask=mask, other=-float("inf")).to(tl.float32)
        # A NaN stays one; a place that has met -inf alone weighs nothing, and no NaN may come of it.
        higher = tl.maximum(highest, x, propagate_nan=tl.PropagateNan.ALL)
        shift = tl.where(higher == -float("inf"), 0.0, higher)
        total = total * tl.exp(highest - shift) + tl.exp(x - shift)
        highest = higher
    top = tl.max(highest, axis=0)[None, :]
    total = tl.sum(total * tl.exp(highest - top), axis=0)[None, :]
    for start in range(0, length, BLOCK):
        at = start + places
        mask = (at < length) & inside
        x = tl.load(x_ptr + first + at * inner, mask=mask, other=-float("inf")).to(tl.float32)
        y = x - top - libdevice.log(total) if LOG else tl.exp(x - top) / total
        tl.store(y_ptr + first + at * inner, y.to(y_ptr.dtype.element_ty), mask=mask)


@triton.jit
def softmax_backward_kernel(
    dy_ptr, y_ptr, dx_ptr, length, inner,
    LOG: tl.constexpr, FAR: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """dx = y (dy - Σ dy y); of the logarithm dx = dy - exp(y) Σ dy."""
    places = index(tl.arange(0, BLOCK)[:, None], FAR)
    rows = index(tl.program_id(1), FAR) * ROWS + tl.arange(0, ROWS)[None, :]
    first = tl.program_id(0).to(tl.int64) * length * inner + rows
    inside = rows < inner
    sums = tl.zeros((BLOCK, ROWS), tl.float32)
    for start in range(0, length, BLOCK):
        mask = (start + places < length) & inside
        at = first + (start + places) * inner
        dy = tl.load(dy_ptr + at, mask=mask, other=0.0).to(tl.float32)
        y = tl.load(y_ptr + at, mask=mask, other=0.0).to(tl.float32)
        sums += dy if LOG else dy * y
    total = tl.sum(sums, axis=0)[None, :]
    for start in range(0, length, BLOCK):
        mask = (start + places < length) & inside
        at = first + (start + places) * inner
        dy = tl.load(dy_ptr + at, mask=mask, other=0.0).to(tl.float32)
        y = tl.load(y_ptr + at, mask=mask, other=0.0).to(tl.float32)
        dx = dy - tl.exp(y) * total if LOG else y * (dy - total)
        tl.store(dx_ptr + at, dx.to(dx_ptr.dtype.element_ty), mask=mask)


def _blocks(x: Array, axis: int) -> tuple[tuple[int, int], dict[str, Any]]:
    """The grid of an array and an axis, and the numbers that its kernels take."""
    shape = tuple(x.shape)
    outer, length, inner = size_of(shape[:axis]), shape[axis], size_of(shape[axis + 1 :])
    block = min(triton.next_power_of_2(length), BLOCK if length > LONGEST else LONGEST)
    # Up to 32 neighbours of 4,096 numbers in all; of a last axis there is one.
    rows = min(triton.next_power_of_2(inner), 32, max(1, 4096 // block))
    return (outer, triton.cdiv(inner, rows)), {
        "length": length,
        "inner": inner,
        "FAR": length * inner >= FAR_FROM,
        "BLOCK": block,
        "ROWS": rows,
    }


def _short(x: Array, rows: int, length: int, log: bool) -> dict[str, Any] | None:
    """How many short rows a SIMD-group takes at once, if there are many of them, and their pieces.

    Rows of more than one piece are stored piece by piece, with waits: that pays where each thread takes the logarithm of the sum.
    """
    if not 0 < length <= (16 * MOST if log else ALONE) or rows < ROWS_OF_CORE * chip_for(x).cores:
        return None
    threads = min(8, triton.next_power_of_2(triton.cdiv(length, 4))) if length <= 8 * MOST else 16
    widths = widths_of(triton.cdiv(length, threads))
    return {"WIDTHS": widths, "UNIT": threads, "ROWS": 32 // threads, "num_warps": 1}


def _forward(x: Array, axis: int, log: bool) -> tuple[Array, ...]:
    grid, sizes = _blocks(x, axis)
    length, outer = sizes["length"], grid[0]
    outputs = {"y_ptr": (x.shape, dtype_name(x))}
    given = {"like": x, "x_ptr": contiguous(x), "LOG": log}
    if sizes["inner"] == 1:
        short = None if chosen() == "mlx-graph" else _short(x, outer, length, log)
        if short is not None:
            grid, even = (triton.cdiv(outer, short["ROWS"]),), outer % short["ROWS"] == 0
            short |= {"rows": outer, "length": length, "EVEN": even}
            return launch(short_softmax_kernel, grid, outputs, **given, **short)
        # Each thread takes the logarithm of the sum: so few have up to 32 numbers each.
        held = pieces(max(length, 1), most=MOST if log else 16)
        saves = log or 8 * held["UNIT"] * sum(held["WIDTHS"]) <= 7 * sizes["BLOCK"]
        if ALONE < length <= LONGEST and saves:
            return launch(uneven_softmax_kernel, grid[:1], outputs, length=length, **given, **held)
        if length > LONGEST:
            how = {"length": length, "FAR": sizes["FAR"], "BLOCK": BLOCK_OF_ROW}
            return launch(long_row_softmax_kernel, grid[:1], outputs, **given, **how)
    kernel = softmax_kernel if length <= LONGEST else long_softmax_kernel
    return launch(kernel, grid, outputs, **given, **sizes)


def _backward(dy: Array, y: Array, axis: int, log: bool) -> tuple[Array, ...]:
    grid, sizes = _blocks(y, axis)
    outputs = {"dx_ptr": (y.shape, dtype_name(y))}
    arrays = {"dy_ptr": contiguous(dy), "y_ptr": contiguous(y)}
    return launch(softmax_backward_kernel, grid, outputs, like=y, LOG=log, **arrays, **sizes)


def _like_first(x: Array, *_: Any) -> list[tuple[Any, str]]:
    return [(x.shape, dtype_name(x))]


_SOFTMAX_BACKWARD = Operator(
    "softmax_backward(Tensor dy, Tensor y, int axis, bool log) -> (dx)", _backward, _like_first
)
_SOFTMAX = Operator(
    "softmax(Tensor x, int axis, bool log) -> (y)",
    _forward,
    _like_first,
    lambda kept, dy: {"x": _SOFTMAX_BACKWARD(dy, kept.y, kept.axis, kept.log)[0]},
    keeps="y",
)


def _softmax(function: str, x: Array, axis: int, log: bool) -> Array:
    check_arrays(function, x=x)
    check_dtype(function, "x", x, FLOATS)
    check_rank(function, "x", x, 1, 1 << 16)
    return _SOFTMAX(x, check_axis(function, axis, x.ndim), log)[0]


def softmax(x: Array, axis: int = -1) -> Array:
    """exp(x - max) / Σ exp(x - max) along ``axis``, computed in float32.

    ``x`` is float16, bfloat16 or float32, of any shape with at least one dimension; the result is like ``x``. A row of -inf alone,
    and a row with a NaN or +inf, gives NaN, as in NumPy. Differentiable.

    Raises LaunchValueError for another dtype or an axis that ``x`` does not have.

    Error, with u = 2^-24 and beside the rounding of the result: (24 + √n + 5 (max - x)) u y, for rows of n.

    >>> import numpy as np, triton_metal.ops as ops
    >>> ops.softmax(np.log(np.array([[1.0, 3.0], [2.0, 2.0]], np.float32))).round(3)
    array([[0.25, 0.75],
           [0.5 , 0.5 ]], dtype=float32)
    """
    return _softmax("softmax", x, axis, False)


def log_softmax(x: Array, axis: int = -1) -> Array:
    """x - max - log Σ exp(x - max) along ``axis``, computed in float32.

    ``x`` is float16, bfloat16 or float32, of any shape with at least one dimension; the result is like ``x``. Differentiable.

    Raises LaunchValueError for another dtype or an axis that ``x`` does not have.

    Error, with u = 2^-24 and beside the rounding of the result: (4 |y| + 8 + √n) u, for rows of n.

    >>> import numpy as np, triton_metal.ops as ops
    >>> np.exp(ops.log_softmax(np.zeros((2, 4), np.float32), axis=0)).round(3)
    array([[0.5, 0.5, 0.5, 0.5],
           [0.5, 0.5, 0.5, 0.5]], dtype=float32)
    """
    return _softmax("log_softmax", x, axis, True)
