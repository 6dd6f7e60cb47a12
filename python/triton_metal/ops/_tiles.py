"""The sizes of tiles that kernels of matrix products take by default.

Those of products come from tables for the chip (`_families`), the others from rules by the shape alone. Launches
of rules name no SIMD-groups: their kernels get those that the model of docs/threads.md chooses.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import triton_metal as triton

from ._arrays import Array
from ._choices import has_tensor_operations
from ._product_families import MATMUL, QUANTIZED, parts_with_work
from ._row_family import COLUMNS, QUANTIZED_ROWS, ROWS
from ._scaled_family import SCALED

#: As many programs as keep the cores of a large chip busy; with fewer, K is split.
PROGRAMS = 64
#: The least of K that is worth a part of its own, and the most parts.
LEAST_PART = 256
MOST_PARTS = 32


class Tile(NamedTuple):
    """The block of a program, its SIMD-groups (None leaves them to the compiler), and the parts of K."""

    m: int
    n: int
    k: int
    warps: int | None = None
    parts: int = 1


class Side(NamedTuple):
    """An operand of a product: the steps between its rows and its columns, and the bytes of a number."""

    row: int
    column: int
    itemsize: int

    @property
    def way(self) -> str:
        """Whether it lies along its rows ("n") or its columns ("t")."""
        return "t" if self.row == 1 and self.column != 1 else "n"

    @property
    def ragged(self) -> bool:
        """Whether rows (columns, where it lies along these) begin anywhere."""
        return (self.column if self.way == "t" else self.row) % 16 != 0


def matmul_tile(
    like: Array, dtype: str, a: Side, b: Side, out_itemsize: int, m: int, n: int, k: int, items: int, batch: int,
    split_k: int | None = None,
) -> Tile:  # fmt: skip
    """The tile of products (M, K) by (K, N) of a batch, whose numbers are multiplied in ``dtype``.

    Where a result is the sum of ``items`` products, parts are of these, else of K.
    """
    bytes_of = "float8" if dtype == "float16" and a.itemsize == b.itemsize == 1 else dtype
    kind = MATMUL.kind(bytes_of, a.way, b.way, (a.ragged, b.ragged), has_tensor_operations(like))
    split = 1 if items > 1 else split_k or 0
    block_m, block_n, block_k, warps, parts = MATMUL.choose(
        like, kind, m, n, k, batch, a.itemsize, b.itemsize, out_itemsize, split
    )
    if items > 1:
        programs = batch * triton.cdiv(m, block_m) * triton.cdiv(n, block_n)
        parts = min(items, split_k or max(1, PROGRAMS // max(programs, 1)))
    else:
        parts = parts_with_work(k, block_k, parts)
    return Tile(block_m, block_n, block_k, warps, parts)


def parts_of(k: int, block_k: int, programs: int, wanted: int | None = None) -> int:
    """How many parts K is cut into: ``wanted`` as far as blocks allow, or enough for a chip to have work."""
    if wanted is None:
        wanted = min(PROGRAMS // max(programs, 1), k // LEAST_PART, MOST_PARTS)
        wanted = 1 << int(math.log2(wanted)) if wanted > 1 else 1
    return max(1, min(wanted, triton.cdiv(k, block_k)))


class VectorTile(NamedTuple):
    """Rows and numbers of K of a program of one SIMD-group, and what a thread has of them (see the kernels)."""

    rows: int
    k: int
    each: int
    joined: bool = False


#: A row that is no longer is read by some lanes of a SIMD-group, so that few of them read nothing.
SHORT_ROW = 256


def vector_tile(along_rows: bool, rows: int, k: int, itemsize: int, aligned: bool) -> VectorTile:
    """The tile of a matrix's product with a vector, along its rows or its columns.

    A thread reads 16 bytes at once, of bytes along rows 8, or four numbers where rows begin or end anywhere. Lanes that a short
    row does not fill have further rows.
    """
    each = 16 // itemsize if aligned else 4
    if along_rows:
        each = min(each, 8)
        block = 32 * each
        if k <= SHORT_ROW:
            block = 16 if k <= 48 else 32 if k <= 64 else 64
        elif k < 4 * SHORT_ROW and 0 < k % block <= block // 2:
            block //= 2
        # A thread has four rows. With a sum for each number, those of several lanes take more registers.
        return VectorTile(128 * each // block, block, each, each > 4 or 32 < block < 32 * each)
    if itemsize == 4 and rows >= 2048:
        return VectorTile(128, 4, 4)
    return VectorTile(16, 8 * each, 2 * each)


#: With so many rows or fewer, a quantised matrix is multiplied row by row.
QUANTIZED_VECTOR_ROWS = 6


def quantized_vector_tile(
    like: Array, mode: str, bits: int, dtype: str, transpose: bool, m: int, n: int, k: int, batch: int, group: int
) -> tuple[int, int, int]:  # fmt: skip
    """Columns and numbers of K of a program of a few rows, and its SIMD-groups.

    Where rows of the matrix lie along K, a thread takes two words of four columns, as MLX's do. Lanes that a short row does not
    fill have further columns. Else a thread has 32 neighbours of a row, which are of one group.
    """
    if transpose:
        most = block = 2 * 32 * 32 // bits
        while k < 4 * most and block > max(64, group) and -k % block >= block // 4:
            block //= 2
        return 4 * most // block, block, 1
    kind = QUANTIZED.kind(mode, bits, dtype, False)
    (warps,) = QUANTIZED_ROWS.choose(like, kind, m, n, k, batch, group)
    return COLUMNS, ROWS * warps, warps


def quantized_tile(
    like: Array, mode: str, bits: int, dtype: str, transpose: bool, m: int, n: int, k: int, batch: int, group: int
) -> Tile:  # fmt: skip
    """The tile of a product with a quantised matrix. The side that lies along its rows divides a group, 32 or more."""
    kind = QUANTIZED.kind(mode, bits, dtype, transpose)
    return Tile(*QUANTIZED.choose(like, kind, m, n, k, batch, group))


def scaled_tile(like: Array, a: str, b: str, out_itemsize: int, m: int, n: int, k: int, split_k: int | None = None) -> Tile:  # fmt: skip
    """The tile of a product whose groups of 32 numbers of K have scales; operands are in the formats `a` and `b`."""
    kind = SCALED.kind(a, b)
    *tile, parts = SCALED.choose(like, kind, m, n, k, out_itemsize, split_k or 0)
    return Tile(*tile, parts=parts_with_work(k, tile[2], parts))
