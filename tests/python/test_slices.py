"""Tiles that need more registers than a thread can have are worked on in slices of rows, one after another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernel_support import ON_STOCK, tl, triton


def integers(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.integers(-3, 4, shape).astype(np.float16)


def is_sliced(kernel: Any, expected: bool) -> bool:
    """Whether a kernel is in slices or not, as expected; stock Triton's interpreter has no kernels to ask."""
    return ON_STOCK or (kernel.metadata.slices > 1) == expected


@triton.jit
def product_kernel(
    a_ptr, b_ptr, c_ptr, m, n, k,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PROGRAMS: tl.constexpr,
):  # fmt: skip
    """Products of tiles; each program has every PROGRAMS-th one."""
    tiles_n = tl.cdiv(n, BN)
    for tile in range(tl.program_id(0), tl.cdiv(m, BM) * tiles_n, PROGRAMS):
        rows = (tile // tiles_n) * BM + tl.arange(0, BM)
        columns = (tile % tiles_n) * BN + tl.arange(0, BN)
        inner = tl.arange(0, BK)
        acc = tl.zeros((BM, BN), tl.float32)
        for start in range(0, k, BK):
            a = tl.load(
                a_ptr + rows[:, None] * k + start + inner[None, :],
                mask=(rows[:, None] < m) & (start + inner[None, :] < k),
                other=0.0,
            )
            b = tl.load(
                b_ptr + (start + inner[:, None]) * n + columns[None, :],
                mask=(start + inner[:, None] < k) & (columns[None, :] < n),
                other=0.0,
            )
            acc = tl.dot(a, b, acc)
        inside = (rows[:, None] < m) & (columns[None, :] < n)
        tl.store(c_ptr + rows[:, None] * n + columns[None, :], acc, mask=inside)


@pytest.mark.parametrize("programs", [1, 4])
@pytest.mark.parametrize(
    ("tile", "num_warps"),
    [((128, 128, 32), 4), ((128, 64, 16), 2), ((64, 128, 16), 2), ((256, 16, 16), 1)],
)
def test_products(tile: tuple[int, int, int], num_warps: int, programs: int) -> None:
    m, n, k = 150, 140, 72
    rng = np.random.default_rng(0)
    a, b = integers(rng, m, k), integers(rng, k, n)
    c = np.full((m, n), np.nan, np.float32)
    kernel = product_kernel[(programs,)](
        a, b, c, m, n, k, *tile, PROGRAMS=programs, num_warps=num_warps
    )
    assert is_sliced(kernel, True)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, sums_ptr, n, scale,
    BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """Causal attention of one head, with the logarithms of its sums."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    inside = rows[:, None] < n
    q = tl.load(q_ptr + rows[:, None] * D + d[None, :], mask=inside, other=0.0)
    highest = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for start in range(0, tl.minimum(n, (tl.program_id(0) + 1) * BM), BN):
        keys = start + tl.arange(0, BN)
        k = tl.load(k_ptr + keys[None, :] * D + d[:, None], mask=keys[None, :] < n, other=0.0)
        s = tl.dot(q, k) * scale
        s = tl.where((rows[:, None] >= keys[None, :]) & (keys[None, :] < n), s, -float("inf"))
        now = tl.maximum(highest, tl.max(s, 1))
        p = tl.exp(s - now[:, None])
        share = tl.exp(highest - now)
        total = total * share + tl.sum(p, 1)
        v = tl.load(v_ptr + keys[:, None] * D + d[None, :], mask=keys[:, None] < n, other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * share[:, None])
        highest = now
    tl.store(o_ptr + rows[:, None] * D + d[None, :], acc / total[:, None], mask=inside)
    tl.store(sums_ptr + rows, highest + tl.log(total), mask=rows < n)


@pytest.mark.parametrize(
    ("tile", "num_warps", "expected"),
    [
        ((128, 64), 4, True),
        ((64, 64), 2, True),
        ((128, 32), 2, True),
        ((64, 32), 1, True),
        ((128, 64), 8, True),
        ((64, 64), 4, False),
        ((64, 32), 4, False),
    ],
)
def test_attention(tile: tuple[int, int], num_warps: int, expected: bool) -> None:
    n, d, scale = 200, 64, 0.125
    rng = np.random.default_rng(1)
    q, k, v = (rng.standard_normal((n, d)).astype(np.float16) for _ in range(3))
    o, sums = np.full((n, d), np.nan, np.float32), np.full(n, np.nan, np.float32)
    grid = -(-n // tile[0])
    kernel = attention_kernel[(grid,)](q, k, v, o, sums, n, scale, *tile, D=d, num_warps=num_warps)
    assert is_sliced(kernel, expected)
    s = q.astype(np.float64) @ k.astype(np.float64).T * scale
    s[np.triu_indices(n, 1)] = -np.inf
    p = np.exp(s)
    np.testing.assert_allclose(sums, np.log(p.sum(1)), atol=1e-3)
    np.testing.assert_allclose(
        o, p @ v.astype(np.float64) / p.sum(1, keepdims=True), rtol=1e-2, atol=3e-3
    )


@triton.jit
def phases_kernel(x_ptr, w_ptr, y_ptr, z_ptr, B: tl.constexpr):
    """Rows times a square matrix, and then columns times it: the tiles of either part have slices of their own."""
    i, j = tl.arange(0, B), tl.arange(0, B)
    x = tl.load(x_ptr + i[:, None] * B + j[None, :])
    w = tl.load(w_ptr + i[:, None] * B + j[None, :])
    tl.store(y_ptr + i[:, None] * B + j[None, :], tl.dot(x, w))
    tl.store(z_ptr + i[:, None] * B + j[None, :], tl.dot(tl.trans(w), x))


def test_two_products_of_the_same_tiles() -> None:
    rng = np.random.default_rng(2)
    x, w = integers(rng, 128, 128), integers(rng, 128, 128)
    y, z = np.empty((128, 128), np.float32), np.empty((128, 128), np.float32)
    phases_kernel[(1,)](x, w, y, z, B=128, num_warps=4)
    np.testing.assert_array_equal(y, x.astype(np.float32) @ w.astype(np.float32))
    np.testing.assert_array_equal(z, w.T.astype(np.float32) @ x.astype(np.float32))


@triton.jit
def turned_kernel(x_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr, STEPS: tl.constexpr):
    """Rows in the opposite order, each divided by its sum."""
    i, j = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(x_ptr + (M - 1 - i)[:, None] * N + j[None, :])
    for _ in range(STEPS):
        x = x / tl.sum(x, 1)[:, None] + 1
    tl.store(y_ptr + i[:, None] * N + j[None, :], x)


def turned(x: np.ndarray, steps: int) -> np.ndarray:
    y = x[::-1].astype(np.float64)
    for _ in range(steps):
        y = y / y.sum(1, keepdims=True) + 1
    return y


@pytest.mark.parametrize("steps", [1, 3])
def test_rows_of_a_reduction(steps: int) -> None:
    x = np.random.default_rng(3).uniform(1, 2, (128, 256)).astype(np.float32)
    y = np.empty_like(x)
    kernel = turned_kernel[(1,)](x, y, M=128, N=256, STEPS=steps, num_warps=2)
    assert is_sliced(kernel, True)
    np.testing.assert_allclose(y, turned(x, steps), rtol=1e-5)


@pytest.mark.parametrize("offset", [0, 256])
def test_no_slice_reads_what_another_one_has_written(offset: int) -> None:
    numbers = np.random.default_rng(4).uniform(1, 2, (129, 256)).astype(np.float32)
    x = numbers[:128]
    expected = turned(x, 1)
    y = numbers.reshape(-1)[offset : offset + 128 * 256].reshape(128, 256)
    kernel = turned_kernel[(1,)](x, y, M=128, N=256, STEPS=1, num_warps=2)
    assert is_sliced(kernel, False)
    np.testing.assert_allclose(y, expected, rtol=1e-5)


@triton.jit
def several_stores_kernel(x_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr, STEPS: tl.constexpr):
    """Each step overwrites rows that other rows have written in the step before."""
    i, j = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(x_ptr + i[:, None] * N + j[None, :])
    for step in range(STEPS):
        x = x / tl.sum(x, 1)[:, None] + step
        tl.store(y_ptr + ((i + 16 * step) % M)[:, None] * N + j[None, :], x)


def test_stores_of_several_steps_keep_their_order() -> None:
    x = np.random.default_rng(5).uniform(1, 2, (128, 256)).astype(np.float32)
    y = np.empty_like(x)
    several_stores_kernel[(1,)](x, y, M=128, N=256, STEPS=3, num_warps=2)
    expected = x.astype(np.float64)
    for step in range(3):
        expected = expected / expected.sum(1, keepdims=True) + step
    np.testing.assert_allclose(y, np.roll(expected, 32, 0), rtol=1e-5)


@triton.jit
def counted_kernel(x_ptr, y_ptr, count_ptr, M: tl.constexpr, N: tl.constexpr):
    """Counts its programs beside what it does with rows."""
    i, j = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(x_ptr + i[:, None] * N + j[None, :])
    before = tl.sum(x, 1)
    place = tl.atomic_add(count_ptr, 1)
    tl.store(y_ptr + i[:, None] * N + j[None, :], x / before[:, None] + place)


def test_what_happens_once_is_not_repeated() -> None:
    x = np.random.default_rng(6).uniform(1, 2, (128, 256)).astype(np.float32)
    y, count = np.empty_like(x), np.zeros(1, np.int32)
    counted_kernel[(1,)](x, y, count, M=128, N=256, num_warps=2)
    assert count[0] == 1
    np.testing.assert_allclose(y, x / x.sum(1, keepdims=True), rtol=1e-5)


@triton.jit
def sums_kernel(x_ptr, rows_ptr, all_ptr, M: tl.constexpr, N: tl.constexpr):
    """Sums of rows of which the whole sum is taken, too: the rows belong together."""
    i, j = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(x_ptr + i[:, None] * N + j[None, :])
    rows = tl.sum(x / tl.max(x, 1)[:, None], 1)
    tl.store(rows_ptr + i, rows)
    tl.store(all_ptr, tl.sum(rows, 0))


def test_rows_that_are_summed_up_are_not_sliced() -> None:
    x = np.random.default_rng(7).integers(1, 5, (128, 256)).astype(np.float32)
    x[:, 0] = 4
    rows, whole = np.empty(128, np.float32), np.empty(1, np.float32)
    kernel = sums_kernel[(1,)](x, rows, whole, M=128, N=256, num_warps=2)
    assert is_sliced(kernel, False)
    np.testing.assert_array_equal(rows, (x / 4).sum(1))
    np.testing.assert_array_equal(whole, [(x / 4).sum()])


@triton.jit
def reshaped_kernel(
    x_ptr, y_ptr, z_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, LAST: tl.constexpr
):  # fmt: skip
    """Products of rows by way of other shapes, in which the rows come last where LAST is set."""
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.reshape(tl.load(x_ptr + i[None, :, None] * K + k[None, None, :]), (M, K))
    z = tl.dot(x, tl.load(y_ptr + k[:, None] * N + j[None, :]))
    if LAST:
        z = tl.reshape(tl.reshape(tl.trans(z), (2, N // 2, M)), (1, N, M))
        tl.store(z_ptr + i[None, None, :] * N + j[None, :, None], z)
    else:
        z = tl.reshape(tl.reshape(z, (M, 2, N // 2)), (1, M, N))
        tl.store(z_ptr + i[None, :, None] * N + j[None, None, :], z)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize(("m", "n", "num_warps"), [(128, 128, 2), (64, 256, 2), (128, 64, 1)])
def test_rows_that_keep_their_place_in_other_shapes(
    m: int, n: int, num_warps: int, last: bool
) -> None:
    rng = np.random.default_rng(11)
    x, y = integers(rng, m, 32), integers(rng, 32, n)
    z = np.empty((m, n), np.float32)
    kernel = reshaped_kernel[(1,)](x, y, z, M=m, N=n, K=32, LAST=last, num_warps=num_warps)
    assert is_sliced(kernel, True)
    np.testing.assert_array_equal(z, x.astype(np.float32) @ y.astype(np.float32))


@triton.jit
def mixed_kernel(x_ptr, y_ptr, z_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """Products whose rows and columns become other rows, two of them side by side, and other columns."""
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    z = tl.dot(
        tl.load(x_ptr + i[:, None] * K + k[None, :]), tl.load(y_ptr + k[:, None] * N + j[None, :])
    )
    z = tl.reshape(z, (M // 2, 2 * N))
    r, c = tl.arange(0, M // 2), tl.arange(0, 2 * N)
    tl.store(z_ptr + r[:, None] * 2 * N + c[None, :], z)


def test_rows_that_a_new_shape_puts_side_by_side() -> None:
    """A part of the rows of one shape are as large a part of the rows of the other."""
    rng = np.random.default_rng(12)
    x, y = integers(rng, 128, 32), integers(rng, 32, 128)
    z = np.empty((64, 256), np.float32)
    kernel = mixed_kernel[(1,)](x, y, z, M=128, N=128, K=32, num_warps=2)
    assert is_sliced(kernel, True)
    expected = x.astype(np.float32) @ y.astype(np.float32)
    np.testing.assert_array_equal(z, expected.reshape(64, 256))


@triton.jit
def gathered_kernel(x_ptr, at_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr):
    """Numbers of each row (column) at places, over the row's sum. Each place of the result is a number of its own."""
    i, j = tl.arange(0, M), tl.arange(0, N)
    place = i[:, None] * N + j[None, :]
    x = tl.load(x_ptr + place)
    found = tl.gather(x / tl.sum(x, 1)[:, None], tl.load(at_ptr + place), AXIS)
    tl.store(y_ptr + place, found)


@pytest.mark.parametrize("axis", [0, 1])
def test_elements_that_are_gathered_along_the_rows(axis: int) -> None:
    rng = np.random.default_rng(13)
    x = rng.integers(1, 5, (128, 256)).astype(np.float32)
    x[:, 0] += 1024 - x.sum(1)
    at = rng.integers(0, x.shape[axis], x.shape).astype(np.int32)
    y = np.empty_like(x)
    kernel = gathered_kernel[(1,)](x, at, y, M=128, N=256, AXIS=axis, num_warps=2)
    assert is_sliced(kernel, True)
    np.testing.assert_array_equal(y, np.take_along_axis(x / 1024, at, axis))


@triton.jit
def scattered_sums_kernel(x_ptr, y_ptr, at_ptr, M: tl.constexpr, N: tl.constexpr):
    """Adds rows up at places in memory, in two steps."""
    i, j = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(x_ptr + i[:, None] * N + j[None, :])
    for step in range(2):
        at = tl.load(at_ptr + step * M + i)
        tl.atomic_add(y_ptr + at[:, None] * N + j[None, :], x / tl.max(x, 1)[:, None])


def test_sums_at_places() -> None:
    rng = np.random.default_rng(8)
    x = rng.integers(1, 5, (128, 256)).astype(np.float32)
    x[:, 0] = 4
    at = rng.integers(0, 8, (2, 128)).astype(np.int32)
    y = np.zeros((8, 256), np.float32)
    scattered_sums_kernel[(1,)](x, y, at, M=128, N=256, num_warps=2)
    expected = np.zeros_like(y)
    for step in range(2):
        np.add.at(expected, at[step], x / 4)
    np.testing.assert_array_equal(y, expected)


@triton.jit
def hinted_kernel(a_ptr, b_ptr, c_ptr, at_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """Rows whose places are said to begin at a multiple of the whole tile."""
    rows = tl.load(at_ptr + tl.arange(0, M))
    rows = tl.max_contiguous(tl.multiple_of(rows, M), M)
    k, j = tl.arange(0, K), tl.arange(0, N)
    a = tl.load(a_ptr + rows[None, :] + k[:, None] * M)
    b = tl.load(b_ptr + k[:, None] * N + j[None, :])
    tl.store(c_ptr + tl.arange(0, M)[:, None] * N + j[None, :], tl.dot(tl.trans(a), b))


def test_hints_for_the_whole_tile() -> None:
    rng = np.random.default_rng(9)
    m, n, k = 128, 128, 32
    a, b = integers(rng, k, m), integers(rng, k, n)
    at, c = np.arange(m, dtype=np.int32), np.empty((m, n), np.float32)
    kernel = hinted_kernel[(1,)](a, b, c, at, M=m, N=n, K=k, num_warps=2)
    assert is_sliced(kernel, True)
    np.testing.assert_array_equal(c, a.T.astype(np.float32) @ b.astype(np.float32))
