"""Rows of the table that multiply with quantised matrices, of 4 and 8 bits in groups of 64."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from _arrays import numpy_dtype
from against.along_rows import typed
from against.problem import Case, Problem, grid_of, near
from kernels.quantized import GROUP, matrix_product, vector_product
from mlx_kernels.parameters import tiles
from mlx_kernels.quantized_arrays import batch_of, quantized
from mlx_kernels.running import blank, decode, encode, i32, launch, metal, numbers


def _product(m: int, n: int, k: int, bits: int, t: str) -> Problem:
    w = quantized((n, k), ("affine", GROUP, bits), t)
    x = numbers((m, k), t, 1)
    exact = x @ w.values.T
    vector = m == 1
    fast = n % 8 == 0 and k % 512 == 0
    name = ("qmv_fast" if fast else "qmv") if vector else "qmm_t"
    # The last tile reads scales of rows behind the last one, and ignores them.
    more = 0 if vector else -n % 32
    sizes = [i32(k), i32(n), *([] if vector else [i32(m)])]

    def run() -> np.ndarray:
        arguments = [*w.rows(more), encode(x, t), blank((m, n), t), *sizes, *batch_of(x, w)]
        (out,) = launch(
            "quantized",
            (f"affine_{name}", metal(t), GROUP, bits, *([] if vector else [n % 32 == 0]), 0),
            dict(enumerate(arguments)),
            [4],
            threadgroups=(m, tiles(n, 8), 1) if vector else (tiles(n, 32), tiles(m, 32), 1),
            group=(32, 2) if vector else (32, 2, 2),
        )
        return decode(out, t)

    given = typed(x, t)
    packed, scales, biases = w.parts
    if t == "bfloat16":
        scales, biases = scales.view(numpy_dtype(t)), biases.view(numpy_dtype(t))
    operands = (given, packed, scales, biases, bits)
    if vector:
        # A thread takes two words of four rows, as MLX's.
        width = 2 * 32 * 32 // bits
        choices = [(4, width, 1), (2, width, 1), (8, width, 1), (8, width, 2), (4, 2 * width, 1)]
        ours = grid_of(
            lambda **o: vector_product(*operands, **o), "BLOCK_N BLOCK_K num_warps", choices
        )
    else:
        choices = [(64, 64, 32, 8), (64, 64, 16, 8), (64, 32, 32, 8), (32, 32, 32, 4)]
        if t == "float32":
            # Numbers of x and w are twice as large: on G13, half as many sums leave room for them.
            choices += [(64, 64, 32, 16)]
        ours = grid_of(
            lambda **o: matrix_product(*operands, **o),
            "BLOCK_M BLOCK_N BLOCK_K num_warps",
            choices,
        )
    return Problem(ours, {name: run}, near(exact, t, terms=k))


def cases() -> Iterator[Case]:
    for m, n, k, bits, t, quick in (
        (1, 1024, 1024, 4, "float16", True),
        (1, 1024, 1024, 8, "float16", False),
        (1, 1024, 1024, 4, "bfloat16", False),
        (1, 1001, 1088, 4, "float16", False),
        (512, 1024, 512, 4, "float16", False),
        (512, 1024, 512, 8, "float16", False),
        (500, 1001, 512, 4, "float16", False),
        (512, 1024, 256, 4, "float32", False),
    ):
        make = lambda a=(m, n, k, bits, t): _product(*a)  # noqa: E731
        kind = f"quantised {bits} bits, " + ("vector" if m == 1 else "matrix")
        yield Case(kind, f"{m}×{n}×{k}", t, make, quick=quick)
