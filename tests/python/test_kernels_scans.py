"""Scans along every axis: sums, products, combine functions that do not commute, several operands, both directions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernel_support import (
    FLOATS,
    INTEGERS,
    assert_same,
    assert_within,
    integers,
    needs_counters,
    normal,
    numbers,
    tl,
    triton,
)

from _bounds import accumulation  # isort: skip
from _counts import counting  # isort: skip

WARPS = (1, 4, 16)
SIZES = (1, 2, 8, 32, 64, 256, 4096)
SHAPES = [(1, 64), (64, 1), (2, 2), (8, 128), (128, 8), (32, 64), (16, 256)]


@triton.jit
def cumsum_kernel(x_ptr, out_ptr, N: tl.constexpr, REVERSE: tl.constexpr):
    n = tl.arange(0, N)
    tl.store(out_ptr + n, tl.cumsum(tl.load(x_ptr + n), 0, reverse=REVERSE))


def flipped(x: np.ndarray, axis: int, reverse: bool) -> np.ndarray:
    return np.flip(x, axis) if reverse else x


@pytest.mark.parametrize("num_warps", WARPS)
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("reverse", [False, True])
def test_sums_of_integers(reverse: bool, n: int, num_warps: int) -> None:
    x = np.random.default_rng(0).integers(-1000, 1000, n, dtype=np.int32)
    out = np.empty_like(x)
    cumsum_kernel[(1,)](x, out, N=n, REVERSE=reverse, num_warps=num_warps)
    assert_same(out, flipped(np.cumsum(flipped(x, 0, reverse)), 0, reverse).astype(np.int32))


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("reverse", [False, True])
def test_sums_of_floats(reverse: bool, n: int) -> None:
    x = normal(np.random.default_rng(1), n)
    out = np.empty_like(x)
    cumsum_kernel[(1,)](x, out, N=n, REVERSE=reverse)
    wide = flipped(x.astype(np.float64), 0, reverse)
    expected = flipped(np.cumsum(wide), 0, reverse)
    assert_within(out, expected, flipped(accumulation(np.cumsum(np.abs(wide)), n), 0, reverse))


@triton.jit
def scan_2d_kernel(
    x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, REVERSE: tl.constexpr
):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out_ptr + at, tl.cumsum(tl.load(x_ptr + at), AXIS, reverse=REVERSE))


@pytest.mark.parametrize("num_warps", WARPS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("reverse", [False, True])
def test_two_dimensions(reverse: bool, axis: int, shape: tuple[int, int], num_warps: int) -> None:
    x = np.random.default_rng(2).integers(-1000, 1000, shape, dtype=np.int32)
    out = np.empty_like(x)
    scan_2d_kernel[(1,)](x, out, *shape, AXIS=axis, REVERSE=reverse, num_warps=num_warps)
    expected = flipped(np.cumsum(flipped(x, axis, reverse), axis), axis, reverse)
    assert_same(out, expected.astype(np.int32))


@triton.jit
def scan_3d_kernel(
    x_ptr, out_ptr, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr, AXIS: tl.constexpr
):
    at = (
        tl.arange(0, A)[:, None, None] * B * C
        + tl.arange(0, B)[None, :, None] * C
        + tl.arange(0, C)[None, None, :]
    )
    tl.store(out_ptr + at, tl.cumsum(tl.load(x_ptr + at), AXIS))


@pytest.mark.parametrize("shape", [(2, 4, 8), (16, 8, 4), (4, 32, 2)], ids=str)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_three_dimensions(axis: int, shape: tuple[int, int, int]) -> None:
    x = np.random.default_rng(3).integers(-1000, 1000, shape, dtype=np.int32)
    out = np.empty_like(x)
    scan_3d_kernel[(1,)](x, out, *shape, AXIS=axis)
    assert_same(out, np.cumsum(x, axis).astype(np.int32))


@triton.jit
def larger(a, b):
    return tl.maximum(a, b)


@triton.jit
def either(a, b):
    return a ^ b


@triton.jit
def newest(a, b):
    return tl.where(b != 0, b, a)


@triton.jit
def scan_kernel(x_ptr, out_ptr, N: tl.constexpr, COMBINE: tl.constexpr, REVERSE: tl.constexpr):
    n = tl.arange(0, N)
    tl.store(out_ptr + n, tl.associative_scan(tl.load(x_ptr + n), 0, COMBINE, reverse=REVERSE))


def scanned(x: np.ndarray, combine: Any, reverse: bool) -> np.ndarray:
    """The elements one after the other."""
    result = flipped(x, 0, reverse).copy()
    for i in range(1, len(result)):
        result[i] = combine(result[i - 1], result[i])
    return flipped(result, 0, reverse)


@pytest.mark.parametrize("name", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize("n", [16, 512])
@pytest.mark.parametrize("reverse", [False, True])
def test_extremes_of_every_dtype(reverse: bool, n: int, name: str) -> None:
    x = numbers(np.random.default_rng(4), n, name)
    out = np.empty_like(x)
    scan_kernel[(1,)](x, out, N=n, COMBINE=larger, REVERSE=reverse)
    assert_same(out, scanned(x, max, reverse))


@pytest.mark.parametrize("name", [*INTEGERS, "bool"])
@pytest.mark.parametrize("n", [16, 512])
def test_bits_of_every_dtype(n: int, name: str) -> None:
    rng = np.random.default_rng(5)
    x = rng.integers(0, 2, n).astype(bool) if name == "bool" else integers(rng, n, name)
    out = np.empty_like(x)
    scan_kernel[(1,)](x, out, N=n, COMBINE=either, REVERSE=False)
    assert_same(out, np.bitwise_xor.accumulate(x))


@pytest.mark.parametrize("num_warps", WARPS)
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("reverse", [False, True])
def test_the_order_of_elements_is_kept(reverse: bool, n: int, num_warps: int) -> None:
    rng = np.random.default_rng(6)
    x = np.where(rng.random(n) < 0.2, rng.integers(1, 1000, n), 0).astype(np.int32)
    out = np.empty_like(x)
    scan_kernel[(1,)](x, out, N=n, COMBINE=newest, REVERSE=reverse, num_warps=num_warps)
    assert_same(out, scanned(x, lambda a, b: b if b else a, reverse))


@triton.jit
def compose(a, b, c, d):
    return a * c, b * c + d


@triton.jit
def recurrence_kernel(
    a_ptr, b_ptr, factor_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, REVERSE: tl.constexpr
):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    factor, state = tl.associative_scan(
        (tl.load(a_ptr + at), tl.load(b_ptr + at)), 1, compose, reverse=REVERSE
    )
    tl.store(factor_ptr + at, factor)
    tl.store(out_ptr + at, state)


@pytest.mark.parametrize("num_warps", WARPS)
@pytest.mark.parametrize("shape", [(1, 512), (4, 32), (16, 128), (64, 16)], ids=str)
@pytest.mark.parametrize("reverse", [False, True])
def test_linear_recurrences(reverse: bool, shape: tuple[int, int], num_warps: int) -> None:
    rng = np.random.default_rng(7)
    # Integers wrap, so that any order of the same products and sums gives the same.
    a, b = (integers(rng, shape, "int32") for _ in range(2))
    factor, out = np.empty_like(a), np.empty_like(a)
    recurrence_kernel[(1,)](a, b, factor, out, *shape, REVERSE=reverse, num_warps=num_warps)
    x, y = flipped(a, 1, reverse).copy(), flipped(b, 1, reverse).copy()
    with np.errstate(over="ignore"):
        for i in range(1, shape[1]):
            y[:, i] += y[:, i - 1] * x[:, i]
            x[:, i] *= x[:, i - 1]
    assert_same(factor, flipped(x, 1, reverse))
    assert_same(out, flipped(y, 1, reverse))


@triton.jit
def running_argmax(a, i, b, j):
    keep = (a > b) | ((a == b) & (i < j))
    return tl.where(keep, a, b), tl.where(keep, i, j)


@triton.jit
def argmax_kernel(x_ptr, value_ptr, index_ptr, N: tl.constexpr):
    n = tl.arange(0, N)
    value, index = tl.associative_scan((tl.load(x_ptr + n), n), 0, running_argmax)
    tl.store(value_ptr + n, value)
    tl.store(index_ptr + n, index)


@pytest.mark.parametrize("n", [8, 1024])
def test_operands_of_different_types(n: int) -> None:
    x = np.random.default_rng(8).integers(0, 20, n).astype(np.float16)
    value, index = np.empty_like(x), np.empty(n, np.int32)
    argmax_kernel[(1,)](x, value, index, N=n)
    expected = np.maximum.accumulate(x)
    assert_same(value, expected)
    assert_same(index, np.array([np.argmax(x[: i + 1]) for i in range(n)], np.int32))


@triton.jit
def product_kernel(x_ptr, out_ptr, N: tl.constexpr):
    n = tl.arange(0, N)
    tl.store(out_ptr + n, tl.cumprod(tl.load(x_ptr + n), 0))


@pytest.mark.parametrize("n", [4, 256])
def test_products(n: int) -> None:
    x = np.random.default_rng(9).integers(-3, 4, n).astype(np.int64) * 2 + 1
    out = np.empty_like(x)
    product_kernel[(1,)](x, out, N=n)
    assert_same(out, np.cumprod(x))


@triton.jit
def rows_kernel(x_ptr, out_ptr, count, M: tl.constexpr, N: tl.constexpr):
    carry = tl.zeros((M,), tl.int32)
    for block in range(count):
        at = tl.arange(0, M)[:, None] * (count * N) + block * N + tl.arange(0, N)[None, :]
        x = tl.load(x_ptr + at)
        tl.store(out_ptr + at, tl.cumsum(x, 1) + carry[:, None])
        carry += tl.sum(x, 1)


@pytest.mark.parametrize("shape", [(4, 64), (32, 32)], ids=str)
def test_rows_in_blocks(shape: tuple[int, int]) -> None:
    m, n = shape
    x = np.random.default_rng(10).integers(-1000, 1000, (m, 3 * n), dtype=np.int32)
    out = np.empty_like(x)
    rows_kernel[(1,)](x, out, 3, M=m, N=n)
    assert_same(out, np.cumsum(x, 1).astype(np.int32))


@triton.jit
def compact_kernel(x_ptr, out_ptr, count_ptr, size, N: tl.constexpr):
    n = tl.arange(0, N)
    x = tl.load(x_ptr + n, mask=n < size, other=0)
    keep = x > 0
    place = tl.cumsum(keep.to(tl.int32), 0) - 1
    tl.store(out_ptr + place, x, mask=keep)
    tl.store(count_ptr, tl.sum(keep.to(tl.int32)))


def test_stream_compaction() -> None:
    x = np.random.default_rng(11).integers(-100, 100, 1000, dtype=np.int32)
    out, count = np.zeros(1024, np.int32), np.empty(1, np.int32)
    compact_kernel[(1,)](x, out, count, 1000, N=1024)
    kept = x[x > 0]
    assert count[0] == len(kept)
    assert_same(out[: len(kept)], kept)


@needs_counters
def test_a_scan_crosses_simdgroups_once() -> None:
    x = np.ones(1024, np.float32)
    out = np.empty_like(x)
    with counting() as counts:
        cumsum_kernel[(1,)](x, out, N=1024, REVERSE=False)
    assert counts.barriers_per_program == 1
    assert counts.device_bytes == x.nbytes + out.nbytes
    assert counts.private_bytes == 0
    assert_same(out, np.arange(1, 1025, dtype=np.float32))
