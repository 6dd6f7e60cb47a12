"""RMS norm and layer norm of each row, which a program holds in registers: only the result is stored.

A mean is a sum times `share`, one over the number of columns. The row is scaled in float32; weight and bias are applied in the
type of the numbers, as in MLX.
"""

from __future__ import annotations

import triton_metal as triton
import triton_metal.language as tl

from _arrays import Array, empty


@triton.jit
def rms_norm_kernel(x_ptr, weight_ptr, out_ptr, n_cols, share, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) * share + eps)
    weight = tl.load(weight_ptr + cols, mask=mask, other=0.0)
    y = (x * scale).to(weight.dtype) * weight
    tl.store(out_ptr + row * n_cols + cols, y, mask=mask)


@triton.jit
def layer_norm_kernel(
    x_ptr, weight_ptr, bias_ptr, out_ptr, n_cols, share, eps, BLOCK: tl.constexpr
):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) * share
    centred = tl.where(mask, x - mean, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, axis=0) * share + eps)
    weight = tl.load(weight_ptr + cols, mask=mask, other=0.0)
    bias = tl.load(bias_ptr + cols, mask=mask, other=0.0)
    y = (centred * scale).to(weight.dtype) * weight + bias
    tl.store(out_ptr + row * n_cols + cols, y, mask=mask)


def rms_norm(x: Array, weight: Array, eps: float, num_warps: int = 4) -> Array:
    """x (rows, columns) over the root of each row's mean square, times weight (columns,)."""
    n_rows, n_cols = x.shape
    out = empty(x.shape, like=x)
    block = triton.next_power_of_2(n_cols)
    rms_norm_kernel[(n_rows,)](
        x, weight, out, n_cols, 1.0 / n_cols, eps, BLOCK=block, num_warps=num_warps
    )
    return out


def layer_norm(x: Array, weight: Array, bias: Array, eps: float, num_warps: int = 4) -> Array:
    """x (rows, columns) with each row's mean 0 and variance 1, times weight (columns,), plus bias (columns,)."""
    n_rows, n_cols = x.shape
    out = empty(x.shape, like=x)
    block = triton.next_power_of_2(n_cols)
    layer_norm_kernel[(n_rows,)](
        x, weight, bias, out, n_cols, 1.0 / n_cols, eps, BLOCK=block, num_warps=num_warps
    )
    return out
