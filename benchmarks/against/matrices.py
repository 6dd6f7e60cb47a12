"""Rows of the table that multiply matrices: all transpositions, ragged, in batches."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from triton_metal import ops
from triton_metal.ops._choices import forced
from triton_metal.ops._product_families import MATMUL

from against.along_rows import typed
from against.problem import Case, Launch, Problem, default, near
from mlx_kernels.matrices import TRANSPOSITIONS
from mlx_kernels.parameters import gemm_params, tiles
from mlx_kernels.running import (
    blank,
    decode,
    encode,
    f32,
    i32,
    i64,
    launch,
    metal,
    numbers,
    raw,
)

Tile = tuple[int, int, int, int, int]


def spills_on_g13(tile: Tile, t: str, ragged: bool) -> bool:
    """Whether MLX's kernel does; the table has its figures without the compiler for G13, too."""
    _, _, _, *simdgroups = tile
    return simdgroups == [1, 2] and tile[:2] == (64, 64) and (t == "bfloat16" or ragged)


def mlx_tiles(m: int, n: int, k: int, transposition: str, t: str, batch: int) -> dict[str, Tile]:
    """The tiles that MLX's host code takes for the chips of each class, of which there are three."""
    nt = transposition == "nt"
    small: Tile = (64, 64, 16, 2, 2)
    if nt:
        small = (64, 32, 32, 2, 2)
    elif t != "float32":
        small = (64, 64, 16, 1, 2)
    medium: Tile = (64, 64, 16, 2, 2)
    if batch * m * n >= 1 << 20:
        large = medium
        if t != "float32":
            large = (64, 64, 16, 1, 2) if 2 * max(m, n) > k else (32, 64, 16, 1, 2)
            if nt and 2 * max(m, n) <= k:
                large = (64, 32, 32, 2, 2)
    elif t != "float32":
        large = (64, 32, 32, 2, 2) if nt else (64, 64, 16, 1, 2)
    else:
        large = (32, 64, 16, 1, 2) if nt else (64, 32, 32, 2, 2)
    return {"base and Pro": small, "Max": medium, "Ultra": large}


def shipped(product: Launch, t: str) -> dict[str, Launch]:
    """The product with each of the tables' tiles of 32 rows and columns or more whose SIMD-groups have as many numbers as MLX's:
    32×32, of tiles with a side of 32 half as many, or of float16 32×64. With 32×64 of other floats they spill.
    """
    found: dict[str, Launch] = {}
    for bm, bn, bk, warps in MATMUL.configs(f"{t} nn"):
        each, least = bm * bn // warps, 1024 if min(bm, bn) > 32 else 512
        if min(bm, bn) < 32 or each < least or (each > 1024 and t != "float16"):
            continue

        def launch(config: tuple[int, ...] = (bm, bn, bk, warps, 1)) -> np.ndarray:
            with forced(MATMUL.name, config):
                return product()

        found[f"tile ({bm}, {bn}, {bk}), num_warps {warps}"] = launch
    return found


def _product(
    m: int, n: int, k: int, t: str, transposition: str = "nn", batch: int = 0, bias: bool = False
) -> Problem:
    shape = (batch,) if batch else ()
    a, b = numbers((*shape, m, k), t, 1), numbers((*shape, k, n), t, 2)
    c = numbers((n,), t, 3)
    exact = a @ b + c if bias else a @ b
    left, right = TRANSPOSITIONS[transposition]

    def stored(x: np.ndarray, transposed: bool) -> np.ndarray:
        return np.ascontiguousarray(np.swapaxes(x, -1, -2) if transposed else x)

    stored_a, stored_b = encode(stored(a, left), t), encode(stored(b, right), t)
    lda, ldb = m if left else k, k if right else n

    def run(tile: Tile) -> np.ndarray:
        bm, bn, bk, wm, wn = tile
        swizzle = int(tiles(m, bm) > 3)
        (out,) = launch(
            "steel_gemm_fused",
            ("gemm", metal(t), *tile, left, right, "float"),
            {
                0: stored_a,
                1: stored_b,
                3: blank((*shape, m, n), t),
                4: gemm_params(m, n, k, lda, ldb, tile, (m * k, k * n, m * n), swizzle, 1),
                6: i32(batch or 1),
                7: i64(m * k, k * n),
                # The bias of a column is that of each row.
                **({2: encode(c, t), 5: raw(i32(0, 1), i64(0), f32(1.0, 1.0))} if bias else {}),
            },
            [3],
            threadgroups=(tiles(n, bn) << swizzle, tiles(tiles(m, bm), 1 << swizzle), batch or 1),
            group=(32, wn, wm),
            # One dimension of batches needs no look-up of its strides.
            constants={
                10: False,
                100: bias,
                110: False,
                200: m % bm == 0,
                201: n % bn == 0,
                202: k % bk == 0,
            },
        )
        return decode(out, t)

    ours_a, ours_b = typed(stored(a, left), t), typed(stored(b, right), t)
    if left:
        ours_a = np.swapaxes(ours_a, -1, -2)
    if right:
        ours_b = np.swapaxes(ours_b, -1, -2)

    ragged = bool(m % 64 or n % 64 or k % 16)
    theirs: dict[str, Launch] = {}
    # What spills is no side's best.
    for tile in dict.fromkeys(mlx_tiles(m, n, k, transposition, t, batch or 1).values()):
        if not spills_on_g13(tile, t, ragged):
            theirs["×".join(map(str, tile))] = lambda tile=tile: run(tile)
    if bias:
        weight, given = typed(stored(b, right), t), typed(c, t)
        product: Launch = lambda: ops.linear(ours_a, weight, given)  # noqa: E731
    else:
        product = lambda: ops.matmul(ours_a, ours_b)  # noqa: E731
    return Problem(default(product) | shipped(product, t), theirs, near(exact, t, terms=k))


def cases() -> Iterator[Case]:
    for (m, n, k), t, transposition, batch, quick in (
        ((512, 512, 256), "float16", "nn", 0, True),
        ((512, 512, 256), "bfloat16", "nn", 0, False),
        ((512, 512, 256), "float32", "nn", 0, True),
        ((1024, 1024, 512), "float16", "nn", 0, False),
        ((512, 512, 256), "float16", "nt", 0, True),
        ((512, 512, 256), "float16", "tn", 0, False),
        ((512, 512, 256), "float16", "tt", 0, False),
        ((512, 512, 256), "float32", "nt", 0, False),
        ((500, 300, 200), "float16", "nn", 0, True),
        ((500, 300, 200), "float16", "nt", 0, False),
        ((500, 300, 200), "float32", "nn", 0, False),
        ((500, 301, 203), "float16", "nn", 0, False),
        ((256, 256, 128), "float16", "nn", 4, False),
    ):
        kind = "GEMM batched" if batch else f"GEMM {transposition}"
        shape = "×".join(map(str, ([batch] if batch else []) + [m, n, k]))
        make = lambda s=(m, n, k), t=t, w=transposition, b=batch: _product(*s, t, w, b)  # noqa: E731
        yield Case(kind, shape, t, make, quick=quick)
    for t in ("float16", "float32"):
        make = lambda t=t: _product(512, 512, 256, t, "nt", bias=True)  # noqa: E731
        yield Case("linear", "512×512×256", t, make)
