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
        check(rms_kernel, (6,), arrays, wanted, RMS, size, 1 / size, EPS, other, kind, 64)


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
    wanted = layer(x, 1.0 if kind == "without weight" else w, 0.0 if kind == "without bias" else b)
    for other in (0.0, 3.0) if kind == "masked mean" else (0.0,):
        arrays = [x, w, b, np.zeros_like(x)]
        others = (size, 1 / size, EPS, other, kind, 64)
        check(layer_kernel, (6,), arrays, wanted, notes_of(kind), *others, tolerance=1e-5)


@triton_metal.jit
def tile_kernel(
    x, w, b, out, M, n, stride, eps, KIND: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.arange(0, BN)
    mask = (rows[:, None] < M) & (columns[None, :] < n)
    value = tl.load(x + rows[:, None] * stride + columns[None, :], mask, other=0.0)
    if KIND == "kept dimension":
        mean = tl.sum(value, 1, keep_dims=True) / n
        centred = tl.where(mask, value - mean, 0.0)
        variance = tl.sum(centred * centred, 1, keep_dims=True) / n
        result = centred * tl.rsqrt(variance + eps)
    elif KIND == "columns":
        mean = tl.sum(value, 0) / M
        centred = tl.where(mask, value - mean[None, :], 0.0)
        result = centred * tl.rsqrt(tl.sum(centred * centred, 0) / M + eps)[None, :]
    elif KIND == "other rows":
        mean = tl.sum(value, 1) / n
        centred = tl.where(mask, value - mean[:, None], 0.0)
        result = centred * tl.rsqrt(tl.sum(centred * centred, 1) / n + eps)[None, :]
    elif KIND == "mean of other rows":
        mean = tl.sum(value, 1) / n
        centred = tl.where(mask, value - mean[None, :], 0.0)
        result = centred * tl.rsqrt(tl.sum(centred * centred, 1) / n + eps)[:, None]
    else:
        mean = tl.sum(value, 1) / n
        centred = tl.where(mask, value - mean[:, None], 0.0)
        result = centred * tl.rsqrt(tl.sum(centred * centred, 1) / n + eps)[:, None]
    if KIND == "weight of rows":
        result = result * tl.load(w + rows, rows < M)[:, None]
    else:
        result = result * tl.load(w + columns, columns < n)[None, :]
    result += tl.load(b + columns[None, :], columns[None, :] < n)
    tl.store(out + rows[:, None] * stride + columns[None, :], result, mask)


@pytest.mark.parametrize("kind", ["rows", "kept dimension"])
@pytest.mark.parametrize("shape", [(8, 64), (8, 50), (10, 64), (3, 1)])
def test_tiles_of_several_rows(kind: str, shape: tuple[int, int]) -> None:
    m, n = shape
    x, w, b = normal(m, n), normal(64, seed=1), normal(64, seed=2)
    arrays = [x, w, b, np.zeros_like(x)]
    # What is cut along both axes has no box of the result.
    notes = [] if m % 4 and n < 64 else notes_of(kind)
    wanted = layer(x, w[:n], b[:n])
    grid = (triton_metal.cdiv(m, 4),)
    check(tile_kernel, grid, arrays, wanted, notes, m, n, n, EPS, kind, 4, 64, tolerance=1e-5)


def test_rows_may_have_a_distance() -> None:
    x, w, b = normal(8, 60), normal(50, seed=1), normal(50, seed=2)
    wanted = np.zeros((8, 60))
    wanted[:, :50] = layer(x[:, :50], w, b)
    arrays = [x, w, b, np.zeros_like(x)]
    others = (8, 50, 60, EPS, "rows", 4, 64)
    check(tile_kernel, (2,), arrays, wanted, notes_of("rows"), *others, tolerance=1e-5)


@pytest.mark.parametrize(
    ("kind", "notes"),
    [
        ("columns", []),
        ("other rows", []),
        ("mean of other rows", ["rms norm", "rms norm with weight"]),
        ("weight of rows", ["layer norm"]),
    ],
)
def test_rows_of_square_tiles_are_told_from_columns(kind: str, notes: list[str]) -> None:
    x, w, b = normal(16, 16) + 1, normal(16, seed=1), normal(16, seed=2)
    others = (16, 16, 16, EPS, kind, 16, 16)
    arrays = [x, w, b, np.zeros_like(x)]
    compare(tile_kernel, (1,), arrays, *others, tolerance=1e-5)
    assert raised(tile_kernel, arrays, (1,), *others) == notes


@triton_metal.jit
def miss_kernel(x, y, out, n, eps, other, KIND: tl.constexpr, BLOCK: tl.constexpr):
    """Almost RMS norms."""
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    mask = i < n
    value = tl.load(x + row * n + i, mask, other=other)
    more = tl.load(y + row * n + i, mask, other=other)
    total = tl.sum(value * value, 0)
    if KIND == "sample":
        total = total / (n - 1)
    elif KIND == "block":
        total = total / BLOCK
    elif KIND == "share of the block":
        total = total * (1.0 / BLOCK)
    elif KIND == "sum":
        total = total * 1.0
    elif KIND == "maximum":
        total = tl.max(value * value, 0) / n
    elif KIND == "magnitudes":
        total = tl.sum(tl.abs(value), 0) / n
    elif KIND == "product":
        total = tl.sum(value * more, 0) / n
    elif KIND == "product of others":
        total = tl.sum(more * value, 0) / n
    elif KIND == "squares of others":
        total = tl.sum(more * more, 0) / n
    elif KIND == "some elements":
        total = tl.sum(tl.where(value > 0, value * value, 0.0), 0) / n
    elif KIND == "fewer elements":
        total = tl.sum(tl.where(i < n - 1, value * value, 0.0), 0) / n
    else:
        total = total / n
    factor = tl.rsqrt(total + eps)
    if KIND == "eps of the root":
        factor = 1 / (tl.sqrt(total) + eps)
    elif KIND == "eps of an array":
        factor = tl.rsqrt(total + tl.abs(tl.load(y + row)))
    elif KIND == "eps of elements":
        factor = tl.rsqrt(total + tl.abs(more))
    elif KIND == "no root":
        factor = 1 / (total + eps)
    elif KIND == "two roots":
        factor = 2 / tl.sqrt(total + eps)
    elif KIND == "root":
        factor = tl.sqrt(total + eps)
    if KIND == "other row":
        value = more
    tl.store(out + row * n + i, value * factor, mask)


MISSES = [
    "sample", "block", "share of the block", "sum", "maximum", "magnitudes", "product", "product of others",
    "squares of others", "some elements", "fewer elements",
    "eps of the root", "eps of an array", "eps of elements", "no root", "two roots", "root", "other row", "other", "eps",
]  # fmt: skip


@pytest.mark.parametrize("kind", MISSES)
@pytest.mark.parametrize("size", [64, 50])
def test_what_differs_is_not_raised(kind: str, size: int) -> None:
    x, y = normal(6, size) + 2, normal(6, size, seed=1) + 2
    eps = -1e-3 if kind == "eps" else EPS
    others = (size, eps, 1.5 if kind == "other" else 0.0, kind, 64)
    arrays = [x, y, np.zeros_like(x)]
    compare(miss_kernel, (6,), arrays, *others, tolerance=1e-5)
    is_equal = size == 64 and kind in ("block", "share of the block", "other")
    assert raised(miss_kernel, arrays, (6,), *others) == (["rms norm"] if is_equal else [])


@triton_metal.jit
def layer_miss_kernel(x, w, out, n, eps, KIND: tl.constexpr, BLOCK: tl.constexpr):
    """Almost layer norms."""
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    mask = i < n
    value = tl.load(x + row * n + i, mask, other=0.0)
    mean = tl.sum(value, 0) / n
    if KIND == "sample":
        mean = tl.sum(value, 0) / (n - 1)
    elif KIND == "maximum":
        mean = tl.max(value, 0) / n
    elif KIND == "mean of the first row":
        mean = tl.sum(tl.load(x + i, mask, other=0.0), 0) / n
    elif KIND == "mean of others":
        mean = tl.sum(tl.load(w + row * n + i, mask, other=0.0), 0) / n
    centred = tl.where(mask, value - mean, 0.0)
    variance = tl.sum(centred * centred, 0) / n
    if KIND == "difference of squares":
        variance = tl.sum(value * value, 0) / n - mean * mean
    elif KIND == "mean of squares":
        variance = tl.sum(value * value, 0) / n
    elif KIND == "unmasked":
        variance = tl.sum((value - mean) * (value - mean), 0) / n
    elif KIND == "sample variance":
        variance = tl.sum(centred * centred, 0) / (n - 1)
    result = centred * tl.rsqrt(variance + eps)
    if KIND == "weight of a program":
        result *= tl.load(w + row * n + i, mask)
    elif KIND == "weight across programs":
        result *= tl.load(w + i * tl.num_programs(0) + row, mask)
    elif KIND == "weight of a row":
        result *= tl.load(w + row)
    elif KIND == "one weight":
        result *= tl.load(w)
    elif KIND == "bias of a program":
        result = result * tl.load(w + i, mask) + tl.load(w + row * n + i, mask)
    elif KIND == "difference":
        result = result * tl.load(w + i, mask) - tl.load(w + i, mask)
    elif KIND == "two weights":
        result = result * tl.load(w + i, mask) * tl.load(w + n + i, mask)
    elif KIND == "bias twice":
        result = result + tl.load(w + i, mask) + tl.load(w + n + i, mask)
    elif KIND == "weight of a bias":
        result = (result + tl.load(w + i, mask)) * tl.load(w + n + i, mask)
    elif KIND == "itself":
        result = result * result
    elif KIND == "sum of both":
        result = result + result * tl.load(w + i, mask)
    tl.store(out + row * n + i, result, mask)


@pytest.mark.parametrize(
    ("kind", "notes"),
    [
        ("sample", ["rms norm"]),
        ("maximum", ["rms norm"]),
        ("mean of the first row", ["rms norm"]),
        ("mean of others", ["rms norm"]),
        ("difference of squares", []),
        ("mean of squares", []),
        ("unmasked", []),
        ("sample variance", []),
        ("weight of a program", ["layer norm"]),
        ("weight across programs", ["layer norm"]),
        ("weight of a row", ["layer norm"]),
        ("one weight", ["layer norm"]),
        ("bias of a program", ["layer norm", "layer norm with weight"]),
        ("difference", ["layer norm", "layer norm with weight"]),
        ("two weights", ["layer norm", "layer norm with weight"]),
        ("bias twice", ["layer norm", "layer norm with bias"]),
        ("weight of a bias", ["layer norm", "layer norm with bias"]),
        ("itself", ["layer norm"]),
        ("sum of both", ["layer norm"]),
    ],
)
def test_what_differs_from_a_layer_norm(kind: str, notes: list[str]) -> None:
    x, w = normal(6, 50) + 2, normal(6, 50, seed=1)
    arrays = [x, w, np.zeros_like(x)]
    others = (50, EPS, kind, 64)
    compare(layer_miss_kernel, (6,), arrays, *others, tolerance=1e-5)
    assert raised(layer_miss_kernel, arrays, (6,), *others) == notes


@pytest.mark.parametrize("size", [64, 50])
def test_rows_that_are_not_finite(size: int) -> None:
    x, w, b = normal(8, size), np.ones(size, "float32"), np.zeros(size, "float32")
    x[1, 2], x[2, 3], x[3, 4], x[4], x[5] = np.nan, np.inf, 1e30, 1e-30, 0
    with np.errstate(all="ignore"):
        for kind in ("rsqrt", "quotient", "no eps"):
            others = (size, 1 / size, EPS, 0.0, kind, 64)
            compare(rms_kernel, (8,), [x, w, np.zeros_like(x)], *others, tolerance=2e-6)
        for kind in ("where", "quotient", "difference again"):
            others = (size, 1 / size, EPS, 0.0, kind, 64)
            compare(layer_kernel, (8,), [x, w, b, np.zeros_like(x)], *others, tolerance=1e-5)


def test_rows_without_elements_are_none() -> None:
    for rows, size in ((0, 50), (6, 0)):
        x, w = np.zeros((rows, size), "float32"), np.ones(size, "float32")
        others = (size, 1.0, EPS, 0.0, "rsqrt", 64)
        compare(rms_kernel, (6 if rows else 0,), [x, w, np.zeros_like(x)], *others)


@triton_metal.jit
def stored_kernel(x, out, rstd, n, eps, KIND: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    value = tl.load(x + row * n + i, i < n, other=0.0)
    root = tl.rsqrt(tl.sum(value * value, 0) / n + eps)
    result = value * root
    if KIND == "root":
        tl.store(rstd + row, root)
    elif KIND == "arithmetic":
        result += root
    elif KIND == "branch":
        if row > 2:
            result = result * root
    tl.store(out + row * n + i, result, i < n)


@pytest.mark.parametrize("kind", ["nothing", "root", "arithmetic", "branch"])
def test_norms_whose_root_is_computed_anyway_stay(kind: str) -> None:
    x = normal(6, 50)
    others = (50, EPS, kind, 64)
    arrays = [x, np.zeros_like(x), np.zeros(6, "float32")]
    compare(stored_kernel, (6,), arrays, *others, tolerance=1e-5)
    outputs = {"out": mx.array(x), "rstd": ((6,), mx.float32)}
    summary = graph(stored_kernel).summary(
        mx.array(x), n=50, eps=EPS, KIND=kind, BLOCK=64, grid=(6,), outputs=outputs
    )
    # On a GPU, MLX's function is worth it where the root is stored.
    is_raised = kind == "nothing" or (kind == "root" and mx.default_device() == mx.gpu)
    assert any("rms norm" in note for note in summary.raised) == is_raised


@triton_metal.jit
def loop_kernel(x, w, out, M, n, eps, KIND: tl.constexpr, BLOCK: tl.constexpr):
    """Rows that a program takes in turn."""
    i = tl.arange(0, BLOCK)
    mask = i < n
    weight = tl.load(w + i, mask, other=0.0)
    for row in range(tl.program_id(0), M, tl.num_programs(0)):
        value = tl.load(x + row * n + i, mask, other=0.0)
        centred = tl.where(mask, value - tl.sum(value, 0) / n, 0.0)
        result = centred * tl.rsqrt(tl.sum(centred * centred, 0) / n + eps)
        if KIND == "bias of the step before":
            result = result + weight
        else:
            result = result * weight
        tl.store(out + row * n + i, result, mask)
        if KIND != "rows":
            weight = tl.where(result > 0, result, 0.5)


@pytest.mark.parametrize("kind", ["rows", "weight of the step before", "bias of the step before"])
@pytest.mark.parametrize("programs", [1, 2, 3])
@pytest.mark.parametrize("size", [64, 50])
def test_norms_in_loops(kind: str, programs: int, size: int) -> None:
    x, w = normal(6, size), normal(size, seed=1)
    arrays = [x, w, np.zeros_like(x)]
    others = (6, size, EPS, kind, 64)
    compare(loop_kernel, (programs,), arrays, *others, tolerance=1e-4)
    notes = raised(loop_kernel, arrays, (programs,), *others)
    assert "layer norm" in notes
    assert ("layer norm with weight" in notes) == (kind == "rows")
    assert "layer norm with bias" not in notes


def rms_of(x: Any, w: Any) -> Any:
    n = x.shape[-1]
    return graph(rms_kernel)(
        x, w, n, 1 / n, EPS, 0.0, "rsqrt", 64, grid=(x.shape[0],), outputs={"out": x}
    )


def layer_of(x: Any, w: Any, b: Any) -> Any:
    n = x.shape[-1]
    return graph(layer_kernel)(
        x, w, b, n, 1 / n, EPS, 0.0, "where", 64, grid=(x.shape[0],), outputs={"out": x}
    )


def mlx_rms(x: Any, w: Any) -> Any:
    return mx.fast.rms_norm(x, w, EPS)


def mlx_layer(x: Any, w: Any, b: Any) -> Any:
    return mx.fast.layer_norm(x, w, b, EPS)


Function = Callable[..., Any]
PAIRS = [(rms_of, mlx_rms), (layer_of, mlx_layer)]
#: Half of BLOCK's elements, and all.
SIZES = [33, 64]


def operands(ours: Function, size: int, *outer: int) -> list[Any]:
    count = 1 if ours is rms_of else 2
    rows = [mx.array(normal(*outer, 6, size) + 1)]
    return rows + [mx.array(normal(*outer, size, seed=1 + i)) for i in range(count)]


def close(ours: Any, theirs: Any, tolerance: float = 2e-5) -> None:
    np.testing.assert_allclose(np.array(ours), np.array(theirs), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
@pytest.mark.parametrize("size", SIZES)
def test_gradients_are_those_of_mlx(ours: Function, theirs: Function, size: int) -> None:
    arrays = operands(ours, size)
    numbers = tuple(range(len(arrays)))
    factor = mx.array(normal(6, size, seed=7))

    def gradients(function: Function) -> Any:
        return mx.grad(lambda *arrays: (function(*arrays) * factor).sum(), numbers)

    for one, other in zip(gradients(ours)(*arrays), gradients(theirs)(*arrays), strict=True):
        close(one, other)

    # The gradient of the gradient, and the derivative along a direction.
    def second(function: Function) -> Any:
        first = gradients(function)
        return mx.grad(lambda *arrays: sum((g * g).sum() for g in first(*arrays)), numbers)

    for one, other in zip(second(ours)(*arrays), second(theirs)(*arrays), strict=True):
        close(one, other, 2e-3)
    directions = [mx.array(normal(*array.shape, seed=9)) for array in arrays]
    close(mx.jvp(ours, arrays, directions)[1][0], mx.jvp(theirs, arrays, directions)[1][0])


def test_gradients_are_those_of_differences() -> None:
    arrays = operands(layer_of, 33)
    factor = mx.array(normal(6, 33, seed=7))
    directions = [mx.array(normal(*array.shape, seed=9)) for array in arrays]
    gradients = mx.grad(lambda *a: (layer_of(*a) * factor).sum(), (0, 1, 2))(*arrays)
    slope = sum(
        (np.array(g, "float64") * np.array(d)).sum()
        for g, d in zip(gradients, directions, strict=True)
    )

    def at(step: float) -> float:
        x, w, b = (
            np.array(a, "float64") + step * np.array(d)
            for a, d in zip(arrays, directions, strict=True)
        )
        return float((layer(x, w, b) * np.array(factor)).sum())

    np.testing.assert_allclose(slope, (at(1e-5) - at(-1e-5)) / 2e-5, rtol=1e-4)


@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
@pytest.mark.parametrize("size", SIZES)
def test_vmap_over_each_operand(ours: Function, theirs: Function, size: int) -> None:
    one, many = operands(ours, size), operands(ours, size, 3)
    for choice in np.ndindex(*(2,) * len(one)):
        if not any(choice):
            continue
        arrays = [many[i] if is_mapped else one[i] for i, is_mapped in enumerate(choice)]
        axes = tuple(0 if is_mapped else None for is_mapped in choice)
        each = [
            theirs(*(a[i] if is_mapped else a for a, is_mapped in zip(arrays, choice, strict=True)))
            for i in range(3)
        ]
        close(mx.vmap(ours, in_axes=axes)(*arrays), mx.stack(each))
        # Along another axis, and through a gradient.
        moved = [
            mx.moveaxis(a, 0, -1) if is_mapped else a
            for a, is_mapped in zip(arrays, choice, strict=True)
        ]
        last = tuple(None if axis is None else moved[i].ndim - 1 for i, axis in enumerate(axes))
        close(mx.vmap(ours, in_axes=last)(*moved), mx.stack(each))
        for number in range(len(arrays)):

            def gradient(function: Function, number: int = number) -> Any:
                return mx.grad(lambda *a: (function(*a) ** 2).sum(), number)

            each = [
                gradient(theirs)(
                    *(a[i] if is_mapped else a for a, is_mapped in zip(arrays, choice, strict=True))
                )
                for i in range(3)
            ]
            close(mx.vmap(gradient(ours), in_axes=axes)(*arrays), mx.stack(each), 2e-4)


@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
def test_compiled_graphs_have_norms(ours: Function, theirs: Function) -> None:
    arrays = operands(ours, 33)
    wanted = theirs(*arrays)
    close(mx.compile(ours)(*arrays), wanted)
    loss = mx.compile(mx.value_and_grad(lambda *a: (ours(*a) ** 2).sum(), 0))
    value, gradient = loss(*arrays)
    close(value, (wanted * wanted).sum())
    close(gradient, mx.grad(lambda *a: (theirs(*a) ** 2).sum())(*arrays), 2e-4)


def test_graphs_that_are_compiled_at_their_second_launch_have_norms() -> None:
    x, w = operands(rms_of, 33)
    compiled = graph(rms_kernel, compiled=True)
    for _ in range(3):
        out = compiled(x, w, 33, 1 / 33, EPS, 0.0, "rsqrt", 64, grid=(6,), outputs={"out": x})
        close(out, mlx_rms(x, w))


@triton_metal.jit
def short_kernel(x, w, b, out, n, eps, KIND: tl.constexpr, BLOCK: tl.constexpr):
    """Rows of 16 bits, widened, and rounded before they are multiplied."""
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    mask = i < n
    value = tl.load(x + row * n + i, mask, other=0.0).to(tl.float32)
    if KIND == "layer" or KIND == "layer without weight":
        value = tl.where(mask, value - tl.sum(value, 0) / n, 0.0)
    result = value * tl.rsqrt(tl.sum(value * value, 0) / n + eps)
    dtype = x.dtype.element_ty
    if KIND == "wide":
        result = result * tl.load(w + i, mask).to(tl.float32)
    elif KIND == "layer without weight":
        result = result.to(dtype) + tl.load(b + i, mask)
    elif KIND == "toward zero":
        result = result.to(dtype, fp_downcast_rounding="rtz") * tl.load(w + i, mask)
    elif KIND == "both":
        result = result.to(dtype) * tl.load(w + i, mask) + result.to(dtype)
    else:
        result = result.to(dtype) * tl.load(w + i, mask)
        if KIND == "layer":
            result += tl.load(b + i, mask)
    tl.store(out + row * n + i, result.to(dtype), mask)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(
    ("kind", "notes"),
    [
        ("rms", ["rms norm", "rms norm of {}", "rms norm of {} with weight"]),
        ("layer", ["layer norm", "layer norm of {}", "layer norm of {} with weight", "layer norm of {} with bias"]),
        ("layer without weight", ["layer norm", "layer norm of {}", "layer norm of {} with bias"]),
        ("wide", ["rms norm", "rms norm with weight"]),
        ("both", ["rms norm", "rms norm of {}"]),
        ("toward zero", ["rms norm"]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("size", SIZES)
def test_rows_of_sixteen_bits(dtype: str, kind: str, notes: list[str], size: int) -> None:
    kept = getattr(mx, dtype)
    x, w, b = (a.astype(kept) for a in operands(layer_of, size))
    call: dict[str, Any] = {
        "n": size, "eps": EPS, "KIND": kind, "BLOCK": 64, "grid": (6,), "outputs": {"out": x}
    }  # fmt: skip
    summary = graph(short_kernel).summary(x, w, b, **call)
    short = {"float16": "f16", "bfloat16": "bf16"}[dtype]
    assert [note.split(": ", 1)[-1] for note in summary.raised] == [
        note.format(short) for note in notes
    ]
    result = graph(short_kernel)(x, w, b, **call)
    if kind == "rms":
        wanted = mx.fast.rms_norm(x, w, EPS)
    elif kind == "layer":
        wanted = mx.fast.layer_norm(x, w, b, EPS)
    elif kind == "layer without weight":
        wanted = mx.fast.layer_norm(x, None, b, EPS)
    else:
        wide = mx.fast.rms_norm(x.astype(mx.float32), None, EPS)
        if kind == "wide":
            wanted = (wide * w.astype(mx.float32)).astype(kept)
        elif kind == "both":
            wanted = wide.astype(kept) * w + wide.astype(kept)
        else:
            bits = wide.view(mx.uint32)
            if dtype == "bfloat16":
                wanted = (bits & 0xFFFF0000).view(mx.float32).astype(kept) * w
            else:
                # float16 has 13 digits less.
                wanted = (bits & 0xFFFFE000).view(mx.float32).astype(kept) * w
    assert result.dtype == kept
    tolerance = 2e-2 if dtype == "bfloat16" else 2e-3
    close(result.astype(mx.float32), wanted.astype(mx.float32), tolerance)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("columns", [64, 50])
def test_norms_of_ops_are_raised(dtype: str, columns: int) -> None:
    from triton_metal.ops.norms import norm_kernel

    rng = np.random.default_rng(0)
    x, residual = (rng.standard_normal((6, columns)).astype(dtype) for _ in range(2))
    w, b = (rng.standard_normal(columns).astype(dtype) for _ in range(2))
    for centre, more in ((False, None), (True, None), (False, residual), (True, residual)):
        function = ops.layer_norm if centre else ops.rms_norm
        on_host = function(x, w, b, EPS, residual=more)
        with triton_metal.device("mlx-graph"):
            in_graph = function(x, w, b, EPS, residual=more)
        for one, other in zip(
            on_host if more is not None else [on_host],
            in_graph if more is not None else [in_graph],
            strict=True,
        ):
            tolerance = 1e-5 if dtype == "float32" else 5e-3
            np.testing.assert_allclose(other, one, rtol=tolerance, atol=tolerance)
        outputs = {"y_ptr": mx.array(x)}
        if more is not None:
            outputs["total_ptr"] = mx.array(x)
        summary = graph(norm_kernel).summary(
            x_ptr=mx.array(x),
            residual_ptr=None if more is None else mx.array(more),
            weight_ptr=mx.array(w),
            bias_ptr=mx.array(b),
            n_cols=columns,
            share=1 / columns,
            eps=EPS,
            CENTRE=centre,
            BLOCK=64,
            grid=(6,),
            outputs=outputs,
            **({"total_ptr": None} if more is None else {}),
        )
        short = "" if dtype == "float32" else " of f16"
        last = summary.raised[-1].split(": ", 1)[-1]
        assert last == (
            f"layer norm{short} with bias" if centre else f"rms norm{short} with weight"
        )
