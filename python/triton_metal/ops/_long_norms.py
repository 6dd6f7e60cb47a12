"""Kernels of layer norm and RMS norm for rows that are too long for registers: they are walked over in blocks."""

from __future__ import annotations

import triton_metal as triton
import triton_metal.language as tl


@triton.jit
def row_mean(x_ptr, n_cols, share, CENTRE: tl.constexpr, BLOCK: tl.constexpr):
    """Mean (0 if not CENTRE) of the row at x_ptr, block by block."""
    mean = 0.0
    if CENTRE:
        places = tl.arange(0, BLOCK)
        sums = tl.zeros((BLOCK,), tl.float32)
        for start in range(0, n_cols, BLOCK):
            mask = start + places < n_cols
            sums += tl.load(x_ptr + start + places, mask=mask, other=0.0).to(tl.float32)
        mean = tl.sum(sums, axis=0) * share
    return mean


@triton.jit
def row_statistics(x_ptr, n_cols, share, eps, CENTRE: tl.constexpr, BLOCK: tl.constexpr):
    """Mean (0 if not CENTRE) and 1 / sqrt(variance + eps) of the row at x_ptr, block by block."""
    mean = row_mean(x_ptr, n_cols, share, CENTRE, BLOCK)
    places = tl.arange(0, BLOCK)
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n_cols, BLOCK):
        mask = start + places < n_cols
        x = tl.load(x_ptr + start + places, mask=mask, other=0.0).to(tl.float32)
        x = tl.where(mask, x - mean, 0.0)
        squares += x * x
    return mean, tl.rsqrt(tl.sum(squares, axis=0) * share + eps)


@triton.jit
def long_norm_kernel(
    x_ptr, weight_ptr, bias_ptr, y_ptr, n_cols, share, eps,
    CENTRE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The same of a row that is longer than BLOCK."""
    first = tl.program_id(0).to(tl.int64) * n_cols
    mean, scale = row_statistics(x_ptr + first, n_cols, share, eps, CENTRE, BLOCK)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < n_cols
        x = tl.load(x_ptr + first + cols, mask=mask, other=0.0).to(tl.float32)
        y = (x - mean) * scale
        if weight_ptr is not None:
            weight = tl.load(weight_ptr + cols, mask=mask, other=0.0)
            y = y.to(weight.dtype) * weight
        if bias_ptr is not None:
            y += tl.load(bias_ptr + cols, mask=mask, other=0.0)
        tl.store(y_ptr + first + cols, y.to(y_ptr.dtype.element_ty), mask=mask)


@triton.jit
def long_norm_backward_kernel(
    dy_ptr, dtotal_ptr, x_ptr, weight_ptr, dx_ptr, mean_ptr, scale_ptr, n_cols, share, eps,
    CENTRE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """dx (+ dtotal), mean and scale of a row that is longer than BLOCK."""
    row = tl.program_id(0)
    first = row.to(tl.int64) * n_cols
    mean = row_mean(x_ptr + first, n_cols, share, CENTRE, BLOCK)
    squares = tl.zeros((BLOCK,), tl.float32)
    sums = tl.zeros((BLOCK,), tl.float32)
    products = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < n_cols
        x = tl.load(x_ptr + first + cols, mask=mask, other=0.0).to(tl.float32)
        x = tl.where(mask, x - mean, 0.0)
        g = tl.load(dy_ptr + first + cols, mask=mask, other=0.0).to(tl.float32)
        if weight_ptr is not None:
            g *= tl.load(weight_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        squares += x * x
        sums += g
        products += g * x
    scale = tl.rsqrt(tl.sum(squares, axis=0) * share + eps)
    tl.store(mean_ptr + row, mean)
    tl.store(scale_ptr + row, scale)
    mean_g = 0.0
    if CENTRE:
        mean_g = tl.sum(sums, axis=0) * share
    mean_product = tl.sum(products, axis=0) * scale * share
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < n_cols
        x = tl.load(x_ptr + first + cols, mask=mask, other=0.0).to(tl.float32)
        g = tl.load(dy_ptr + first + cols, mask=mask, other=0.0).to(tl.float32)
        if weight_ptr is not None:
            g *= tl.load(weight_ptr + cols, mask=mask, other=0.0).to(tl.float32)
        dx = (g - mean_g - (x - mean) * scale * mean_product) * scale
        if dtotal_ptr is not None:
            dx += tl.load(dtotal_ptr + first + cols, mask=mask, other=0.0).to(tl.float32)
        tl.store(dx_ptr + first + cols, dx.to(dx_ptr.dtype.element_ty), mask=mask)


@triton.jit
def weight_gradients_kernel(
    dy_ptr, x_ptr, mean_ptr, scale_ptr, dweight_ptr, dbias_ptr, n_rows, n_cols, BLOCK: tl.constexpr
):
    """Sums over every P-th row of dy x̂ and of dy, for a block of columns of long rows."""
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < n_cols
    dweight = tl.zeros((BLOCK,), tl.float32)
    dbias = tl.zeros((BLOCK,), tl.float32)
    for row in range(tl.program_id(0), n_rows, tl.num_programs(0)):
        first = row.to(tl.int64) * n_cols
        x = tl.load(x_ptr + first + cols, mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + first + cols, mask=mask, other=0.0).to(tl.float32)
        dweight += dy * ((x - tl.load(mean_ptr + row)) * tl.load(scale_ptr + row))
        dbias += dy
    at = tl.program_id(0).to(tl.int64) * n_cols + cols
    if dweight_ptr is not None:
        tl.store(dweight_ptr + at, dweight, mask=mask)
    if dbias_ptr is not None:
        tl.store(dbias_ptr + at, dbias, mask=mask)
