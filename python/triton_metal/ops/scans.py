"""Running sums, products and maxima along an axis, and the places of the largest and the least numbers.

An array is seen as (outer, length, inner) around the axis. Where there are few long rows they are cut into parts: the first launch
of a scan finds what each part comes to, the second scans these, and the third begins each part with what came before it.
"""

from __future__ import annotations

from typing import Any

import triton_metal as triton
import triton_metal.language as tl

from ._arrays import FLOATS, Array, contiguous, dtype_name, reshaped, size_of
from ._axes import accumulator, as_rows, is_wide, limits, total_dtype
from ._checks import check_arrays, check_axis, check_dtype, check_rank, fail
from ._launch import launch
from ._operators import Operator
from ._reduce import _TYPES, LONGEST, PARTS, _max, _prod, _sum, block_of
from ._reducing import ALL


@triton.jit
def scan_kernel(
    x_ptr,
    before_ptr,
    y_ptr,
    rows,
    length,
    inner,
    part_length,
    parts,
    JOIN: tl.constexpr,
    REVERSE: tl.constexpr,
    EXCLUSIVE: tl.constexpr,
    TOTALS: tl.constexpr,
    ACC: tl.constexpr,
    IDENTITY: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK: tl.constexpr,
    ROWS: tl.constexpr,
):
    """One part of ROWS rows, from what came before it on; with TOTALS, what it comes to alone."""
    program, part = tl.program_id(0), tl.program_id(1)
    if WIDE:
        program, part = program.to(tl.int64), part.to(tl.int64)
    row = program * ROWS + tl.arange(0, ROWS)[None, :]
    places = tl.arange(0, BLOCK)[:, None]
    outer = row // inner
    first = outer * length * inner + row % inner
    of_part = outer * parts * inner + part * inner + row % inner
    end = min(length, (part + 1) * part_length)
    carry = tl.full((1, ROWS), IDENTITY, ACC)
    if before_ptr is not None:
        carry = tl.load(before_ptr + of_part, mask=row < rows, other=IDENTITY)
    for start in range(part * part_length, end, BLOCK):
        place = start + places
        mask = (place < end) & (row < rows)
        # An exclusive scan is one of the numbers moved on by one place.
        source = place - 1 if EXCLUSIVE else place
        if REVERSE:
            source, place = length - 1 - source, length - 1 - place
        given = mask & (source >= 0) & (source < length)
        x = tl.load(x_ptr + first + source * inner, mask=given, other=0).to(ACC)
        x = tl.where(given, x, IDENTITY).to(ACC)
        if JOIN == "sum":
            total = tl.reduce(x, 0, _sum)[None, :]
            y = carry + tl.associative_scan(x, 0, _sum)
            carry = carry + total
        elif JOIN == "prod":
            total = tl.reduce(x, 0, _prod)[None, :]
            y = carry * tl.associative_scan(x, 0, _prod)
            carry = carry * total
        else:
            total = tl.reduce(x, 0, _max)[None, :]
            y = _max(carry, tl.associative_scan(x, 0, _max))
            carry = _max(carry, total)
        if not TOTALS:
            at = first + place * inner
            tl.store(y_ptr + at, y.to(y_ptr.dtype.element_ty), mask=mask)
    if TOTALS:
        tl.store(y_ptr + of_part, carry, mask=row < rows)


@triton.jit
def _larger(x, i, y, j):
    """The larger number with its place; the first of equals, and of NaNs, which are larger than all numbers."""
    same = (x == y) | ((x != x) & (y != y))
    first = ((x > y) & (y == y)) | ((x != x) & (y == y)) | (same & (i < j))
    return tl.where(first, x, y), tl.where(first, i, j)


@triton.jit
def _less(x, i, y, j):
    same = (x == y) | ((x != x) & (y != y))
    first = ((x < y) & (y == y)) | ((x != x) & (y == y)) | (same & (i < j))
    return tl.where(first, x, y), tl.where(first, i, j)


@triton.jit
def _placed(
    x_ptr,
    i_ptr,
    first,
    at,
    end,
    given,
    inner,
    ACC: tl.constexpr,
    IDENTITY: tl.constexpr,
    PLACE: tl.constexpr,
):
    """Numbers and their places; what is not there comes behind all places."""
    mask = (at < end) & given
    x = tl.load(x_ptr + first + at * inner, mask=mask, other=0).to(ACC)
    here = (at + given * 0).to(PLACE)
    if i_ptr is not None:
        here = tl.load(i_ptr + first + at * inner, mask=mask, other=0).to(PLACE)
    return tl.where(mask, x, IDENTITY).to(ACC), tl.where(mask, here, 2147483647)


@triton.jit
def place_kernel(
    x_ptr,
    i_ptr,
    found_ptr,
    place_ptr,
    rows,
    length,
    inner,
    part_length,
    parts,
    LEAST: tl.constexpr,
    ACC: tl.constexpr,
    IDENTITY: tl.constexpr,
    PLACE: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK: tl.constexpr,
    ROWS: tl.constexpr,
):
    """The place of the largest or least number of one part of ROWS rows; the numbers' own places may be given."""
    program, part = tl.program_id(0), tl.program_id(1)
    if WIDE:
        program, part = program.to(tl.int64), part.to(tl.int64)
    row = program * ROWS + tl.arange(0, ROWS)[None, :]
    places = tl.arange(0, BLOCK)[:, None]
    outer = row // inner
    first = outer * length * inner + row % inner
    begin, end = part * part_length, min(length, (part + 1) * part_length)
    best, place = _placed(
        x_ptr, i_ptr, first, begin + places, end, row < rows, inner, ACC, IDENTITY, PLACE
    )
    for start in range(begin + BLOCK, end, BLOCK):
        at = start + places
        x, here = _placed(x_ptr, i_ptr, first, at, end, row < rows, inner, ACC, IDENTITY, PLACE)
        # Of equals the first stays; a NaN takes the place of a number.
        better = x < best if LEAST else x > best
        better |= (x != x) & (best == best)
        best, place = tl.where(better, x, best), tl.where(better, here, place)
    found, place = tl.reduce((best, place), 0, _less if LEAST else _larger)
    at = outer * parts * inner + part * inner + row % inner
    tl.store(place_ptr + at, place[None, :].to(tl.int64), mask=row < rows)
    if found_ptr is not None:
        tl.store(found_ptr + at, found[None, :], mask=row < rows)


def _parts(sizes: tuple[int, int, int], block: int, side: int, least: int) -> tuple[int, int, int]:
    """The programs for all rows, the length of a part and their number, where one has at least so many blocks."""
    outer, length, inner = sizes
    programs = triton.cdiv(outer * inner, side)
    parts = min(PARTS, triton.cdiv(length, least * block), max(1, PARTS // max(4 * programs, 1)))
    part_length = triton.cdiv(triton.cdiv(length, max(parts, 1)), block) * block
    return programs, part_length, max(1, triton.cdiv(length, max(part_length, 1)))


def _scan(
    x: Array, sizes: tuple[int, int, int], join: str, dtype: str, reverse: bool, exclusive: bool
) -> Array:
    outer, length, inner = sizes
    if inner > 1:
        block, side = block_of(outer * inner, length, inner)
    else:
        block = min(triton.next_power_of_2(max(length, 1)), LONGEST // 4)
        side = triton.next_power_of_2(min(outer, max(1, 512 // block)))
    programs, part_length, parts = _parts(sizes, block, side, 1)
    acc = accumulator(dtype)
    common = {
        "x_ptr": x, "rows": outer * inner, "length": length, "inner": inner, "part_length": part_length, "parts": parts, "JOIN": join,
        "REVERSE": reverse, "EXCLUSIVE": exclusive, "ACC": _TYPES[acc], "BLOCK": block, "ROWS": side, "WIDE": is_wide(sizes),
        "IDENTITY": {"sum": 0, "prod": 1, "max": limits(acc)[0]}[join],
    }  # fmt: skip
    if inner > 1 or block * side <= 512:
        common["num_warps"] = 1  # nothing crosses SIMD-groups
    grid, before = (programs, parts), None
    if parts > 1:
        totals = {"y_ptr": ((outer, parts, inner), acc)}
        (before,) = launch(
            scan_kernel, grid, totals, like=x, before_ptr=None, TOTALS=True, **common
        )
        before = _scan(before, (outer, parts, inner), join, acc, False, True)
    outputs = {"y_ptr": (x.shape, dtype)}
    (y,) = launch(scan_kernel, grid, outputs, like=x, before_ptr=before, TOTALS=False, **common)
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
    return operator(x, join, axis, bool(reverse), bool(exclusive))[0]


def cumsum(x: Array, axis: int = -1, reverse: bool = False, exclusive: bool = False) -> Array:
    """The sums of the numbers up to each place along ``axis``, added in float32.

    ``x`` has at least one dimension and is float16, bfloat16 or float32, of which the result is like ``x``, or an integer or bool:
    their sums are int64, and those of unsigned integers uint64, but int64 in PyTorch. ``reverse`` adds from the end on;
    ``exclusive`` leaves out the number at the place itself, so that the first is 0. The order of additions is fixed. Differentiable.

    Raises LaunchValueError for another dtype or an axis that ``x`` does not have.

    >>> import numpy as np, triton_metal.ops as ops
    >>> ops.cumsum(np.array([1, 2, 3], np.float32))
    array([1., 3., 6.], dtype=float32)
    >>> ops.cumsum(np.array([1, 2, 3], np.float32), reverse=True, exclusive=True)
    array([5., 3., 0.], dtype=float32)
    """
    return _cumulative("cumsum", "sum", x, axis, reverse, exclusive)


def cumprod(x: Array, axis: int = -1, reverse: bool = False, exclusive: bool = False) -> Array:
    """The products of the numbers up to each place along ``axis``; arguments and dtypes as in `cumsum`. Not differentiable.

    >>> import numpy as np, triton_metal.ops as ops
    >>> ops.cumprod(np.array([1, 2, 3, 4], np.int8))
    array([ 1,  2,  6, 24])
    """
    return _cumulative("cumprod", "prod", x, axis, reverse, exclusive)


def cummax(x: Array, axis: int = -1, reverse: bool = False) -> Array:
    """The largest of the numbers up to each place along ``axis``, of the dtype of ``x``: any that `cumsum` takes.

    From a NaN on all are NaN, as in numpy.maximum.accumulate. ``reverse`` begins at the end. Not differentiable.

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
    return _PLACE(x, axes, function == "argmin", bool(keepdims))[0]


def _place_shape(x: Array, axes: list[int], least: bool, keepdims: bool) -> list[tuple[Any, str]]:
    sizes = enumerate(x.shape)
    if keepdims:
        return [(tuple(1 if a in axes else n for a, n in sizes), "int64")]
    return [(tuple(n for a, n in sizes if a not in axes), "int64")]


def _places(x: Array, axes: list[int], least: bool, keepdims: bool) -> tuple[Array, ...]:
    [(shape, _)] = _place_shape(x, axes, least, keepdims)
    found, sizes, _ = as_rows(x, axes)
    acc, place = accumulator(dtype_name(x)), None
    while True:
        outer, length, inner = sizes
        block, side = block_of(outer * inner, length, inner)
        programs, part_length, parts = _parts(sizes, block, side, 4)
        outputs = {"place_ptr": ((outer, parts, inner), "int64")}
        if parts > 1:
            outputs["found_ptr"] = ((outer, parts, inner), acc)
        made = launch(
            place_kernel,
            (programs, parts),
            outputs,
            like=x,
            x_ptr=found,
            i_ptr=place,
            **({} if parts > 1 else {"found_ptr": None}),
            rows=outer * inner,
            length=length,
            inner=inner,
            part_length=part_length,
            parts=parts,
            LEAST=least,
            ACC=_TYPES[acc],
            IDENTITY=limits(acc)[1 if least else 0],
            PLACE=tl.int32,
            WIDE=is_wide(sizes),
            num_warps=1,
            BLOCK=block,
            ROWS=side,
        )
        if parts == 1:
            return (reshaped(made[0], shape),)
        (place, found), sizes = made, (outer, parts, inner)


_PLACE = Operator(
    "place_of(Tensor x, int[] axes, bool least, bool keepdims) -> (y)", _places, _place_shape
)


def argmax(x: Array, axis: int | None = None, keepdims: bool = False) -> Array:
    """The place of the largest number along ``axis``, or in the flattened array if it is None, as int64.

    Of equal numbers it is the first, and the first NaN if there is one, as in NumPy. ``x`` is float16, bfloat16 or float32, an
    integer or bool, of fewer than 2^31 numbers along ``axis``.

    Raises LaunchValueError for another dtype, an axis that ``x`` does not have, or one without numbers.

    >>> import numpy as np, triton_metal.ops as ops
    >>> ops.argmax(np.array([[1, 7, 7], [9, 8, 7]], np.float32), axis=1)
    array([1, 0])
    """
    return _place("argmax", x, axis, keepdims)


def argmin(x: Array, axis: int | None = None, keepdims: bool = False) -> Array:
    """The place of the least number along ``axis``; all else is as in `argmax`.

    >>> import numpy as np, triton_metal.ops as ops
    >>> ops.argmin(np.array([[1, 7, 7], [9, 8, 7]], np.float32), axis=1)
    array([0, 2])
    """
    return _place("argmin", x, axis, keepdims)
