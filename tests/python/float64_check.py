"""IEEE arithmetic of float64 bit for bit against NumPy, on random and on all special operands.

    make float64 N=1000000 SEED=1

Operands are uniform over bit patterns, of nearly equal exponents, subnormal, short (so that results are exact or lie half way
between two numbers), and neighbours of each other. Any NaN is right where NumPy has one.
"""

from __future__ import annotations

import argparse
import ctypes
import ctypes.util
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import triton_metal as triton
import triton_metal.language as tl

BLOCK = 256

SPECIAL = np.array(
    [
        *(0x0, 0x1, 0x2, 0x3, 0x000FFFFFFFFFFFFF, 0x0010000000000000, 0x0010000000000001),
        *(0x7FEFFFFFFFFFFFFF, 0x7FF0000000000000, 0x7FF8000000000000, 0x7FF0000000000001),
        *(0x3FF0000000000000, 0x3FF0000000000001, 0x3FEFFFFFFFFFFFFF, 0x4000000000000000),
        *(0x3FE0000000000000, 0x3FDFFFFFFFFFFFFF, 0x3FF8000000000000, 0x4004000000000000),
        # The bounds of the integers, of exact integers, of float32, float16 and bfloat16.
        *(0x43E0000000000000, 0x43DFFFFFFFFFFFFF, 0x43F0000000000000, 0x43EFFFFFFFFFFFFF),
        *(0x41E0000000000000, 0x41DFFFFFFFC00000, 0x41EFFFFFFFE00000, 0x40EFFFE000000000),
        *(0x4330000000000000, 0x4340000000000000, 0x432FFFFFFFFFFFFF, 0x405FC00000000000),
        *(0x47EFFFFFE0000000, 0x47EFFFFFEFFFFFFF, 0x47EFFFFFF0000000, 0x47EFE00000000000),
        *(0x47EFF00000000000, 0x40EFFC0000000000, 0x40EFFDFFFFFFFFFF, 0x40EFFE0000000000),
        *(0x36A0000000000000, 0x3690000000000000, 0x3690000000000001, 0x3810000000000000),
        *(0x3E70000000000000, 0x3E60000000000000, 0x3E60000000000001, 0x3F10000000000000),
    ],
    np.uint64,
)
SPECIAL = np.concatenate([SPECIAL, SPECIAL | np.uint64(1 << 63)]).view(np.float64)


def special_pairs() -> tuple[np.ndarray, np.ndarray]:
    x, y = np.meshgrid(SPECIAL, SPECIAL)
    return _whole(x.ravel()), _whole(y.ravel())


def _whole(x: np.ndarray) -> np.ndarray:
    """Repeated, to a whole number of blocks."""
    return np.resize(x, -(-len(x) // BLOCK) * BLOCK)


def operands(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Three operands of a kind each, all kinds in equal parts."""
    count = -(-count // BLOCK) * BLOCK
    fractions = 0x800FFFFFFFFFFFFF

    def bits(mask: int = 2**64 - 1) -> np.ndarray:
        return rng.integers(0, 2**64, count, np.uint64) & np.uint64(mask)

    def with_exponent(exponent: np.ndarray) -> np.ndarray:
        return bits(fractions) | (exponent.astype(np.uint64) & np.uint64(0x7FF)) << np.uint64(52)

    def short() -> np.ndarray:
        cut = rng.integers(0, 53, count).astype(np.uint64)
        exponent = rng.integers(1023 - 40, 1023 + 40, count)
        return with_exponent(exponent) & ~((np.uint64(1) << cut) - np.uint64(1))

    x = bits()
    exponent = (x >> np.uint64(52)).astype(np.int64)
    near = with_exponent(exponent + rng.integers(-60, 61, count))
    opposite = with_exponent(2046 - exponent + rng.integers(-4, 5, count))
    subnormal = bits(fractions)
    beside = x + rng.integers(0, 9, count).astype(np.uint64) - np.uint64(4)
    pairs = [(x, bits()), (x, near), (x, opposite), (x, subnormal), (subnormal, bits(fractions))]
    pairs += [
        (short(), short()),
        (x, beside ^ np.uint64(1 << 63)),
        (x, SPECIAL[bits() % 80].view(np.uint64)),
    ]
    kind = rng.integers(0, len(pairs), count)
    a = np.choose(kind, [first for first, _ in pairs]).view(np.float64)
    b = np.choose(kind, [second for _, second in pairs]).view(np.float64)
    with np.errstate(all="ignore"):
        product = -(a * b)
    # Addends that cancel the product, that are near it, and any.
    near = product.view(np.uint64) + rng.integers(0, 5, count).astype(np.uint64) - np.uint64(2)
    c = np.choose(rng.integers(0, 4, count), [product.view(np.uint64), near, bits(), short()])
    return a, b, c.view(np.float64)


@triton.jit
def arithmetic(x, y, z, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i)
    b = tl.load(y + i)
    tl.store(out + i, a + b)
    tl.store(out + n + i, a - b)
    tl.store(out + 2 * n + i, a * b)
    tl.store(out + 3 * n + i, a / b)
    tl.store(out + 4 * n + i, tl.sqrt(a))
    tl.store(out + 5 * n + i, tl.fma(a, b, tl.load(z + i)))
    tl.store(out + 6 * n + i, -a)
    tl.store(out + 7 * n + i, tl.abs(a))
    tl.store(out + 8 * n + i, tl.floor(a))
    tl.store(out + 9 * n + i, tl.ceil(a))


@triton.jit
def comparisons(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i)
    b = tl.load(y + i)
    tl.store(out + i, a < b)
    tl.store(out + n + i, a <= b)
    tl.store(out + 2 * n + i, a > b)
    tl.store(out + 3 * n + i, a >= b)
    tl.store(out + 4 * n + i, a == b)
    tl.store(out + 5 * n + i, a != b)


@triton.jit
def extremes(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i)
    b = tl.load(y + i)
    tl.store(out + i, tl.maximum(a, b))
    tl.store(out + n + i, tl.minimum(a, b))
    tl.store(out + 2 * n + i, tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL))
    tl.store(out + 3 * n + i, tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL))
    tl.store(out + 4 * n + i, tl.where(a < b, a, b))


@triton.jit
def convert(x, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i).to(out.dtype.element_ty))


@triton.jit
def remainder(x, y, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i) % tl.load(y + i))


class Mismatch(AssertionError):
    """A result that differs from NumPy's."""


def same(name: str, actual: np.ndarray, expected: np.ndarray, *inputs: np.ndarray) -> None:
    """Bit for bit, with any NaN for a NaN."""
    actual, expected = np.asarray(actual), np.asarray(expected, actual.dtype)
    wrong = np.zeros(actual.shape, bool)
    if actual.dtype.kind in "iub":
        wrong = actual != expected
    else:
        words = f"u{actual.dtype.itemsize}"
        isnan = np.isnan(expected.astype(np.float64))
        wrong = np.where(
            isnan, ~np.isnan(actual.astype(np.float64)), actual.view(words) != expected.view(words)
        )
    if wrong.any():
        at = int(np.argmax(wrong))
        of = ", ".join(
            f"{float(x[at]).hex()}" if x.dtype.kind == "f" else str(x[at]) for x in inputs
        )
        raise Mismatch(
            f"{name}({of}) is {actual[at]!r}, not {expected[at]!r}; {int(wrong.sum())} of {wrong.size} are wrong"
        )


def exact_fma(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """The C library's fma, which rounds once."""
    function = ctypes.CDLL(ctypes.util.find_library("m")).fma
    function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double] * 3
    return np.array(
        [function(a, b, c) for a, b, c in zip(x.tolist(), y.tolist(), z.tolist(), strict=True)]
    )


def _ordered(x: np.ndarray, y: np.ndarray, greater: bool, ignores_nan: bool) -> np.ndarray:
    """The greater or the lesser of two, where +0 is above -0."""
    larger = (x > y) | ((x == y) & ~np.signbit(x))
    result = np.where(larger == greater, x, y)
    result = np.where((x == y) & (np.signbit(x) == np.signbit(y)), x, result)
    first, second = (y, x) if ignores_nan else (x, y)
    result = np.where(np.isnan(x), first, result)
    return np.where(np.isnan(y), np.where(np.isnan(x) & ignores_nan, np.nan, second), result)


def check_arithmetic(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> None:
    n = len(x)
    out = np.zeros((10, n))
    arithmetic[(n // BLOCK,)](x, y, z, out, n, BLOCK)
    with np.errstate(all="ignore"):
        expected = [x + y, x - y, x * y, x / y, np.sqrt(x), exact_fma(x, y, z), -x, np.abs(x)]
        expected += [np.floor(x), np.ceil(x)]
    names = ("add", "sub", "mul", "div", "sqrt", "fma", "neg", "abs", "floor", "ceil")
    for name, actual, wanted in zip(names, out, expected, strict=True):
        same(name, actual, wanted, x, y, z)


def check_comparisons(x: np.ndarray, y: np.ndarray) -> None:
    n = len(x)
    out = np.zeros((6, n), bool)
    comparisons[(n // BLOCK,)](x, y, out, n, BLOCK)
    expected = [x < y, x <= y, x > y, x >= y, x == y, x != y]
    for name, actual, wanted in zip(("<", "<=", ">", ">=", "==", "!="), out, expected, strict=True):
        same(name, actual, wanted, x, y)


def check_extremes(x: np.ndarray, y: np.ndarray) -> None:
    n = len(x)
    out = np.zeros((5, n))
    extremes[(n // BLOCK,)](x, y, out, n, BLOCK)
    for row, (greater, ignores) in enumerate(
        ((True, True), (False, True), (True, False), (False, False))
    ):
        same(f"extreme {row}", out[row], _ordered(x, y, greater, ignores), x, y)
    same("where", out[4], np.where(x < y, x, y), x, y)


def rounded_to_odd(x: np.ndarray) -> np.ndarray:
    """The float32 below in magnitude, with its last bit set where that is not x: a second rounding then sees it."""
    with np.errstate(all="ignore"):
        near = x.astype(np.float32)
        near = np.where(
            np.isinf(near) & ~np.isinf(x),
            np.copysign(np.finfo(np.float32).max, x).astype(np.float32),
            near,
        )
        above = np.abs(near.astype(np.float64)) > np.abs(x)
        near = np.where(above, np.nextafter(near, np.float32(0)), near)
        inexact = (near.astype(np.float64) != x) & ~np.isnan(x)
    return (near.view(np.uint32) | inexact).astype(np.uint32).view(np.float32)


def to_integers(x: np.ndarray, dtype: Any) -> np.ndarray:
    """Toward zero, to the nearest integer of the type; 0 for a NaN."""
    info = np.iinfo(dtype)
    whole = np.trunc(np.where(np.isnan(x), 0.0, x))
    inside = (whole > float(info.min)) & (whole < float(info.max))
    result = np.where(inside, whole, 0.0).astype(dtype)
    result = np.where(whole <= float(info.min), np.array(info.min, dtype), result)
    return np.where(whole >= float(info.max), np.array(info.max, dtype), result)


INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def check_conversions(x: np.ndarray) -> None:
    import ml_dtypes

    n = len(x)
    expected: dict[Any, Callable[[], np.ndarray]] = {
        np.dtype(np.float32): lambda: x.astype(np.float32),
        np.dtype(np.float16): lambda: x.astype(np.float16),
        np.dtype(ml_dtypes.bfloat16): lambda: rounded_to_odd(x).astype(ml_dtypes.bfloat16),
        np.dtype(bool): lambda: x != 0,
    }
    for name in INTEGERS:
        expected[np.dtype(name)] = lambda name=name: to_integers(x, name)
    for dtype, make in expected.items():
        out = np.zeros(n, dtype)
        convert[(n // BLOCK,)](x, out, BLOCK)
        with np.errstate(all="ignore"):
            same(f"to {dtype}", out, make(), x)
    words = x.view(np.uint64)
    sources = {name: words.astype(name) for name in INTEGERS}
    sources |= {"float32": words.astype(np.uint32).view(np.float32), "bool": words & 1 == 1}
    sources |= {"float16": words.astype(np.uint16).view(np.float16)}
    sources |= {"bfloat16": words.astype(np.uint16).view(ml_dtypes.bfloat16)}
    for name, source in sources.items():
        out = np.zeros(n)
        convert[(n // BLOCK,)](source, out, BLOCK)
        with np.errstate(all="ignore"):
            same(f"from {name}", out, source.astype(np.float64), source)


def check_remainder(x: np.ndarray, y: np.ndarray) -> None:
    out = np.zeros(len(x))
    remainder[(len(x) // BLOCK,)](x, y, out, BLOCK)
    with np.errstate(all="ignore"):
        same("fmod", out, np.fmod(x, y), x, y)


def check(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> None:
    check_arithmetic(x, y, z)
    check_comparisons(x, y)
    check_extremes(x, y)
    check_conversions(x)
    few = BLOCK * 16
    check_remainder(x[:few], y[:few])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    start = time.monotonic()
    x, y = special_pairs()
    for z in (y, -x, np.roll(x, 7), np.resize(SPECIAL, len(x))):
        check(x, y, z)
    rng = np.random.default_rng(arguments.seed)
    done = 0
    while done < arguments.count:
        x, y, z = operands(rng, min(arguments.count - done, 1 << 18))
        check(x, y, z)
        done += len(x)
    print(
        f"float64: add, sub, mul, div, sqrt, fma, neg, abs, floor, ceil, comparisons, minimum and maximum, conversions: the bits of NumPy "
        f"on {done:,} random operands and all pairs of {len(SPECIAL)} special ones, in {time.monotonic() - start:.0f} s"
    )


if __name__ == "__main__":
    main()
