"""Kernels of many kinds and sizes, for the model of triton_metal.cost: what binds them is memory, lines, arithmetic, functions,
exchanges between lanes, or too few programs.

With TRITON_METAL_STOCK in the environment they are stock Triton's.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

if "TRITON_METAL_STOCK" in os.environ:
    import triton
    import triton.language as tl

    from kernels import Case, softmax
else:
    import triton_metal as triton
    import triton_metal.language as tl
    from benchmarks.nvidia.kernels import Case, softmax


@triton.jit
def scale(out_ptr, x_ptr, n, factor, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, at < n) * factor, at < n)


@triton.jit
def polynomial(out_ptr, x_ptr, n, factor, TERMS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, at < n).to(tl.float32)
    y = x
    for _ in tl.static_range(TERMS):
        y = y * x + factor
    tl.store(out_ptr + at, y.to(out_ptr.dtype.element_ty), at < n)


@triton.jit
def functions(out_ptr, x_ptr, n, factor, TERMS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = tl.load(x_ptr + at, at < n).to(tl.float32)
    for _ in tl.static_range(TERMS):
        y = tl.exp2(y * factor)
    tl.store(out_ptr + at, y.to(out_ptr.dtype.element_ty), at < n)


@triton.jit
def hashed(out_ptr, x_ptr, n, factor, TERMS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    h = at.to(tl.uint32)
    for _ in tl.static_range(TERMS):
        h = (h ^ (h >> 15)) * 0x2C1B3C6D
    y = tl.load(x_ptr + at, at < n).to(tl.float32) + (h >> 9).to(tl.float32) * factor
    tl.store(out_ptr + at, y.to(out_ptr.dtype.element_ty), at < n)


@triton.jit
def strided(out_ptr, x_ptr, n, factor, STRIDE: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at * STRIDE, at < n) * factor, at < n)


@triton.jit
def gather(out_ptr, x_ptr, place_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    place = tl.load(place_ptr + at, at < n, other=0)
    tl.store(out_ptr + at, tl.load(x_ptr + place, at < n), at < n)


@triton.jit
def transpose(out_ptr, x_ptr, rows, cols, TILE: tl.constexpr):
    across = tl.cdiv(cols, TILE)
    r = tl.program_id(0) // across * TILE + tl.arange(0, TILE)
    c = tl.program_id(0) % across * TILE + tl.arange(0, TILE)
    x = tl.load(x_ptr + r[:, None] * cols + c[None, :])
    tl.store(out_ptr + c[:, None] * rows + r[None, :], tl.trans(x))


@triton.jit
def column_sums(out_ptr, x_ptr, rows, cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    r = tl.arange(0, ROWS)
    total = tl.zeros((ROWS, BLOCK), tl.float32)
    for start in range(0, rows, ROWS):
        x = tl.load(x_ptr + (start + r[:, None]) * cols + c[None, :])
        total += x.to(tl.float32)
    tl.store(out_ptr + c, tl.sum(total, axis=0).to(out_ptr.dtype.element_ty))


@triton.jit
def scan(out_ptr, x_ptr, stride, n, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    at = tl.program_id(0) * stride + cols
    y = tl.cumsum(tl.load(x_ptr + at, cols < n).to(tl.float32), axis=0)
    tl.store(out_ptr + at, y.to(out_ptr.dtype.element_ty), cols < n)


@triton.jit
def sort(out_ptr, x_ptr, stride, n, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    at = tl.program_id(0) * stride + cols
    tl.store(out_ptr + at, tl.sort(tl.load(x_ptr + at)))


@triton.jit
def repeated_sums(out_ptr, x_ptr, stride, n, TIMES: tl.constexpr, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * stride + cols).to(tl.float32)
    for _ in tl.static_range(TIMES):
        x = x - tl.sum(x, axis=0) * (1.0 / BLOCK)
    tl.store(out_ptr + tl.program_id(0) * stride + cols, x.to(out_ptr.dtype.element_ty))


KERNELS = {
    kernel.__name__: kernel
    for kernel in (
        scale,
        polynomial,
        functions,
        hashed,
        strided,
        gather,
        transpose,
        column_sums,
        scan,
        sort,
        repeated_sums,
        softmax,
    )
}


@dataclass(frozen=True)
class Kind(Case):
    """A case whose kernel has other problems of as many columns: its name has them all."""

    @property
    def name(self) -> str:
        parts = [str(n) for name, n in self.constants.items() if name != "BLOCK"]
        return "-".join(
            [
                self.kernel,
                f"{self.rows}x{self.cols}",
                *parts,
                str(self.constants.get("BLOCK", "")),
                self.dtype,
                str(self.num_warps),
            ]
        )

    @property
    def group(self) -> str:
        return self.name.rpartition("-")[0]


def _flat(kernel: str, dtype: str, n: int, warps: int, block: int, **constants: int) -> Kind:
    stride = constants.get("STRIDE", 1)
    arrays = [("out", dtype, (n,)), ("x", dtype, (n * stride,))]
    scalars: list[Any] = [n, 0.37]
    if kernel == "gather":
        arrays, scalars = [arrays[0], ("x", dtype, (n,)), ("place", "int32", (n,))], [n]
    return Kind(
        kernel, dtype, 1, n, warps, {**constants, "BLOCK": block}, -(-n // block), arrays, scalars
    )


def _rows(kernel: str, dtype: str, rows: int, cols: int, warps: int, **constants: int) -> Kind:
    block = 1 << (cols - 1).bit_length()
    arrays = [("out", dtype, (rows, cols)), ("x", dtype, (rows, cols))]
    return Kind(
        kernel,
        dtype,
        rows,
        cols,
        warps,
        {**constants, "BLOCK": block},
        rows,
        arrays,
        [cols, cols],
    )


def cases(only: str = "") -> Iterator[Kind]:
    """All cases; those of one `group` differ in their number of warps alone."""
    for case in _all():
        if only in case.name:
            yield case


def _all() -> Iterator[Kind]:
    for dtype in ("float32", "float16"):
        for n in (2**22, 2**25, 2**27):
            yield _flat("scale", dtype, n, 4, 1024)
        for terms in (16, 64, 256):
            for n in (2**21, 2**24):
                yield _flat("polynomial", dtype, n, 4, 1024, TERMS=terms)
        # Too few programs for all multiprocessors, and a last round that is hardly filled.
        for programs in (24, 140):
            yield _flat("polynomial", dtype, programs * 4096, 8, 4096, TERMS=256)
        for terms in (4, 16, 48):
            for n in (2**21, 2**24):
                yield _flat("functions", dtype, n, 4, 1024, TERMS=terms)
        for terms in (8, 64):
            for n in (2**22, 2**25):
                yield _flat("hashed", dtype, n, 4, 1024, TERMS=terms)
        for stride in (2, 8, 33):
            yield _flat("strided", dtype, 2**23, 4, 1024, STRIDE=stride)
        for n in (2**22, 2**25):
            yield _flat("gather", dtype, n, 4, 1024)
        for side, tile in ((2048, 16), (4096, 32), (8192, 64)):
            for warps in (2, 8):
                matrix = (dtype, (side, side))
                yield Kind(
                    "transpose",
                    dtype,
                    side,
                    side,
                    warps,
                    {"TILE": tile},
                    (side // tile) ** 2,
                    [("out", *matrix), ("x", *matrix)],
                    [side, side],
                )
        for rows, cols in ((512, 65536), (4096, 16384)):
            for warps in (2, 4):
                yield Kind(
                    "column_sums",
                    dtype,
                    rows,
                    cols,
                    warps,
                    {"ROWS": 16, "BLOCK": 64},
                    cols // 64,
                    [("out", dtype, (cols,)), ("x", dtype, (rows, cols))],
                    [rows, cols],
                )
        for rows, cols in ((16384, 1024), (2048, 4096)):
            for warps in (2, 8):
                yield _rows("scan", dtype, rows, cols, warps)
        for rows, cols in ((8192, 256), (2048, 1024)):
            for warps in (1, 4):
                yield _rows("sort", dtype, rows, cols, warps)
        for times in (4, 16):
            for warps in (1, 4, 16):
                yield _rows("repeated_sums", dtype, 8192, 2048, warps, TIMES=times)
        for rows, cols in ((65536, 300), (30000, 781), (10000, 3000)):
            for warps in (1, 4, 8):
                yield _rows("softmax", dtype, rows, cols, warps)
