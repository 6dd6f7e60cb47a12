"""Mathematical functions of zeros, infinities, NaN, subnormal and huge numbers, in every float type, against NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kernel_support import FLOATS, assert_same, assert_within, dtype, tl, to_float64, triton

SPECIAL = (
    *(0.0, 1e-45, 6e-8, 1.2e-38, 1e-20, 0.5, 1.0, 1.5, 2.0, 2.5, 88.0, 89.0, 103.0, 127.0, 128.0, 150.0),
    *(3e4, 65504.0, 1e5, 1e9, 1e20, 3.4e38, math.inf, math.nan),
)  # fmt: skip


def special(name: str, count: int) -> np.ndarray:
    """Both signs of all special numbers, as a type has them, again and again."""
    with np.errstate(over="ignore"):
        numbers = np.array([*SPECIAL, *(-x for x in SPECIAL)], np.float64).astype(np.float32)
        return np.resize(numbers.astype(dtype(name)), count)


@triton.jit
def functions_kernel(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i).to(tl.float32)
    tl.store(out_ptr + i, tl.exp(x))
    tl.store(out_ptr + N + i, tl.exp2(x))
    tl.store(out_ptr + 2 * N + i, tl.log(x))
    tl.store(out_ptr + 3 * N + i, tl.log2(x))
    tl.store(out_ptr + 4 * N + i, tl.sin(x))
    tl.store(out_ptr + 5 * N + i, tl.cos(x))
    tl.store(out_ptr + 6 * N + i, tl.sqrt(x))
    tl.store(out_ptr + 7 * N + i, tl.sqrt_rn(x))
    tl.store(out_ptr + 8 * N + i, tl.rsqrt(x))
    tl.store(out_ptr + 9 * N + i, tl.erf(x))
    tl.store(out_ptr + 10 * N + i, tl.floor(x))
    tl.store(out_ptr + 11 * N + i, tl.ceil(x))
    tl.store(out_ptr + 12 * N + i, tl.sigmoid(x))
    tl.store(out_ptr + 13 * N + i, tl.abs(x))
    tl.store(out_ptr + 14 * N + i, -x)


FUNCTIONS: tuple[Callable[[np.ndarray], np.ndarray], ...] = (
    np.exp,
    np.exp2,
    np.log,
    np.log2,
    np.sin,
    np.cos,
    np.sqrt,
    np.sqrt,
    lambda x: 1 / np.sqrt(x),
    lambda x: np.array([math.erf(v) for v in x]),
    np.floor,
    np.ceil,
    lambda x: 1 / (1 + np.exp(-x).astype(np.float32).astype(np.float64)),
    np.abs,
    np.negative,
)


@pytest.mark.not_as_graph("exp is MLX's")
@pytest.mark.own_check("expects subnormal results of fp32 and bfloat16, which Metal may flush")
@pytest.mark.parametrize("size", [64, 512])
@pytest.mark.parametrize("name", FLOATS)
def test_functions_of_special_numbers(name: str, size: int) -> None:
    x = special(name, size)
    out = np.zeros((len(FUNCTIONS), size), np.float32)
    # The fast forms have those of docs/arithmetic.md (test_arithmetic_bounds.py).
    functions_kernel[(1,)](x, out, N=size, num_warps=1, precise_math=True)
    wide = to_float64(x)
    with np.errstate(all="ignore"):
        for row, function in zip(out, FUNCTIONS, strict=True):
            exact = function(wide)
            expected = exact.astype(np.float32)
            special_value = ~np.isfinite(expected) | (expected == 0)
            assert_same(row[special_value], expected[special_value])
            rest = ~special_value
            assert_within(row[rest], exact[rest], np.abs(exact[rest]) * 2**-21 + 2.0**-148)


@triton.jit
def pairs_kernel(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    y = tl.load(y_ptr + i)
    tl.store(out_ptr + i, x + y)
    tl.store(out_ptr + N + i, x - y)
    tl.store(out_ptr + 2 * N + i, x * y)
    tl.store(out_ptr + 3 * N + i, (x / y).to(x.dtype))
    tl.store(out_ptr + 4 * N + i, (x % y).to(x.dtype))
    tl.store(out_ptr + 5 * N + i, tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL))
    tl.store(out_ptr + 6 * N + i, tl.minimum(x, y, propagate_nan=tl.PropagateNan.ALL))
    tl.store(out_ptr + 7 * N + i, tl.where(x < y, x, y))
    tl.store(out_ptr + 8 * N + i, tl.where((x == y) | (x >= y), -x, tl.abs(y)))
    tl.store(out_ptr + 9 * N + i, tl.where(x != y, x, -y))


def signed_maximum(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """NaN wins, and +0 is above -0."""
    return np.where(x == y, np.where(np.signbit(y), x, y), np.maximum(x, y))


def signed_minimum(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.where(x == y, np.where(np.signbit(x), x, y), np.minimum(x, y))


@pytest.mark.own_check("expects subnormal results of fp32 and bfloat16, which Metal may flush")
@pytest.mark.parametrize("name", FLOATS)
def test_pairs_of_special_numbers(name: str, as_graph: bool) -> None:
    one = special(name, 2 * len(SPECIAL))
    x, y = (np.resize(side.ravel(), 4096) for side in np.meshgrid(one, one))
    out = np.zeros((10, 4096), x.dtype)
    pairs_kernel[(1,)](x, y, out, N=4096, precise_math=True)
    a, b = x.astype(np.float32), y.astype(np.float32)
    with np.errstate(all="ignore"):
        results: list[Any] = [a + b, a - b, a * b, a / b, np.fmod(a, b)]
        if name != "float32":
            results[:3] = [to_float64(x) + to_float64(y), to_float64(x) - to_float64(y), a * b]
        results += [signed_maximum(a, b), signed_minimum(a, b), np.where(a < b, a, b)]
        results += [np.where(a >= b, -a, np.abs(b)), np.where(a != b, a, -b)]
        for number, (row, result) in enumerate(zip(out, results, strict=True)):
            sides = [row, np.asarray(result).astype(x.dtype)]
            if as_graph and number in (5, 6):
                # Which of two zeros is the greater one is open in MLX.
                sides = [np.where(side == 0, np.zeros_like(side), side) for side in sides]
            assert_same(*sides)
