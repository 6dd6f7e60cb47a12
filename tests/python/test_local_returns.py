"""Functions that are defined in a kernel and return in their middle."""

from __future__ import annotations

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl


@triton.jit
def classified(x, out, n, LIMIT: tl.constexpr):
    scale = 10.0

    def kind(v, shift=1.0):
        if v < 0:
            return -scale
        if v > LIMIT:
            return scale + shift
        return v

    for k in range(n):
        tl.store(out + k, kind(tl.load(x + k)))
    scale = 20.0
    tl.store(out + n, kind(-1.0))
    tl.store(out + n + 1, kind(9.0, shift=2.0))


def test_a_return_in_a_branch_ends_the_call_only() -> None:
    x = np.array([-3.0, 0.5, 7.0, 2.0], np.float32)
    out = np.zeros(6, np.float32)
    classified[(1,)](x, out, 4, LIMIT=2.0)
    # As in Python, the function sees the kernel's variables as they are at the call.
    assert out.tolist() == [-10.0, 0.5, 11.0, 2.0, -20.0, 22.0]


@triton.jit
def searched(x, out, n):
    def first(wanted):
        for k in range(n):
            if tl.load(x + k) == wanted:
                return k, wanted * 2
        return n, -1

    at, twice = first(5)
    tl.store(out, at)
    tl.store(out + 1, twice)
    at, twice = first(100)
    tl.store(out + 2, at)
    tl.store(out + 3, twice)


def test_a_return_in_a_loop_gives_a_tuple() -> None:
    x, out = np.array([3, 9, 5, 5], np.int32), np.zeros(4, np.int32)
    searched[(1,)](x, out, 4)
    assert out.tolist() == [2, 10, 4, -1]


@triton.jit
def folded(x, out, N: tl.constexpr, FLIP: tl.constexpr):
    double = lambda v: v * 2  # noqa: E731

    def chosen(a, b):
        if FLIP:
            return double(tl.minimum(a, b))
        return tl.maximum(a, b)

    tl.store(out, tl.reduce(tl.load(x + tl.arange(0, N)), 0, lambda a, b: tl.maximum(a, b)))
    tl.store(out + 1, chosen(tl.load(x), tl.load(x + 1)))


@pytest.mark.parametrize(("flip", "expected"), [(True, 2.0), (False, 4.0)])
def test_a_return_under_a_constant_and_a_lambda_in_it(flip: bool, expected: float) -> None:
    x, out = np.array([1, 4, 3, 2], np.float32), np.zeros(2, np.float32)
    folded[(1,)](x, out, N=4, FLIP=flip)
    assert out.tolist() == [4.0, expected]


@triton.jit
def uneven(x):
    def pick(v):
        if v > 0:
            return v
        return tl.arange(0, 4)

    tl.store(x, pick(tl.load(x)))


@triton.jit
def endless(x):
    def again(v):
        if v > 0:
            return again(v - 1)
        return v

    tl.store(x, again(tl.load(x)))


def test_what_cannot_be_compiled_names_its_line_and_the_call() -> None:
    x = np.zeros(4, np.float32)
    with pytest.raises(triton.CompilationError, match="Return type mismatch") as error:
        uneven[(1,)](x)
    assert "return tl.arange(0, 4)" in str(error.value)
    assert "pick(tl.load(x))" in str(error.value)
    with pytest.raises(triton.CompilationError, match="again calls itself"):
        endless[(1,)](x)
