"""Products whose operands do not fit in threadgroup memory, or in registers, take their sums in slices along K."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from kernel_support import ON_STOCK, tl, triton


def integers(rng: np.random.Generator, *shape: int, dtype: Any = np.float16) -> np.ndarray:
    return rng.integers(-3, 4, shape).astype(dtype)


def slices_of(kernel: Any, expected: int) -> int:
    """The slices of a kernel; what is expected on stock Triton's interpreter, which has no kernels to ask."""
    return expected if ON_STOCK else kernel.metadata.slices


@triton.jit
def add_block(acc, a_ptr, b_ptr, rows, columns, at, inside, m, n, k):
    """acc + a @ b, where ``at`` are the places along K, and ``inside`` says which of them count."""
    a = tl.load(
        a_ptr + rows[:, None] * k + at[None, :],
        mask=(rows < m)[:, None] & inside[None, :],
        other=0,
    )
    b = tl.load(
        b_ptr + at[:, None] * n + columns[None, :],
        mask=inside[:, None] & (columns < n)[None, :],
        other=0,
    )
    return tl.dot(a, b, acc)


@triton.jit
def product_kernel(
    a_ptr, b_ptr, c_ptr, m, n, k, first, step,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, KIND: tl.constexpr,
):  # fmt: skip
    """a @ b from column ``first`` of a on, in loops of different kinds."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32 if a_ptr.dtype.element_ty.is_floating() else tl.int32)
    if KIND == "steps":
        for start in range(first, k, BK):
            at = start + inner
            acc = add_block(acc, a_ptr, b_ptr, rows, columns, at, at < k, m, n, k)
    elif KIND == "strided":
        # Every other block alone, by a step that is an argument.
        for start in range(first, k, step):
            at = start + inner
            acc = add_block(acc, a_ptr, b_ptr, rows, columns, at, at < k, m, n, k)
    elif KIND == "counted":
        for i in range(tl.cdiv(k - first, BK)):
            at = first + i * BK + inner
            inside = inner < k - first - i * BK
            acc = add_block(acc, a_ptr, b_ptr, rows, columns, at, inside, m, n, k)
    else:
        # Pointers and a counter change from step to step.
        left = k - first
        for _ in range(tl.cdiv(k - first, BK)):
            inside = inner < left
            acc = add_block(acc, a_ptr, b_ptr, rows, columns, first + inner, inside, m, n, k)
            a_ptr += BK
            b_ptr += BK * n
            left -= BK
    inside = (rows < m)[:, None] & (columns < n)[None, :]
    tl.store(c_ptr + rows[:, None] * n + columns[None, :], acc, mask=inside)


@pytest.mark.parametrize("kind", ["steps", "counted", "carried", "strided"])
@pytest.mark.parametrize(
    ("dtype", "tile", "num_warps"),
    [
        (np.float16, (128, 128, 64), 8),
        (np.float16, (128, 64, 128), 4),
        (np.float32, (64, 64, 64), 8),
        (np.int8, (64, 64, 256), 8),
        # Threads have enough registers, but a core few of them.
        (np.float16, (64, 64, 64), 4),
        (np.float32, (32, 64, 64), 4),
    ],
)
def test_loops_take_a_slice_in_each_step(
    kind: str, dtype: Any, tile: tuple[int, int, int], num_warps: int
) -> None:
    rng = np.random.default_rng(0)
    for m, n, k, first in ((130, 140, 200, 0), (64, 128, 272, 5), (33, 17, 7, 0), (5, 9, 64, 64)):
        a, b = integers(rng, m, k, dtype=dtype), integers(rng, k, n, dtype=dtype)
        is_int = np.issubdtype(dtype, np.integer)
        c = np.full((m, n), -(2**31) if is_int else np.nan, np.int32 if is_int else np.float32)
        step = 2 * tile[2] if kind == "strided" else tile[2]
        grid = triton.cdiv(m, tile[0]), triton.cdiv(n, tile[1])
        kernel = product_kernel[grid](
            a, b, c, m, n, k, first, step, *tile, KIND=kind, num_warps=num_warps
        )
        taken = [i for i in range(first, k) if (i - first) % step < tile[2]]
        want = a[:, taken].astype(c.dtype) @ b[taken].astype(c.dtype)
        np.testing.assert_array_equal(c, want, err_msg=f"{(m, n, k, first)}")
        assert slices_of(kernel, 2) > 1


@pytest.mark.parametrize(
    ("dtype", "tile", "num_warps", "num_stages", "slices", "nbytes"),
    [
        # 18 KB of operands leave a core three threadgroups, 10 KB six.
        (np.float16, (64, 64, 64), 4, 1, 2, 10 * 1024),
        (np.float16, (64, 64, 32), 4, 1, 1, 11 * 1024),
        # Two buffers stay two where they fit.
        (np.float16, (64, 64, 32), 4, 2, 2, 12 * 1024),
        (np.float16, (64, 64, 64), 4, 2, 2, 11 * 1024),
        (np.float32, (64, 32, 64), 4, 1, 4, 8 * 1024),
        # With as many threads as there can be, slices only cost barriers.
        (np.float16, (32, 32, 32), 4, 1, 1, 6 * 1024),
        (np.float16, (64, 64, 64), 16, 1, 1, 19 * 1024),
    ],
)
@pytest.mark.own_target
def test_slices_have_a_core_hold_more_threads(
    dtype: Any,
    tile: tuple[int, int, int],
    num_warps: int,
    num_stages: int,
    slices: int,
    nbytes: int,
) -> None:
    rng = np.random.default_rng(0)
    m, n, k = 100, 70, 200
    a, b = integers(rng, m, k, dtype=dtype), integers(rng, k, n, dtype=dtype)
    c = np.full((m, n), np.nan, np.float32)
    kernel = product_kernel[triton.cdiv(m, tile[0]), triton.cdiv(n, tile[1])](
        a, b, c, m, n, k, 0, tile[2], *tile, KIND="steps", num_warps=num_warps, num_stages=num_stages
    )  # fmt: skip
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
    assert slices_of(kernel, slices) == slices
    if not ON_STOCK:
        assert nbytes - 2048 < kernel.metadata.shared <= nbytes
        fits = num_stages == 2 and tile[2] == 32
        assert kernel.metadata.pipeline_stages == (2 if fits else 1)


def test_a_loop_that_names_its_stages_is_sliced_like_others() -> None:
    """A loop's own two buffers fit once its steps are slices."""
    rng = np.random.default_rng(0)
    a, b = integers(rng, 64, 200), integers(rng, 200, 64)
    c = np.full((64, 64), np.nan, np.float32)
    staged_kernel[(1,)](a, b, c, 200, num_warps=4)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


@triton.jit
def staged_kernel(a_ptr, b_ptr, c_ptr, k):
    r = tl.arange(0, 64)
    acc = tl.zeros((64, 64), tl.float32)
    for start in tl.range(0, k, 64, num_stages=3):
        at = start + r
        acc = add_block(acc, a_ptr, b_ptr, r, r, at, at < k, 64, 64, k)
    tl.store(c_ptr + r[:, None] * 64 + r[None, :], acc)


@triton.jit
def unsigned_kernel(a_ptr, c_ptr, n_ptr, first, count, K: tl.constexpr, WIDE: tl.constexpr):
    """count times a @ a^T, in a loop over unsigned numbers."""
    r = tl.arange(0, 64)
    k = tl.arange(0, K)
    acc = tl.zeros((64, 64), tl.float32)
    steps = 0
    kind: tl.constexpr = tl.uint64 if WIDE else tl.uint32
    start = first.to(kind)
    for _ in range(start, start + count.to(kind)):
        a = tl.load(a_ptr + r[:, None] * K + k[None, :])
        acc = tl.dot(a, a.T, acc)
        steps += 1
    tl.store(c_ptr + r[:, None] * 64 + r[None, :], acc)
    tl.store(n_ptr, steps)


@pytest.mark.parametrize("count", [0, 5])
@pytest.mark.parametrize("first", [0, 2**31 - 2, 2**31, 2**63 - 2, 2**63])
def test_loops_over_unsigned_numbers(first: int, count: int) -> None:
    a = integers(np.random.default_rng(6), 64, 256)
    c, n = np.full((64, 64), np.nan, np.float32), np.zeros(1, np.int32)
    wide = first >= 2**62
    # Arguments are signed: the same bits.
    given = first - 2**64 if first >= 2**63 else first
    kernel = unsigned_kernel[(1,)](a, c, n, given, count, 256, WIDE=wide, num_warps=4)
    assert n[0] == count
    np.testing.assert_array_equal(c, count * (a.astype(np.float32) @ a.astype(np.float32).T))
    assert slices_of(kernel, 4) > 1


@triton.jit
def halves_kernel(a_ptr, b_ptr, c_ptr, K: tl.constexpr):
    """Sums of float16: what the slices give would be rounded more often."""
    r = tl.arange(0, 128)
    k = tl.arange(0, K)
    acc = tl.zeros((128, 128), tl.float16)
    for i in range(2):
        a = tl.load(a_ptr + r[:, None] * (2 * K) + i * K + k[None, :])
        b = tl.load(b_ptr + (i * K + k)[:, None] * 128 + r[None, :])
        acc = tl.dot(a, b, acc, out_dtype=tl.float16)
    tl.store(c_ptr + r[:, None] * 128 + r[None, :], acc)


def test_sums_of_halves_are_rounded_as_in_one_product() -> None:
    rng = np.random.default_rng(1)
    a, b = integers(rng, 128, 128), integers(rng, 128, 128)
    c = np.zeros((128, 128), np.float16)
    halves_kernel[(1,)](a, b, c, 64, num_warps=8)
    np.testing.assert_array_equal(c, (a.astype(np.float32) @ b.astype(np.float32)))


@triton.jit
def twice_kernel(a_ptr, b_ptr, d_ptr, c_ptr, e_ptr, k, BK: tl.constexpr, USES: tl.constexpr):
    """Two products of one operand; with USES, the first one's sums decide in each step what is added to the second."""
    r = tl.arange(0, 128)
    inner = tl.arange(0, BK)
    acc = tl.zeros((128, 128), tl.float32)
    other = tl.zeros((128, 128), tl.float32)
    for start in range(0, k, BK):
        at = start + inner
        a = tl.load(a_ptr + r[:, None] * k + at[None, :], mask=(at < k)[None, :], other=0.0)
        b = tl.load(b_ptr + at[:, None] * 128 + r[None, :], mask=(at < k)[:, None], other=0.0)
        d = tl.load(d_ptr + at[:, None] * 128 + r[None, :], mask=(at < k)[:, None], other=0.0)
        acc = tl.dot(a, b, acc)
        if USES:
            other += tl.where(acc > 0, 1.0, 2.0)
        other = tl.dot(a, d, other)
    tl.store(c_ptr + r[:, None] * 128 + r[None, :], acc)
    tl.store(e_ptr + r[:, None] * 128 + r[None, :], other)


@pytest.mark.parametrize("uses", [False, True])
@pytest.mark.parametrize("num_warps", [8, 32])
def test_two_products_of_one_operand(num_warps: int, uses: bool) -> None:
    rng, k = np.random.default_rng(2), 200
    a, b, d = integers(rng, 128, k), integers(rng, k, 128), integers(rng, k, 128)
    c, e = (np.full((128, 128), np.nan, np.float32) for _ in range(2))
    twice_kernel[(1,)](a, b, d, c, e, k, 64, USES=uses, num_warps=num_warps)
    wide = a.astype(np.float32)
    np.testing.assert_array_equal(c, wide @ b.astype(np.float32))
    want = wide @ d.astype(np.float32)
    if uses:
        for end in range(64, k + 64, 64):
            want += np.where(wide[:, :end] @ b[:end].astype(np.float32) > 0, 1.0, 2.0)
    np.testing.assert_array_equal(e, want)


@triton.jit
def linear_attention_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, n, N: tl.constexpr, D: tl.constexpr, E: tl.constexpr
):
    """(q k^T, below the diagonal) v, in blocks of N keys: what the second product sums over are columns of the first."""
    r = tl.arange(0, N)
    d = tl.arange(0, D)
    e = tl.arange(0, E)
    rows = tl.program_id(0) * N + r
    q = tl.load(q_ptr + rows[:, None] * D + d[None, :], mask=(rows < n)[:, None], other=0.0)
    acc = tl.zeros((N, E), tl.float32)
    for start in range(0, n, N):
        keys = start + r
        k = tl.load(k_ptr + keys[:, None] * D + d[None, :], mask=(keys < n)[:, None], other=0.0)
        s = tl.dot(q, k.T)
        s = tl.where(rows[:, None] >= keys[None, :], s, 0.0)
        v = tl.load(v_ptr + keys[:, None] * E + e[None, :], mask=(keys < n)[:, None], other=0.0)
        acc = tl.dot(s.to(v.dtype), v, acc)
    tl.store(o_ptr + rows[:, None] * E + e[None, :], acc, mask=(rows < n)[:, None])


@pytest.mark.parametrize(("n", "tile", "num_warps"), [(200, 128, 4), (130, 64, 2), (300, 128, 8)])
def test_sums_over_columns_of_another_product(n: int, tile: int, num_warps: int) -> None:
    rng = np.random.default_rng(3)
    q, k = (rng.integers(-1, 2, (n, 32)).astype(np.float16) for _ in range(2))
    v = rng.integers(-1, 2, (n, 64)).astype(np.float16)
    o = np.full((n, 64), np.nan, np.float32)
    linear_attention_kernel[(triton.cdiv(n, tile),)](
        q, k, v, o, n, tile, 32, 64, num_warps=num_warps
    )
    scores = np.tril(q.astype(np.float32) @ k.astype(np.float32).T)
    np.testing.assert_array_equal(o, scores @ v.astype(np.float32))


@triton.jit
def once_kernel(a_ptr, b_ptr, c_ptr, K: tl.constexpr):
    """One product, without a loop, on top of what is there."""
    r = tl.arange(0, 64)
    k = tl.arange(0, K)
    a = tl.load(a_ptr + r[:, None] * K + k[None, :])
    b = tl.load(b_ptr + k[:, None] * 64 + r[None, :])
    at = c_ptr + r[:, None] * 64 + r[None, :]
    tl.store(at, tl.dot(a, b, tl.load(at)) + 1.0)


@pytest.mark.parametrize("num_warps", [1, 4, 32])
def test_one_product_of_many_columns(num_warps: int) -> None:
    rng = np.random.default_rng(4)
    a, b = integers(rng, 64, 512), integers(rng, 512, 64)
    c = integers(rng, 64, 64, dtype=np.float32)
    want = c + a.astype(np.float32) @ b.astype(np.float32) + 1.0
    kernel = once_kernel[(1,)](a, b, c, 512, num_warps=num_warps)
    np.testing.assert_array_equal(c, want)
    assert slices_of(kernel, 8) >= 4


@triton.jit
def stored_kernel(a_ptr, b_ptr, c_ptr, copy_ptr, K: tl.constexpr):
    """Each slice also stores what it has loaded, in the array from which it comes."""
    r = tl.arange(0, 128)
    k = tl.arange(0, K)
    acc = tl.zeros((128, 128), tl.float32)
    for i in range(3):
        at = a_ptr + r[:, None] * (3 * K) + i * K + k[None, :]
        a = tl.load(at)
        b = tl.load(b_ptr + (i * K + k)[:, None] * 128 + r[None, :])
        acc = tl.dot(a, b, acc)
        tl.store(copy_ptr + r[:, None] * (3 * K) + i * K + k[None, :], a + 1.0)
    tl.store(c_ptr + r[:, None] * 128 + r[None, :], acc)


@pytest.mark.parametrize("in_place", [False, True])
def test_steps_that_store_their_operand(in_place: bool) -> None:
    rng = np.random.default_rng(5)
    a, b = integers(rng, 128, 192), integers(rng, 192, 128)
    want = a.astype(np.float32) @ b.astype(np.float32)
    after = a + np.float16(1)
    c, copy = np.full((128, 128), np.nan, np.float32), a if in_place else np.zeros_like(a)
    stored_kernel[(1,)](a, b, c, copy, 64, num_warps=8)
    np.testing.assert_array_equal(c, want)
    np.testing.assert_array_equal(copy, after)


@triton.jit
def turned_kernel(a_ptr, b_ptr, c_ptr, k, BM: tl.constexpr, BK: tl.constexpr, FIRST: tl.constexpr):
    """A product with a matrix that the loop does not change, beside a tile that is turned around."""
    r = tl.arange(0, BM)
    inner = tl.arange(0, BK)
    acc = tl.zeros((BM, BM), tl.float32)
    for start in range(0, k, BK):
        a = tl.load(a_ptr + r[:, None] * k + (start + inner)[None, :])
        b = tl.load(b_ptr + (start + inner)[:, None] * BM + r[None, :])
        swap = (r[:, None] == (r[None, :] ^ 1)).to(a.dtype)
        if FIRST:
            a = tl.flip(a, 1)
        a = tl.dot(swap, a).to(b.dtype)
        if not FIRST:
            a = tl.flip(a, 1)
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + r[:, None] * BM + r[None, :], acc)


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("num_warps", [1, 4, 8, 16, 32])
def test_operands_stay_only_where_memory_has_room(num_warps: int, first: bool) -> None:
    rng, k = np.random.default_rng(7), 256
    a, b = integers(rng, 64, k), integers(rng, k, 64)
    c = np.full((64, 64), np.nan, np.float32)
    turned_kernel[(1,)](a, b, c, k, 64, 128, FIRST=first, num_warps=num_warps)
    swapped = a[np.arange(64) ^ 1].reshape(64, 2, 128)[:, :, ::-1].reshape(64, k)
    np.testing.assert_array_equal(c, swapped.astype(np.float32) @ b.astype(np.float32))


@triton.jit
def scaled_kernel(
    a_ptr, a_scale_ptr, b_ptr, b_scale_ptr, c_ptr, K,
    M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr, A: tl.constexpr,
):  # fmt: skip
    """A product of numbers of 8 bits, or two of 4 in a byte, of which 32 along K share a scale."""
    m, n, k, group = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BK), tl.arange(0, BK // 32)
    PAIR: tl.constexpr = 2 if A == "e2m1" else 1
    bytes_of_a = tl.arange(0, BK // PAIR)
    acc = tl.zeros((M, N), tl.float32)
    for start in range(0, K, BK):
        a = tl.load(a_ptr + m[:, None] * (K // PAIR) + start // PAIR + bytes_of_a[None, :])
        b = tl.load(b_ptr + n[:, None] * K + start + k[None, :])
        at = start // 32 + group[None, :]
        a_scale = tl.load(a_scale_ptr + m[:, None] * (K // 32) + at)
        b_scale = tl.load(b_scale_ptr + n[:, None] * (K // 32) + at)
        acc = tl.dot_scaled(a, a_scale, A, b.T, b_scale, "e4m3", acc)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc)


#: The numbers of 4 bits (OCP Microscaling Formats, version 1.0, table 6).
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])


@pytest.mark.parametrize("form", ["e4m3", "e2m1"])
@pytest.mark.parametrize(
    ("m", "n", "bk", "num_warps"), [(128, 128, 128, 4), (64, 256, 256, 8), (32, 128, 128, 1)]
)
def test_groups_that_share_a_scale_are_sliced_along_k(
    m: int, n: int, bk: int, num_warps: int, form: str
) -> None:
    rng, k = np.random.default_rng(8), 2 * bk
    a, b = (rng.integers(0, 256, shape).astype(np.uint8) for shape in ((m, k), (n, k)))
    a, b = a & 0xBF, b & 0xBF  # no large numbers, and no NaN
    a_scale, b_scale = (rng.integers(125, 130, (rows, k // 32)).astype(np.uint8) for rows in (m, n))
    exact_a, exact_b = (x.view(ml_dtypes.float8_e4m3fn).astype(np.float64) for x in (a, b))
    if form == "e2m1":
        a = a[:, : k // 2].copy()
        exact_a = np.stack([E2M1[a & 15], E2M1[a >> 4]], -1).reshape(m, k)
    exact_a *= np.repeat(2.0 ** (a_scale.astype(np.float64) - 127), 32, 1)
    exact_b *= np.repeat(2.0 ** (b_scale.astype(np.float64) - 127), 32, 1)
    c = np.full((m, n), np.nan, np.float32)
    kernel = scaled_kernel[(1,)](a, a_scale, b, b_scale, c, k, m, n, bk, form, num_warps=num_warps)
    bound = k * 2.0**-24 * (np.abs(exact_a) @ np.abs(exact_b).T)
    assert (np.abs(c - exact_a @ exact_b.T) <= bound).all()
    assert slices_of(kernel, 2) > 1
