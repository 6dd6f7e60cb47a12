"""Matrix multiplication with a fused epilogue.

A program computes one tile of C. It walks over K in blocks; ``tl.dot`` multiplies the two tiles and adds the
product to an accumulator that stays in registers, fp32 for the float types and int32 for int8. Programs go over C
in groups of GROUP_M rows of tiles, so that neighbours in time share tiles of A and B in the cache. Rows, columns
and K are masked: any shape works. A and B may be strided or transposed, because every stride is an argument.

`triton_metal.ops.matmul` does the same and chooses its tile by the shape; it has batches, more activations, and gradients.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import triton_metal as triton
import triton_metal.language as tl

from _arrays import (
    Array,
    dtype_name,
    empty,
    empty_int32,
    itemsize,
    numpy_dtype,
    strides,
    to_float64,
)
from _bounds import FLOAT32, accumulation, rounding, share_of_bound

LEAKY_SLOPE = 0.01


@triton.jit
def matmul_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    bias_ptr,
    M,
    N,
    K,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    stride_cm,
    stride_cn,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    ACTIVATION: tl.constexpr,
    ACCUMULATOR: tl.constexpr,
):
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles_n = tl.cdiv(N, BLOCK_N)
    tiles_in_group = GROUP_M * tiles_n
    first_m = (pid // tiles_in_group) * GROUP_M
    group_m = min(tiles_m - first_m, GROUP_M)
    pid_m = first_m + (pid % tiles_in_group) % group_m
    pid_n = (pid % tiles_in_group) // group_m

    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak
    b_ptrs = b_ptr + offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=ACCUMULATOR)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs, mask=(offs_m[:, None] < M) & (offs_k[None, :] < K - k), other=0)
        b = tl.load(b_ptrs, mask=(offs_k[:, None] < K - k) & (offs_n[None, :] < N), other=0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk

    if HAS_BIAS:
        bias = tl.load(bias_ptr + offs_n, mask=offs_n < N, other=0)
        acc += bias[None, :].to(ACCUMULATOR)
    if ACTIVATION == "relu":
        acc = tl.where(acc > 0, acc, 0)
    elif ACTIVATION == "leaky_relu":
        acc = tl.where(acc > 0, acc, 0.01 * acc)

    c_ptrs = c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :] * stride_cn
    tl.store(
        c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=(offs_m[:, None] < M) & (offs_n[None, :] < N)
    )


# Tile and warp choices that pay: (BLOCK_M, BLOCK_N, BLOCK_K, num_warps).
TILES = (
    (64, 64, 16, 4),
    (64, 64, 32, 4),
    (32, 32, 32, 2),
    (64, 128, 32, 8),
    (128, 64, 16, 8),
    (16, 64, 64, 2),
    (32, 64, 16, 4),
)


def matmul(
    a: Array,
    b: Array,
    bias: Array | None = None,
    activation: str = "",
    tile: tuple[int, int, int] = (64, 64, 16),
    num_warps: int = 4,
    num_stages: int = 1,
    out: Array | None = None,
) -> Array:
    """a (M, K) times b (K, N), plus bias (N,), through "relu", "leaky_relu" or nothing.

    float16, bfloat16 or float32 give the operands' dtype; int8 gives int32. Any strides; ``out`` may be strided too.
    """
    (m, k), (_, n) = a.shape, b.shape
    if b.shape[0] != k:
        raise ValueError(
            f"[matmul] a's columns must be b's rows but the shapes are {tuple(a.shape)} and {tuple(b.shape)}."
        )
    integer = dtype_name(a) == "int8"
    if out is None:
        out = empty_int32((m, n), like=a) if integer else empty((m, n), like=a)
    block_m, block_n, block_k = tile
    matmul_kernel[(triton.cdiv(m, block_m) * triton.cdiv(n, block_n),)](
        a,
        b,
        out,
        a if bias is None else bias,
        m,
        n,
        k,
        *strides(a),
        *strides(b),
        *strides(out),
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        BLOCK_K=block_k,
        GROUP_M=8,
        HAS_BIAS=bias is not None,
        ACTIVATION=activation,
        ACCUMULATOR=tl.int32 if integer else tl.float32,
        num_warps=num_warps,
        num_stages=num_stages,
    )
    return out


def least_device_bytes(
    a: Array, b: Array, c: Array, tile: tuple[int, int, int], bias: Array | None = None
) -> int:
    """Each program reads its rows of A and its columns of B (and of the bias) once and writes its tile of C."""
    (m, k), n = a.shape, b.shape[1]
    tiles_m, tiles_n = triton.cdiv(m, tile[0]), triton.cdiv(n, tile[1])
    total = tiles_n * m * k * itemsize(a) + tiles_m * n * k * itemsize(b) + m * n * itemsize(c)
    return total + (tiles_m * n * itemsize(bias) if bias is not None else 0)


def least_multiplies(a: Array, b: Array, tile: tuple[int, int, int]) -> int:
    """The 8x8x8 products in the program's dots, tiles at the edges counted whole."""
    (m, k), n = a.shape, b.shape[1]
    steps = triton.cdiv(m, tile[0]) * triton.cdiv(n, tile[1]) * triton.cdiv(k, tile[2])
    return steps * (tile[0] // 8) * (tile[1] // 8) * (tile[2] // 8)


def reference(a: Array, b: Array, bias: Array | None = None, activation: str = "") -> np.ndarray:
    """The same in float64."""
    c = to_float64(a) @ to_float64(b)
    if bias is not None:
        c = c + to_float64(bias)
    if activation == "relu":
        return np.where(c > 0, c, 0)
    return np.where(c > 0, c, LEAKY_SLOPE * c) if activation == "leaky_relu" else c


def error_bound(a: Array, b: Array, expected: np.ndarray, bias: Array | None = None) -> np.ndarray:
    """The fp32 sum over K, the bias, the slope and the store; int8 is exact."""
    if dtype_name(a) == "int8":
        return np.zeros_like(expected)
    magnitude = np.abs(to_float64(a)) @ np.abs(to_float64(b))
    if bias is not None:
        magnitude = magnitude + np.abs(to_float64(bias))
    return (
        accumulation(magnitude, a.shape[1] + 1)
        + 2 * FLOAT32 * np.abs(expected)
        + rounding(expected, dtype_name(a))
    )


def random_matrix(rng: np.random.Generator, shape: tuple[int, int], dtype: str) -> np.ndarray:
    """Random numbers: normal ones, or all int8 values."""
    if dtype == "int8":
        return rng.integers(-128, 128, shape, dtype=np.int8)
    return rng.standard_normal(shape, dtype=np.float32).astype(numpy_dtype(dtype))


def main() -> None:
    from triton_metal import ops  # here, because stock Triton runs the kernel above, too

    rng = np.random.default_rng(0)
    for dtype in ("float16", "float32", "int8"):
        extra: dict[str, Any] = {}
        if dtype != "int8":
            extra = {"bias": random_matrix(rng, (1, 250), dtype)[0], "activation": "leaky_relu"}
        a, b = random_matrix(rng, (200, 300), dtype), random_matrix(rng, (250, 300), dtype).T
        expected = reference(a, b, **extra)
        error, bound = share_of_bound(
            matmul(a, b, **extra), expected, error_bound(a, b, expected, extra.get("bias"))
        )
        print(f"200x250x300 {dtype}, B transposed: largest error {error:.3g}, bound {bound:.3g}")
        expected = reference(a, b)
        error, bound = share_of_bound(ops.matmul(a, b), expected, error_bound(a, b, expected))
        print(f"ops.matmul, {dtype}: largest error {error:.3g}, bound {bound:.3g}")


if __name__ == "__main__":
    main()
