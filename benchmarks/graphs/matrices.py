"""Matrix products in the forms that users write, and a convolution as one."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import triton_metal as triton
import triton_metal.language as tl
from benchmarks.graphs.problem import Problem, gradient, normal
from benchmarks.kernels.convolution import convolution_kernel
from triton_metal.mlx import graph

from matmul import matmul_kernel

BLOCKS = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32}


@triton.jit
def plain_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + m[:, None] * K + k[None, :], (m[:, None] < M) & (k[None, :] < K), 0.0)
        b = tl.load(b_ptr + k[:, None] * N + n[None, :], (k[:, None] < K) & (n[None, :] < N), 0.0)
        acc += tl.dot(a, b)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc, (m[:, None] < M) & (n[None, :] < N))


@triton.jit
def gelu(x):
    return 0.5 * x * (1 + tl.erf(x * 0.7071067811865476))


@triton.jit
def wrapping_kernel(
    a_ptr,
    b_ptr,
    bias_ptr,
    c_ptr,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    EPILOGUE: tl.constexpr,
):
    # The order of programs and the wrapping of rows that Triton's tutorial has.
    pid = tl.program_id(axis=0)
    across = tl.cdiv(N, BLOCK_N)
    first = pid // (GROUP_M * across) * GROUP_M
    group = min(tl.cdiv(M, BLOCK_M) - first, GROUP_M)
    row = first + pid % (GROUP_M * across) % group
    column = pid % (GROUP_M * across) // group
    m = (row * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    n = (column * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + (m[:, None] * K + k[None, :])
    b_ptrs = b_ptr + (k[:, None] * N + n[None, :])
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(tl.cdiv(K, BLOCK_K)):
        a = tl.load(a_ptrs, mask=k[None, :] < K - step * BLOCK_K, other=0.0)
        b = tl.load(b_ptrs, mask=k[:, None] < K - step * BLOCK_K, other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * N
    m = row * BLOCK_M + tl.arange(0, BLOCK_M)
    n = column * BLOCK_N + tl.arange(0, BLOCK_N)
    if EPILOGUE:
        acc = gelu(acc + tl.load(bias_ptr + n, mask=n < N, other=0.0)[None, :])
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc, (m[:, None] < M) & (n[None, :] < N))


def tiles(a: Any, b: Any) -> tuple[int, int]:
    """The tiles of a product along its rows and columns."""
    return (
        triton.cdiv(a.shape[0], BLOCKS["BLOCK_M"]),
        triton.cdiv(b.shape[1], BLOCKS["BLOCK_N"]),
    )


def result(a: Any, b: Any) -> tuple[tuple[int, int], Any]:
    return (a.shape[0], b.shape[1]), a.dtype


def plain(a: Any, b: Any) -> Any:
    sizes = (a.shape[0], b.shape[1], a.shape[1])
    return graph(plain_kernel)(
        a, b, *sizes, grid=tiles(a, b), outputs={"c_ptr": result(a, b)}, **BLOCKS
    )


def grouped(a: Any, b: Any) -> Any:
    M, N, K = a.shape[0], b.shape[1], a.shape[1]
    across, along = tiles(a, b)
    return graph(matmul_kernel)(
        a, b, a, M, N, K, K, 1, N, 1, N, 1,
        **BLOCKS, GROUP_M=8, HAS_BIAS=False, ACTIVATION="", ACCUMULATOR=tl.float32,
        grid=(across * along,), outputs={"c_ptr": result(a, b)},
    )  # fmt: skip


def wrapping(a: Any, b: Any, bias: Any = None) -> Any:
    M, N, K = a.shape[0], b.shape[1], a.shape[1]
    across, along = tiles(a, b)
    return graph(wrapping_kernel)(
        a, b, b if bias is None else bias, M, N, K,
        **BLOCKS, GROUP_M=8, EPILOGUE=bias is not None,
        grid=(across * along,), outputs={"c_ptr": result(a, b)},
    )  # fmt: skip


def convolved(x: Any, w: Any) -> Any:
    (batch, height, width, channels), outputs = x.shape, w.shape[0]
    pixels = batch * height * width
    return graph(convolution_kernel)(
        x, w, pixels, outputs, height, width, height, width,
        CHANNELS=channels, TAPS_H=3, TAPS_W=3, STRIDE=1, PADDING=1,
        BLOCK_M=64, BLOCK_N=outputs, BLOCK_C=channels,
        grid=(1, triton.cdiv(pixels, 64)),
        outputs={"out_ptr": ((batch, height, width, outputs), x.dtype)},
    )  # fmt: skip


def product(name: str, ours: Callable[..., Any], *shapes: tuple[int, int]) -> Problem:
    """A product without an epilogue. Sums of so many products differ by their order."""
    arrays = tuple(normal(*shape) for shape in shapes)
    return Problem(name, 1.3, "mx.matmul", ours, mx.matmul, arrays, atol=1e-3)


def with_epilogue(size: int) -> Problem:
    return Problem(
        f"matmul {size}^3, bias and GELU", 1.3, "nn.gelu(mx.addmm)", wrapping,
        lambda a, b, bias: nn.gelu(mx.addmm(bias, a, b)),
        (normal(size, size), normal(size, size), normal(size)), atol=1e-3,
    )  # fmt: skip


def convolution() -> Problem:
    return Problem(
        "convolution 4x32x32x16, 3x3x32", 1.5, "mx.conv2d", convolved,
        functools.partial(mx.conv2d, padding=1), (normal(4, 32, 32, 16), normal(32, 3, 3, 16)),
        atol=1e-3,
    )  # fmt: skip


def problems() -> Iterator[Callable[[], Problem]]:
    size = (1024, 1024)
    yield lambda: product("matmul 1024^3, 2D grid", plain, size, size)
    yield lambda: product("matmul 1024^3, grouped", grouped, size, size)
    yield lambda: product("matmul 1024^3, as the tutorial", wrapping, size, size)
    yield lambda: product("matmul 1000x900x1100, grouped", grouped, (1000, 1100), (1100, 900))
    yield lambda: with_epilogue(1024)
    yield lambda: gradient(with_epilogue(1024), (0, 1, 2), 1.5)
    yield convolution
    yield lambda: gradient(convolution(), (0, 1), 1.5)
