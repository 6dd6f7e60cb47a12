"""Sums that go through loops in one another are one sum in MLX graphs."""

from __future__ import annotations

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
def parts_kernel(x, out, rows, columns, KIND: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    acc = tl.full((BLOCK,), 2.0, tl.float32)
    for row in range(rows):
        at = x + row * columns * BLOCK
        if KIND == "uneven":
            end = row
        else:
            end = columns
        for column in range(end):
            if KIND == "carried":
                values = tl.load(at + i)
                at += BLOCK
            else:
                values = tl.load(x + (row * columns + column) * BLOCK + i)
            if KIND == "maximum":
                acc = tl.maximum(acc, values)
            elif KIND == "difference":
                acc -= values
            elif KIND == "product":
                acc *= values
            elif KIND == "of one row":
                acc += tl.load(x + row * BLOCK + i)
            else:
                acc += values
        if KIND == "halved":
            acc *= 0.5
    tl.store(out + i, acc)


KINDS = ["sum", "carried", "maximum", "difference", "product", "of one row", "uneven", "halved"]


@pytest.mark.parametrize("sizes", [(5, 4), (1, 3), (3, 1), (1, 1), (0, 2), (2, 0)])
@pytest.mark.parametrize("kind", KINDS)
def test_loops_in_loops_give_what_their_steps_give(kind: str, sizes: tuple[int, int]) -> None:
    arrays = [normal(20, 16), np.zeros(16, "float32")]
    compare(parts_kernel, (1,), arrays, *sizes, kind, 16, tolerance=1e-5)


@pytest.mark.parametrize("kind", ["sum", "carried", "maximum", "difference", "product"])
def test_a_sum_through_two_loops_is_one(kind: str) -> None:
    summary = graph(parts_kernel).summary(
        mx.array(normal(20, 16)), rows=5, columns=4, KIND=kind, BLOCK=16, grid=(1,),
        outputs={"out": ((16,), mx.float32)},
    )  # fmt: skip
    assert any("along 5 x 4 steps" in note for note in summary.raised)
    assert not summary.fell_back


@triton_metal.jit
def tiles_kernel(a, b, c, N, OUTER, INNER, LEVELS: tl.constexpr, BLOCK: tl.constexpr):
    m, n = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    K = OUTER * INNER * BLOCK
    for i in range(OUTER):
        if LEVELS == 2:
            for j in range(INNER):
                k = (i * INNER + j) * BLOCK + tl.arange(0, BLOCK)
                x = tl.load(a + m[:, None] * K + k[None, :])
                acc = tl.dot(x, tl.load(b + k[:, None] * N + n[None, :]), acc)
        else:
            for j in range(INNER):
                for _ in range(2):
                    k = (i * INNER + j) * BLOCK + tl.arange(0, BLOCK)
                    x = tl.load(a + m[:, None] * K + k[None, :])
                    acc += tl.dot(x, tl.load(b + k[:, None] * N + n[None, :]))
    tl.store(c + m[:, None] * N + n[None, :], acc)


@pytest.mark.parametrize("levels", [2, 3])
def test_products_of_tiles_through_loops_are_one_product(levels: int) -> None:
    a, b = mx.array(normal(32, 96)), mx.array(normal(96, 16, seed=1))

    def call(function: Any, a: Any, b: Any) -> Any:
        return function(
            a, b, N=16, OUTER=3, INNER=2, LEVELS=levels, BLOCK=16, grid=(2,),
            outputs={"c": ((32, 16), mx.float32)},
        )  # fmt: skip

    summary = call(graph(tiles_kernel).summary, a, b)
    steps = "3 x 2" if levels == 2 else "3 x 2 x 2"
    assert any(f"a product of tiles along {steps} steps" in note for note in summary.raised)
    result = call(graph(tiles_kernel), a, b)
    np.testing.assert_allclose(np.array(result), np.array((levels - 1) * (a @ b)), atol=1e-3)
    grad = mx.grad(lambda a: call(graph(tiles_kernel), a, b).sum())(a)
    wanted = mx.grad(lambda a: (levels - 1) * (a @ b).sum())(a)
    np.testing.assert_allclose(np.array(grad), np.array(wanted), rtol=1e-4, atol=1e-4)


@triton_metal.jit
def same_kernel(a, b, c, steps, BLOCK: tl.constexpr):
    """Neither tile changes from step to step."""
    i = tl.arange(0, BLOCK)
    x = tl.load(a + i[:, None] * BLOCK + i[None, :])
    y = tl.load(b + i[:, None] * BLOCK + i[None, :])
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for _ in range(steps):
        acc = tl.dot(x, y, acc, input_precision="ieee")
    tl.store(c + i[:, None] * BLOCK + i[None, :], acc)


def test_products_of_the_same_tiles_count_in_each_step() -> None:
    arrays = [normal(16, 16), normal(16, 16, seed=1), np.zeros((16, 16), "float32")]
    compare(same_kernel, (1,), arrays, 5, 16, tolerance=1e-4)
