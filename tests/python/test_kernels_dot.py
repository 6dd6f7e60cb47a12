"""tl.dot beyond plain matrix multiplication: all tile shapes, chains, transposes, batched use in loops."""

from __future__ import annotations

import numpy as np
import pytest

from kernel_support import assert_same, assert_within, dtype, normal, tl, triton

from _bounds import accumulation, rounding  # isort: skip


@triton.jit
def dot_kernel(a_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows, cols, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(a_ptr + rows[:, None] * K + k[None, :])
    b = tl.load(b_ptr + k[:, None] * N + cols[None, :])
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], tl.dot(a, b, input_precision="ieee"))


def small(rng: np.random.Generator, shape: tuple[int, ...], name: str) -> np.ndarray:
    """Small integers: sums and products are exact in every type, in any order."""
    return rng.integers(-4, 5, shape).astype(dtype(name))


@pytest.mark.parametrize("m", [16, 128])
@pytest.mark.parametrize("n", [16, 64])
@pytest.mark.parametrize("k", [16, 32, 128])
@pytest.mark.parametrize("name", ["float16", "float32", "int8"])
def test_tile_shapes(name: str, m: int, n: int, k: int) -> None:
    rng = np.random.default_rng(m * n * k)
    a, b = small(rng, (m, k), name), small(rng, (k, n), name)
    c = np.empty((m, n), np.int32 if name == "int8" else np.float32)
    dot_kernel[(1,)](a, b, c, M=m, N=n, K=k, num_warps=4)
    assert_same(c, (a.astype(np.int64) @ b.astype(np.int64)).astype(c.dtype))


LARGE = [
    ("float16", (256, 16, 16)),
    ("int8", (256, 16, 16)),
    ("bfloat16", (16, 16, 256)),
    ("float32", (16, 16, 256)),
    ("float32", (256, 64, 64)),
    ("int8", (64, 256, 64)),
    ("float16", (64, 64, 256)),
    ("int8", (64, 64, 256)),
    ("float16", (256, 256, 32)),
]


@pytest.mark.parametrize(("name", "shape"), LARGE, ids=str)
def test_large_tiles(name: str, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    rng = np.random.default_rng(0)
    a, b = small(rng, (m, k), name), small(rng, (k, n), name)
    c = np.empty((m, n), np.int32 if name == "int8" else np.float32)
    dot_kernel[(1,)](a, b, c, M=m, N=n, K=k, num_warps=8)
    assert_same(c, (a.astype(np.int64) @ b.astype(np.int64)).astype(c.dtype))


@pytest.mark.parametrize("num_warps", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("shape", [(16, 16, 16), (32, 16, 64), (64, 64, 32)], ids=str)
def test_warps(shape: tuple[int, int, int], num_warps: int) -> None:
    m, n, k = shape
    rng = np.random.default_rng(0)
    a, b = small(rng, (m, k), "float16"), small(rng, (k, n), "float16")
    c = np.empty((m, n), np.float32)
    dot_kernel[(1,)](a, b, c, M=m, N=n, K=k, num_warps=num_warps)
    assert_same(c, a.astype(np.float32) @ b.astype(np.float32))


@triton.jit
def chain_kernel(a_ptr, b_ptr, c_ptr, out_ptr, S: tl.constexpr):
    i = tl.arange(0, S)
    tile = i[:, None] * S + i[None, :]
    a, b, c = tl.load(a_ptr + tile), tl.load(b_ptr + tile), tl.load(c_ptr + tile)
    ab = tl.dot(a, tl.trans(b)).to(tl.float16)
    abc = tl.dot(ab, c)
    tl.store(out_ptr + tile, abc + tl.dot(tl.trans(ab), a))


@pytest.mark.parametrize(("size", "num_warps"), [(16, 1), (32, 1), (16, 4), (32, 4), (64, 4)])
def test_chain_of_products(size: int, num_warps: int) -> None:
    rng = np.random.default_rng(0)
    a, b, c = (rng.integers(-2, 3, (size, size)).astype(np.float16) for _ in range(3))
    out = np.empty((size, size), np.float32)
    chain_kernel[(1,)](a, b, c, out, S=size, num_warps=num_warps)
    a, b, c = (x.astype(np.float32) for x in (a, b, c))
    ab = a @ b.T
    assert_same(out, ab @ c + ab.T @ a)


@triton.jit
def gram_kernel(x_ptr, out_ptr, n, d, BLOCK: tl.constexpr, D: tl.constexpr):
    """The Gram matrix of the columns, its diagonal doubled, row maxima subtracted: a dot's result in further work."""
    cols = tl.arange(0, D)
    acc = tl.zeros((D, D), tl.float32)
    for start in range(0, n, BLOCK):
        rows = start + tl.arange(0, BLOCK)
        x = tl.load(
            x_ptr + rows[:, None] * d + cols[None, :],
            mask=(rows[:, None] < n) & (cols[None, :] < d),
            other=0.0,
        )
        acc += tl.dot(tl.trans(x), x, input_precision="ieee")
    acc = tl.where(cols[:, None] == cols[None, :], 2 * acc, acc)
    acc -= tl.max(acc, axis=1)[:, None]
    tl.store(
        out_ptr + cols[:, None] * d + cols[None, :],
        acc,
        mask=(cols[:, None] < d) & (cols[None, :] < d),
    )


@pytest.mark.parametrize(("n", "d"), [(1, 16), (100, 16), (77, 29), (64, 64)])
@pytest.mark.parametrize("name", ["float16", "float32"])
def test_gram_matrix(name: str, n: int, d: int) -> None:
    x = small(np.random.default_rng(n), (n, d), name)
    x[:, 0] = 5  # So that every row's maximum is positive, and the padding's zeros never are.
    x = np.abs(x)
    out = np.empty((d, d), np.float32)
    gram_kernel[(1,)](x, out, n, d, BLOCK=32, D=triton.next_power_of_2(d), num_warps=4)
    gram = x.astype(np.float64).T @ x.astype(np.float64)
    gram += np.diag(np.diag(gram))
    assert_same(out, (gram - gram.max(axis=1, keepdims=True)).astype(np.float32))


@triton.jit
def two_accumulators_kernel(a_ptr, b_ptr, out_ptr, k_blocks, S: tl.constexpr):
    """Gated: silu of one product times another, from one reading of A."""
    i = tl.arange(0, S)
    gate = tl.zeros((S, S), tl.float32)
    up = tl.zeros((S, S), tl.float32)
    for block in range(k_blocks):
        a = tl.load(a_ptr + i[:, None] * (k_blocks * S) + block * S + i[None, :])
        b_row = (block * S + i[:, None]) * (2 * S)
        gate = tl.dot(a, tl.load(b_ptr + b_row + i[None, :]), gate)
        up = tl.dot(a, tl.load(b_ptr + b_row + S + i[None, :]), up)
    tl.store(out_ptr + i[:, None] * S + i[None, :], gate * tl.sigmoid(gate) * up)


@pytest.mark.parametrize("size", [16, 32, 64])
def test_two_accumulators(size: int) -> None:
    rng = np.random.default_rng(0)
    a, b = (
        normal(rng, (size, 3 * size), "float16"),
        normal(rng, (3 * size, 2 * size), "float16") / np.float16(8),
    )
    out = np.empty((size, size), np.float32)
    two_accumulators_kernel[(1,)](a, b, out, 3, S=size, num_warps=4)
    product = a.astype(np.float64) @ b.astype(np.float64)
    magnitude = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64))
    gate, up = product[:, :size], product[:, size:]
    expected = gate / (1 + np.exp(-gate)) * up
    error = accumulation(magnitude, 3 * size)
    # silu's slope is at most 1.1.
    bound = 1.1 * error[:, :size] * (np.abs(up) + error[:, size:]) + np.abs(gate) * error[:, size:]
    assert_within(out, expected, bound + 16 * rounding(expected, "float32"))


@triton.jit
def linear_attention_kernel(q_ptr, k_ptr, v_ptr, out_ptr, n, D: tl.constexpr, BLOCK: tl.constexpr):
    """A state that every block reads and then updates: products that depend on each other through a loop."""
    d, t = tl.arange(0, D), tl.arange(0, BLOCK)
    state = tl.zeros((D, D), tl.float32)
    for start in range(0, n, BLOCK):
        rows = (start + t)[:, None]
        mask = rows < n
        q = tl.load(q_ptr + rows * D + d[None, :], mask=mask, other=0.0)
        k = tl.load(k_ptr + rows * D + d[None, :], mask=mask, other=0.0)
        v = tl.load(v_ptr + rows * D + d[None, :], mask=mask, other=0.0)
        scores = tl.where(
            t[:, None] >= t[None, :], tl.dot(q, tl.trans(k), input_precision="ieee"), 0.0
        )
        out = tl.dot(scores, v, input_precision="ieee") + tl.dot(q, state, input_precision="ieee")
        tl.store(out_ptr + rows * D + d[None, :], out, mask=mask)
        state += tl.dot(tl.trans(k), v, input_precision="ieee")


@pytest.mark.parametrize("n", [16, 50, 96])
@pytest.mark.parametrize(("head", "block"), [(16, 16), (32, 16), (32, 32), (64, 32)])
def test_state_through_a_loop(head: int, block: int, n: int) -> None:
    rng = np.random.default_rng(n)
    q, k, v = (rng.integers(-2, 3, (n, head)).astype(np.float32) for _ in range(3))
    out = np.empty_like(q)
    linear_attention_kernel[(1,)](q, k, v, out, n, D=head, BLOCK=block, num_warps=4)
    assert_same(out, np.tril(q @ k.T) @ v)


@triton.jit
def fp16_result_kernel(a_ptr, b_ptr, c_ptr, S: tl.constexpr):
    i = tl.arange(0, S)
    tile = i[:, None] * S + i[None, :]
    tl.store(
        c_ptr + tile, tl.dot(tl.load(a_ptr + tile), tl.load(b_ptr + tile), out_dtype=tl.float16)
    )


def test_fp16_result() -> None:
    rng = np.random.default_rng(0)
    a, b = small(rng, (32, 32), "float16"), small(rng, (32, 32), "float16")
    c = np.empty((32, 32), np.float16)
    fp16_result_kernel[(1,)](a, b, c, S=32, num_warps=4)
    assert_same(c, (a.astype(np.float32) @ b.astype(np.float32)).astype(np.float16))


@triton.jit
def computed_operands_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """Operands that never were in memory: comparisons, ranges, a broadcast row."""
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(x_ptr + k)
    a = tl.where(m[:, None] % K == k[None, :], 1.0, 0.0) + tl.zeros((M, K), tl.float32)
    b = x[:, None] * (n[None, :] % 5).to(tl.float32)
    tl.store(out_ptr + m[:, None] * N + n[None, :], tl.dot(a, b, input_precision="ieee"))


@pytest.mark.parametrize("shape", [(16, 32, 16), (64, 16, 32), (32, 64, 64)], ids=str)
@pytest.mark.parametrize("num_warps", [1, 4, 8])
def test_computed_operands(num_warps: int, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    x = np.arange(k, dtype=np.float32)
    out = np.empty((m, n), np.float32)
    computed_operands_kernel[(1,)](x, out, M=m, N=n, K=k, num_warps=num_warps)
    assert_same(out, x[np.arange(m) % k][:, None] * (np.arange(n) % 5).astype(np.float32)[None, :])
