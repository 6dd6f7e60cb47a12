"""Indices of 32 bits in grids that are too large for them: right, or refused."""

from __future__ import annotations

import numpy as np
import pytest

from kernel_support import ON_STOCK, assert_same, tl, triton


@triton.jit
def rows(
    x_ptr,
    out_ptr,
    axis: tl.constexpr,
    FACTOR: tl.constexpr,
    OFFSET: tl.constexpr,
    WIDE: tl.constexpr,
):
    program = tl.program_id(axis)
    if WIDE:
        program = program.to(tl.int64)
    i = tl.arange(0, 512)
    index = program * FACTOR + OFFSET + i
    row = index // 32
    value = tl.load(x_ptr + (row & 7) * 32 + index % 32)
    tl.store(out_ptr + (program & 3) * 512 + i, value)


def expected(x: np.ndarray, programs: int, factor: int, offset: int) -> np.ndarray:
    out = np.zeros((4, 512), x.dtype)
    for program in range(max(programs - 8, 0), programs):
        index = program * factor + offset + np.arange(512, dtype=np.int64)
        out[program & 3] = x[(index // 32 & 7) * 32 + index % 32]
    return out


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize(
    ("factor", "offset", "most"),
    [(512, 0, 5), (1 << 20, 0, 2048), (1 << 20, 2**20 - 512, 2048), (3 << 20, 512, 683)],
)
def test_grids_beyond_32_bits_are_refused(axis: int, factor: int, offset: int, most: int) -> None:
    x = np.arange(256, dtype=np.float32)

    def launch(programs: int, wide: bool) -> np.ndarray:
        grid = [1, 1, 1]
        grid[axis] = programs
        out = np.zeros((4, 512), np.float32)
        rows[tuple(grid)](x, out, axis=axis, FACTOR=factor, OFFSET=offset, WIDE=wide, num_warps=1)
        return out

    # Programs run in any order: each of the last four rows is written by many, with equal numbers.
    if factor % 1024 == 0 or most < 8:
        assert_same(launch(most, False), expected(x, most, factor, offset))
        assert_same(launch(most + 3, True), expected(x, most + 3, factor, offset))
    if factor == 512 or ON_STOCK:
        return
    with pytest.raises(
        ValueError, match="is too large for the kernel's 32-bit indices: program_id"
    ):
        launch(most + 1, False)


@pytest.mark.own_route
def test_mlx_call_refuses_them_too() -> None:
    mx = pytest.importorskip("mlx.core")
    from triton_metal.mlx import call

    def launch(programs: int) -> np.ndarray:
        options = {"axis": 0, "FACTOR": 1 << 20, "OFFSET": 0, "WIDE": False, "num_warps": 1}
        outputs = {"out_ptr": ((4, 512), mx.float32)}
        x = mx.arange(256, dtype=mx.float32)
        return np.array(call(rows, x, grid=(programs,), outputs=outputs, init_value=0, **options))

    x = np.arange(256, dtype=np.float32)
    assert_same(launch(2048), expected(x, 2048, 1 << 20, 0))
    with pytest.raises(ValueError, match="is too large for the kernel's 32-bit indices"):
        launch(2049)


@triton.jit
def edges(x_ptr, out_ptr, OFFSET: tl.constexpr):
    i = tl.arange(0, 512)
    index = i + OFFSET
    tl.store(out_ptr + i, tl.load(x_ptr + (index // 4 & 63)) + (index % 8 < 4).to(tl.int32))


@pytest.mark.parametrize("offset", [0, 2**31 - 600, 2**31 - 512, 2**31 - 500, 2**31 - 256, -300])
def test_constants_that_take_an_index_past_its_type(offset: int) -> None:
    x, out = np.arange(64, dtype=np.int32), np.zeros(512, np.int32)
    edges[(1,)](x, out, OFFSET=offset, num_warps=1)
    index = (np.arange(512) + offset + 2**31) % 2**32 - 2**31
    # Triton's division and remainder round towards zero.
    quotient = np.trunc(index / 4).astype(np.int64)
    rest = np.fmod(index, 8)
    assert_same(out, (x[quotient & 63] + (rest < 4)).astype(np.int32))


@triton.jit
def steps(x_ptr, out_ptr, n, STEP: tl.constexpr):
    i = tl.arange(0, 256)
    total = tl.zeros((256,), tl.int32)
    for k in range(0, n, STEP):
        index = k + i
        total += tl.load(x_ptr + (index // 64 & 15)) * (index % 16)
    tl.store(out_ptr + i, total)


@pytest.mark.parametrize(
    ("n", "step"), [(2048, 256), (1000, 100), (2**31 - 1, 2**29), (2**31 - 1, 2**30 + 9)]
)
def test_counters_near_the_end_of_their_type(n: int, step: int) -> None:
    x, out = np.arange(3, 19, dtype=np.int32), np.zeros(256, np.int32)
    steps[(1,)](x, out, n, STEP=step, num_warps=1)
    total = np.zeros(256, np.int64)
    for k in range(0, n, step):
        index = (k + np.arange(256) + 2**31) % 2**32 - 2**31
        total += x[np.trunc(index / 64).astype(np.int64) & 15] * np.fmod(index, 16).astype(np.int64)
    assert_same(out, total.astype(np.int32))
