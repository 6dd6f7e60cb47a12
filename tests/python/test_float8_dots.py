"""Products of floats of 8 bits, of small and of batched tiles, against NumPy's float64."""

from __future__ import annotations

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl

from float8_model import FORMATS


def codes(rng: np.random.Generator, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Codes of numbers that are finite, of all exponents in the middle of the range."""
    format = FORMATS[name]
    magnitude = np.abs(format.values())
    middle = np.exp2(1 - format.bias + (1 << (6 - format.mantissa)))
    chosen = np.flatnonzero((magnitude < middle * 32) & (magnitude >= middle / 64))
    return rng.choice(chosen, shape).astype(np.uint8)


@triton.jit
def dot_kernel(
    a, b, c, A: tl.constexpr, B: tl.constexpr, ACC: tl.constexpr,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, TURNED: tl.constexpr,
):  # fmt: skip
    rows, columns, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + rows[:, None] * K + k[None, :]).to(A, bitcast=True)
    if TURNED:
        y = tl.trans(tl.load(b + columns[:, None] * K + k[None, :])).to(B, bitcast=True)
    else:
        y = tl.load(b + k[:, None] * N + columns[None, :]).to(B, bitcast=True)
    acc = tl.full((M, N), 1, ACC)
    tl.store(
        c + rows[:, None] * N + columns[None, :],
        tl.dot(x, y, acc, out_dtype=ACC, max_num_imprecise_acc=K),
    )


def check(
    left: str,
    right: str,
    shape: tuple[int, int, int],
    acc: str = "float32",
    turned: bool = False,
    num_warps: int = 4,
) -> None:
    m, n, k = shape
    rng = np.random.default_rng(m + n + k)
    a = codes(rng, left, (m, k))
    b = codes(rng, right, (n, k) if turned else (k, n))
    c = np.zeros((m, n), acc)
    dot_kernel[(1,)](
        a, b, c, A=getattr(tl, left), B=getattr(tl, right), ACC=getattr(tl, acc),
        M=m, N=n, K=k, TURNED=turned, num_warps=num_warps,
    )  # fmt: skip
    x, y = FORMATS[left].values()[a], FORMATS[right].values()[b]
    y = y.T if turned else y
    expected = x @ y + 1
    # Sums of k products in float32, in any order; half a unit of the accumulator.
    bound = (np.abs(x) @ np.abs(y) + 1) * (k + 1) * 2.0**-24
    if acc == "float16":
        bound = bound + np.abs(expected) * 2.0**-11 + 2.0**-25
    assert (np.abs(c.astype(np.float64) - expected) <= bound).all()


@pytest.mark.parametrize("right", FORMATS)
@pytest.mark.parametrize("left", FORMATS)
def test_each_pair_of_formats(left: str, right: str) -> None:
    check(left, right, (32, 16, 32))


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    "shape",
    [(1, 1, 1), (1, 2, 32), (2, 4, 8), (16, 64, 2), (4, 64, 64), (64, 4, 16), (64, 32, 128)],
    ids=str,
)
@pytest.mark.parametrize("name", ["float8e5", "float8e4nv"])
def test_shapes(name: str, shape: tuple[int, int, int], turned: bool) -> None:
    check(name, name, shape, turned=turned)


@pytest.mark.parametrize("name", ["float8e5", "float8e4nv", "float8e4b15"])
def test_accumulators_of_float16(name: str) -> None:
    if name == "float8e4b15":
        check(name, name, (16, 32, 64), "float16")
    else:
        check("float8e4b15", name, (16, 32, 64), "float16", num_warps=2)


@triton.jit
def chain_kernel(a, b, c, out, SMALL: tl.constexpr, S: tl.constexpr):
    i = tl.arange(0, S)
    tile = i[:, None] * S + i[None, :]
    x, y, z = tl.load(a + tile), tl.load(b + tile), tl.load(c + tile)
    product = tl.dot(x.to(SMALL, bitcast=True), y.to(SMALL, bitcast=True))
    tl.store(out + tile, tl.dot(product.to(SMALL), z.to(SMALL, bitcast=True)))


@pytest.mark.parametrize("name", ["float8e5", "float8e4nv", "float8e4b8", "float8e5b16"])
def test_chains(name: str) -> None:
    format, size = FORMATS[name], 32
    rng = np.random.default_rng(5)
    # Small integers: the products are exact, whatever their order.
    one = format.encode(np.arange(-2, 3).astype(np.float64))
    a, b, c = (rng.choice(one, (size, size)) for _ in range(3))
    out = np.zeros((size, size), np.float32)
    chain_kernel[(1,)](a, b, c, out, SMALL=getattr(tl, name), S=size)
    x, y, z = (format.values()[t] for t in (a, b, c))
    rounded = format.values()[format.encode(x @ y)]
    np.testing.assert_array_equal(out, (rounded @ z).astype(np.float32))


@triton.jit
def batch_kernel(
    a, b, c, SMALL: tl.constexpr, BATCH: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr
):  # fmt: skip
    batch = tl.arange(0, BATCH)[:, None, None]
    rows, columns, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + batch * M * K + rows[None, :, None] * K + k[None, None, :])
    y = tl.load(b + batch * K * N + k[None, :, None] * N + columns[None, None, :])
    z = tl.dot(x.to(SMALL, bitcast=True), y.to(SMALL, bitcast=True))
    tl.store(c + batch * M * N + rows[None, :, None] * N + columns[None, None, :], z)


@pytest.mark.parametrize("shape", [(2, 16, 16, 32), (4, 4, 8, 16), (1, 32, 64, 32)], ids=str)
@pytest.mark.parametrize("name", ["float8e5", "float8e4b8"])
def test_batches(name: str, shape: tuple[int, int, int, int]) -> None:
    batch, m, n, k = shape
    rng = np.random.default_rng(6)
    a, b = codes(rng, name, (batch, m, k)), codes(rng, name, (batch, k, n))
    c = np.zeros((batch, m, n), np.float32)
    batch_kernel[(1,)](a, b, c, SMALL=getattr(tl, name), BATCH=batch, M=m, N=n, K=k)
    x, y = FORMATS[name].values()[a], FORMATS[name].values()[b]
    bound = np.abs(x) @ np.abs(y) * (k + 1) * 2.0**-24
    assert (np.abs(c - x @ y) <= bound).all()
