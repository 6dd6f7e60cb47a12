"""Memory access of every kind: strides, negative strides, transposes, gathers, scatters, masks, 3-D tiles."""

from __future__ import annotations

import numpy as np
import pytest

from _counts import counting  # isort: skip
from kernel_support import (
    FLOATS,
    INTEGERS,
    ON_STOCK,
    assert_same,
    needs_counters,
    numbers,
    tl,
    triton,
)


@triton.jit
def transpose_kernel(
    x_ptr, out_ptr, m, n, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BY_TRANS: tl.constexpr
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    x = tl.load(
        x_ptr + rows[:, None] * n + cols[None, :], mask=(rows[:, None] < m) & (cols[None, :] < n)
    )
    if BY_TRANS:
        mask = (cols[:, None] < n) & (rows[None, :] < m)
        tl.store(out_ptr + cols[:, None] * m + rows[None, :], tl.trans(x), mask=mask)
    else:
        tl.store(
            out_ptr + rows[:, None] + cols[None, :] * m,
            x,
            mask=(rows[:, None] < m) & (cols[None, :] < n),
        )


@pytest.mark.parametrize("shape", [(1, 1), (16, 16), (65, 33), (128, 256)], ids=str)
@pytest.mark.parametrize("block", [(1, 4), (16, 16), (32, 64), (128, 2), (64, 128)], ids=str)
@pytest.mark.parametrize("by_trans", [False, True])
def test_transposed_store(by_trans: bool, block: tuple[int, int], shape: tuple[int, int]) -> None:
    x = numbers(np.random.default_rng(0), shape, "float32")
    out = np.empty(shape[::-1], np.float32)
    grid = (triton.cdiv(shape[0], block[0]), triton.cdiv(shape[1], block[1]))
    transpose_kernel[grid](
        x, out, *shape, BLOCK_M=block[0], BLOCK_N=block[1], BY_TRANS=by_trans, num_warps=4
    )
    assert_same(out, np.ascontiguousarray(x.T))


@pytest.mark.parametrize("name", FLOATS + INTEGERS)
@pytest.mark.parametrize("num_warps", [1, 2, 16])
def test_transposed_store_of_every_dtype(name: str, num_warps: int) -> None:
    x = numbers(np.random.default_rng(0), (50, 70), name)
    out = np.empty((70, 50), x.dtype)
    transpose_kernel[(2, 3)](
        x, out, 50, 70, BLOCK_M=32, BLOCK_N=32, BY_TRANS=True, num_warps=num_warps
    )
    assert_same(out, np.ascontiguousarray(x.T))


@triton.jit
def strided_copy_kernel(x_ptr, out_ptr, n, x_stride, out_stride, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets * x_stride, mask=offsets < n)
    tl.store(out_ptr + offsets * out_stride, x, mask=offsets < n)


@pytest.mark.parametrize("x_stride", [1, 2, 3, 16, -1, -2, -5])
@pytest.mark.parametrize("out_stride", [1, 4, -1, -3])
def test_strides_either_way(x_stride: int, out_stride: int) -> None:
    n = 300
    x = numbers(np.random.default_rng(0), 16 * n, "float32")[:: abs(x_stride)][:n]
    out = np.zeros(4 * n, np.float32)
    view = out[:: abs(out_stride)][:n]
    source = x if x_stride > 0 else x[::-1]
    target = view if out_stride > 0 else view[::-1]
    strided_copy_kernel[(3,)](source, target, n, x_stride, out_stride, BLOCK=128, num_warps=2)
    assert_same(target, np.ascontiguousarray(source))
    untouched = np.ones(4 * n, bool)
    untouched[:: abs(out_stride)][:n] = False
    assert (out[untouched] == 0).all()


@triton.jit
def reverse_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + (n - 1) - offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, x, mask=offsets < n)


@pytest.mark.parametrize("n", [1, 31, 128, 1000])
@pytest.mark.parametrize("name", ["int8", "float16", "float32", "int64"])
def test_reverse(name: str, n: int) -> None:
    x = numbers(np.random.default_rng(n), n, name)
    out = np.empty_like(x)
    reverse_kernel[(triton.cdiv(n, 64),)](x, out, n, BLOCK=64, num_warps=1)
    assert_same(out, np.ascontiguousarray(x[::-1]))


@triton.jit
def gather_kernel(
    table_ptr, index_ptr, out_ptr, n, width, BLOCK: tl.constexpr, WIDTH: tl.constexpr
):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    cols = tl.arange(0, WIDTH)
    index = tl.load(index_ptr + rows, mask=rows < n, other=0)
    mask = (rows[:, None] < n) & (cols[None, :] < width)
    x = tl.load(table_ptr + index[:, None] * width + cols[None, :], mask=mask)
    tl.store(out_ptr + rows[:, None] * width + cols[None, :], x, mask=mask)


@pytest.mark.parametrize("index_dtype", [np.int32, np.int64, np.uint8])
@pytest.mark.parametrize("width", [1, 13, 64])
def test_gather_of_rows(width: int, index_dtype: type) -> None:
    rng = np.random.default_rng(0)
    table, index = (
        numbers(rng, (100, width), "float32"),
        rng.integers(0, 100, 77).astype(index_dtype),
    )
    out = np.empty((77, width), np.float32)
    gather_kernel[(5,)](
        table, index, out, 77, width, BLOCK=16, WIDTH=triton.next_power_of_2(width), num_warps=4
    )
    assert_same(out, table[index])


@triton.jit
def scatter_kernel(x_ptr, index_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(
        out_ptr + tl.load(index_ptr + offsets, mask=mask),
        tl.load(x_ptr + offsets, mask=mask),
        mask=mask,
    )


@pytest.mark.parametrize("n", [1, 100, 512, 1000])
def test_scatter(n: int) -> None:
    rng = np.random.default_rng(n)
    x, index = numbers(rng, n, "float32"), rng.permutation(n).astype(np.int32)
    out = np.empty(n, np.float32)
    scatter_kernel[(1,)](x, index, out, n, BLOCK=triton.next_power_of_2(n), num_warps=4)
    expected = np.empty_like(x)
    expected[index] = x
    assert_same(out, expected)


@triton.jit
def histogram_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0)
    tl.atomic_add(out_ptr + x, 1, mask=mask)


@pytest.mark.parametrize("n", [1, 1000, 4099])
@pytest.mark.parametrize("name", ["int32", "uint32"])
def test_atomic_add_of_integers(name: str, n: int) -> None:
    x = np.random.default_rng(n).integers(0, 37, n).astype(np.int32)
    out = np.zeros(37, name)
    histogram_kernel[(triton.cdiv(n, 256),)](x, out, n, BLOCK=256, num_warps=4)
    assert_same(out, np.bincount(x, minlength=37).astype(name))


@triton.jit
def atomic_sum_kernel(x_ptr, out_ptr, before_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.sum(tl.load(x_ptr + offsets, mask=offsets < n, other=0.0), axis=0)
    before = tl.atomic_add(out_ptr, total)
    tl.store(before_ptr + tl.program_id(0), before)


def test_atomic_add_of_floats_by_a_scalar() -> None:
    """Each program adds once, however many threads it has; what was there before is what others had added."""
    x = np.random.default_rng(0).integers(1, 100, 5000).astype(np.float32)
    out, before = np.zeros(1, np.float32), np.empty(20, np.float32)
    atomic_sum_kernel[(20,)](x, out, before, 5000, BLOCK=256, num_warps=4)
    assert out[0] == x.sum()
    steps = np.diff(np.append(np.sort(before), x.sum()))
    blocks = np.append(x, np.zeros(120, np.float32)).reshape(20, 256).sum(axis=1)
    np.testing.assert_array_equal(np.sort(steps), np.sort(blocks))


@triton.jit
def three_d_kernel(x_ptr, out_ptr, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    a, b, c = (
        tl.arange(0, A)[:, None, None],
        tl.arange(0, B)[None, :, None],
        tl.arange(0, C)[None, None, :],
    )
    x = tl.load(x_ptr + a * (B * C) + b * C + c)
    tl.store(out_ptr + c * (A * B) + a * B + b, x + b)


@pytest.mark.parametrize(
    "shape", [(2, 2, 2), (4, 8, 16), (16, 1, 32), (1, 64, 4), (32, 4, 8)], ids=str
)
@pytest.mark.parametrize("num_warps", [1, 4, 16])
def test_three_dimensional_tiles(num_warps: int, shape: tuple[int, int, int]) -> None:
    x = numbers(np.random.default_rng(0), shape, "int32")
    out = np.empty((shape[2], shape[0], shape[1]), np.int32)
    three_d_kernel[(1,)](x, out, A=shape[0], B=shape[1], C=shape[2], num_warps=num_warps)
    expected = (x + np.arange(shape[1], dtype=np.int32)[None, :, None]).transpose(2, 0, 1)
    assert_same(out, np.ascontiguousarray(expected))


@triton.jit
def permute_kernel(x_ptr, out_ptr, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    a, b, c = tl.arange(0, A), tl.arange(0, B), tl.arange(0, C)
    x = tl.load(x_ptr + a[:, None, None] * (B * C) + b[None, :, None] * C + c[None, None, :])
    y = tl.permute(x, (2, 0, 1))
    tl.store(out_ptr + c[:, None, None] * (A * B) + a[None, :, None] * B + b[None, None, :], y)


@pytest.mark.parametrize("shape", [(2, 4, 8), (16, 8, 4), (1, 32, 16), (64, 2, 2)], ids=str)
@pytest.mark.parametrize("num_warps", [1, 4])
def test_permute(num_warps: int, shape: tuple[int, int, int]) -> None:
    x = numbers(np.random.default_rng(0), shape, "float32")
    out = np.empty((shape[2], shape[0], shape[1]), np.float32)
    permute_kernel[(1,)](x, out, A=shape[0], B=shape[1], C=shape[2], num_warps=num_warps)
    assert_same(out, np.ascontiguousarray(x.transpose(2, 0, 1)))


@triton.jit
def reshape_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, P: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    y = tl.reshape(x, (P, M * N // P))
    rows, cols = tl.arange(0, P), tl.arange(0, M * N // P)
    tl.store(out_ptr + rows[:, None] + cols[None, :] * P, y)


@pytest.mark.parametrize(
    ("m", "n", "p"), [(8, 8, 4), (16, 4, 64), (1, 256, 16), (32, 32, 1), (64, 16, 128)]
)
@pytest.mark.parametrize("num_warps", [1, 4])
def test_reshape(num_warps: int, m: int, n: int, p: int) -> None:
    x = numbers(np.random.default_rng(0), (m, n), "float32")
    out = np.empty((m * n // p, p), np.float32)
    reshape_kernel[(1,)](x, out, M=m, N=n, P=p, num_warps=num_warps)
    assert_same(out, np.ascontiguousarray(x.reshape(p, -1).T))


@triton.jit
def mask_kernel(x_ptr, mask_ptr, out_ptr, n, other, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    mask = tl.load(mask_ptr + offsets, mask=inside, other=0) != 0
    x = tl.load(x_ptr + offsets, mask=mask & inside, other=other)
    tl.store(out_ptr + offsets, x, mask=inside)


@pytest.mark.parametrize("mask_dtype", [np.bool_, np.int8, np.int32])
@pytest.mark.parametrize("name", ["int8", "float16", "float32", "int64"])
def test_masks_from_memory(name: str, mask_dtype: type) -> None:
    rng = np.random.default_rng(0)
    x, mask = numbers(rng, 999, name), rng.integers(0, 2, 999).astype(mask_dtype)
    out = np.empty_like(x)
    mask_kernel[(4,)](x, mask, out, 999, 7, BLOCK=256, num_warps=2)
    assert_same(out, np.where(mask.astype(bool), x, x.dtype.type(7)))


@triton.jit
def rows_kernel(
    x_ptr,
    out_ptr,
    m,
    n,
    x_row,
    x_col,
    out_row,
    out_col,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    rows = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (rows < m)[:, None] & (cols < n)[None, :]
    x = tl.load(x_ptr + rows[:, None] * x_row + cols[None, :] * x_col, mask=mask, other=0)
    tl.store(out_ptr + rows[:, None] * out_row + cols[None, :] * out_col, x * 2, mask=mask)


@pytest.mark.parametrize(
    "view", ["plain", "transposed", "every other", "reversed rows", "reversed both", "broadcast"]
)
@pytest.mark.parametrize("block", [(4, 64), (16, 16), (64, 4)], ids=str)
def test_views(block: tuple[int, int], view: str) -> None:
    base = numbers(np.random.default_rng(0), (90, 130), "float32")
    x = {
        "plain": base,
        "transposed": base.T,
        "every other": base[::2, 1::3],
        "reversed rows": base[::-1],
        "reversed both": base[::-1, ::-1],
        "broadcast": np.broadcast_to(base[3], (40, 130)),
    }[view]
    x.flags.writeable = True if view != "broadcast" else x.flags.writeable
    out = np.empty(x.shape, np.float32)
    steps = [s // 4 for s in x.strides] + [s // 4 for s in out.strides]
    grid = (triton.cdiv(x.shape[1], block[1]), triton.cdiv(x.shape[0], block[0]))
    rows_kernel[grid](x, out, *x.shape, *steps, BLOCK_M=block[0], BLOCK_N=block[1], num_warps=4)
    assert_same(out, np.ascontiguousarray(x * 2))


@triton.jit
def stencil_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    left = tl.load(x_ptr + offsets - 1, mask=(offsets > 0) & (offsets < n), other=0.0)
    here = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    right = tl.load(x_ptr + offsets + 1, mask=offsets + 1 < n, other=0.0)
    tl.store(out_ptr + offsets, left - 2 * here + right, mask=offsets < n)


@pytest.mark.parametrize("n", [1, 2, 127, 1000])
def test_stencil(n: int) -> None:
    x = np.random.default_rng(n).integers(-99, 99, n).astype(np.float32)
    out = np.empty_like(x)
    stencil_kernel[(triton.cdiv(n, 128),)](x, out, n, BLOCK=128, num_warps=4)
    padded = np.pad(x, 1)
    assert_same(out, padded[:-2] - 2 * x + padded[2:])


@triton.jit
def three_grid_kernel(out_ptr):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    nx, ny, nz = tl.num_programs(0), tl.num_programs(1), tl.num_programs(2)
    tl.store(out_ptr + (z * ny + y) * nx + x, x + 10 * y + 100 * z + 1000 * nz)


def test_grid_of_three_dimensions() -> None:
    out = np.zeros((4, 3, 5), np.int32)
    three_grid_kernel[(5, 3, 4)](out)
    z, y, x = np.indices((4, 3, 5), dtype=np.int32)
    assert_same(out, x + 10 * y + 100 * z + 4000)


@triton.jit
def tiny_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets) + 1)


@pytest.mark.parametrize(
    ("block", "num_warps"),
    [(block, warps) for block in (1, 2, 8, 32, 64, 2**14) for warps in (1, 4, 16)]
    + [(2**17, 4), (2**17, 16)],
)
def test_blocks_from_one_element_to_2_to_the_17(block: int, num_warps: int) -> None:
    x = np.arange(block, dtype=np.int32)
    out = np.zeros(block + 1, np.int32)
    tiny_kernel[(1,)](x, out, BLOCK=block, num_warps=num_warps)
    assert_same(out, np.append(x + 1, np.int32(0)))


@triton.jit
def in_place_kernel(x_ptr, n, BLOCK: tl.constexpr):
    """Reads a mirrored element, then writes its own: every load must come before every store."""
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + n - 1 - offsets, mask=offsets < n)
    tl.debug_barrier()
    tl.store(x_ptr + offsets, x, mask=offsets < n)


@pytest.mark.parametrize("n", [7, 64, 1000])
def test_in_place_reverse(n: int) -> None:
    x = numbers(np.random.default_rng(n), n, "float32")
    expected = np.ascontiguousarray(x[::-1])
    kernel = in_place_kernel[(1,)](x, n, BLOCK=triton.next_power_of_2(n), num_warps=4)
    assert_same(x, expected)
    if not ON_STOCK:
        # Its barrier is read again from the text.
        again = triton.compile_ttir(kernel.asm["ttir"])
        assert "threadgroup_barrier" in again.asm["metal"]


@triton.jit
def hints_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.max_contiguous(
        tl.multiple_of(tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), BLOCK), BLOCK
    )
    x = tl.load(
        x_ptr + offsets, mask=offsets < n, cache_modifier=".cg", eviction_policy="evict_first"
    )
    tl.store(
        out_ptr + offsets, -x, mask=offsets < n, cache_modifier=".wb", eviction_policy="evict_last"
    )


def test_hints() -> None:
    x = numbers(np.random.default_rng(0), 1000, "float32")
    out = np.empty_like(x)
    hints_kernel[(8,)](x, out, 1000, BLOCK=128, num_warps=4)
    assert_same(out, -x)


@triton.jit
def neighbours_kernel(x_ptr, choice_ptr, old_ptr, out_ptr, shift, N: tl.constexpr):
    n = tl.arange(0, N)
    choice = tl.load(choice_ptr + n) != 0
    chosen = tl.where(choice, x_ptr + n, x_ptr + n + shift + 1)
    tl.store(old_ptr + n, tl.atomic_add(chosen, 1))
    tl.store(out_ptr + n, tl.load(tl.where(choice, x_ptr + 1, x_ptr + 2 + n)))


@pytest.mark.parametrize("n", [1, 8, 256])
def test_choices_within_one_array_keep_its_pointer(n: int) -> None:
    choice = np.random.default_rng(20).integers(0, 2, n, dtype=np.int32)
    x, old, out = np.zeros(n + 8, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)
    neighbours_kernel[(1,)](x, choice, old, out, 3, N=n)
    expected = np.zeros_like(x)
    np.add.at(expected, np.where(choice, np.arange(n), np.arange(n) + 4), 1)
    assert_same(x, expected)
    assert_same(out, np.where(choice, expected[1], expected[2 : n + 2]))


@triton.jit
def copy_rows_kernel(x_ptr, out_ptr, m, n, step, M: tl.constexpr, N: tl.constexpr):
    i = tl.program_id(0) * M + tl.arange(0, M)[:, None]
    j = tl.program_id(1) * N + tl.arange(0, N)[None, :]
    mask = (i < m) & (j < n)
    tl.store(out_ptr + i * step + j, tl.load(x_ptr + i * step + j, mask=mask), mask=mask)


@needs_counters
@pytest.mark.parametrize("name", ["float32", "float16"])
@pytest.mark.parametrize("width", [700, 781, 1000])
def test_rows_that_begin_anywhere_use_their_lines(width: int, name: str) -> None:
    """Lanes read neighbours at once: beside the lines of the rows, each access touches part of one more for each row."""
    block = (4, 256)
    x = numbers(np.random.default_rng(0), (64, width), name)
    out = np.empty_like(x)
    grid = (16, triton.cdiv(width, block[1]))
    with counting() as counts:
        copy_rows_kernel[grid](x, out, 64, width, width, M=block[0], N=block[1])
    assert_same(out, x)
    # Four numbers a lane, of which a SIMD-group has 128 in a row; a row's last ones are read alone.
    accesses = 64 * (-(-width // 128)) + 64 * 3
    least = x.nbytes // 128
    for way in ("read", "written"):
        assert counts.counters[f"device_bytes_{way}"] == x.nbytes
        assert counts.counters[f"device_lines_{way}"] <= least + accesses
