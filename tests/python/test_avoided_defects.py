"""Kernels whose plain text would meet a known defect of Apple's compiler (docs/apple-quirks.md): the text avoids it, and is right."""

from __future__ import annotations

import re

import numpy as np
import pytest
import triton_metal
import triton_metal.language as tl


def _metal(kernel) -> str:
    return kernel.asm["metal"]


def test_the_bound_of_one_warp_is_64():
    @triton_metal.jit
    def one_warp(x):
        tl.store(x + tl.arange(0, 32), tl.arange(0, 32))

    x = np.zeros(32, np.int32)
    text = _metal(one_warp[(1,)](x, num_warps=1))
    assert "max_total_threads_per_threadgroup(64)" in text
    np.testing.assert_array_equal(x, np.arange(32))


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("divisor", [1, -1, 2, -2, 3, -7, 100, 127, -128])
def test_remainders_of_negative_numbers_need_no_percent_sign(dtype, divisor):
    @triton_metal.jit
    def remainders(x, y, z, d, B: tl.constexpr, D: tl.constexpr):
        o = tl.arange(0, B)
        v = tl.load(x + o)
        tl.store(y + o, v % D)
        tl.store(z + o, v % d)

    info = np.iinfo(dtype)
    edges = [info.min + 1, info.min + 2, -101, -100, -8, -7, -3, -1, 0, 1, 3, 7, 100, info.max]
    if divisor != -1:
        edges[0] = info.min
    x = np.resize(np.array(edges, dtype), 256)
    y, z = np.zeros_like(x), np.zeros_like(x)
    kernel = remainders[(1,)](x, y, z, divisor, 256, divisor)
    expected = np.array(
        [
            int(np.fmod(int(v), divisor)) if abs(int(v)) < 2**50 else _remainder(int(v), divisor)
            for v in x
        ],
        dtype,
    )
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(z, expected)
    assert "%" not in re.sub(r"//.*", "", _metal(kernel))


def _remainder(a: int, b: int) -> int:
    magnitude = abs(a) % abs(b)
    return -magnitude if a < 0 else magnitude


@pytest.mark.parametrize(
    ("dtype", "first", "second"),
    [
        (f"uint{bits}", first, second)
        for bits in (8, 16, 32, 64)
        for first in (2, 3, 10, 64, 65536)
        for second in (3, 5, 6, 7, 12, 70001)
        if first < 2**bits and second < 2**bits
    ],
)
def test_remainders_of_quotients(dtype, first, second):
    bits = np.iinfo(dtype).bits

    @triton_metal.jit
    def quotients(x, y, z, B: tl.constexpr, F: tl.constexpr, S: tl.constexpr):
        o = tl.arange(0, B)
        v = tl.load(x + o)
        tl.store(y + o, (v // F) % S)
        tl.store(z + o, ((v // F) // 2) % S)

    random = np.random.default_rng(1)
    x = random.integers(0, 2**bits, 256, np.uint64, endpoint=False).astype(dtype)
    x[:4] = [0, 1, 2**bits - 1, 2**bits - 2]
    edges = [k * first * second + d for k in (1, 2, 3) for d in (-1, 0, 1)]
    edges = [edge for edge in edges if edge < 2**bits]
    x[4 : 4 + len(edges)] = edges
    y, z = np.zeros_like(x), np.zeros_like(x)
    kernel = quotients[(1,)](x, y, z, 256, first, second)
    np.testing.assert_array_equal(y, x // first % second)
    np.testing.assert_array_equal(z, x // first // 2 % second)
    # A division may follow a remainder; a remainder may not follow a division.
    assert not re.search(r"(/|>>)[^;=]*\) % ", _metal(kernel))


def test_wide_remainders_of_narrow_numbers_are_narrow():
    @triton_metal.jit
    def narrow(x, y, z, B: tl.constexpr):
        o = tl.arange(0, B)
        a = tl.load(x + o).to(tl.uint64)
        b = tl.load(y + o).to(tl.uint64)
        tl.store(z + o, a % b)

    x = np.array([4294967294, 4294967295, 0, 5] * 32, np.uint32)
    y = np.array([3, 4294967295, 7, 6] * 32, np.uint32)
    z = np.zeros(128, np.uint64)
    text = _metal(narrow[(1,)](x, y, z, 128))
    np.testing.assert_array_equal(z, x % y)
    assert not re.search(r"ulong[^;]*%", text)


@pytest.mark.parametrize("size", [64, 512, 2048])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_carried_tiles_change_places_in_one_loop(size, dtype):
    @triton_metal.jit
    def rotate(x, y, n, B: tl.constexpr):
        o = tl.arange(0, B)
        a = tl.load(x + o)
        b = tl.load(x + B + o)
        c = tl.load(x + 2 * B + o)
        d = tl.load(x + 3 * B + o)
        for _ in range(n):
            e = a + 1
            a = b
            b = c
            c = d
            d = e
        tl.store(y + o, a)
        tl.store(y + B + o, b)
        tl.store(y + 2 * B + o, c)
        tl.store(y + 3 * B + o, d)

    x = np.random.default_rng(2).integers(0, 50, 4 * size).astype(dtype)
    for steps in (0, 1, 2, 5, 9):
        y = np.zeros_like(x)
        kernel = rotate[(1,)](x, y, steps, size)
        a, b, c, d = x.reshape(4, size).copy()
        for _ in range(steps):
            a, b, c, d = b, c, d, a + np.ones(1, dtype)
        np.testing.assert_array_equal(y.reshape(4, size), [a, b, c, d])
    text = _metal(kernel)
    # No loop that only copies one array.
    copies = re.findall(r"\+\+i(?:_\d+)?\)\n\s*(\w+)\[i(?:_\d+)?\] = (\w+)\[i(?:_\d+)?\];", text)
    assert not copies, text


def test_tiles_change_places_in_another_order():
    @triton_metal.jit
    def turn(x, y, n, B: tl.constexpr):
        r, c = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
        a = tl.load(x + r * B + c)
        b = tl.load(x + B * B + r * B + c)
        for _ in range(n):
            t = tl.trans(a)
            a = b + 1
            b = t
        tl.store(y + r * B + c, a)
        tl.store(y + B * B + r * B + c, b)

    x = np.random.default_rng(3).integers(0, 99, 2 * 32 * 32).astype(np.int32)
    y = np.zeros_like(x)
    turn[(1,)](x, y, 3, 32)
    a, b = x.reshape(2, 32, 32)
    for _ in range(3):
        a, b = b + 1, a.T
    np.testing.assert_array_equal(y.reshape(2, 32, 32), [a, b])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "bool"])
def test_single_bytes_have_one_offset(dtype):
    @triton_metal.jit
    def rows(x, y, stride, n, B: tl.constexpr):
        row = tl.program_id(0)
        o = tl.arange(0, B)
        v = tl.load(x + row * stride + o, mask=o < n)
        tl.store(y + (row + 1) * stride - 1 - o, v, mask=o < n)

    x = np.random.default_rng(4).integers(0, 2, 4 * 300).astype(dtype)
    y = np.zeros_like(x)
    text = _metal(rows[(4,)](x, y, 300, 299, 512))
    expected = np.zeros((4, 300), dtype)
    expected[:, 1:] = x.reshape(4, 300)[:, :299][:, ::-1]
    np.testing.assert_array_equal(y.reshape(4, 300), expected)
    # No pointer that is moved and then indexed.
    moved = re.findall(r"device (?:const )?u?char \*(\w+) = \w+ \+", text)
    assert not any(re.search(rf"\b{name}\[", text) for name in moved), text


def test_memory_that_a_loop_reads_back_is_coherent():
    @triton_metal.jit
    def repeat(x, y, n, B: tl.constexpr):
        o = tl.arange(0, B)
        for i in range(n):
            v = tl.load(x + o)
            tl.store(x + o, v * 2 + i)
        for i in range(0, n * B, B):
            tl.store(y + i + o, tl.load(y + i + o) + 1)

    x, y = np.ones(128, np.int32), np.zeros(128 * 5, np.int32)
    text = _metal(repeat[(1,)](x, y, 5, 128))
    expected = np.ones(128, np.int32)
    for i in range(5):
        expected = expected * 2 + i
    np.testing.assert_array_equal(x, expected)
    np.testing.assert_array_equal(y, 1)
    assert "coherent(device) device int *x_shared" in text
    # Each step has a place of its own.
    assert "y_shared" not in text


def test_a_loop_whose_condition_no_step_changes_has_a_bound():
    @triton_metal.jit
    def wait(x, n):
        while n > 0:
            tl.store(x, tl.load(x) + 1)

    x = np.zeros(1, np.int32)
    text = _metal(wait[(1,)](x, 0))
    assert "while (true)" not in text
    assert re.search(r"for \(ulong steps = 0; steps < \d+ul && [^;]+; \+\+steps\)", text)
    assert x[0] == 0
