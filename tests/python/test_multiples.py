"""What a kernel is told of integers: that they are multiples of 16, of 8 or of 4."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from triton_metal import knobs

from kernel_support import needs_counters, tl, triton

pytestmark = pytest.mark.filterwarnings("error")


def wrapped_kernel() -> Any:
    """Rows of a matrix by columns of another, whose places wrap around as in Triton's tutorial."""

    @triton.jit
    def product(a_ptr, b_ptr, c_ptr, m, n, k, TILE: tl.constexpr):
        rows = (tl.program_id(0) * TILE + tl.arange(0, TILE)) % m
        columns = (tl.program_id(1) * TILE + tl.arange(0, TILE)) % n
        inner = tl.arange(0, TILE)
        total = tl.zeros((TILE, TILE), tl.float32)
        for start in range(0, k, TILE):
            ahead = start + inner
            a = tl.load(a_ptr + rows[:, None] * k + ahead[None, :], ahead[None, :] < k, other=0.0)
            b = tl.load(b_ptr + ahead[:, None] * n + columns[None, :], ahead[:, None] < k, 0.0)
            total += tl.dot(a, b)
        at_row = tl.program_id(0) * TILE + tl.arange(0, TILE)[:, None]
        at_column = tl.program_id(1) * TILE + tl.arange(0, TILE)[None, :]
        inside = (at_row < m) & (at_column < n)
        tl.store(c_ptr + at_row * n + at_column, total.to(tl.float16), inside)

    return product


def multiplied(kernel: Any, m: int, n: int, k: int) -> tuple[int, int]:
    """Checks a product in float16; returns how many accesses have 2 bytes, and how many more."""
    rng = np.random.default_rng(m * n * k)
    a = rng.integers(-3, 4, (m, k)).astype(np.float16)
    b = rng.integers(-3, 4, (k, n)).astype(np.float16)
    c = np.full((m + 1, n), 77, np.float16)
    with triton.launch_options(count=True) as report:
        kernel[(-(-m // 32), -(-n // 32))](a, b, c, m, n, k, TILE=32, num_warps=4)
    np.testing.assert_array_equal(
        c[:m].astype(np.float32), a.astype(np.float32) @ b.astype(np.float32)
    )
    np.testing.assert_array_equal(c[m], 77)
    counters = report.launches[0].counters or {"device_accesses_2": 0}
    single = counters.pop("device_accesses_2")
    return single, sum(n for name, n in counters.items() if name.startswith("device_accesses"))


SIZES = [(64, 64, 64), (64, 40, 72), (60, 68, 52), (33, 100, 200), (65, 35, 33), (64, 66, 34)]


@pytest.mark.parametrize(("m", "n", "k"), SIZES)
def test_products_of_all_multiples_are_right(m: int, n: int, k: int) -> None:
    multiplied(wrapped_kernel(), m, n, k)


@needs_counters
@pytest.mark.own_route
def test_places_that_wrap_around_at_a_multiple_of_4_are_read_together() -> None:
    kernel = wrapped_kernel()
    for n in (64, 72, 68):  # multiples of 16, 8 and 4
        assert multiplied(kernel, 64, n, n)[0] == 0
    single, wide = multiplied(kernel, 64, 70, 70)
    assert single > 2 * wide
    assert len(kernel.device_caches[0][0]) == 4


@triton.jit
def add_number(x_ptr, number, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(x_ptr + at, tl.load(x_ptr + at) + number)


@triton.jit
def passed_on(number):
    return number + 1


@triton.jit
def store_number(x_ptr, number, steps):
    for _ in range(steps):
        number = passed_on(number)
    tl.store(x_ptr, number)


@pytest.mark.own_route
def test_numbers_that_no_address_or_mask_depends_on_share_a_kernel() -> None:
    told: list[str] = []
    x = np.zeros(32, np.int32)
    with knobs.runtime.scope():
        knobs.runtime.jit_cache_hook = lambda **given: told.append(given["key"])
        for number in (2, 3, 4, 8, 12, 24):
            add_number[(1,)](x, number, BLOCK=32)
            store_number[(1,)](x, number, number)
            assert x[0] == 2 * number
        assert len(told) == 2
        add_number[(1,)](x, 16, BLOCK=32)  # Triton's own class
        assert len(told) == 3


@triton.jit
def shifted(x_ptr, y_ptr, by, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + 256 + (at + by)))


@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.float32, np.int64])
def test_offsets_of_either_sign_and_every_multiple_are_added(dtype: Any) -> None:
    array = np.arange(400).astype(dtype)
    for by in (*range(-17, 18), -100, 80):
        y = np.zeros(64, dtype)
        shifted[(1,)](array, y, by, BLOCK=64)
        np.testing.assert_array_equal(y, array[256 + by : 320 + by])


@pytest.mark.own_route
def test_parameters_that_are_not_specialised_are_told_nothing() -> None:
    def kernel(x_ptr, y_ptr, by, BLOCK: tl.constexpr):
        at = tl.arange(0, BLOCK)
        tl.store(y_ptr + at, tl.load(x_ptr + at + by))

    x, y = np.arange(128, dtype=np.float32), np.zeros(64, np.float32)
    for options, kernels in (
        ({"do_not_specialize": ["by"]}, 1),
        ({"do_not_specialize_on_alignment": ["by"]}, 2),
        ({}, 5),
    ):
        made = triton.jit(kernel, **options)
        for by in (1, 2, 3, 4, 8, 12, 16, 40):
            made[(1,)](x, y, by, BLOCK=64)
            np.testing.assert_array_equal(y, x[by : by + 64])
        assert len(made.device_caches[0][0]) == kernels


@pytest.mark.own_route
def test_a_saved_specialisation_keeps_the_multiple() -> None:
    told: list[str] = []
    x, y = np.arange(400, dtype=np.float32), np.zeros(64, np.float32)
    with knobs.runtime.scope():
        knobs.runtime.jit_cache_hook = lambda **given: told.append(
            given["compile"]["specialization_data"]
        )
        made = triton.jit(shifted.fn)
        before = made.warmup(x, y, 8, BLOCK=64, grid=(1,))
        assert "tt.divisibility = 8 : i32" in before.asm["ttir"]
        made.device_caches[0][0].clear()
        assert made.preload(told[0]).hash == before.hash


@triton.jit
def of_tuple(x_ptr, y_ptr, places, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y_ptr + at + places[0], tl.load(x_ptr + at + places[1]))


def test_parts_of_a_tuple_are_told_their_multiples() -> None:
    x = np.arange(128, dtype=np.float32)
    for places in ((0, 4), (8, 3), (5, 12), (16, 24)):
        y = np.zeros(128, np.float32)
        of_tuple[(1,)](x, y, places, BLOCK=64)
        first, second = places
        np.testing.assert_array_equal(y[first : first + 64], x[second : second + 64])
