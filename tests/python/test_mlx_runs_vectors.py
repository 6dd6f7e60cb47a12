"""MLX's products of matrices and vectors, with batches, gathered ones and masked ones: results are NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from mlx_kernels import NEEDS_MLX
from mlx_kernels.products import gemv_groups, matrices
from mlx_kernels.running import (
    assert_close,
    blank,
    encode,
    f32,
    generator,
    i32,
    i64,
    launch,
    metal,
    numbers,
)

pytestmark = NEEDS_MLX
#: (transposed, tile, length of the result, length of the sum): the tiles that MLX takes for such lengths.
SHAPES = {
    "wide": (False, (1, 8, 1, 32, 4, 4), 37, 1501),
    "wide_few_rows": (False, (1, 8, 1, 32, 1, 4), 3, 1100),
    "narrow": (False, (1, 1, 8, 4, 4, 4), 71, 45),
    "narrow_few_rows": (False, (1, 1, 8, 4, 1, 4), 2, 61),
    "tall": (False, (4, 1, 1, 32, 4, 4), 54, 190),
    "tall_few_rows": (False, (4, 1, 1, 32, 1, 4), 3, 79),
    "very_tall": (False, (8, 1, 1, 32, 4, 4), 75, 66),
    "transposed": (True, (1, 2, 8, 4, 4, 4), 75, 190),
    "transposed_few_columns": (True, (1, 2, 8, 4, 4, 1), 3, 77),
    "transposed_wide": (True, (1, 4, 8, 4, 4, 4), 131, 45),
    "transposed_wider": (True, (1, 16, 8, 4, 4, 4), 523, 37),
    "transposed_long": (True, (1, 16, 4, 8, 4, 4), 261, 83),
}
TYPES = ("float32", "float16", "bfloat16", "complex64")
#: Each shape with one type, and some with all.
CASES = [(shape, TYPES[i % 4]) for i, shape in enumerate(SHAPES)] + [
    (shape, t)
    for shape in ("wide", "narrow", "tall", "transposed")
    for t in TYPES
    if t != TYPES[list(SHAPES).index(shape) % 4]
]


@pytest.mark.parametrize(("shape", "t"), CASES)
def test_gemv(shape: str, t: str) -> None:
    """In a batch, with a scaled addend whose elements lie apart, and in two dimensions of batches that broadcast."""
    transposed, tile, rows, columns = SHAPES[shape]
    count, group = gemv_groups(transposed, tile, rows)
    padded, used = matrices(6, transposed, rows, columns, t)
    vectors = numbers((6, columns), t, 2)
    addend = numbers((rows, 2), t, 3)
    name = "gemv_t" if transposed else "gemv"
    common = {0: encode(padded, t), 1: encode(vectors, t), 4: i32(columns), 5: i32(rows)}
    common |= {6: i32(padded.shape[2])}
    matrix = padded.shape[1] * padded.shape[2]
    (out,) = launch(
        "gemv",
        (name, metal(t), *tile, 0, 1),
        common
        | {2: encode(addend, t), 3: blank((6, rows), t), 7: f32(0.5), 8: f32(-2.0), 9: i32(1)}
        | {10: i32(6), 11: i64(columns), 12: i64(matrix), 13: i64(0), 14: i32(2)},
        [3],
        threadgroups=(count, 1, 6),
        group=group,
    )
    exact = 0.5 * np.einsum("bmk,bk->bm", used, vectors) - 2.0 * addend[:, 0]
    assert_close(out, exact, t, terms=columns)
    # Batches of 2 by 3: three vectors for all rows of batches, and two matrices for all columns.
    (out,) = launch(
        "gemv",
        (name, metal(t), *tile, 1, 0),
        common
        | {3: blank((6, rows), t), 9: i32(2), 10: i32(2, 3), 11: i64(0, columns)}
        | {12: i64(matrix, 0), 13: i64(0, 0)},
        [3],
        threadgroups=(count, 1, 6),
        group=group,
    )
    exact = np.einsum("imk,jk->ijm", used[:2], vectors[:3]).reshape(6, rows)
    assert_close(out, exact, t, terms=columns)


@pytest.mark.parametrize(
    ("shape", "t"),
    [("tall", "float16"), ("tall_few_rows", "complex64"), ("very_tall", "float32")]
    + [("transposed", "bfloat16"), ("transposed_few_columns", "float32")]
    + [("transposed_wider", "complex64"), ("transposed_long", "float16")],
)
def test_gemv_gather(shape: str, t: str) -> None:
    """Each product has its own matrix and vector, by one and by two dimensions of indices."""
    transposed, tile, rows, columns = SHAPES[shape]
    count, group = gemv_groups(transposed, tile, rows)
    padded, used = matrices(6, transposed, rows, columns, t)
    vectors = numbers((5, columns), t, 2)
    matrix = padded.shape[1] * padded.shape[2]
    g = generator(9)
    which_vectors = g.integers(0, 5, 8).astype(np.uint32)
    which_matrices = g.integers(0, 6, 8).astype(np.uint32)
    common = {0: encode(padded, t), 1: encode(vectors, t), 4: i32(columns), 5: i32(rows)}
    common |= {6: i32(padded.shape[2]), 18: which_vectors, 19: which_matrices}
    name = "gemv_t_gather" if transposed else "gemv_gather"
    (out,) = launch(
        "gemv",
        (name, metal(t), *tile),
        common
        | {3: blank((8, rows), t), 9: i32(1), 10: i32(8), 11: i64(1, 1)}
        | {12: i32(1), 13: i32(5), 14: i64(columns), 15: i32(1), 16: i32(6), 17: i64(matrix)},
        [3],
        threadgroups=(count, 1, 8),
        group=group,
    )
    exact = np.einsum("bmk,bk->bm", used[which_matrices], vectors[which_vectors])
    assert_close(out, exact, t, terms=columns)
    # Indices of 2 by 3 in other orders, and matrices in batches of 2 by 3.
    (out,) = launch(
        "gemv",
        (name, metal(t), *tile),
        common
        | {3: blank((6, rows), t), 9: i32(2), 10: i32(2, 3), 11: i64(1, 2, 3, 1)}
        | {12: i32(1), 13: i32(5), 14: i64(columns)}
        | {15: i32(2), 16: i32(2, 3), 17: i64(3 * matrix, matrix)},
        [3],
        threadgroups=(count, 1, 6),
        group=group,
    )
    places = np.array([[i + 2 * j for j in range(3)] for i in range(2)]).ravel()
    exact = np.einsum("bmk,bk->bm", used[which_matrices[:6]], vectors[which_vectors[places]])
    assert_close(out, exact, t, terms=columns)
