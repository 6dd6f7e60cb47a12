"""Annotations as constexpr on values of run time, which Triton takes, and functions that are constexpr globals."""

from __future__ import annotations

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl

torch = pytest.importorskip("torch")


@tl.constexpr
def accumulator(dtype):
    return tl.int64 if dtype.is_int() else tl.float32


@triton.jit
def scaled(v, FACTOR: tl.constexpr):
    return v * FACTOR


@triton.jit
def by_parameter(x, n):
    offs = tl.arange(0, 8)
    tl.store(x + offs, scaled(tl.load(x + offs), n) + scaled(1, 3))


@triton.jit
def by_name(x, n):
    twice: tl.constexpr = n * 2
    for i in range(2):
        place: tl.constexpr = twice + i
        tl.store(x + place, i + 1)


@triton.jit
def by_function(x, out):
    dtype: tl.constexpr = accumulator(x.dtype.element_ty)
    v = tl.load(x + tl.arange(0, 8)).to(dtype)
    tl.store(out, tl.sum(v * 1_000_000_000))


def test_a_function_takes_a_run_time_value_for_a_constexpr() -> None:
    x = np.arange(8, dtype=np.int32)
    by_parameter[(1,)](x, 5)
    assert x.tolist() == [5 * i + 3 for i in range(8)]


def test_a_name_annotated_as_constexpr_holds_a_run_time_value() -> None:
    x = np.zeros(8, dtype=np.int32)
    by_name[(1,)](x, 2)
    assert x.tolist() == [0, 0, 0, 0, 1, 2, 0, 0]


def test_a_constexpr_global_that_is_a_function_is_called() -> None:
    out = np.zeros(1, dtype=np.int64)
    by_function[(1,)](np.arange(8, dtype=np.int32), out)
    assert out[0] == 28_000_000_000


@triton.jit
def by_logic(x, both, either):
    offs = tl.arange(0, 8)
    v = tl.load(x + offs)
    tl.store(both + offs, (v > 2).logical_and(v < 6))
    tl.store(either + offs, (v < 2).logical_or(v > 5))


def test_booleans_have_methods_for_and_and_or() -> None:
    x = np.arange(8, dtype=np.int32)
    both, either = np.zeros((2, 8), dtype=bool)
    by_logic[(1,)](x, both, either)
    assert both.tolist() == ((x > 2) & (x < 6)).tolist()
    assert either.tolist() == ((x < 2) | (x > 5)).tolist()


@triton.jit
def limits_kernel(out, D: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    SMALLEST: tl.constexpr = np.iinfo(np.int16).min
    tl.store(out + at, -torch.finfo(torch.float32).max)
    tl.store(out + BLOCK + at, torch.iinfo(torch.int32).max)
    tl.store(out + 2 * BLOCK + at, torch.finfo(D).tiny)
    tl.store(out + 3 * BLOCK + at, SMALLEST)


def test_limits_of_dtypes_are_compile_time_values() -> None:
    out = np.zeros(16, np.float32)
    limits_kernel[(1,)](out, torch.float16, BLOCK=4)
    largest = float(np.finfo(np.float32).max)
    assert out[::4].tolist() == [-largest, 2.0**31, 2.0**-14, -(2.0**15)]
