"""Reductions of every kind: axes, combine functions, several operands, shapes smaller than a warp and very large."""

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
    normal,
    numbers,
    tl,
    triton,
)

from _bounds import accumulation, rounding  # isort: skip

WARPS = (1, 4, 16)
SHAPES = [(1, 64), (64, 1), (2, 2), (4, 8), (8, 128), (128, 8), (32, 64), (16, 256)]


@triton.jit
def reduce_kernel(
    x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, OP: tl.constexpr
):
    x = tl.load(x_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    if OP == "sum":
        y = tl.sum(x, axis=AXIS)
    elif OP == "max":
        y = tl.max(x, axis=AXIS)
    elif OP == "min":
        y = tl.min(x, axis=AXIS)
    elif OP == "argmax":
        y = tl.argmax(x, axis=AXIS)
    elif OP == "argmin":
        y = tl.argmin(x, axis=AXIS)
    elif OP == "xor":
        y = tl.xor_sum(x, axis=AXIS)
    if AXIS is None:
        tl.store(out_ptr, y)
    elif AXIS == 0:
        tl.store(out_ptr + tl.arange(0, N), y)
    else:
        tl.store(out_ptr + tl.arange(0, M), y)


def run_reduce(
    x: np.ndarray, op: str, axis: int | None, out_dtype: Any, num_warps: int = 4
) -> np.ndarray:
    m, n = x.shape
    out = np.empty({0: n, 1: m, None: 1}[axis], out_dtype)
    reduce_kernel[(1,)](x, out, M=m, N=n, AXIS=axis, OP=op, num_warps=num_warps)
    return out


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("axis", [0, 1, None])
@pytest.mark.parametrize("num_warps", WARPS)
def test_sum_of_floats(num_warps: int, axis: int | None, shape: tuple[int, int]) -> None:
    x = normal(np.random.default_rng(0), shape)
    actual = run_reduce(x, "sum", axis, np.float32, num_warps)
    wide = x.astype(np.float64)
    count = x.size if axis is None else x.shape[axis]
    assert_within(
        actual, np.atleast_1d(wide.sum(axis=axis)), accumulation(np.abs(wide).sum(axis=axis), count)
    )


@pytest.mark.parametrize("shape", [(4, 8), (128, 32)], ids=str)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("op", ["max", "min"])
@pytest.mark.parametrize("name", FLOATS + INTEGERS)
def test_extremes(name: str, op: str, axis: int, shape: tuple[int, int]) -> None:
    x = numbers(np.random.default_rng(1), shape, name)
    assert_same(run_reduce(x, op, axis, x.dtype), getattr(x, op)(axis=axis))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("op", ["max", "min"])
def test_extremes_pass_over_nan(op: str, axis: int) -> None:
    x = normal(np.random.default_rng(1), (16, 32))
    x[3, 4] = x[:, 7] = np.nan
    x[5, :] = np.nan
    x[5, 0], x[0, 0], x[1, 1] = 2.0, np.inf, -np.inf
    expected = (np.fmax if op == "max" else np.fmin).reduce(x, axis=axis)
    assert_same(run_reduce(x, op, axis, np.float32), expected)


@pytest.mark.parametrize("shape", [(4, 8), (1, 32), (128, 16)], ids=str)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("op", ["argmax", "argmin"])
@pytest.mark.parametrize("name", ["float16", "float32", "int64"])
@pytest.mark.parametrize("num_warps", [1, 4])
def test_index_of_the_extreme(
    num_warps: int, name: str, op: str, axis: int, shape: tuple[int, int]
) -> None:
    rng = np.random.default_rng(2)
    # Few different values, so that there are ties: the first of them counts.
    x = rng.integers(-3, 4, shape).astype(name)
    assert_same(
        run_reduce(x, op, axis, np.int32, num_warps), getattr(x, op)(axis=axis).astype(np.int32)
    )


@pytest.mark.parametrize("shape", [(8, 16), (64, 32)], ids=str)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", ["int32", "int64", "uint32"])
def test_xor_sum(name: str, axis: int, shape: tuple[int, int]) -> None:
    x = integers(np.random.default_rng(3), shape, name)
    assert_same(run_reduce(x, "xor", axis, x.dtype), np.bitwise_xor.reduce(x, axis=axis))


@pytest.mark.parametrize(
    "name", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
)
def test_sum_of_integers_widens_to_32_bits(name: str) -> None:
    x = integers(np.random.default_rng(4), (32, 64), name)
    wide = {"u": "uint", "i": "int"}[x.dtype.kind] + str(max(32, 8 * x.itemsize))
    assert_same(run_reduce(x, "sum", 1, wide), x.sum(axis=1, dtype=wide))


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_sum_of_small_floats_keeps_their_type(name: str) -> None:
    x = normal(np.random.default_rng(5), (16, 64), name)
    wide = x.astype(np.float64)
    bound = 8 * rounding(np.abs(wide).sum(axis=1), name)
    assert_within(run_reduce(x, "sum", 1, x.dtype), wide.sum(axis=1), bound)


@triton.jit
def product(a, b):
    return a * b


@triton.jit
def first_nonzero(a, b):
    return tl.where(a != 0, a, b)


@triton.jit
def custom_kernel(x_ptr, out_ptr, first_ptr, M: tl.constexpr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    tl.store(out_ptr + tl.arange(0, M), tl.reduce(x, 1, product))
    tl.store(first_ptr + tl.arange(0, N), tl.reduce(x, 0, first_nonzero))


@pytest.mark.parametrize("shape", [(16, 8), (4, 64), (128, 16), (2, 512)], ids=str)
@pytest.mark.parametrize("num_warps", [1, 2, 8])
def test_custom_combine(num_warps: int, shape: tuple[int, int]) -> None:
    """A product, and a combine function that is associative but not commutative."""
    rng = np.random.default_rng(6)
    x = (rng.integers(1, 4, shape) * rng.choice([0, 1], shape, p=[0.7, 0.3])).astype(np.int32)
    x[0] = 3
    out, first = np.empty(shape[0], np.int32), np.empty(shape[1], np.int32)
    x[1:, :2] = 0
    custom_kernel[(1,)](x, out, first, M=shape[0], N=shape[1], num_warps=num_warps)
    assert_same(out, np.multiply.reduce(x, axis=1, dtype=np.int32))
    index = (x != 0).argmax(axis=0)
    assert_same(first, x[index, np.arange(shape[1])])


@triton.jit
def first_nonzero_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    y = tl.reduce(x, AXIS, first_nonzero)
    if AXIS == 0:
        tl.store(out_ptr + tl.arange(0, N), y)
    else:
        tl.store(out_ptr + tl.arange(0, M), y)


@pytest.mark.parametrize("shape", [(8, 8), (4, 256), (256, 4), (64, 64)], ids=str)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("num_warps", [1, 4, 16])
def test_order_is_kept_for_what_does_not_commute(
    num_warps: int, axis: int, shape: tuple[int, int]
) -> None:
    rng = np.random.default_rng(7)
    x = (rng.integers(1, 1000, shape) * (rng.random(shape) < 0.1)).astype(np.int32)
    out = np.empty(shape[1 - axis], np.int32)
    first_nonzero_kernel[(1,)](x, out, M=shape[0], N=shape[1], AXIS=axis, num_warps=num_warps)
    index = np.expand_dims((x != 0).argmax(axis=axis), axis)
    assert_same(out, np.take_along_axis(x, index, axis).squeeze(axis))


@triton.jit
def welford(mean_a, m2_a, n_a, mean_b, m2_b, n_b):
    n = n_a + n_b
    delta = mean_b - mean_a
    share = tl.where(n == 0.0, 0.0, n_b / n)
    return mean_a + delta * share, m2_a + m2_b + delta * delta * n_a * share, n


@triton.jit
def welford_kernel(x_ptr, mean_ptr, variance_ptr, n_cols, M: tl.constexpr, N: tl.constexpr):
    rows, cols = tl.arange(0, M), tl.arange(0, N)
    inside = (cols < n_cols)[None, :] & (rows >= 0)[:, None]
    x = tl.load(x_ptr + rows[:, None] * n_cols + cols[None, :], mask=inside, other=0.0)
    weight = tl.where(inside, 1.0, 0.0)
    mean, m2, n = tl.reduce((x, tl.zeros_like(x), weight), 1, welford)
    tl.store(mean_ptr + rows, mean)
    tl.store(variance_ptr + rows, m2 / n)


@pytest.mark.parametrize(("m", "n_cols"), [(1, 7), (8, 100), (64, 33), (4, 1000), (2, 4096)])
@pytest.mark.parametrize("num_warps", [1, 4, 8])
def test_welford(num_warps: int, m: int, n_cols: int) -> None:
    x = normal(np.random.default_rng(8), (m, n_cols)) + 5
    mean, variance = np.empty(m, np.float32), np.empty(m, np.float32)
    block = triton.next_power_of_2(n_cols)
    welford_kernel[(1,)](x, mean, variance, n_cols, M=m, N=block, num_warps=num_warps)
    wide = x.astype(np.float64)
    np.testing.assert_allclose(mean, wide.mean(axis=1), rtol=2e-6)
    np.testing.assert_allclose(variance, wide.var(axis=1), rtol=2e-5, atol=1e-6)


@triton.jit
def three_d_kernel(
    x_ptr, out_ptr, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr, AXIS: tl.constexpr
):
    a, b, c = tl.arange(0, A), tl.arange(0, B), tl.arange(0, C)
    x = tl.load(x_ptr + a[:, None, None] * (B * C) + b[None, :, None] * C + c[None, None, :])
    y = tl.sum(x, axis=AXIS)
    if AXIS == 0:
        tl.store(out_ptr + b[:, None] * C + c[None, :], y)
    elif AXIS == 1:
        tl.store(out_ptr + a[:, None] * C + c[None, :], y)
    else:
        tl.store(out_ptr + a[:, None] * B + b[None, :], y)


@pytest.mark.parametrize(
    "shape", [(2, 2, 2), (4, 8, 16), (16, 1, 8), (1, 32, 32), (8, 64, 4), (2, 4, 256)], ids=str
)
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("num_warps", [1, 4, 8])
def test_three_dimensions(num_warps: int, axis: int, shape: tuple[int, int, int]) -> None:
    x = np.random.default_rng(9).integers(-1000, 1000, shape).astype(np.int32)
    out = np.empty(tuple(n for i, n in enumerate(shape) if i != axis), np.int32)
    three_d_kernel[(1,)](x, out, A=shape[0], B=shape[1], C=shape[2], AXIS=axis, num_warps=num_warps)
    assert_same(out, x.sum(axis=axis, dtype=np.int32))


@triton.jit
def chained_kernel(x_ptr, out_ptr, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    a, b, c = tl.arange(0, A), tl.arange(0, B), tl.arange(0, C)
    x = tl.load(x_ptr + a[:, None, None] * (B * C) + b[None, :, None] * C + c[None, None, :])
    y = tl.max(tl.sum(x, axis=1), axis=1)
    centred = x - y[:, None, None]
    tl.store(out_ptr, tl.sum(tl.sum(tl.sum(centred, axis=2), axis=1), axis=0))


@pytest.mark.parametrize("shape", [(2, 4, 8), (16, 16, 16), (1, 1, 64), (64, 2, 2)], ids=str)
@pytest.mark.parametrize("num_warps", [1, 4])
def test_reductions_of_reductions(num_warps: int, shape: tuple[int, int, int]) -> None:
    x = np.random.default_rng(10).integers(-1000, 1000, shape).astype(np.int32)
    out = np.empty(1, np.int32)
    chained_kernel[(1,)](x, out, A=shape[0], B=shape[1], C=shape[2], num_warps=num_warps)
    y = x.sum(axis=1).max(axis=1)
    assert out[0] == (x - y[:, None, None]).sum()


@triton.jit
def long_kernel(x_ptr, sum_ptr, max_ptr, index_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=-2147483648)
    tl.store(max_ptr, tl.max(x, axis=0))
    tl.store(index_ptr, tl.argmax(x, axis=0))
    tl.store(sum_ptr, tl.sum(tl.where(offsets < n, x, 0), axis=0))


@pytest.mark.parametrize("n", [1, 2, 3, 16, 33, 1000, 4097, 20_000, 65_536, 131_071, 131_072])
@pytest.mark.parametrize("num_warps", [4, 16])
def test_one_block_of_up_to_2_to_the_17(num_warps: int, n: int) -> None:
    x = np.random.default_rng(11).integers(-(2**20), 2**20, n).astype(np.int32)
    total, highest, index = (np.empty(1, np.int32) for _ in range(3))
    long_kernel[(1,)](
        x, total, highest, index, n, BLOCK=triton.next_power_of_2(n), num_warps=num_warps
    )
    assert total[0] == x.sum(dtype=np.int32)
    assert highest[0] == x.max()
    assert index[0] == x.argmax()


@triton.jit
def keep_dims_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    offsets = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + offsets)
    tl.store(
        out_ptr + offsets, x - tl.max(x, axis=1, keep_dims=True) + tl.min(x, axis=0, keep_dims=True)
    )


@pytest.mark.parametrize("shape", [(8, 8), (32, 4), (2, 128)], ids=str)
def test_keep_dims(shape: tuple[int, int]) -> None:
    x = np.random.default_rng(12).integers(-99, 99, shape).astype(np.int32)
    out = np.empty_like(x)
    keep_dims_kernel[(1,)](x, out, M=shape[0], N=shape[1], num_warps=4)
    assert_same(out, x - x.max(axis=1, keepdims=True) + x.min(axis=0, keepdims=True))


@triton.jit
def both_kernel(x_ptr, value_ptr, index_ptr, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    value, index = tl.max(x, axis=AXIS, return_indices=True)
    kept = tl.arange(0, N) if AXIS == 0 else tl.arange(0, M)
    tl.store(value_ptr + kept, value)
    tl.store(index_ptr + kept, index)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("num_warps", [1, 4])
def test_value_and_index(num_warps: int, axis: int) -> None:
    x = normal(np.random.default_rng(13), (32, 64))
    kept = x.shape[1 - axis]
    value, index = np.empty(kept, np.float32), np.empty(kept, np.int32)
    both_kernel[(1,)](x, value, index, M=32, N=64, AXIS=axis, num_warps=num_warps)
    assert_same(value, x.max(axis=axis))
    assert_same(index, x.argmax(axis=axis).astype(np.int32))


@triton.jit
def chain_kernel(x_ptr, value_ptr, index_ptr, n, STEPS: tl.constexpr):
    rows, columns = tl.arange(0, 16), tl.arange(0, 128)
    v = tl.load(x_ptr + rows[:, None] * 128 + columns[None, :])
    for _ in tl.static_range(STEPS):
        v = tl.where(v > n, v - 1, 7 - v)
    value, index = tl.max(v, axis=1, return_indices=True)
    tl.store(value_ptr + rows, value)
    tl.store(index_ptr + rows, index)


def test_a_chain_whose_values_are_read_twice_compiles_in_a_moment() -> None:
    """40 steps, of which each reads the one before it three times: 3**40 ways lead through them."""
    x = np.random.default_rng(3).integers(-50, 50, (16, 128)).astype(np.int32)
    value, index = np.zeros(16, np.int32), np.zeros(16, np.int32)
    chain_kernel[(1,)](x, value, index, 3, STEPS=40, num_warps=4)
    for _ in range(40):
        x = np.where(x > 3, x - 1, 7 - x)
    assert np.array_equal(value, x.max(1))
    assert np.array_equal(index, x.argmax(1))


@triton.jit
def row_end_beside_sum_kernel(row_ptr, x_ptr, row_out_ptr, sum_ptr, n):
    i = tl.arange(0, 8)
    row = tl.load(row_ptr + i, mask=i < n)
    a, b = tl.arange(0, 4)[:, None, None, None], tl.arange(0, 2)[None, :, None, None]
    c, d = tl.arange(0, 2)[None, None, :, None], tl.arange(0, 4)[None, None, None, :]
    x = tl.load(x_ptr + a * 2 + b * 20 + c * 8 + d * 41)
    total = tl.sum(tl.trans(x, 0, 1, 3, 2).to(tl.float32), 2)
    odd = tl.split(tl.reshape((row // 3).to(tl.float32), (4, 2)))[1]
    a, b, c = (
        tl.arange(0, 4)[:, None, None],
        tl.arange(0, 2)[None, :, None],
        tl.arange(0, 2)[None, None, :],
    )
    tl.store(sum_ptr + a * 4 + b * 2 + c, total)
    tl.store(row_out_ptr + tl.arange(0, 4), odd)


@pytest.mark.parametrize("n", [0, 1, 4, 5, 7, 8])
def test_lanes_at_the_end_of_a_row_take_part_in_a_sum_of_another_tile(n: int) -> None:
    """Lanes exchange numbers in the loop that asks which of them are inside of the row."""
    random = np.random.default_rng(5)
    row = random.integers(0, 100, 8).astype(np.int16)
    x = random.integers(0, 100, 200).astype(np.int16)
    out, sums = np.full(4, -7, np.float32), np.zeros(16, np.float32)
    row_end_beside_sum_kernel[(1,)](row, x, out, sums, n, num_warps=1)
    a, b, c, d = np.ogrid[:4, :2, :2, :4]
    assert np.array_equal(sums, x[a * 2 + b * 20 + c * 8 + d * 41].sum(3).reshape(-1))
    known = np.arange(8)[1::2] < n
    assert np.array_equal(out[known], (row[1::2] // 3)[known])


@triton.jit
def sum_and_maximum(a, b, c, d):
    return a + c, tl.maximum(b, d)


@triton.jit
def columns_kernel(x_ptr, sums_ptr, maxima_ptr, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(x_ptr + i[:, None] * N + j[None, :])
    sums, maxima = tl.reduce((x, x), 0, sum_and_maximum)
    tl.store(sums_ptr + j, sums)
    tl.store(maxima_ptr + j, maxima)


@pytest.mark.parametrize("num_warps", [4, 16, 32])
@pytest.mark.parametrize(("m", "n"), [(16, 256), (64, 64), (512, 8)])
def test_columns_of_many_simdgroups_fit_into_threadgroup_memory(
    m: int, n: int, num_warps: int
) -> None:
    """Threads combine the rows that they have before SIMD-groups give each other anything."""
    x = np.random.default_rng(m).integers(-9, 10, (m, n))
    sums, maxima = np.empty(n, np.int64), np.empty(n, np.int64)
    columns_kernel[(1,)](x, sums, maxima, M=m, N=n, num_warps=num_warps)
    np.testing.assert_array_equal(sums, x.sum(0))
    np.testing.assert_array_equal(maxima, x.max(0))


@triton.jit
def carried_sums_kernel(x_ptr, last_ptr, total_ptr, steps, N: tl.constexpr):
    """Each step makes new numbers of pairs, and adds up the old ones behind that."""
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    total = tl.zeros((N,), x.dtype)
    for _ in range(steps):
        new = tl.sum(tl.join(x * 5, x + 1), axis=1)
        total = total + x
        x = new
    tl.store(last_ptr + i, x)
    tl.store(total_ptr + i, total)


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@pytest.mark.parametrize(
    ("n", "num_warps"), [(32, 1), (64, 1), (128, 1), (256, 4), (512, 4), (128, 8)]
)
def test_a_carried_sum_does_not_replace_the_old_one_too_soon(
    n: int, num_warps: int, dtype: Any
) -> None:
    x = np.arange(n).astype(dtype)
    last, total = np.zeros_like(x), np.zeros_like(x)
    carried_sums_kernel[(1,)](x, last, total, 3, n, num_warps=num_warps)
    expected, added = x.copy(), np.zeros_like(x)
    for _ in range(3):
        added += expected
        expected = expected * 6 + 1
    np.testing.assert_array_equal(last, expected)
    np.testing.assert_array_equal(total, added)


@triton.jit
def doubled_sums_kernel(x_ptr, out_ptr, steps, N: tl.constexpr):
    """Sums of pairs with which a loop begins."""
    x = tl.load(x_ptr + tl.arange(0, N))
    y = tl.sum(tl.join(x * 5, x + 1), axis=1)
    for _ in range(steps):
        y = y + y
    tl.store(out_ptr + tl.arange(0, N), y)


@pytest.mark.parametrize(("n", "num_warps"), [(32, 1), (64, 1), (128, 2), (256, 4), (512, 4)])
def test_a_loop_begins_with_sums_of_pairs(n: int, num_warps: int) -> None:
    x = np.arange(n, dtype=np.int32)
    out = np.zeros_like(x)
    doubled_sums_kernel[(1,)](x, out, 3, n, num_warps=num_warps)
    np.testing.assert_array_equal(out, 8 * (6 * x + 1))


@triton.jit
def nearest_kernel(x, y, distances, places, n, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    a = tl.load(x + i)
    least, place = tl.full((M,), float("inf"), tl.float32), tl.zeros((M,), tl.int32)
    for start in range(0, n, N):
        distance = tl.abs(a[:, None] - tl.load(y + start + j)[None, :])
        low, at = tl.min(distance, axis=1), tl.argmin(distance, axis=1)
        place = tl.where(low < least, start + at, place)
        least = tl.minimum(least, low)
    tl.store(distances + i, least)
    tl.store(places + i, place)


@triton.jit
def decayed_kernel(state, k, v, q, out, steps, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    at = i[:, None] * N + j[None, :]
    h = tl.load(state + at)
    for t in range(steps):
        h = h * 0.5 + tl.load(k + t * M + i)[:, None] * tl.load(v + t * N + j)[None, :]
        tl.store(out + t * N + j, tl.sum(h * tl.load(q + t * M + i)[:, None], axis=0))
    tl.store(state + at, h)


@pytest.mark.parametrize("num_warps", [1, 4, 32])
@pytest.mark.parametrize(("rows", "columns"), [(64, 64), (8, 256), (128, 4)])
def test_tiles_that_loops_reduce(rows: int, columns: int, num_warps: int) -> None:
    """Such a tile is made, or kept, where it is reduced: all pairs of points, and the state of a recurrence."""
    rng = np.random.default_rng(rows)
    x, y = rng.random(rows, np.float32), rng.random(4 * columns, np.float32)
    distances, places = np.zeros(rows, np.float32), np.zeros(rows, np.int32)
    nearest_kernel[(1,)](x, y, distances, places, y.size, rows, columns, num_warps=num_warps)
    exact = np.abs(x[:, None] - y)
    np.testing.assert_array_equal(distances, exact.min(1))
    np.testing.assert_array_equal(places, exact.argmin(1))

    steps = 5
    k, q = rng.integers(-4, 5, (2, steps, rows)).astype(np.float32)
    v = rng.integers(-4, 5, (steps, columns)).astype(np.float32)
    state = rng.integers(-4, 5, (rows, columns)).astype(np.float32) * 32
    out, h = np.zeros((steps, columns), np.float32), state.copy()
    decayed_kernel[(1,)](state, k, v, q, out, steps, rows, columns, num_warps=num_warps)
    for t in range(steps):
        h = h / 2 + k[t][:, None] * v[t]
        np.testing.assert_array_equal(out[t], (h * q[t][:, None]).sum(0))
    np.testing.assert_array_equal(state, h)


@pytest.mark.own_route
def test_pairs_of_points_need_no_barrier() -> None:
    x, y = np.zeros(64, np.float32), np.zeros(256, np.float32)
    distances, places = np.zeros(64, np.float32), np.zeros(64, np.int32)
    with triton.launch_options(count=True) as log:
        nearest_kernel[(1,)](x, y, distances, places, 256, 64, 64, num_warps=4)
    assert log.counters["threadgroup_barriers"] == 0
    # A thread has half of a row: three numbers come from another lane, of which each SIMD-group has 16 rows.
    assert log.counters["simd_shuffles"] == 4 * 4 * 3
