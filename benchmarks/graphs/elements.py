"""Chains of operations on elements, which `mx.compile` makes one operation on each side."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import mlx.core as mx
import triton_metal as triton
import triton_metal.language as tl
from benchmarks.graphs.problem import Problem, gradient, normal
from triton_metal.language.extra import libdevice
from triton_metal.mlx import graph

BLOCK = 1024


@triton.jit
def sigmoid_kernel(x_ptr, y_ptr, z_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + i, mask=mask)
    v = (x + tl.load(y_ptr + i, mask=mask)) * tl.load(z_ptr + i, mask=mask)
    tl.store(out_ptr + i, v * tl.sigmoid(1.702 * v), mask=mask)


@triton.jit
def tanh_kernel(x_ptr, y_ptr, z_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + i, mask=mask)
    v = (x + tl.load(y_ptr + i, mask=mask)) * tl.load(z_ptr + i, mask=mask)
    inner = 0.7978845608028654 * (v + 0.044715 * v * v * v)
    tl.store(out_ptr + i, 0.5 * v * (1 + libdevice.tanh(inner)), mask=mask)


def chain(kernel: Any) -> Callable[..., Any]:
    def function(x: Any, y: Any, z: Any) -> Any:
        grid = (triton.cdiv(x.size, BLOCK),)
        return graph(kernel)(x, y, z, x.size, BLOCK=BLOCK, grid=grid, outputs={"out_ptr": x})

    return function


def sigmoid_of_mlx(x: Any, y: Any, z: Any) -> Any:
    v = (x + y) * z
    return v * mx.sigmoid(1.702 * v)


def tanh_of_mlx(x: Any, y: Any, z: Any) -> Any:
    v = (x + y) * z
    return 0.5 * v * (1 + mx.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v * v * v)))


def problem(name: str, size: int, kernel: Any, theirs: Callable[..., Any]) -> Problem:
    arrays = tuple(normal(size) for _ in range(3))
    name = f"{name}, {size:,} elements"
    return Problem(name, 1.2, "mx.compile", chain(kernel), theirs, arrays, compiled=True)


def problems() -> Iterator[Callable[[], Problem]]:
    for size in (1 << 20, 1_000_000):
        yield lambda size=size: problem("add, mul, sigmoid", size, sigmoid_kernel, sigmoid_of_mlx)
    yield lambda: problem("add, mul, GELU by tanh", 1 << 20, tanh_kernel, tanh_of_mlx)
    yield lambda: gradient(
        problem("add, mul, GELU by tanh", 1 << 20, tanh_kernel, tanh_of_mlx), (0, 1, 2), 1.5
    )
