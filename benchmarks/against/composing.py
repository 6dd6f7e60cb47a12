"""Rows of the table whose functions are several kernels in MLX: log-softmax, variance, lengths, cross entropy."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from triton_metal import ops

from against.along_rows import typed
from against.launching import (
    binary,
    block_dims,
    logsumexp_of_rows,
    mean_of_rows,
    sum_of_rows,
    unary,
)
from against.problem import Case, Problem, default, near
from mlx_kernels.parameters import tiles
from mlx_kernels.running import blank, decode, encode, generator, i32, i64, launch, metal, numbers

Shape = tuple[int, int]


def _log_softmax(shape: Shape, t: str) -> Problem:
    x = numbers(shape, t, 1, scale=3)
    top = x.max(1, keepdims=True)
    exact = x - top - np.log(np.exp(x - top).sum(1, keepdims=True))
    given, stored = typed(x, t), encode(x, t)

    def run() -> np.ndarray:
        return decode(binary("Subtract", stored, logsumexp_of_rows(stored, t), t), t)

    return Problem(
        default(lambda: ops.log_softmax(given)),
        {"logsumexp, subtract": run},
        near(exact, t, terms=16),
    )


def _variance(kind: str, shape: Shape, t: str) -> Problem:
    x = numbers(shape, t, 1)
    exact = x.var(1) if kind == "variance" else x.std(1)
    given, stored = typed(x, t), encode(x, t)
    function: Callable[..., np.ndarray] = ops.var if kind == "variance" else ops.std

    def run() -> np.ndarray:
        distance = binary("Subtract", stored, mean_of_rows(stored, t), t)
        result = mean_of_rows(unary("Square", distance, t), t)
        return decode(unary("Sqrt", result, t) if kind == "deviation" else result, t)

    name = "mean, subtract, square, mean" + ", square root" * (kind == "deviation")
    ours = default(lambda: function(given, axis=1))
    return Problem(ours, {name: run}, near(exact, t, terms=shape[1]))


def _norm(shape: Shape, t: str) -> Problem:
    x = numbers(shape, t, 1)
    given, stored = typed(x, t), encode(x, t)

    def run() -> np.ndarray:
        return decode(unary("Sqrt", sum_of_rows(unary("Square", stored, t), t), t), t)

    check = near(np.sqrt((x**2).sum(1)), t, terms=shape[1])
    return Problem(
        default(lambda: ops.norm(given, axis=1)), {"square, sum, square root": run}, check
    )


def _cross_entropy(shape: Shape, t: str) -> Problem:
    x = numbers(shape, t, 1, scale=3)
    rows, columns = shape
    labels = generator(2).integers(0, columns, rows).astype(np.int32)
    top = x.max(1)
    exact = top + np.log(np.exp(x - top[:, None]).sum(1)) - x[np.arange(rows), labels]
    given, stored = typed(x, t), encode(x, t)
    grid = (1, 1, rows)

    def run() -> np.ndarray:
        (scores,) = launch(
            "gather_axis",
            ("gather_axis", metal(t), "int", "int", True, True),
            {
                0: stored,
                1: labels,
                2: blank((rows,), t),
                3: i32(rows),
                4: i64(columns),
                5: i64(1),
                6: np.array([1], np.uint64),
                7: i32(1),
                8: i32(columns),
                9: np.array([1], np.uint64),
                10: np.array([1], np.uint64),
            },
            [2],
            grid=grid,
            group=block_dims(*grid),
        )
        losses = binary("Subtract", logsumexp_of_rows(stored, t), scores, t)
        threads = min(1024, tiles(tiles(rows, 4), 32) * 32)
        (total,) = launch(
            "reduce",
            ("all_reduce", metal(t), metal(t), f"Sum<{metal(t)}>"),
            {0: losses, 1: blank((1,), t), 2: i64(rows), 3: i64(rows)},
            [1],
            grid=(threads, 1),
            group=(threads,),
        )
        return decode(binary("Multiply", total, encode(np.array([1 / rows]), t), t), t)

    return Problem(
        default(lambda: np.asarray(ops.cross_entropy(given, labels))),
        {"logsumexp, gather, subtract, mean": run},
        near(np.asarray(exact.mean()), t, terms=rows),
    )


def cases() -> Iterator[Case]:
    for family, make, shapes in (
        ("log-softmax", _log_softmax, (((256, 1024), "float32"), ((128, 4096), "float16"))),
        (
            "variance of rows",
            lambda *a: _variance("variance", *a),
            (((256, 1024), "float32"), ((128, 4096), "float32")),
        ),
        ("deviation of rows", lambda *a: _variance("deviation", *a), (((256, 1024), "float32"),)),
        ("length of rows", _norm, (((256, 1024), "float32"), ((128, 4096), "float32"))),
        ("cross entropy", _cross_entropy, (((256, 1024), "float32"), ((128, 4096), "float32"))),
    ):
        for shape, t in shapes:
            build = lambda m=make, s=shape, t=t: m(s, t)  # noqa: E731
            yield Case(family, "×".join(map(str, shape)), t, build)
