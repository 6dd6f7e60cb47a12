"""A range ends where Python's ends, at and beyond the largest number of its type.

The counter of a C++ loop whose last step goes past that number wraps around, or means nothing.
"""

from __future__ import annotations

import numpy as np
import pytest

from kernel_support import INTEGERS, assert_same, tl, triton

MOST = 2**31 - 1


@triton.jit
def visit(out_ptr, lower, upper, step):
    count = 0
    seen = lower * 0
    for k in range(lower, upper, step):
        count += 1
        seen = seen * 3 + k
    tl.store(out_ptr, count)
    tl.store(out_ptr + 1, seen)


@triton.jit
def known_step(out_ptr, lower, upper, STEP: tl.constexpr):
    visit(out_ptr, lower, upper, STEP)


@triton.jit
def known_start(out_ptr, upper, LOWER: tl.constexpr, STEP: tl.constexpr):
    visit(out_ptr, LOWER, upper, STEP)


@triton.jit
def known_bounds(out_ptr, LOWER: tl.constexpr, UPPER: tl.constexpr, STEP: tl.constexpr):
    visit(out_ptr, LOWER, UPPER, STEP)


def expected(numbers: range, bits: int = 32) -> np.ndarray:
    seen = 0
    for k in numbers:
        seen = seen * 3 + k
    half = 1 << (bits - 1)
    return np.array([len(numbers), (seen + half) % (2 * half) - half], np.int64)


RANGES = [
    (MOST - 19, MOST, 5),
    (MOST - 20, MOST, 5),
    (MOST - 21, MOST, 5),
    (0, MOST, 2**29),
    (0, MOST, MOST),
    (5, MOST, 2**30 + 1),
    (-7, MOST, MOST),
    (-7, MOST, 2**30),
    (-MOST - 1, MOST, MOST),
    (-MOST - 1, -MOST + 20, 3),
    (0, -5, 3),
    (3, -MOST, 7),
    (-10, 40, 7),
    (MOST, -MOST - 1, -(2**30)),
    (10, -MOST - 1, -(2**30)),
    (10, -1, -3),
    (-5, -MOST - 1, -MOST),
    (MOST, MOST - 20, -6),
]


@pytest.mark.parametrize(("lower", "upper", "step"), RANGES)
def test_ranges_end_where_python_ends_them(lower: int, upper: int, step: int) -> None:
    outs = np.zeros((4, 2), np.int64)
    known_bounds[(1,)](outs[0], LOWER=lower, UPPER=upper, STEP=step)
    known_start[(1,)](outs[1], upper, LOWER=lower, STEP=step)
    known_step[(1,)](outs[2], lower, upper, STEP=step)
    visit[(1,)](outs[3], lower, upper, step)
    assert_same(outs, np.tile(expected(range(lower, upper, step)), (4, 1)))


@triton.jit
def loaded_bounds(out_ptr, bounds_ptr, STEP: tl.constexpr):
    count = 0
    seen = tl.full((), 0, tl.int64)
    for k in range(tl.load(bounds_ptr), tl.load(bounds_ptr + 1), STEP):
        count += 1
        seen = seen * 3 + k.to(tl.int64)
    tl.store(out_ptr, count)
    tl.store(out_ptr + 1, seen)


@pytest.mark.parametrize("step", [1, 3, 100, 127])
@pytest.mark.parametrize("name", INTEGERS)
def test_every_type_ends_below_its_largest_number(name: str, step: int) -> None:
    info = np.iinfo(name)
    for lower, upper in [
        (info.max - 20, info.max),
        (max(info.max - 200, info.min), info.max),
        (info.min, info.min + 20),
        (info.min, info.min),
    ]:
        out = np.zeros(2, np.int64)
        loaded_bounds[(1,)](out, np.array([lower, upper], name), STEP=step)
        assert_same(out, expected(range(int(lower), int(upper), step), 64))


@triton.jit
def products(a_ptr, b_ptr, out_ptr, first, last, STEP: tl.constexpr):
    i = tl.arange(0, 32)
    total = tl.zeros((32, 32), tl.float32)
    part = 0
    for _ in range(first, last, STEP):
        a = tl.load(a_ptr + i[:, None] * 96 + part + i[None, :])
        b = tl.load(b_ptr + (part + i[:, None]) * 32 + i[None, :])
        total = tl.dot(a, b, total)
        part += 32
    tl.store(out_ptr + i[:, None] * 32 + i[None, :], total)


@pytest.mark.parametrize("num_stages", [1, 2])
@pytest.mark.parametrize("first", [0, 7, -9, MOST - 2 * 2**20 - 5])
def test_double_buffered_loops_load_no_step_beyond_the_last(first: int, num_stages: int) -> None:
    rng = np.random.default_rng(3)
    a = rng.integers(-3, 4, (32, 96)).astype(np.float32)
    b = rng.integers(-3, 4, (96, 32)).astype(np.float32)
    out = np.zeros((32, 32), np.float32)
    step = 2**20 if first > 7 else 2**30
    with triton.launch_options(check="bounds"):
        products[(1,)](a, b, out, first, MOST, STEP=step, num_stages=num_stages)
    steps = len(range(first, MOST, step))
    assert_same(out, a[:, : 32 * steps] @ b[: 32 * steps])


@triton.jit
def add_columns(x_ptr, out_ptr, n_rows, n_cols, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, n_cols, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        mask = (rows[:, None] < n_rows) & (cols[None, :] < n_cols)
        acc += tl.load(x_ptr + rows[:, None] * 64 + cols[None, :], mask=mask, other=0.0)
    tl.store(out_ptr + rows, tl.sum(acc, axis=1))


@pytest.mark.parametrize("n_cols", [64, 63, 33])
@pytest.mark.parametrize("n_rows", [-MOST - 1, -MOST, -MOST + 6, -1, 0, 7, 8, 9, 16, MOST])
def test_a_bound_in_a_loop_may_be_any_number(n_rows: int, n_cols: int) -> None:
    """Whether all of a block is inside is asked in each step, without a sum that passes the least number."""
    x = np.arange(16 * 64, dtype=np.float32).reshape(16, 64) % 31
    out = np.full(16, -1, np.float32)
    add_columns[(2,)](x, out, n_rows, n_cols, BLOCK_M=8, BLOCK_N=32)
    expected = np.where(np.arange(16) < n_rows, x[:, :n_cols].sum(1), 0)
    assert_same(out, expected.astype(np.float32))
