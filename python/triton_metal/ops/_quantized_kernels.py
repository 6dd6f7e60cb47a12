"""Kernels of matrices in the layouts of MLX's mx.quantize.

A row's numbers are codes of 4 or 8 bits, little end first in words of 32 bits; each group of a row has a scale, and in
the mode "affine" a bias: w = scale * code + bias. In the modes "mxfp4" and "mxfp8" a code is a small float and a scale
the exponent of a power of two, plus 127; 255 is NaN.
"""

from __future__ import annotations

import triton_metal as triton
import triton_metal.language as tl
from triton_metal.language.extra import libdevice

from ._far import far_steps


@triton.jit
def load(at, mask, EVEN: tl.constexpr):
    """The numbers where the mask is true, and 0 elsewhere; all of them in problems whose blocks are whole."""
    if EVEN:
        return tl.load(at)
    return tl.load(at, mask=mask, other=0)


@triton.jit
def power_of_two(code):
    """2 to the code less 127, 0 for 0 (2**-127 is subnormal), and NaN for 255."""
    number = (code.to(tl.int32) << 23).to(tl.float32, bitcast=True)
    return tl.where(code == 255, float("nan"), number)


@triton.jit
def small_half(word):
    """The highest 4 bits, sign, exponent of two bits and mantissa of one, as a half that is smaller by 2**14.

    Subnormal halves are numbers everywhere. The shift copies the sign to where a half has its own.
    """
    bits = (word.to(tl.int32, bitcast=True) >> 19) & 0x8E00
    return bits.to(tl.uint16).to(tl.float16, bitcast=True)


@triton.jit
def numbers_of(codes, scale, bias, MODE: tl.constexpr, TYPE: tl.constexpr):
    """The numbers of codes, rounded once to TYPE where a mode has biases; others round nothing that TYPE has."""
    if MODE == "affine":
        return tl.fma(codes.to(tl.float32), scale.to(tl.float32), bias.to(tl.float32)).to(TYPE)
    if MODE == "mxfp8":
        codes = codes.to(tl.uint8).to(tl.float8e4nv, bitcast=True).to(TYPE)
    else:
        codes = small_half(codes << 28).to(TYPE) * 16384.0
    return codes * power_of_two(scale).to(TYPE)


@triton.jit
def numbers_of_pairs(pairs, scale, bias, MODE: tl.constexpr, TYPE: tl.constexpr):
    """The numbers of bytes with two codes of 4 bits each, in a new last dimension.

    An integer in the upper half of a byte stays there, and its scale is a 16th: exact, but for a scale of less than 2**-122.
    """
    if MODE == "affine":
        low = numbers_of(pairs & 0x0F, scale, bias, MODE, TYPE)
        high = numbers_of(pairs & 0xF0, scale.to(tl.float32) * 0.0625, bias, MODE, TYPE)
    else:
        codes = pairs.to(tl.uint32)
        low = numbers_of(codes, scale, bias, MODE, TYPE)
        high = numbers_of(codes >> 4, scale, bias, MODE, TYPE)
    return tl.join(low, high)


@triton.jit
def quantize_kernel(
    w_ptr, q_ptr, scales_ptr, biases_ptr, groups,
    BITS: tl.constexpr, GROUP: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The codes of BLOCK groups. The larger end of a group's range is met exactly, and so is 0."""
    EACH: tl.constexpr = 32 // BITS
    group = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    at = group[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    inside = group < groups
    w = tl.load(w_ptr + at, mask=inside[:, None], other=0.0).to(tl.float32)
    low, high = tl.min(w, axis=1), tl.max(w, axis=1)
    scale = tl.maximum(tl.div_rn(high - low, float((1 << BITS) - 1)), 1e-7)
    below = tl.abs(low) > tl.abs(high)
    scale = tl.where(below, scale, -scale)
    edge = tl.where(below, low, high)
    steps = libdevice.rint(tl.div_rn(edge, scale))
    scale = tl.where(steps == 0, scale, tl.div_rn(edge, tl.where(steps == 0, 1.0, steps)))
    bias = tl.where(steps == 0, 0.0, edge)
    # The least and the largest number are no NaN; one in a group makes all of it NaN, as an infinity does.
    broken = tl.sum((w != w).to(tl.int32), axis=1) > 0
    scale = tl.where(broken, float("nan"), scale)
    tl.store(scales_ptr + group, scale.to(scales_ptr.dtype.element_ty), mask=inside)
    tl.store(biases_ptr + group, bias.to(biases_ptr.dtype.element_ty), mask=inside)
    # The quotient is 0 or more, and NaN in a group with a NaN.
    code = libdevice.rint(tl.div_rn(w - bias[:, None], tl.broadcast_to(scale[:, None], w.shape)))
    code = tl.where(code > 0, tl.minimum(code, (1 << BITS) - 1), 0).to(tl.uint32)
    store_codes(q_ptr, code, group, inside, BITS, GROUP, EACH, BLOCK)


@triton.jit
def mx_quantize_kernel(
    w_ptr, q_ptr, scales_ptr, groups, BITS: tl.constexpr, GROUP: tl.constexpr, BLOCK: tl.constexpr
):
    """The codes of BLOCK groups as floats of 4 or 8 bits, with a power of two as near as the largest needs."""
    EACH: tl.constexpr = 32 // BITS
    group = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    at = group[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    inside = group < groups
    w = tl.load(w_ptr + at, mask=inside[:, None], other=0.0).to(tl.float32)
    largest = tl.div_rn(tl.max(tl.abs(w), axis=1), 6.0 if BITS == 4 else 448.0)
    broken = tl.sum((w != w).to(tl.int32), axis=1) > 0
    # The exponent of the nearest power of two by its logarithm: one more from the root of 2 on.
    bits = largest.to(tl.int32, bitcast=True)
    exponent = (bits >> 23) + ((bits & 0x7FFFFF) > 0x3504F3).to(tl.int32)
    exponent = tl.where(((bits >> 23) == 255) | broken, 255, tl.minimum(exponent, 254))
    tl.store(scales_ptr + group, exponent.to(tl.uint8), mask=inside)
    inverse = ((254 - tl.minimum(exponent, 253)) << 23).to(tl.float32, bitcast=True)
    x = w * inverse[:, None]
    if BITS == 4:
        size = tl.abs(x)
        code = (size > 0.25).to(tl.uint32) + (size >= 0.75).to(tl.uint32)
        code += (size > 1.25).to(tl.uint32) + (size >= 1.75).to(tl.uint32)
        code += (size > 2.5).to(tl.uint32) + (size >= 3.5).to(tl.uint32)
        code += (size > 5.0).to(tl.uint32)
        code += (x.to(tl.uint32, bitcast=True) >> 31) << 3
    else:
        x = tl.where(x > 448.0, 448.0, tl.where(x < -448.0, -448.0, x))
        code = x.to(tl.float8e4nv).to(tl.uint8, bitcast=True).to(tl.uint32)
    store_codes(q_ptr, code, group, inside, BITS, GROUP, EACH, BLOCK)


@triton.jit
def store_codes(
    q_ptr, code, group, inside,
    BITS: tl.constexpr, GROUP: tl.constexpr, EACH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The codes of groups, EACH of them in a word."""
    WORDS: tl.constexpr = GROUP // EACH
    shifts = (tl.arange(0, EACH) * BITS).to(tl.uint32)[None, None, :]
    words = tl.sum(tl.reshape(code, (BLOCK, WORDS, EACH)) << shifts, axis=2)
    at = group[:, None] * WORDS + tl.arange(0, WORDS)[None, :]
    tl.store(q_ptr + at, words.to(tl.uint32), mask=inside[:, None])


@triton.jit
def dequantize_kernel(
    q_ptr, scales_ptr, biases_ptr, w_ptr, words,
    BITS: tl.constexpr, GROUP: tl.constexpr, MODE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The numbers of BLOCK words."""
    EACH: tl.constexpr = 32 // BITS
    word = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = word < words
    digit = tl.arange(0, EACH)
    packed = tl.load(q_ptr + word, mask=inside, other=0)
    scale = tl.load(scales_ptr + word // (GROUP // EACH), mask=inside, other=0)[:, None]
    bias = scale
    if MODE == "affine":
        bias = tl.load(biases_ptr + word // (GROUP // EACH), mask=inside, other=0)[:, None]
    codes = (packed[:, None] >> (digit * BITS).to(tl.uint32)[None, :]) & ((1 << BITS) - 1)
    w = numbers_of(codes, scale, bias, MODE, tl.float32)
    at = word[:, None] * EACH + digit[None, :]
    tl.store(w_ptr + at, w.to(w_ptr.dtype.element_ty), mask=inside[:, None])


@triton.jit
def add_products(
    acc, packed, x, FIRST: tl.constexpr, STEP: tl.constexpr, BITS: tl.constexpr, COUNT: tl.constexpr,
    MODE: tl.constexpr,
):  # fmt: skip
    """acc (N, W) plus the products of COUNT numbers of each word of packed (N, W) with those of x (W, COUNT).

    The numbers begin at bit FIRST, and each one STEP bits behind the one before. An integer stays where it is in its word,
    and x is as much smaller: a power of two, which is exact. A small float becomes the upper bits of a half, which is
    smaller by 2**14, and x is as much larger.
    """
    if COUNT == 1:
        x = tl.reshape(x, (x.shape[0],))
        if MODE == "affine":
            numbers = packed & tl.full((), ((1 << BITS) - 1) << FIRST, tl.uint32)
            return acc + numbers.to(tl.float32) * (x * (1.0 / (1 << FIRST)))[None, :]
        numbers = small_half(packed << (28 - FIRST))
        return acc + numbers.to(tl.float32) * (x * 16384.0)[None, :]
    even, odd = tl.split(tl.reshape(x, (x.shape[0], COUNT // 2, 2)))
    acc = add_products(acc, packed, even, FIRST, 2 * STEP, BITS, COUNT // 2, MODE)
    return add_products(acc, packed, odd, FIRST + STEP, 2 * STEP, BITS, COUNT // 2, MODE)


@triton.jit
def load_eight(x_ptr, first, inside, EVEN: tl.constexpr):
    """Eight numbers from each place of `first` on, which a thread has: of 32 bits, they are two reads of 16 bytes."""
    mask = inside[:, None]
    if x_ptr.dtype.element_ty.primitive_bitwidth <= 16:
        return load(x_ptr + first[:, None] + tl.arange(0, 8)[None, :], mask, EVEN)
    at = first[:, None] + tl.arange(0, 4)[None, :]
    both = tl.join(load(x_ptr + at, mask, EVEN), load(x_ptr + 4 + at, mask, EVEN))
    return tl.reshape(tl.permute(both, (0, 2, 1)), (first.shape[0], 8))


@triton.jit
def first_column(N, COLUMNS: tl.constexpr, BLOCK_N: tl.constexpr):
    """Where a program's columns begin. Where blocks do not divide them, the last one has some of the one before, not to be cut."""
    first = tl.program_id(0) * BLOCK_N
    if COLUMNS == "shared":
        return tl.minimum(first, N - BLOCK_N)
    return first


@triton.jit
def own_columns(column, N, COLUMNS: tl.constexpr, BLOCK_N: tl.constexpr):
    """Which columns a program stores."""
    if COLUMNS == "shared":
        return column >= tl.program_id(0) * BLOCK_N
    return column < N


@triton.jit
def word_vector_kernel(
    x_ptr, w_ptr, scales_ptr, biases_ptr, out_ptr, M, N, K,
    BITS: tl.constexpr, GROUP: tl.constexpr, MODE: tl.constexpr, EVEN: tl.constexpr, WIDE: tl.constexpr,
    COLUMNS: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """A row of x: codes of 4 bits are multiplied where they are, and the sum of two words' is scaled."""
    EACH: tl.constexpr = 32 // BITS
    PAIRS: tl.constexpr = BLOCK_K // (2 * EACH)
    m, batch = tl.program_id(1), tl.program_id(2)
    if WIDE:
        batch = batch.to(tl.int64)
    start_n = first_column(N, COLUMNS, BLOCK_N)
    first = batch * N + start_n
    local = tl.arange(0, BLOCK_N)
    pair, two = tl.arange(0, PAIRS), tl.arange(0, 2)
    column = start_n + local
    row_groups = K // GROUP
    # Two words lie side by side, at a multiple of two. Pointers move along the rows.
    words = (local[:, None] * (row_groups * (GROUP // (2 * EACH))) + pair[None, :])[
        :, :, None
    ] * 2 + two[None, None, :]
    groups = local[:, None] * row_groups + (pair // (GROUP // (2 * EACH)))[None, :]
    at = pair * (2 * EACH)
    w_ptr += first * (row_groups * (GROUP // EACH))
    scales_ptr += first * row_groups
    if MODE == "affine":
        biases_ptr += first * row_groups
    x_ptr += (batch * M + m) * K
    acc = tl.zeros((BLOCK_N, PAIRS), tl.float32)
    for start in range(0, K, BLOCK_K):
        inside = start + pair * (2 * EACH) < K
        mask = tl.broadcast_to(inside[None, :], acc.shape)
        if COLUMNS == "few":
            mask = (column < N)[:, None] & mask
        low_words, high_words = tl.split(load(w_ptr + words, mask[:, :, None], EVEN))
        scale = load(scales_ptr + groups, mask, EVEN)
        scale = scale.to(tl.float32) if MODE == "affine" else power_of_two(scale)
        low = load_eight(x_ptr, at, inside, EVEN).to(tl.float32)
        high = load_eight(x_ptr + EACH, at, inside, EVEN).to(tl.float32)
        products = tl.zeros((BLOCK_N, PAIRS), tl.float32)
        products = add_products(products, low_words, low, 0, BITS, BITS, EACH, MODE)
        products = add_products(products, high_words, high, 0, BITS, BITS, EACH, MODE)
        acc += scale * products
        if MODE == "affine":
            bias = load(biases_ptr + groups, mask, EVEN).to(tl.float32)
            acc += bias * (tl.sum(low, axis=1) + tl.sum(high, axis=1))[None, :]
            biases_ptr += BLOCK_K // GROUP
        w_ptr += BLOCK_K // EACH
        scales_ptr += BLOCK_K // GROUP
        x_ptr += BLOCK_K
    result = tl.sum(acc, axis=1).to(out_ptr.dtype.element_ty)
    tl.store(
        out_ptr + (batch * M + m) * N + column,
        result,
        mask=own_columns(column, N, COLUMNS, BLOCK_N),
    )


@triton.jit
def byte_vector_kernel(
    x_ptr, w_ptr, scales_ptr, biases_ptr, out_ptr, M, N, K,
    BITS: tl.constexpr, GROUP: tl.constexpr, MODE: tl.constexpr, EVEN: tl.constexpr, WIDE: tl.constexpr,
    COLUMNS: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """A row of x and codes of 8 bits: those are the bytes of the words, and the sum of eight is scaled."""
    EACH: tl.constexpr = 8
    PARTS: tl.constexpr = BLOCK_K // EACH
    m, batch = tl.program_id(1), tl.program_id(2)
    if WIDE:
        batch = batch.to(tl.int64)
    start_n = first_column(N, COLUMNS, BLOCK_N)
    first = batch * N + start_n
    local = tl.arange(0, BLOCK_N)
    part, digit = tl.arange(0, PARTS), tl.arange(0, EACH)
    column = start_n + local
    places = (local[:, None] * (K // EACH) + part[None, :])[:, :, None] * EACH + digit[
        None, None, :
    ]
    groups = local[:, None] * (K // GROUP) + (part // (GROUP // EACH))[None, :]
    w_ptr += first * K
    scales_ptr += first * (K // GROUP)
    if MODE == "affine":
        biases_ptr += first * (K // GROUP)
    x_ptr += (batch * M + m) * K
    acc = tl.zeros((BLOCK_N, PARTS), tl.float32)
    for start in range(0, K, BLOCK_K):
        inside = start + part * EACH < K
        mask = tl.broadcast_to(inside[None, :], acc.shape)
        if COLUMNS == "few":
            mask = (column < N)[:, None] & mask
        numbers = load(w_ptr + places, mask[:, :, None], EVEN)
        if MODE != "affine":
            numbers = numbers.to(tl.float8e4nv, bitcast=True)
        numbers = numbers.to(tl.float32)
        scale = load(scales_ptr + groups, mask, EVEN)
        scale = scale.to(tl.float32) if MODE == "affine" else power_of_two(scale)
        x = load_eight(x_ptr, part * EACH, inside, EVEN).to(tl.float32)
        products = tl.sum(numbers * x[None, :, :], axis=2)
        acc += scale * products
        if MODE == "affine":
            bias = load(biases_ptr + groups, mask, EVEN).to(tl.float32)
            acc += bias * tl.sum(x, axis=1)[None, :]
            biases_ptr += BLOCK_K // GROUP
        w_ptr += BLOCK_K
        scales_ptr += BLOCK_K // GROUP
        x_ptr += BLOCK_K
    result = tl.sum(acc, axis=1).to(out_ptr.dtype.element_ty)
    tl.store(
        out_ptr + (batch * M + m) * N + column,
        result,
        mask=own_columns(column, N, COLUMNS, BLOCK_N),
    )


@triton.jit
def quantized_matmul_kernel(
    x_ptr, w_ptr, scales_ptr, biases_ptr, out_ptr, M, N, K,
    BITS: tl.constexpr, GROUP: tl.constexpr, MODE: tl.constexpr, TRANSPOSE: tl.constexpr,
    TYPE: tl.constexpr, FAR: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """A tile of x w, or x times w's transpose: a tile of w's bytes becomes numbers, and is multiplied.

    A block has at most one group of a row, which it divides. Bytes and groups run along w's rows: along K with
    TRANSPOSE, else along N.
    """
    EACH: tl.constexpr = 8 // BITS
    SIDE: tl.constexpr = BLOCK_K if TRANSPOSE else BLOCK_N
    if FAR:
        N, K = far_steps((N, K))
    batch = tl.program_id(2).to(tl.int64)
    first_m, first_n = tl.program_id(1) * BLOCK_M, tl.program_id(0) * BLOCK_N
    m, n, k = tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N), tl.arange(0, BLOCK_K)
    unit = tl.arange(0, SIDE // EACH)
    x_mask, inside = (first_m + m < M)[:, None], first_n + n < N
    # A row's groups and bytes, which are then known to be a multiple of a group's.
    groups = (K if TRANSPOSE else N) // GROUP
    width = groups * (GROUP // EACH)
    x_ptr += (batch * M + first_m) * K
    row = batch * N + first_n if TRANSPOSE else batch * K
    w_ptr += row * width + (0 if TRANSPOSE else first_n // EACH)
    scales_ptr += row * groups
    if MODE == "affine":
        biases_ptr += row * groups
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        x_at = x_ptr + m[:, None] * K + start + k[None, :]
        if TRANSPOSE:
            x = tl.load(x_at, mask=x_mask, other=0.0)
            at = n[:, None] * width + unit[None, :]
            rows, mask = n * groups + start // GROUP, inside
            whole = mask[:, None]
        else:
            x = tl.load(x_at, mask=x_mask & (start + k < K)[None, :], other=0.0)
            at = k[:, None] * width + unit[None, :]
            rows, mask = (start + k) * groups + first_n // GROUP, start + k < K
            whole = mask[:, None] & (first_n + unit * EACH < N)[None, :]
        codes = tl.load(w_ptr + at, mask=whole, other=0)
        w_ptr += BLOCK_K // EACH if TRANSPOSE else BLOCK_K * width
        scale = tl.load(scales_ptr + rows, mask=mask, other=0)
        bias = scale
        if MODE == "affine":
            bias = tl.load(biases_ptr + rows, mask=mask, other=0)
        if BITS == 4:
            # A thread has both codes of its bytes.
            w = numbers_of_pairs(codes, scale[:, None], bias[:, None], MODE, TYPE)
            w = tl.reshape(w, (BLOCK_N if TRANSPOSE else BLOCK_K, SIDE))
        else:
            w = numbers_of(codes, scale[:, None], bias[:, None], MODE, TYPE)
        w = tl.trans(w) if TRANSPOSE else w
        acc = tl.dot(x.to(TYPE), w, acc, input_precision="ieee")
    out = out_ptr + (batch * M + first_m) * N + m[:, None] * N + (first_n + n)[None, :]
    tl.store(out, acc.to(out_ptr.dtype.element_ty), mask=x_mask & inside[None, :])


@triton.jit
def unpacked(
    words, FIRST: tl.constexpr, STEP: tl.constexpr, BITS: tl.constexpr, COUNT: tl.constexpr
):
    """The COUNT codes of each word, in new last dimensions of 2 whose last one is the lowest bit of the place."""
    if COUNT == 1:
        return (words >> FIRST) & ((1 << BITS) - 1)
    even = unpacked(words, FIRST, 2 * STEP, BITS, COUNT // 2)
    return tl.join(even, unpacked(words, FIRST + STEP, 2 * STEP, BITS, COUNT // 2))


@triton.jit
def vector_times_kernel(
    x_ptr, w_ptr, scales_ptr, biases_ptr, out_ptr, M, N, K,
    BITS: tl.constexpr, GROUP: tl.constexpr, MODE: tl.constexpr, EVEN: tl.constexpr, WIDE: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """A row of x times the matrix itself, whose rows lie along N. A block has one group of a row or a part of it.

    Places are counted from the arrays' beginnings, WIDE where they need 64 bits: one number for each array, beside
    pointers that all threads share.
    """
    EACH: tl.constexpr = 32 // BITS
    UNITS: tl.constexpr = BLOCK_N // EACH
    m, batch = tl.program_id(1), tl.program_id(2)
    if WIDE:
        m, batch = m.to(tl.int64), batch.to(tl.int64)
        N = tl.cast(N, tl.int64)
    first = tl.program_id(0) * BLOCK_N
    # Blocks divide groups, and groups the rows: no block is cut along N, and what a thread reads of a row is aligned.
    groups = N // GROUP
    stride = groups * (GROUP // EACH)
    row, unit, digit = tl.arange(0, BLOCK_K), tl.arange(0, UNITS), tl.arange(0, EACH)
    row3 = row[:, None, None]
    x_at = (batch * M + m) * K + row3
    group_at = batch * K * groups + first // GROUP + row3 * groups
    word_at = batch * K * stride + tl.program_id(0) * UNITS + row[:, None] * stride
    acc = tl.zeros((BLOCK_K, UNITS, EACH), tl.float32)
    for start in range(0, K, BLOCK_K):
        inside, inside3 = start + row[:, None] < K, start + row3 < K
        x = load(x_ptr + x_at, inside3, EVEN).to(tl.float32)
        scale = load(scales_ptr + group_at, inside3, EVEN)
        scale = scale.to(tl.float32) if MODE == "affine" else power_of_two(scale)
        if BITS == 4:
            words = load(w_ptr + (word_at + unit[None, :]), inside, EVEN)
        else:
            # Two loads, as a thread has a row's codes, more than it reads at once.
            half = word_at + tl.arange(0, UNITS // 2)[None, :]
            low = load(w_ptr + half, inside, EVEN)
            high = load(w_ptr + (half + UNITS // 2), inside, EVEN)
            words = tl.reshape(tl.permute(tl.join(low, high), (0, 2, 1)), (BLOCK_K, UNITS))
        codes = tl.reshape(unpacked(words, 0, BITS, BITS, EACH), (BLOCK_K, UNITS, EACH))
        if MODE == "affine":
            codes = codes.to(tl.float32)
        elif BITS == 4:
            codes = small_half(codes << 28).to(tl.float32) * 16384.0
        else:
            codes = codes.to(tl.uint8).to(tl.float8e4nv, bitcast=True).to(tl.float32)
        acc += (scale * x) * codes
        if MODE == "affine":
            bias = load(biases_ptr + group_at, inside3, EVEN)
            acc += bias.to(tl.float32) * x
        x_at += BLOCK_K
        group_at += BLOCK_K * groups
        word_at += BLOCK_K * stride
    result = tl.sum(acc, axis=0).to(out_ptr.dtype.element_ty)
    at = (batch * M + m) * N + first + unit[:, None] * EACH + digit[None, :]
    tl.store(out_ptr + at, result)
