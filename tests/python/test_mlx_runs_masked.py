"""MLX's products with masks for blocks of the operands and of the result: NumPy's with what is left out as zero."""

from __future__ import annotations

import numpy as np
import pytest

from mlx_kernels import NEEDS_MLX
from mlx_kernels.matrices import TRANSPOSITIONS
from mlx_kernels.products import gemv_groups, matrices
from mlx_kernels.running import (
    assert_close,
    blank,
    checked,
    encode,
    generator,
    i32,
    i64,
    launch,
    metal,
    numbers,
    raw,
)

pytestmark = NEEDS_MLX

#: A masked product's (transposed, tile, block of the masks, length of the result, length of the sum).
MASKED = {
    "rows32": (False, (2, 1, 4, 8, 4, 4), 32, 75, 150),
    "rows32_few": (False, (2, 1, 4, 8, 1, 4), 32, 3, 100),
    "rows64": (False, (2, 1, 2, 16, 4, 4), 64, 134, 150),
    "rows64_few": (False, (2, 1, 2, 16, 1, 4), 64, 2, 190),
    "rows64_many": (False, (4, 1, 2, 16, 4, 4), 64, 138, 99),
    "columns32": (True, (1, 2, 8, 4, 4, 4), 32, 72, 150),
    "columns32_few": (True, (1, 1, 8, 4, 4, 1), 32, 3, 77),
    "columns64": (True, (1, 2, 8, 4, 8, 4), 64, 140, 150),
    "columns64_single": (True, (1, 1, 8, 4, 8, 4), 64, 76, 70),
    "columns64_few": (True, (1, 1, 8, 4, 8, 1), 64, 3, 70),
    "columns64_many": (True, (1, 4, 8, 4, 8, 4), 64, 140, 67),
}
MASKS = ["bool_-nomask", "nomask-bool_", "bool_-bool_", "t-nomask", "nomask-t", "t-t"]
MASKS += ["bool_-t", "t-bool_"]


def mask(
    kind: str, t: str, shape: tuple[int, ...], seed: int
) -> tuple[str, np.ndarray, np.ndarray]:
    """The mask's type in Metal, the mask as a kernel reads it, and the factors that it stands for."""
    if kind == "nomask":
        return "nomask_t", np.zeros(1, np.uint8), np.ones(shape)
    on = generator(seed).integers(0, 3, shape) > 0
    if kind == "bool_":
        return "bool", on, on.astype(np.float64)
    factors = np.where(on, 0.5 + generator(seed + 1).integers(0, 4, shape), 0.0)
    return metal(t), encode(factors, t), factors


def spread(factors: np.ndarray, block: int, shape: tuple[int, ...]) -> np.ndarray:
    """One factor for each element of the last two dimensions."""
    big = np.repeat(np.repeat(factors, block, -2), block, -1)
    return big[..., : shape[-2], : shape[-1]]


def masked_product(
    transposed: bool, tile: tuple[int, ...], block: int, rows: int, columns: int, t: str, masks: str
) -> None:
    out_kind, operand_kind = masks.split("-")
    count, group = gemv_groups(transposed, tile, rows)
    padded, used = matrices(2, transposed, rows, columns, t)
    vectors = numbers((2, columns), t, 2)
    row_blocks, column_blocks = -(-rows // block), -(-columns // block)
    out_type, out_mask, out_factors = mask(out_kind, t, (2, row_blocks, 1), 11)
    name, mat_mask, mat_factors = mask(operand_kind, t, (2, row_blocks, column_blocks), 12)
    _, vec_mask, vec_factors = mask(operand_kind, t, (2, column_blocks, 1), 13)
    if transposed and operand_kind != "nomask":
        mat_mask = np.ascontiguousarray(np.swapaxes(mat_mask, 1, 2))
    # MLX names the stride along the sum second, but for what is transposed.
    along, across = (row_blocks, 1) if transposed else (1, column_blocks)
    strides, batches = [], []
    if out_kind != "nomask":
        strides += [1, 1]
        batches += [row_blocks]
    if operand_kind != "nomask":
        strides += [across, along] if transposed else [along, across]
        strides += [1, 1]
        batches += [row_blocks * column_blocks, column_blocks]
    buffers = {0: encode(padded, t), 1: encode(vectors, t), 3: blank((2, rows), t)}
    buffers |= {4: i32(columns), 5: i32(rows), 6: i32(padded.shape[2]), 9: i32(1), 10: i32(2)}
    buffers |= {11: i64(columns), 12: i64(padded[0].size), 20: out_mask, 21: mat_mask}
    buffers |= {22: vec_mask, 23: i32(*strides), 24: i64(*batches)}
    function = "gemv_t_masked" if transposed else "gemv_masked"
    (out,) = launch(
        "gemv_masked",
        (function, metal(t), out_type, name, *tile, 0),
        buffers,
        [3],
        threadgroups=(count, 1, 2),
        group=group,
    )
    left = used * spread(mat_factors, block, used.shape)
    right = vectors[..., None] * np.repeat(vec_factors, block, 1)[:, :columns]
    exact = (left @ right) * np.repeat(out_factors, block, 1)[:, :rows]
    assert_close(out, exact[..., 0], t, terms=columns)


@pytest.mark.parametrize(
    ("shape", "t", "masks"),
    [
        (shape, ("float32", "float16", "bfloat16")[i % 3], MASKS[(i + j) % 8])
        for i, shape in enumerate(MASKED)
        for j in (0, 3)
    ],
)
def test_gemv_masked(shape: str, t: str, masks: str) -> None:
    """Blocks of the matrix and of the vector are left out or scaled, and so are blocks of the result; in batches."""
    masked_product(*MASKED[shape], t, masks)


def test_defect_last_rows_take_the_mask_of_the_block_before() -> None:
    """The last thread's rows are moved up to end with the matrix, before MLX asks which block they are in."""
    with checked("bounds"), pytest.raises(AssertionError, match="Mismatched elements: 1 / 260"):
        masked_product(False, (2, 1, 2, 16, 4, 4), 64, 130, 150, "bfloat16", "t-t")


#: The shape of a masked product of matrices, and the tile, which is the block of the masks.
SHAPES = {
    "aligned": (64, 96, 48, (32, 32, 16, 2, 2)),
    "ragged": (70, 45, 83, (32, 32, 16, 2, 2)),
    "ragged_sum": (64, 64, 75, (64, 64, 16, 2, 2)),
    "large": (130, 70, 128, (64, 64, 16, 2, 2)),
}


@pytest.mark.parametrize(
    ("shape", "t", "transposition", "masks"),
    [
        (shape, t, ("nn", "nt", "tn", "tt")[(i + j) % 4], MASKS[(3 * i + 2 * j + k) % 8])
        for i, shape in enumerate(SHAPES)
        for j, t in enumerate(("float32", "float16", "bfloat16"))
        for k in (0, 4 + i % 2)
    ],
)
def test_gemm_masked(shape: str, t: str, transposition: str, masks: str) -> None:
    """In a batch of 2 by 2, in which the right matrices and their masks are the same for all of the first dimension."""
    m, n, k, tile = SHAPES[shape]
    bm, bn, bk, wm, wn = tile
    out_kind, operand_kind = masks.split("-")
    rows, columns, steps = -(-m // bm), -(-n // bn), -(-k // bm)
    a, b = numbers((2, 2, m, k), t, 1), numbers((2, k, n), t, 2)
    out_type, out_mask, out_factors = mask(out_kind, t, (2, 2, rows, columns), 11)
    name, left_mask, left_factors = mask(operand_kind, t, (2, 2, rows, steps), 12)
    _, right_mask, right_factors = mask(operand_kind, t, (2, steps, columns), 13)
    left, right = TRANSPOSITIONS[transposition]
    stored_a = np.swapaxes(a, -1, -2) if left else a
    stored_b = np.swapaxes(b, -1, -2) if right else b
    strides, batches = [], [2 * m * k, m * k, 0, k * n]
    if out_kind != "nomask":
        strides += [1, columns]
        batches += [2 * rows * columns, rows * columns]
    if operand_kind != "nomask":
        strides += [1, steps, 1, columns]
        batches += [2 * rows * steps, rows * steps, 0, steps * columns]
    params = raw(
        i32(m, n, k, m if left else k, k if right else n, n, columns, rows),
        i64(m * k, k * n, m * n),
        i32(0, k // bk, 2, 0),
    )
    (out,) = launch(
        "steel_gemm_masked",
        (
            *("block_masked_gemm", metal(t), out_type, name, *tile, left, right),
            *(m % bm == 0 and n % bn == 0, k % bk == 0),
        ),
        {
            **{0: encode(stored_a, t), 1: encode(stored_b, t), 3: blank((2, 2, m, n), t)},
            **{4: params, 6: i32(2, 2), 7: i64(*batches), 10: out_mask, 11: left_mask},
            **{12: right_mask, 13: i32(*strides)},
        },
        [3],
        threadgroups=(columns, rows, 4),
        group=(32, wn, wm),
    )
    used = a * spread(left_factors, bm, a.shape)
    exact = used @ (b * spread(right_factors, bm, b.shape))
    assert_close(out, exact * spread(out_factors, bm, exact.shape), t, terms=k)
