"""Rows that are an RMS norm or a layer norm become MLX's functions, where they are equal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import triton_metal
import triton_metal.language as tl
from triton_metal import ops
from triton_metal.language.extra import libdevice

mx = pytest.importorskip("mlx.core")

from triton_metal.mlx import graph  # noqa: E402

from test_mlx_graph_loops import compare, normal  # noqa: E402

pytestmark = [pytest.mark.own_route, pytest.mark.own_check]

EPS = 1e-3


def rms(x: np.ndarray, weight: Any = 1.0, eps: float = EPS) -> np.ndarray:
    wide = x.astype(np.float64)
    return wide / np.sqrt((wide**2).mean(-1, keepdims=True) + eps) * weight


def layer(x: np.ndarray, weight: Any = 1.0, bias: Any = 0.0, eps: float = EPS) -> np.ndarray:
    wide = x.astype(np.float64)
    return (wide - wide.mean(-1, keepdims=True)) / np.sqrt(
        wide.var(-1, keepdims=True) + eps
    ) * weight + bias


def raised(kernel: Any, arrays: list[np.ndarray], grid: tuple[int, ...], *others: Any) -> list[str]:
    """What a launch raises, without the places. The last array is the output."""
    *inputs, out = map(mx.array, arrays)
    name = list(kernel.signature.parameters)[len(inputs)]
    parameters = list(kernel.signature.parameters)[len(arrays) :]
    summary = graph(kernel).summary(
        *inputs, **dict(zip(parameters, others, strict=True)), grid=grid, outputs={name: out}
    )
    return [note.split(": ", 1)[-1] for note in summary.raised]


def check(
    kernel: Any, grid: tuple[int, ...], arrays: list[np.ndarray], wanted: np.ndarray, notes: list[str],
    *others: Any, tolerance: float = 2e-6,
) -> None:  # fmt: skip
    """The graph of a launch gives what NumPy and the host device give, and raises just this."""
    result = compare(kernel, grid, arrays, *others, tolerance=4 * tolerance)[-1]
    np.testing.assert_allclose(result.astype(np.float64), wanted, rtol=tolerance, atol=tolerance)
    assert raised(kernel, arrays, grid, *others) == notes


@triton_metal.jit
def squared_sum(x, mask, KIND: tl.constexpr):
    if KIND == "where of squares":
        return tl.sum(tl.where(mask, x * x, 0.0), 0)
    if KIND == "where of numbers":
        kept = tl.where(mask, x, 0.0)
        return tl.sum(kept * kept, 0)
    if KIND == "mixed":
        return tl.sum(x * tl.where(mask, x, 0.0), 0)
    if KIND == "reduce":
        return tl.reduce(x * x, 0, plus)
    return tl.sum(x * x, axis=0)


@triton_metal.jit
def plus(a, b):
    return b + a


@triton_metal.jit
def rms_kernel(x, w, out, n, share, eps, other, KIND: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    mask = i < n
    value = tl.load(x + row * n + i, mask, other=other)
    if KIND == "where of the load":
        value = tl.where(mask, value, 0.0)
    total = squared_sum(value, mask, KIND)
    if KIND == "share":
        mean = total * share
    elif KIND == "share of its own":
        mean = (1.0 / n) * total
    elif KIND == "div_rn":
        mean = tl.div_rn(total, n.to(tl.float32))
    else:
        mean = total / n
    if KIND == "no eps":
        result = value * tl.rsqrt(mean)
    elif KIND == "constant eps":
        result = value * tl.rsqrt(mean + 1e-3)
    elif KIND == "eps first":
        result = value * tl.rsqrt(eps + mean)
    elif KIND == "factor first":
        result = tl.rsqrt(mean + eps) * value
    elif KIND == "math":
        result = value * tl.math.rsqrt(mean + eps)
    elif KIND == "libdevice":
        result = value * libdevice.rsqrt(mean + eps)
    elif KIND == "inverse":
        result = value * (1 / tl.sqrt(mean + eps))
    elif KIND == "inverse of the nearest root":
        result = value * (1 / tl.sqrt_rn(mean + eps))
    elif KIND == "inverse of libdevice":
        result = value * (1.0 / libdevice.sqrt(mean + eps))
    elif KIND == "quotient":
        result = value / tl.sqrt(mean + eps)
    elif KIND == "nearest quotient":
        result = tl.div_rn(value, tl.sqrt(mean + eps))
    else:
        result = value * tl.rsqrt(mean + eps)
    tl.store(out + row * n + i, result * tl.load(w + i, mask, other=0.0), mask)


PLAIN = [
    "rsqrt", "math", "libdevice", "inverse", "inverse of the nearest root", "inverse of libdevice", "quotient",
    "nearest quotient", "factor first", "eps first", "constant eps", "no eps", "share", "share of its own", "div_rn",
    "reduce",
]  # fmt: skip
MASKED = ["where of the load", "where of squares", "where of numbers", "mixed"]
RMS = ["rms norm", "rms norm with weight"]


@pytest.mark.parametrize("kind", [*PLAIN, *MASKED])
@pytest.mark.parametrize("size", [64, 50, 1])
def test_spellings_of_rms_norms(kind: str, size: int) -> None:
    x, w = normal(6, size) + 0.5, normal(size, seed=1)
    x[1] *= 1e-3
    wanted = rms(x, w, 0.0 if kind == "no eps" else EPS)
    arrays = [x, w, np.zeros_like(x)]
    for other in (0.0, 3.0) if kind in MASKED else (0.0,):
        notes = RMS
        if kind == "mixed" and other != 0 and size != 64:
            notes = RMS
        check(rms_kernel, (6,), arrays, wanted, notes, size, 1 / size, EPS, other, kind, 64)


@pytest.mark.parametrize("kind", PLAIN[:2])
def test_rows_of_one_element(kind: str) -> None:
    x, w = normal(6, 1), normal(1, seed=1)
    arrays = [x, w, np.zeros_like(x)]
    check(rms_kernel, (6,), arrays, rms(x, w), RMS, 1, 1.0, EPS, 0.0, kind, 1)


@triton_metal.jit
def layer_kernel(
    x, w, b, out, n, share, eps, other, KIND: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    mask = i < n
    value = tl.load(x + row * n + i, mask, other=other).to(tl.float32)
    if KIND == "masked mean":
        mean = tl.sum(tl.where(mask, value, 0.0), 0) / n
    elif KIND == "share":
        mean = tl.sum(value, 0) * share
    else:
        mean = tl.sum(value, 0) / n
    if KIND == "where of squares":
        difference = value - mean
        variance = tl.sum(tl.where(mask, difference * difference, 0.0), 0) / n
        result = difference * tl.rsqrt(variance + eps)
    elif KIND == "difference again":
        centred = tl.where(mask, value - mean, 0.0)
        variance = tl.sum(centred * centred, 0) / n
        result = (value - mean) * (1 / tl.sqrt(variance + eps))
    elif KIND == "quotient":
        centred = tl.where(mask, value - mean, 0.0)
        result = centred / tl.sqrt(tl.sum(centred * centred, 0) / n + eps)
    elif KIND == "share":
        centred = tl.where(mask, value - mean, 0.0)
        result = centred * tl.rsqrt(tl.sum(centred * centred, 0) * share + eps)
    else:
        centred = tl.where(mask, value - mean, 0.0)
        variance = tl.sum(centred * centred, 0) / n
        result = centred * tl.rsqrt(variance + eps)
    if KIND != "without weight":
        result = tl.load(w + i, mask) * result
    if KIND != "without bias":
        result = tl.load(b + i, mask) + result
    tl.store(out + row * n + i, result, mask)


LAYER = [
    "where", "masked mean", "share", "where of squares", "difference again", "quotient", "without weight",
    "without bias",
]  # fmt: skip


def notes_of(kind: str) -> list[str]:
    ends = {"without weight": ["", " with bias"], "without bias": ["", " with weight"]}
    return ["layer norm" + end for end in ends.get(kind, ["", " with weight", " with bias"])]


@pytest.mark.parametrize("kind", LAYER)
@pytest.mark.parametrize("size", [64, 50, 1])
def test_spellings_of_layer_norms(kind: str, size: int) -> None:
    x, w, b = normal(6, size) + 2, normal(size, seed=1), normal(size, seed=2)
    wanted = layer(
        x, 1.0 if kind == "without weight" else w, 0.0 if kind == "without bias" else b
    )
    for other in (0.0, 3.0) if kind == "masked mean" else (0.0,):
        arrays = [x, w, b, np.zeros_like(x)]
        others = (size, 1 / size, EPS, other, kind, 64)
        check(layer_kernel, (6,), arrays, wanted, notes_of(kind), *others, tolerance=1e-5)
