"""MLX's products of matrices, tiled, in both generations: results are NumPy's for sizes that tiles do not divide."""

from __future__ import annotations

import numpy as np
import pytest
import triton_metal_host as metal_api

from mlx_kernels import NEEDS_MLX
from mlx_kernels.matrices import TRANSPOSITIONS
from mlx_kernels.parameters import gemm_params, tiles
from mlx_kernels.running import (
    assert_close,
    blank,
    checked,
    encode,
    f32,
    generator,
    i32,
    i64,
    launch,
    metal,
    numbers,
    raw,
)

pytestmark = NEEDS_MLX
#: (family, tile) of each generation
GENERATIONS = {"steel": ("", (32, 32, 16, 2, 2)), "nax": ("_nax", (64, 64, 256, 2, 2))}
ALL_FLOATS = pytest.mark.parametrize("t", ["float32", "float16", "bfloat16"])
BOTH = pytest.mark.parametrize("generation", GENERATIONS)


def operands(m: int, n: int, k: int, t: str, transposition: str, batch: tuple[int, ...] = ()):
    """Both operands as they are stored, their leading dimensions, and the exact product."""
    a, b = numbers((*batch, m, k), t, 1), numbers((*batch, k, n), t, 2)
    left, right = TRANSPOSITIONS[transposition]
    stored_a = np.swapaxes(a, -1, -2) if left else a
    stored_b = np.swapaxes(b, -1, -2) if right else b
    return encode(stored_a, t), encode(stored_b, t), m if left else k, k if right else n, a @ b


@BOTH
@pytest.mark.parametrize(
    ("t", "transposition", "shape"),
    [
        ("float32", "nn", (70, 45, 300)),
        ("float16", "nt", (64, 64, 256)),
        ("bfloat16", "tn", (33, 130, 77)),
        ("float16", "tt", (130, 40, 19)),
        ("float16", "nn", (200, 70, 64)),
    ],
)
def test_fused(generation: str, t: str, transposition: str, shape: tuple[int, int, int]) -> None:
    """In batches of two, with the tiles of four rows of tiles swizzled."""
    suffix, tile = GENERATIONS[generation]
    (m, n, k), (bm, bn, bk, wm, wn) = shape, tile
    a, b, lda, ldb, exact = operands(m, n, k, t, transposition, (2,))
    swizzle = int(tiles(m, bm) > 3)
    rows = tiles(tiles(m, bm), 1 << swizzle)
    (out,) = launch(
        f"steel_gemm_fused{suffix}",
        ("gemm", metal(t), *tile, *TRANSPOSITIONS[transposition], "float"),
        {
            0: a,
            1: b,
            3: blank((2, m, n), t),
            4: gemm_params(m, n, k, lda, ldb, tile, (m * k, k * n, m * n), swizzle, 1),
            6: i32(2),
            7: i64(m * k, k * n),
        },
        [3],
        threadgroups=(tiles(n, bn) << swizzle, rows, 2),
        group=(32, wn, wm),
        constants={
            10: True,
            100: False,
            110: False,
            200: m % bm == 0,
            201: n % bn == 0,
            202: k % bk == 0,
        },
    )
    assert_close(out, exact, t, terms=k)


def add_scaled(generation: str, shape: tuple[int, int, int]) -> None:
    """0.5 * a @ b - 2 * c, with c transposed."""
    suffix, tile = GENERATIONS[generation]
    (m, n, k), (bm, bn, bk, wm, wn) = shape, tile
    a, b, lda, ldb, product = operands(m, n, k, "float32", "nn")
    c = numbers((m, n), "float32", 3)
    (out,) = launch(
        f"steel_gemm_fused{suffix}",
        ("gemm", "float", *tile, False, False, "float"),
        {
            0: a,
            1: b,
            2: encode(c.T, "float32"),
            3: blank((m, n), "float32"),
            4: gemm_params(m, n, k, lda, ldb, tile),
            5: raw(i32(1, m), i64(0), f32(0.5, -2.0)),
        },
        [3],
        threadgroups=(tiles(n, bn), tiles(m, bm)),
        group=(32, wn, wm),
        constants={
            10: False,
            100: True,
            110: True,
            200: m % bm == 0,
            201: n % bn == 0,
            202: k % bk == 0,
        },
    )
    assert_close(out, 0.5 * product - 2.0 * c, "float32", terms=k)


@pytest.mark.parametrize(("generation", "shape"), [("steel", (64, 32, 30)), ("nax", (65, 40, 30))])
def test_fused_with_addend(generation: str, shape: tuple[int, int, int]) -> None:
    add_scaled(generation, shape)


def test_defect_addend_is_read_below_its_last_row() -> None:
    """MLX's apply_epilogue_safe compares columns with the tile's end, and no rows."""
    with (
        checked("bounds"),
        pytest.raises(
            metal_api.LaunchError, match=r"a load of 4 bytes at byte \d+ of 'C' \(buffer 2\)"
        ),
    ):
        add_scaled("steel", (65, 40, 30))


def test_fused_complex() -> None:
    m, n, k = 37, 41, 20
    a, b, lda, ldb, exact = operands(m, n, k, "complex64", "nt")
    tile = (32, 32, 16, 2, 2)
    (out,) = launch(
        "steel_gemm_fused",
        ("gemm", "complex64_t", *tile, False, True, "float"),
        {0: a, 1: b, 3: blank((m, n), "complex64"), 4: gemm_params(m, n, k, lda, ldb, tile)},
        [3],
        threadgroups=(2, 2),
        group=(32, 2, 2),
        constants={10: False, 100: False, 110: False, 200: False, 201: False, 202: False},
    )
    assert_close(out, exact, "complex64", terms=k)


@BOTH
@ALL_FLOATS
def test_split_k(generation: str, t: str) -> None:
    """Partial sums in float32, and the kernel that adds them up."""
    suffix, tile = GENERATIONS[generation]
    bm, bn, bk, wm, wn = tile
    m, n, parts = 70, 45, 3
    size = 2 * bk
    # The last part takes the rest: more than the others in the first generation, less in the second.
    k = 2 * size + bk + 5 if suffix else 3 * size + 5
    a, b, lda, ldb, exact = operands(m, n, k, t, "nt")
    params = raw(
        i32(m, n, k, lda, ldb, n, tiles(n, bn), tiles(m, bm), parts, m * n, size, 0, size // bk)
    )
    result = ("float",) if not suffix else ()
    aligned = (False, False) if not suffix else ("float",)
    counts = tiles(n, bn), tiles(m, bm), parts
    (partial,) = launch(
        f"steel_gemm_splitk{suffix}",
        ("gemm_splitk" + suffix, metal(t), *result, *tile, False, True, *aligned),
        {0: a, 1: b, 2: blank((parts, m, n), "float32"), 3: params},
        [2],
        threadgroups=(counts[0] * counts[1] * parts,) if suffix else counts,
        group=(32, wn, wm),
        constants={200: False, 201: False} if suffix else {},
    )
    assert_close(partial.sum(0, dtype=np.float64).astype(np.float32), exact, "float32", terms=k)
    (out,) = launch(
        "steel_gemm_splitk",
        ("gemm_splitk_accum", "float", metal(t)),
        {0: partial, 1: blank((m, n), t), 2: i32(parts), 3: i32(m * n), 4: i32(n)},
        [1],
        grid=(n, m),
        group=(8, 8),
    )
    assert_close(out, exact, t, terms=k)


@BOTH
@ALL_FLOATS
def test_segmented(generation: str, t: str) -> None:
    suffix, tile = GENERATIONS[generation]
    bm, bn, bk, wm, wn = tile
    m, n, k = 50, 70, 2 * bk + 40
    a, b, lda, ldb, _ = operands(m, n, k, t, "tn")
    exact_a, exact_b = numbers((m, k), t, 1), numbers((k, n), t, 2)
    segments = np.array([[0, bk], [bk, k], [3, 3], [7, 30]], np.uint32)
    (out,) = launch(
        f"steel_gemm_segmented{suffix}",
        ("segmented_mm" + suffix, metal(t), *tile, True, False, "float"),
        {
            0: a,
            1: b,
            2: segments,
            3: blank((4, m, n), t),
            4: gemm_params(m, n, k, lda, ldb, tile, (0, 0, m * n)),
        },
        [3],
        threadgroups=(tiles(n, bn), tiles(m, bm), 4),
        group=(32, wn, wm),
        constants={199: True, 200: False, 201: False},
    )
    exact = np.stack([exact_a[:, i:j] @ exact_b[i:j] for i, j in segments])
    assert_close(out, exact, t, terms=k)


@pytest.mark.parametrize(
    ("suffix", "tile"), [("", (16, 64, 16, 1, 2)), ("_nax", (16, 128, 128, 1, 4))]
)
@ALL_FLOATS
def test_gather_of_right_operands(suffix: str, tile: tuple[int, ...], t: str) -> None:
    """Each row is multiplied by the matrix that its index names; the indices are sorted."""
    gather_right(suffix, tile, t, np.sort(generator().integers(0, 4, 21)))


def test_gather_with_two_rows_of_simdgroups() -> None:
    """As many indices in either half."""
    indices = np.repeat([0, 2, 1, 3], 16)[:60]
    gather_right("_nax", (64, 128, 128, 2, 4), "float16", indices)


def test_defect_simdgroups_come_to_a_barrier_a_different_number_of_times() -> None:
    """In MLX's gather_mm_rhs_nax, a SIMD-group goes round a loop with a barrier for each index among its own rows."""
    indices = np.repeat([0, 1, 2], [10, 6, 44])
    with (
        checked("bounds"),
        pytest.raises(metal_api.LaunchError, match="SIMD-groups wait at a barrier"),
    ):
        gather_right("_nax", (64, 128, 128, 2, 4), "float16", indices, "divergence")
    gather_right("_nax", (64, 128, 128, 2, 4), "float16", indices, "bounds")


def test_defect_operand_is_overwritten_behind_a_barrier_without_memory() -> None:
    """In MLX's gather_mm_rhs, the barrier between the products of two indices has mem_flags::mem_none."""
    indices = np.repeat([0, 1, 2], [5, 6, 10])
    with (
        checked("bounds"),
        pytest.raises(metal_api.LaunchError, match=r"line 125:29 of loader\.h .* a race"),
    ):
        gather_right("", (16, 64, 16, 1, 2), "float32", indices, "races")


def gather_right(
    suffix: str, tile: tuple[int, ...], t: str, indices: np.ndarray, checks: str | None = None
) -> None:
    bm, bn, _, wm, wn = tile
    m, n, k = len(indices), 150, 140
    indices = indices.astype(np.uint32)
    a, b = numbers((m, k), t, 1), numbers((4, n, k), t, 2)
    (out,) = launch(
        f"steel_gemm_gather{suffix}",
        ("gather_mm_rhs" + suffix, metal(t), *tile, False, True, "float"),
        {
            0: encode(a, t),
            1: encode(b, t),
            2: indices,
            3: blank((m, n), t),
            4: gemm_params(m, n, k, k, k, tile, (0, n * k, 0)),
        },
        [3],
        threadgroups=(tiles(n, bn), tiles(m, bm)),
        group=(32, wn, wm),
        constants={200: False, 201: False, 202: False},
        checks=checks,
    )
    assert_close(out, np.einsum("mk,mnk->mn", a, b[indices]), t, terms=k)


@ALL_FLOATS
def test_gather_of_both_operands(t: str) -> None:
    tile = (32, 32, 16, 2, 2)
    m, n, k = 40, 37, 21
    a, b = numbers((3, m, k), t, 1), numbers((5, k, n), t, 2)
    left, right = np.array([2, 0, 1, 2], np.uint32), np.array([4, 1, 1, 0], np.uint32)
    (out,) = launch(
        "steel_gemm_gather",
        ("gather_mm", metal(t), *tile, False, False, "float"),
        {
            0: encode(a, t),
            1: encode(b, t),
            2: left,
            3: right,
            4: blank((4, m, n), t),
            5: gemm_params(m, n, k, k, n, tile, (1, 1, m * n), 0, 1),
            6: i32(4),
            7: i64(1),
            8: i64(1),
            9: i32(1),
            10: i32(3),
            11: i64(m * k),
            12: i32(1),
            13: i32(5),
            14: i64(k * n),
        },
        [4],
        threadgroups=(2, 2, 4),
        group=(32, 2, 2),
        constants={10: False, 200: False, 201: False, 202: False},
    )
    assert_close(out, a[left] @ b[right], t, terms=k)
