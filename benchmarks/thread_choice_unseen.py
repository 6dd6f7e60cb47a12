"""More kernels and shapes for benchmarks/thread_choice.py, of other kinds: written when the model stood, and only measured since.

No constant of the model may be taken from what comes out here.
"""

from __future__ import annotations

from collections.abc import Iterator

import ml_dtypes
import numpy as np
import triton_metal as triton
import triton_metal.language as tl
from benchmarks.thread_choice_kernels import Case, launcher, normal, sum_kernel


@triton.jit
def small_products_kernel(a, b, c, BATCH: tl.constexpr, SIDE: tl.constexpr):
    """A program multiplies several small matrices."""
    z = tl.program_id(0) * BATCH + tl.arange(0, BATCH)
    i, j = tl.arange(0, SIDE), tl.arange(0, SIDE)
    at = z[:, None, None] * SIDE * SIDE + i[None, :, None] * SIDE + j[None, None, :]
    tl.store(c + at, tl.dot(tl.load(a + at), tl.load(b + at)).to(c.dtype.element_ty))


@triton.jit
def softmax_rows_kernel(x, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    at = i[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    v = tl.load(x + at).to(tl.float32)
    e = tl.exp(v - tl.max(v, axis=1)[:, None])
    tl.store(out + at, (e / tl.sum(e, axis=1)[:, None]).to(out.dtype.element_ty))


@triton.jit
def quantise_groups_kernel(x, out, scales, GROUPS: tl.constexpr, SIZE: tl.constexpr):
    g = tl.program_id(0) * GROUPS + tl.arange(0, GROUPS)
    at = g[:, None] * SIZE + tl.arange(0, SIZE)[None, :]
    v = tl.load(x + at).to(tl.float32)
    scale = tl.max(tl.abs(v), axis=1) / 127 + 1e-8
    tl.store(out + at, (v / scale[:, None]).to(tl.int8))
    tl.store(scales + g, scale)


@triton.jit
def blocked_cross_entropy_kernel(logits, labels, loss, classes, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    label = tl.load(labels + row)
    highest, total = -float("inf"), 0.0
    for start in range(0, classes, BLOCK):
        i = start + tl.arange(0, BLOCK)
        v = tl.load(logits + row * classes + i, mask=i < classes, other=-float("inf"))
        v = v.to(tl.float32)
        higher = tl.maximum(highest, tl.max(v, axis=0))
        total = total * tl.exp(highest - higher) + tl.sum(tl.exp(v - higher), axis=0)
        highest = higher
    at_label = tl.load(logits + row * classes + label).to(tl.float32)
    tl.store(loss + row, tl.log(total) + highest - at_label)


@triton.jit
def add_segments(value, flag, other, other_flag):
    return tl.where(other_flag != 0, other, value + other), flag | other_flag


@triton.jit
def segmented_scan_kernel(x, flags, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    sums, _ = tl.associative_scan((tl.load(x + at), tl.load(flags + at)), 0, add_segments)
    tl.store(out + at, sums)


@triton.jit
def scan_rows_kernel(x, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    at = i[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tl.store(out + at, tl.cumsum(tl.load(x + at), axis=1))


@triton.jit
def product_epilogue_kernel(
    a, b, bias, add, c, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    """gelu(a @ b + bias) + add."""
    m = tl.arange(0, BLOCK_M)
    n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        left = tl.load(a + m[:, None] * K + (start + k)[None, :])
        right = tl.load(b + (start + k)[:, None] * N + n[None, :])
        total = tl.dot(left, right, total)
    total += tl.load(bias + n).to(tl.float32)[None, :]
    total = total / (1 + tl.exp(-1.702 * total))
    at = m[:, None] * N + n[None, :]
    total += tl.load(add + at).to(tl.float32)
    tl.store(c + at, total.to(c.dtype.element_ty))


@triton.jit
def norm_backward_kernel(x, weight, dy, dx, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    keep = i < columns
    v = tl.load(x + row * columns + i, mask=keep, other=0.0).to(tl.float32)
    w = tl.load(weight + i, mask=keep, other=0.0).to(tl.float32)
    g = tl.load(dy + row * columns + i, mask=keep, other=0.0).to(tl.float32) * w
    mean = tl.sum(v, axis=0) / columns
    centred = tl.where(keep, v - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / columns + 1e-5)
    normal_x = centred * scale
    along = tl.sum(normal_x * g, axis=0) / columns
    shift = tl.sum(g, axis=0) / columns
    result = (g - normal_x * along - shift) * scale
    tl.store(dx + row * columns + i, result.to(dx.dtype.element_ty), mask=keep)


@triton.jit
def norm_weights_backward_kernel(
    x, dy, dw, db, COLUMNS, TIMES, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    """The sums over rows: a program has BLOCK columns and goes down the rows."""
    j = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    weights = tl.zeros((ROWS, BLOCK), tl.float32)
    biases = tl.zeros((ROWS, BLOCK), tl.float32)
    for step in range(TIMES):
        at = (step * ROWS + tl.arange(0, ROWS))[:, None] * COLUMNS + j[None, :]
        g = tl.load(dy + at).to(tl.float32)
        weights += g * tl.load(x + at).to(tl.float32)
        biases += g
    tl.store(dw + j, tl.sum(weights, axis=0))
    tl.store(db + j, tl.sum(biases, axis=0))


@triton.jit
def argmax_kernel(x, out, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    tl.store(out + row, tl.argmax(tl.load(x + row * BLOCK + tl.arange(0, BLOCK)), axis=0))


@triton.jit
def embed_kernel(table, indices, out, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    j = tl.arange(0, WIDTH)
    rows = tl.load(table + tl.load(indices + i)[:, None] * WIDTH + j[None, :])
    tl.store(out + i[:, None] * WIDTH + j[None, :], rows)


@triton.jit
def adam_kernel(p, g, m, v, rate, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    grad = tl.load(g + i)
    first = 0.9 * tl.load(m + i) + 0.1 * grad
    second = 0.999 * tl.load(v + i) + 0.001 * grad * grad
    tl.store(m + i, first)
    tl.store(v + i, second)
    tl.store(p + i, tl.load(p + i) - rate * first / (tl.sqrt(second) + 1e-8))


@triton.jit
def gated_kernel(x, out, width, BLOCK: tl.constexpr):
    """silu of the first half of a row times the second."""
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    row = tl.program_id(0)
    gate = tl.load(x + row * 2 * width + i).to(tl.float32)
    up = tl.load(x + row * 2 * width + width + i).to(tl.float32)
    tl.store(out + row * width + i, (gate / (1 + tl.exp(-gate)) * up).to(out.dtype.element_ty))


def rows() -> Iterator[Case]:
    for height, width, dtype in ((8, 256, "float32"), (32, 64, "float16"), (4, 1024, "float32")):
        x = normal(2 * height, width, dtype=dtype)
        run = launcher(softmax_rows_kernel, (2,), x, np.empty_like(x), ROWS=height, COLUMNS=width)
        yield Case(f"softmax of rows {height}x{width} {dtype}", run)
    for groups, size in ((16, 64), (32, 128), (4, 32)):
        x = normal(2 * groups, size, dtype="float16")
        out, scales = np.empty(x.shape, np.int8), np.empty(2 * groups, np.float32)
        run = launcher(quantise_groups_kernel, (2,), x, out, scales, GROUPS=groups, SIZE=size)
        yield Case(f"quantise groups {groups}x{size}", run)
    for classes, block in ((8000, 1024), (32000, 4096)):
        x, labels = normal(2, classes, dtype="float16"), np.array([3, 7], np.int32)
        loss = np.empty(2, np.float32)
        run = launcher(blocked_cross_entropy_kernel, (2,), x, labels, loss, classes, BLOCK=block)
        yield Case(f"cross entropy {classes} in blocks of {block}", run)
    for columns in (512, 1000, 2048):
        x = normal(2, columns)
        run = launcher(
            norm_backward_kernel, (2,), x, normal(columns), normal(2, columns), np.empty_like(x),
            columns, BLOCK=triton.next_power_of_2(columns),
        )  # fmt: skip
        yield Case(f"layer norm backward {columns}", run)
    for height, width in ((8, 128), (32, 64)):
        x, dy = normal(8 * height, 2 * width), normal(8 * height, 2 * width)
        outs = np.empty(2 * width, np.float32), np.empty(2 * width, np.float32)
        run = launcher(
            norm_weights_backward_kernel, (2,), x, dy, *outs, 2 * width, 8, ROWS=height, BLOCK=width
        )
        yield Case(f"layer norm weights backward {height}x{width}", run)
    x = normal(2, 2048)
    yield Case("argmax 2048", launcher(argmax_kernel, (2,), x, np.empty(2, np.int32), BLOCK=2048))


def others() -> Iterator[Case]:
    for batch, side, dtype in ((4, 16, "float16"), (8, 8, "float32"), (2, 32, "float16")):
        a, b = (
            normal(2 * batch, side, side, dtype=dtype),
            normal(2 * batch, side, side, dtype=dtype),
        )
        run = launcher(small_products_kernel, (2,), a, b, np.empty_like(a), BATCH=batch, SIDE=side)
        yield Case(f"products {batch} of {side}x{side} {dtype}", run)
    for height, width, axis in ((256, 16, 0), (512, 8, 0), (256, 32, 1)):
        x, out = normal(2 * height, width), np.empty(2 * max(height, width), np.float32)
        run = launcher(sum_kernel, (2,), x, out, ROWS=height, COLUMNS=width, AXIS=axis)
        yield Case(f"tall sum {height}x{width} axis {axis}", run)
    for block in (256, 2048):
        x, flags = normal(2 * block), (np.arange(2 * block) % 37 == 0).astype(np.int32)
        run = launcher(segmented_scan_kernel, (2,), x, flags, np.empty_like(x), BLOCK=block)
        yield Case(f"segmented scan {block}", run)
    x = normal(32, 128)
    run = launcher(scan_rows_kernel, (2,), x, np.empty_like(x), ROWS=16, COLUMNS=128)
    yield Case("scan of rows 16x128", run)
    for m, n, k, dtype in (
        (64, 64, 32, "float16"), (32, 64, 16, "bfloat16"), (32, 32, 64, "float32"), (128, 32, 16, "float16"),
    ):  # fmt: skip
        kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
        a, b = normal(m, 4 * k).astype(kind), normal(4 * k, 2 * n).astype(kind)
        bias, add = normal(2 * n).astype(kind), normal(m, 2 * n).astype(kind)
        run = launcher(
            product_epilogue_kernel, (2,), a, b, bias, add, np.empty_like(add), 2 * n, 4 * k,
            BLOCK_M=m, BLOCK_N=n, BLOCK_K=k,
        )  # fmt: skip
        yield Case(f"matmul with epilogue {m}x{n}x{k} {dtype}", run)
    table, indices = normal(100, 128, dtype="float16"), np.arange(32, dtype=np.int32) * 3
    run = launcher(
        embed_kernel, (2,), table, indices, np.empty((32, 128), np.float16), ROWS=16, WIDTH=128
    )
    yield Case("embedding 16x128", run)
    p, g, m, v = (np.abs(normal(4096)) for _ in range(4))
    yield Case("adam 1024", launcher(adam_kernel, (4,), p, g, m, v, 1e-3, BLOCK=1024))
    x = normal(2, 8192, dtype="float16")
    run = launcher(gated_kernel, (2, 2), x, np.empty((2, 4096), np.float16), 4096, BLOCK=2048)
    yield Case("gated 2048", run)


def cases() -> Iterator[Case]:
    """Every case."""
    for family in (rows, others):
        yield from family()
