"""The sizes of tiles that kernels of matrix products take by default, by the shape of the problem alone.

Each function is a rule that a table of tuned tiles may replace. Most launches name no SIMD-groups: their kernels get
those that the model of docs/threads.md chooses.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import triton_metal as triton

#: As many programs as keep the cores of a large chip busy; with fewer, K is split.
PROGRAMS = 64
#: The least of K that is worth a part of its own, and the most parts.
LEAST_PART = 256
MOST_PARTS = 32


class Tile(NamedTuple):
    """The block of a program, and the parts of K."""

    m: int
    n: int
    k: int
    parts: int = 1


def matmul_tile(
    m: int, n: int, k: int, items: int, batch: int, itemsize: int, split_k: int | None = None
) -> Tile:
    """The tile of a product (M, K) by (K, N) of a batch, whose numbers are multiplied as ones of ``itemsize`` bytes.

    Where a result is the sum of ``items`` products, parts are of these, else of K.
    """
    block_m, block_n, block_k = 64, 64, 16
    if m <= 32 or n <= 32:
        # A flat tile has fewer products for each number that it loads: it takes more of K at once.
        block_m = max(16, min(64, triton.next_power_of_2(m)))
        block_n = max(16, min(64, triton.next_power_of_2(n)))
        block_k = 32
    if itemsize == 1:
        block_k = 32
    programs = batch * triton.cdiv(m, block_m) * triton.cdiv(n, block_n)
    if items > 1:
        parts = min(items, split_k or max(1, PROGRAMS // max(programs, 1)))
    else:
        parts = parts_of(k, block_k, programs, split_k)
    return Tile(block_m, block_n, block_k, parts)


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


def vector_tile(along_rows: bool, rows: int, itemsize: int, aligned: bool) -> VectorTile:
    """The tile of a matrix's product with a vector, along its rows or its columns.

    A thread reads 16 bytes at once, or four numbers where rows begin anywhere.
    """
    each = 16 // itemsize if aligned else 4
    if along_rows:
        return VectorTile(4, 256, each)
    if itemsize == 4 and rows >= 2048:
        return VectorTile(128, 8, 1)
    return VectorTile(16, 64, 2 * each)


#: With so many rows or fewer, a quantised matrix is multiplied row by row.
QUANTIZED_VECTOR_ROWS = 6


def quantized_vector_tile(bits: int, transpose: bool) -> tuple[int, int]:
    """Columns and numbers of K of a program of one SIMD-group.

    Where rows of the matrix lie along K, a thread takes two words of four columns, as MLX's do; else a thread
    has 32 neighbours of a row, which are of one group.
    """
    return (4, 2 * 32 * 32 // bits) if transpose else (32, 32)


def quantized_tile(m: int, group: int, transpose: bool) -> Tile:
    """The tile of a product with a quantised matrix. The side that lies along its rows divides a group, 32 or more."""
    block_n = 32 if m <= 32 or (group == 32 and not transpose) else 64
    return Tile(max(16, min(64, triton.next_power_of_2(m))), block_n, 32)


def scaled_tile(m: int, n: int, k: int, split_k: int | None = None) -> Tile:
    """The tile of a product whose groups of 32 numbers of K have scales."""
    block_m, block_n, block_k = (
        max(16, min(64, triton.next_power_of_2(m))),
        32 if m <= 32 else 64,
        64,
    )
    programs = triton.cdiv(m, block_m) * triton.cdiv(n, block_n)
    return Tile(block_m, block_n, block_k, parts_of(k, block_k, programs, split_k))
