"""The structs of parameters and the launches that MLX's host code gives its kernels."""

from __future__ import annotations

import numpy as np

from mlx_kernels.running import f32, i32, i64, raw


def tiles(size: int, tile: int) -> int:
    """How many tiles cover the size."""
    return -(-size // tile)


def gemm_params(m, n, k, lda, ldb, tile, strides=(0, 0, 0), swizzle=0, batch_ndim=0) -> np.ndarray:
    """GEMMParams: sizes, leading dimensions, tiles and the steps between the matrices of a batch."""
    bm, bn, bk = tile[:3]
    return raw(
        i32(m, n, k, lda, ldb, n, tiles(n, bn), tiles(m, bm)),
        i64(*strides),
        i32(swizzle, k // bk, batch_ndim, 0),
    )


def heads(shape: tuple[int, ...]) -> np.ndarray:
    """The steps between batches, heads and rows of an array (batches, heads, length, width)."""
    _, h, length, width = shape
    return i64(h * length * width, length * width, width)


def attention_params(
    shape_q: tuple[int, ...], shape_k: tuple[int, ...], scale: float, bq: int, bk: int
) -> np.ndarray:
    """AttnParams of tiled attention with blocks of `bq` queries and `bk` keys."""
    batch, count, queries, width = shape_q
    keys = shape_k[2]
    return raw(
        i32(batch, count, width, queries, keys, count // shape_k[1]),
        f32(scale),
        i32(
            *(tiles(queries, bq), tiles(keys, bk), queries // bq, keys // bk),
            *(queries % bq, keys % bk, keys - queries),
        ),
        *(heads(shape) for shape in (shape_q, shape_k, shape_k, shape_q)),
    )


def column_arguments(x: np.ndarray, axes: tuple[int, ...]) -> dict[int, np.ndarray]:
    """The arguments of reductions along `axes`, behind which `x` has dimensions that are kept."""
    strides = np.array(x.strides, np.int64) // x.itemsize
    stride, size = int(strides[axes[-1]]), x.shape[axes[-1]]
    # MLX takes the last reduced axis into the loop over the others.
    outer = list(axes)
    kept = [a for a in range(x.ndim - 1) if a not in axes and strides[a] >= stride]
    return {
        2: i64(size),
        3: i64(stride),
        4: i32(*[x.shape[a] for a in kept] or [0]),
        5: i64(*strides[kept]) if kept else i64(0),
        6: i32(len(kept)),
        7: i32(*[x.shape[a] for a in outer]),
        8: i64(*strides[outer]),
        9: i32(len(outer)),
        10: i64(int(np.prod([x.shape[a] for a in outer[:-1]]))),
    }


def threads_for(size: int, looped: bool, reads: int) -> int:
    """The threads of a row of so many elements, of which each thread reads `reads`; all threads if it loops."""
    return 1024 if looped else tiles(size, 32 * reads) * 32
