"""Vector addition, the smallest useful kernel.

Every program adds one block of elements. The grid is the number of blocks, and the mask keeps the last block from
reading and writing past the end.
"""

from __future__ import annotations

import numpy as np
import triton_metal as triton
import triton_metal.language as tl

from _arrays import Array, empty, itemsize, size, to_float64
from _bounds import rounding, share_of_bound


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def add(x: Array, y: Array, block: int = 1024, num_warps: int = 4) -> Array:
    """x + y for two contiguous arrays of one shape and dtype (any number or float type)."""
    out = empty(tuple(x.shape), like=x)
    n = size(x)
    add_kernel[(triton.cdiv(n, block),)](x, y, out, n, BLOCK=block, num_warps=num_warps)
    return out


def least_device_bytes(x: Array) -> int:
    """Every element of both inputs read once, every element of the sum written once."""
    return 3 * size(x) * itemsize(x)


def error_bound(reference: np.ndarray, dtype: str) -> np.ndarray:
    """One rounding."""
    return rounding(reference, dtype)


def main() -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(98_432, dtype=np.float32) for _ in range(2))
    reference = to_float64(x) + to_float64(y)
    error, bound = share_of_bound(add(x, y), reference, error_bound(reference, "float32"))
    print(f"98,432 elements: largest error {error:.3g}, bound {bound:.3g}")


if __name__ == "__main__":
    main()
