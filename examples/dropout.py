"""Seeded dropout, and random numbers in general.

The random numbers are a function of the seed and of the element's index (Philox): nothing is stored between forward
and backward, and the result does not depend on how elements are spread over programs. The backward pass is the same
kernel on the gradient, with the same seed.

`triton_metal.ops.dropout` takes the same numbers, compares 24 bits of each, and is its own gradient in PyTorch and MLX.
"""

from __future__ import annotations

import numpy as np
import triton_metal as triton
import triton_metal.language as tl

from _arrays import Array, dtype_name, empty, itemsize, size, to_float64
from _bounds import FLOAT32, rounding, share_of_bound


@triton.jit
def dropout_kernel(x_ptr, out_ptr, n, p, scale, seed, BLOCK: tl.constexpr):
    start = tl.program_id(0) * BLOCK
    offsets = start + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    # One call of Philox gives four words of 32 bits: those of four neighbours.
    a, b, c, d = tl.randint4x(seed, start // 4 + tl.arange(0, BLOCK // 4))
    words = tl.join(tl.join(a, c), tl.join(b, d)).reshape(BLOCK)
    # Comparing integers is exact. What is dropped is zero before the product, so that a NaN is too.
    keep = words >= (tl.cast(p, tl.float32) * 4294967296.0).to(tl.uint32)
    out = tl.where(keep, x, 0.0) * scale
    tl.store(out_ptr + offsets, out.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def uniform_kernel(out_ptr, n, seed, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.rand(seed, offsets), mask=offsets < n)


@triton.jit
def normal_kernel(out_ptr, n, seed, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.randn(seed, offsets), mask=offsets < n)


@triton.jit
def integers_kernel(out_ptr, n, seed, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.randint(seed, offsets), mask=offsets < n)


def dropout(x: Array, p: float, seed: int, block: int = 1024) -> Array:
    """Sets each element to zero with probability p and divides the others by 1 - p. Any shape, any float dtype.

    `block`, the elements of a program, is a power of 2 of at least 4; the result does not depend on it.
    """
    if not (p >= 0 and np.float32(p) < 1):
        raise ValueError(f"[dropout] p must be at least 0 and less than 1 but is {p}.")
    out = empty(tuple(x.shape), like=x)
    dropout_kernel[(triton.cdiv(size(x), block),)](
        x, out, size(x), float(p), 1 / (1 - float(np.float32(p))), seed, BLOCK=block, num_warps=4
    )
    return out


def random(kind: str, n: int, seed: int, block: int = 1024) -> np.ndarray:
    """n numbers: "uniform" in [0, 1) or "normal" in float32, or "integers" (32 random bits) in uint32."""
    kernel = {"uniform": uniform_kernel, "normal": normal_kernel, "integers": integers_kernel}[kind]
    out = np.empty(n, np.uint32 if kind == "integers" else np.float32)
    kernel[(triton.cdiv(n, block),)](out, n, seed, BLOCK=block, num_warps=4)
    return out


def least_device_bytes(x: Array) -> int:
    """Every element read once and written once."""
    return 2 * size(x) * itemsize(x)


def philox(seed: int, offsets: np.ndarray) -> tuple[np.ndarray, ...]:
    """Philox 4x32-10 (Salmon et al., 2011) with the 64-bit seed as its key and the counter (offset, 0, 0, 0)."""
    c0 = offsets.astype(np.uint64)
    c1, c2, c3 = (np.zeros_like(c0) for _ in range(3))
    k0, k1 = np.uint64(seed & 0xFFFFFFFF), np.uint64((seed >> 32) & 0xFFFFFFFF)
    low, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    for _ in range(10):
        product_0, product_2 = np.uint64(0xD2511F53) * c0, np.uint64(0xCD9E8D57) * c2
        c0, c1, c2, c3 = (
            (product_2 >> shift) ^ c1 ^ k0,
            product_2 & low,
            (product_0 >> shift) ^ c3 ^ k1,
            product_0 & low,
        )
        k0, k1 = (k0 + np.uint64(0x9E3779B9)) & low, (k1 + np.uint64(0xBB67AE85)) & low
    return tuple(c.astype(np.uint32) for c in (c0, c1, c2, c3))


def uniform(bits: np.ndarray) -> np.ndarray:
    """32 random bits as a number in [0, 1): the sign is folded away, and 31 bits become a fraction."""
    signed = bits.view(np.int32).astype(np.int64)
    folded = np.where(signed < 0, -signed - 1, signed).astype(np.float32)
    return folded * np.float32(4.6566127342e-10)


def reference(x: Array, p: float, seed: int) -> np.ndarray:
    """The same in float64. Element i has word i % 4 of Philox's call for i // 4."""
    words = np.stack(philox(seed, np.arange((size(x) + 3) // 4)), axis=1).ravel()[: size(x)]
    keep = words >= np.uint32(np.float64(np.float32(p)) * 2**32)
    kept = to_float64(x) / (1 - np.float64(np.float32(p)))
    return np.where(keep.reshape(tuple(x.shape)), kept, 0.0)


def error_bound(expected: np.ndarray, dtype: str) -> np.ndarray:
    """The scale, the product and the store."""
    return 4 * FLOAT32 * np.abs(expected) + rounding(expected, dtype)


def main() -> None:
    from triton_metal import ops  # here, because stock Triton runs the kernels above, too

    x = np.random.default_rng(0).standard_normal(100_000, dtype=np.float32)
    out, expected = dropout(x, 0.25, seed=123), reference(x, 0.25, 123)
    error, bound = share_of_bound(out, expected, error_bound(expected, dtype_name(x)))
    print(
        f"100,000 elements, p = 0.25: {(out == 0).mean():.3f} dropped, largest error {error:.3g}, bound {bound:.3g}"
    )
    same = ops.dropout(x, 0.25, seed=123)
    print(f"ops.dropout drops the same elements: {np.array_equal(same == 0, out == 0)}")


if __name__ == "__main__":
    main()
