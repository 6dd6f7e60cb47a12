"""Launches of MLX's kernels of which its functions are made: unary and binary operations, sums of rows, compiled functions."""

from __future__ import annotations

import numpy as np

from mlx_kernels.parameters import threads_for, tiles
from mlx_kernels.running import NUMPY, blank, encode, i32, i64, launch, metal

#: From so many elements on a thread of an operation has 8 bytes of them.
MANY = 1 << 16


def work(t: str, size: int) -> int:
    """The elements of a thread."""
    return max(1, 8 // np.dtype(NUMPY[t]).itemsize) if size >= MANY else 1


def count(n: int) -> np.ndarray:
    return np.array([n], np.uint32)


def _threads(size: int, each: int) -> dict[str, tuple[int, ...]]:
    threads = tiles(size, each)
    return {"grid": (threads,), "group": (min(threads, 1024),)}


def unary(op: str, x: np.ndarray, t: str) -> np.ndarray:
    """An operation of each element of a stored array."""
    each = work(t, x.size)
    (out,) = launch(
        "unary",
        ("unary_v", metal(t), metal(t), op, each),
        {0: x, 1: blank(x.shape, t), 2: count(x.size)},
        [1],
        **_threads(x.size, each),
    )
    return out


def binary(op: str, a: np.ndarray, b: np.ndarray, t: str) -> np.ndarray:
    """An operation of two stored arrays, of which the second may be one number, or one of each row."""
    if b.size in (1, a.size):
        each = work(t, a.size)
        (out,) = launch(
            "binary",
            ("binary_vs" if b.size == 1 else "binary_vv", metal(t), metal(t), op, each),
            {0: a, 1: b, 2: blank(a.shape, t), 3: count(a.size)},
            [2],
            **_threads(a.size, each),
        )
        return out
    rows, columns = a.shape
    grid = (columns, rows, 1)
    (out,) = launch(
        "binary",
        ("binary_g_nd2", metal(t), metal(t), op, "int"),
        {0: a, 1: b, 2: blank(a.shape, t), 3: i64(columns, 1), 4: i64(1, 0)},
        [2],
        grid=grid,
        group=block_dims(*grid),
    )
    return out


def compiled(function: str, arrays: list[np.ndarray], t: str) -> np.ndarray:
    """A function that MLX compiles: one kernel, which computes its operations one after the other for each element."""
    x, each = arrays[0], work(t, arrays[0].size)
    buffers = dict(enumerate([*arrays, blank(x.shape, t), count(x.size)]))
    (out,) = launch(
        "compiled",
        (function, metal(t), each),
        buffers,
        [len(arrays)],
        **_threads(x.size, each),
    )
    return out


def sum_of_rows(x: np.ndarray, t: str) -> np.ndarray:
    rows, columns = x.shape
    threads = row_threads(columns)
    (out,) = launch(
        "reduce",
        ("row_reduce_simple", metal(t), metal(t), f"Sum<{metal(t)}>"),
        {0: x, 1: blank((rows,), t), 2: i64(columns), 3: i64(rows)},
        [1],
        grid=(threads, tiles(rows, 4)),
        group=(threads,),
    )
    return out


def row_threads(columns: int) -> int:
    """The threads of a reduction of rows."""
    if columns <= 512:
        return 32
    return 128 if columns <= 1024 else min(1024, tiles(columns, 128) * 32)


def mean_of_rows(x: np.ndarray, t: str) -> np.ndarray:
    """Sums, times one over the length."""
    return binary("Multiply", sum_of_rows(x, t), encode(np.array([1 / x.shape[1]]), t), t)


def logsumexp_of_rows(x: np.ndarray, t: str) -> np.ndarray:
    rows, columns = x.shape
    looped = columns > 4096
    (out,) = launch(
        "logsumexp",
        ("logsumexp_looped" if looped else "logsumexp", metal(t)),
        {0: x, 1: blank((rows,), t), 2: i32(columns)},
        [1],
        threadgroups=(rows,),
        group=(threads_for(columns, looped, 4),),
    )
    return out


def block_dims(*sizes: int) -> tuple[int, ...]:
    """The threads of a threadgroup that MLX takes for a grid of three dimensions."""
    powers, total = [0, 0, 0], 0
    while total < 10:
        before = total
        for axis, size in enumerate(sizes):
            if total < 10 and size >= 2 << powers[axis]:
                powers[axis] += 1
                total += 1
        if total == before:
            break
    return tuple(1 << power for power in powers)
