"""Rotary position embedding: pairs of a row's elements are turned by angles that grow with the position.

An array is seen as (outer, length, inner, size) around the axis of positions. All rows of a position have the same angles,
so that a program computes or reads them once and turns HEADS rows, one after the other. The gradient is the inverse rotation.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import triton_metal as triton
import triton_metal.language as tl

from ._arrays import FLOATS, Array, contiguous, dtype_name, is_torch, size_of
from ._checks import (
    check_arrays,
    check_axis,
    check_dtype,
    check_flag,
    check_number,
    check_rank,
    check_shape,
    fail,
)
from ._far import FAR_FROM, index
from ._indices import check_index
from ._launch import launch
from ._operators import Operator

#: The most rows that a program turns: where there are many programs, they turn more with each angle.
HEADS, HEADS_OF_MANY = 8, 16
#: The pairs of one SIMD-group, the least of a piece of a row, and the most positions of a program.
PAIRS, LEAST, POSITIONS = 64, 8, 8
#: So many programs are many.
MANY = 256
#: The least normal number of float32: powers of a smaller base are infinite there.
LEAST_BASE = 2.0**-126


@triton.jit
def angles_of(
    cos_ptr, sin_ptr, time, pair, mask, offset, scale, log2_step,
    HALF: tl.constexpr, INVERSE: tl.constexpr, SCALED: tl.constexpr,
):  # fmt: skip
    """The cosines and the sines of these pairs at these positions."""
    if cos_ptr is None:
        position = (offset + time).to(tl.float32)
        angle = (position * scale if SCALED else position) * tl.exp2(
            pair.to(tl.float32) * log2_step
        )
        cosine, sine = tl.cos(angle), tl.sin(angle)
    else:
        entry = (offset + time).to(tl.int64) * HALF + pair
        cosine = tl.load(cos_ptr + entry, mask=mask).to(tl.float32)
        sine = tl.load(sin_ptr + entry, mask=mask).to(tl.float32)
    return cosine, -sine if INVERSE else sine


@triton.jit
def turn_row(x_row, y_row, at, mask, cosine, sine, HALF: tl.constexpr, NEIGHBOURS: tl.constexpr):
    """The pairs of a row whose elements begin `at`."""
    opposite = -sine
    if NEIGHBOURS:
        at = at[:, :, None] + tl.arange(0, 2)[None, None, :]
        mask = None if mask is None else mask[:, :, None]
        a, b = tl.split(tl.load(x_row + at, mask=mask))
        a, b = a.to(tl.float32), b.to(tl.float32)
        y = tl.join(a * cosine + b * opposite, a * sine + b * cosine).to(y_row.dtype.element_ty)
        tl.store(y_row + at, y, mask=mask)
    else:
        a = tl.load(x_row + at, mask=mask).to(tl.float32)
        b = tl.load(x_row + HALF + at, mask=mask).to(tl.float32)
        y = (a * cosine + b * opposite).to(y_row.dtype.element_ty)
        tl.store(y_row + at, y, mask=mask)
        y = (a * sine + b * cosine).to(y_row.dtype.element_ty)
        tl.store(y_row + HALF + at, y, mask=mask)


@triton.jit
def rotary_kernel(
    x_ptr, y_ptr, cos_ptr, sin_ptr, n_heads, n_blocks, inner, offset, scale, log2_step,
    SIZE: tl.constexpr, HALF: tl.constexpr, NEIGHBOURS: tl.constexpr, INVERSE: tl.constexpr, SCALED: tl.constexpr,
    HEADS: tl.constexpr, POSITIONS: tl.constexpr, WIDTHS: tl.constexpr, FULL: tl.constexpr, REST: tl.constexpr, FAR: tl.constexpr,
):  # fmt: skip
    """HEADS rows of each position, WIDTHS pairs after each other; elements from 2 HALF on are copied, REST (or no) at once.

    A row's positions are n_blocks of POSITIONS, which are more than one only where `inner` is 1. FULL says that WIDTHS are no more than a row's pairs.
    """
    time = tl.program_id(0) * POSITIONS + tl.arange(0, POSITIONS)[:, None]
    places, masks, cosines, sines = (), (), (), ()
    before = 0
    for i in tl.static_range(len(WIDTHS)):
        pair = before + tl.arange(0, WIDTHS[i])[None, :]
        mask = None if FULL or i < len(WIDTHS) - 1 else pair < HALF
        cosine, sine = angles_of(
            cos_ptr, sin_ptr, time, pair, mask, offset, scale, log2_step, HALF, INVERSE, SCALED
        )
        places, masks = places + (pair * 2 if NEIGHBOURS else pair,), masks + (mask,)
        cosines, sines = cosines + (cosine,), sines + (sine,)
        before += WIDTHS[i]
    block = tl.program_id(0).to(tl.int64) * inner * (POSITIONS * SIZE)
    x_ptr += block
    y_ptr += block
    first = tl.arange(0, POSITIONS)[:, None] * SIZE
    head_0 = tl.program_id(1) * HEADS
    for head in range(head_0, tl.minimum(head_0 + HEADS, n_heads)):
        row = (head // inner).to(tl.int64) * n_blocks * inner * (POSITIONS * SIZE) + index(
            head % inner, FAR
        ) * SIZE
        x_row, y_row = x_ptr + row, y_ptr + row
        for i in tl.static_range(len(WIDTHS)):
            turn_row(
                x_row, y_row, first + places[i], masks[i], cosines[i], sines[i], HALF, NEIGHBOURS
            )
        if REST > 0:
            rest = 2 * HALF + tl.arange(0, REST)[None, :]
            inside = rest < SIZE
            tl.store(y_row + first + rest, tl.load(x_row + first + rest, mask=inside), mask=inside)


def _heads(rows: int, programs: int) -> int:
    """How many rows of its positions a program turns: nearly as many in all programs."""
    most = HEADS_OF_MANY if programs * triton.cdiv(rows, HEADS_OF_MANY) >= MANY else HEADS
    return triton.cdiv(rows, max(1, triton.cdiv(rows, most))) if rows else 1


def _pieces(half: int, positions: int) -> tuple[int, tuple[int, ...]]:
    """How many of so many positions a program takes, and the powers of two that a row's pairs are, of which the last may be cut.

    The least piece has as many pairs as lanes, of all positions of the program, and more positions than two for a lane are not taken.
    Rows of several positions are not cut: their places would not be proven apart, and each row would be waited for.
    """
    least = max(LEAST, 32 // positions)
    units = max(1, triton.cdiv(half, least))
    widths = tuple(least << bit for bit in reversed(range(units.bit_length())) if units >> bit & 1)
    if sum(widths) == half:
        return min(positions, max(1, PAIRS // widths[-1])), widths
    if positions > 1:
        return _pieces(half, positions // 2)
    return 1, (triton.next_power_of_2(max(half, 1)),)


def _forward(
    x: Array, cos: Array | None, sin: Array | None, axis: int, offset: int, base: float, scale: float,
    dims: int, traditional: bool, inverse: bool,
) -> tuple[Array, ...]:  # fmt: skip
    shape, half = tuple(x.shape), dims // 2
    outer, length, inner = size_of(shape[:axis]), shape[axis], size_of(shape[axis + 1 : -1])
    together = min(length & -length, POSITIONS) if inner == 1 and length else 1
    positions, widths = _pieces(half, together)
    programs, rest = length // positions, shape[-1] - dims
    heads = _heads(outer * inner, programs)
    return launch(
        rotary_kernel,
        (programs, triton.cdiv(outer * inner, heads)),
        {"y_ptr": (shape, dtype_name(x))},
        like=x,
        x_ptr=contiguous(x),
        cos_ptr=None if cos is None else contiguous(cos),
        sin_ptr=None if sin is None else contiguous(sin),
        n_heads=outer * inner,
        n_blocks=programs,
        inner=inner,
        offset=offset,
        scale=scale,
        log2_step=-math.log2(base) / max(half, 1),
        SIZE=shape[-1],
        HALF=half,
        NEIGHBOURS=traditional,
        INVERSE=inverse,
        SCALED=scale != 1,
        HEADS=heads,
        POSITIONS=positions,
        WIDTHS=widths,
        FULL=sum(widths) == half,
        REST=triton.next_power_of_2(rest) if rest else 0,
        FAR=inner * shape[-1] >= FAR_FROM,
        num_warps=max(1, min(positions * widths[0] // PAIRS, positions * widths[-1] // 32, 8)),
    )


def _gradient(kept: Any, dy: Array) -> dict[str, Array]:
    plain = (kept.axis, kept.offset, kept.base, kept.scale, kept.dims, kept.traditional)
    return {"x": _ROTARY(dy, kept.cos, kept.sin, *plain, not kept.inverse)[0]}


_ROTARY = Operator(
    "rotary_embedding(Tensor x, Tensor? cos, Tensor? sin, int axis, SymInt offset, float base, float scale, "
    "int dims, bool traditional, bool inverse) -> (y)",
    _forward,
    lambda x, *_: [(x.shape, dtype_name(x))],
    _gradient,
    keeps="cos sin",
)


def rotary_embedding(
    x: Array,
    cos: Array | None = None,
    sin: Array | None = None,
    *,
    base: float = 10000.0,
    offset: int = 0,
    scale: float = 1.0,
    dims: int | None = None,
    traditional: bool = False,
    axis: int = -2,
) -> Array:
    """Turns pairs of elements of the last axis by angles that grow with the position.

    ``x`` (…, length, size) is float16, bfloat16 or float32; the result is like ``x``. Its rows along ``axis`` are at the positions
    ``offset``, ``offset`` + 1, …: for (batch, length, heads, size) name ``axis=1``. The first ``dims`` elements of a row (all if None; an
    even number) are dims / 2 pairs, the others stay as they are. Pair i is (x[i], x[i + dims / 2]), as in Llama, or with
    ``traditional=True`` the neighbours (x[2i], x[2i + 1]), as in GPT-J. It becomes (a cos - b sin, a sin + b cos) of the angle
    scale · position · base^(-2i / dims), all in float32.

    With ``cos`` and ``sin``, arrays (positions, dims / 2) of any of the dtypes with at least ``offset`` + length rows, these take
    the place of the angles' cosines and sines; ``base`` and ``scale`` then mean nothing.

    Differentiable in ``x``; ``cos`` and ``sin`` are constants. Raises LaunchValueError for shapes and dtypes that do not fit and for
    values that are not allowed: an odd or too large ``dims``, a negative ``offset``, a ``base`` that is no positive, normal number of float32.

    Error, with u = 2^-24 and beside the rounding of the result: (|a| + |b|) (α + 3 u) for a pair, where α is 0 for given
    cosines, and |angle| u (8 + 12 i |log₂ base| / dims) + 4 u for computed ones.

    >>> import numpy as np, triton_metal.ops as ops
    >>> x = np.array([[1, 0, 0, 0], [1, 0, 0, 0]], np.float32)
    >>> ops.rotary_embedding(x, offset=1).round(3)
    array([[ 0.54 ,  0.   ,  0.841,  0.   ],
           [-0.416,  0.   ,  0.909,  0.   ]], dtype=float32)
    >>> ops.rotary_embedding(x, np.zeros((2, 2), np.float32), np.ones((2, 2), np.float32), traditional=True)
    array([[0., 1., 0., 0.],
           [0., 1., 0., 0.]], dtype=float32)
    """
    name = "rotary_embedding"
    check_arrays(name, "cos sin", x=x, cos=cos, sin=sin)
    check_dtype(name, "x", x, FLOATS)
    check_rank(name, "x", x, 2, 1 << 16)
    where, size = check_axis(name, axis, x.ndim), x.shape[-1]
    if where == x.ndim - 1:
        raise fail(
            name, f"axis must not be the last one, whose elements are turned, but is {axis}."
        )
    dims = size if dims is None else check_index(name, "dims", dims, 0)
    if dims % 2 or dims > size:
        raise fail(
            name, f"dims must be even and at most {size}, the last axis of x, but is {dims}."
        )
    offset = check_index(name, "offset", offset, 0)
    if offset + x.shape[where] > 2**31:
        raise fail(
            name,
            f"offset must be at most {2**31 - x.shape[where]}, so that positions are below 2**31, but is {offset}.",
        )
    base = check_number(name, "base", base, above=0)
    if base < LEAST_BASE:
        raise fail(
            name,
            f"base must be a normal number of float32, at least {LEAST_BASE:.9g}, but is {base}.",
        )
    scale = check_number(name, "scale", scale)
    if (cos is None) != (sin is None):
        raise fail(name, "cos and sin must both be given or both be None.")
    if cos is not None:
        for each, table in (("cos", cos), ("sin", sin)):
            check_dtype(name, each, table, FLOATS)
            if is_torch(table) and table.requires_grad and sys.modules["torch"].is_grad_enabled():
                raise fail(name, f"{each} must not require a gradient, as none is computed for it.")
            check_rank(name, each, table, 2)
            wanted = (max(table.shape[0], offset + x.shape[where]), dims // 2)
            check_shape(
                name, each, table, wanted, " (at least offset + length rows, dims / 2 columns)"
            )
    traditional = check_flag(name, "traditional", traditional)
    return _ROTARY(x, cos, sin, where, offset, base, scale, dims, traditional, False)[0]
