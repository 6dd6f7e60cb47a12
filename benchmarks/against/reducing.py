"""Rows of the table that add: rows, columns, everything."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from against.along_rows import typed
from against.problem import Case, Launch, Problem, grid_of, near
from kernels.reduce import sum_all, sum_columns, sum_rows
from mlx_kernels.parameters import column_arguments, tiles
from mlx_kernels.running import blank, decode, encode, i64, launch, metal, numbers


def _functor(t: str) -> tuple[str, str, str]:
    return metal(t), metal(t), f"Sum<{metal(t)}>"


def _threads(columns: int) -> int:
    if columns <= 512:
        return 32
    return 128 if columns <= 1024 else min(1024, tiles(columns, 128) * 32)


def _rows(shape: tuple[int, int], t: str) -> Problem:
    x = numbers(shape, t, 1)
    given, columns = typed(x, t), shape[1]
    threads = _threads(columns)

    def run() -> np.ndarray:
        (out,) = launch(
            "reduce",
            ("row_reduce_simple", *_functor(t)),
            {0: encode(x, t), 1: blank(shape[:1], t), 2: i64(columns), 3: i64(shape[0])},
            [1],
            grid=(threads, tiles(shape[0], 4)),
            group=(threads,),
        )
        return decode(out, t)

    choices = [(1, 512, 4), (1, 1024, 4), (4, 512, 4), (4, 128, 1), (4, 256, 1), (8, 128, 4)]
    choices += [(1, 128, 1), (1, 512, 1), (2, 128, 1)]
    ours = grid_of(
        lambda **options: sum_rows(given, **options), "BLOCK_M BLOCK_N num_warps", choices
    )
    return Problem(ours, {"row_reduce_simple": run}, near(x.sum(1), t, terms=columns))


def _columns(shape: tuple[int, int], t: str) -> Problem:
    x = numbers(shape, t, 1)
    given, (rows, columns) = typed(x, t), shape
    common = {0: encode(x, t)} | column_arguments(encode(x, t), (0,))

    def two_passes() -> np.ndarray:
        (partial,) = launch(
            "reduce",
            ("col_reduce_2pass", *_functor(t), "int", 1, 32, 32),
            common | {1: blank((32, columns), t), 11: i64(1)},
            [1],
            grid=(256 * tiles(columns, 32), 32),
            group=(256,),
        )
        again = {0: partial, 1: blank((columns,), t)} | column_arguments(partial, (0,))
        (out,) = launch(
            "reduce",
            ("col_reduce_looped", *_functor(t), "int", 1, 32, 32),
            again,
            [1],
            grid=(256 * tiles(columns, 32), 1),
            group=(256,),
        )
        return decode(out, t)

    def looped() -> np.ndarray:
        (out,) = launch(
            "reduce",
            ("col_reduce_looped", *_functor(t), "int", 1, 32, 32),
            common | {1: blank((columns,), t)},
            [1],
            grid=(256 * tiles(columns, 32), 1),
            group=(256,),
        )
        return decode(out, t)

    theirs: dict[str, Launch] = {"col_reduce_looped": looped}
    if rows > 256 and columns < 32 * 1024:
        theirs = {"col_reduce_2pass": two_passes}
    parts = 32 if "col_reduce_2pass" in theirs else 1
    choices = [(32, 32, 4, parts), (32, 32, 8, parts), (16, 128, 4, parts), (8, 128, 4, parts)]
    choices += [(4, 128, 1, parts), (1, 128, 1, parts)]
    ours = grid_of(
        lambda **options: sum_columns(given, **options), "BLOCK_M BLOCK_N num_warps parts", choices
    )
    return Problem(ours, theirs, near(x.sum(0), t, terms=rows))


def _all(size: int, t: str) -> Problem:
    x = numbers((size,), t, 1)
    given = typed(x, t)
    parts = 128
    row = tiles(size, parts)
    threads = min(1024, tiles(tiles(row, 4), 32) * 32)

    def run() -> np.ndarray:
        sizes = {2: i64(size), 3: i64(row)}
        (partial,) = launch(
            "reduce",
            ("all_reduce", *_functor(t)),
            {0: encode(x, t), 1: blank((parts,), t)} | sizes,
            [1],
            grid=(threads, parts),
            group=(threads,),
        )
        (out,) = launch(
            "reduce",
            ("all_reduce", *_functor(t)),
            {0: partial, 1: blank((1,), t), 2: i64(parts), 3: i64(parts)},
            [1],
            grid=(32,),
            group=(32,),
        )
        return decode(out, t)

    choices = [(128, 512, 4), (128, 1024, 4), (128, 2048, 8), (128, 4096, 32)]
    ours = grid_of(lambda **o: sum_all(given, **o), "parts BLOCK_N num_warps", choices)
    return Problem(ours, {"all_reduce": run}, near(np.array([x.sum()]), t, terms=size))


def cases() -> Iterator[Case]:
    for shape, t, quick in (
        ((256, 1024), "float32", True),
        ((128, 4096), "float16", False),
        ((1000, 500), "float32", False),
    ):
        name = "×".join(map(str, shape))
        yield Case("sum of rows", name, t, lambda s=shape, t=t: _rows(s, t), quick=quick)
    for shape, t, quick in (((1024, 512), "float32", True), ((200, 4096), "float16", False)):
        name = "×".join(map(str, shape))
        yield Case("sum of columns", name, t, lambda s=shape, t=t: _columns(s, t), quick=quick)
    yield Case("sum of all", str(1 << 20), "float32", lambda: _all(1 << 20, "float32"))
