"""Dots in loops of every kind: what is staged twice, what once, and what not at all."""

from __future__ import annotations

import numpy as np
import pytest

from kernel_support import needs_counters, tl, triton


@triton.jit
def persistent_kernel(
    a_ptr, b_ptr, c_ptr, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    """One program after another tile: the tiles of one are overwritten by those of the next."""
    tiles_n = tl.cdiv(n, BN)
    for tile in range(tl.program_id(0), tl.cdiv(m, BM) * tiles_n, tl.num_programs(0)):
        rows = tile // tiles_n * BM + tl.arange(0, BM)
        columns = tile % tiles_n * BN + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), tl.float32)
        for start in range(0, k, BK):
            inner = start + tl.arange(0, BK)
            a = tl.load(
                a_ptr + rows[:, None] * k + inner[None, :],
                mask=(rows[:, None] < m) & (inner[None, :] < k),
                other=0.0,
            )
            b = tl.load(
                b_ptr + inner[:, None] * n + columns[None, :],
                mask=(inner[:, None] < k) & (columns[None, :] < n),
                other=0.0,
            )
            acc = tl.dot(a, b, acc)
        tl.store(
            c_ptr + rows[:, None] * n + columns[None, :],
            acc,
            mask=(rows[:, None] < m) & (columns[None, :] < n),
        )


@pytest.mark.parametrize("num_warps", [1, 4, 8])
@pytest.mark.parametrize("num_stages", [1, 2, 4])
@pytest.mark.parametrize("k", [0, 16, 100])
def test_persistent(num_warps: int, num_stages: int, k: int) -> None:
    m, n = 90, 70
    rng = np.random.default_rng(k)
    a, b = (rng.standard_normal(s).astype(np.float16) for s in ((m, k), (k, n)))
    c = np.full((m, n), np.nan, np.float32)
    persistent_kernel[(3,)](
        a if k else np.zeros(1, np.float16),
        b if k else np.zeros(1, np.float16),
        c,
        m,
        n,
        k,
        BM=32,
        BN=32,
        BK=16,
        num_warps=num_warps,
        num_stages=num_stages,
    )
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), atol=1e-4)


@triton.jit
def dequantise_kernel(
    a_ptr, w_ptr, scale_ptr, c_ptr, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    """The weights are int8 with a scale a row of K: what is loaded is computed with before it is multiplied."""
    rows, columns = tl.arange(0, BM), tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        inner = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * k + inner[None, :])
        w = tl.load(w_ptr + inner[:, None] * BN + columns[None, :]).to(tl.float16)
        scale = tl.load(scale_ptr + inner)
        acc += tl.dot(a, w * scale[:, None])
    tl.store(c_ptr + rows[:, None] * BN + columns[None, :], acc)


@pytest.mark.parametrize("num_stages", [1, 2])
def test_computed_operand(num_stages: int) -> None:
    m, n, k = 32, 64, 128
    rng = np.random.default_rng(1)
    a = rng.standard_normal((m, k)).astype(np.float16)
    w = rng.integers(-100, 100, (k, n)).astype(np.int8)
    scale = (2.0 ** rng.integers(-6, -3, k)).astype(np.float16)
    c = np.zeros((m, n), np.float32)
    dequantise_kernel[(1,)](
        a, w, scale, c, k, BM=m, BN=n, BK=32, num_warps=4, num_stages=num_stages
    )
    expected = a.astype(np.float64) @ (w * scale.astype(np.float64)[:, None])
    np.testing.assert_allclose(c, expected, rtol=1e-5, atol=1e-3)


@triton.jit
def gathered_kernel(
    a_ptr, index_ptr, b_ptr, c_ptr, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    """Rows of B are taken through loaded indices, which a step early would have to be waited for."""
    rows, columns = tl.arange(0, BM), tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        inner = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * k + inner[None, :])
        index = tl.load(index_ptr + inner)
        b = tl.load(b_ptr + index[:, None] * BN + columns[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + rows[:, None] * BN + columns[None, :], acc)


@pytest.mark.parametrize("num_stages", [1, 2])
def test_gathered_operand(num_stages: int) -> None:
    m, n, k = 32, 32, 64
    rng = np.random.default_rng(2)
    a, b = (rng.standard_normal(s).astype(np.float16) for s in ((m, k), (k, n)))
    index = rng.permutation(k).astype(np.int32)
    c = np.zeros((m, n), np.float32)
    gathered_kernel[(1,)](a, index, b, c, k, BM=m, BN=n, BK=16, num_warps=2, num_stages=num_stages)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b[index].astype(np.float64), atol=1e-4)


@triton.jit
def used_twice_kernel(
    a_ptr, b_ptr, c_ptr, s_ptr, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    """A's elements are multiplied and summed: they are needed in registers in their own step as well."""
    rows, columns = tl.arange(0, BM), tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    sums = tl.zeros((BM,), tl.float32)
    for start in range(0, k, BK):
        inner = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * k + inner[None, :])
        b = tl.load(b_ptr + columns[None, :] * k + inner[:, None])
        acc = tl.dot(a, b, acc)
        sums += tl.sum(a.to(tl.float32), axis=1)
    tl.store(c_ptr + rows[:, None] * BN + columns[None, :], acc)
    tl.store(s_ptr + rows, sums)


@pytest.mark.parametrize("num_warps", [1, 4, 16, 32])
@pytest.mark.parametrize("num_stages", [1, 3])
def test_operand_used_twice(num_stages: int, num_warps: int) -> None:
    m, n, k = 64, 32, 64
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal(s).astype(np.float16) for s in ((m, k), (n, k)))
    c, sums = np.zeros((m, n), np.float32), np.zeros(m, np.float32)
    used_twice_kernel[(1,)](
        a, b, c, sums, k, BM=m, BN=n, BK=16, num_warps=num_warps, num_stages=num_stages
    )
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.T.astype(np.float64), atol=1e-4)
    np.testing.assert_allclose(sums, a.astype(np.float64).sum(axis=1), atol=1e-4)


@triton.jit
def chain_kernel(x_ptr, y_ptr, z_ptr, o_ptr, N: tl.constexpr):
    """((x · y) · z)ᵀ · x: products that are operands A and B of others, and a transposition between."""
    r = tl.arange(0, N)
    at = r[:, None] * N + r[None, :]
    x, y, z = tl.load(x_ptr + at), tl.load(y_ptr + at), tl.load(z_ptr + at)
    xy = tl.dot(x, y, input_precision="ieee")
    xyz = tl.dot(xy, z, input_precision="ieee")
    tl.store(
        o_ptr + at,
        tl.dot(tl.trans(xyz), tl.dot(x, x, input_precision="ieee"), input_precision="ieee"),
    )


@pytest.mark.parametrize("num_warps", [1, 4, 8])
@pytest.mark.parametrize("size", [16, 64])
def test_chain(size: int, num_warps: int) -> None:
    rng = np.random.default_rng(size)
    x, y, z = (rng.standard_normal((size, size)).astype(np.float32) / size**0.5 for _ in range(3))
    out = np.zeros_like(x)
    chain_kernel[(1,)](x, y, z, out, N=size, num_warps=num_warps)
    wide = [v.astype(np.float64) for v in (x, y, z)]
    expected = (wide[0] @ wide[1] @ wide[2]).T @ (wide[0] @ wide[0])
    np.testing.assert_allclose(out, expected, atol=1e-4)


@triton.jit
def shared_operand_kernel(
    a_ptr, w_ptr, out_ptr, sums_ptr, k, M: tl.constexpr, BK: tl.constexpr, KIND: tl.constexpr
):
    """A loaded tile that is changed on its way to the dot, and read in another way in the same step."""
    rows = tl.arange(0, M)
    acc = tl.zeros((M, M), tl.float32)
    sums = tl.zeros((M,), tl.float32)
    for start in range(0, k, BK):
        inner = start + tl.arange(0, BK)
        if KIND == "trans":
            a = tl.trans(tl.load(a_ptr + inner[:, None] + rows[None, :] * k))
        else:
            a = tl.load(a_ptr + rows[:, None] * k + inner[None, :])
        if KIND != "plain" and KIND != "trans":
            a = a * 2
        w = tl.load(w_ptr + inner[:, None] * M + rows[None, :])
        acc += tl.dot(a, w)
        if KIND == "region":
            if start > BK:
                sums += tl.sum(a.to(tl.float32), 1)
        elif KIND == "both":
            acc += tl.dot(tl.trans(w) * 2, tl.trans(a))
            sums += tl.sum(a.to(tl.float32), 1)
        else:
            sums += tl.sum(a.to(tl.float32), 1)
    tl.store(out_ptr + rows[:, None] * M + rows[None, :], acc)
    tl.store(sums_ptr + rows, sums)


@pytest.mark.parametrize("num_stages", [1, 2])
@pytest.mark.parametrize("name", ["float16", "float32"])
@pytest.mark.parametrize("kind", ["plain", "scaled", "trans", "region", "both"])
def test_shared_operand(kind: str, name: str, num_stages: int) -> None:
    m, k, bk = 32, 64, 16
    rng = np.random.default_rng(0)
    a, w = (rng.integers(-3, 4, shape).astype(name) for shape in ((m, k), (k, m)))
    out, sums = np.empty((m, m), np.float32), np.empty(m, np.float32)
    shared_operand_kernel[(1,)](a, w, out, sums, k, M=m, BK=bk, KIND=kind, num_stages=num_stages)
    used = a if kind in ("plain", "trans") else a * 2
    product = used.astype(np.float32) @ w.astype(np.float32)
    expected = product + 2 * product.T if kind == "both" else product
    np.testing.assert_array_equal(out, expected)
    summed = used[:, 2 * bk :] if kind == "region" else used
    np.testing.assert_array_equal(sums, summed.astype(np.float32).sum(1))


@triton.jit
def squares_kernel(a_ptr, out_ptr, n, M: tl.constexpr):
    """One tile is both operands, and the accumulator."""
    place = tl.arange(0, M)[:, None] * M + tl.arange(0, M)[None, :]
    x = tl.load(a_ptr + place)
    for _ in range(n):
        x = tl.dot(x, x, x)
    tl.store(out_ptr + place, x)


@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize("m", [16, 64])
def test_squares(m: int, num_warps: int) -> None:
    a = np.random.default_rng(m).integers(-1, 2, (m, m)).astype(np.float32)
    a[:, 4:] = 0
    out = np.empty_like(a)
    squares_kernel[(1,)](a, out, 2, M=m, num_warps=num_warps)
    first = a @ a + a
    np.testing.assert_array_equal(out, first @ first + first)


@triton.jit
def grouped_kernel(
    a_ptr, b_ptr, c_ptr, m, n, k,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, ADD: tl.constexpr,
    SWIZZLE: tl.constexpr = False,
):  # fmt: skip
    """Tiles in groups of rows, whose places wrap around at the edges, as in Triton's tutorial."""
    pid = tl.program_id(0)
    tiles_m, tiles_n = tl.cdiv(m, BM), tl.cdiv(n, BN)
    if SWIZZLE:
        tile_m, tile_n = tl.swizzle2d(pid // tiles_n, pid % tiles_n, tiles_m, tiles_n, GROUP)
    else:
        width = GROUP * tiles_n
        first = pid // width * GROUP
        size = tl.minimum(tiles_m - first, GROUP)
        tile_m, tile_n = first + (pid % width) % size, (pid % width) // size
    rows = (tile_m * BM + tl.arange(0, BM)) % m
    columns = (tile_n * BN + tl.arange(0, BN)) % n
    inner = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        a = tl.load(a_ptr + rows[:, None] * k + start + inner[None, :])
        b = tl.load(b_ptr + (start + inner[:, None]) * n + columns[None, :])
        if ADD:
            acc += tl.dot(a, b)
        else:
            acc = tl.dot(a, b, acc)
    rows, columns = tile_m * BM + tl.arange(0, BM), tile_n * BN + tl.arange(0, BN)
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    tl.store(c_ptr + rows[:, None] * n + columns[None, :], acc, mask=inside)


@pytest.mark.parametrize(("add", "swizzle"), [(False, False), (True, False), (True, True)])
@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize(("m", "n"), [(96, 80), (70, 48), (33, 50)])
def test_rows_and_columns_that_wrap_around(
    m: int, n: int, num_warps: int, add: bool, swizzle: bool
) -> None:
    k, tile = 64, (16, 32, 32)
    rng = np.random.default_rng(m)
    a, b = (rng.integers(-8, 9, s).astype(np.float16) for s in ((m, k), (k, n)))
    c = np.full((m, n), np.nan, np.float32)
    grid = -(-m // tile[0]) * -(-n // tile[1])
    names = dict(zip(("BM", "BN", "BK"), tile, strict=True))
    grouped_kernel[(grid,)](
        a, b, c, m, n, k, **names, GROUP=4, ADD=add, SWIZZLE=swizzle, num_warps=num_warps
    )
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


def counters_of_groups(k: int, **form: bool) -> dict[str, int]:
    """What a product of 128 rows and columns counts in four programs."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-8, 9, s).astype(np.float16) for s in ((128, k), (k, 128)))
    c = np.empty((128, 128), np.float32)
    with triton.launch_options(count=True) as report:
        grouped_kernel[(4,)](
            a, b, c, 128, 128, k, BM=64, BN=64, BK=32, GROUP=8, **form, num_warps=4
        )
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
    return report.launches[0].counters


@needs_counters
@pytest.mark.own_target
@pytest.mark.parametrize("swizzle", [False, True])
def test_a_product_that_is_added_to_an_accumulator_costs_no_additions(swizzle: bool) -> None:
    counters = [counters_of_groups(128, ADD=add, SWIZZLE=swizzle) for add in (False, True)]
    assert counters[0] == counters[1]
    assert counters[0].get("f32_add", 0) == 0
    # Each of four programs reads two tiles of 64x32 halves in each of four steps, in vectors of 16 bytes.
    assert counters[0]["device_accesses_16"] == 4 * 4 * 2 * 64 * 32 * 2 // 16


@needs_counters
@pytest.mark.own_target
def test_rows_that_wrap_around_are_divided_once_for_all_steps() -> None:
    short, long = (counters_of_groups(k, ADD=True)["int_div"] for k in (64, 256))
    assert short == long > 0
