"""Atomic updates whose results are used, by tiles and by scalars, and memory that a program writes and reads again."""

from __future__ import annotations

import numpy as np
import pytest

from kernel_support import tl, triton


@triton.jit
def tickets_kernel(counter_ptr, out_ptr, N: tl.constexpr):
    """Each program draws one ticket, and all of its threads use it."""
    ticket = tl.atomic_add(counter_ptr, 1)
    offsets = tl.arange(0, N)
    tl.store(out_ptr + ticket * N + offsets, ticket * N + offsets)


@pytest.mark.parametrize("num_warps", [1, 4, 32])
@pytest.mark.parametrize("size", [1, 16, 512])
def test_tickets(size: int, num_warps: int) -> None:
    counter, out = np.zeros(1, np.int32), np.full(37 * size, -1, np.int32)
    tickets_kernel[(37,)](counter, out, N=size, num_warps=num_warps)
    assert counter[0] == 37
    np.testing.assert_array_equal(out, np.arange(37 * size))


@triton.jit
def olds_kernel(x_ptr, out_ptr, n, N: tl.constexpr):
    offsets = tl.arange(0, N)
    old = tl.atomic_add(x_ptr + offsets, offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, old, mask=offsets < n)


@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize("size", [1, 8, 64, 1024])
def test_results_of_a_tile(size: int, num_warps: int) -> None:
    x = np.random.default_rng(size).integers(-9, 9, size).astype(np.int32)
    before, out = x.copy(), np.full(size, 99, np.int32)
    n = max(1, size - 3)
    olds_kernel[(1,)](x, out, n, N=size, num_warps=num_warps)
    np.testing.assert_array_equal(out, np.where(np.arange(size) < n, before, 99))
    np.testing.assert_array_equal(x, before + np.where(np.arange(size) < n, np.arange(size), 0))


@triton.jit
def kinds_kernel(x_ptr, out_ptr):
    tl.store(out_ptr, tl.atomic_max(x_ptr, 7))
    tl.store(out_ptr + 1, tl.atomic_min(x_ptr + 1, -7))
    tl.store(out_ptr + 2, tl.atomic_and(x_ptr + 2, 12))
    tl.store(out_ptr + 3, tl.atomic_or(x_ptr + 3, 3))
    tl.store(out_ptr + 4, tl.atomic_xor(x_ptr + 4, 5))
    tl.store(out_ptr + 5, tl.atomic_xchg(x_ptr + 5, 42))
    tl.store(out_ptr + 6, tl.atomic_cas(x_ptr + 6, 10, 77))
    tl.store(out_ptr + 7, tl.atomic_cas(x_ptr + 7, 11, 78))


@pytest.mark.parametrize("num_warps", [1, 4])
def test_kinds(num_warps: int) -> None:
    x, out = np.full(8, 10, np.int32), np.zeros(8, np.int32)
    kinds_kernel[(1,)](x, out, num_warps=num_warps)
    np.testing.assert_array_equal(out, np.full(8, 10))
    np.testing.assert_array_equal(x, [10, -7, 10 & 12, 10 | 3, 10 ^ 5, 42, 77, 10])


@triton.jit
def exchange_kernel(x_ptr, out_ptr, NUMBER: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out_ptr + at, tl.atomic_xchg(x_ptr + at, NUMBER))
    tl.store(out_ptr + N, tl.atomic_xchg(x_ptr + N, NUMBER))
    tl.store(out_ptr + N + 1, tl.atomic_cas(x_ptr + N + 1, NUMBER, NUMBER))


@pytest.mark.parametrize("number", [0.0, -0.0, 1.5, float("inf"), -16777216.0])
@pytest.mark.parametrize("name", ["float32", "int32", "uint32"])
def test_constants_are_exchanged(name: str, number: float) -> None:
    if name != "float32":
        number = 2**31 - 1 if number == float("inf") else abs(int(number))
    before = np.arange(66).astype(name)
    x, out = before.copy(), np.empty_like(before)
    exchange_kernel[(1,)](x, out, NUMBER=number, N=64)
    np.testing.assert_array_equal(out, before)
    expected = np.full(66, number, name)
    expected[65] = 65
    np.testing.assert_array_equal(x.view(np.uint32), expected.view(np.uint32))


@triton.jit
def count_up_kernel(x_ptr, out_ptr, n):
    """Loops whose condition is more than an expression: each has a variable for it."""
    while tl.atomic_add(x_ptr, 1) < n:
        tl.store(out_ptr, tl.load(out_ptr) + 1)
    while tl.atomic_add(x_ptr + 1, 2) < n:
        while tl.atomic_add(x_ptr + 2, 3) < n:
            tl.store(out_ptr + 2, tl.load(out_ptr + 2) + 1)
        tl.store(out_ptr + 1, tl.load(out_ptr + 1) + 1)


@pytest.mark.parametrize("num_warps", [1, 4])
def test_loops_that_count_by_atomics(num_warps: int) -> None:
    x, out = np.zeros(3, np.int32), np.zeros(3, np.int32)
    count_up_kernel[(1,)](x, out, 10, num_warps=num_warps)
    assert x.tolist() == [11, 12, 27]
    assert out.tolist() == [10, 5, 4]


@triton.jit
def counter_kernel(x_ptr, steps):
    """A scalar in memory, read by every thread and written by one, again and again."""
    for _ in range(steps):
        tl.store(x_ptr, tl.load(x_ptr) + 1)


@pytest.mark.parametrize("num_warps", [1, 4, 16])
def test_scalar_in_memory(num_warps: int) -> None:
    x = np.array([5], np.int32)
    for seed in range(3):
        with triton.launch_options(schedule=seed):
            counter_kernel[(1,)](x, 10, num_warps=num_warps)
    np.testing.assert_array_equal(x, [35])


@triton.jit
def transpose_in_place_kernel(x_ptr, N: tl.constexpr):
    """Every load must come before every store, and what is stored is read again in another order."""
    r = tl.arange(0, N)
    x = tl.load(x_ptr + r[:, None] * N + r[None, :])
    tl.store(x_ptr + r[None, :] * N + r[:, None], x)
    y = tl.load(x_ptr + r[:, None] * N + r[None, :])
    tl.store(x_ptr + r[:, None] * N + r[None, :], y + x)


@pytest.mark.parametrize("num_warps", [1, 4, 8])
@pytest.mark.parametrize("size", [2, 16, 64])
def test_transpose_in_place(size: int, num_warps: int) -> None:
    x = np.random.default_rng(size).integers(-99, 99, (size, size)).astype(np.int32)
    expected = x + x.T
    transpose_in_place_kernel[(1,)](x, N=size, num_warps=num_warps)
    np.testing.assert_array_equal(x, expected)


@triton.jit
def chosen_offsets_kernel(x_ptr, old_ptr, n, BLOCK: tl.constexpr):
    o = tl.arange(0, BLOCK)
    p = tl.where(o < n, x_ptr + o, x_ptr + 2 * o)
    tl.store(old_ptr + o, tl.atomic_max(p, 2 * o - 20))


@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize("n", [0, 20, 64])
def test_atomics_at_a_choice_of_offsets(n: int, num_warps: int) -> None:
    """Both pointers go to one array: the choice is one of offsets."""
    x = np.random.default_rng(0).integers(-50, 150, 256).astype(np.int32)
    old = np.zeros(64, np.int32)
    o = np.arange(64)
    places = np.where(o < n, o, 2 * o)
    wanted = x.copy()
    np.maximum.at(wanted, places, 2 * o - 20)
    before = x[places]
    chosen_offsets_kernel[(1,)](x, old, n, BLOCK=64, num_warps=num_warps)
    assert np.array_equal(x, wanted)
    assert np.array_equal(old, before)
