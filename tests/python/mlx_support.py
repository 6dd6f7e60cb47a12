"""What the tests on MLX arrays share: kernels, arrays in each state, and both ways of a launch."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl

if os.environ.get("TRITON_METAL_REQUIRE_MLX"):
    import mlx.core as mx
else:
    mx = pytest.importorskip("mlx.core")

import triton_metal.mlx
from triton_metal.mlx import in_place

ROOT = Path(__file__).resolve().parents[2]
BLOCK = 128


@triton.jit
def increment(x, n, amount, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) + amount, mask=i < n)


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out + i, tl.load(x + i, mask=mask) + tl.load(y + i, mask=mask), mask=mask)


@triton.jit
def rotate(x, y, z, n, BLOCK: tl.constexpr):
    """x, y, z = y, z, x"""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    a = tl.load(x + i, mask=mask)
    b = tl.load(y + i, mask=mask)
    c = tl.load(z + i, mask=mask)
    tl.store(x + i, b, mask=mask)
    tl.store(y + i, c, mask=mask)
    tl.store(z + i, a, mask=mask)


@triton.jit
def count_into(counter, x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(counter, tl.sum((tl.load(x + i, mask=i < n, other=0) > 0).to(tl.int32)))


@triton.jit
def copy_2d(x, out, rows, columns, x_row, x_column, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    mask = j < columns
    tl.store(out + row * columns + j, tl.load(x + row * x_row + j * x_column, mask=mask), mask=mask)


@triton.jit
def only_read(x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.load(x + i, mask=i < n)


def blocks(n: int) -> tuple[int]:
    return (max(1, -(-n // BLOCK)),)


def increase(x: Any, amount: float = 1.0) -> None:
    increment[blocks(x.size)](x, x.size, amount, BLOCK=BLOCK)


def sample(n: int = 300, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(n).astype(np.float32)


def available(values: np.ndarray) -> Any:
    array = mx.array(values)
    mx.eval(array)
    return array


def lazy(values: np.ndarray) -> Any:
    """The same values, still to be computed."""
    array = mx.array(values)
    return mx.where(mx.array(True), array, array)


def running(values: np.ndarray) -> Any:
    array = lazy(values)
    mx.async_eval(array)
    return array


STATES = {"available": available, "lazy": lazy, "running": running}


@pytest.fixture(params=["at once", "graph"], autouse=True)
def way(request: pytest.FixtureRequest) -> Iterator[str]:
    """Every test runs with both ways of a launch: directly on buffers, and as an operation of MLX's graph."""
    before = in_place.native().run_at_once(request.param == "at once")
    yield request.param
    in_place.native().run_at_once(before)
    triton_metal.mlx.synchronize()


@pytest.fixture(params=list(STATES))
def state(request: pytest.FixtureRequest) -> Any:
    return STATES[request.param]


def same(array: Any, expected: Any) -> None:
    np.testing.assert_array_equal(np.array(array), expected)
