"""Layer normalisation, forward and backward.

Forward, a program holds one row in registers: the mean, the variance, and the normalised row from one reading.

Backward, with x̂ = (x - mean) * rstd and g = dy * weight, the gradient of a row is
dx = (g - mean(g) - x̂ * mean(g * x̂)) * rstd. The gradients of weight and bias are sums over rows. Each program
takes every P-th row and keeps its partial sums in registers; a second kernel adds the P partial sums. There are
no locks, so that the result is the same on every run.

`triton_metal.ops.layer_norm` is the same for PyTorch's autograd and MLX's mx.grad, which call its gradient's kernels; it keeps no
mean and no rstd, because the gradient has each row in registers again.
"""

from __future__ import annotations

import numpy as np
import triton_metal as triton
import triton_metal.language as tl

from _arrays import Array, dtype_name, empty, empty_float32, itemsize, strides, to_float64
from _bounds import FLOAT32, FUNCTION_ULPS, accumulation, rounding, share_of_bound

LONGEST_ROW = 16_384


@triton.jit
def layer_norm_kernel(
    x_ptr,
    weight_ptr,
    bias_ptr,
    y_ptr,
    mean_ptr,
    rstd_ptr,
    x_row_stride,
    y_row_stride,
    n_cols,
    eps,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_row_stride + cols, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / n_cols
    centred = tl.where(mask, x - mean, 0.0)
    variance = tl.sum(centred * centred, axis=0) / n_cols
    rstd = 1.0 / tl.sqrt(variance + eps)
    weight = tl.load(weight_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    y = centred * rstd * weight + bias
    tl.store(y_ptr + row * y_row_stride + cols, y.to(y_ptr.dtype.element_ty), mask=mask)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)


@triton.jit
def layer_norm_backward_kernel(
    dx_ptr,
    dy_ptr,
    x_ptr,
    weight_ptr,
    mean_ptr,
    rstd_ptr,
    dweight_partial_ptr,
    dbias_partial_ptr,
    x_row_stride,
    dy_row_stride,
    n_rows,
    n_cols,
    BLOCK: tl.constexpr,
):
    program = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    weight = tl.load(weight_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    dweight = tl.zeros((BLOCK,), tl.float32)
    dbias = tl.zeros((BLOCK,), tl.float32)
    for row in range(program, n_rows, tl.num_programs(0)):
        x = tl.load(x_ptr + row * x_row_stride + cols, mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + row * dy_row_stride + cols, mask=mask, other=0.0).to(tl.float32)
        mean = tl.load(mean_ptr + row)
        rstd = tl.load(rstd_ptr + row)
        normalised = tl.where(mask, (x - mean) * rstd, 0.0)
        g = dy * weight
        mean_g = tl.sum(g, axis=0) / n_cols
        mean_gx = tl.sum(g * normalised, axis=0) / n_cols
        dx = (g - mean_g - normalised * mean_gx) * rstd
        tl.store(dx_ptr + row * n_cols + cols, dx.to(dx_ptr.dtype.element_ty), mask=mask)
        dweight += dy * normalised
        dbias += dy
    tl.store(dweight_partial_ptr + program * n_cols + cols, dweight, mask=mask)
    tl.store(dbias_partial_ptr + program * n_cols + cols, dbias, mask=mask)


@triton.jit
def sum_partials_kernel(
    dweight_ptr,
    dbias_ptr,
    dweight_partial_ptr,
    dbias_partial_ptr,
    n_partials,
    n_cols,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_COLS: tl.constexpr,
):
    cols = tl.program_id(0) * BLOCK_COLS + tl.arange(0, BLOCK_COLS)
    dweight = tl.zeros((BLOCK_ROWS, BLOCK_COLS), tl.float32)
    dbias = tl.zeros((BLOCK_ROWS, BLOCK_COLS), tl.float32)
    for start in range(0, n_partials, BLOCK_ROWS):
        rows = start + tl.arange(0, BLOCK_ROWS)
        mask = (rows[:, None] < n_partials) & (cols[None, :] < n_cols)
        offsets = rows[:, None] * n_cols + cols[None, :]
        dweight += tl.load(dweight_partial_ptr + offsets, mask=mask, other=0.0)
        dbias += tl.load(dbias_partial_ptr + offsets, mask=mask, other=0.0)
    tl.store(
        dweight_ptr + cols,
        tl.sum(dweight, axis=0).to(dweight_ptr.dtype.element_ty),
        mask=cols < n_cols,
    )
    tl.store(
        dbias_ptr + cols, tl.sum(dbias, axis=0).to(dbias_ptr.dtype.element_ty), mask=cols < n_cols
    )


def launch_options(n_cols: int) -> dict[str, int]:
    """BLOCK and num_warps: 4 warps until a thread would hold more than 8 values, at most 32."""
    if n_cols > LONGEST_ROW:
        raise ValueError(
            f"[layer_norm] a row must have at most {LONGEST_ROW} columns but has {n_cols}."
        )
    block = triton.next_power_of_2(n_cols)
    return {"BLOCK": block, "num_warps": 1 if block <= 128 else min(max(4, block // 256), 32)}


def layer_norm(
    x: Array, weight: Array, bias: Array, eps: float = 1e-5
) -> tuple[Array, Array, Array]:
    """Normalises the rows of x (rows, columns) and applies weight and bias (columns,).

    float16, bfloat16 or float32; columns up to 16,384. Returns y like x, and mean and 1/sqrt(variance + eps) of
    every row in float32, which the backward pass takes.
    """
    n_rows, n_cols = x.shape
    y = empty((n_rows, n_cols), like=x)
    mean, rstd = empty_float32((n_rows,), like=x), empty_float32((n_rows,), like=x)
    layer_norm_kernel[(n_rows,)](
        x,
        weight,
        bias,
        y,
        mean,
        rstd,
        strides(x)[0],
        strides(y)[0],
        n_cols,
        eps,
        **launch_options(n_cols),
    )
    return y, mean, rstd


def layer_norm_backward(
    dy: Array, x: Array, weight: Array, mean: Array, rstd: Array, programs: int = 64
) -> tuple[Array, Array, Array]:
    """The gradients (dx, dweight, dbias) for the gradient dy (rows, columns) of layer_norm's result."""
    n_rows, n_cols = x.shape
    programs = min(programs, n_rows)
    dx = empty((n_rows, n_cols), like=x)
    partial = [empty_float32((programs, n_cols), like=x) for _ in range(2)]
    dweight, dbias = empty((n_cols,), like=weight), empty((n_cols,), like=weight)
    layer_norm_backward_kernel[(programs,)](
        dx,
        dy,
        x,
        weight,
        mean,
        rstd,
        *partial,
        strides(x)[0],
        strides(dy)[0],
        n_rows,
        n_cols,
        **launch_options(n_cols),
    )
    sum_partials_kernel[(triton.cdiv(n_cols, 64),)](
        dweight, dbias, *partial, programs, n_cols, BLOCK_ROWS=32, BLOCK_COLS=64, num_warps=4
    )
    return dx, dweight, dbias


def least_device_bytes(x: Array, weight: Array) -> int:
    """Forward: each program reads its row, weight and bias, and writes its row, its mean and its rstd."""
    n_rows, n_cols = x.shape
    return n_rows * (n_cols * (2 * itemsize(x) + 2 * itemsize(weight)) + 8)


def least_device_bytes_backward(x: Array, weight: Array, programs: int = 64) -> int:
    """Backward's first kernel: x, dy, mean, rstd and dx of every row; weight and two partial rows a program."""
    n_rows, n_cols = x.shape
    programs = min(programs, n_rows)
    return n_rows * (3 * n_cols * itemsize(x) + 8) + programs * n_cols * (itemsize(weight) + 8)


def reference(x: Array, weight: Array, bias: Array, eps: float = 1e-5) -> np.ndarray:
    """The same in float64."""
    x, weight, bias = to_float64(x), to_float64(weight), to_float64(bias)
    rstd = 1 / np.sqrt(x.var(axis=1, keepdims=True) + eps)
    return (x - x.mean(axis=1, keepdims=True)) * rstd * weight + bias


def reference_backward(
    dy: Array, x: Array, weight: Array, eps: float = 1e-5
) -> tuple[np.ndarray, ...]:
    """(dx, dweight, dbias) in float64."""
    dy, x, weight = to_float64(dy), to_float64(x), to_float64(weight)
    rstd = 1 / np.sqrt(x.var(axis=1, keepdims=True) + eps)
    normalised = (x - x.mean(axis=1, keepdims=True)) * rstd
    g = dy * weight
    dx = (
        g
        - g.mean(axis=1, keepdims=True)
        - normalised * (g * normalised).mean(axis=1, keepdims=True)
    ) * rstd
    return dx, (dy * normalised).sum(axis=0), dy.sum(axis=0)


def _row_errors(x: np.ndarray, eps: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """rstd, and how far the mean and, relatively, rstd may be off."""
    n_cols = x.shape[1]
    variance = x.var(axis=1, keepdims=True)
    mean_error = accumulation(np.abs(x).mean(axis=1, keepdims=True), n_cols)
    spread = np.sqrt(variance)
    relative = accumulation(1.0, n_cols + 4 + FUNCTION_ULPS) + (
        mean_error * (2 * spread + mean_error)
    ) / (variance + eps)
    return 1 / np.sqrt(variance + eps), mean_error, relative


def error_bound(
    x: Array, weight: Array, bias: Array, expected: np.ndarray, eps: float = 1e-5
) -> np.ndarray:
    """The errors of mean and rstd carried through, and the store."""
    wide, w = to_float64(x), np.abs(to_float64(weight))
    rstd, mean_error, relative = _row_errors(wide, eps)
    centred = np.abs(wide - wide.mean(axis=1, keepdims=True))
    scaled = w * rstd * ((centred + mean_error) * (relative + 4 * FLOAT32) + mean_error)
    return scaled + 2 * FLOAT32 * np.abs(to_float64(bias)) + rounding(expected, dtype_name(x))


def error_bound_backward(
    dy: Array, x: Array, weight: Array, expected: tuple[np.ndarray, ...], eps: float = 1e-5
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bounds for dx, dweight and dbias."""
    wide, n_rows, n_cols = to_float64(x), x.shape[0], x.shape[1]
    rstd, mean_error, relative = _row_errors(wide, eps)
    normalised = np.abs(wide - wide.mean(axis=1, keepdims=True)) * rstd
    normalised_error = normalised * (relative + 3 * FLOAT32) + rstd * mean_error * (1 + relative)
    g = np.abs(to_float64(dy) * to_float64(weight))
    mean_g, mean_gx = g.mean(axis=1, keepdims=True), (g * normalised).mean(axis=1, keepdims=True)
    mean_gx_error = accumulation(mean_gx, n_cols + 3) + (g * normalised_error).mean(
        axis=1, keepdims=True
    )
    inner = g * 4 * FLOAT32 + accumulation(mean_g, n_cols + 3) + normalised * mean_gx_error
    inner += (normalised_error + 3 * FLOAT32 * normalised) * (mean_gx + mean_gx_error)
    dx = rstd * (inner + (g + mean_g + normalised * mean_gx) * (relative + 4 * FLOAT32))
    magnitude = np.abs(to_float64(dy))
    dweight = (magnitude * normalised_error).sum(axis=0) + accumulation(
        (magnitude * normalised).sum(axis=0), n_rows + 1
    )
    dbias = accumulation(magnitude.sum(axis=0), n_rows)
    return (
        dx + rounding(expected[0], dtype_name(x)),
        dweight + rounding(expected[1], dtype_name(weight)),
        dbias + rounding(expected[2], dtype_name(weight)),
    )


def main() -> None:
    from triton_metal import ops  # here, because stock Triton runs the kernels above, too

    rng = np.random.default_rng(0)
    x, dy = (rng.standard_normal((128, 1000), dtype=np.float32) for _ in range(2))
    weight, bias = (rng.standard_normal(1000, dtype=np.float32) for _ in range(2))
    y, mean, rstd = layer_norm(x, weight, bias)
    expected = reference(x, weight, bias)
    error, bound = share_of_bound(y, expected, error_bound(x, weight, bias, expected))
    print(f"forward, 128 rows of 1,000: largest error {error:.3g}, bound {bound:.3g}")
    difference = np.abs(ops.layer_norm(x, weight, bias) - y).max()
    print(f"ops.layer_norm differs from it by {difference:.3g} at most")
    actual = layer_norm_backward(dy, x, weight, mean, rstd)
    wanted = reference_backward(dy, x, weight)
    bounds = error_bound_backward(dy, x, weight, wanted)
    for name, a, e, b in zip(("dx", "dweight", "dbias"), actual, wanted, bounds, strict=True):
        error, bound = share_of_bound(a, e, b)
        print(f"backward, {name}: largest error {error:.3g}, bound {bound:.3g}")


if __name__ == "__main__":
    main()
