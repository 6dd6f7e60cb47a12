"""The reduction under `reductions`: an array seen as (outer, length, inner), of which `length` goes.

A program reduces one part of ROWS rows; a row is what is reduced to one number. Where there are few long rows they are cut into
parts, and a second launch joins what they gave. The order is fixed: a result is the same each time.
"""

from __future__ import annotations

import triton_metal as triton
import triton_metal.language as tl

from ._arrays import Array, dtype_name, reshaped
from ._axes import accumulator, is_wide, item_size, limits
from ._launch import launch

#: The numbers that a program holds at once: one SIMD-group reduces them, whose sums cross lanes once and need no barrier.
BLOCK = 512
#: Those of rows that are read once, and the most parts into which rows are cut.
LONGEST = 16_384
PARTS = 256


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
def reduce_kernel(
    x_ptr,
    m_ptr,
    y_ptr,
    rows,
    length,
    inner,
    part_length,
    parts,
    divisor,
    JOIN: tl.constexpr,
    MAP: tl.constexpr,
    END: tl.constexpr,
    READ: tl.constexpr,
    ACC: tl.constexpr,
    OTHER: tl.constexpr,
    IDENTITY: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK: tl.constexpr,
    ROWS: tl.constexpr,
):
    """y[row, part] = JOIN of MAP(x) over a part of each row, and END of it."""
    program, part = tl.program_id(0), tl.program_id(1)
    if WIDE:
        program, part = program.to(tl.int64), part.to(tl.int64)
    row = program * ROWS + tl.arange(0, ROWS)[None, :]
    outer, given = row // inner, row < rows
    places = tl.arange(0, BLOCK)[:, None]
    first = outer * length * inner + row % inner
    begin, end = part * part_length, min(length, (part + 1) * part_length)
    m = 0.0
    if m_ptr is not None:
        m = tl.load(m_ptr + row, mask=given, other=0).to(READ)
    # The last block, which alone may be cut, and then the whole ones.
    last = begin + max(end - begin - 1, 0) // BLOCK * BLOCK
    at = last + places
    mask = (at < end) & given
    total = _numbers(x_ptr, m, first + at * inner, mask, MAP, READ, ACC, OTHER, IDENTITY)
    for start in range(begin, last, BLOCK):
        of_block = first + (start + places) * inner
        whole = None if ROWS == 1 else given
        x = _numbers(x_ptr, m, of_block, whole, MAP, READ, ACC, OTHER, IDENTITY)
        total = _joined(total, x, JOIN)
    if JOIN == "sum":
        y = tl.reduce(total, 0, _sum)[None, :]
    elif JOIN == "prod":
        y = tl.reduce(total, 0, _prod)[None, :]
    elif JOIN == "max":
        y = tl.reduce(total, 0, _max)[None, :]
    else:
        y = tl.reduce(total, 0, _min)[None, :]
    if END == "divide":
        y = tl.math.div_rn(y, divisor)
    elif END == "root":
        y = tl.math.sqrt_rn(y)
    elif END == "deviation":
        y = tl.math.sqrt_rn(tl.math.div_rn(y, divisor))
    elif END == "log":
        y = tl.log(y) + m
    at = outer * inner * parts + part * inner + row % inner
    if y_ptr.dtype.element_ty == tl.int1:
        y = y != 0
    tl.store(y_ptr + at, y.to(y_ptr.dtype.element_ty), mask=given)


@triton.jit
def centred_kernel(
    x_ptr,
    y_ptr,
    rows,
    length,
    inner,
    divisor,
    END: tl.constexpr,
    WIDE: tl.constexpr,
    BLOCK: tl.constexpr,
    ROWS: tl.constexpr,
):
    """The variance, deviation or log Σ exp of rows of at most BLOCK numbers, which are read once."""
    program = tl.program_id(0).to(tl.int64) if WIDE else tl.program_id(0)
    row = program * ROWS + tl.arange(0, ROWS)[None, :]
    places = tl.arange(0, BLOCK)[:, None]
    at = row // inner * length * inner + row % inner + places * inner
    mask = (places < length) & (row < rows)
    if END == "log":
        x = tl.load(x_ptr + at, mask=mask, other=-float("inf")).to(tl.float32)
        top = tl.max(x, axis=0)[None, :]  # a NaN comes back by the sum
        shift = tl.where(tl.abs(top) == float("inf"), 0.0, top)
        y = tl.log(tl.sum(tl.exp(x - shift), axis=0)[None, :]) + shift
    else:
        x = tl.load(x_ptr + at, mask=mask, other=0.0).to(tl.float32)
        mean = tl.sum(x, axis=0)[None, :] / length
        x = tl.where(mask, x - mean, 0.0)
        y = tl.math.div_rn(tl.sum(x * x, axis=0)[None, :], divisor)
        if END == "deviation":
            y = tl.math.sqrt_rn(y)
    tl.store(y_ptr + row, y.to(y_ptr.dtype.element_ty), mask=row < rows)


_TYPES = {
    "float32": tl.float32, "int32": tl.int32, "uint32": tl.uint32, "int64": tl.int64, "uint64": tl.uint64,
}  # fmt: skip


def block_of(rows: int, length: int, inner: int, itemsize: int = 4) -> tuple[int, int]:
    """BLOCK and ROWS for rows of this length: neighbours side by side, or several short rows.

    Of neighbours each lane has 16 bytes, so that no sum crosses lanes.
    """
    block = triton.next_power_of_2(max(length, 1))
    if inner > 1:
        side = triton.next_power_of_2(min(inner, 32 * 16 // max(itemsize, 2)))
        return min(block, max(4, BLOCK // side)), side
    block = min(block, BLOCK)
    return block, triton.next_power_of_2(min(rows, max(1, BLOCK // block)))


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
    outer, length, inner = sizes
    read = accumulator(dtype_name(x))
    acc = accumulate or (read if read == "float32" or join in ("max", "min") else "int64")
    low, high = (0, 1) if map == "nonzero" else limits(acc)
    identity = {"sum": 0, "prod": 1, "max": low, "min": high}[join]

    def other(map: str, read: str) -> float | None:
        """What a masked load gives if that maps to the identity."""
        if join == "sum" and map in ("", "abs", "square"):
            return 0
        return identity if map == "" and read == "float32" else None

    rows = outer * inner
    block, side = block_of(rows, length, inner, item_size(dtype_name(x)))
    programs = triton.cdiv(rows, side)
    least = block * (16 if inner > 1 else 4)
    parts = min(PARTS, triton.cdiv(length, least), max(1, 2 * PARTS // max(programs, 1)))
    part_length = triton.cdiv(triton.cdiv(max(length, 1), max(parts, 1)), block) * block
    parts = max(1, triton.cdiv(length, part_length))
    common = {
        "rows": rows,
        "inner": inner,
        "divisor": float(divisor),
        "WIDE": is_wide(sizes),
        "num_warps": 1,
        "JOIN": join,
        "ACC": _TYPES[acc],
    }
    (y,) = launch(
        reduce_kernel,
        (programs, parts),
        {"y_ptr": ((outer, parts, inner), acc if parts > 1 else dtype)},
        like=x,
        x_ptr=x,
        m_ptr=m,
        length=length,
        part_length=part_length,
        parts=parts,
        MAP=map,
        END=end if parts == 1 else "",
        READ=_TYPES[read],
        OTHER=other(map, read),
        IDENTITY=identity,
        BLOCK=block,
        ROWS=side,
        **common,
    )  # fmt: skip
    if parts > 1:
        block, side = block_of(rows, parts, inner, item_size(acc))
        (y,) = launch(
            reduce_kernel,
            (triton.cdiv(rows, side), 1),
            {"y_ptr": ((outer, 1, inner), dtype)},
            like=x,
            x_ptr=y,
            m_ptr=m if end == "log" else None,
            length=parts,
            part_length=triton.cdiv(parts, block) * block,
            parts=1,
            MAP="",
            END=end,
            READ=_TYPES[acc],
            OTHER=other("", acc),
            IDENTITY=identity,
            BLOCK=block,
            ROWS=side,
            **common,
        )
    return reshaped(y, (outer, inner))


def centred_rows(
    x: Array, sizes: tuple[int, int, int], end: str, dtype: str, divisor: float
) -> Array:
    """The variance ("divide"), deviation or log Σ exp ("log") of rows, which may be long."""
    outer, length, inner = sizes
    block = triton.next_power_of_2(max(length, 1))
    if length > 0 and block <= (LONGEST if inner == 1 else LONGEST // 32):
        side = triton.next_power_of_2(
            min(inner, 32) if inner > 1 else min(outer, max(1, BLOCK // block))
        )
        (y,) = launch(
            centred_kernel,
            (triton.cdiv(outer * inner, side),),
            {"y_ptr": ((outer, inner), dtype)},
            like=x,
            x_ptr=x,
            rows=outer * inner,
            length=length,
            inner=inner,
            divisor=float(divisor),
            END=end,
            WIDE=is_wide(sizes),
            BLOCK=block,
            ROWS=side,
        )
        return y
    if end == "log":
        top = reduce_rows(x, sizes, "max", "float32")
        return reduce_rows(x, sizes, "sum", dtype, map="exp", end="log", m=top)
    mean = reduce_rows(x, sizes, "sum", "float32", end="divide", divisor=length)
    return reduce_rows(x, sizes, "sum", dtype, map="distance", end=end, m=mean, divisor=divisor)
