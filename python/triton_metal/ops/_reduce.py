"""The reduction under `reductions`: an array seen as (outer, length, inner), of which `length` goes.

A program reduces one part of ROWS rows; a row is what is reduced to one number. Where there are few long rows they are cut into
parts, and a second launch joins what they gave. The order is fixed: a result is the same each time.
"""

from __future__ import annotations

from collections.abc import Sequence

import triton_metal as triton
import triton_metal.language as tl

from ._arrays import Array, contiguous, dtype_name, is_torch, reshaped, size_of
from ._launch import launch

#: The most numbers that a program holds at once, and the parts into which rows are cut.
BLOCK = 4_096
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
    IDENTITY: tl.constexpr,
    BLOCK: tl.constexpr,
    ROWS: tl.constexpr,
):
    """y[row, part] = JOIN of MAP(x) over a part of each row, and END of it."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[None, :]
    part = tl.program_id(1)
    places = tl.arange(0, BLOCK)[:, None]
    first = (row // inner).to(tl.int64) * length * inner + row % inner
    end = min(length, (part + 1) * part_length)
    m = 0.0
    if m_ptr is not None:
        m = tl.load(m_ptr + row, mask=row < rows, other=0).to(READ)
    total = tl.full((BLOCK, ROWS), IDENTITY, ACC)
    for start in range(part * part_length, end, BLOCK):
        at = start + places
        mask = (at < end) & (row < rows)
        x = tl.load(x_ptr + first + at.to(tl.int64) * inner, mask=mask, other=0).to(READ)
        x = tl.where(mask, _mapped(x, m, MAP).to(ACC), IDENTITY).to(ACC)
        if JOIN == "sum":
            total = _sum(total, x)
        elif JOIN == "prod":
            total = _prod(total, x)
        elif JOIN == "max":
            total = _max(total, x)
        else:
            total = _min(total, x)
    if JOIN == "sum":
        y = tl.reduce(total, 0, _sum)
    elif JOIN == "prod":
        y = tl.reduce(total, 0, _prod)
    elif JOIN == "max":
        y = tl.reduce(total, 0, _max)
    else:
        y = tl.reduce(total, 0, _min)
    y = y[None, :]
    if END == "divide":
        y = tl.math.div_rn(y, divisor)
    elif END == "root":
        y = tl.math.sqrt_rn(y)
    elif END == "deviation":
        y = tl.math.sqrt_rn(tl.math.div_rn(y, divisor))
    elif END == "log":
        y = tl.log(y) + m
    at = (row // inner).to(tl.int64) * inner * parts + part * inner + row % inner
    if y_ptr.dtype.element_ty == tl.int1:
        tl.store(y_ptr + at, y != 0, mask=row < rows)
    else:
        tl.store(y_ptr + at, y.to(y_ptr.dtype.element_ty), mask=row < rows)


@triton.jit
def centred_kernel(
    x_ptr,
    y_ptr,
    rows,
    length,
    inner,
    divisor,
    END: tl.constexpr,
    BLOCK: tl.constexpr,
    ROWS: tl.constexpr,
):
    """The variance, deviation or log Σ exp of rows of at most BLOCK numbers, which are read once."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[None, :]
    places = tl.arange(0, BLOCK)[:, None]
    at = (row // inner).to(tl.int64) * length * inner + row % inner + places * inner
    mask = (places < length) & (row < rows)
    if END == "log":
        x = tl.load(x_ptr + at, mask=mask, other=-float("inf")).to(tl.float32)
        top = tl.reduce(x, 0, _max)[None, :]
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


def limits(dtype: str) -> tuple[float, float]:
    """The least and the largest number of a dtype."""
    if dtype.startswith(("float", "bfloat")):
        return -float("inf"), float("inf")
    bits = int(dtype.removeprefix("u").removeprefix("int"))
    if dtype.startswith("u"):
        return 0, 2**bits - 1
    return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1


def accumulator(dtype: str) -> str:
    """The dtype in which numbers of this one are compared, or floats are added."""
    if dtype.startswith(("float", "bfloat")):
        return "float32"
    if dtype in ("int64", "uint64", "uint32"):
        return dtype
    return "int32"


def total_dtype(x: Array) -> str:
    """The dtype of a sum: floats keep theirs; that of integers and bools is the widest, as in NumPy."""
    name = dtype_name(x)
    if name.startswith(("float", "bfloat")):
        return name
    return "uint64" if name.startswith("uint") and not is_torch(x) else "int64"


def block_of(rows: int, length: int, inner: int) -> tuple[int, int]:
    """BLOCK and ROWS for rows of this length: neighbours side by side, or several short rows."""
    block = min(triton.next_power_of_2(max(length, 1)), BLOCK)
    side = min(inner, 32) if inner > 1 else min(rows, max(1, 512 // block))
    side = triton.next_power_of_2(side)
    return max(1, min(block, BLOCK // side)), side


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
    rows = outer * inner
    block, side = block_of(rows, length, inner)
    programs = triton.cdiv(rows, side)
    parts = min(PARTS, triton.cdiv(length, 4 * block), max(1, 2 * PARTS // max(programs, 1)))
    part_length = triton.cdiv(triton.cdiv(max(length, 1), max(parts, 1)), block) * block
    parts = max(1, triton.cdiv(length, part_length))
    common = {
        "rows": rows,
        "inner": inner,
        "divisor": float(divisor),
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
        IDENTITY=identity,
        BLOCK=block,
        ROWS=side,
        **common,
    )  # fmt: skip
    if parts > 1:
        block, side = block_of(rows, parts, inner)
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
    block, side = block_of(outer * inner, length, inner)
    if 0 < length <= block * 4 and side * triton.next_power_of_2(length) <= 4 * BLOCK:
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
            BLOCK=triton.next_power_of_2(length),
            ROWS=side,
        )
        return y
    if end == "log":
        top = reduce_rows(x, sizes, "max", "float32")
        return reduce_rows(x, sizes, "sum", dtype, map="exp", end="log", m=top)
    mean = reduce_rows(x, sizes, "sum", "float32", end="divide", divisor=length)
    return reduce_rows(x, sizes, "sum", dtype, map="distance", end=end, m=mean, divisor=divisor)


def as_rows(x: Array, axes: Sequence[int]) -> tuple[Array, tuple[int, int, int], list[int]]:
    """`x` with the reduced axes side by side and contiguous, its (outer, length, inner), and the order of its axes."""
    shape = tuple(x.shape)
    order = list(range(len(shape)))
    wide = [axis for axis in order if shape[axis] != 1]
    reduced = [axis for axis in wide if axis in axes]
    if reduced and wide.index(reduced[-1]) - wide.index(reduced[0]) + 1 != len(reduced):
        order = [axis for axis in order if axis not in axes] + [
            axis for axis in order if axis in axes
        ]
        x = contiguous(permuted(x, order))
        return (
            x,
            (
                size_of(shape) // max(1, _product(shape, axes))
                if size_of(shape)
                else _product(shape, [a for a in order if a not in axes]),
                _product(shape, axes),
                1,
            ),
            order,
        )
    if not reduced:
        return contiguous(x), (size_of(shape), 1, 1), order
    first, last = reduced[0], reduced[-1]
    return (
        contiguous(x),
        (size_of(shape[:first]), _product(shape, axes), size_of(shape[last + 1 :])),
        order,
    )


def _product(shape: Sequence[int], axes: Sequence[int]) -> int:
    return size_of(tuple(shape[axis] for axis in axes))


def permuted(x: Array, order: Sequence[int]) -> Array:
    """`x` with its axes in another order."""
    return x.permute(*order) if is_torch(x) else x.transpose(*order)


def unpermuted(x: Array, order: Sequence[int]) -> Array:
    """The array of which `permuted(…, order)` is `x`."""
    back = sorted(range(len(order)), key=lambda place: order[place])
    return x if back == list(order) == list(range(len(order))) else contiguous(permuted(x, back))
