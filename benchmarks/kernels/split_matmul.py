"""Matrix products whose K is cut into parts: a program computes a tile of one part, and a second kernel adds the parts up.

With one part, the first kernel stores the result. `precision` is tl.dot's: fp32 takes tensor operations with "tf32" alone.
"""

from __future__ import annotations

import triton_metal as triton
import triton_metal.language as tl

from _arrays import Array, empty, empty_float32, strides


@triton.jit
def split_matmul_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    part_size,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    PRECISION: tl.constexpr,
):
    part = tl.program_id(2)
    first = part * part_size
    last = min(K, first + part_size)
    offs_m = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = first + tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak
    b_ptrs = b_ptr + offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, last - first, BLOCK_K):
        a = tl.load(a_ptrs, mask=(offs_m[:, None] < M) & (offs_k[None, :] < last - k), other=0)
        b = tl.load(b_ptrs, mask=(offs_k[:, None] < last - k) & (offs_n[None, :] < N), other=0)
        acc = tl.dot(a, b, acc, input_precision=PRECISION)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    c_ptrs = c_ptr + part * M * N + offs_m[:, None] * N + offs_n[None, :]
    mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=mask)


@triton.jit
def add_parts_kernel(parts_ptr, c_ptr, size, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for part in tl.static_range(PARTS):
        total += tl.load(parts_ptr + part * size + at, mask=inside, other=0.0)
    tl.store(c_ptr + at, total.to(c_ptr.dtype.element_ty), mask=inside)


def split_matmul(
    a: Array,
    b: Array,
    parts: int = 1,
    tile: tuple[int, int, int] = (64, 64, 32),
    num_warps: int = 4,
    precision: str = "ieee",
) -> Array:
    """a (M, K) times b (K, N), of any strides: float16, bfloat16 or float32, in `parts` of K that tiles divide."""
    (m, k), n = a.shape, b.shape[1]
    block_m, block_n, block_k = tile
    out = empty((m, n), like=a)
    size = triton.cdiv(triton.cdiv(k, parts), block_k) * block_k
    parts = triton.cdiv(k, size)
    sums = empty_float32((parts, m, n), like=a) if parts > 1 else out
    split_matmul_kernel[(triton.cdiv(n, block_n), triton.cdiv(m, block_m), parts)](
        a,
        b,
        sums,
        m,
        n,
        k,
        size,
        *strides(a),
        *strides(b),
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        BLOCK_K=block_k,
        PRECISION=precision,
        num_warps=num_warps,
        num_stages=1,
    )
    if parts > 1:
        # Four numbers a thread, of all parts: with more, a core holds fewer threads.
        add_parts_kernel[(triton.cdiv(m * n, 512),)](
            sums, out, m * n, PARTS=parts, BLOCK=512, num_warps=4
        )
    return out
