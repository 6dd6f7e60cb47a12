"""Loops, branches and calls, with scalars, tiles and pointers carried through them."""

from __future__ import annotations

import numpy as np
import pytest

from kernel_support import assert_same, numbers, tl, triton


@triton.jit
def collatz_kernel(x_ptr, out_ptr):
    n = tl.load(x_ptr + tl.program_id(0))
    steps = 0
    while n > 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    tl.store(out_ptr + tl.program_id(0), steps)


def test_while_of_scalars() -> None:
    x = np.arange(1, 40, dtype=np.int32)
    out = np.empty_like(x)
    collatz_kernel[(39,)](x, out)

    def collatz(n: int) -> int:
        return 0 if n <= 1 else 1 + collatz(n // 2 if n % 2 == 0 else 3 * n + 1)

    assert out.tolist() == [collatz(n) for n in x.tolist()]


@triton.jit
def more_than_one(n):
    return n > 1


@triton.jit
def collatz_condition_kernel(x_ptr, out_ptr, LIMIT: tl.constexpr):
    n = tl.load(x_ptr + tl.program_id(0))
    steps = 0
    while tl.condition(more_than_one(n) & (steps < LIMIT), disable_licm=True):
        odd = n % 2
        while tl.condition(odd):
            n = 3 * n + 1
            odd = 0
        n = n // 2
        steps += 1
    while tl.condition(arg1=False):
        steps = -1
    tl.store(out_ptr + tl.program_id(0), steps)


def test_while_of_conditions_with_hints() -> None:
    x = np.arange(1, 40, dtype=np.int32)
    out = np.empty_like(x)
    collatz_condition_kernel[(39,)](x, out, LIMIT=20)

    def halvings(n: int) -> int:
        return 0 if n <= 1 else 1 + halvings((3 * n + 1 if n % 2 else n) // 2)

    assert out.tolist() == [min(halvings(n), 20) for n in x.tolist()]


@triton.jit
def gcd_kernel(a_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    a = tl.load(a_ptr + offsets, mask=mask, other=0)
    b = tl.load(b_ptr + offsets, mask=mask, other=0)
    while tl.max(b, axis=0) > 0:
        divisor = tl.where(b == 0, 1, b)
        remainder = tl.where(b == 0, 0, a % divisor)
        a = tl.where(b == 0, a, b)
        b = remainder
    tl.store(out_ptr + offsets, a, mask=mask)


@pytest.mark.parametrize("block", [16, 64, 512])
@pytest.mark.parametrize("num_warps", [1, 4])
def test_while_of_tiles(num_warps: int, block: int) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(0, 10_000, 500).astype(np.int32) for _ in range(2))
    out = np.empty_like(a)
    gcd_kernel[(triton.cdiv(500, block),)](a, b, out, 500, BLOCK=block, num_warps=num_warps)
    assert_same(out, np.gcd(a, b))


@triton.jit
def nested_kernel(x_ptr, out_ptr, m, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.int32)
    count = 0
    for i in range(m):
        row = tl.zeros((BLOCK,), tl.int32)
        for j in range(0, n, BLOCK):
            cols = j + tl.arange(0, BLOCK)
            row += tl.load(x_ptr + i * n + cols, mask=cols < n, other=0)
            count += 1
        for _ in range(i % 3):
            row = row * 2
        total = total - row if i % 2 == 1 else total + row
    tl.store(out_ptr + tl.arange(0, BLOCK), total)
    tl.store(out_ptr + BLOCK, count)


@pytest.mark.parametrize(("m", "n"), [(0, 10), (1, 1), (5, 100), (7, 64)])
@pytest.mark.parametrize("block", [16, 128])
def test_nested_loops(block: int, m: int, n: int) -> None:
    x = np.random.default_rng(0).integers(-100, 100, (m, n)).astype(np.int32)
    out = np.empty(block + 1, np.int32)
    nested_kernel[(1,)](x if m else np.zeros(1, np.int32), out, m, n, BLOCK=block, num_warps=2)
    blocks = -(-n // block)
    padded = np.pad(x, ((0, 0), (0, blocks * block - n))).reshape(m, blocks, block).sum(axis=1)
    factor = np.array([2 ** (i % 3) * (-1) ** (i % 2) for i in range(m)], np.int32)
    assert_same(out, np.append((padded * factor[:, None]).sum(axis=0), m * blocks).astype(np.int32))


@triton.jit
def range_kernel(out_ptr, start, stop, step, BLOCK: tl.constexpr):
    last = start
    count = 0
    for i in range(start, stop, step):
        last = i
        count += 1
    tl.store(out_ptr, last)
    tl.store(out_ptr + 1, count)


@pytest.mark.parametrize(
    ("start", "stop", "step"),
    [(0, 10, 1), (3, 20, 4), (5, 5, 1), (9, 2, 1), (-7, 8, 5), (0, 1, 100)],
)
def test_ranges(start: int, stop: int, step: int) -> None:
    out = np.empty(2, np.int32)
    range_kernel[(1,)](out, start, stop, step, BLOCK=1)
    values = range(start, stop, step)
    assert out.tolist() == [values[-1] if values else start, len(values)]


@triton.jit
def downwards_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    value = tl.zeros((BLOCK,), tl.float32)
    for i in range(n - 1, -1, -1):
        value = value * 0.5 + tl.load(x_ptr + i * BLOCK + offsets)
    tl.store(out_ptr + offsets, value)


@pytest.mark.parametrize("n", [0, 1, 9])
def test_downward_loop(n: int) -> None:
    x = np.random.default_rng(0).integers(-64, 64, (max(n, 1), 32)).astype(np.float32)
    out = np.empty(32, np.float32)
    downwards_kernel[(1,)](x, out, n, BLOCK=32, num_warps=1)
    expected = np.zeros(32, np.float32)
    for i in reversed(range(n)):
        expected = expected * np.float32(0.5) + x[i]
    assert_same(out, expected)


@triton.jit
def pointers_kernel(x_ptr, out_ptr, n_rows, n_cols, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    x_ptrs = x_ptr + cols
    out_ptrs = out_ptr + (n_rows - 1) * n_cols + cols
    for _ in range(n_rows):
        tl.store(out_ptrs, tl.load(x_ptrs, mask=cols < n_cols), mask=cols < n_cols)
        x_ptrs += n_cols
        out_ptrs -= n_cols


@pytest.mark.parametrize(("n_rows", "n_cols"), [(1, 1), (9, 33), (16, 128)])
def test_tiles_of_pointers_carried(n_rows: int, n_cols: int) -> None:
    x = numbers(np.random.default_rng(0), (n_rows, n_cols), "float16")
    out = np.zeros_like(x)
    pointers_kernel[(1,)](x, out, n_rows, n_cols, BLOCK=128, num_warps=2)
    assert_same(out, np.ascontiguousarray(x[::-1]))


@triton.jit
def scalar_pointer_kernel(x_ptr, out_ptr, n):
    total = 0
    while n > 0:
        total += tl.load(x_ptr)
        x_ptr += 3
        n -= 1
    tl.store(out_ptr, total)


def test_scalar_pointer_carried() -> None:
    x = np.arange(100, dtype=np.int32)
    out = np.empty(1, np.int32)
    scalar_pointer_kernel[(1,)](x, out, 20)
    assert out[0] == x[::3][:20].sum()


@triton.jit
def branch_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offsets = pid * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    if pid % 3 == 0:
        y = x * 2
        scale = 1
    elif pid % 3 == 1:
        y = x + tl.sum(x, axis=0)
        scale = tl.max(x, axis=0)
    else:
        y = tl.where(x > 0, x, -x)
        scale = -1
    tl.store(out_ptr + offsets, y * scale)


@pytest.mark.parametrize("num_warps", [1, 4])
def test_branches_with_tiles_and_reductions(num_warps: int) -> None:
    x = np.random.default_rng(0).integers(-50, 50, (7, 64)).astype(np.int32)
    out = np.empty_like(x)
    branch_kernel[(7,)](x, out, BLOCK=64, num_warps=num_warps)
    expected = np.stack(
        [[r * 2, (r + r.sum()) * r.max(), -np.abs(r)][i % 3] for i, r in enumerate(x)]
    )
    assert_same(out, expected.astype(np.int32))


@triton.jit
def early_return_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    if pid * BLOCK >= n:
        return
    offsets = pid * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n) + 1, mask=offsets < n)


def test_early_return() -> None:
    x = np.arange(100, dtype=np.int32)
    out = np.full(200, -5, np.int32)
    early_return_kernel[(6,)](x, out, 100, BLOCK=32, num_warps=1)
    assert_same(out, np.append(x + 1, np.full(100, -5, np.int32)))


@triton.jit
def fibonacci_kernel(out_ptr, n):
    a = 0
    b = 1
    for i in range(n):
        tl.store(out_ptr + i, a)
        a, b = b, a + b


def test_values_that_change_places() -> None:
    out = np.empty(20, np.int32)
    fibonacci_kernel[(1,)](out, 20)
    expected = [0, 1]
    while len(expected) < 20:
        expected.append(expected[-1] + expected[-2])
    assert out.tolist() == expected


@triton.jit
def rotate_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    a = tl.load(x_ptr + offsets)
    b = tl.load(x_ptr + BLOCK + offsets)
    c = tl.load(x_ptr + 2 * BLOCK + offsets)
    for _ in range(n):
        a, b, c = b, c, a
    tl.store(out_ptr + offsets, a)
    tl.store(out_ptr + BLOCK + offsets, b)
    tl.store(out_ptr + 2 * BLOCK + offsets, c)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 10])
def test_tiles_that_change_places(n: int) -> None:
    x = np.arange(96, dtype=np.float32).reshape(3, 32)
    out = np.empty_like(x)
    rotate_kernel[(1,)](x, out, n, BLOCK=32, num_warps=1)
    assert_same(out, np.roll(x, -n, axis=0))


@triton.jit
def square_and_cube(x):
    return x * x, x * x * x


@triton.jit
def polynomial(x, N: tl.constexpr):
    y = tl.zeros_like(x)
    for i in tl.static_range(N):
        y = y * x + (i + 1)
    return y


@triton.jit
def clamp_or_zero(x, low, high, ZERO: tl.constexpr):
    if ZERO:
        return tl.where((x < low) | (x > high), 0, x)
    else:
        return tl.minimum(tl.maximum(x, low), high)


@triton.jit
def call_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    square, cube = square_and_cube(x)
    y = (
        polynomial(x, 4)
        + square
        - cube
        + clamp_or_zero(x, -2, 2, ZERO=True) * clamp_or_zero(x, -1, 3, ZERO=False)
    )
    tl.store(out_ptr + offsets, y)


def test_calls() -> None:
    x = np.random.default_rng(0).integers(-5, 6, 256).astype(np.int32)
    out = np.empty_like(x)
    call_kernel[(1,)](x, out, BLOCK=256, num_warps=4)
    poly = ((x + 2) * x + 3) * x + 4
    expected = poly + x * x - x**3 + np.where(np.abs(x) > 2, 0, x) * np.clip(x, -1, 3)
    assert_same(out, expected.astype(np.int32))


@triton.jit
def factorial(n):
    result = 1
    for i in range(2, n + 1):
        result *= i
    return result


@triton.jit
def binomial_kernel(out_ptr, n):
    k = tl.program_id(0)
    tl.store(out_ptr + k, factorial(n) // (factorial(k) * factorial(n - k)))


def test_a_function_with_a_loop_called_three_times() -> None:
    out = np.empty(9, np.int32)
    binomial_kernel[(9,)](out, 8)
    assert out.tolist() == [1, 8, 28, 56, 70, 56, 28, 8, 1]


@triton.jit
def static_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr, STEPS: tl.constexpr, MODE: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    for i in tl.static_range(STEPS):
        if MODE == "add" and i % 2 == 0:
            x += i
        elif MODE == "xor" or not i < 2:
            x ^= 1 << i
    y = x if STEPS > 2 else -x
    tl.static_assert(BLOCK >= 16)
    tl.store(out_ptr + offsets, y)


@pytest.mark.parametrize("steps", [0, 1, 3, 5])
@pytest.mark.parametrize("mode", ["add", "xor"])
def test_static_range_and_constexpr_branches(mode: str, steps: int) -> None:
    x = np.arange(64, dtype=np.int32)
    out = np.empty_like(x)
    static_kernel[(1,)](x, out, BLOCK=64, STEPS=steps, MODE=mode, num_warps=2)
    expected = x.copy()
    for i in range(steps):
        if mode == "add" and i % 2 == 0:
            expected += i
        elif mode == "xor" or not i < 2:
            expected ^= 1 << i
    assert_same(out, expected if steps > 2 else -expected)


@triton.jit
def bisect_kernel(x_ptr, keys_ptr, out_ptr, n, n_keys, BLOCK: tl.constexpr):
    """Binary search for a tile of keys at once: a data-dependent gather in a loop."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    key = tl.load(keys_ptr + offsets, mask=offsets < n_keys, other=0)
    low = tl.zeros((BLOCK,), tl.int32)
    high = tl.full((BLOCK,), n, tl.int32)
    width = n
    while width > 0:
        middle = (low + high) // 2
        active = low < high
        value = tl.load(x_ptr + middle, mask=active, other=0)
        right = active & (value < key)
        low = tl.where(right, middle + 1, low)
        high = tl.where(active & (value >= key), middle, high)
        width = width // 2
    tl.store(out_ptr + offsets, low, mask=offsets < n_keys)


@pytest.mark.parametrize("n", [1, 10, 1000])
def test_bisect(n: int) -> None:
    rng = np.random.default_rng(n)
    x = np.sort(rng.integers(0, 500, n)).astype(np.int32)
    keys = rng.integers(-5, 505, 300).astype(np.int32)
    out = np.empty(300, np.int32)
    bisect_kernel[(5,)](x, keys, out, n, 300, BLOCK=64, num_warps=2)
    assert_same(out, np.searchsorted(x, keys).astype(np.int32))


@triton.jit
def mandelbrot_kernel(out_ptr, width, height, limit, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    cx = (offsets % width).to(tl.float32) * 0.0625 - 2.0
    cy = (offsets // width).to(tl.float32) * 0.0625 - 1.0
    zx = tl.zeros((BLOCK,), tl.float32)
    zy = tl.zeros((BLOCK,), tl.float32)
    count = tl.zeros((BLOCK,), tl.int32)
    for _ in range(limit):
        x2, y2 = zx * zx, zy * zy
        inside = x2 + y2 <= 4.0
        zy = tl.where(inside, 2.0 * zx * zy + cy, zy)
        zx = tl.where(inside, x2 - y2 + cx, zx)
        count += inside.to(tl.int32)
    tl.store(out_ptr + offsets, count, mask=offsets < width * height)


def test_mandelbrot() -> None:
    """Many dependent steps in fp32; exact while the compiler neither fuses nor reorders."""
    width, height, limit = 48, 33, 12
    out = np.empty((height, width), np.int32)
    mandelbrot_kernel[(triton.cdiv(width * height, 256),)](
        out, width, height, limit, BLOCK=256, num_warps=4
    )
    cx = (np.arange(width, dtype=np.float32) * np.float32(0.0625) - 2)[None, :] + np.zeros(
        (height, 1), np.float32
    )
    cy = (np.arange(height, dtype=np.float32) * np.float32(0.0625) - 1)[:, None] + np.zeros(
        (1, width), np.float32
    )
    zx, zy, expected = np.zeros_like(cx), np.zeros_like(cx), np.zeros((height, width), np.int32)
    for _ in range(limit):
        x2, y2 = zx * zx, zy * zy
        inside = x2 + y2 <= 4
        zx, zy = np.where(inside, x2 - y2 + cx, zx), np.where(inside, 2 * zx * zy + cy, zy)
        expected += inside
    # A fused multiply-add may decide a pixel on the border otherwise.
    assert (out != expected).mean() < 0.01
    assert expected.max() == limit


@triton.jit
def loop_reduce_kernel(x_ptr, out_ptr, n_rows, n_cols, BLOCK: tl.constexpr):
    """Reductions in a loop: threadgroup memory is used again in every round, and the result decides a branch."""
    cols = tl.arange(0, BLOCK)
    best = -2147483647
    best_row = -1
    for row in range(n_rows):
        x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0)
        total = tl.sum(x, axis=0)
        if total > best:
            best = total
            best_row = row
    tl.store(out_ptr, best)
    tl.store(out_ptr + 1, best_row)


@pytest.mark.parametrize("num_warps", [1, 2, 8])
def test_reduction_in_a_loop(num_warps: int) -> None:
    x = np.random.default_rng(3).integers(-100, 100, (40, 300)).astype(np.int32)
    out = np.empty(2, np.int32)
    loop_reduce_kernel[(1,)](x, out, 40, 300, BLOCK=512, num_warps=num_warps)
    totals = x.sum(axis=1)
    assert out.tolist() == [totals.max(), totals.argmax()]


@triton.jit
def conditional_tile_kernel(x_ptr, y_ptr, out_ptr, flag, M: tl.constexpr, N: tl.constexpr):
    rows, cols = tl.arange(0, M), tl.arange(0, N)
    offsets = rows[:, None] * N + cols[None, :]
    tile = tl.load(x_ptr + offsets)
    if flag > 0:
        tile += tl.load(y_ptr + offsets)
        if flag > 1:
            tile = tile * tl.sum(tile, axis=1)[:, None]
    tl.store(out_ptr + offsets, tile)


@pytest.mark.parametrize("flag", [0, 1, 2])
def test_if_without_else_carries_a_tile(flag: int) -> None:
    rng = np.random.default_rng(flag)
    x, y = (rng.integers(-20, 20, (16, 32)).astype(np.int32) for _ in range(2))
    out = np.empty_like(x)
    conditional_tile_kernel[(1,)](x, y, out, flag, M=16, N=32, num_warps=4)
    expected = x + y if flag else x
    expected = expected * expected.sum(axis=1, keepdims=True) if flag == 2 else expected
    assert_same(out, expected.astype(np.int32))


@triton.jit
def store_load_loop_kernel(x_ptr, n, steps, BLOCK: tl.constexpr):
    """Prefix sums by doubling, in place in device memory: each round reads what other threads wrote before."""
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    shift = 1
    for _ in range(steps):
        here = tl.load(x_ptr + offsets, mask=mask, other=0)
        before = tl.load(x_ptr + offsets - shift, mask=mask & (offsets >= shift), other=0)
        tl.debug_barrier()
        tl.store(x_ptr + offsets, here + before, mask=mask)
        tl.debug_barrier()
        shift *= 2


@pytest.mark.parametrize("n", [1, 100, 1000])
@pytest.mark.parametrize("num_warps", [1, 4, 8])
def test_threads_see_what_others_stored(num_warps: int, n: int) -> None:
    x = np.random.default_rng(n).integers(-100, 100, n).astype(np.int32)
    expected = np.cumsum(x, dtype=np.int32)
    store_load_loop_kernel[(1,)](x, n, n.bit_length(), BLOCK=1024, num_warps=num_warps)
    assert_same(x, expected)
