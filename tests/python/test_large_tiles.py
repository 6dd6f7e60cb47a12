"""Sorts, exchanges and scans of tiles that a thread holds many registers of: their results, and the size of their text."""

from typing import Any

import numpy as np
import pytest

from kernel_support import ON_STOCK, dtype, tl, triton
from test_kernels_sorts import numbers

# A text of this size is compiled by every device; a loop over registers is written once, whatever their number.
MOST_BYTES = 200_000


@triton.jit
def sorts(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, DOWN: tl.constexpr):
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out_ptr + i, tl.sort(tl.load(x_ptr + i), descending=DOWN))


@triton.jit
def columns(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out_ptr + i, tl.trans(tl.sort(tl.trans(tl.load(x_ptr + i)))))


@triton.jit
def best(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m = tl.arange(0, M)[:, None]
    x = tl.load(x_ptr + m * N + tl.arange(0, N)[None, :])
    tl.store(out_ptr + m * K + tl.arange(0, K)[None, :], tl.topk(x, K))


@triton.jit
def flips(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, DIM: tl.constexpr):
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out_ptr + i, tl.flip(tl.load(x_ptr + i), DIM))


@triton.jit
def larger(a, i, b, j):
    first = (a > b) | ((a == b) & (i < j))
    return tl.where(first, a, b), tl.where(first, i, j)


@triton.jit
def running(x_ptr, value_ptr, index_ptr, sum_ptr, N: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    value, index = tl.associative_scan((x, i.to(tl.int64)), 0, larger, reverse=REVERSE)
    tl.store(value_ptr + i, value)
    tl.store(index_ptr + i, index)
    tl.store(sum_ptr + i, tl.cumsum(x, 0, reverse=REVERSE))


@triton.jit
def sums(
    x_ptr,
    out_ptr,
    AXIS: tl.constexpr,
    REVERSE: tl.constexpr,
    A: tl.constexpr,
    B: tl.constexpr,
    C: tl.constexpr,
):
    a, b, c = tl.arange(0, A), tl.arange(0, B), tl.arange(0, C)
    i = (a[:, None, None] * B + b[None, :, None]) * C + c[None, None, :]
    tl.store(out_ptr + i, tl.cumsum(tl.load(x_ptr + i), AXIS, reverse=REVERSE))


def launch(kernel: Any, *args: Any, **options: Any) -> None:
    """Launches one program and looks at the size of its text."""
    compiled = kernel[(1,)](*args, **options)
    if not ON_STOCK:
        assert len(compiled.asm["metal"]) < MOST_BYTES


@pytest.mark.parametrize(
    ("name", "n", "num_warps"),
    [
        (name, n, num_warps)
        for name in ("int8", "float16", "int32", "float32", "int64")
        for n, num_warps in ((2048, 1), (8192, 1), (4096, 8))
    ]
    + [("bool", 4096, 2), ("bfloat16", 4096, 1), ("uint64", 4096, 4), ("uint16", 4096, 1)]
    + [("float32", 32768, 1), ("int64", 32768, 1), ("int16", 32768, 2)],
)
def test_sort(name: str, n: int, num_warps: int) -> None:
    x = numbers(name, (1, n), n)
    out = np.zeros_like(x)
    down = n != 2048
    launch(sorts, x, out, M=1, N=n, DOWN=down, num_warps=num_warps)
    expected = np.sort(x, 1)
    np.testing.assert_array_equal(out, expected[:, ::-1] if down else expected)


@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize("shape", [(8, 256), (256, 16)])
@pytest.mark.parametrize("name", ["float32", "int64", "uint8"])
def test_sort_rows_and_columns(name: str, shape: tuple[int, int], num_warps: int) -> None:
    x = numbers(name, shape)
    rows, cols = np.zeros_like(x), np.zeros_like(x)
    launch(sorts, x, rows, M=shape[0], N=shape[1], DOWN=True, num_warps=num_warps)
    np.testing.assert_array_equal(rows, np.sort(x, 1)[:, ::-1])
    launch(columns, x, cols, M=shape[0], N=shape[1], num_warps=num_warps)
    np.testing.assert_array_equal(cols, np.sort(x, 0))


@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize(("shape", "k"), [((1, 8192), 8), ((1, 4096), 512), ((16, 256), 32)])
@pytest.mark.parametrize("name", ["float32", "int64", "int16"])
def test_topk(name: str, shape: tuple[int, int], k: int, num_warps: int) -> None:
    x = numbers(name, shape)
    out = np.zeros((shape[0], k), x.dtype)
    launch(best, x, out, M=shape[0], N=shape[1], K=k, num_warps=num_warps)
    np.testing.assert_array_equal(out, np.sort(x, 1)[:, ::-1][:, :k])


@pytest.mark.parametrize("num_warps", [1, 4, 32])
@pytest.mark.parametrize(("shape", "dim"), [((1, 32768), 1), ((128, 256), 0), ((128, 256), 1)])
@pytest.mark.parametrize("name", ["float32", "int64", "int8"])
def test_flip(name: str, shape: tuple[int, int], dim: int, num_warps: int) -> None:
    x = numbers(name, shape)
    out = np.zeros_like(x)
    launch(flips, x, out, M=shape[0], N=shape[1], DIM=dim, num_warps=num_warps)
    np.testing.assert_array_equal(out, np.flip(x, dim))


def running_best(x: np.ndarray, reverse: bool) -> tuple[np.ndarray, np.ndarray]:
    """The largest number up to each place, and where it is first."""
    value = np.maximum.accumulate(x[::-1])[::-1] if reverse else np.maximum.accumulate(x)
    index = np.empty(x.size, np.int64)
    places = range(x.size - 1, -1, -1) if reverse else range(x.size)
    where = places[0]
    for i in places:
        if x[i] > x[where] or (x[i] == x[where] and i < where):
            where = i
        index[i] = where
    return value, index


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("num_warps", [1, 16])
@pytest.mark.parametrize("n", [8192, 131072])
@pytest.mark.parametrize("name", ["int32", "int64"])
def test_running_best_and_sum(name: str, n: int, num_warps: int, reverse: bool) -> None:
    x = numbers(name, n, n)
    value, total = np.zeros_like(x), np.zeros_like(x)
    index = np.zeros(n, np.int64)
    launch(running, x, value, index, total, N=n, REVERSE=reverse, num_warps=num_warps)
    expected = running_best(x, reverse)
    np.testing.assert_array_equal(value, expected[0])
    np.testing.assert_array_equal(index, expected[1])
    ordered = x[::-1] if reverse else x
    wrapped = np.cumsum(ordered, dtype=x.dtype)
    np.testing.assert_array_equal(total, wrapped[::-1] if reverse else wrapped)


@pytest.mark.parametrize(("axis", "reverse"), [(0, False), (1, True), (2, False), (2, True)])
@pytest.mark.parametrize("shape", [(128, 16, 8), (4, 512, 16), (2, 2, 4096)])
@pytest.mark.parametrize("name", ["float32", "int64"])
def test_sums_along_each_axis(name: str, shape: tuple[int, ...], axis: int, reverse: bool) -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(-100, 100, shape).astype(dtype(name))
    out = np.zeros_like(x)
    launch(sums, x, out, AXIS=axis, REVERSE=reverse, A=shape[0], B=shape[1], C=shape[2])
    ordered = np.flip(x, axis) if reverse else x
    expected = np.cumsum(ordered, axis, dtype=x.dtype)
    np.testing.assert_array_equal(out, np.flip(expected, axis) if reverse else expected)
