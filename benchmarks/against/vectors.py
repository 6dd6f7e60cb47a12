"""Rows of the table that multiply a matrix and a vector, and rotary embedding."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from triton_metal import ops

from against.along_rows import typed
from against.launching import block_dims
from against.problem import Case, Problem, default, near
from mlx_kernels.products import gemv_groups
from mlx_kernels.running import blank, decode, encode, f32, i32, i64, launch, metal, numbers


def mlx_tile(transposed: bool, length: int, terms: int) -> tuple[int, ...]:
    """MLX's tile for results of this length, each of which is a sum of so many terms: the same on all chips."""
    if transposed:
        sm, sn = (4, 8) if terms >= 8192 and length >= 2048 else (8, 4)
        bn = 16 if length >= 2048 else 4 if length >= 512 else 2
        return 1, bn, sm, sn, 4, 1 if length < 4 else 4
    bm, bn, sm, sn = 8 if length >= 4096 else 4, 1, 1, 32
    if terms <= 64:
        bm, sm, sn = 1, 8, 4
    elif terms >= 16 * length:
        bm, bn = 1, 8
    return bm, bn, sm, sn, 1 if length < 4 else 4, 4


def _gemv(length: int, terms: int, t: str, transposed: bool) -> Problem:
    stored = (terms, length) if transposed else (length, terms)
    a, x = numbers(stored, t, 1), numbers((terms,), t, 2)
    exact = x @ a if transposed else a @ x
    tile = mlx_tile(transposed, length, terms)
    count, group = gemv_groups(transposed, tile, length)

    def run() -> np.ndarray:
        (out,) = launch(
            "gemv",
            ("gemv_t" if transposed else "gemv", metal(t), *tile, 0, 0),
            {
                0: encode(a, t),
                1: encode(x, t),
                3: blank((length,), t),
                4: i32(terms),
                5: i32(length),
                6: i32(stored[1]),
                9: i32(1),
                10: i32(1),
                11: i64(terms),
                12: i64(a.size),
                13: i64(0),
            },
            [3],
            threadgroups=(count, 1, 1),
            group=group,
        )
        return decode(out, t)

    matrix, vector = typed(a, t), typed(x, t)
    ours = default(lambda: ops.matmul(vector, matrix) if transposed else ops.matmul(matrix, vector))
    theirs = {"×".join(map(str, tile)): run}
    return Problem(ours, theirs, near(exact, t, terms=terms))


def _rope(heads: int, length: int, size: int, t: str, traditional: bool) -> Problem:
    x = numbers((1, heads, length, size), t, 1)
    log2_base = float(np.log2(np.float32(10000)))
    angles = np.arange(length)[:, None] * np.exp2(-log2_base * np.arange(size // 2) / (size // 2))
    pairs = (slice(0, None, 2), slice(1, None, 2))
    if not traditional:
        pairs = (slice(0, size // 2), slice(size // 2, None))
    a, b = x[..., pairs[0]], x[..., pairs[1]]
    exact = np.empty_like(x)
    exact[..., pairs[0]] = a * np.cos(angles) - b * np.sin(angles)
    exact[..., pairs[1]] = a * np.sin(angles) + b * np.cos(angles)
    grid = (size // 2, length, -(-heads // 4))

    def run() -> np.ndarray:
        steps = i64(length * size, size, 1)
        (out,) = launch(
            "rope",
            f"rope_{t}",
            {
                0: encode(x, t),
                1: blank(x.shape, t),
                2: i32(0),
                3: f32(1.0),
                4: steps,
                5: steps,
                6: i64(0),
                7: i32(heads),
                10: f32(log2_base),
            },
            [1],
            grid=grid,
            group=block_dims(*grid),
            constants={1: True, 2: traditional, 3: False},
        )
        return decode(out, t)

    given = typed(x[0], t)
    ours = default(lambda: ops.rotary_embedding(given, traditional=traditional))
    # Angles of up to `length` are float32, rounded.
    bound = {"float32": 1e-4}.get(t, 1e-2)
    return Problem(ours, {"rope": run}, near(exact, t, rtol=bound, terms=64))


def cases() -> Iterator[Case]:
    for length, terms, t, transposed, quick in (
        (1024, 1024, "float16", False, True),
        (1024, 1024, "float32", False, False),
        (4096, 512, "bfloat16", False, False),
        (1000, 777, "float16", False, False),
        (1024, 1024, "float16", True, True),
        (2048, 512, "float32", True, False),
    ):
        make = lambda a=(length, terms, t, transposed): _gemv(*a)  # noqa: E731
        kind = "GEMV transposed" if transposed else "GEMV"
        yield Case(kind, f"{length}×{terms}", t, make, quick=quick)
    for t, traditional in (("float16", False), ("float16", True), ("float32", False)):
        make = lambda a=(8, 256, 64, t, traditional): _rope(*a)  # noqa: E731
        kind = "rope, neighbours" if traditional else "rope, halves"
        yield Case(kind, "8×256×64", t, make, source=True)
