"""Rows of the table that are attention: tiled, and for single queries."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from triton_metal import ops

from against.along_rows import typed
from against.problem import Case, Problem, default, near
from mlx_kernels.parameters import attention_params, tiles
from mlx_kernels.running import blank, decode, encode, launch, metal, numbers


def exact_attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, causal: bool) -> np.ndarray:
    """In float64, of (batch, heads, length, width); heads of queries may share those of keys."""
    shared = q.shape[1] // k.shape[1]
    scores = q @ np.swapaxes(np.repeat(k, shared, 1), -1, -2) * q.shape[-1] ** -0.5
    if causal:
        rows, columns = np.ogrid[: q.shape[2], : k.shape[2]]
        scores = np.where(columns <= rows + k.shape[2] - q.shape[2], scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ np.repeat(v, shared, 1)


def _tiled(heads: int, length: int, width: int, causal: bool, t: str) -> Problem:
    shape = (1, heads, length, width)
    q, k, v = (numbers(shape, t, seed) for seed in (1, 2, 3))
    given = [typed(each, t) for each in (q, k, v)]
    bq, bk = 32, 32 if width < 128 else 16

    def run() -> np.ndarray:
        params = attention_params(shape, shape, width**-0.5, bq, bk)
        (out,) = launch(
            "steel_attention",
            ("attention", metal(t), bq, bk, width, 4, 1, metal(t), "float"),
            {0: encode(q, t), 1: encode(k, t), 2: encode(v, t), 3: blank(shape, t), 4: params},
            [3],
            threadgroups=(tiles(length, bq), heads, 1),
            group=(32, 4, 1),
            constants={
                200: length % bq == 0,
                201: length % bk == 0,
                300: False,
                301: causal,
                302: False,
            },
        )
        return decode(out, t)

    exact = exact_attention(q, k, v, causal)
    # Scores are sums of products of the type, and weights are rounded to it.
    check = near(exact, t, rtol=1e-1, terms=16)
    ours = default(lambda: ops.attention(*given, causal=causal))
    return Problem(ours, {f"{bq}×{bk}": run}, check)


def cases() -> Iterator[Case]:
    for heads, length, width, causal, t, quick in (
        (2, 512, 64, True, "float16", True),
        (2, 512, 64, False, "float16", True),
        (2, 512, 80, True, "float16", False),
        (2, 512, 80, False, "float16", False),
        (2, 512, 128, True, "float16", False),
        (2, 512, 128, False, "float16", False),
        (2, 512, 64, True, "bfloat16", False),
        (2, 500, 64, True, "float16", False),
        (2, 500, 64, False, "float16", False),
        (2, 500, 128, True, "float16", False),
    ):
        shape = f"{heads}×{length}×{width}"
        kind = "attention causal" if causal else "attention"
        make = lambda a=(heads, length, width, causal, t): _tiled(*a)  # noqa: E731
        yield Case(kind, shape, t, make, quick=quick)
