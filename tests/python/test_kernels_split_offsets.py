"""Offsets of which a part is added before unrolled loops (``msl-split-offsets``), where sums of 32 bits wrap around."""

from __future__ import annotations

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl

MOST = 2**31 - 1
LEAST = -(2**31)


@triton.jit
def columns_kernel(
    x_ptr, out_ptr, first, end, lowest, shift, stride, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    rows = tl.arange(0, ROWS)[:, None]
    places = tl.arange(0, COLUMNS)[None, :]
    columns = first + places
    # `first` has been taken from the pointer: only columns that have wrapped around lie elsewhere.
    row = x_ptr + shift + rows * stride
    mask = (columns >= lowest) & (columns < end)
    v = tl.load(row + columns, mask=mask, other=-1.0)
    tl.store(out_ptr + rows * COLUMNS + places, v)


def wrapped(numbers: np.ndarray) -> np.ndarray:
    return (numbers - LEAST) % 2**32 + LEAST


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
@pytest.mark.parametrize(
    ("first", "end"),
    [
        (0, 512), (0, 511), (5, 517), (-512, 0), (-7, 20), (LEAST, LEAST + 512), (LEAST, LEAST + 40), (LEAST, MOST),
        (MOST - 512, MOST), (MOST - 511, MOST), (MOST - 510, MOST), (MOST - 10, MOST), (MOST, MOST), (MOST - 511, 5),
    ],
)  # fmt: skip
def test_columns_at_both_ends_of_the_type(first: int, end: int, dtype: str) -> None:
    rows, columns, stride = 4, 512, 600
    x = (np.arange(rows * stride) % 100).astype(dtype)
    out = np.zeros((rows, columns), dtype)
    columns_kernel[(1,)](
        x, out, first, end, first, -first, stride, ROWS=rows, COLUMNS=columns, num_warps=1
    )
    at = wrapped(first + np.arange(columns, dtype=np.int64))
    mask = (at >= first) & (at < end)
    expected = np.where(mask, x.reshape(rows, stride)[:, :columns], x.dtype.type(-1))
    assert np.array_equal(out, expected)


@triton.jit
def branch_kernel(x_ptr, out_ptr, first, bound, shift, stride, ABOVE: tl.constexpr):
    rows = tl.arange(0, 2)[:, None]
    places = tl.arange(0, 512)[None, :]
    row = x_ptr + shift + rows * stride
    columns = first + places
    out = out_ptr + rows * 512 + places
    inside = first < bound - 511 if ABOVE else first + 511 < bound
    if inside:
        tl.store(out, tl.load(row + columns))
    else:
        # Of these, only columns that have not wrapped around.
        tl.store(out, tl.load(row + columns, mask=columns >= first, other=-2.0))


def is_inside(first: int, bound: int, above: bool) -> bool:
    """The branch that the kernel takes, in int32."""
    if above:
        return first < int(wrapped(np.int64(bound) - 511))
    return int(wrapped(np.int64(first) + 511)) < bound


#: But for programs that read outside of the array themselves: where columns wrap around, the branch is the other one.
BRANCHES = [
    (first, bound, above)
    for first, bound in [
        (0, 512), (0, 511), (3, 1000), (MOST - 512, MOST), (MOST - 511, MOST), (MOST - 510, MOST), (MOST - 5, LEAST + 600),
        (LEAST, LEAST + 512), (LEAST, LEAST + 511), (LEAST + 1, LEAST), (MOST - 30, 0),
    ]
    for above in (False, True)
    if first <= MOST - 511 or not is_inside(first, bound, above)
]  # fmt: skip


@pytest.mark.parametrize(("first", "bound", "above"), BRANCHES)
def test_a_branch_bounds_what_it_compares(first: int, bound: int, above: bool) -> None:
    stride = 512
    x = np.arange(2 * stride, dtype=np.float32)
    out = np.zeros((2, 512), np.float32)
    at = wrapped(first + np.arange(512, dtype=np.int64))
    branch_kernel[(1,)](x, out, first, bound, -first, stride, ABOVE=above, num_warps=1)
    there = (at >= first) | is_inside(first, bound, above)
    expected = np.where(there, x.reshape(2, stride), np.float32(-2))
    assert np.array_equal(out, expected)


@triton.jit
def product_kernel(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK: tl.constexpr, STEP: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, K, STEP):
        k = start + tl.arange(0, STEP)
        a = tl.load(
            a_ptr + rows[:, None] * K + k[None, :],
            mask=(rows[:, None] < M) & (k[None, :] < K),
            other=0.0,
        )
        b = tl.load(
            b_ptr + k[:, None] * N + columns[None, :],
            mask=(k[:, None] < K) & (columns[None, :] < N),
            other=0.0,
        )
        total += tl.dot(a, b)
    tl.store(
        c_ptr + rows[:, None] * N + columns[None, :],
        total.to(c_ptr.dtype.element_ty),
        mask=(rows[:, None] < M) & (columns[None, :] < N),
    )


@pytest.mark.parametrize("step", [16, 32])
@pytest.mark.parametrize("block", [32, 64])
@pytest.mark.parametrize(
    ("m", "n", "k"),
    [(64, 64, 64), (64, 64, 48), (65, 63, 16), (48, 80, 47), (16, 112, 96), (33, 31, 30), (128, 16, 8)],
)  # fmt: skip
def test_products_whose_rows_columns_and_steps_end_anywhere(
    m: int, n: int, k: int, block: int, step: int
) -> None:
    """Exact: small integers, whose products and sums halves hold."""
    random = np.random.default_rng(m * n + k)
    a = random.integers(-3, 4, (m, k)).astype(np.float16)
    b = random.integers(-3, 4, (k, n)).astype(np.float16)
    c = np.full((m, n), np.nan, np.float16)
    grid = (triton.cdiv(m, block), triton.cdiv(n, block))
    product_kernel[grid](a, b, c, m, n, k, BLOCK=block, STEP=step, num_warps=4)
    assert np.array_equal(c.astype(np.float32), a.astype(np.float32) @ b.astype(np.float32))


@triton.jit
def two_rows_kernel(x_ptr, y_ptr, out_ptr, n, m, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n, other=1.0)
    tl.store(out_ptr + offs, x, mask=offs < n)
    y = tl.load(y_ptr + offs, mask=offs < m, other=2.0)
    tl.store(out_ptr + 2048 + offs, y, mask=offs < m)


@pytest.mark.parametrize("n", [0, 3, 255, 256, 1021, 1024])
@pytest.mark.parametrize("m", [2, 254, 1023, 1024])
def test_rows_that_end_in_different_places(n: int, m: int) -> None:
    x, y = np.arange(1, 1025, dtype=np.float16), -np.arange(1, 1025, dtype=np.float16)
    out = np.zeros(4096, np.float16)
    two_rows_kernel[(2,)](x, y, out, n, m, BLOCK=512, num_warps=2)
    expected = np.zeros(4096, np.float16)
    expected[:n], expected[2048 : 2048 + m] = x[:n], y[:m]
    assert np.array_equal(out, expected)
