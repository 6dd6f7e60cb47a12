"""What a mask cuts off an MLX graph gives what a tile with its other elements gives."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import triton_metal
import triton_metal.language as tl

mx = pytest.importorskip("mlx.core")

from triton_metal.mlx import graph  # noqa: E402

from test_mlx_graph_loops import compare, normal  # noqa: E402

pytestmark = [pytest.mark.own_route, pytest.mark.own_check]


@triton_metal.jit
def masked_kernel(
    x, w, out, M, N, other, KIND: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):  # fmt: skip
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    places = rows[:, None] * N + columns[None, :]
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    mask = tl.full((BM, BN), True, tl.int1)
    if ROWS:
        mask = mask & (rows[:, None] < M)
    if COLUMNS:
        mask = mask & (columns[None, :] < N)
    value = tl.load(x + places, mask, other=other)
    if KIND == "scalar":
        result = tl.exp(value) * 2.0 - 1.0
    elif KIND == "row sum":
        result = value / (tl.abs(tl.sum(value, 1)[:, None]) + 10.0)
    elif KIND == "column sum":
        result = value * tl.sum(value, 0)[None, :]
    elif KIND == "max":
        result = value - tl.max(value, 1)[:, None] + tl.min(value, 0)[None, :]
    elif KIND == "all":
        result = value + tl.sum(tl.sum(value, 1), 0)
    elif KIND == "all by columns":
        result = value + tl.max(tl.sum(value, 0), 0)
    elif KIND == "softmax rows":
        e = tl.exp(value - tl.max(value, 1)[:, None])
        result = e / tl.sum(e, 1)[:, None]
    elif KIND == "softmax columns":
        e = tl.exp(value - tl.max(value, 0)[None, :])
        result = e / tl.sum(e, 0)[None, :]
    elif KIND == "where":
        result = tl.where(columns[None, :] < N, value, 7.0)
        result += tl.sum(tl.where(mask, value, 1.0), 1)[:, None]
    elif KIND == "other where":
        result = tl.where(columns[None, :] < N - 3, value, 7.0) + tl.where(
            rows[:, None] > 1, value, 0.5
        )
    elif KIND == "negated":
        result = tl.where(mask, 2.0, value) + tl.sum(tl.where(mask == 0, 1.0, 0.0), 1)[:, None]
    elif KIND == "weights":
        weight = tl.load(w + columns, columns < N, other=2.0)
        result = value * weight[None, :] + tl.sum(value * weight[None, :], 1)[:, None]
    elif KIND == "unmasked weights":
        weight = tl.load(w + tl.arange(0, BN))
        result = value * weight[None, :] + tl.sum(value + weight[None, :], 1)[:, None]
    elif KIND == "positions":
        result = value * columns[None, :] + rows[:, None]
        result += tl.sum(result, 1)[:, None]
    elif KIND == "transposed":
        turned = tl.trans(value)
        result = tl.trans(turned - tl.max(turned, 1)[:, None]) + tl.sum(turned, 0)[:, None]
    elif KIND == "product":
        result = value + tl.reduce(value * 0.5, 1, multiply)[:, None]
    elif KIND == "index":
        result = value + tl.argmax(value, 1)[:, None] + tl.argmin(value, 0)[None, :]
    elif KIND == "scanned":
        result = tl.cumsum(value, 1) + tl.sort(value, 1)
    elif KIND == "truth":
        above = value > 0.25
        result = tl.where(above, value, -value) + tl.sum(above.to(tl.float32), 1)[:, None]
    elif KIND == "integers":
        number = (value * 100).to(tl.int32)
        result = (number % 7 + tl.sum(number, 1)[:, None] + tl.max(number, 0)[None, :]).to(
            tl.float32
        )
    elif KIND == "short":
        half = value.to(tl.float16)
        result = (half * 3 + tl.sum(half, 1)[:, None]).to(tl.float32)
    elif KIND == "reshaped":
        flat = tl.reshape(value, (BM * BN,))
        result = tl.reshape(flat * 2, (BM, BN)) + tl.sum(flat, 0)
    elif KIND == "split":
        a, b = tl.split(tl.reshape(value, (BM, BN // 2, 2)))
        result = tl.reshape(tl.join(b, a), (BM, BN))
    elif KIND == "branch":
        result = value
        if tl.program_id(0) % 2 == 0:
            result = value * 3 - tl.max(value, 1)[:, None]
    elif KIND == "loop":
        result = value
        for step in range(3):
            result = result * 0.5 + tl.load(x + places, mask, other=1.0) * step
    elif KIND == "two loads":
        more = tl.load(x + places, inside, other=1.0)
        result = value + more * 2 + tl.sum(more, 1)[:, None]
    elif KIND == "product of tiles":
        result = value + tl.sum(tl.dot(value, tl.trans(value)), 1)[:, None] * 0.01
    tl.store(out + places, result, inside)


@triton_metal.jit
def multiply(a, b):
    return a * b


KINDS = [
    "scalar", "row sum", "column sum", "max", "all", "all by columns", "softmax rows", "softmax columns", "where",
    "other where", "negated", "weights", "unmasked weights", "positions", "transposed", "product", "index", "scanned",
    "truth", "integers", "short", "reshaped", "split", "branch", "loop", "two loads", "product of tiles",
]  # fmt: skip
SHAPES = [(21, 27, True, True), (32, 27, False, True), (21, 32, True, False), (48, 48, True, True)]


@pytest.mark.parametrize("kind", KINDS)
def test_masked_tiles(kind: str) -> None:
    for (m, n, rows, columns), other in itertools.product(SHAPES, (0.0, 1.5, float("-inf"))):
        if kind in ("integers", "reshaped", "product of tiles", "positions") and other < 0:
            continue
        # What is not masked is there, if only for the host's check.
        x = normal(m * n + 64 * 64)[: 64 * 64 + m * n]
        grid = (triton_metal.cdiv(m, 16), triton_metal.cdiv(n, 16))
        tolerance = 2e-2 if kind == "short" else 1e-5
        with np.errstate(all="ignore"):
            compare(
                masked_kernel, grid, [x, normal(64, seed=1), np.zeros(m * n, "float32")],
                m, n, other, kind, 16, 16, rows, columns, tolerance=tolerance,
            )  # fmt: skip


@triton_metal.jit
def uneven_kernel(x, out, low, high, stored, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, (i >= low) & (i < high), other=5.0)
    tl.store(out + i, value * 2 + 1, (i < stored) & (i >= low - 3))


@pytest.mark.parametrize(
    "limits", [(3, 90, 95), (3, 90, 80), (0, 128, 128), (50, 50, 70), (70, 60, 128), (5, 6, 6)]
)
def test_masks_of_loads_and_stores_differ(limits: tuple[int, int, int]) -> None:
    compare(uneven_kernel, (4,), [normal(128), np.zeros(128, "float32")], *limits, 32)


@triton_metal.jit
def row_kernel(x, out, sums, n, other, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    value = tl.load(x + row * n + i, i < n, other=other).to(tl.float32)
    middle = tl.sum(value, 0) / n
    centred = tl.where(i < n, value - middle, 0.0)
    spread = tl.sum(centred * centred, 0) / n
    tl.store(out + row * n + i, centred / tl.sqrt(spread + 1e-5), i < n)
    tl.store(sums + row * BLOCK + i, value)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint8"])
@pytest.mark.parametrize("other", [0.0, 2.0])
def test_rows_of_other_dtypes(dtype: str, other: float) -> None:
    x = (normal(6, 50) * 20).astype(dtype)
    compare(
        row_kernel,
        (6,),
        [x, np.zeros((6, 50), "float32"), np.zeros((6, 64), "float32")],
        50,
        other,
        64,
        tolerance=1e-4,
    )


def test_masked_rows_take_no_padding() -> None:
    x = mx.array(normal(6, 50))
    summary = graph(row_kernel).summary(
        x, n=50, other=0.0, BLOCK=64, grid=(6,), outputs={"out": x, "sums": ((6, 64), mx.float32)}
    )
    assert (summary.sliced, summary.gathered) == (3, 0)
    assert 0 < summary.primitives


@triton_metal.jit
def softmax_kernel(x, out, n, other, SECOND: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    value = tl.load(x + row * n + i, i < n, other=other)
    e = tl.exp(value - tl.max(value, 0))
    total = tl.sum(e, 0)
    if SECOND:
        total = tl.max(e, 0)
    tl.store(out + row * n + i, e / total, i < n)


@pytest.mark.parametrize("size", [64, 50])
def test_softmax_is_raised_only_where_it_is_equal(size: int) -> None:
    x = normal(5, size)
    x[1] = -np.inf
    x[2, 3] = np.nan
    x[3, 4] = np.inf
    x[4] = 1e30
    for other, second in itertools.product((float("-inf"), 0.0), (False, True)):
        with np.errstate(all="ignore"):
            compare(
                softmax_kernel, (5,), [x, np.zeros_like(x)], size, other, second, 64, tolerance=1e-6
            )
        summary = graph(softmax_kernel).summary(
            mx.array(x),
            n=size,
            other=other,
            SECOND=second,
            BLOCK=64,
            grid=(5,),
            outputs={"out": mx.array(x)},
        )
        is_equal = not second and (size == 64 or other < 0)
        assert any("softmax" in note for note in summary.raised) == is_equal


@triton_metal.jit
def square_softmax_kernel(x, out, WRONG: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    places = i[:, None] * BLOCK + i[None, :]
    value = tl.load(x + places)
    if WRONG:
        e = tl.exp(value - tl.max(value, 1)[None, :])
        result = e / tl.sum(e, 1)[None, :]
    else:
        e = tl.exp(value - tl.max(value, 1)[:, None])
        result = e / tl.sum(e, 1)[:, None]
    tl.store(out + places, result)


@pytest.mark.parametrize("wrong", [False, True])
def test_sums_of_other_rows_are_no_softmax(wrong: bool) -> None:
    compare(
        square_softmax_kernel,
        (1,),
        [normal(16, 16), np.zeros((16, 16), "float32")],
        wrong,
        16,
        tolerance=1e-6,
    )


def test_gradients_of_masked_rows_are_those_of_mlx() -> None:
    x, weight = mx.array(normal(6, 50)), mx.array(normal(6, 50, seed=1))

    def ours(x: Any) -> Any:
        out = graph(softmax_kernel)(
            x, n=50, other=float("-inf"), SECOND=False, BLOCK=64, grid=(6,), outputs={"out": x}
        )
        return (out * weight).sum()

    wanted = mx.grad(lambda x: (mx.softmax(x, -1) * weight).sum())(x)
    assert mx.allclose(mx.grad(ours)(x), wanted, rtol=1e-5, atol=1e-6)

    def norm(x: Any) -> Any:
        out, _ = graph(row_kernel)(
            x,
            n=50,
            other=0.0,
            BLOCK=64,
            grid=(6,),
            outputs={"out": x, "sums": ((6, 64), mx.float32)},
        )
        return (out * weight).sum()

    wanted = mx.grad(lambda x: (mx.fast.layer_norm(x, None, None, 1e-5) * weight).sum())(x)
    assert mx.allclose(mx.grad(norm)(x), wanted, rtol=1e-4, atol=1e-5)
