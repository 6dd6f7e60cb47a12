"""Dots for Apple10 at the edges: extremes of each type, masked parts with infinities, empty loops, operands of every origin."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from triton_metal.devices.target import APPLE10

from host_target import host_target
from kernel_support import assert_same, dtype, tl, triton

# The target is the host device's.
pytestmark = [pytest.mark.own_target, pytest.mark.own_route]

ONE_PRODUCT = "multiply_16x32x16<"


@pytest.fixture(autouse=True)
def _apple10() -> Iterator[None]:
    with host_target(APPLE10):
        yield


@triton.jit
def square_kernel(a_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(a_ptr + i[:, None] * K + k[None, :])
    b = tl.load(b_ptr + k[:, None] * N + j[None, :])
    tl.store(c_ptr + i[:, None] * N + j[None, :], tl.dot(a, b))


@pytest.mark.parametrize("terms", [16, 512, 1024, 2048])
@pytest.mark.parametrize(("left", "right"), [(-128, -128), (-128, 127), (127, 127)])
def test_sums_of_the_largest_int8_are_exact(left: int, right: int, terms: int) -> None:
    """1,024 products of -128 are 2^24, the last number that fp32 counts to; longer sums are made of integers."""
    a, b = np.full((16, terms), left, np.int8), np.full((terms, 32), right, np.int8)
    # An odd sum just below.
    a[0, -1], b[-1, 0] = 1, 1
    c = np.empty((16, 32), np.int32)
    made = square_kernel[(1,)](a, b, c, M=16, N=32, K=terms, num_warps=1)
    assert_same(c, a.astype(np.int32) @ b.astype(np.int32))
    assert (ONE_PRODUCT in made.asm["metal"]) == (terms <= 1024)


@triton.jit
def loop_kernel(
    a_ptr, b_ptr, c_ptr, start_ptr, m, n, k,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, OUT: tl.constexpr,
):  # fmt: skip
    """start + a @ b; what is outside of the masks is read by nobody."""
    i, j, terms = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    at = i[:, None] * n + j[None, :]
    inside = (i[:, None] < m) & (j[None, :] < n)
    acc = tl.load(start_ptr + at, mask=inside, other=0).to(OUT)
    for first in range(0, k, K):
        t = first + terms
        a = tl.load(
            a_ptr + i[:, None] * k + t[None, :], mask=(i[:, None] < m) & (t[None, :] < k), other=0
        )
        b = tl.load(
            b_ptr + t[:, None] * n + j[None, :], mask=(t[:, None] < k) & (j[None, :] < n), other=0
        )
        acc = tl.dot(a, b, acc, out_dtype=OUT)
    tl.store(c_ptr + at, acc, mask=inside)


@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize("name", ["float16", "bfloat16", "int8"])
@pytest.mark.parametrize(
    ("m", "n", "k"), [(1, 1, 1), (1, 33, 17), (31, 1, 65), (17, 31, 0), (32, 64, 1), (29, 61, 33)]
)
def test_few_rows_columns_and_terms(m: int, n: int, k: int, name: str, num_warps: int) -> None:
    g = np.random.default_rng(m + n + k)
    a, b = (g.integers(-4, 5, shape).astype(dtype(name)) for shape in ((m, k), (k, n)))
    out = np.int32 if name == "int8" else np.float32
    start = g.integers(-99, 99, (m, n)).astype(out)
    c = np.full((m, n), 7, out)
    given = [x if x.size else np.zeros(1, x.dtype) for x in (a, b)]
    made = loop_kernel[(1,)](
        *given, c, start, m, n, k,
        M=32, N=64, K=32, OUT=tl.int32 if name == "int8" else tl.float32, num_warps=num_warps,
    )  # fmt: skip
    assert ONE_PRODUCT in made.asm["metal"]
    exact = start + a.astype(np.float64) @ b.astype(np.float64)
    assert_same(c, exact.astype(out))


@pytest.mark.parametrize("special", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_special_numbers_stay_in_their_rows_and_columns(name: str, special: float) -> None:
    """What is masked is 0 on both sides, so that an infinity beside it makes no NaN."""
    m, n, k = 19, 37, 21
    a, b = np.ones((m, k), dtype(name)), np.ones((k, n), dtype(name))
    a[3, k - 1] = special
    b[0, n - 1] = special
    c = np.empty((m, n), np.float32)
    start = np.zeros((m, n), np.float32)
    loop_kernel[(1,)](a, b, c, start, m, n, k, M=32, N=64, K=16, OUT=tl.float32, num_warps=2)
    with np.errstate(invalid="ignore"):
        assert_same(c, a.astype(np.float32) @ b.astype(np.float32))


def test_products_beyond_half_and_below_it() -> None:
    """Products of half are summed in fp32; those of bfloat16 overflow to infinity as fp32 does."""
    m, n, k = 32, 32, 32
    for name, number in (("float16", 65504.0), ("bfloat16", 3.0e38), ("float16", 2.0**-24)):
        a = np.zeros((m, k), dtype(name))
        b = np.zeros((k, n), dtype(name))
        a[:, 0], b[0, :] = number, number
        c = np.empty((m, n), np.float32)
        square_kernel[(1,)](a, b, c, M=m, N=n, K=k)
        with np.errstate(over="ignore"):
            exact = np.float32(a[0, 0]) * np.float32(b[0, 0])
        assert_same(c, np.full((m, n), exact, np.float32))


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2"])
def test_float8_with_nan_and_the_largest(name: str) -> None:
    a, b = np.zeros((32, 32), dtype(name)), np.zeros((32, 32), dtype(name))
    a[0, 0], a[1, 1], a[2, 2] = np.nan, 448.0, -448.0
    b[0, :], b[1, :], b[2, :] = 1.0, 448.0, 448.0
    if name == "float8_e5m2":
        a[3, 3], b[3, :] = np.inf, 2.0
    c = np.empty((32, 32), np.float32)
    made = square_kernel[(1,)](a, b, c, M=32, N=32, K=32)
    assert ONE_PRODUCT in made.asm["metal"]
    with np.errstate(invalid="ignore"):
        assert_same(c, a.astype(np.float32) @ b.astype(np.float32))


@triton.jit
def origins_kernel(a_ptr, b_ptr, c_ptr, n, WHICH: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, N), tl.arange(0, N)
    at = i[:, None] * N + j[None, :]
    a, b = tl.load(a_ptr + at), tl.load(b_ptr + at)
    if WHICH == "row":
        # One row for all.
        a = tl.broadcast_to(tl.load(a_ptr + j)[None, :], (N, N))
    elif WHICH == "column":
        b = tl.broadcast_to(tl.load(b_ptr + i * N)[:, None], (N, N))
    elif WHICH == "constant":
        b = tl.full((N, N), 2, b.dtype)
    elif WHICH == "identity":
        b = (i[:, None] == j[None, :]).to(b.dtype)
    elif WHICH == "sum":
        b = (b - tl.sum(b, 0)[None, :]).to(b.dtype)
    elif WHICH == "same":
        b = tl.trans(a)
    elif WHICH == "joined":
        b = tl.reshape(tl.trans(tl.reshape(b, (N // 2, 2 * N))), (N, N))
    elif WHICH == "branch":
        if n > 3:
            b = tl.trans(b)
        else:
            b = b + b
    elif WHICH == "loop":
        for _ in range(n):
            b = tl.dot(a, b).to(b.dtype)
            a = tl.trans(a)
    tl.store(c_ptr + at, tl.dot(a, b))


def expected(a: np.ndarray, b: np.ndarray, which: str, n: int) -> np.ndarray:
    size = len(a)
    if which == "row":
        a = np.broadcast_to(a[0], a.shape)
    elif which == "column":
        b = np.broadcast_to(b[:, :1], b.shape)
    elif which == "constant":
        b = np.full_like(b, 2)
    elif which == "identity":
        b = np.eye(size)
    elif which == "sum":
        b = b - b.sum(0)
    elif which == "same":
        b = a.T
    elif which == "joined":
        b = b.reshape(size // 2, 2 * size).T.reshape(size, size)
    elif which == "branch":
        b = b.T if n > 3 else b + b
    elif which == "loop":
        for _ in range(n):
            b, a = a @ b, a.T
    return a @ b


@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize("size", [32, 64])
@pytest.mark.parametrize(
    "which",
    ["row", "column", "constant", "identity", "sum", "same", "joined", "branch", "loop"],
)
def test_operands_of_every_origin(which: str, size: int, num_warps: int) -> None:
    g = np.random.default_rng(size)
    # Few ones, so that all sums are exact in half.
    a, b = ((g.random((size, size)) < 1.5 / size) * 1.0 for _ in range(2))
    for n in (2, 5) if which in ("branch", "loop") else (0,):
        c = np.empty((size, size), np.float32)
        origins_kernel[(1,)](
            a.astype(np.float16),
            b.astype(np.float16),
            c,
            n,
            WHICH=which,
            N=size,
            num_warps=num_warps,
        )
        assert_same(c, expected(a, b, which, n).astype(np.float32))


@triton.jit
def batch_kernel(
    a_ptr, b_ptr, c_ptr, B: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr
):
    z, i, j, k = tl.arange(0, B), tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(a_ptr + z[:, None, None] * M * K + i[None, :, None] * K + k[None, None, :])
    b = tl.load(b_ptr + z[:, None, None] * K * N + k[None, :, None] * N + j[None, None, :])
    at = z[:, None, None] * M * N + i[None, :, None] * N + j[None, None, :]
    tl.store(c_ptr + at, tl.dot(a, b))


@pytest.mark.parametrize("num_warps", [1, 4, 8])
@pytest.mark.parametrize(("batch", "size"), [(1, 32), (2, 32), (4, 64), (16, 32)])
def test_batches(batch: int, size: int, num_warps: int) -> None:
    g = np.random.default_rng(batch)
    a, b = (g.integers(-4, 5, (batch, size, size)).astype(np.float16) for _ in range(2))
    c = np.empty((batch, size, size), np.float32)
    batch_kernel[(1,)](a, b, c, B=batch, M=size, N=size, K=size, num_warps=num_warps)
    assert_same(c, a.astype(np.float32) @ b.astype(np.float32))
