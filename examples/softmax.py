"""Softmax of every row of a matrix, fused into one kernel.

A row that fits into a threadgroup's registers is read once and written once: ``softmax_kernel``. A longer row
takes ``long_softmax_kernel``, which walks over it in blocks. Each position of its block keeps its own running
maximum and running sum, so that the loop needs no reduction across threads; they are joined once, after it.

`triton_metal.ops.softmax` is the same along any axis, for arrays of any rank, and with its gradient; its kernels read as these do.
"""

from __future__ import annotations

import numpy as np
import triton_metal as triton
import triton_metal.language as tl

from _arrays import Array, dtype_name, empty, itemsize, strides, to_float64
from _bounds import FLOAT32, FUNCTION_ULPS, accumulation, rounding, share_of_bound

VALUES_A_THREAD = 8
LONGEST_IN_REGISTERS = 32_768


@triton.jit
def softmax_kernel(out_ptr, x_ptr, out_row_stride, x_row_stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_row_stride + cols, mask=mask, other=-float("inf")).to(tl.float32)
    numerator = tl.exp(x - tl.max(x, axis=0))
    y = numerator / tl.sum(numerator, axis=0)
    tl.store(out_ptr + row * out_row_stride + cols, y.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def long_softmax_kernel(out_ptr, x_ptr, out_row_stride, x_row_stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x_row = x_ptr + row * x_row_stride
    out_row = out_ptr + row * out_row_stride
    cols = tl.arange(0, BLOCK)

    # Every row is longer than a block, so that the first block is full and every maximum starts from an element.
    highest = tl.load(x_row + cols).to(tl.float32)
    total = tl.full((BLOCK,), 1.0, tl.float32)
    for start in range(BLOCK, n_cols, BLOCK):
        x = tl.load(x_row + start + cols, mask=start + cols < n_cols, other=-float("inf")).to(
            tl.float32
        )
        # A pair that is (-inf, -inf) so far weighs nothing later, whatever is added here: no NaN may come of it.
        higher = tl.maximum(highest, x)
        shift = tl.where(higher == -float("inf"), 0.0, higher)
        total = total * tl.exp(highest - shift) + tl.exp(x - shift)
        highest = higher

    row_highest = tl.max(highest, axis=0)
    row_total = tl.sum(total * tl.exp(highest - row_highest), axis=0)
    for start in range(0, n_cols, BLOCK):
        mask = start + cols < n_cols
        x = tl.load(x_row + start + cols, mask=mask, other=-float("inf")).to(tl.float32)
        y = tl.exp(x - row_highest) / row_total
        tl.store(out_row + start + cols, y.to(out_ptr.dtype.element_ty), mask=mask)


def launch_options(n_cols: int) -> dict[str, int]:
    """BLOCK and num_warps for rows of ``n_cols``: a thread holds 8 values, and more if 32 warps are too few."""
    block = triton.next_power_of_2(n_cols)
    if block > LONGEST_IN_REGISTERS:
        return {"BLOCK": 8192, "num_warps": 16}
    if block <= 128:
        return {"BLOCK": block, "num_warps": 1}
    return {"BLOCK": block, "num_warps": min(max(4, block // (32 * VALUES_A_THREAD)), 32)}


def softmax(x: Array) -> Array:
    """Softmax along the last axis of a matrix (rows, columns) of float16, bfloat16 or float32.

    1 to 65,536 columns (and more); rows may lie apart, the elements of a row must lie side by side.
    """
    n_rows, n_cols = x.shape
    out = empty((n_rows, n_cols), like=x)
    kernel = softmax_kernel if n_cols <= LONGEST_IN_REGISTERS else long_softmax_kernel
    kernel[(n_rows,)](out, x, strides(out)[0], strides(x)[0], n_cols, **launch_options(n_cols))
    return out


def least_device_bytes(x: Array) -> int:
    """Every element read once and written once. (A row that does not fit is read twice.)"""
    return 2 * x.shape[0] * x.shape[1] * itemsize(x)


def reference(x: Array) -> np.ndarray:
    """The same in float64."""
    x = to_float64(x)
    with np.errstate(invalid="ignore"):
        numerator = np.exp(x - x.max(axis=1, keepdims=True))
    return numerator / numerator.sum(axis=1, keepdims=True)


def error_bound(x: Array, expected: np.ndarray) -> np.ndarray:
    """x - max is rounded once, which exp turns into a relative error; then the sum, the division and the store."""
    wide = to_float64(x)
    with np.errstate(invalid="ignore"):
        spread = np.abs(wide - wide.max(axis=1, keepdims=True))
    spread = np.where(np.isfinite(spread), np.minimum(spread, 104.0), 104.0)
    relative = (2 * spread + 4 * FUNCTION_ULPS) * FLOAT32 + accumulation(1.0, x.shape[1])
    return relative * expected + rounding(expected, dtype_name(x)) + 2.0**-126


def main() -> None:
    from triton_metal import ops  # here, because stock Triton runs the kernels above, too

    rng = np.random.default_rng(0)
    for n_rows, n_cols in ((64, 781), (64, 1024), (16, 65_536)):
        x = rng.standard_normal((n_rows, n_cols), dtype=np.float32)
        expected = reference(x)
        for name, function in (("softmax", softmax), ("ops.softmax", ops.softmax)):
            error, bound = share_of_bound(function(x), expected, error_bound(x, expected))
            print(
                f"{name}, {n_rows} rows of {n_cols:,}: largest error {error:.3g}, bound {bound:.3g}"
            )


if __name__ == "__main__":
    main()
