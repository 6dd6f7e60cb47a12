"""Functions that are called for each element: combine functions with branches and loops."""

import numpy as np
import pytest

from kernel_support import tl, triton


@triton.jit
def first_smaller(value1, index1, value2, index2):
    if value1 < value2:
        value, index = value1, index1
    elif value2 < value1:
        value, index = value2, index2
    else:
        value, index = value1, tl.minimum(index1, index2)
    return value, index


@triton.jit
def gcd(a, b):
    while b != 0:
        a, b = b, a % b
    return a


@triton.jit
def reductions(x_ptr, least_ptr, divisor_ptr, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr):
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + i)
    K: tl.constexpr = N if AXIS == 0 else M
    _, least = tl.reduce((x, i), AXIS, first_smaller)
    tl.store(least_ptr + tl.arange(0, K), least)
    tl.store(divisor_ptr + tl.arange(0, K), tl.reduce(x, AXIS, gcd))


SHAPES = [(1, 1), (2, 2), (8, 64), (64, 8), (1, 512), (512, 1), (32, 128)]
# Two numbers for each of 4,096 elements wait in 32 KB of threadgroup memory, which the least target does not have.
REDUCED = [*SHAPES[:-1], pytest.param(*SHAPES[-1], marks=pytest.mark.own_target)]


@pytest.mark.parametrize("num_warps", [1, 4, 8])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(("m", "n"), REDUCED)
def test_reductions_with_branches_and_loops(m: int, n: int, axis: int, num_warps: int) -> None:
    rng = np.random.default_rng(m * n + axis)
    x = rng.integers(1, 5000, (m, n)).astype(np.int32)
    x[rng.random((m, n)) < 0.3] = 6
    least, divisor = np.zeros((2, m * n // (m, n)[axis]), np.int32)
    reductions[(1,)](x, least, divisor, M=m, N=n, AXIS=axis, num_warps=num_warps)
    places = np.arange(m * n).reshape(m, n)
    chosen = np.expand_dims(x.argmin(axis), axis)
    np.testing.assert_array_equal(least, np.take_along_axis(places, chosen, axis).reshape(-1))
    np.testing.assert_array_equal(divisor, np.gcd.reduce(x, axis))


@triton.jit
def scan_kernel(
    x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, REVERSE: tl.constexpr
):
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out_ptr + i, tl.associative_scan(tl.load(x_ptr + i), AXIS, gcd, reverse=REVERSE))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(("m", "n"), SHAPES)
@pytest.mark.parametrize("name", ["int16", "int64"])
def test_scans_with_loops(name: str, m: int, n: int, axis: int, reverse: bool) -> None:
    rng = np.random.default_rng(m + n)
    x = (rng.integers(1, 40, (m, n)) * 720).astype(name)
    out = np.zeros_like(x)
    scan_kernel[(1,)](x, out, M=m, N=n, AXIS=axis, REVERSE=reverse)
    ordered = np.flip(x, axis) if reverse else x
    expected = np.gcd.accumulate(ordered, axis)
    np.testing.assert_array_equal(out, np.flip(expected, axis) if reverse else expected)
