"""Rows of the table that compute each element by itself or move elements: activations, gathers, sums at indices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import erf

import numpy as np
from triton_metal import ops

from against.along_rows import typed
from against.launching import MANY, block_dims, compiled, count, unary, work
from against.problem import Case, Problem, default, equal, near
from mlx_kernels.parameters import tiles
from mlx_kernels.running import blank, decode, encode, generator, i32, i64, launch, metal, numbers


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


#: NumPy's functions and ours, the kernel of MLX's, and the arrays that they take.
FUNCTIONS: dict[str, tuple[Callable[..., np.ndarray], Callable[..., np.ndarray], str, int]] = {
    "sigmoid": (_sigmoid, ops.sigmoid, "Sigmoid", 1),
    "tanh": (np.tanh, ops.tanh, "Tanh", 1),
    "silu": (lambda x: x * _sigmoid(x), ops.silu, "compiled_silu", 1),
    "gelu": (lambda x: x * (1 + np.vectorize(erf)(x / 2**0.5)) / 2, ops.gelu, "compiled_gelu", 1),
    "silu · value": (lambda x, y: x * _sigmoid(x) * y, ops.silu_mul, "compiled_silu_mul", 2),
}


def _activation(name: str, size: int, t: str) -> Problem:
    exact, function, kernel, arrays = FUNCTIONS[name]
    x = [numbers((size,), t, seed) for seed in range(1, arrays + 1)]
    given, stored = [typed(each, t) for each in x], [encode(each, t) for each in x]

    def run() -> np.ndarray:
        if kernel.startswith("compiled"):
            return decode(compiled(kernel, stored, t), t)
        return decode(unary(kernel, stored[0], t), t)

    # Each operation of MLX's is rounded to the type.
    check = near(exact(*x), t, terms=16, rtol=2e-5 if t == "float32" else 2e-2)
    return Problem(default(lambda: function(*given)), {kernel: run}, check)


def _rows(name: str, shape: tuple[int, int], many: int, t: str) -> Problem:
    """Whole rows at indices."""
    x = numbers(shape, t, 1)
    at = generator(2).integers(0, shape[0], many).astype(np.int32)
    given, stored = typed(x, t), encode(x, t)
    each = 2 if shape[1] > 8 and stored.itemsize < 4 else 1
    grid = (tiles(shape[1], each), many, 1)

    def run() -> np.ndarray:
        (out,) = launch(
            "gather_front",
            ("gather_front", metal(t), "int", "int", each),
            {0: stored, 1: at, 2: blank((many, shape[1]), t), 3: i64(shape[1]), 4: i32(shape[0])},
            [2],
            grid=grid,
            group=block_dims(*grid),
        )
        return decode(out, t)

    if name == "embedding":
        ours = default(lambda: ops.embedding(given, at))
    else:
        ours = default(lambda: ops.take(given, at))
    return Problem(ours, {"gather_front": run}, equal(x[at]))


def _along(shape: tuple[int, int], many: int, t: str) -> Problem:
    """An index for each element of the result, along the last axis."""
    x = numbers(shape, t, 1)
    rows, columns = shape
    at = generator(2).integers(0, columns, (rows, many)).astype(np.int32)
    given, stored = typed(x, t), encode(x, t)
    one = np.array([1], np.uint64)
    grid = (1, many, rows)

    def run() -> np.ndarray:
        (out,) = launch(
            "gather_axis",
            ("gather_axis", metal(t), "int", "int", True, True),
            {
                0: stored,
                1: at,
                2: blank(at.shape, t),
                3: i32(rows),
                4: i64(columns),
                5: i64(many),
                6: one,
                7: i32(1),
                8: i32(columns),
                9: one,
                10: one,
            },
            [2],
            grid=grid,
            group=block_dims(*grid),
        )
        return decode(out, t)

    ours = default(lambda: ops.take_along_axis(given, at))
    return Problem(ours, {"gather_axis": run}, equal(np.take_along_axis(x, at, 1)))


def _add(shape: tuple[int, int], many: int, t: str) -> Problem:
    """Rows that are added at indices. MLX adds by atomic operations, in no order."""
    x, updates = numbers(shape, t, 1), numbers((many, shape[1]), t, 3)
    at = generator(2).integers(0, shape[0], many).astype(np.int32)
    exact = x.copy()
    np.add.at(exact, at, updates)
    given, added, stored = typed(x, t), typed(updates, t), encode(updates, t)
    grid = (shape[1], many, 1)
    one = np.array([1], np.uint64)

    def run() -> np.ndarray:
        each = work(t, x.size)
        (copied,) = launch(
            "copy",
            ("copy_v", metal(t), metal(t), each),
            {0: encode(x, t), 1: blank(shape, t), 2: count(x.size)},
            [1],
            grid=(tiles(x.size, each),),
            group=(1024,),
        )
        (out,) = launch(
            "scatter",
            ("scatter", metal(t), "int", f"Sum<{metal(t)}>", 1, True, 1, "int"),
            {
                1: stored,
                2: copied,
                3: i32(many, 1, shape[1]),
                4: i64(shape[1], shape[1], 1),
                5: np.array([3], np.uint64),
                6: np.array([shape[1]], np.uint64),
                7: i32(*shape),
                8: i64(shape[1], 1),
                9: np.array([2], np.uint64),
                10: i32(0),
                11: i32(many),
                12: i64(1),
                13: np.array([True]),
                14: i32(1),
                15: one * np.uint64(many),
                20: at,
            },
            [2],
            grid=grid,
            group=block_dims(*grid),
        )
        return decode(out, t)

    ours = default(lambda: ops.index_add(given, at, added))
    return Problem(ours, {"copy, scatter": run}, near(exact, t, terms=8))


def cases() -> Iterator[Case]:
    for name, t in (
        ("sigmoid", "float32"),
        ("tanh", "float32"),
        ("silu", "float32"),
        ("silu", "float16"),
        ("gelu", "float32"),
        ("gelu", "float16"),
        ("silu · value", "float16"),
    ):
        size = 4 * MANY
        yield Case(name, str(size), t, lambda n=name, s=size, t=t: _activation(n, s, t))
    for name, shape, many, t in (
        ("take of rows", (1000, 64), 512, "float32"),
        ("embedding", (1000, 512), 256, "float16"),
    ):
        make = lambda a=(name, shape, many, t): _rows(*a)  # noqa: E731
        yield Case(name, f"{many} of {shape[0]}×{shape[1]}", t, make)
    yield Case(
        "take along an axis",
        "64×256 of 64×1000",
        "float32",
        lambda: _along((64, 1000), 256, "float32"),
    )
    yield Case(
        "sums at indices", "512×64 to 1000×64", "float32", lambda: _add((1000, 64), 512, "float32")
    )
