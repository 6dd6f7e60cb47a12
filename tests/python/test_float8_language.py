"""Floats of 8 bits in kernels: memory, constants, arithmetic, shapes, and arrays of ml_dtypes and torch."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl

from float8_model import FORMATS
from kernel_support import torch_or_skip

# MLX has no arrays of them, and PyTorch few operations on "mps".
pytestmark = pytest.mark.own_route

ARRAYS = [name for name, format in FORMATS.items() if format.numpy]


def numbers(name: str, size: int, seed: int = 0) -> np.ndarray:
    """Every finite number of the format, in a random order."""
    format = FORMATS[name]
    codes = np.random.default_rng(seed).permutation(np.resize(np.arange(256), size))
    codes = np.where(np.isfinite(format.values()[codes]), codes, 0).astype(np.uint8)
    return codes.view(format.dtype())


@triton.jit
def copy_kernel(x, out, n, OTHER: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n, other=OTHER))


@pytest.mark.parametrize("other", [0, 1.5, -3.3, 1e9])
@pytest.mark.parametrize("name", ARRAYS)
def test_masked_loads(name: str, other: float) -> None:
    format = FORMATS[name]
    x = numbers(name, 512)
    out = np.zeros(512, x.dtype)
    copy_kernel[(1,)](x, out, 300, OTHER=other, BLOCK=512)
    expected = x.view(np.uint8).copy()
    expected[300:] = format.encode(np.float32(other))
    np.testing.assert_array_equal(out.view(np.uint8), expected)


@triton.jit
def arithmetic_kernel(x, y, out, less, BLOCK: tl.constexpr, OP: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a, b = tl.load(x + i), tl.load(y + i)
    if OP == "add":
        c = a + b
    elif OP == "mul":
        c = a * b
    elif OP == "sub":
        c = a - b
    elif OP == "max":
        c = tl.maximum(a, b)
    elif OP == "neg":
        c = -a
    else:
        c = tl.abs(a)
    tl.store(out + i, c)
    tl.store(less + i, a < b)


@pytest.mark.parametrize("op", ["add", "sub", "mul", "max", "neg", "abs"])
@pytest.mark.parametrize("name", ARRAYS)
def test_arithmetic_rounds_once(name: str, op: str) -> None:
    format = FORMATS[name]
    x, y = numbers(name, 4096, 1), numbers(name, 4096, 2)
    out, less = np.zeros(4096, x.dtype), np.zeros(4096, bool)
    arithmetic_kernel[(1,)](x, y, out, less, BLOCK=4096, OP=op)
    a, b = x.astype(np.float64), y.astype(np.float64)
    function = {
        "add": np.add,
        "sub": np.subtract,
        "mul": np.multiply,
        "max": np.maximum,
        "neg": lambda a, _: -a,
        "abs": lambda a, _: np.abs(a),
    }[op]
    exact = function(a, b)
    values = format.values()
    got = values[out.view(np.uint8)]
    np.testing.assert_array_equal(got, values[format.encode(exact)])
    np.testing.assert_array_equal(less, a < b)


@triton.jit
def shapes_kernel(x, out, joined, M: tl.constexpr, N: tl.constexpr):
    rows, columns = tl.arange(0, M), tl.arange(0, N)
    tile = tl.load(x + rows[:, None] * N + columns[None, :])
    turned = tl.trans(tile).reshape(M, N)
    chosen = tl.where(rows[:, None] % 2 == 0, turned, tile)
    tl.store(out + rows[:, None] * N + columns[None, :], chosen)
    pairs = tl.join(tile, turned).reshape(M, 2 * N)
    wide = tl.arange(0, 2 * N)
    tl.store(joined + rows[:, None] * (2 * N) + wide[None, :], pairs)


@pytest.mark.parametrize("name", ARRAYS)
def test_shapes_move_codes(name: str) -> None:
    x = numbers(name, 32 * 64).reshape(32, 64)
    out, joined = np.zeros_like(x), np.zeros((32, 128), x.dtype)
    shapes_kernel[(1,)](x, out, joined, M=32, N=64)
    code = x.view(np.uint8)
    turned = code.T.reshape(32, 64)
    expected = np.where(np.arange(32)[:, None] % 2 == 0, turned, code)
    np.testing.assert_array_equal(out.view(np.uint8), expected)
    pairs = np.stack([code, turned], axis=-1).reshape(32, 128)
    np.testing.assert_array_equal(joined.view(np.uint8), pairs)


@triton.jit
def sums_kernel(x, largest, total, M: tl.constexpr, N: tl.constexpr):
    rows, columns = tl.arange(0, M), tl.arange(0, N)
    tile = tl.load(x + rows[:, None] * N + columns[None, :])
    tl.store(largest + rows, tl.max(tile, axis=1))
    tl.store(total + rows, tl.sum(tile.to(tl.float32), axis=1))


@pytest.mark.parametrize("name", ARRAYS)
def test_reductions(name: str) -> None:
    x = numbers(name, 16 * 128).reshape(16, 128)
    largest, total = np.zeros(16, np.float32), np.zeros(16, np.float32)
    sums_kernel[(1,)](x, largest, total, M=16, N=128)
    np.testing.assert_array_equal(largest, x.astype(np.float32).max(axis=1))
    np.testing.assert_allclose(total, x.astype(np.float64).sum(axis=1), rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_of_torch(name: str) -> None:
    torch = torch_or_skip()
    element = getattr(torch, FORMATS[name].numpy)
    x = torch.arange(256, dtype=torch.int16).to(torch.uint8).view(element)
    out = torch.zeros(256, dtype=torch.uint8).view(element)
    copy_kernel[(1,)](x, out, 256, OTHER=0, BLOCK=256)
    assert torch.equal(out.view(torch.uint8), x.view(torch.uint8))


@triton.jit
def promotion_kernel(x, y, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a, b = tl.load(x + i), tl.load(y + i)
    total = a + b
    tl.static_assert(total.dtype == tl.float16)
    tl.static_assert((a * 2).dtype == a.dtype)
    tl.static_assert((a / b).dtype == tl.float32)
    tl.store(out + i, total)


def test_different_formats_meet_in_float16() -> None:
    x, y = numbers("float8e4nv", 256, 3), numbers("float8e4b8", 256, 4)
    out = np.zeros(256, np.float16)
    promotion_kernel[(1,)](x, y, out, BLOCK=256)
    np.testing.assert_array_equal(out, x.astype(np.float16) + y.astype(np.float16))


@triton.jit
def integers_kernel(x, small, back, SMALL: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    number = tl.load(x + i).to(SMALL)
    tl.store(small + i, number.to(tl.uint8, bitcast=True))
    tl.store(back + i, number.to(tl.int32))


@pytest.mark.parametrize("name", ["float8e5", "float8e4nv"])
def test_integers(name: str) -> None:
    format = FORMATS[name]
    x = np.concatenate([np.arange(-512, 508), [2**31 - 1, -(2**31), 2**25 + 1, -(2**24) - 1]])
    x = x.astype(np.int32)
    small, back = np.zeros(1024, np.uint8), np.zeros(1024, np.int32)
    integers_kernel[(1,)](x, small, back, SMALL=getattr(tl, name), BLOCK=1024)
    np.testing.assert_array_equal(small, format.encode(x))
    np.testing.assert_array_equal(back, np.trunc(format.values()[small]))


def test_zeros_of_ml_dtypes_are_zero() -> None:
    """The two formats without a negative zero have a NaN in its place."""
    for name in ("float8_e4m3fnuz", "float8_e5m2fnuz"):
        assert np.isnan(np.array([0x80], np.uint8).view(getattr(ml_dtypes, name)))


@triton.jit
def larger(a, b):
    return tl.where(a > b, a, b)


@triton.jit
def plus(a, b):
    return a + b


@triton.jit
def combine_kernel(x, largest, sums, N: tl.constexpr):
    i = tl.arange(0, N)
    tile = tl.load(x + i)
    tl.store(largest, tl.reduce(tile, 0, larger))
    tl.store(sums + i, tl.associative_scan(tile, 0, plus))


@pytest.mark.parametrize("name", ARRAYS)
def test_combine_functions(name: str) -> None:
    format = FORMATS[name]
    x = numbers(name, 256, 9)
    largest, sums = np.zeros(1, x.dtype), np.zeros(256, x.dtype)
    combine_kernel[(1,)](x, largest, sums, N=256)
    assert largest.astype(np.float32) == x.astype(np.float32).max()
    # Sums of small whole numbers are exact in any order.
    whole = np.resize([1.0, -1.0, 2.0, -2.0, 0.0], 256)
    x = format.encode(whole).view(x.dtype)
    combine_kernel[(1,)](x, largest, sums, N=256)
    np.testing.assert_array_equal(sums.astype(np.float64), np.cumsum(whole))


@triton.jit
def selecting_kernel(x, y, magnitude, larger, smaller, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(magnitude + i, tl.abs(a))
    tl.store(larger + i, tl.maximum(a, b))
    tl.store(smaller + i, tl.minimum(a, b))


@pytest.mark.parametrize("name", ARRAYS)
def test_operations_that_round_nothing_keep_infinities_and_codes(name: str) -> None:
    format = FORMATS[name]
    codes = np.arange(256, dtype=np.uint8)
    values = format.values()
    x = codes.view(format.dtype())
    y = np.random.default_rng(3).permutation(codes).view(format.dtype())
    magnitude, larger, smaller = (np.zeros(256, x.dtype) for _ in range(3))
    selecting_kernel[(1,)](x, y, magnitude, larger, smaller, BLOCK=256)
    a, b = values[x.view(np.uint8)], values[y.view(np.uint8)]
    np.testing.assert_array_equal(values[magnitude.view(np.uint8)], np.abs(a))
    np.testing.assert_array_equal(values[larger.view(np.uint8)], np.fmax(a, b))
    np.testing.assert_array_equal(values[smaller.view(np.uint8)], np.fmin(a, b))


@triton.jit
def magnitude_kernel(x, out, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out + i, tl.abs(tl.load(x + i)))


def test_the_magnitude_of_every_code_of_fp8e4b15_is_the_code_without_its_sign() -> None:
    torch = torch_or_skip()
    codes = torch.arange(256, dtype=torch.uint8)
    out = torch.zeros(256, dtype=torch.uint8)
    x, magnitude = (triton.reinterpret(codes_, tl.float8e4b15) for codes_ in (codes, out))
    magnitude_kernel[(1,)](x, magnitude, BLOCK=256)
    assert torch.equal(out, codes & 0x7F)
