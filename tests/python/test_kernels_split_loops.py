"""Loops that are split at the step from which masks can be false (``ttm-split-loops``), against NumPy's int32."""

from __future__ import annotations

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl

MOST = 2**31 - 1


def is_split(kernel: triton.CompiledKernel) -> bool:
    return "_whole" in kernel.asm["metal"]


# A launch with 1 knows that number, and its kernel has no loop.
LENGTHS = [0, 2, 63, 64, 65, 127, 128, 129, 1000, 4096]


@triton.jit
def row_sum_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        total += tl.load(x_ptr + start + offs, mask=start + offs < n, other=0.0)
    tl.store(out_ptr, tl.sum(total))


@pytest.mark.parametrize("block", [32, 64, 1024])
@pytest.mark.parametrize("n", [-5, *LENGTHS])
def test_a_row_is_whole_but_for_its_end(n: int, block: int) -> None:
    x = np.arange(max(n, 1), dtype=np.float32) % 7
    out = np.full(1, -1, np.float32)
    kernel = row_sum_kernel[(1,)](x, out, n, BLOCK=block, num_warps=1)
    assert out[0] == x[: max(n, 0)].sum()
    assert is_split(kernel) == (block > 32)


@triton.jit
def mark_kernel(out_ptr, first, end, shift, STEP: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    for start in range(first, end, STEP):
        at = start + offs
        tl.store(out_ptr + (at - shift), at, mask=at < end)


def marked(first: int, end: int, shift: int, step: int, block: int, size: int) -> np.ndarray:
    """What the kernel's int32 arithmetic does, with what wraps around."""
    out = np.zeros(size, np.int32)
    for start in range(first, end, step):
        at = ((start + np.arange(block, dtype=np.int64)) + 2**31) % 2**32 - 2**31
        at = at[at < end]
        places = ((at - shift) + 2**31) % 2**32 - 2**31
        out[places] = at
    return out


@pytest.mark.parametrize(("step", "block"), [(64, 64), (48, 64), (1, 64), (100, 64), (128, 64)])
@pytest.mark.parametrize(
    ("first", "end"),
    [
        (0, 500), (-128, 200), (-130, -3), (7, 263), (64, 64), (65, 64), (-(2**31), -(2**31) + 300),
        (MOST - 300, MOST), (MOST - 300, MOST - 63), (MOST - 300, MOST - 64), (MOST - 63, MOST), (MOST, MOST),
    ],
)  # fmt: skip
def test_ends_of_the_range_and_of_the_type(first: int, end: int, step: int, block: int) -> None:
    if step == 1 and end - first > 400:
        end = first + 100
    # A wrapped index is stored, as its comparison is true: room for it behind the others.
    out, size = np.zeros(1024, np.int32), 1024
    kernel = mark_kernel[(1,)](out, first, end, first, STEP=step, BLOCK=block, num_warps=1)
    np.testing.assert_array_equal(out, marked(first, end, first, step, block, size))
    assert is_split(kernel)


@triton.jit
def falling_kernel(x_ptr, out_ptr, K, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for k in range(tl.cdiv(K, BLOCK)):
        total += tl.load(x_ptr + offs, mask=offs < K - k * BLOCK, other=0.0)
        x_ptr += BLOCK
    tl.store(out_ptr, tl.sum(total))


@triton.jit
def carried_kernel(x_ptr, out_ptr, K, steps, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for _ in range(steps):
        total += tl.load(x_ptr + offs, mask=offs < K, other=0.0)
        offs += BLOCK
    tl.store(out_ptr, tl.sum(total))


@pytest.mark.parametrize("n", LENGTHS)
def test_bounds_that_fall_and_offsets_that_are_carried(n: int) -> None:
    x = np.arange(max(n, 1), dtype=np.float32) % 5
    for steps in (0, 2, 3, 9):
        out = np.full(1, -1, np.float32)
        assert is_split(carried_kernel[(1,)](x, out, n, steps, BLOCK=64, num_warps=1))
        assert out[0] == x[: min(n, 64 * steps)].sum()
    out = np.full(1, -1, np.float32)
    assert is_split(falling_kernel[(1,)](x, out, n, BLOCK=64, num_warps=1))
    assert out[0] == x[:n].sum()


@triton.jit
def window_kernel(
    x_ptr, out_ptr, n, offset, WINDOW: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.arange(0, BLOCK_N)
    total = tl.zeros((BLOCK_M,), tl.float32)
    last = min(n, tl.program_id(0) * BLOCK_M + BLOCK_M + offset)
    for start in range(0, last, BLOCK_N):
        at = start + columns
        x = tl.load(x_ptr + at, mask=at < n, other=1e9)
        visible = (at[None, :] < n) & (rows[:, None] + offset >= at[None, :])
        if WINDOW > 0:
            visible = visible & (rows[:, None] + offset - at[None, :] < WINDOW)
        total += tl.sum(tl.where(visible, x[None, :], 0.0), axis=1)
    tl.store(out_ptr + rows, total, mask=rows < n)


@pytest.mark.parametrize("window", [0, 50])
@pytest.mark.parametrize("blocks", [(32, 32), (64, 32), (32, 64), (16, 128)])
@pytest.mark.parametrize(
    ("n", "offset"), [(2, 0), (64, 0), (130, 0), (200, 5), (200, -40), (333, 1000)]
)
def test_causal_blocks(n: int, offset: int, blocks: tuple[int, int], window: int) -> None:
    rng = np.random.default_rng(n)
    x = rng.integers(0, 9, n).astype(np.float32)
    out = np.zeros(n, np.float32)
    block_m, block_n = blocks
    kernel = window_kernel[(triton.cdiv(n, block_m),)](
        x, out, n, offset, WINDOW=window, BLOCK_M=block_m, BLOCK_N=block_n, num_warps=2
    )
    rows, columns = np.arange(n)[:, None] + offset, np.arange(n)[None, :]
    visible = rows >= columns
    if window:
        visible &= rows - columns < window
    np.testing.assert_array_equal(out, (visible * x).sum(1).astype(np.float32))
    assert is_split(kernel)


@triton.jit
def tile_kernel(x_ptr, out_ptr, rows, columns, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    r = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    c = tl.arange(0, BLOCK_N)
    for start in range(0, columns, BLOCK_N):
        at = r[:, None] * columns + start + c[None, :]
        inside = (r[:, None] < rows) & (start + c[None, :] < columns)
        tl.store(out_ptr + at, tl.load(x_ptr + at, mask=inside) * 2, mask=inside)


@pytest.mark.parametrize(
    "shape", [(2, 3), (7, 64), (8, 64), (9, 65), (16, 128), (17, 200), (3, 63)]
)
def test_rows_of_programs_are_asked_once(shape: tuple[int, int]) -> None:
    rows, columns = shape
    x = np.arange(rows * columns, dtype=np.int32).reshape(shape)
    out = np.full(rows * columns + 64, -1, np.int32)
    kernel = tile_kernel[(triton.cdiv(rows, 8),)](x, out, rows, columns, BLOCK_M=8, BLOCK_N=64)
    np.testing.assert_array_equal(out[: x.size], 2 * x.ravel())
    assert (out[x.size :] == -1).all()
    assert is_split(kernel)


@triton.jit
def nested_kernel(x_ptr, out_ptr, rows, columns, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        total = tl.zeros((BLOCK,), tl.int32)
        for start in range(0, columns, BLOCK):
            at = start + offs
            x = tl.load(x_ptr + row * columns + at, mask=at < columns, other=0)
            total += tl.where((at < columns) & (at % 3 != 0), x, 1)
        tl.store(out_ptr + row, tl.sum(total))


@pytest.mark.parametrize("columns", [0, 2, 64, 65, 192, 200])
def test_inner_loops(columns: int) -> None:
    x = np.arange(5 * max(columns, 1), dtype=np.int32).reshape(5, -1)[:, :columns]
    x = np.ascontiguousarray(x)
    out = np.zeros(5, np.int32)
    kernel = nested_kernel[(2,)](x if columns else out, out, 5, columns, BLOCK=64, num_warps=1)
    at = np.arange(-(-columns // 64) * 64)
    padded = np.zeros((5, at.size), np.int32)
    padded[:, :columns] = x
    expected = np.where((at < columns) & (at % 3 != 0), padded, 1).sum(1)
    np.testing.assert_array_equal(out, expected)
    assert is_split(kernel)


@triton.jit
def in_place_kernel(x_ptr, n, SHIFT: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    for start in range(0, n, BLOCK):
        at = start + offs
        x = tl.load(x_ptr + at, mask=at < n)
        tl.store(x_ptr + at + SHIFT, x + start + 1, mask=at < n)


@pytest.mark.parametrize("n", [256, 300, 1024, 1100])
def test_steps_of_both_loops_follow_each_other(n: int) -> None:
    # Each step reads what other threads wrote in the step before it.
    x = np.zeros(n + 256, np.int32)
    kernel = in_place_kernel[(1,)](x, n, SHIFT=37, BLOCK=256, num_warps=2)
    expected = np.zeros(n + 256, np.int32)
    for start in range(0, n, 256):
        stop = min(start + 256, n)
        expected[start + 37 : stop + 37] = expected[start:stop] + start + 1
    np.testing.assert_array_equal(x, expected)
    assert is_split(kernel)


@triton.jit
def overlapping_kernel(out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    for start in range(0, n, BLOCK):
        # Half of each block is written again by the next one.
        at = start // 2 + offs
        tl.store(out_ptr + at, start + offs, mask=start + offs < n)


@pytest.mark.parametrize("n", [256, 300, 1024, 1100])
def test_later_stores_win(n: int) -> None:
    out = np.full(n + 256, -1, np.int32)
    kernel = overlapping_kernel[(1,)](out, n, BLOCK=256, num_warps=2)
    expected = np.full(n + 256, -1, np.int32)
    for start in range(0, n, 256):
        count = min(256, n - start)
        expected[start // 2 : start // 2 + count] = start + np.arange(count)
    np.testing.assert_array_equal(out, expected)
    assert is_split(kernel)


@triton.jit
def products_kernel(
    a_ptr, b_ptr, out_ptr, K, BLOCK: tl.constexpr, STAGES: tl.constexpr, CHOOSE: tl.constexpr
):
    m = tl.arange(0, BLOCK)
    k = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in tl.range(0, K, BLOCK, num_stages=STAGES):
        at = start + k
        a = tl.load(a_ptr + m[:, None] * K + at[None, :], mask=at[None, :] < K, other=0.0)
        b = tl.load(b_ptr + at[:, None] * BLOCK + m[None, :], mask=at[:, None] < K, other=0.0)
        part = tl.dot(a, b)
        if CHOOSE:
            part = tl.where(at[None, :] < K, part, 0.0)
        acc += part
    tl.store(out_ptr + m[:, None] * BLOCK + m[None, :], acc)


@pytest.mark.parametrize("stages", [1, 2])
@pytest.mark.parametrize("k", [0, 16, 32, 33, 96, 100])
def test_products_with_and_without_choices(k: int, stages: int) -> None:
    rng = np.random.default_rng(k)
    a = rng.integers(-3, 4, (32, max(k, 1))).astype(np.float16)
    b = rng.integers(-3, 4, (max(k, 1), 32)).astype(np.float16)
    a, b = a[:, :k], b[:k]
    for choose in (False, True):
        out = np.full((32, 32), np.nan, np.float32)
        args = (a, b) if k else (out, out)
        kernel = products_kernel[(1,)](*args, out, k, BLOCK=32, STAGES=stages, CHOOSE=choose)
        expected = np.zeros((32, 32), np.float32)
        for start in range(0, k, 32):
            part = a[:, start : start + 32].astype(np.float32) @ b[start : start + 32]
            expected += np.where((start + np.arange(32) < k) | (not choose), part, 0)
        np.testing.assert_array_equal(out, expected)
        # Without choices, and with a length that is known as a multiple of 16, one of two loops takes all steps. Products on
        # tensor operations, and those that are loops themselves, stay in one loop.
        if (choose or k % 16) and "simdgroup_multiply_accumulate" in kernel.asm["metal"]:
            assert is_split(kernel)


@triton.jit
def seen_products_kernel(
    a_ptr, b_ptr, out_ptr, bias_ptr, first, K, seen, behind, BIASED: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    m, k = tl.arange(0, BLOCK), tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(first, K, BLOCK):
        at = start + k
        a = tl.load(a_ptr + m[:, None] * K + at[None, :], mask=at[None, :] < K, other=0.0)
        b = tl.load(b_ptr + at[:, None] * BLOCK + m[None, :], mask=at[:, None] < K, other=0.0)
        part = tl.dot(a, b)
        if BIASED:
            part += tl.load(bias_ptr + at, mask=at < K, other=0.0)[None, :]
        part = tl.where((at[None, :] < K) & (at[None, :] <= m[:, None] + seen), part, 0.0)
        if behind < 0:
            part = tl.where(at[None, :] >= m[:, None] + behind + K, part, -1.0)
        acc += part
    tl.store(out_ptr + m[:, None] * BLOCK + m[None, :], acc)


# What a choice sees ends before, within, at and behind the loads' own bound, and at the ends of 32 bits.
@pytest.mark.parametrize("seen", [-(2**31), -40, -1, 0, 31, 32, 50, 2**31 - 32])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize(("first", "k"), [(0, 64), (0, 70), (0, 20), (32, 100), (5, 100), (96, 64)])
def test_loads_and_choices_of_products_with_bounds_of_their_own(
    first: int, k: int, biased: bool, seen: int
) -> None:
    rng = np.random.default_rng(k + seen % 97)
    a = rng.integers(-3, 4, (32, k)).astype(np.float16)
    b = rng.integers(-3, 4, (k, 32)).astype(np.float16)
    bias = rng.integers(-3, 4, k).astype(np.float32)
    rows = np.arange(32)
    for behind in (0, -40):
        out = np.full((32, 32), np.nan, np.float32)
        seen_products_kernel[(1,)](a, b, out, bias, first, k, seen, behind, BIASED=biased, BLOCK=32)
        expected = np.zeros((32, 32), np.float32)
        for start in range(first, k, 32):
            at = start + np.arange(32)
            here = at < k
            part = a[:, start : start + 32].astype(np.float32) @ b[start : start + 32]
            if biased:
                part += np.where(here, bias[np.minimum(at, k - 1)], 0)
            part = np.where(here & (at <= rows[:, None] + seen), part, 0)
            if behind < 0:
                part = np.where(at >= rows[:, None] + behind + k, part, -1)
            expected += part
        np.testing.assert_array_equal(out, expected)


@triton.jit
def rows_kernel(x_ptr, out_ptr, n, MASKED: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        at = start + offs
        if MASKED:
            total += tl.load(x_ptr + pid * 116 + at, mask=at < n, other=0.0)
        else:
            total += tl.load(x_ptr + pid * 116 + at)
    tl.store(out_ptr + pid, tl.sum(total))


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("block", [64, 128, 1024])
def test_no_grid_is_refused_for_a_width_that_no_second_program_has(
    masked: bool, block: int
) -> None:
    n = 116 if masked else block
    x = np.arange(116 * 6 + 2048, dtype=np.float32)
    out = np.zeros(5, np.float32)
    rows_kernel[(5,)](x, out, n, MASKED=masked, BLOCK=block, num_warps=1)
    np.testing.assert_array_equal(out, [x[i * 116 : i * 116 + n].sum() for i in range(5)])
