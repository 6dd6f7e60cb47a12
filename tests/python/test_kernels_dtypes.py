"""Arithmetic, comparisons and conversions of every type, on the values where types differ."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

from kernel_support import (
    FLOATS,
    INTEGERS,
    ON_STOCK,
    assert_same,
    assert_within,
    dtype,
    integers,
    normal,
    numbers,
    tl,
    triton,
)

from _bounds import rounding  # isort: skip

N = 256


@triton.jit
def binary_kernel(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr, OP: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x, y = tl.load(x_ptr + offsets), tl.load(y_ptr + offsets)
    if OP == "add":
        z = x + y
    elif OP == "sub":
        z = x - y
    elif OP == "mul":
        z = x * y
    elif OP == "truediv":
        z = x / y
    elif OP == "floordiv":
        z = x // y
    elif OP == "mod":
        z = x % y
    elif OP == "and_":
        z = x & y
    elif OP == "or_":
        z = x | y
    elif OP == "xor":
        z = x ^ y
    elif OP == "lshift":
        z = x << y
    elif OP == "rshift":
        z = x >> y
    elif OP == "minimum":
        z = tl.minimum(x, y)
    elif OP == "maximum":
        z = tl.maximum(x, y)
    elif OP == "lt":
        z = x < y
    elif OP == "le":
        z = x <= y
    elif OP == "gt":
        z = x > y
    elif OP == "ge":
        z = x >= y
    elif OP == "eq":
        z = x == y
    elif OP == "ne":
        z = x != y
    tl.store(out_ptr + offsets, z)


def binary(op: str, x: np.ndarray, y: np.ndarray, out_dtype: Any) -> np.ndarray:
    out = np.empty(N, out_dtype)
    binary_kernel[(1,)](x, y, out, BLOCK=N, OP=op, num_warps=4)
    return out


def with_extremes(x: np.ndarray) -> np.ndarray:
    """The same with the type's own corners in front."""
    if x.dtype.kind in "iu":
        info = np.iinfo(x.dtype)
        corners = [0, 1, info.max, info.min, info.max - 1, info.min + 1]
    else:
        corners = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0]
    corners = np.array(corners).astype(x.dtype)
    x[: 6 * 6] = np.repeat(corners, 6)
    return x


def pair(name: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x, y = with_extremes(numbers(rng, N, name)), numbers(rng, N, name)
    y[: 6 * 6] = np.tile(x[: 6 * 6 : 6], 6)
    return x, y


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("op", ["add", "sub", "mul", "and_", "or_", "xor"])
def test_integers_wrap(op: str, name: str) -> None:
    x, y = pair(name)
    assert_same(binary(op, x, y, name), getattr(operator, op)(x, y))


@pytest.mark.parametrize("name", INTEGERS)
def test_integer_division_truncates(name: str) -> None:
    """As in C, and not as in Python: -7 // 2 is -3, and -7 % 2 is -1."""
    x, y = pair(name)
    y[y == 0] = 3
    if np.iinfo(name).min < 0:
        y[y == -1] = -3  # The lowest number by -1 does not fit.
    pairs = [(int(a), int(b)) for a, b in zip(x, y, strict=True)]
    quotient = [abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) for a, b in pairs]
    remainder = [a - q * b for (a, b), q in zip(pairs, quotient, strict=True)]
    assert_same(binary("floordiv", x, y, name), np.array(quotient, name))
    assert_same(binary("mod", x, y, name), np.array(remainder, name))


@pytest.mark.parametrize("name", INTEGERS)
def test_shifts(name: str) -> None:
    x, _ = pair(name)
    y = (np.arange(N) % np.iinfo(name).bits).astype(name)
    assert_same(binary("lshift", x, y, name), x << y)
    assert_same(binary("rshift", x, y, name), x >> y)


@pytest.mark.parametrize("name", FLOATS + INTEGERS)
@pytest.mark.parametrize("op", ["lt", "le", "gt", "ge", "eq", "ne"])
def test_comparisons(op: str, name: str) -> None:
    x, y = pair(name)
    assert_same(binary(op, x, y, np.int8), getattr(operator, op)(x, y).astype(np.int8))


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("op", ["minimum", "maximum"])
def test_integer_extremes(op: str, name: str) -> None:
    x, y = pair(name)
    assert_same(binary(op, x, y, name), getattr(np, op)(x, y))


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("op", ["minimum", "maximum"])
def test_float_extremes_pass_over_nan(op: str, name: str) -> None:
    x, y = pair(name)
    actual = binary(op, x, y, x.dtype)
    expected = getattr(np, "fmin" if op == "minimum" else "fmax")(x, y)
    # Which zero comes of two is open.
    np.testing.assert_array_equal(actual.astype(np.float64), expected.astype(np.float64))


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("op", ["add", "sub", "mul"])
def test_float_arithmetic_is_exact(op: str, name: str) -> None:
    x, y = pair(name)
    with np.errstate(all="ignore"):
        expected = getattr(operator, op)(x, y)
    assert_same(binary(op, x, y, x.dtype), expected)


@pytest.mark.parametrize("name", FLOATS)
def test_float_division(name: str) -> None:
    x, y = pair(name)
    with np.errstate(all="ignore"):
        expected = x.astype(np.float64) / y.astype(np.float64)
    assert_within(binary("truediv", x, y, np.float32), expected, 4 * rounding(expected, name))


@pytest.mark.own_check(reason="it wants quotients exactly")
@pytest.mark.parametrize("name", INTEGERS)
def test_integer_true_division_is_fp32(name: str) -> None:
    x, y = pair(name)
    y[y == 0] = 3
    expected = x.astype(np.float64) / y.astype(np.float64)
    assert_within(binary("truediv", x, y, np.float32), expected, 4 * rounding(expected, "float32"))


MIXED = [
    ("int8", "int32", "int32"),
    ("int16", "int8", "int16"),
    ("int32", "int64", "int64"),
    ("uint8", "int16", "int16"),
    ("uint8", "uint32", "uint32"),
    ("int8", "uint8", "uint8"),
    ("int32", "uint32", "uint32"),
    ("int64", "uint32", "int64"),
    ("int32", "float16", "float16"),
    ("int32", "float32", "float32"),
    ("float16", "float32", "float32"),
    ("bfloat16", "float32", "float32"),
]


@pytest.mark.parametrize(("left", "right", "result"), MIXED)
def test_promotion(left: str, right: str, result: str) -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.integers(0, 60, N).astype(dtype(n)) for n in (left, right))
    assert_same(
        binary("add", x, y, dtype(result)), x.astype(dtype(result)) + y.astype(dtype(result))
    )
    x, y = (
        np.arange(N).astype(n) if "float" not in n else normal(rng, N, n) for n in (left, right)
    )
    with np.errstate(all="ignore"):
        expected = x.astype(dtype(result)) - y.astype(dtype(result))
    assert_same(binary("sub", x, y, dtype(result)), expected)


@triton.jit
def convert_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets).to(out_ptr.dtype.element_ty))


@pytest.mark.parametrize("target", FLOATS + INTEGERS)
@pytest.mark.parametrize("source", FLOATS + INTEGERS)
def test_conversions(source: str, target: str) -> None:
    """Only values that the target has room for; fractions go towards zero, ties to even."""
    rng = np.random.default_rng(0)
    x = numbers(rng, N, source)
    if "int" in target and "float" in source:
        info = np.iinfo(target)
        room = min(float(info.max), 30_000.0)
        x = (rng.uniform(max(float(info.min), -room), room, N)).astype(dtype(source))
        x = np.clip(x.astype(np.float64), max(info.min, -room), room / 1.01).astype(dtype(source))
    elif target == "float16" and "int" in source:
        x = (x % 60_000).astype(source) if np.iinfo(source).max > 60_000 else x
    elif "float" in source and "float" in target:
        x[:6] = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-6]).astype(x.dtype)
    out = np.empty(N, dtype(target))
    convert_kernel[(1,)](x, out, BLOCK=N, num_warps=2)
    with np.errstate(all="ignore"):
        expected = x.astype(dtype(target))
    if target == "bfloat16" and "int" in source:
        expected = x.astype(np.float32).astype(dtype(target))
    assert_same(out, expected)


@triton.jit
def bitcast_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    tl.store(out_ptr + offsets, x.to(out_ptr.dtype.element_ty, bitcast=True))


@pytest.mark.parametrize(
    ("source", "target"),
    [("float32", "int32"), ("int32", "float32"), ("float16", "int16"), ("int64", "uint64"), ("uint16", "float16"),
     ("bfloat16", "int16"), ("int8", "uint8")],
)  # fmt: skip
def test_bitcasts(source: str, target: str) -> None:
    x = numbers(np.random.default_rng(0), N, source)
    out = np.empty(N, dtype(target))
    bitcast_kernel[(1,)](x, out, BLOCK=N, num_warps=2)
    np.testing.assert_array_equal(
        out.view(x.dtype).view(f"i{x.itemsize}"), x.view(f"i{x.itemsize}")
    )


@triton.jit
def select_kernel(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x, y = tl.load(x_ptr + offsets), tl.load(y_ptr + offsets)
    low, high = x < y, x > 2 * y
    z = tl.where(low, x, tl.where(high, y, tl.where((x + y) % 2 == 0, x * y, -x)))
    z = tl.where(low & high | ~(low | high), z + 1, z)
    z = tl.where((offsets % 3 == 0) & (not False), z, -z)
    tl.store(out_ptr + offsets, z)


def test_chains_of_selects() -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.integers(0, 100, N).astype(np.int32) for _ in range(2))
    out = np.empty(N, np.int32)
    select_kernel[(1,)](x, y, out, BLOCK=N, num_warps=4)
    low, high = x < y, x > 2 * y
    z = np.where(low, x, np.where(high, y, np.where((x + y) % 2 == 0, x * y, -x)))
    z = np.where(~(low | high) | (low & high), z + 1, z)
    assert_same(out, np.where(np.arange(N) % 3 == 0, z, -z).astype(np.int32))


@triton.jit
def unary_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr, OP: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    if OP == "exp":
        y = tl.exp(x)
    elif OP == "exp2":
        y = tl.exp2(x)
    elif OP == "log":
        y = tl.log(x)
    elif OP == "log2":
        y = tl.log2(x)
    elif OP == "sin":
        y = tl.sin(x)
    elif OP == "cos":
        y = tl.cos(x)
    elif OP == "sqrt":
        y = tl.sqrt(x)
    elif OP == "rsqrt":
        y = tl.rsqrt(x)
    elif OP == "erf":
        y = tl.erf(x)
    elif OP == "floor":
        y = tl.floor(x)
    elif OP == "ceil":
        y = tl.ceil(x)
    elif OP == "abs":
        y = tl.abs(x)
    elif OP == "sigmoid":
        y = tl.sigmoid(x)
    elif OP == "negative":
        y = -x
    elif OP == "invert":
        y = ~x
    tl.store(out_ptr + offsets, y)


def unary(op: str, x: np.ndarray) -> np.ndarray:
    out = np.empty_like(x)
    unary_kernel[(1,)](x, out, BLOCK=N, OP=op, num_warps=4)
    return out


def erf(x: np.ndarray) -> np.ndarray:
    from math import erf as scalar

    return np.array([scalar(v) for v in x])


FUNCTIONS = {
    "exp": (np.exp, -80, 80),
    "exp2": (np.exp2, -120, 120),
    "log": (np.log, 1e-30, 1e30),
    "log2": (np.log2, 1e-30, 1e30),
    "sin": (np.sin, -30, 30),
    "cos": (np.cos, -30, 30),
    "sqrt": (np.sqrt, 0, 1e30),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 1e-30, 1e30),
    "erf": (erf, -4, 4),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), -20, 20),
}


@pytest.mark.parametrize("op", FUNCTIONS)
def test_functions(op: str) -> None:
    function, low, high = FUNCTIONS[op]
    rng = np.random.default_rng(0)
    x = (
        np.exp(rng.uniform(np.log(low), np.log(high), N)) if low > 0 else rng.uniform(low, high, N)
    ).astype(np.float32)
    expected = function(x.astype(np.float64))
    # docs/arithmetic.md. The operand of exp2 in exp is rounded, which counts as much as it is large.
    half_ulps = {"sin": 0, "cos": 0, "exp": 6 + 4 * np.abs(x), "exp2": 6 + 4 * np.abs(x)}
    relative = half_ulps.get(op, 8) * rounding(expected, "float32")
    assert_within(unary(op, x), expected, relative + 4 * 2.0**-24)


SPECIAL = np.array(
    [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 200.0, -200.0] + [0.5] * (N - 9), np.float32
)


@pytest.mark.parametrize("op", ["exp", "exp2", "log", "log2", "sqrt"])
def test_functions_at_special_values(op: str) -> None:
    with np.errstate(all="ignore"):
        expected = FUNCTIONS[op][0](SPECIAL)
    actual = unary(op, SPECIAL)
    np.testing.assert_allclose(actual[:9], expected[:9], rtol=1e-6)
    np.testing.assert_array_equal(np.isnan(actual), np.isnan(expected))


@pytest.mark.parametrize("op", ["floor", "ceil", "abs", "negative"])
def test_exact_functions(op: str) -> None:
    x = normal(np.random.default_rng(0), N) * 10
    x[:9] = SPECIAL[:9]
    assert_same(unary(op, x), getattr(np, op)(x))


@pytest.mark.parametrize("name", ["int8", "int16", "int32", "int64"])
@pytest.mark.parametrize("op", ["abs", "negative", "invert"])
def test_integer_functions(op: str, name: str) -> None:
    x = integers(np.random.default_rng(0), N, name)
    x[0] = np.iinfo(name).min
    assert_same(unary(op, x), getattr(np, op)(x))


@triton.jit
def scalar_kernel(out_ptr, a, b, c, flag, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tile = tl.full((BLOCK,), 1.0, tl.float32) * c
    tl.store(out_ptr + offsets, tl.where(flag, tile + a * b, tile - a))


@pytest.mark.parametrize("a", [0, 1, -1, 16, 12_345, 2**31 - 1])
@pytest.mark.parametrize("flag", [True, False])
def test_scalar_arguments(flag: bool, a: int) -> None:
    out = np.empty(32, np.float32)
    scalar_kernel[(1,)](out, a, 1, 0.25, flag, BLOCK=32, num_warps=1)
    expected = np.float32(0.25) + np.float32(a) if flag else np.float32(0.25) - np.float32(a)
    assert_same(out, np.full(32, expected, np.float32))


@triton.jit
def wide_kernel(out_ptr, a, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK).to(tl.int64)
    tl.store(out_ptr + offsets, a + offsets * 4_294_967_296)


@pytest.mark.parametrize("a", [2**31, 2**40 + 1, -(2**50), 2**63 - 2**38])
def test_64_bit_scalars(a: int) -> None:
    out = np.empty(32, np.int64)
    wide_kernel[(1,)](out, a, BLOCK=32, num_warps=1)
    assert_same(out, np.int64(a) + np.arange(32, dtype=np.int64) * 2**32)


@triton.jit
def high_kernel(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.umulhi(tl.load(x_ptr + offsets), tl.load(y_ptr + offsets)))


@pytest.mark.parametrize("name", ["uint32", "uint64"])
def test_umulhi(name: str) -> None:
    x, y = pair(name)
    out = np.empty(N, name)
    high_kernel[(1,)](x, y, out, BLOCK=N, num_warps=4)
    bits = np.iinfo(name).bits
    assert_same(out, np.array([int(a) * int(b) >> bits for a, b in zip(x, y, strict=True)], name))


@triton.jit
def fma_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    tl.store(out_ptr + offsets, tl.fma(x, x, -(x * x)))


@pytest.mark.skipif(ON_STOCK, reason="the interpreter rounds twice")
def test_fma_rounds_once() -> None:
    x = (1 + np.arange(N) * 2.0**-23).astype(np.float32)
    out = np.empty(N, np.float32)
    fma_kernel[(1,)](x, out, BLOCK=N, num_warps=4)
    wide = x.astype(np.float64)
    assert_same(out, (wide * wide - (x * x).astype(np.float64)).astype(np.float32))


@triton.jit
def half_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """Each operation in fp16 rounds to fp16."""
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    tl.store(out_ptr + offsets, (x * x + x) * x - x)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_every_step_rounds(name: str) -> None:
    x = normal(np.random.default_rng(0), N, name)
    out = np.empty_like(x)
    half_kernel[(1,)](x, out, BLOCK=N, num_warps=4, enable_fp_fusion=False)
    assert_same(out, (x * x + x) * x - x)


@triton.jit
def bool_kernel(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x, y = tl.load(x_ptr + offsets), tl.load(y_ptr + offsets)
    tl.store(out_ptr + offsets, (x & y) | (x ^ (y != 0)))


def test_booleans_in_memory() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 2, N).astype(bool), rng.integers(0, 2, N).astype(bool)
    out = np.empty(N, bool)
    bool_kernel[(1,)](x, y, out, BLOCK=N, num_warps=1)
    np.testing.assert_array_equal(out, (x & y) | (x ^ y))
