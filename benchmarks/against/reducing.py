"""Rows of the table that reduce: rows, columns, axes in the middle, everything."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from triton_metal import ops

from against.along_rows import typed
from against.launching import row_threads
from against.problem import Case, Launch, Problem, default, equal, near
from mlx_kernels.parameters import column_arguments, tiles
from mlx_kernels.running import blank, decode, encode, i64, launch, metal, numbers

#: MLX's functors of reductions, NumPy's functions and ours.
REDUCTIONS: dict[str, tuple[str, Callable[..., Any], Callable[..., Any]]] = {
    "sum": ("Sum", np.sum, ops.sum),
    "mean": ("Sum", np.mean, ops.mean),
    "prod": ("Prod", np.prod, ops.prod),
    "max": ("Max", np.max, ops.max),
    "min": ("Min", np.min, ops.min),
    "all": ("And", np.all, ops.all),
    "any": ("Or", np.any, ops.any),
}


class _Reduction:
    """A reduction of random numbers over some axes, as MLX's kernels are given it, and what it gives in float64."""

    def __init__(self, name: str, shape: tuple[int, ...], axes: tuple[int, ...], t: str) -> None:
        functor, exact, self.function = REDUCTIONS[name]
        self.name, self.t, self.axes = name, t, axes
        self.bools = functor in ("And", "Or")
        x = numbers(shape, t, 1)
        if name == "prod":
            x = decode(encode(1 + x / 64, t), t)
        if self.bools:
            # MLX reads floats as integers of their bits.
            x = (x > -2.5).astype(np.int32) if name == "all" else (x > 2.5).astype(np.int32)
            self.t = t = "int32"
        self.x, self.exact = x, exact(x, axis=axes)
        self.read, self.stored = t, "bool_" if self.bools else t
        self.functor = metal(t), metal(self.stored), f"{functor}<{metal(self.stored)}>"
        #: What joins results of parts.
        self.again = metal(self.stored), metal(self.stored), f"{functor}<{metal(self.stored)}>"

    def finished(self, total: np.ndarray) -> np.ndarray:
        """The result of a sum; of a mean it is multiplied by one over the length, as in MLX."""
        if self.name != "mean":
            return total if self.bools else decode(total, self.t)
        share = total.size / self.x.size
        (out,) = launch(
            "binary",
            ("binary_vs", metal(self.t), metal(self.t), "Multiply", 1),
            {
                0: total,
                1: encode(np.array([share]), self.t),
                2: blank(total.shape, self.t),
                3: np.array([total.size], np.uint32),
            },
            [2],
            grid=(total.size,),
            group=(min(total.size, 1024),),
        )
        return decode(out, self.t)

    def problem(self, theirs: dict[str, Launch], terms: int) -> Problem:
        given = self.x if self.bools else typed(self.x, self.t)
        axis = self.axes if len(self.axes) < self.x.ndim else None
        if self.bools or self.name in ("max", "min"):
            check = equal(self.exact)
        else:
            check = near(np.asarray(self.exact), self.t, terms=terms)

        def ours() -> np.ndarray:
            return np.asarray(self.function(given, axis=axis)).astype(
                np.uint8 if self.bools else given.dtype
            )

        def plain(launch: Launch) -> Launch:
            return (lambda: launch().astype(np.uint8)) if self.bools else launch

        return Problem(default(ours), {name: plain(one) for name, one in theirs.items()}, check)


def _rows(name: str, shape: tuple[int, int], t: str) -> Problem:
    of = _Reduction(name, shape, (1,), t)
    columns = shape[1]
    threads = row_threads(columns)

    def run() -> np.ndarray:
        (out,) = launch(
            "reduce",
            ("row_reduce_simple", *of.functor),
            {
                0: encode(of.x, of.read),
                1: blank(shape[:1], of.stored),
                2: i64(columns),
                3: i64(shape[0]),
            },
            [1],
            grid=(threads, tiles(shape[0], 4)),
            group=(threads,),
        )
        return of.finished(out)

    return of.problem({"row_reduce_simple": run}, columns)


def _columns(name: str, shape: tuple[int, ...], t: str) -> Problem:
    """The axis before the last one, of a matrix or of several."""
    axis = len(shape) - 2
    of = _Reduction(name, shape, (axis,), t)
    length, columns = shape[axis:]
    outer = int(np.prod(shape[:axis]))
    x = encode(of.x, of.read)
    common = {0: x} | column_arguments(x, (axis,))
    out_shape = (*shape[:axis], columns)

    def two_passes() -> np.ndarray:
        (partial,) = launch(
            "reduce",
            ("col_reduce_2pass", *of.functor, "int", 1, 32, 32),
            common | {1: blank((32, *out_shape), of.stored), 11: i64(outer)},
            [1],
            grid=(256 * tiles(columns, 32), outer * 32),
            group=(256,),
        )
        partial = partial.reshape(32, outer * columns)
        again = {0: partial, 1: blank(out_shape, of.stored)} | column_arguments(partial, (0,))
        (out,) = launch(
            "reduce",
            ("col_reduce_looped", *of.again, "int", 1, 32, 32),
            again,
            [1],
            grid=(256 * tiles(outer * columns, 32), 1),
            group=(256,),
        )
        return of.finished(out)

    def looped() -> np.ndarray:
        (out,) = launch(
            "reduce",
            ("col_reduce_looped", *of.functor, "int", 1, 32, 32),
            common | {1: blank(out_shape, of.stored)},
            [1],
            grid=(256 * tiles(columns, 32), outer),
            group=(256,),
        )
        return of.finished(out)

    two = length > 256 and outer * columns < 32 * 1024
    theirs: dict[str, Launch] = {"col_reduce_looped": looped}
    if two:
        theirs = {"col_reduce_2pass": two_passes}
    return of.problem(theirs, length)


def _all(name: str, size: int, t: str) -> Problem:
    of = _Reduction(name, (size,), (0,), t)
    parts = 128 if size > 4096 else 1
    row = tiles(size, parts)
    threads = min(1024, tiles(tiles(row, 4), 32) * 32)

    def run() -> np.ndarray:
        sizes = {2: i64(size), 3: i64(row)}
        (out,) = launch(
            "reduce",
            ("all_reduce", *of.functor),
            {0: encode(of.x, of.read), 1: blank((parts,), of.stored)} | sizes,
            [1],
            grid=(threads, parts),
            group=(threads,),
        )
        if parts > 1:
            (out,) = launch(
                "reduce",
                ("all_reduce", *of.again),
                {0: out, 1: blank((1,), of.stored), 2: i64(parts), 3: i64(parts)},
                [1],
                grid=(32,),
                group=(32,),
            )
        return of.finished(out)

    return of.problem({"all_reduce": run}, size)


def cases() -> Iterator[Case]:
    def sized(shape: tuple[int, ...]) -> str:
        return "×".join(map(str, shape))

    for name, shape, t, quick in (
        ("sum", (256, 1024), "float32", True),
        ("sum", (128, 4096), "float16", False),
        ("sum", (1000, 500), "float32", False),
        ("mean", (256, 1024), "float32", False),
        ("prod", (256, 1024), "float32", False),
        ("max", (256, 1024), "float32", False),
        ("max", (1000, 500), "float16", False),
        ("min", (256, 1024), "float32", False),
        ("all", (256, 1024), "float32", False),
    ):
        make = lambda a=(name, shape, t): _rows(*a)  # noqa: E731
        yield Case(
            f"{name} of rows", sized(shape), t if name != "all" else "int32", make, quick=quick
        )
    for name, shape, t, quick in (
        ("sum", (1024, 512), "float32", True),
        ("sum", (200, 4096), "float16", False),
        ("sum", (8, 200, 512), "float32", False),
        ("max", (1024, 512), "float32", False),
        ("any", (1024, 512), "int32", False),
    ):
        make = lambda a=(name, shape, t): _columns(*a)  # noqa: E731
        yield Case(f"{name} of columns", sized(shape), t, make, quick=quick)
    for name in ("sum", "max"):
        yield Case(
            f"{name} of all", str(1 << 20), "float32", lambda n=name: _all(n, 1 << 20, "float32")
        )
