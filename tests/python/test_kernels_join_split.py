"""join, split, cat and interleave: every dtype, tiles smaller than a warp and larger, ranks 1 to 3, pointers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernel_support import FLOATS, INTEGERS, assert_same, numbers, tl, triton

SIZES = (1, 2, 8, 32, 128, 2048)
WARPS = (1, 4, 16)


@triton.jit
def join_kernel(a_ptr, b_ptr, out_ptr, N: tl.constexpr):
    n = tl.arange(0, N)
    pairs = tl.join(tl.load(a_ptr + n), tl.load(b_ptr + n))
    tl.store(out_ptr + n[:, None] * 2 + tl.arange(0, 2)[None, :], pairs)


@triton.jit
def split_kernel(x_ptr, a_ptr, b_ptr, N: tl.constexpr):
    n = tl.arange(0, N)
    a, b = tl.split(tl.load(x_ptr + n[:, None] * 2 + tl.arange(0, 2)[None, :]))
    tl.store(a_ptr + n, a)
    tl.store(b_ptr + n, b)


@triton.jit
def cat_kernel(a_ptr, b_ptr, out_ptr, N: tl.constexpr, REORDER: tl.constexpr):
    n = tl.arange(0, N)
    both = tl.cat(tl.load(a_ptr + n), tl.load(b_ptr + n), can_reorder=REORDER)
    tl.store(out_ptr + tl.arange(0, 2 * N), both)


@triton.jit
def interleave_kernel(a_ptr, b_ptr, out_ptr, N: tl.constexpr):
    n = tl.arange(0, N)
    both = tl.interleave(tl.load(a_ptr + n), tl.load(b_ptr + n))
    tl.store(out_ptr + tl.arange(0, 2 * N), both)


def pair(seed: int, n: Any, name: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    if name == "bool":
        return rng.integers(0, 2, n).astype(bool), rng.integers(0, 2, n).astype(bool)
    return numbers(rng, n, name), numbers(rng, n, name)


@pytest.mark.parametrize("name", [*FLOATS, *INTEGERS, "bool"])
@pytest.mark.parametrize("n", SIZES)
def test_join_split_and_cat(n: int, name: str) -> None:
    a, b = pair(0, n, name)
    alternating = np.stack([a, b], axis=-1)
    out = np.empty_like(alternating)
    join_kernel[(1,)](a, b, out, N=n)
    assert_same(out, alternating)

    first, second = np.empty_like(a), np.empty_like(b)
    split_kernel[(1,)](alternating, first, second, N=n)
    assert_same(first, a)
    assert_same(second, b)

    out = np.empty_like(alternating.ravel())
    cat_kernel[(1,)](a, b, out, N=n, REORDER=False)
    assert_same(out, np.concatenate([a, b]))

    out = np.empty_like(alternating.ravel())
    cat_kernel[(1,)](a, b, out, N=n, REORDER=True)
    assert_same(np.sort(out), np.sort(np.concatenate([a, b])))

    out = np.empty_like(alternating.ravel())
    interleave_kernel[(1,)](a, b, out, N=n)
    assert_same(out, alternating.ravel())


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("num_warps", WARPS)
def test_any_number_of_warps(num_warps: int, n: int) -> None:
    a, b = pair(1, n, "float32")
    out = np.empty(2 * n, np.float32)
    interleave_kernel[(1,)](a, b, out, N=n, num_warps=num_warps)
    assert_same(out, np.stack([a, b], axis=-1).ravel())
    cat_kernel[(1,)](a, b, out, N=n, REORDER=False, num_warps=num_warps)
    assert_same(out, np.concatenate([a, b]))


@triton.jit
def cat_along_kernel(a_ptr, b_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, DIM: tl.constexpr):
    m = tl.arange(0, M)[:, None]
    n = tl.arange(0, N)[None, :]
    both = tl.cat(tl.load(a_ptr + m * N + n), tl.load(b_ptr + m * N + n), dim=DIM)
    rows = tl.arange(0, both.shape[0])[:, None]
    columns = tl.arange(0, both.shape[1])[None, :]
    tl.store(out_ptr + rows * both.shape[1] + columns, both)


@pytest.mark.parametrize("shape", [(1, 64), (64, 1), (4, 8), (32, 64)], ids=str)
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_cat_along_each_dimension(dim: int, shape: tuple[int, int]) -> None:
    a, b = pair(2, shape, "float16")
    expected = np.concatenate([a, b], axis=dim)
    out = np.empty_like(expected)
    cat_along_kernel[(1,)](a, b, out, M=shape[0], N=shape[1], DIM=dim)
    assert_same(out, expected)


@triton.jit
def butterfly_kernel(x_ptr, out_ptr, N: tl.constexpr, STEPS: tl.constexpr):
    n = tl.arange(0, N)
    x = tl.load(x_ptr + n)
    for _step in tl.static_range(STEPS):
        even, odd = tl.split(tl.reshape(x, (N // 2, 2)))
        x = tl.interleave(even + odd, even - odd)
        x = tl.reshape(tl.trans(tl.reshape(x, (N // 2, 2))), (N,))
    tl.store(out_ptr + n, x)


@pytest.mark.parametrize("n", [64, 1024])
@pytest.mark.parametrize("num_warps", WARPS)
def test_walsh_hadamard_transform(num_warps: int, n: int) -> None:
    x = np.random.default_rng(3).integers(-100, 100, n, dtype=np.int32)
    steps = n.bit_length() - 1
    out = np.empty_like(x)
    butterfly_kernel[(1,)](x, out, N=n, STEPS=steps, num_warps=num_warps)
    expected = x.copy()
    for _ in range(steps):
        even, odd = expected[::2], expected[1::2]
        expected = np.concatenate([even + odd, even - odd])
    assert_same(out, expected)


@triton.jit
def join_in_loop_kernel(x_ptr, out_ptr, count, N: tl.constexpr):
    n = tl.arange(0, N)
    low = tl.zeros((N,), tl.int32)
    high = tl.zeros((N,), tl.int32)
    for i in range(count):
        x = tl.load(x_ptr + i * 2 * N + n[:, None] * 2 + tl.arange(0, 2)[None, :])
        a, b = tl.split(x + tl.join(high, low))
        low, high = a, b
    tl.store(out_ptr + n[:, None] * 2 + tl.arange(0, 2)[None, :], tl.join(low, high))


@pytest.mark.parametrize("n", [4, 256])
def test_tiles_that_a_loop_carries(n: int) -> None:
    x = np.random.default_rng(4).integers(-1000, 1000, (5, n, 2), dtype=np.int32)
    out = np.empty((n, 2), np.int32)
    join_in_loop_kernel[(1,)](x, out, 5, N=n)
    low = high = np.zeros(n, np.int32)
    for row in x:
        low, high = row[:, 0] + high, row[:, 1] + low
    assert_same(out, np.stack([low, high], axis=-1))


@triton.jit
def scalars_kernel(x_ptr, out_ptr):
    both = tl.join(tl.load(x_ptr), tl.load(x_ptr + 1))
    a, b = tl.split(both)
    tl.store(out_ptr + tl.arange(0, 2), both)
    tl.store(out_ptr + 2, b)
    tl.store(out_ptr + 3, a)


def test_scalars() -> None:
    x = np.array([1.5, -0.0], np.float32)
    out = np.empty(4, np.float32)
    scalars_kernel[(1,)](x, out)
    assert_same(out, np.array([1.5, -0.0, -0.0, 1.5], np.float32))


@triton.jit
def three_dimensions_kernel(a_ptr, b_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    pairs = tl.join(tl.load(a_ptr + at), tl.load(b_ptr + at))
    tl.store(
        out_ptr + tl.arange(0, N * 2 * M), tl.reshape(tl.permute(pairs, (1, 2, 0)), (N * 2 * M,))
    )


@pytest.mark.parametrize("shape", [(2, 2), (8, 32), (64, 16)], ids=str)
def test_three_dimensions(shape: tuple[int, int]) -> None:
    a, b = pair(5, shape, "int16")
    out = np.empty(2 * a.size, np.int16)
    three_dimensions_kernel[(1,)](a, b, out, M=shape[0], N=shape[1])
    assert_same(out, np.stack([a, b], axis=-1).transpose(1, 2, 0).ravel())


@triton.jit
def pointers_kernel(a_ptr, b_ptr, out_ptr, N: tl.constexpr):
    n = tl.arange(0, N)
    p, q = tl.split(tl.join(a_ptr + n, b_ptr + n))
    tl.store(out_ptr + n, tl.load(p) - tl.load(q))
    both = tl.load(tl.cat(a_ptr + n, b_ptr + n, can_reorder=True))
    tl.store(out_ptr + N, tl.sum(both))


@pytest.mark.parametrize("n", [1, 16, 512])
def test_pointers_into_two_arrays(n: int) -> None:
    rng = np.random.default_rng(6)
    a, b = (rng.integers(-1000, 1000, n, dtype=np.int32) for _ in range(2))
    out = np.empty(n + 1, np.int32)
    pointers_kernel[(1,)](a, b, out, N=n)
    assert_same(out, np.append(a - b, a.sum() + b.sum()).astype(np.int32))
