"""Products with a matrix that MLX has quantised: x (M, K) times the transpose of w (N, K).

In `mx.quantize`'s layout a word of 32 bits holds 8 numbers of 4 bits or 4 of 8 bits, little end first, and each
group of 64 numbers of a row has a scale and a bias: w = scale * number + bias.
"""

from __future__ import annotations

import numpy as np
import triton_metal as triton
import triton_metal.language as tl

from _arrays import Array, empty

GROUP = 64


@triton.jit
def add_products(
    acc, packed, x, FIRST: tl.constexpr, STEP: tl.constexpr, BITS: tl.constexpr, COUNT: tl.constexpr
):
    """acc (N, W) plus the products of COUNT numbers of each word of packed (N, W) with those of x (W, COUNT).

    The numbers begin at bit FIRST, and each one STEP bits behind the one before. A number stays where it is in its word,
    and x is as much smaller: a power of two, which is exact.
    """
    if COUNT == 1:
        numbers = packed & tl.full((), ((1 << BITS) - 1) << FIRST, tl.uint32)
        smaller = tl.reshape(x, (x.shape[0],)) * (1.0 / (1 << FIRST))
        return acc + numbers.to(tl.float32) * smaller[None, :]
    even, odd = tl.split(tl.reshape(x, (x.shape[0], COUNT // 2, 2)))
    acc = add_products(acc, packed, even, FIRST, 2 * STEP, BITS, COUNT // 2)
    return add_products(acc, packed, odd, FIRST + STEP, 2 * STEP, BITS, COUNT // 2)


@triton.jit
def load(at, mask, EVEN: tl.constexpr):
    """The numbers where the mask is true, and 0 elsewhere; all of them in problems whose blocks are whole."""
    if EVEN:
        return tl.load(at)
    return tl.load(at, mask=mask, other=0)


@triton.jit
def vector_product_kernel(
    x_ptr,
    w_ptr,
    scales_ptr,
    biases_ptr,
    out_ptr,
    N,
    K,
    BITS: tl.constexpr,
    GROUP: tl.constexpr,
    EVEN: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """A row of x: numbers are multiplied as they are, and the sum of two words' is scaled. EVEN: no block is cut."""
    EACH: tl.constexpr = 32 // BITS
    PAIRS: tl.constexpr = BLOCK_K // (2 * EACH)
    m = tl.program_id(1)
    offs_n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    pair, two, digit = tl.arange(0, PAIRS), tl.arange(0, 2), tl.arange(0, EACH)
    rows = offs_n[:, None] < N
    # Two words lie side by side, at a multiple of two. Pointers move along the rows.
    words = (offs_n[:, None] * (K // (2 * EACH)) + pair[None, :])[:, :, None] * 2 + two[
        None, None, :
    ]
    groups = offs_n[:, None] * (K // GROUP) + (pair // (GROUP // (2 * EACH)))[None, :]
    at = pair[:, None] * (2 * EACH) + digit[None, :]
    x_ptr += m * K
    acc = tl.zeros((BLOCK_N, PAIRS), tl.float32)
    for start in range(0, K, BLOCK_K):
        inside = start + pair * (2 * EACH) < K
        mask = rows & inside[None, :]
        first, second = tl.split(load(w_ptr + words, mask[:, :, None], EVEN))
        scale = load(scales_ptr + groups, mask, EVEN).to(tl.float32)
        bias = load(biases_ptr + groups, mask, EVEN).to(tl.float32)
        low = load(x_ptr + at, inside[:, None], EVEN).to(tl.float32)
        high = load(x_ptr + EACH + at, inside[:, None], EVEN).to(tl.float32)
        products = tl.zeros((BLOCK_N, PAIRS), tl.float32)
        products = add_products(products, first, low, 0, BITS, BITS, EACH)
        products = add_products(products, second, high, 0, BITS, BITS, EACH)
        acc += scale * products + bias * (tl.sum(low, axis=1) + tl.sum(high, axis=1))[None, :]
        w_ptr += BLOCK_K // EACH
        scales_ptr += BLOCK_K // GROUP
        biases_ptr += BLOCK_K // GROUP
        x_ptr += BLOCK_K
    result = tl.sum(acc, axis=1).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + m * N + offs_n, result, mask=offs_n < N)


@triton.jit
def byte_vector_product_kernel(
    x_ptr,
    w_ptr,
    scales_ptr,
    biases_ptr,
    out_ptr,
    N,
    K,
    GROUP: tl.constexpr,
    EVEN: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """A row of x and numbers of 8 bits: those are the bytes of the words, and the sum of eight is scaled."""
    EACH: tl.constexpr = 8
    PARTS: tl.constexpr = BLOCK_K // EACH
    m = tl.program_id(1)
    offs_n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    part, digit = tl.arange(0, PARTS), tl.arange(0, EACH)
    rows = offs_n[:, None] < N
    places = (offs_n[:, None] * (K // EACH) + part[None, :])[:, :, None] * EACH + digit[
        None, None, :
    ]
    groups = offs_n[:, None] * (K // GROUP) + (part // (GROUP // EACH))[None, :]
    at = part[:, None] * EACH + digit[None, :]
    x_ptr += m * K
    acc = tl.zeros((BLOCK_N, PARTS), tl.float32)
    for start in range(0, K, BLOCK_K):
        inside = start + part * EACH < K
        mask = rows & inside[None, :]
        numbers = load(w_ptr + places, mask[:, :, None], EVEN).to(tl.float32)
        scale = load(scales_ptr + groups, mask, EVEN).to(tl.float32)
        bias = load(biases_ptr + groups, mask, EVEN).to(tl.float32)
        x = load(x_ptr + at, inside[:, None], EVEN).to(tl.float32)
        products = tl.sum(numbers * x[None, :, :], axis=2)
        acc += scale * products + bias * tl.sum(x, axis=1)[None, :]
        w_ptr += BLOCK_K
        scales_ptr += BLOCK_K // GROUP
        biases_ptr += BLOCK_K // GROUP
        x_ptr += BLOCK_K
    result = tl.sum(acc, axis=1).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + m * N + offs_n, result, mask=offs_n < N)


@triton.jit
def matrix_product_kernel(
    x_ptr,
    w_ptr,
    scales_ptr,
    biases_ptr,
    out_ptr,
    M,
    N,
    K,
    BITS: tl.constexpr,
    GROUP: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """A tile of w, words or bytes, becomes numbers of x's type, and then it is a matrix product."""
    EACH: tl.constexpr = 32 // BITS
    WORDS: tl.constexpr = BLOCK_K // EACH
    offs_m = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    word = tl.arange(0, WORDS)
    digit = tl.arange(0, EACH)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    x_mask, mask = offs_m[:, None] < M, offs_n[:, None] < N
    # K is a multiple of a group, and so of BLOCK_K.
    for start in range(0, K, BLOCK_K):
        x = tl.load(x_ptr + offs_m[:, None] * K + start + offs_k[None, :], mask=x_mask, other=0.0)
        if BITS == 8:
            at = w_ptr + offs_n[:, None] * K + start + offs_k[None, :]
        else:
            at = w_ptr + offs_n[:, None] * (K // EACH) + (start // EACH + word)[None, :]
        packed = tl.load(at, mask=mask, other=0)
        group = offs_n * (K // GROUP) + start // GROUP
        scale = tl.load(scales_ptr + group, mask=offs_n < N, other=0.0)
        bias = tl.load(biases_ptr + group, mask=offs_n < N, other=0.0)
        if BITS == 8:
            w = packed.to(x.dtype) * scale[:, None] + bias[:, None]
        else:
            numbers = (packed[:, :, None] >> (digit * BITS)[None, None, :]) & ((1 << BITS) - 1)
            w = numbers.to(x.dtype) * scale[:, None, None] + bias[:, None, None]
            w = tl.reshape(w, (BLOCK_N, BLOCK_K))
        acc = tl.dot(x, tl.trans(w), acc, input_precision="ieee")
    out = out_ptr + offs_m[:, None] * N + offs_n[None, :]
    mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)
    tl.store(out, acc.to(out_ptr.dtype.element_ty), mask=mask)


def vector_product(
    x: np.ndarray, w: np.ndarray, scales: Array, biases: Array, bits: int, **options: int
) -> np.ndarray:
    """x (M, K) times w's transpose, a row of x a program: for few rows. Options: BLOCK_N, BLOCK_K, num_warps."""
    (m, k), n = x.shape, w.shape[0]
    out = empty((m, n), like=x)
    grid = (triton.cdiv(n, options["BLOCK_N"]), m)
    options["EVEN"] = n % options["BLOCK_N"] == 0 and k % options["BLOCK_K"] == 0
    if bits == 8:
        numbers = w.view(np.uint8)
        byte_vector_product_kernel[grid](
            x, numbers, scales, biases, out, n, k, GROUP=GROUP, **options
        )
        return out
    vector_product_kernel[grid](x, w, scales, biases, out, n, k, BITS=bits, GROUP=GROUP, **options)
    return out


def matrix_product(
    x: Array, w: np.ndarray, scales: Array, biases: Array, bits: int, **options: int
) -> Array:
    """x (M, K) times w's transpose. Options: BLOCK_M, BLOCK_N, BLOCK_K (at most a group), num_warps."""
    (m, k), n = x.shape, w.shape[0]
    out = empty((m, n), like=x)
    if bits == 8:
        w = w.view(np.uint8)
    grid = (triton.cdiv(n, options["BLOCK_N"]), triton.cdiv(m, options["BLOCK_M"]))
    matrix_product_kernel[grid](
        x, w, scales, biases, out, m, n, k, BITS=bits, GROUP=GROUP, **options
    )
    return out
