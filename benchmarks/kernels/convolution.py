"""2D convolution of images (N, H, W, C) as a matrix product whose left operand is gathered while it runs."""

from __future__ import annotations

import triton_metal as triton
import triton_metal.language as tl

from _arrays import Array, empty


@triton.jit
def convolution_kernel(
    x_ptr,
    w_ptr,
    out_ptr,
    n_pixels,
    n_outputs,
    height,
    width,
    out_height,
    out_width,
    CHANNELS: tl.constexpr,
    TAPS_H: tl.constexpr,
    TAPS_W: tl.constexpr,
    STRIDE: tl.constexpr,
    PADDING: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_C: tl.constexpr,
):
    pixel = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_c = tl.arange(0, BLOCK_C)
    column = pixel % out_width
    row = pixel // out_width % out_height
    image = pixel // (out_width * out_height)
    first_row, first_column = row * STRIDE - PADDING, column * STRIDE - PADDING
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    # One loop, as registers of one that is in another have to be kept apart.
    STEPS: tl.constexpr = (CHANNELS + BLOCK_C - 1) // BLOCK_C
    for step in range(TAPS_H * TAPS_W * STEPS):
        tap, c = step // STEPS, step % STEPS * BLOCK_C + offs_c
        y, x = first_row + tap // TAPS_W, first_column + tap % TAPS_W
        inside = (pixel < n_pixels) & (y >= 0) & (y < height) & (x >= 0) & (x < width)
        at = ((image * height + y) * width + x) * CHANNELS
        taps = (offs_n * (TAPS_H * TAPS_W) + tap) * CHANNELS
        mask = inside[:, None] & (c[None, :] < CHANNELS)
        pixels = tl.load(x_ptr + at[:, None] + c[None, :], mask=mask, other=0.0)
        mask = (offs_n[:, None] < n_outputs) & (c[None, :] < CHANNELS)
        filters = tl.load(w_ptr + taps[:, None] + c[None, :], mask=mask, other=0.0)
        acc = tl.dot(pixels, tl.trans(filters), acc, input_precision="ieee")
    out = out_ptr + pixel[:, None] * n_outputs + offs_n[None, :]
    mask = (pixel[:, None] < n_pixels) & (offs_n[None, :] < n_outputs)
    tl.store(out, acc.to(out_ptr.dtype.element_ty), mask=mask)


def convolution(x: Array, w: Array, stride: int, padding: int, **options: int) -> Array:
    """x (N, H, W, C) and filters w (outputs, height, width, C). Options: BLOCK_M, BLOCK_N, BLOCK_C, num_warps."""
    (batch, height, width, channels), (outputs, taps_h, taps_w, _) = x.shape, w.shape
    out_height = (height + 2 * padding - taps_h) // stride + 1
    out_width = (width + 2 * padding - taps_w) // stride + 1
    out = empty((batch, out_height, out_width, outputs), like=x)
    pixels = batch * out_height * out_width
    grid = (triton.cdiv(outputs, options["BLOCK_N"]), triton.cdiv(pixels, options["BLOCK_M"]))
    convolution_kernel[grid](
        x,
        w,
        out,
        pixels,
        outputs,
        height,
        width,
        out_height,
        out_width,
        CHANNELS=channels,
        TAPS_H=taps_h,
        TAPS_W=taps_w,
        STRIDE=stride,
        PADDING=padding,
        **options,
    )
    return out
