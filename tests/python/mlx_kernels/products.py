"""What the tests of products with vectors have in common."""

from __future__ import annotations

import numpy as np

from mlx_kernels.running import numbers


def gemv_groups(
    transposed: bool, tile: tuple[int, ...], length: int
) -> tuple[int, tuple[int, int, int]]:
    """The number of threadgroups, and the threads of one."""
    bm, bn, sm, sn, tm, tn = tile
    block = bn * sn * tn if transposed else bm * sm * tm
    return -(-length // block), (32, bn, bm)


def matrices(count: int, transposed: bool, rows: int, columns: int, t: str):
    """Matrices as they are stored, in longer rows, and with `rows` results from `columns` elements."""
    stored = (columns, rows) if transposed else (rows, columns)
    padded = numbers((count, stored[0], stored[1] + 3), t, 1)
    used = padded[:, :, : stored[1]]
    return padded, np.swapaxes(used, 1, 2) if transposed else used
