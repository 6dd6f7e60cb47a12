"""Dropout by random numbers that are a function of the seed and of an element's index: no mask is stored."""

from __future__ import annotations

import math
from typing import Any

import triton_metal as triton
import triton_metal.language as tl

from ._arrays import FLOATS, Array, contiguous, dtype_name, is_array, size_of
from ._checks import check_arrays, check_dtype, check_number, fail
from ._indices import INTEGERS, check_index
from ._launch import launch
from ._operators import Operator

#: Groups of four elements that a program takes, one call of Philox each.
GROUPS = 256


@triton.jit
def dropout_kernel(x_ptr, seed_ptr, y_ptr, n, threshold, scale, seed, GROUPS: tl.constexpr):
    """y = x scale where the upper 24 bits of the element's random word are at least threshold, else 0."""
    if seed_ptr is not None:
        seed = tl.load(seed_ptr)
    group = tl.program_id(0) * GROUPS + tl.arange(0, GROUPS)
    word_0, word_1, word_2, word_3 = tl.randint4x(seed, group)
    words = tl.join(tl.join(word_0, word_2), tl.join(word_1, word_3)).reshape(4 * GROUPS)
    first = tl.program_id(0).to(tl.int64) * (4 * GROUPS)
    at = tl.arange(0, 4 * GROUPS)
    mask = at < tl.minimum(n - first, 4 * GROUPS).to(tl.int32)
    x = tl.load(x_ptr + first + at, mask=mask, other=0.0).to(tl.float32)
    keep = (words.to(tl.uint32, bitcast=True) >> 8).to(tl.int32) >= threshold
    y = tl.where(keep, x * scale, 0.0)
    tl.store(y_ptr + first + at, y.to(y_ptr.dtype.element_ty), mask=mask)


def _forward(x: Array, seed_array: Array | None, p: float, seed: int) -> tuple[Array, ...]:
    n = size_of(tuple(x.shape))
    return launch(
        dropout_kernel,
        (triton.cdiv(n, 4 * GROUPS),),
        {"y_ptr": (x.shape, dtype_name(x))},
        like=x,
        x_ptr=contiguous(x),
        seed_ptr=None if seed_array is None else contiguous(seed_array),
        n=n,
        threshold=math.ceil(p * 2**24),
        scale=0.0 if p == 1 else 1 / (1 - p),
        seed=seed,
        GROUPS=GROUPS,
    )


def _gradient(kept: Any, dy: Array) -> dict[str, Array]:
    return {"x": _DROPOUT(dy, kept.seed_array, kept.p, kept.seed)[0]}


_DROPOUT = Operator(
    "dropout(Tensor x, Tensor? seed_array, float p, SymInt seed) -> (y)",
    _forward,
    lambda x, *_: [(x.shape, dtype_name(x))],
    _gradient,
    keeps="seed_array",
)


def dropout(x: Array, p: float, seed: int | Array) -> Array:
    """Sets each element to 0 with probability ``p`` and multiplies the others by 1 / (1 - p).

    ``x`` is float16, bfloat16 or float32, of any shape; the result is like ``x``. The same ``seed``, from 0 to 2**63 - 1, drops
    the same elements of an array of as many elements, on every framework and device: element n in row-major order is kept
    if the upper 24 bits of word n % 4 of Philox 4x32-10, with the seed as its key and n // 4 as its counter, are at least
    p · 2**24. Take another seed for each call whose elements are to be independent.

    The seed may also be an array of ``x``'s framework with one integer, whose value is not read before the launch: a negative one counts
    modulo 2**64. A function that ``mx.compile`` has compiled needs that to have another
    seed in each call: a plain number is a constant of it.

    Differentiable in ``x``: the gradient drops the same elements again, and nothing is stored for it. Raises LaunchValueError for another
    dtype, a ``p`` that is not from 0 to 1, a ``seed`` out of range or an array of another shape than () and (1,).

    Which elements are kept is exact. Error, with u = 2^-24 and beside the rounding of the result: 3 u |y|.

    >>> import numpy as np, triton_metal.ops as ops
    >>> y = ops.dropout(np.ones(1000, np.float32), 0.25, seed=3)
    >>> sorted(set((3 * y).round(3).tolist())), bool(700 < np.count_nonzero(y) < 800)
    ([0.0, 4.0], True)
    """
    check_arrays("dropout", x=x)
    check_dtype("dropout", "x", x, FLOATS)
    p = check_number("dropout", "p", p, least=0, most=1)
    if not is_array(seed):
        return _DROPOUT(x, None, p, check_index("dropout", "seed", seed, 0, bits=63))[0]
    check_arrays("dropout", x=x, seed=seed)
    check_dtype("dropout", "seed", seed, (*INTEGERS, "uint64"))
    if tuple(seed.shape) not in ((), (1,)):
        raise fail("dropout", f"seed must have shape () or (1,) but has shape {tuple(seed.shape)}.")
    return _DROPOUT(x, seed, p, 0)[0]
