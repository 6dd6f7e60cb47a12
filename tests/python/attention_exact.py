"""Attention and its gradients in float64, with bounds on the error of triton_metal.ops.attention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from _bounds import FUNCTION_ULPS, UNIT_ROUNDOFF, accumulation
from ops_support import rounded

#: Half of the smallest step of fp16, which small weights are rounded to.
SUBNORMAL = {"float16": 2.0**-25, "bfloat16": 0.0, "float32": 0.0}


@dataclass
class Exact:
    """The result and the gradients of q, k, v and the whole bias for `weights` as that of the result, and bounds of all."""

    out: np.ndarray
    grads: dict[str, np.ndarray]
    out_bound: np.ndarray
    bounds: dict[str, np.ndarray]


def visible(
    shape: tuple[int, ...], causal: bool, window: Any, lengths: Any, mask: Any = None
) -> np.ndarray:
    """Whether (batch, heads, queries, keys) see each other, one after the other as the docstring has it."""
    batch, _, queries, keys = shape
    before, after = window if isinstance(window, tuple) else (window and window - 1,) * 2
    counts = np.full(batch, keys) if lengths is None else np.clip(np.asarray(lengths), 0, keys)
    i, j = np.arange(queries)[:, None], np.arange(keys)[None, :]
    see = np.ones(shape, bool)
    for b, n in enumerate(counts):
        place = i + n - queries
        one = (j < n) & ((j <= place) | (not causal))
        if before is not None:
            one = one & (j >= place - before)
        if after is not None:
            one = one & (j <= place + after)
        see[b] &= one
    return see if mask is None else see & mask


def exact_attention(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, weights: np.ndarray, dtype: str,
    causal: bool = False, window: Any = None, lengths: Any = None, mask: Any = None, bias: Any = None,
    scale: float | None = None, exact_scores: bool = False,
) -> Exact:  # fmt: skip
    """Of (batch, heads, rows, width) in float64. With `exact_scores`, rounding changes no weight of a score that matters."""
    (batch, heads, queries, width), (_, kv_heads, keys, _) = q.shape, k.shape
    group, u = heads // max(kv_heads, 1), UNIT_ROUNDOFF[dtype]
    scale = width**-0.5 if scale is None else scale
    wide_k, wide_v = np.repeat(k, group, 1), np.repeat(v, group, 1)
    see = visible((batch, heads, queries, keys), causal, window, lengths, mask)
    scores = q @ wide_k.swapaxes(-1, -2) * scale
    sizes = np.abs(q) @ np.abs(wide_k).swapaxes(-1, -2) * abs(scale)
    if bias is not None:
        scores, sizes = scores + bias, sizes + np.where(np.isinf(bias), 0, np.abs(bias))
    scores = np.where(see, scores, -np.inf)
    top = scores.max(-1, keepdims=True, initial=-np.inf)
    p = np.exp(scores - np.where(np.isinf(top), 0, top))
    total = p.sum(-1, keepdims=True)
    p = np.divide(p, total, out=np.zeros_like(p), where=total > 0)
    out = p @ wide_v
    # The error of a score is a relative one of its weight, as is that of the sum and of what is subtracted.
    error = accumulation(sizes, width + 4) + 4 * UNIT_ROUNDOFF["float32"] * sizes
    error = 2 * np.where(see, error, 0).max(-1, keepdims=True, initial=0) * (not exact_scores)
    relative = 2 * (error + accumulation(2.0, keys + 4 * FUNCTION_ULPS) + u)
    p_error = np.where(see, relative * p + SUBNORMAL[dtype], 0)
    out_bound = p_error @ np.abs(wide_v)

    def together(x: np.ndarray) -> np.ndarray:
        return x.reshape(batch, kv_heads, group, keys, width).sum(2)

    eps = accumulation(1.0, max(keys, queries * group) + width)
    dp, delta = weights @ wide_v.swapaxes(-1, -2), (weights * out).sum(-1, keepdims=True)
    dp_size = np.abs(weights) @ np.abs(wide_v).swapaxes(-1, -2)
    delta_size = (np.abs(weights) * np.abs(out)).sum(-1, keepdims=True)
    delta_error = (np.abs(weights) * (out_bound + u * np.abs(out) + 2 * SUBNORMAL[dtype])).sum(
        -1, keepdims=True
    ) + accumulation(delta_size, width)
    ds = p * (dp - delta)
    # Weights of the gradient stay float32 until they are rounded with what they are multiplied by.
    ds_error = p_error * (dp_size + delta_size) + p * (accumulation(dp_size, width) + delta_error)
    ds_error = np.where(see, ds_error + u * np.abs(ds) + SUBNORMAL[dtype], 0)
    swapped, swapped_error = ds.swapaxes(-1, -2), (ds_error + eps * np.abs(ds)).swapaxes(-1, -2)
    grads = {
        "q": ds @ wide_k * scale,
        "k": together(swapped @ q) * scale,
        "v": together(p.swapaxes(-1, -2) @ weights),
        "bias": ds,
    }
    bounds = {
        "q": (ds_error + eps * np.abs(ds)) @ np.abs(wide_k) * abs(scale),
        "k": together(swapped_error @ np.abs(q)) * abs(scale),
        "v": together((p_error + eps * p).swapaxes(-1, -2) @ np.abs(weights)),
        "bias": ds_error,
    }
    return Exact(out, grads, out_bound, bounds)


def operands(
    seed: int, shape: tuple[int, ...], kv_heads: int, keys: int, dtype: str
) -> tuple[np.ndarray, ...]:
    """q, k, v and the gradient of the result, rounded to a dtype."""
    rng = np.random.default_rng(seed)
    batch, _, _, width = shape
    shapes = (shape, (batch, kv_heads, keys, width), (batch, kv_heads, keys, width), shape)
    return tuple(rounded(rng.standard_normal(each), dtype) for each in shapes)
