"""Dropout by random numbers that are a function of the seed and of an element's index: no mask is stored."""

from __future__ import annotations

from typing import Any

import triton_metal as triton
import triton_metal.language as tl

from ._arrays import FLOATS, Array, contiguous, dtype_name, size_of
from ._checks import check_arrays, check_dtype, check_number
from ._indices import check_index
from ._launch import launch
from ._operators import Operator

#: Groups of four elements that a program takes, one call of Philox each.
GROUPS = 256


@triton.jit
def dropout_kernel(x_ptr, y_ptr, n, threshold, scale, seed, GROUPS: tl.constexpr):
    """y = x scale where the upper 24 bits of the element's random word are at least threshold, else 0."""
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


def _forward(x: Array, p: float, seed: int) -> tuple[Array, ...]:
    n = size_of(tuple(x.shape))
    return launch(
        dropout_kernel,
        (triton.cdiv(n, 4 * GROUPS),),
        {"y_ptr": (x.shape, dtype_name(x))},
        like=x,
        x_ptr=contiguous(x),
        n=n,
        threshold=round(p * 2**24),
        scale=0.0 if p == 1 else 1 / (1 - p),
        seed=seed,
        GROUPS=GROUPS,
    )


def _gradient(kept: Any, dy: Array) -> dict[str, Array]:
    return {"x": _DROPOUT(dy, kept.p, kept.seed)[0]}


_DROPOUT = Operator(
    "dropout(Tensor x, float p, SymInt seed) -> (y)",
    _forward,
    lambda x, *_: [(x.shape, dtype_name(x))],
    _gradient,
)


def dropout(x: Array, p: float, seed: int) -> Array:
    """Sets each element to 0 with probability ``p`` and multiplies the others by 1 / (1 - p).

    ``x`` is float16, bfloat16 or float32, of any shape; the result is like ``x``. The same ``seed``, from 0 to 2**63 - 1, drops
    the same elements of an array of as many elements, on every framework and device: element n in row-major order is kept
    if the upper 24 bits of word n % 4 of Philox 4x32-10, with the seed as its key and n // 4 as its counter, are at least
    p · 2**24. Take another seed for each call whose elements are to be independent.

    Differentiable: the gradient drops the same elements again, and nothing is stored for it. Raises LaunchValueError for another dtype,
    a ``p`` that is not from 0 to 1 or a ``seed`` out of range.

    >>> import numpy as np, triton_metal.ops as ops
    >>> y = ops.dropout(np.ones(1000, np.float32), 0.25, seed=3)
    >>> sorted(set((3 * y).round(3).tolist())), bool(700 < np.count_nonzero(y) < 800)
    ([0.0, 4.0], True)
    """
    check_arrays("dropout", x=x)
    check_dtype("dropout", "x", x, FLOATS)
    p = check_number("dropout", "p", p, least=0, most=1)
    seed = check_index("dropout", "seed", seed, 0, bits=63)
    return _DROPOUT(x, p, seed)[0]
