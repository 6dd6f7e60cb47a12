"""Random numbers: Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as
1, 2, 3", SC 2011), a function of a seed and a counter."""

from __future__ import annotations

from ..functions import kernel_function
from . import core as tl
from . import math

N_ROUNDS_DEFAULT = tl.constexpr(10)


@kernel_function
def philox_impl(c0, c1, c2, c3, k0, k1, n_rounds: tl.constexpr = N_ROUNDS_DEFAULT):
    """Rounds of Philox on a counter of four words with a key of two words, of 32 or 64 bits each."""
    if c0.dtype == tl.uint32:
        multiplier0: tl.constexpr = 0xD2511F53
        multiplier1: tl.constexpr = 0xCD9E8D57
        weyl0: tl.constexpr = 0x9E3779B9
        weyl1: tl.constexpr = 0xBB67AE85
    else:
        tl.static_assert(c0.dtype == tl.uint64, "philox works on uint32 and uint64")
        multiplier0: tl.constexpr = 0xD2E7470EE14C6C93
        multiplier1: tl.constexpr = 0xCA5A826395121157
        weyl0: tl.constexpr = 0x9E3779B97F4A7C15
        weyl1: tl.constexpr = 0xBB67AE8584CAA73B

    for _ in tl.static_range(n_rounds):
        old0, old2 = c0, c2
        c0 = math.umulhi(multiplier1, old2) ^ c1 ^ k0
        c2 = math.umulhi(multiplier0, old0) ^ c3 ^ k1
        c1 = multiplier1 * old2
        c3 = multiplier0 * old0
        k0 = k0 + weyl0
        k1 = k1 + weyl1
    return c0, c1, c2, c3


@kernel_function
def philox(seed, c0, c1, c2, c3, n_rounds: tl.constexpr = N_ROUNDS_DEFAULT):
    """Philox with a key from a seed of up to 64 bits."""
    seed = tl.to_tensor(seed)
    tl.static_assert(seed.dtype.is_int(), "the seed is an integer")
    seed = seed.to(tl.uint64)
    c0 = tl.to_tensor(c0)
    c1 = tl.to_tensor(c1)
    c2 = tl.to_tensor(c2)
    c3 = tl.to_tensor(c3)
    if c0.dtype.primitive_bitwidth == 32:
        word: tl.constexpr = tl.uint32
        high = ((seed >> 32) & 0xFFFFFFFF).to(tl.uint32)
        low = (seed & 0xFFFFFFFF).to(tl.uint32)
    else:
        tl.static_assert(c0.dtype.primitive_bitwidth == 64, "philox works on 32 and 64 bits")
        word: tl.constexpr = tl.uint64
        high = tl.full((1,), 0, tl.uint64)
        low = seed
    c0 = c0.to(word, bitcast=True)
    c1 = c1.to(word, bitcast=True)
    c2 = c2.to(word, bitcast=True)
    c3 = c3.to(word, bitcast=True)
    return philox_impl(c0, c1, c2, c3, low, high, n_rounds)


@kernel_function
def randint4x(seed, offset, n_rounds: tl.constexpr = N_ROUNDS_DEFAULT):
    """Four tiles of random 32-bit words: the full result of one Philox call per offset."""
    low = offset.to(tl.uint32)
    zero = low * 0
    if offset.dtype.primitive_bitwidth > 32:
        high = (offset >> 32).to(tl.uint32)
    else:
        high = zero
    return philox(seed, low, high, zero, zero, n_rounds)


@kernel_function
def randint(seed, offset, n_rounds: tl.constexpr = N_ROUNDS_DEFAULT):
    """A random 32-bit word for each offset."""
    word, _, _, _ = randint4x(seed, offset, n_rounds)
    return word


@kernel_function
def uint_to_uniform_float(x):
    """A random word as a number in [0, 1)."""
    # The scale is a little below 2^-31 (2^-63), so that the largest word stays below 1.
    if x.dtype == tl.uint32 or x.dtype == tl.int32:
        signed = x.to(tl.int32, bitcast=True)
        scale: tl.constexpr = 4.6566127342e-10
    else:
        signed = x.to(tl.int64, bitcast=True)
        scale: tl.constexpr = 1.0842020432385337e-19
    magnitude = tl.where(signed < 0, ~signed, signed)
    return magnitude * scale


@kernel_function
def rand(seed, offset, n_rounds: tl.constexpr = N_ROUNDS_DEFAULT):
    """A random float32 in [0, 1) for each offset."""
    return uint_to_uniform_float(randint(seed, offset, n_rounds))


@kernel_function
def rand4x(seed, offsets, n_rounds: tl.constexpr = N_ROUNDS_DEFAULT):
    """Four tiles of random float32 in [0, 1)."""
    i1, i2, i3, i4 = randint4x(seed, offsets, n_rounds)
    return (
        uint_to_uniform_float(i1),
        uint_to_uniform_float(i2),
        uint_to_uniform_float(i3),
        uint_to_uniform_float(i4),
    )


@kernel_function
def pair_uniform_to_normal(u1, u2):
    """Two uniform numbers as two normally distributed ones (Box and Muller)."""
    u1 = tl.maximum(1.0e-7, u1)
    angle = 6.283185307179586 * u2
    radius = math.sqrt(-2.0 * math.log(u1))
    return radius * math.cos(angle), radius * math.sin(angle)


@kernel_function
def randn(seed, offset, n_rounds: tl.constexpr = N_ROUNDS_DEFAULT):
    """A normally distributed float32 for each offset."""
    i1, i2, _, _ = randint4x(seed, offset, n_rounds)
    normal, _ = pair_uniform_to_normal(uint_to_uniform_float(i1), uint_to_uniform_float(i2))
    return normal


@kernel_function
def randn4x(seed, offset, n_rounds: tl.constexpr = N_ROUNDS_DEFAULT):
    """Four tiles of normally distributed float32."""
    u1, u2, u3, u4 = rand4x(seed, offset, n_rounds)
    n1, n2 = pair_uniform_to_normal(u1, u2)
    n3, n4 = pair_uniform_to_normal(u3, u4)
    return n1, n2, n3, n4
