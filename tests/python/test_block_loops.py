"""Loops that move blocks of tensors, by block pointers and descriptors: steps in which blocks are whole ask for no bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernel_support import ON_STOCK, tl, triton

PADS = {"zero": 0.0, "nan": np.nan}


@triton.jit
def moved_kernel(
    x_ptr, out_ptr, m, n, stride, row, first, steps,
    BM: tl.constexpr, BN: tl.constexpr, STEP: tl.constexpr, PAD: tl.constexpr, BOTH: tl.constexpr,
):  # fmt: skip
    """Copies ``steps`` blocks of x, from column ``first`` on and STEP columns apart, below each other."""
    block = tl.make_block_ptr(x_ptr, (m, n), (stride, 1), (row, first), (BM, BN), (1, 0))
    places = tl.arange(0, BM)[:, None] * BN + tl.arange(0, BN)[None, :]
    for i in range(steps):
        if BOTH:
            x = tl.load(block, boundary_check=(0, 1), padding_option=PAD)
        else:
            x = tl.load(block, boundary_check=(1,), padding_option=PAD)
        tl.store(out_ptr + i * BM * BN + places, x)
        block = tl.advance(block, (0, STEP))


def blocks_of(
    x: np.ndarray, tile: tuple[int, int], row: int, columns: list[int], pad: float
) -> np.ndarray:
    """The blocks of x at a row and some columns, with ``pad`` where they are not in x."""
    out = np.full((len(columns), *tile), pad, x.dtype)
    for block, column in zip(out, columns, strict=True):
        rows, places = row + np.arange(tile[0]), column + np.arange(tile[1])
        inside = (
            ((rows >= 0) & (rows < x.shape[0]))[:, None] & (places >= 0) & (places < x.shape[1])
        )
        at = np.nonzero(inside)
        block[at] = x[rows[at[0]], places[at[1]]]
    return out


@pytest.mark.parametrize("pad", list(PADS))
@pytest.mark.parametrize("step", [32, 16, 48, -32, 0])
@pytest.mark.parametrize("first", [0, 5, -7, -64, 96, 2**31 - 200])
def test_block_pointers_that_move(first: int, step: int, pad: str) -> None:
    rng = np.random.default_rng(0)
    for n in (96, 100, 31, 1):
        x = rng.standard_normal((20, n), np.float32)
        # A block never begins beyond what its place can be; addresses of what is not loaded may be anywhere.
        steps = 5
        out = np.full((steps, 8, 32), 7, np.float32)
        moved_kernel[(1,)](
            x, out, 20, n, n, 8, first, steps, 8, 32, STEP=step, PAD=pad, BOTH=step != 16
        )  # fmt: skip
        want = blocks_of(x, (8, 32), 8, [first + i * step for i in range(steps)], PADS[pad])
        np.testing.assert_array_equal(out, want, err_msg=f"{n}")


@triton.jit
def product_kernel(
    a_ptr, b_ptr, c_ptr, m, n, k, row, first,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, KIND: tl.constexpr,
):  # fmt: skip
    """a @ b from column ``first`` of a on, by blocks."""
    row += tl.program_id(0) * BM
    columns = tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    if KIND == "moved":
        a = tl.make_block_ptr(a_ptr, (m, k), (k, 1), (row, first), (BM, BK), (1, 0))
        b = tl.make_block_ptr(b_ptr, (k, n), (n, 1), (first, columns), (BK, BN), (1, 0))
        for _ in range(first, k, BK):
            acc = tl.dot(tl.load(a, boundary_check=(0, 1)), tl.load(b, boundary_check=(0, 1)), acc)
            a = tl.advance(a, (0, BK))
            b = tl.advance(b, (BK, 0))
    elif KIND == "made":
        for start in range(first, k, BK):
            a = tl.make_block_ptr(a_ptr, (m, k), (k, 1), (row, start), (BM, BK), (1, 0))
            b = tl.make_block_ptr(b_ptr, (k, n), (n, 1), (start, columns), (BK, BN), (1, 0))
            acc = tl.dot(tl.load(a, boundary_check=(0, 1)), tl.load(b, boundary_check=(0, 1)), acc)
    elif KIND == "described":
        a = tl.make_tensor_descriptor(a_ptr, [m, k], [k, 1], [BM, BK])
        b = tl.make_tensor_descriptor(b_ptr, [k, n], [n, 1], [BK, BN])
        for start in range(first, k, BK):
            acc = tl.dot(a.load([row, start]), b.load([start, columns]), acc)
    else:
        a = tl.make_tensor_descriptor(a_ptr, [m, k], [k, 1], [BM, BK])
        b = tl.make_tensor_descriptor(b_ptr, [k, n], [n, 1], [BK, BN])
        for i in range(tl.cdiv(k - first, BK)):
            at = first + i * BK
            acc = tl.dot(a.load([row, at]), b.load([at, columns]), acc)
    tl.store(c_ptr + tl.arange(0, BM)[:, None] * BN + tl.arange(0, BN)[None, :], acc)


@pytest.mark.parametrize("num_warps", [4, 16])
@pytest.mark.parametrize("kind", ["moved", "made", "described", "counted"])
@pytest.mark.parametrize("tile", [(64, 64, 64), (32, 64, 32), (16, 16, 16)])
def test_products_of_blocks(tile: tuple[int, int, int], kind: str, num_warps: int) -> None:
    rng = np.random.default_rng(0)
    bm, bn, bk = tile
    for m, n, k, row, first in (
        (64, 64, 128, 0, 0),
        (50, 40, 200, 0, 0),
        (70, 24, 104, 40, 8),
        (40, 64, 64, -9, -20),
        (33, 8, 8, 0, 64),
    ):
        a = rng.integers(-3, 4, (m, k)).astype(np.float16)
        b = rng.integers(-3, 4, (k, n)).astype(np.float16)
        c = np.full((bm, bn), np.nan, np.float32)
        product_kernel[(1,)](
            a, b, c, m, n, k, row, first, bm, bn, bk, KIND=kind, num_warps=num_warps
        )  # fmt: skip
        begin = max(first, 0)
        steps = max(0, -(-(k - first) // bk))
        end = min(k, first + steps * bk)
        want = np.zeros((bm, bn), np.float32)
        rows = range(max(row, 0), min(row + bm, m))
        columns = min(bn, n)
        if end > begin and len(rows):
            product = a[rows.start : rows.stop, begin:end].astype(np.float32) @ b[
                begin:end, :columns
            ].astype(np.float32)
            want[rows.start - row : rows.stop - row, :columns] = product
        np.testing.assert_array_equal(c, want, err_msg=f"{(m, n, k, row, first)}")


@pytest.mark.skipif(ON_STOCK, reason="stock Triton's interpreter makes no Metal text")
@pytest.mark.parametrize("kind", ["moved", "made", "described", "counted"])
@pytest.mark.own_route
@pytest.mark.own_target
def test_whole_steps_ask_for_no_bounds(kind: str) -> None:
    a = np.zeros((64, 256), np.float16)
    b, c = np.zeros((256, 64), np.float16), np.zeros((64, 64), np.float32)
    kernel = product_kernel[(1,)](
        a, b, c, 64, 64, 256, 0, 0, 64, 64, 32, KIND=kind, num_warps=4, num_stages=1
    )  # fmt: skip
    text: Any = kernel.asm["metal"]
    # The first loop over K is the one for whole steps. One test leads there, and nothing in it is chosen.
    start = text.index("make_filled_simdgroup_matrix")
    body = text[start : text.index("simdgroup_multiply_accumulate", start)]
    assert body.count("if (") == 1
    assert "uint4(0u)" not in body
