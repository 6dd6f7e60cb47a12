"""Kernels that are bound by memory, for this project and for stock Triton alike.

With TRITON_METAL_STOCK in the environment they are stock Triton's.
"""

from __future__ import annotations

import os
from argparse import ArgumentParser
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

if "TRITON_METAL_STOCK" in os.environ:
    import triton
    import triton.language as tl
else:
    import triton_metal as triton
    import triton_metal.language as tl


@triton.jit
def add(out_ptr, x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    x = tl.load(x_ptr + at, mask=inside)
    y = tl.load(y_ptr + at, mask=inside)
    tl.store(out_ptr + at, x + y, mask=inside)


@triton.jit
def dropout(out_ptr, x_ptr, n, p, seed, BLOCK: tl.constexpr):
    start = tl.program_id(0) * BLOCK
    at = start + tl.arange(0, BLOCK)
    inside = at < n
    x = tl.load(x_ptr + at, mask=inside).to(tl.float32)
    # One call of Philox gives the words of four neighbours.
    a, b, c, d = tl.randint4x(seed, start // 4 + tl.arange(0, BLOCK // 4))
    words = tl.join(tl.join(a, c), tl.join(b, d)).reshape(BLOCK)
    kept = words >= (p * 4294967296.0).to(tl.uint32)
    y = tl.where(kept, x, 0.0) * (1 / (1 - p))
    tl.store(out_ptr + at, y.to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def softmax(out_ptr, x_ptr, stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    inside = cols < n_cols
    x = tl.load(x_ptr + row * stride + cols, mask=inside, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    y = e / tl.sum(e, axis=0)
    tl.store(out_ptr + row * stride + cols, y.to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def layer_norm(out_ptr, x_ptr, weight_ptr, bias_ptr, stride, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    inside = cols < n_cols
    x = tl.load(x_ptr + row * stride + cols, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / n_cols
    centred = tl.where(inside, x - mean, 0.0)
    rstd = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / n_cols + eps)
    weight = tl.load(weight_ptr + cols, mask=inside).to(tl.float32)
    bias = tl.load(bias_ptr + cols, mask=inside).to(tl.float32)
    y = centred * rstd * weight + bias
    tl.store(out_ptr + row * stride + cols, y.to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def rms_norm(
    out_ptr, x_ptr, weight_ptr, stride, n_cols, eps, BLOCK: tl.constexpr, EARLY: tl.constexpr
):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    inside = cols < n_cols
    x = tl.load(x_ptr + row * stride + cols, mask=inside, other=0.0).to(tl.float32)
    if EARLY:
        weight = tl.load(weight_ptr + cols, mask=inside).to(tl.float32)
    rstd = tl.rsqrt(tl.sum(x * x, axis=0) / n_cols + eps)
    if not EARLY:
        weight = tl.load(weight_ptr + cols, mask=inside).to(tl.float32)
    y = x * rstd * weight
    tl.store(out_ptr + row * stride + cols, y.to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def rope(out_ptr, x_ptr, cos_ptr, sin_ptr, stride, period, HALF: tl.constexpr, BLOCK: tl.constexpr):
    parts: tl.constexpr = (HALF + BLOCK - 1) // BLOCK
    row = tl.program_id(0) // parts
    cols = tl.program_id(0) % parts * BLOCK + tl.arange(0, BLOCK)
    inside = cols < HALF
    angle = (row % period) * HALF + cols
    cos = tl.load(cos_ptr + angle, mask=inside)
    sin = tl.load(sin_ptr + angle, mask=inside)
    x = tl.load(x_ptr + row * stride + cols, mask=inside).to(tl.float32)
    y = tl.load(x_ptr + row * stride + HALF + cols, mask=inside).to(tl.float32)
    low, high = x * cos - y * sin, y * cos + x * sin
    tl.store(out_ptr + row * stride + cols, low.to(out_ptr.dtype.element_ty), mask=inside)
    tl.store(out_ptr + row * stride + HALF + cols, high.to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def cross_entropy(
    loss_ptr, x_ptr, label_ptr, stride, n_cols, BLOCK: tl.constexpr, ROWS: tl.constexpr
):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    cols = tl.arange(0, BLOCK)[None, :]
    inside = cols < n_cols
    at = x_ptr + rows[:, None] * stride + cols
    x = tl.load(at, mask=inside, other=-float("inf")).to(tl.float32)
    highest = tl.max(x, axis=1)
    total = tl.sum(tl.exp(x - highest[:, None]), axis=1)
    label = tl.load(label_ptr + rows)
    chosen = tl.load(x_ptr + rows * stride + label).to(tl.float32)
    tl.store(loss_ptr + rows, tl.log(total) + highest - chosen)


KERNELS = {
    kernel.__name__: kernel
    for kernel in (add, dropout, softmax, layer_norm, rms_norm, rope, cross_entropy)
}
COLUMNS = (1024, 2048, 4096, 8192, 16384)
#: Rows of angles that `rope` has.
PERIOD = 64


@dataclass(frozen=True)
class Case:
    """One kernel at one size. `arrays` are name, type and shape, the output first; `scalars` come after them."""

    kernel: str
    dtype: str
    rows: int
    cols: int
    num_warps: int
    constants: dict[str, int]
    grid: int
    arrays: list[tuple[str, str, tuple[int, ...]]]
    scalars: list[Any]

    @property
    def name(self) -> str:
        return f"{self.kernel}-{self.cols}-{self.dtype}-{self.num_warps}"

    @property
    def group(self) -> str:
        """The problem, of which the cases differ in their number of warps alone."""
        return f"{self.kernel} {self.dtype} {self.cols}"

    @property
    def bytes(self) -> int:
        """What is read and written at least, each array once."""
        sizes = {"float32": 4, "float16": 2, "int32": 4}
        total = 0
        for _, dtype, shape in self.arrays:
            count = 1
            for n in shape:
                count *= n
            total += count * sizes[dtype]
        return total


def add_columns(parser: ArgumentParser) -> None:
    """Gives a parser the option `--columns`, a tuple of even numbers."""
    parser.add_argument(
        "--columns",
        type=lambda text: tuple(int(part) for part in text.split(",")),
        default=COLUMNS,
        help="columns of the kernels, even numbers with commas between them; 1,024 to 16,384 by default",
    )


def _warps(elements: int) -> list[int]:
    """Those that give each thread 4 to 64 of a program's elements."""
    return [n for n in (1, 2, 4, 8, 16, 32) if 4 <= elements // (32 * n) <= 64]


def cases(
    matrix_bytes: int = 2**29, only: str = "", columns: tuple[int, ...] = COLUMNS
) -> Iterator[Case]:
    """All kernels at all sizes, with the numbers of warps that are tried on both sides.

    Blocks of rows are the next power of two. `columns` are even numbers, as rope takes halves of a row.
    """
    for name in KERNELS:
        for dtype in ("float32", "float16"):
            for cols in columns:
                size = 4 if dtype == "float32" else 2
                rows = matrix_bytes // size // cols // PERIOD * PERIOD
                elements = rows * cols
                matrix, row = (rows, cols), (cols,)
                block = triton.next_power_of_2(cols)
                if name in ("add", "dropout"):
                    block = min(block, 4096)
                elif name == "rope":
                    block = min(triton.next_power_of_2(cols // 2), 1024)
                constants = {"BLOCK": block}
                if name == "rope":
                    constants["HALF"] = cols // 2
                elif name == "cross_entropy":
                    # To start a program takes an H200 as long as to read 2.5 KB, and rows of 1,024 halves have 2 KB.
                    constants["ROWS"] = 1 << max(1, 4096 // (cols * size)).bit_length() - 1
                for warps in _warps(block * constants.get("ROWS", 1)):
                    grid = rows
                    if name == "rms_norm":
                        # The weights come while the row is summed, where each thread keeps at most 16 bytes of them.
                        early = block * size <= 16 * 32 * warps
                        constants = constants | {"EARLY": int(early)}
                    out, x = ("out", dtype, matrix), ("x", dtype, matrix)
                    if name == "add":
                        arrays, scalars = [out, x, ("y", dtype, matrix)], [elements]
                        grid = triton.cdiv(elements, block)
                    elif name == "dropout":
                        arrays, scalars = [out, x], [elements, 0.5, 7]
                        grid = triton.cdiv(elements, block)
                    elif name == "softmax":
                        arrays, scalars = [out, x], [cols, cols]
                    elif name == "layer_norm":
                        arrays = [out, x, ("weight", dtype, row), ("bias", dtype, row)]
                        scalars = [cols, cols, 1e-5]
                    elif name == "rms_norm":
                        arrays, scalars = [out, x, ("weight", dtype, row)], [cols, cols, 1e-5]
                    elif name == "rope":
                        table = (PERIOD, cols // 2)
                        arrays = [out, x, ("cos", "float32", table), ("sin", "float32", table)]
                        scalars = [cols, PERIOD]
                        grid = rows * triton.cdiv(cols // 2, block)
                    else:
                        arrays = [("loss", "float32", (rows,)), x, ("label", "int32", (rows,))]
                        scalars = [cols, cols]
                        grid = rows // constants["ROWS"]
                    case = Case(name, dtype, rows, cols, warps, constants, grid, arrays, scalars)
                    if only in case.name:
                        yield case
