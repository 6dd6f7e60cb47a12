"""Kernels and shapes for benchmarks/thread_choice.py that were held out of the first model, and looked at while it was changed since.

Those that it has never seen are in thread_choice_unseen.py.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import triton_metal as triton
import triton_metal.language as tl
from benchmarks.thread_choice_kernels import (
    Case,
    attention_kernel,
    launcher,
    matmul_kernel,
    norm_kernel,
    normal,
    softmax_kernel,
    sort_kernel,
    sum_kernel,
    transpose_kernel,
    vector_product_kernel,
)

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "examples"), str(ROOT / "benchmarks")]
from kernels.attention_80 import attention_pieces_kernel  # noqa: E402
from kernels.batched_matmul import batched_matmul_kernel  # noqa: E402
from kernels.convolution import convolution_kernel  # noqa: E402
from kernels.decode import decode_kernel  # noqa: E402
from kernels.quantized import GROUP, matrix_product_kernel  # noqa: E402
from kernels.rope import rope_kernel  # noqa: E402


@triton.jit
def cross_entropy_kernel(logits, labels, loss, grad, classes, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    label = tl.load(labels + row)
    v = tl.load(logits + row * classes + i, mask=i < classes, other=-float("inf")).to(tl.float32)
    highest = tl.max(v, axis=0)
    e = tl.exp(v - highest)
    total = tl.sum(e, axis=0)
    at_label = tl.load(logits + row * classes + label).to(tl.float32)
    tl.store(loss + row, tl.log(total) + highest - at_label)
    share = tl.where(i == label, e / total - 1.0, e / total)
    tl.store(grad + row * classes + i, share.to(grad.dtype.element_ty), mask=i < classes)


@triton.jit
def group_norm_kernel(
    x, weight, out, pixels, eps, CHANNELS: tl.constexpr, BLOCK: tl.constexpr, GROUPS: tl.constexpr
):
    """A program is one group of one image: CHANNELS rows of `pixels`."""
    first = tl.program_id(0) * CHANNELS
    c, i = tl.arange(0, CHANNELS), tl.arange(0, BLOCK)
    at = (first + c[:, None]) * pixels + i[None, :]
    keep = (i < pixels)[None, :]
    v = tl.load(x + at, mask=keep, other=0.0)
    mean = tl.sum(v) / (CHANNELS * pixels)
    centred = tl.where(keep, v - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred) / (CHANNELS * pixels) + eps)
    w = tl.load(weight + tl.program_id(0) % GROUPS * CHANNELS + c)
    tl.store(out + at, centred * scale * w[:, None], mask=keep)


@triton.jit
def integer_product_kernel(
    a, b, c, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    m = tl.arange(0, BLOCK_M)
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.int32)
    for start in range(0, K, BLOCK_K):
        left = tl.load(a + m[:, None] * K + (start + k)[None, :])
        right = tl.load(b + (start + k)[:, None] * N + n[None, :])
        total = tl.dot(left, right, total)
    tl.store(c + m[:, None] * N + n[None, :], total)


def typed(x: np.ndarray, dtype: str) -> np.ndarray:
    return x.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def rows() -> Iterator[Case]:
    for columns, dtype in ((777, "float32"), (1500, "bfloat16"), (3000, "float32"), (6000, "float16"), (12000, "float32")):  # fmt: skip
        x = typed(normal(2, columns), dtype)
        block = triton.next_power_of_2(columns)
        run = launcher(softmax_kernel, (2,), x, np.empty_like(x), columns, BLOCK=block)
        yield Case(f"softmax {columns} {dtype}", run)
        if columns not in (777, 3000, 6000):
            continue
        w = typed(normal(columns), dtype)
        run = launcher(norm_kernel, (2,), x, w, w, np.empty_like(x), columns, 1e-5, BLOCK=block)
        yield Case(f"layer norm {columns} {dtype}", run)
    for classes, dtype in ((1000, "float32"), (5000, "float16"), (15000, "float32")):
        x = typed(normal(2, classes), dtype)
        labels, loss = np.array([3, 7], np.int32), np.empty(2, np.float32)
        block = triton.next_power_of_2(classes)
        run = launcher(
            cross_entropy_kernel, (2,), x, labels, loss, np.empty_like(x), classes, BLOCK=block
        )
        yield Case(f"cross entropy {classes} {dtype}", run)
    for channels, pixels in ((4, 256), (8, 900)):
        x = normal(2 * channels, pixels)
        run = launcher(
            group_norm_kernel, (2,), x, normal(2 * channels), np.empty_like(x), pixels, 1e-5,
            CHANNELS=channels, BLOCK=triton.next_power_of_2(pixels), GROUPS=2,
        )  # fmt: skip
        yield Case(f"group norm {channels}x{pixels}", run)
    for half, times, heads, neighbours in ((32, 4, 4, False), (64, 8, 2, True)):
        x = normal(heads, 2 * times, 2 * half, dtype="float16")
        run = launcher(
            rope_kernel, (2, 1), x, np.empty_like(x), heads, 2 * times, 0, 1.0, 13.3,
            HALF=half, BLOCK_T=times, HEADS=heads, NEIGHBOURS=neighbours,
        )  # fmt: skip
        yield Case(f"rope {heads}x{times}x{2 * half}{' neighbours' if neighbours else ''}", run)


def reductions() -> Iterator[Case]:
    for height, width, axis in ((16, 64, 0), (64, 16, 1), (32, 256, 0), (8, 512, 1)):
        x, out = normal(2 * height, width), np.empty(2 * max(height, width), np.float32)
        run = launcher(sum_kernel, (2,), x, out, ROWS=height, COLUMNS=width, AXIS=axis)
        yield Case(f"sum {height}x{width} axis {axis}", run)
    a, x = normal(32, 512, dtype="float16"), normal(512, dtype="float16")
    out = np.empty(32, np.float16)
    run = launcher(vector_product_kernel, (2,), a, x, out, 512, ROWS=16, BLOCK_K=128)
    yield Case("matrix times vector 16x128 float16", run)
    x = normal(2 * 256)
    yield Case("sort 256", launcher(sort_kernel, (2,), x, np.empty_like(x), BLOCK=256))
    x = normal(256, 256, dtype="float16")
    run = launcher(transpose_kernel, (2, 2), x, np.empty_like(x), 256, 256, SIDE=128)
    yield Case("transpose 128x128 float16", run)


def products() -> Iterator[Case]:
    for m, n, k, dtype in (
        (32, 64, 32, "bfloat16"), (64, 64, 64, "float16"), (64, 128, 16, "float32"),
        (128, 32, 32, "bfloat16"), (256, 64, 32, "float16"), (16, 64, 64, "float32"),
    ):  # fmt: skip
        a, b = typed(normal(m, 4 * k), dtype), typed(normal(4 * k, 2 * n), dtype)
        c = typed(np.empty((m, 2 * n)), dtype)
        run = launcher(
            matmul_kernel, (1, 2), a, b, c, m, 2 * n, 4 * k, BLOCK_M=m, BLOCK_N=n, BLOCK_K=k
        )
        yield Case(f"matmul {m}x{n}x{k} {dtype}", run)
    for m, n, k in ((32, 32, 32), (64, 64, 32)):
        a, b = np.ones((m, 4 * k), np.int8), np.ones((4 * k, 2 * n), np.int8)
        c = np.empty((m, 2 * n), np.int32)
        run = launcher(
            integer_product_kernel, (2,), a, b, c, 2 * n, 4 * k, BLOCK_M=m, BLOCK_N=n, BLOCK_K=k
        )
        yield Case(f"matmul {m}x{n}x{k} int8", run)
    a, b = normal(2, 128, 128, dtype="float16"), normal(2, 128, 128, dtype="float16")
    run = launcher(
        batched_matmul_kernel, (1, 1, 2), a, b, np.empty((2, 64, 64), np.float16), 64, 64, 128,
        128 * 128, 128, 1, 128 * 128, 1, 128, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32,
    )  # fmt: skip
    yield Case("batched matmul 64x64x32, transposed B", run)
    x, w = normal(32, 128, dtype="float16"), np.zeros((128, 16), np.uint32)
    scales = normal(128, 128 // GROUP, dtype="float16")
    run = launcher(
        matrix_product_kernel, (2, 1), x, w, scales, scales, np.empty((32, 128), np.float16), 32, 128, 128,
        BITS=4, GROUP=GROUP, BLOCK_M=32, BLOCK_N=64, BLOCK_K=32,
    )  # fmt: skip
    yield Case("quantised product 32x64x32, 4 bits", run)
    x, w = normal(1, 10, 10, 32, dtype="float16"), normal(64, 3, 3, 32, dtype="float16")
    out = np.empty((1, 8, 8, 64), np.float16)
    run = launcher(
        convolution_kernel, (2, 1), x, w, out, 64, 64, 10, 10, 8, 8, CHANNELS=32, TAPS_H=3, TAPS_W=3,
        STRIDE=1, PADDING=0, BLOCK_M=64, BLOCK_N=32, BLOCK_C=32,
    )  # fmt: skip
    yield Case("convolution 64x32x32", run)


def attentions() -> Iterator[Case]:
    for head, m, n in ((32, 64, 32), (64, 32, 64), (128, 32, 64), (64, 128, 32)):
        q = normal(1, 256, head, dtype="float16")
        run = launcher(
            attention_kernel, (256 // m, 1), q, q, q, np.empty_like(q), 256, head**-0.5,
            HEAD=head, BLOCK_M=m, BLOCK_N=n,
        )  # fmt: skip
        yield Case(f"attention {head}, {m}x{n}", run)
    for pieces, m, causal in (((64, 16), 32, True), ((32, 32), 64, True)):
        head = sum(pieces)
        q = normal(1, 128, head, dtype="float16")
        run = launcher(
            attention_pieces_kernel, (128 // m, 1), q, q, q, np.empty_like(q), 128, 128, head**-0.5,
            BLOCK_M=m, BLOCK_N=32, HEAD_A=pieces[0], HEAD_B=pieces[1], CAUSAL=causal,
        )  # fmt: skip
        yield Case(f"attention {pieces[0]} + {pieces[1]}, {m}x32, causal", run)
    q, k = normal(4, 64, dtype="float16"), normal(1, 256, 64, dtype="float16")
    outs: list[Any] = [
        np.empty((8, 64), np.float32),
        np.empty(8, np.float32),
        np.empty(8, np.float32),
    ]
    run = launcher(
        decode_kernel,
        (1, 2),
        q,
        k,
        k,
        *outs,
        256,
        128,
        0.125,
        HEAD=64,
        SHARED=4,
        QUERIES=4,
        BLOCK_N=32,
    )
    yield Case("decode, 4 heads of 64, 32 keys", run)


def cases() -> Iterator[Case]:
    """Every case."""
    for family in (rows, reductions, products, attentions):
        yield from family()
