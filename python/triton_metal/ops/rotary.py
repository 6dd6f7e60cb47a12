"""Rotary position embedding: pairs of a row's elements are turned by angles that grow with the position.

An array is seen as (outer, length, inner, size) around the axis of positions. All rows of a position have the same angles,
so that a program computes or reads them once and turns HEADS rows, one after the other. The gradient is the inverse rotation.
"""

from __future__ import annotations

import math
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
from ._indices import check_index
from ._launch import launch
from ._operators import Operator

#: The most rows that a program turns: where there are many programs, they turn more with each angle.
HEADS, HEADS_OF_MANY = 8, 16
#: So many programs are many.
MANY = 256


@triton.jit
def rotary_kernel(
    x_ptr, y_ptr, cos_ptr, sin_ptr, n_heads, length, inner, offset, scale, log2_step,
    SIZE: tl.constexpr, HALF: tl.constexpr, NEIGHBOURS: tl.constexpr, INVERSE: tl.constexpr, HEADS: tl.constexpr,
    BLOCK: tl.constexpr, REST: tl.constexpr,
):  # fmt: skip
    """HEADS rows of one position; elements from 2 HALF on are copied, REST (or no) elements at once."""
    time = tl.program_id(0)
    pair = tl.arange(0, BLOCK)
    mask = pair < HALF
    if cos_ptr is None:
        angle = (scale * (offset + time).to(tl.float32)) * tl.exp2(pair.to(tl.float32) * log2_step)
        cosine, sine = tl.cos(angle), tl.sin(angle)
    else:
        entry = (offset + time).to(tl.int64) * HALF + pair
        cosine = tl.load(cos_ptr + entry, mask=mask, other=0.0).to(tl.float32)
        sine = tl.load(sin_ptr + entry, mask=mask, other=0.0).to(tl.float32)
    if INVERSE:
        sine = -sine
    opposite = -sine
    head_0 = tl.program_id(1) * HEADS
    for head in range(head_0, tl.minimum(head_0 + HEADS, n_heads)):
        row = (head // inner).to(tl.int64) * length + time
        first = (row * inner + head % inner) * SIZE
        if NEIGHBOURS:
            at = pair[:, None] * 2 + tl.arange(0, 2)[None, :]
            a, b = tl.split(tl.load(x_ptr + first + at, mask=mask[:, None], other=0.0))
            a, b = a.to(tl.float32), b.to(tl.float32)
            y = tl.join(a * cosine + b * opposite, a * sine + b * cosine).to(y_ptr.dtype.element_ty)
            tl.store(y_ptr + first + at, y, mask=mask[:, None])
        else:
            a = tl.load(x_ptr + first + pair, mask=mask, other=0.0).to(tl.float32)
            b = tl.load(x_ptr + first + HALF + pair, mask=mask, other=0.0).to(tl.float32)
            y = (a * cosine + b * opposite).to(y_ptr.dtype.element_ty)
            tl.store(y_ptr + first + pair, y, mask=mask)
            y = (a * sine + b * cosine).to(y_ptr.dtype.element_ty)
            tl.store(y_ptr + first + HALF + pair, y, mask=mask)
        if REST > 0:
            at = 2 * HALF + tl.arange(0, REST)
            there = at < SIZE
            tl.store(y_ptr + first + at, tl.load(x_ptr + first + at, mask=there), mask=there)


def _heads(rows: int, length: int) -> int:
    """How many of a position's rows a program turns: nearly as many in all programs."""
    most = HEADS_OF_MANY if length * triton.cdiv(rows, HEADS_OF_MANY) >= MANY else HEADS
    return triton.cdiv(rows, max(1, triton.cdiv(rows, most))) if rows else 1


def _forward(
    x: Array, cos: Array | None, sin: Array | None, axis: int, offset: int, base: float, scale: float,
    dims: int, traditional: bool, inverse: bool,
) -> tuple[Array, ...]:  # fmt: skip
    shape, half = tuple(x.shape), dims // 2
    outer, length, inner = size_of(shape[:axis]), shape[axis], size_of(shape[axis + 1 : -1])
    heads = _heads(outer * inner, length)
    rest, block = shape[-1] - dims, triton.next_power_of_2(max(half, 1))
    return launch(
        rotary_kernel,
        (length, triton.cdiv(outer * inner, heads)),
        {"y_ptr": (shape, dtype_name(x))},
        like=x,
        x_ptr=contiguous(x),
        cos_ptr=None if cos is None else contiguous(cos),
        sin_ptr=None if sin is None else contiguous(sin),
        n_heads=outer * inner,
        length=length,
        inner=inner,
        SIZE=shape[-1],
        offset=offset,
        scale=scale,
        log2_step=-math.log2(base) / max(half, 1),
        HALF=half,
        NEIGHBOURS=traditional,
        INVERSE=inverse,
        HEADS=heads,
        BLOCK=block,
        REST=triton.next_power_of_2(rest) if rest else 0,
        # A row has few pairs: two for a thread, so that none computes an angle of another's.
        num_warps=max(1, min(block // 64, 8)),
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
    values that are not allowed: an odd or too large ``dims``, a negative ``offset``, a ``base`` that is not positive.

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
    scale = check_number(name, "scale", scale)
    if (cos is None) != (sin is None):
        raise fail(name, "cos and sin must both be given or both be None.")
    if cos is not None:
        for each, table in (("cos", cos), ("sin", sin)):
            check_dtype(name, each, table, FLOATS)
            if is_torch(table) and table.requires_grad:
                raise fail(name, f"{each} must not require a gradient, as none is computed for it.")
            check_rank(name, each, table, 2)
            wanted = (max(table.shape[0], offset + x.shape[where]), dims // 2)
            check_shape(
                name, each, table, wanted, " (at least offset + length rows, dims / 2 columns)"
            )
    traditional = check_flag(name, "traditional", traditional)
    return _ROTARY(x, cos, sin, where, offset, base, scale, dims, traditional, False)[0]
