"""tl.dot of three dimensions: a batch of products, on simdgroup matrices."""

from __future__ import annotations

import numpy as np
import pytest

from kernel_support import assert_same, dtype, needs_counters, tl, triton

from _counts import counting  # isort: skip


@triton.jit
def batch_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    out_ptr,
    B: tl.constexpr,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
    A_TRANSPOSED: tl.constexpr,
    B_TRANSPOSED: tl.constexpr,
    OUT: tl.constexpr,
):
    batch = tl.arange(0, B)[:, None, None]
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    if A_TRANSPOSED:
        a = tl.load(a_ptr + batch * M * K + k[None, :, None] * M + m[None, None, :])
        a = tl.permute(a, 0, 2, 1)
    else:
        a = tl.load(a_ptr + batch * M * K + m[None, :, None] * K + k[None, None, :])
    if B_TRANSPOSED:
        b = tl.load(b_ptr + batch * K * N + n[None, :, None] * K + k[None, None, :])
        b = tl.permute(b, 0, 2, 1)
    else:
        b = tl.load(b_ptr + batch * K * N + k[None, :, None] * N + n[None, None, :])
    tile = batch * M * N + m[None, :, None] * N + n[None, None, :]
    c = tl.load(c_ptr + tile)
    tl.store(out_ptr + tile, tl.dot(a, b, c, input_precision="ieee", out_dtype=OUT))


def small(rng: np.random.Generator, shape: tuple[int, ...], name: str) -> np.ndarray:
    """Small integers: sums and products are exact in every type, in any order."""
    return rng.integers(-4, 5, shape).astype(dtype(name))


def check(
    name: str,
    shape: tuple[int, int, int, int],
    *,
    transposed: tuple[bool, bool] = (False, False),
    out: str | None = None,
    num_warps: int = 4,
) -> None:
    batch, m, n, k = shape
    rng = np.random.default_rng(sum(shape))
    a, b = small(rng, (batch, m, k), name), small(rng, (batch, k, n), name)
    out = out or ("int32" if name == "int8" else "float32")
    c = small(rng, (batch, m, n), out)
    result = np.empty_like(c)
    stored = [
        np.ascontiguousarray(x.swapaxes(1, 2)) if swapped else x
        for x, swapped in zip((a, b), transposed, strict=True)
    ]
    batch_kernel[(1,)](
        *stored,
        c,
        result,
        B=batch,
        M=m,
        N=n,
        K=k,
        A_TRANSPOSED=transposed[0],
        B_TRANSPOSED=transposed[1],
        OUT=getattr(tl, out),
        num_warps=num_warps,
    )
    exact = a.astype(np.int64) @ b.astype(np.int64) + c.astype(np.int64)
    assert_same(result, exact.astype(c.dtype))


SHAPES = [
    (1, 16, 16, 16),
    (2, 8, 8, 8),
    (2, 32, 64, 32),
    (4, 64, 16, 32),
    (8, 16, 32, 64),
    (16, 8, 16, 8),
    (32, 16, 8, 16),
    (64, 8, 8, 16),
    (2, 64, 32, 64),
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", ["float16", "float32", "int8", "bfloat16"])
def test_shapes(name: str, shape: tuple[int, int, int, int]) -> None:
    check(name, shape)


@pytest.mark.parametrize(
    "shape", [(1, 2, 4, 8), (4, 8, 16, 4), (8, 4, 8, 2), (2, 1, 16, 1)], ids=str
)
def test_small_sides(shape: tuple[int, int, int, int]) -> None:
    check("float32", shape)


@pytest.mark.parametrize("num_warps", [1, 2, 8, 16, 32])
@pytest.mark.parametrize("shape", [(2, 16, 16, 16), (8, 32, 32, 32)], ids=str)
def test_warps(shape: tuple[int, int, int, int], num_warps: int) -> None:
    check("float16", shape, num_warps=num_warps)


@pytest.mark.parametrize("transposed", [(True, False), (False, True), (True, True)], ids=str)
@pytest.mark.parametrize("name", ["float16", "float32"])
def test_transposed(name: str, transposed: tuple[bool, bool]) -> None:
    check(name, (4, 32, 16, 64), transposed=transposed)


def test_half_accumulator() -> None:
    check("float16", (4, 16, 32, 16), out="float16")


# Operands of 70 KB go to threadgroup memory in parts: of the batch, and of K.
@pytest.mark.parametrize(
    ("shape", "num_warps"),
    [((8, 32, 32, 32), 4), ((8, 32, 32, 32), 16), ((2, 64, 64, 64), 8)],
    ids=str,
)
def test_parts(shape: tuple[int, int, int, int], num_warps: int) -> None:
    check("float32", shape, num_warps=num_warps)


@needs_counters
@pytest.mark.parametrize(
    ("shape", "num_warps"),
    [
        ((1, 16, 16, 16), 4),
        ((4, 32, 32, 64), 4),
        ((8, 16, 32, 16), 8),
        ((16, 8, 8, 8), 4),
        ((8, 64, 64, 32), 4),
    ],
    ids=str,
)
@pytest.mark.own_target
def test_counts(shape: tuple[int, int, int, int], num_warps: int) -> None:
    """Each 8x8x8 of a batch is multiplied once."""
    batch, m, n, k = shape
    with counting() as counts:
        check("float16", shape, num_warps=num_warps)
    assert counts.multiplies == batch * m * n * k // 512
    assert counts.scalar_multiply_adds == 0


@triton.jit
def chain_kernel(a_ptr, b_ptr, out_ptr, steps, B: tl.constexpr, S: tl.constexpr):
    batch, i = tl.arange(0, B)[:, None, None], tl.arange(0, S)
    tile = batch * S * S + i[None, :, None] * S + i[None, None, :]
    a, b = tl.load(a_ptr + tile), tl.load(b_ptr + tile)
    acc = tl.zeros((B, S, S), tl.float32)
    for step in range(steps):
        ab = tl.dot(a, b).to(tl.float16)
        acc = tl.dot(ab, tl.permute(b, 0, 2, 1), acc)
        if step % 2 == 1:
            acc += tl.max(acc, axis=2, keep_dims=True)
    tl.store(out_ptr + tile, tl.permute(acc, 0, 2, 1), mask=i[None, :, None] <= i[None, None, :])


@pytest.mark.parametrize("num_warps", [1, 4])
def test_chain_in_a_loop(num_warps: int) -> None:
    rng = np.random.default_rng(3)
    size, batch, steps = 16, 4, 3
    a, b = (rng.integers(-1, 2, (batch, size, size)).astype(np.float16) for _ in range(2))
    out = np.zeros((batch, size, size), np.float32)
    chain_kernel[(1,)](a, b, out, steps, B=batch, S=size, num_warps=num_warps)
    x, y = a.astype(np.float64), b.astype(np.float64)
    acc = np.zeros_like(x)
    for step in range(steps):
        acc += x @ y @ y.swapaxes(1, 2)
        if step % 2 == 1:
            acc += acc.max(axis=2, keepdims=True)
    expected = np.where(np.tri(size, dtype=bool).T, acc.swapaxes(1, 2), 0)
    assert_same(out, expected.astype(np.float32))
