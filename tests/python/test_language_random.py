"""Philox against an implementation of the paper in NumPy, and its distributions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl


def philox(seed: int, counter: np.ndarray, rounds: int = 10) -> list[np.ndarray]:
    """Philox 4x32 with the counter in its first two words and the seed as the key."""
    mask = np.uint64(0xFFFFFFFF)
    counter = counter.astype(np.int64).view(np.uint64)
    c = [counter & mask, counter >> np.uint64(32), np.zeros_like(counter), np.zeros_like(counter)]
    key = [np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32 & 0xFFFFFFFF)]
    for _ in range(rounds):
        product0 = np.uint64(0xD2511F53) * c[0]
        product1 = np.uint64(0xCD9E8D57) * c[2]
        c = [
            (product1 >> np.uint64(32)) ^ c[1] ^ key[0],
            product1 & mask,
            (product0 >> np.uint64(32)) ^ c[3] ^ key[1],
            product0 & mask,
        ]
        key = [(key[0] + np.uint64(0x9E3779B9)) & mask, (key[1] + np.uint64(0xBB67AE85)) & mask]
    return [word.astype(np.uint32) for word in c]


def uniform(words: np.ndarray) -> np.ndarray:
    signed = words.view(np.int32)
    magnitude = np.where(signed < 0, ~signed, signed)
    return magnitude.astype(np.float32) * np.float32(4.6566127342e-10)


def normal(u1: np.ndarray, u2: np.ndarray, wave: Any = np.cos) -> np.ndarray:
    u1 = np.maximum(u1.astype(np.float64), 1e-7)
    return np.sqrt(-2 * np.log(u1)) * wave(2 * np.pi * u2.astype(np.float64))


@triton.jit
def words_kernel(out, seed, offset, N, ROUNDS: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    a, b, c, d = tl.randint4x(seed, offs + offset, ROUNDS)
    tl.store(out + offs, a)
    tl.store(out + N + offs, b)
    tl.store(out + 2 * N + offs, c)
    tl.store(out + 3 * N + offs, d)


@triton.jit
def numbers_kernel(out, seed, N, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + offs, tl.rand(seed, offs))
    tl.store(out + N + offs, tl.randn(seed, offs))
    tl.store(out + 2 * N + offs, tl.randint(seed, offs).to(tl.float32))
    a, b, c, d = tl.rand4x(seed, offs)
    tl.store(out + 3 * N + offs, a + b + c + d)
    n1, n2, n3, n4 = tl.randn4x(seed, offs)
    tl.store(out + 4 * N + offs, n1)
    tl.store(out + 5 * N + offs, n2 * n3 * n4)


# The words that the authors' own test vectors give for counter and key of all zeros and all ones.
def test_reference_is_right():
    zero = philox(0, np.zeros(1, np.int64))
    assert [int(w[0]) for w in zero] == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]


@pytest.mark.parametrize("seed", [0, 1, 42, 2**31 - 1, 2**31, 2**32 + 5, 2**63 - 1])
@pytest.mark.parametrize("rounds", [10, 7])
@pytest.mark.parametrize("offset", [0, 1000, 2**31 - 256, 2**40])
def test_words(seed, rounds, offset):
    n = 128
    out = np.zeros(4 * n, np.uint32)
    words_kernel[(1,)](out, seed, offset, n, rounds, BLOCK=n)
    expected = philox(seed, np.arange(n, dtype=np.int64) + offset, rounds)
    assert (out.reshape(4, n) == np.stack(expected)).all()


def test_negative_seed_is_its_64_bits():
    out = np.zeros(4 * 64, np.uint32)
    words_kernel[(1,)](out, -3, 0, 64, 10, BLOCK=64)
    expected = philox(2**64 - 3, np.arange(64, dtype=np.int64))
    assert (out.reshape(4, 64) == np.stack(expected)).all()


def test_numbers():
    n = 8192
    out = np.zeros(6 * n, np.float32)
    numbers_kernel[(n // 256,)](out, 123, n, BLOCK=256)
    rand, randn, randint, four, randn4, product = out.reshape(6, n)
    words = philox(123, np.arange(n, dtype=np.int64))
    u = [uniform(word) for word in words]
    assert (rand == u[0]).all()
    assert rand.min() >= 0
    assert rand.max() < 1
    assert abs(rand.mean() - 0.5) < 0.02
    np.testing.assert_allclose(randn, normal(u[0], u[1]), rtol=0, atol=2e-5)
    assert abs(randn.mean()) < 0.04
    assert abs(randn.std() - 1) < 0.03
    assert (randint == words[0].astype(np.float32)).all()
    assert (four == ((u[0] + u[1]) + u[2]) + u[3]).all()
    assert (randn4 == randn).all()
    others = [(u[0], u[1], np.sin), (u[2], u[3], np.cos), (u[2], u[3], np.sin)]
    expected = np.prod([normal(*pair) for pair in others], axis=0)
    np.testing.assert_allclose(product, expected, rtol=0, atol=2e-4)
