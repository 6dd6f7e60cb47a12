"""Rows of the table that multiply with quantised matrices, of 4 and 8 bits in groups of 64."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from triton_metal import ops
from triton_metal.ops._choices import forced
from triton_metal.ops._product_families import QUANTIZED

from _arrays import numpy_dtype
from against.along_rows import typed
from against.problem import Case, Launch, Problem, default, near
from mlx_kernels.parameters import column_arguments, tiles
from mlx_kernels.quantized_arrays import batch_of, quantized
from mlx_kernels.running import blank, decode, encode, i32, i64, launch, metal, numbers

GROUP = 64
#: Numbers of one of the four SIMD-groups of MLX's tile, which is 32×32.
MLX_NUMBERS = 32 * 32 // 4


def shipped(product: Launch, bits: int, t: str, transpose: bool) -> dict[str, Launch]:
    """The product with each of the table's tiles that has MLX's rows and columns or more, and SIMD-groups with as many numbers as MLX's
    or up to four times as many.
    """
    found: dict[str, Launch] = {}
    kind = QUANTIZED.kind("affine", bits, t, transpose)
    for bm, bn, bk, warps in QUANTIZED.configs(kind):
        within = MLX_NUMBERS <= bm * bn // warps <= 4 * MLX_NUMBERS
        if min(bm, bn) < 32 or not within or not QUANTIZED.fits(kind, (bm, bn, bk, warps), GROUP):
            continue

        def launch(config: tuple[int, ...] = (bm, bn, bk, warps)) -> np.ndarray:
            with forced(QUANTIZED.name, config):
                return product()

        found[f"tile ({bm}, {bn}, {bk}), num_warps {warps}"] = launch
    return found


def _product(m: int, n: int, k: int, bits: int, t: str, transpose: bool) -> Problem:
    w = quantized((n, k) if transpose else (k, n), ("affine", GROUP, bits), t)
    x = numbers((m, k), t, 1)
    exact = x @ (w.values.T if transpose else w.values)
    vector = m == 1
    fast = n % 8 == 0 and k % 512 == 0
    #: Columns of a threadgroup.
    width = {True: 8 if transpose else 64, False: 32}[vector]
    name = ("qmv_fast" if fast else "qmv") if vector else "qmm_t"
    if not transpose:
        name = "qvm" if vector else "qmm_n"
    # The last tile reads scales of rows behind the last one, and ignores them.
    more = -n % 32 if name == "qmm_t" else 0
    sizes = [i32(k), i32(n), *([] if vector else [i32(m)])]
    aligned = [n % 32 == 0] if name == "qmm_t" else []

    def run() -> np.ndarray:
        arguments = [*w.rows(more), encode(x, t), blank((m, n), t), *sizes, *batch_of(x, w)]
        (out,) = launch(
            "quantized",
            (f"affine_{name}", metal(t), GROUP, bits, *aligned, 0),
            dict(enumerate(arguments)),
            [4],
            threadgroups=(m, tiles(n, width), 1) if vector else (tiles(n, 32), tiles(m, 32), 1),
            group=(32, 2) if vector else (32, 2, 2),
        )
        return decode(out, t)

    def in_parts() -> np.ndarray:
        """A vector of many terms times a matrix: eight parts, whose sums are added."""
        parts = 32 if k > 8192 else 8
        size = tiles(k, parts)
        columns = [each.shape[-1] for each in w.parts]
        arguments = [
            *w.parts,
            encode(x, t),
            blank((parts, m, n), t),
            i32(size),
            i32(n),
            i32(1),
            i32(parts, m, size),
            i64(size, k, 1),
            i32(1),
            i32(parts, size, columns[0]),
            *(i64(size * each, each, 1) for each in columns),
            i32(k - (parts - 1) * size),
        ]
        (partial,) = launch(
            "quantized",
            ("affine_qvm_split_k", metal(t), GROUP, bits, parts),
            dict(enumerate(arguments)),
            [4],
            threadgroups=(m, n // width, parts),
            group=(32, 2),
        )
        partial = partial.reshape(parts, m * n)
        (out,) = launch(
            "reduce",
            ("col_reduce_small", metal(t), metal(t), f"Sum<{metal(t)}>", "int", 1),
            {0: partial, 1: blank((m, n), t)} | column_arguments(partial, (0,)),
            [1],
            threadgroups=(tiles(tiles(m * n, 4), 32), 1, 1),
            group=(32, min(8, parts)),
        )
        return decode(out, t)

    given = typed(x, t)
    packed, scales, biases = w.parts
    if t == "bfloat16":
        scales, biases = scales.view(numpy_dtype(t)), biases.view(numpy_dtype(t))
    product: Launch = lambda: ops.quantized_matmul(  # noqa: E731
        given, packed, scales, biases, transpose=transpose, group_size=GROUP, bits=bits
    )
    ours = default(product) if vector else default(product) | shipped(product, bits, t, transpose)
    theirs: dict[str, Launch] = {name: run}
    if name == "qvm" and k >= 1024:
        theirs = {"qvm_split_k": in_parts}
    return Problem(ours, theirs, near(exact, t, terms=k))


def cases() -> Iterator[Case]:
    for m, n, k, bits, t, transpose, quick in (
        (1, 1024, 1024, 4, "float16", True, True),
        (1, 1024, 1024, 8, "float16", True, False),
        (1, 1024, 1024, 4, "bfloat16", True, False),
        (1, 1024, 1024, 4, "float32", True, False),
        (1, 1001, 1088, 4, "float16", True, False),
        (1, 1024, 512, 4, "float16", False, False),
        (1, 1024, 512, 8, "float16", False, False),
        (1, 1024, 512, 4, "float32", False, False),
        (1, 1024, 1024, 4, "float16", False, False),
        (512, 1024, 512, 4, "float16", True, False),
        (512, 1024, 512, 8, "float16", True, False),
        (500, 1001, 512, 4, "float16", True, False),
        (512, 1024, 256, 4, "float32", True, False),
        (512, 1024, 512, 4, "float16", False, False),
        (512, 1024, 512, 8, "float16", False, False),
        (500, 1024, 200, 4, "float32", False, False),
    ):
        make = lambda a=(m, n, k, bits, t, transpose): _product(*a)  # noqa: E731
        kind = f"quantised {bits} bits, " + ("vector" if m == 1 else "matrix")
        yield Case(
            kind if transpose else f"{kind}, not transposed", f"{m}×{n}×{k}", t, make, quick=quick
        )
