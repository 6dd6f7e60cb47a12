"""Kernels of many kinds and shapes, which benchmarks/thread_choice.py launches with every choice of threads.

Each has a small grid: what is counted is one program's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import triton_metal as triton
import triton_metal.language as tl

#: Launches a case. The keywords are launch options, none of them for the compiler's choice.
Launch = Callable[..., Any]


@dataclass
class Case:
    """A launch of a kernel that names neither SIMD-groups nor stages.

    `kernel` is the one that counts where there are several launches: the first of its name. None for the first of all.
    """

    name: str
    launch: Launch
    kernel: str | None = None


@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = i < n
    tl.store(out + i, tl.load(x + i, mask=keep) + tl.load(y + i, mask=keep), mask=keep)


@triton.jit
def gelu_kernel(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = i < n
    v = tl.load(x + i, mask=keep).to(tl.float32)
    inner = 0.7978845608 * (v + 0.044715 * v * v * v)
    v = 0.5 * v * (2.0 - 2.0 / (tl.exp(2.0 * inner) + 1.0))
    tl.store(out + i, v.to(out.dtype.element_ty), mask=keep)


@triton.jit
def dropout_kernel(x, out, n, p, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = tl.rand(seed, i) > p
    v = tl.load(x + i, mask=i < n)
    tl.store(out + i, tl.where(keep, v / (1 - p), 0.0), mask=i < n)


@triton.jit
def softmax_kernel(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * columns + i, mask=i < columns, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, axis=0))
    e = e / tl.sum(e, axis=0)
    tl.store(out + row * columns + i, e.to(out.dtype.element_ty), mask=i < columns)


@triton.jit
def norm_kernel(x, weight, bias, out, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * columns + i, mask=i < columns, other=0.0).to(tl.float32)
    mean = tl.sum(v, axis=0) / columns
    centred = tl.where(i < columns, v - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / columns + eps)
    w = tl.load(weight + i, mask=i < columns, other=0.0)
    b = tl.load(bias + i, mask=i < columns, other=0.0)
    v = centred * scale * w + b
    tl.store(out + row * columns + i, v.to(out.dtype.element_ty), mask=i < columns)


@triton.jit
def looped_norm_kernel(x, out, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        i = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * columns + i, mask=i < columns, other=0.0).to(tl.float32)
        squares += v * v
    scale = 1 / tl.sqrt(tl.sum(squares, axis=0) / columns + eps)
    for start in range(0, columns, BLOCK):
        i = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * columns + i, mask=i < columns, other=0.0)
        tl.store(out + row * columns + i, v * scale, mask=i < columns)


@triton.jit
def sum_kernel(x, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr, AXIS: tl.constexpr):
    first = tl.program_id(0) * ROWS
    rows, columns = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    tile = tl.load(x + (first + rows[:, None]) * COLUMNS + columns[None, :])
    total = tl.sum(tile, axis=AXIS)
    if AXIS == 0:
        tl.store(out + tl.program_id(0) * COLUMNS + columns, total)
    else:
        tl.store(out + first + rows, total)


@triton.jit
def scan_kernel(x, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.cumsum(tl.load(x + i), axis=0))


@triton.jit
def sort_kernel(x, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.sort(tl.load(x + i)))


@triton.jit
def histogram_kernel(x, out, BLOCK: tl.constexpr, BINS: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out + tl.arange(0, BINS), tl.histogram(tl.load(x + i), BINS))


@triton.jit
def scatter_kernel(x, places, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out + tl.load(places + i), tl.load(x + i))


@triton.jit
def transpose_kernel(x, out, rows, columns, SIDE: tl.constexpr):
    i = tl.program_id(0) * SIDE + tl.arange(0, SIDE)
    j = tl.program_id(1) * SIDE + tl.arange(0, SIDE)
    tile = tl.load(x + i[:, None] * columns + j[None, :])
    tl.store(out + j[:, None] * rows + i[None, :], tl.trans(tile))


@triton.jit
def matmul_kernel(
    a, b, c, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        left = tl.load(
            a + m[:, None] * K + (start + k)[None, :],
            mask=(m[:, None] < M) & ((start + k)[None, :] < K),
            other=0.0,
        )
        right = tl.load(
            b + (start + k)[:, None] * N + n[None, :],
            mask=((start + k)[:, None] < K) & (n[None, :] < N),
            other=0.0,
        )
        total = tl.dot(left, right, total)
    keep = (m[:, None] < M) & (n[None, :] < N)
    tl.store(c + m[:, None] * N + n[None, :], total.to(c.dtype.element_ty), mask=keep)


@triton.jit
def attention_kernel(
    q, k, v, out, length, scale, HEAD: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    base = tl.program_id(1) * length * HEAD
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    d = tl.arange(0, HEAD)
    queries = tl.load(q + base + m[:, None] * HEAD + d[None, :])
    highest = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    weight = tl.zeros((BLOCK_M,), tl.float32)
    result = tl.zeros((BLOCK_M, HEAD), tl.float32)
    for start in range(0, length, BLOCK_N):
        n = start + tl.arange(0, BLOCK_N)
        keys = tl.load(k + base + n[None, :] * HEAD + d[:, None])
        scores = tl.dot(queries, keys) * scale
        higher = tl.maximum(highest, tl.max(scores, axis=1))
        share = tl.exp(scores - higher[:, None])
        shrink = tl.exp(highest - higher)
        weight = weight * shrink + tl.sum(share, axis=1)
        values = tl.load(v + base + n[:, None] * HEAD + d[None, :])
        result = tl.dot(share.to(v.dtype.element_ty), values, result * shrink[:, None])
        highest = higher
    result = result / weight[:, None]
    tl.store(out + base + m[:, None] * HEAD + d[None, :], result.to(out.dtype.element_ty))


@triton.jit
def vector_product_kernel(a, x, out, K, ROWS: tl.constexpr, BLOCK_K: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    k = tl.arange(0, BLOCK_K)
    total = tl.zeros((ROWS, BLOCK_K), tl.float32)
    for start in range(0, K, BLOCK_K):
        left = tl.load(a + rows[:, None] * K + (start + k)[None, :])
        total += left.to(tl.float32) * tl.load(x + start + k).to(tl.float32)[None, :]
    tl.store(out + rows, tl.sum(total, axis=1).to(out.dtype.element_ty))


def normal(*shape: int, dtype: str = "float32") -> np.ndarray:
    """Normal random numbers."""
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


def launcher(kernel: Any, grid: tuple[int, ...], *args: Any, **constants: Any) -> Launch:
    """A launch that waits for its options."""
    return lambda **options: kernel[grid](*args, **constants, **options)


def elementwise() -> Iterator[Case]:
    for dtype in ("float32", "float16"):
        for block in (64, 256, 1024, 4096, 8192):
            x = normal(2 * block, dtype=dtype)
            out = np.empty_like(x)
            add = launcher(add_kernel, (2,), x, x, out, x.size, BLOCK=block)
            yield Case(f"add {block} {dtype}", add)
            gelu = launcher(gelu_kernel, (2,), x, out, x.size, BLOCK=block)
            yield Case(f"gelu {block} {dtype}", gelu)
    for block in (128, 1024, 4096):
        x = normal(2 * block)
        run = launcher(dropout_kernel, (2,), x, np.empty_like(x), x.size, 0.3, 7, BLOCK=block)
        yield Case(f"dropout {block}", run)


def rows() -> Iterator[Case]:
    for dtype in ("float32", "float16"):
        for columns in (128, 256, 512, 1000, 1024, 2048, 4096, 8192, 16384):
            x = normal(2, columns, dtype=dtype)
            out, block = np.empty_like(x), triton.next_power_of_2(columns)
            run = launcher(softmax_kernel, (2,), x, out, columns, BLOCK=block)
            yield Case(f"softmax {columns} {dtype}", run)
            if columns not in (128, 512, 1024, 1000, 4096, 8192):
                continue
            w = normal(columns)
            run = launcher(norm_kernel, (2,), x, w, w, out, columns, 1e-5, BLOCK=block)
            yield Case(f"layer norm {columns} {dtype}", run)
    for block in (256, 1024, 2048):
        x = normal(2, 8 * block)
        run = launcher(looped_norm_kernel, (2,), x, np.empty_like(x), 8 * block, 1e-5, BLOCK=block)
        yield Case(f"looped RMS norm {8 * block} by {block}", run)


def reductions() -> Iterator[Case]:
    for height, width in ((1, 1024), (4, 256), (32, 32), (64, 64), (128, 32), (16, 1024)):
        for axis in (0, 1):
            if height == 1 and axis == 0:
                continue
            x = normal(2 * height, width)
            out = np.empty(2 * max(height, width), np.float32)
            run = launcher(sum_kernel, (2,), x, out, ROWS=height, COLUMNS=width, AXIS=axis)
            yield Case(f"sum {height}x{width} axis {axis}", run)
    for height, block in ((1, 512), (4, 256), (8, 128)):
        a, x = normal(2 * height, 4 * block), normal(4 * block)
        out = np.empty(2 * height, np.float32)
        run = launcher(
            vector_product_kernel, (2,), a, x, out, 4 * block, ROWS=height, BLOCK_K=block
        )
        yield Case(f"matrix times vector {height}x{block}", run)


def others() -> Iterator[Case]:
    for block in (128, 1024, 4096):
        x = normal(2 * block)
        yield Case(f"scan {block}", launcher(scan_kernel, (2,), x, np.empty_like(x), BLOCK=block))
    for block in (64, 512, 2048):
        x = normal(2 * block)
        yield Case(f"sort {block}", launcher(sort_kernel, (2,), x, np.empty_like(x), BLOCK=block))
    for block, bins in ((1024, 64), (4096, 256)):
        x = np.random.default_rng(0).integers(0, bins, 2 * block, dtype=np.int32)
        out = np.zeros(bins, np.int32)
        run = launcher(histogram_kernel, (2,), x, out, BLOCK=block, BINS=bins)
        yield Case(f"histogram {block} to {bins}", run)
    for block in (256, 1024):
        places = np.random.default_rng(0).integers(0, 4096, 2 * block, dtype=np.int32)
        run = launcher(
            scatter_kernel, (2,), normal(2 * block), places, np.zeros(4096, np.float32), BLOCK=block
        )
        yield Case(f"scatter {block}", run)
    for side in (16, 32, 64):
        x = normal(2 * side, 2 * side)
        run = launcher(transpose_kernel, (2, 2), x, np.empty_like(x), 2 * side, 2 * side, SIDE=side)
        yield Case(f"transpose {side}x{side}", run)


def products() -> Iterator[Case]:
    shapes = (
        (16, 16, 16),
        (32, 32, 16),
        (32, 32, 32),
        (64, 32, 32),
        (64, 64, 16),
        (64, 64, 32),
        (32, 128, 32),
        (128, 64, 32),
        (128, 128, 16),
        (128, 128, 32),
    )
    for dtype in ("float16", "float32"):
        for m, n, k in shapes:
            a, b = normal(m, 8 * k, dtype=dtype), normal(8 * k, 2 * n, dtype=dtype)
            c = np.empty((m, 2 * n), dtype)
            run = launcher(
                matmul_kernel, (1, 2), a, b, c, m, 2 * n, 8 * k, BLOCK_M=m, BLOCK_N=n, BLOCK_K=k
            )
            yield Case(f"matmul {m}x{n}x{k} {dtype}", run)
    heads = ((32, 32, 32), (64, 32, 32), (64, 64, 32), (64, 64, 64), (128, 32, 32), (128, 64, 32))
    for head, m, n in heads:
        q = normal(1, 256, head, dtype="float16")
        run = launcher(
            attention_kernel,
            (256 // m, 1),
            q, q, q, np.empty_like(q), 256, head**-0.5,
            HEAD=head, BLOCK_M=m, BLOCK_N=n,
        )  # fmt: skip
        yield Case(f"attention {head}, {m}x{n}", run)


def cases() -> Iterator[Case]:
    """Every case."""
    for family in (elementwise, rows, reductions, others, products):
        yield from family()
