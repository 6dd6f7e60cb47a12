"""Rows whose places an array chooses are gathered as rows by MLX graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import triton_metal
import triton_metal.language as tl
from triton_metal.errors import GraphRefusal

mx = pytest.importorskip("mlx.core")

from triton_metal.mlx import graph  # noqa: E402

from test_mlx_graph_loops import compare, normal  # noqa: E402

pytestmark = [pytest.mark.own_route, pytest.mark.own_check]


@triton_metal.jit
def embedding_kernel(ids, w, out, n, D, other, TRANSPOSED: tl.constexpr, BM: tl.constexpr, BD: tl.constexpr):  # fmt: skip
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.program_id(1) * BD + tl.arange(0, BD)
    chosen = tl.load(ids + rows, rows < n, other=-1)
    if TRANSPOSED:
        places = chosen[None, :] * D + d[:, None]
        mask = (chosen[None, :] >= 0) & (d[:, None] < D)
        value = tl.trans(tl.load(w + places, mask, other=other))
    else:
        mask = (chosen[:, None] >= 0) & (d[None, :] < D) & (rows[:, None] < n)
        value = tl.load(w + chosen[:, None] * D + d[None, :], mask, other=other)
    tl.store(out + rows[:, None] * D + d[None, :], value, (rows[:, None] < n) & (d[None, :] < D))


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(("size", "block"), [(16, 16), (13, 16), (1, 1), (2, 4), (40, 16)])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_rows_are_chosen_by_arrays(dtype: str, size: int, block: int, transposed: bool) -> None:
    ids = np.array([3, 5, 39, -1, 0, 7, 39, 38, 1], "int32")
    w = (normal(40, size) * 50).astype(dtype)
    grid = (3, triton_metal.cdiv(size, block))
    compare(
        embedding_kernel,
        grid,
        [ids, w, np.zeros((9, size), dtype)],
        9,
        size,
        3,
        transposed,
        4,
        block,
    )


def test_transforms_take_rows() -> None:
    ids = mx.array([3, 5, 39, -1, 0, 7, 39])
    w = mx.array(normal(40, 13))

    def ours(w: Any) -> Any:
        return graph(embedding_kernel)(
            ids, w, n=7, D=13, other=3.0, TRANSPOSED=False, BM=4, BD=16, grid=(2, 1),
            outputs={"out": ((7, 13), mx.float32)},
        )  # fmt: skip

    def mlx(w: Any) -> Any:
        return mx.where(ids[:, None] >= 0, w[mx.maximum(ids, 0)], 3.0)

    found, wanted = (mx.grad(lambda w, f=f: (f(w) ** 2).sum())(w) for f in (ours, mlx))
    assert mx.allclose(found, wanted, rtol=1e-6, atol=1e-6)
    batch = mx.stack([w, 2 * w])
    assert mx.allclose(mx.vmap(ours)(batch), mx.vmap(mlx)(batch))
    assert mx.array_equal(mx.compile(ours)(w), mlx(w))


@triton_metal.jit
def wrapped_kernel(x, out, M, OFFSET: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    rows = (tl.program_id(0) * BM + tl.arange(0, BM)) % M
    columns = tl.arange(0, BN)
    value = tl.load(x + rows[:, None] * BN + columns[None, :] + OFFSET)
    places = (tl.program_id(0) * BM + tl.arange(0, BM))[:, None] * BN + columns[None, :]
    tl.store(out + places, value)


def test_rows_wrap_around() -> None:
    compare(wrapped_kernel, (3,), [normal(10, 8), np.zeros((12, 8), "float32")], 10, 0, 4, 8)


@pytest.mark.parametrize("offset", [1, -1, 80])
def test_rows_outside_of_an_array_are_refused(offset: int) -> None:
    x = mx.array(normal(10, 8))
    with pytest.raises(GraphRefusal, match="accesses places outside of an array of 80 elements"):
        graph(wrapped_kernel)(
            x, M=10, OFFSET=offset, BM=4, BN=8, grid=(3,), outputs={"out": ((12, 8), mx.float32)}
        )


@triton_metal.jit
def shared_kernel(ids, w, out, BM: tl.constexpr, BD: tl.constexpr, KIND: tl.constexpr):
    """Rows that overlap, that step by two, and whose columns an array moves."""
    chosen = tl.load(ids + tl.arange(0, BM))
    d = tl.arange(0, BD)
    if KIND == "overlapping":
        places = chosen[:, None] + d[None, :]
    elif KIND == "strided":
        places = chosen[:, None] * 4 + d[None, :] * 2
    elif KIND == "moved":
        places = chosen[:, None] * 4 + (d + chosen)[None, :]
    elif KIND == "backwards":
        places = chosen[:, None] * 8 - d[None, :] + BD
    elif KIND == "two axes":
        places = tl.reshape(chosen[:, None] * 8 + d[None, :], (BM, BD))
    elif KIND == "scaled":
        places = (chosen[:, None] + d[None, :]) * 2
    elif KIND == "short":
        places = (chosen.to(tl.int8)[:, None] * 30 + d.to(tl.int8)[None, :]).to(tl.int32) & 127
    tl.store(out + tl.arange(0, BM)[:, None] * BD + d[None, :], tl.load(w + places))


@pytest.mark.parametrize(
    "kind", ["overlapping", "strided", "moved", "backwards", "two axes", "scaled", "short"]
)
def test_other_places_of_rows(kind: str) -> None:
    ids = np.array([3, 0, 7, 5, 1, 1, 6, 2], "int32")
    compare(shared_kernel, (1,), [ids, normal(200), np.zeros((8, 8), "float32")], 8, 8, kind)


@triton_metal.jit
def paged_kernel(pages, keys, out, counts, SIZE: tl.constexpr, D: tl.constexpr):
    program = tl.program_id(0)
    d = tl.arange(0, D)
    i = tl.arange(0, SIZE)
    total = tl.zeros((D,), tl.float32)
    for page in range(tl.load(counts + program)):
        number = tl.load(pages + program * 4 + page)
        tile = tl.load(keys + number * SIZE * D + i[:, None] * D + d[None, :])
        total += tl.sum(tile, 0)
    tl.store(out + program * D + d, total)


def test_pages_are_gathered_in_loops() -> None:
    pages = np.array([[5, 2, 0, 1], [7, 7, 0, 0], [3, 6, 4, 0]], "int32")
    counts = np.array([4, 0, 3], "int32")
    arrays = [pages, normal(8, 8, 16), np.zeros((3, 16), "float32"), counts]
    compare(paged_kernel, (3,), arrays, 8, 16, tolerance=1e-5)


@triton_metal.jit
def gate_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=-float("inf"))
    tl.store(out_ptr + i, x * tl.sigmoid(x), mask=i < n)


def test_the_gradient_of_a_sigmoid_is_finite_where_its_exponential_is_not() -> None:
    x = mx.array([-200.0, -100.0, -89.0, -88.0, -10.0, 0.0, 3.0, 100.0])

    def total(x: mx.array) -> mx.array:
        return graph(gate_kernel)(x, x.size, 4, grid=(2,), outputs={"out_ptr": x}).sum()

    expected = mx.grad(lambda x: (x * mx.sigmoid(x)).sum())(x)
    np.testing.assert_allclose(np.array(mx.grad(total)(x)), np.array(expected), atol=1e-6)


@triton_metal.jit
def fraction_kernel(x_ptr, w_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    part = x - x.to(tl.int32).to(tl.float32)
    tl.store(out_ptr + i, part * tl.load(w_ptr + i, mask=i < n) + x * x.to(tl.int8), mask=i < n)


def test_integers_have_no_gradient_by_the_floats_that_they_come_from() -> None:
    x, w = mx.array([0.25, 1.5, -2.75, 3.1]), mx.array([0.5, 1.0, 2.5, 300.0])

    def total(x: mx.array) -> mx.array:
        return graph(fraction_kernel)(x, w, 4, 4, grid=(1,), outputs={"out_ptr": x}).sum()

    whole = mx.array([0.0, 1.0, -2.0, 3.0])
    assert mx.array_equal(mx.grad(total)(x), w + whole)
    assert mx.array_equal(mx.jvp(total, [x], [mx.ones(4)])[1][0], (w + whole).sum())


@triton_metal.jit
def chosen_rows_kernel(x, places, y, N, SIZE: tl.constexpr):
    r, i = tl.program_id(0), tl.arange(0, SIZE)
    v = tl.load(x + tl.load(places + r) * N + i, i < N, other=0.0)
    tl.store(y + r * N + i, v * v * v, i < N)


@pytest.mark.parametrize("columns", [7, 8])
def test_derivatives_of_rows_that_an_array_chooses(columns: int) -> None:
    # MLX 0.32 has wrong second derivatives of gathered slices.
    rng = np.random.default_rng(columns)
    x = mx.array(rng.standard_normal((2, 5, columns)).astype(np.float32))
    w = mx.array(rng.standard_normal((4, columns)).astype(np.float32))
    places = mx.array([[4, 0, 0, 2], [1, 4, 3, 3]], mx.int32)

    def rows(x: Any, places: Any) -> Any:
        made = {"y": mx.zeros((4, columns))}
        return graph(chosen_rows_kernel)(x, places, N=columns, SIZE=8, grid=(4,), outputs=made)

    def plain(x: Any, places: Any) -> Any:
        return mx.take(x, places, axis=0) ** 3

    def first(f: Callable) -> Any:
        return mx.grad(lambda x, places: (f(x, places) * w).sum())

    def second(f: Callable) -> Any:
        return mx.grad(lambda x, places: (first(f)(x, places) * x).sum())

    def third(f: Callable) -> Any:
        return mx.grad(lambda x, places: (second(f)(x, places) ** 2).sum())

    def of_map(derivative: Callable, axes: Any) -> Any:
        """The derivative of the sum of a map."""

        def sums(f: Callable) -> Any:
            return lambda x, places: mx.vmap(f, in_axes=axes)(x, places)

        return lambda f: derivative(sums(f))

    for derivative in (lambda f: f, first, second, third):
        cases = [
            (lambda f, d=derivative: d(f), x[0], places[0]),
            (lambda f, d=derivative: mx.vmap(d(f)), x, places),
            (lambda f, d=derivative: mx.vmap(d(f), in_axes=(0, None)), x, places[1]),
            (lambda f, d=derivative: mx.vmap(d(f), in_axes=(None, 0)), x[1], places),
            (lambda f, d=derivative: mx.vmap(d(f), in_axes=(2, 1)), mx.moveaxis(x, 0, 2), places.T),
            (of_map(derivative, 0), x, places),
            (of_map(derivative, (0, None)), x, places[1]),
            (of_map(derivative, (None, 0)), x[1], places),
            (of_map(derivative, (1, 1)), mx.moveaxis(x, 0, 1), places.T),
        ]
        for transform, *arguments in cases:
            for compiled in (lambda f: f, mx.compile):
                found = compiled(transform(rows))(*arguments)
                expected = transform(plain)(*arguments)
                assert mx.allclose(found, expected, rtol=1e-4, atol=1e-4)
    ours, theirs = (
        mx.jvp(lambda x, f=f: f(x, places[0]), [x[0]], [mx.ones_like(x[0])])[1][0]
        for f in (rows, plain)
    )
    assert mx.allclose(ours, theirs, rtol=1e-5, atol=1e-5)
