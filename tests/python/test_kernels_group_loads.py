"""Loads whose neighbours have one address: the scales of groups, packed numbers, a channel's bias."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from kernel_support import needs_counters, tl, triton


@triton.jit
def scale_kernel(x_ptr, scales_ptr, out_ptr, n, shift, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    """Each number times its group's scale. Groups begin `shift` in front of the array."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    scale = tl.load(scales_ptr + (at + shift) // GROUP, mask=inside, other=0)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=inside, other=0) * scale, mask=inside)


@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16", "int8", "int64"])
@pytest.mark.parametrize("group", [1, 2, 16, 24, 64, 4096])
@pytest.mark.parametrize(("n", "shift"), [(2048, 0), (2000, 16), (1999, 0), (2048, 5), (2048, 64)])
def test_each_number_has_its_group_s_scale(name: str, group: int, n: int, shift: int) -> None:
    rng = np.random.default_rng(group)
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    x = rng.integers(-3, 4, n).astype(dtype)
    scales = rng.integers(-3, 4, (n + shift) // group + 1).astype(dtype)
    out = np.full(n + 8, 77).astype(dtype)
    scale_kernel[(-(-n // 512),)](x, scales, out, n, shift, GROUP=group, BLOCK=512)
    expected = x * scales[(np.arange(n) + shift) // group]
    np.testing.assert_array_equal(out[:n].astype(np.float64), expected.astype(np.float64))
    np.testing.assert_array_equal(out[n:].astype(np.float64), 77)


@triton.jit
def negative_kernel(x_ptr, out_ptr, shift, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + 16 + (at - shift) // GROUP))


@pytest.mark.parametrize("shift", [0, 16, 48, 64, 100])
def test_quotients_of_negative_numbers_round_to_zero(shift: int) -> None:
    array = np.arange(32, dtype=np.float32)
    out = np.empty(128, np.float32)
    negative_kernel[(1,)](array, out, shift, GROUP=16, BLOCK=128)
    quotients = np.trunc((np.arange(128) - shift) / 16).astype(int)
    np.testing.assert_array_equal(out, 16 + quotients)


@triton.jit
def unpack_kernel(words_ptr, scales_ptr, out_ptr, ROWS: tl.constexpr, K: tl.constexpr):
    """Numbers of 4 bits, eight in a word, with a scale for each 32 of a row."""
    rows, k = tl.arange(0, ROWS)[:, None], tl.arange(0, K)[None, :]
    words = tl.load(words_ptr + rows * (K // 8) + k // 8)
    scales = tl.load(scales_ptr + rows * (K // 32) + k // 32)
    tl.store(out_ptr + rows * K + k, ((words >> (k % 8) * 4) & 15).to(tl.float32) * scales)


@needs_counters
@pytest.mark.own_target
def test_a_thread_reads_a_word_once_for_all_of_its_numbers() -> None:
    rows, k = 16, 256
    rng = np.random.default_rng(3)
    words = rng.integers(0, 1 << 32, (rows, k // 8), dtype=np.uint32)
    scales = rng.standard_normal((rows, k // 32)).astype(np.float32)
    out = np.empty((rows, k), np.float32)
    with triton.launch_options(count=True) as report:
        unpack_kernel[(1,)](words.view(np.int32), scales, out, ROWS=rows, K=k)
    numbers = (words[..., None] >> np.arange(8, dtype=np.uint32) * 4) & 15
    expected = numbers.reshape(rows, k) * np.repeat(scales, 32, axis=1)
    np.testing.assert_array_equal(out, expected.astype(np.float32))
    # A thread stores vectors of four floats: one word and one scale for each.
    assert report.launches[0].counters["device_accesses_4"] == 2 * rows * k // 4
    assert report.launches[0].counters["device_accesses_16"] == rows * k // 4
