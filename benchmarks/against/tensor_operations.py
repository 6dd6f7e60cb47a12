"""Rows of the table whose K is split, and those on tensor operations: what is printed for Apple10 beside MLX's `_nax` kernels.

Products of 16x32x16 count as 16 of 8x8x8.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import triton_metal as triton
from triton_metal.devices.target import APPLE10

from against.along_rows import typed
from against.attending import exact_attention
from against.problem import Case, Launch, Problem, near
from against.vectors import block_dims
from attention import attention_kernel
from host_target import host_target
from kernels.split_matmul import split_matmul
from mlx_kernels.matrices import TRANSPOSITIONS
from mlx_kernels.parameters import attention_params, gemm_params, tiles
from mlx_kernels.running import blank, decode, encode, i32, i64, launch, metal, numbers, raw

Tile = tuple[int, int, int, int, int]
#: Tiles of C and of K, and SIMD-groups: each has 32x64 or 32x32 numbers of C, as in MLX's.
CHOICES = [
    ((128, 128, 32), 16),
    ((64, 128, 32), 8),
    ((64, 64, 32), 4),
    ((64, 64, 16), 4),
    ((64, 64, 64), 4),
]
#: On simdgroup matrices. The first spills on G13 where it takes fp32 (`make spills`).
SPLIT_CHOICES = [((64, 64, 32), 4), ((64, 64, 16), 4), ((32, 32, 16), 4), ((32, 32, 32), 4)]


def _on_apple10(make: Callable[[], np.ndarray]) -> np.ndarray:
    with host_target(APPLE10):
        return make()


class _Operands:
    """Both operands of a product as each side takes them, and the product in float64."""

    def __init__(self, m: int, n: int, k: int, t: str, transposition: str) -> None:
        self.size, self.dtype = (m, n, k), t
        self.transposed = left, right = TRANSPOSITIONS[transposition]
        a, b = numbers((m, k), t, 1), numbers((k, n), t, 2)
        self.exact = a @ b
        stored = [
            np.ascontiguousarray(x.T if turned else x) for x, turned in ((a, left), (b, right))
        ]
        self.mlx = [encode(x, t) for x in stored]
        self.leading = m if left else k, k if right else n
        self.ours = [
            typed(x, t).T if turned else typed(x, t)
            for x, turned in zip(stored, self.transposed, strict=True)
        ]


def _fused(operands: _Operands, tile: Tile, swizzle: int) -> np.ndarray:
    """MLX's product on tensor operations."""
    (m, n, k), t = operands.size, operands.dtype
    bm, bn, bk, wm, wn = tile
    (out,) = launch(
        "steel_gemm_fused_nax",
        ("gemm", metal(t), *tile, *operands.transposed, "float"),
        {
            0: operands.mlx[0],
            1: operands.mlx[1],
            3: blank((m, n), t),
            4: gemm_params(m, n, k, *operands.leading, tile, (0, 0, 0), swizzle, 1),
            6: i32(1),
            7: i64(0, 0),
        },
        [3],
        threadgroups=(tiles(n, bn) << swizzle, tiles(tiles(m, bm), 1 << swizzle), 1),
        group=(32, wn, wm),
        constants={
            10: False,
            100: False,
            110: False,
            200: m % bm == 0,
            201: n % bn == 0,
            202: k % bk == 0,
        },
    )
    return decode(out, t)


def _product(m: int, n: int, k: int, t: str, transposition: str) -> Problem:
    operands = _Operands(m, n, k, t, transposition)
    precision = "tf32" if t == "float32" else "ieee"
    rows = tiles(m, 128)
    theirs: dict[str, Launch] = {
        "128×128×512×4×4": lambda: _fused(operands, (128, 128, 512, 4, 4), int(rows > 3)),
        "64×128×256×2×4": lambda: _fused(operands, (64, 128, 256, 2, 4), 2),
    }
    ours: dict[str, Launch] = {
        f"tile {tile}, num_warps {warps}": lambda tile=tile, warps=warps: _on_apple10(
            lambda: split_matmul(*operands.ours, tile=tile, num_warps=warps, precision=precision)
        )
        for tile, warps in CHOICES
    }
    return Problem(ours, theirs, near(operands.exact, t, terms=k))


def _parts_of_nax(k: int, large: bool) -> tuple[Tile, int]:
    """The tile of MLX's split products on tensor operations, and how much of K a part has."""
    tile: Tile = (128, 128, 512, 4, 4) if large and k > 4096 else (64, 64, 256, 2, 2)
    if k <= 1024:
        return tile, k // 2
    return tile, 1024 if k <= 2048 else 2048 if k <= 4096 else 4096


def _split_by_mlx(operands: _Operands, nax: bool) -> np.ndarray:
    """MLX's two launches for a product whose K is split."""
    (m, n, k), t = operands.size, operands.dtype
    swizzle = 0
    if nax:
        tile, size = _parts_of_nax(k, (m + n) // 2 >= 512)
        bm, bn, bk, wm, wn = tile
        parts, steps = tiles(k, size), size // bk
        swizzle = int(tiles(m, bm) > 3)
    else:
        tile = bm, bn, bk, wm, wn = 16 if m < 40 else 32, 16 if n < 40 else 32, 16, 2, 2
        wanted = k // 16 // (tiles(m, 32) * tiles(n, 32))
        parts = min(max(2, 1 << max(wanted - 1, 0).bit_length()), 32)
        steps = k // bk // parts
        size = steps * bk
    counts = tiles(n, bn), tiles(m, bm)
    params = raw(
        i32(m, n, k, *operands.leading, n, *counts, parts, m * n, size, swizzle, steps),
    )
    suffix = "_nax" if nax else ""
    result = () if nax else ("float",)
    last = ("float",) if nax else (m % bm == n % bn == 0, k % bk == 0)
    named = (metal(t), *result, *tile, *operands.transposed, *last)
    groups = (counts[0] << swizzle) * tiles(counts[1], 1 << swizzle) * parts
    (partial,) = launch(
        f"steel_gemm_splitk{suffix}",
        (f"gemm_splitk{suffix}", *named),
        {0: operands.mlx[0], 1: operands.mlx[1], 2: blank((parts, m, n), "float32"), 3: params},
        [2],
        threadgroups=(groups,) if nax else (*counts, parts),
        group=(32, wn, wm),
        constants={200: m % bm == 0, 201: n % bn == 0} if nax else {},
    )
    (out,) = launch(
        "steel_gemm_splitk",
        ("gemm_splitk_accum", "float", metal(t)),
        {0: partial, 1: blank((m, n), t), 2: i32(parts), 3: i32(m * n), 4: i32(n)},
        [1],
        grid=(n, m, 1),
        group=block_dims(n, m, 1),
    )
    return decode(out, t)


def _split(m: int, n: int, k: int, t: str, transposition: str, nax: bool) -> Problem:
    operands = _Operands(m, n, k, t, transposition)
    precision = "tf32" if nax and t == "float32" else "ieee"
    if nax:
        parts = tiles(k, _parts_of_nax(k, (m + n) // 2 >= 512)[1])
    else:
        parts = min(max(2, 1 << (k // 16 // (tiles(m, 32) * tiles(n, 32)) - 1).bit_length()), 32)

    def ours(tile: tuple[int, int, int], warps: int) -> np.ndarray:
        make = lambda: split_matmul(  # noqa: E731
            *operands.ours, parts=parts, tile=tile, num_warps=warps, precision=precision
        )
        return _on_apple10(make) if nax else make()

    launches: dict[str, Launch] = {
        f"{parts} parts, tile {tile}, num_warps {warps}": lambda tile=tile, warps=warps: ours(
            tile, warps
        )
        for tile, warps in (CHOICES if nax else SPLIT_CHOICES[t == "float32" :])
    }
    theirs: dict[str, Launch] = {f"{parts} parts": lambda: _split_by_mlx(operands, nax)}
    return Problem(launches, theirs, near(operands.exact, t, terms=k))


#: Blocks of queries and of keys, and SIMD-groups. MLX's are 64×32 in four.
ATTENTION_CHOICES = [(64, 32, 4), (64, 64, 4), (128, 32, 8), (32, 32, 2), (64, 16, 4)]


def _attention(heads: int, length: int, width: int, causal: bool, t: str) -> Problem:
    shape = (1, heads, length, width)
    q, k, v = (numbers(shape, t, seed) for seed in (1, 2, 3))
    given = [typed(each[0], t) for each in (q, k, v)]
    bq, bk = 64, 32

    def run() -> np.ndarray:
        params = attention_params(shape, shape, width**-0.5, bq, bk)
        (out,) = launch(
            "steel_attention_nax",
            ("attention_nax", metal(t), bq, bk, width, 4, 1, metal(t), "float"),
            {0: encode(q, t), 1: encode(k, t), 2: encode(v, t), 3: blank(shape, t), 4: params},
            [3],
            threadgroups=(tiles(length, bq), heads, 1),
            group=(32, 4, 1),
            constants={
                200: length % bq == 0,
                201: length % bk == 0,
                300: False,
                301: causal,
                302: False,
            },
        )
        return decode(out, t)

    def ours(block_m: int, block_n: int, num_warps: int) -> np.ndarray:
        out = np.empty_like(given[0])
        steps = (length * width, width) * 4
        sizes = {"BLOCK_M": block_m, "BLOCK_N": block_n, "num_warps": num_warps}
        with host_target(APPLE10):
            attention_kernel[(triton.cdiv(length, block_m), heads)](
                *given, out, *steps, length, length, width**-0.5, HEAD=width, CAUSAL=causal, **sizes
            )
        return out

    launches: dict[str, Launch] = {
        "{}×{}, num_warps {}".format(*choice): lambda c=choice: ours(*c)
        for choice in ATTENTION_CHOICES
    }
    check = near(exact_attention(q, k, v, causal), t, rtol=1e-1, terms=16)
    return Problem(launches, {f"{bq}×{bk}": run}, check)


def cases() -> Iterator[Case]:
    for (m, n, k), t, transposition, quick in (
        ((512, 512, 256), "float16", "nn", True),
        ((512, 512, 256), "float16", "nt", False),
        ((512, 512, 256), "bfloat16", "nn", False),
        ((512, 512, 256), "bfloat16", "nt", False),
        ((512, 512, 256), "float32", "nn", True),
        ((512, 512, 256), "float32", "nt", False),
        ((256, 512, 1024), "float16", "nn", False),
        ((500, 300, 200), "float16", "nn", False),
        ((500, 301, 203), "float16", "nt", False),
    ):
        make = lambda a=(m, n, k, t, transposition): _product(*a)  # noqa: E731
        kind = f"GEMM {transposition} on tensor operations"
        yield Case(kind, f"{m}×{n}×{k}", t, make, quick=quick)
    for (m, n, k), t, transposition, nax, quick in (
        ((128, 128, 2048), "float16", "nn", False, True),
        ((100, 130, 1000), "float32", "nt", False, False),
        ((128, 128, 2048), "float16", "nn", True, True),
        ((100, 130, 1000), "bfloat16", "nt", True, False),
    ):
        make = lambda a=(m, n, k, t, transposition, nax): _split(*a)  # noqa: E731
        kind = f"GEMM {transposition}, K split" + (", on tensor operations" if nax else "")
        yield Case(kind, f"{m}×{n}×{k}", t, make, quick=quick)
    for heads, length, width, causal, t, quick in (
        (2, 512, 64, True, "float16", True),
        (2, 512, 64, False, "float16", False),
        (2, 512, 128, True, "float16", False),
        (2, 512, 128, False, "bfloat16", False),
        (2, 500, 64, False, "float16", False),
        (2, 500, 128, True, "float16", False),
    ):
        make = lambda a=(heads, length, width, causal, t): _attention(*a)  # noqa: E731
        kind = ("attention causal" if causal else "attention") + " on tensor operations"
        yield Case(kind, f"{heads}×{length}×{width}", t, make, quick=quick)
