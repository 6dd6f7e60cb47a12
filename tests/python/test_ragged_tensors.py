"""Parts of different lengths of one tensor, which kernels load, store and add to in blocks."""

from __future__ import annotations

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl
from triton_metal.tools.ragged_tma import (
    atomic_add_ragged,
    create_ragged_descriptor,
    load_ragged,
    store_ragged,
)


@triton.jit
def copied(x, y, starts, sizes, ADD: tl.constexpr, DIM: tl.constexpr, RANK: tl.constexpr):
    part = tl.program_id(0)
    start, size = tl.load(starts + part), tl.load(sizes + part)
    for row in range(0, size, 4):
        coords = (row, 0) if RANK == 2 else ((row, 0, 0) if DIM == 0 else (0, row, 0))
        tile = load_ragged(x, start, size, coords, DIM)
        if ADD:
            atomic_add_ragged(y, start, size, coords, tile + 1, DIM)
        else:
            store_ragged(y, start, size, coords, tile + 1, DIM)


@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int32])
def test_parts_are_accessed_and_nothing_between_them(dtype: type, add: bool) -> None:
    x = np.arange(40 * 16).reshape(40, 16).astype(dtype)
    y = np.zeros_like(x)
    starts, sizes = np.array([1, 9, 20], np.int32), np.array([5, 8, 13], np.int32)
    expected = np.zeros_like(x)
    for start, size in zip(starts, sizes, strict=True):
        expected[start : start + size] = x[start : start + size] + 1
    ragged = [create_ragged_descriptor(array, [4, 16]) for array in (x, y)]
    with triton.launch_options(check="bounds"):
        copied[(3,)](*ragged, starts, sizes, ADD=add, DIM=0, RANK=2)
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("dim", [0, 1])
def test_a_dimension_of_three_is_cut(dim: int) -> None:
    x = np.arange(16 * 16 * 8, dtype=np.float32).reshape(16, 16, 8)
    y = np.zeros_like(x)
    starts, sizes = np.array([2, 7], np.int32), np.array([3, 6], np.int32)
    block = [4, 16, 8] if dim == 0 else [16, 4, 8]
    ragged = [create_ragged_descriptor(array, block, dim - 3) for array in (x, y)]
    copied[(2,)](*ragged, starts, sizes, ADD=False, DIM=dim, RANK=3)
    rows = [*range(2, 5), *range(7, 13)]
    expected = np.zeros_like(x)
    index = (rows,) if dim == 0 else (slice(None), rows)
    expected[index] = x[index] + 1
    np.testing.assert_array_equal(y, expected)


@triton.jit
def beyond(x, out, N: tl.constexpr):
    tile = load_ragged(x, 2, 3, [0, 0])
    i = tl.arange(0, N)
    tl.store(out + i[:, None] * N + i[None, :], tile)


def test_rows_behind_a_part_are_zeros() -> None:
    x, out = np.ones((8, 8), np.float32), np.full((8, 8), 7, np.float32)
    beyond[(1,)](create_ragged_descriptor(x, [8, 8]), out, N=8)
    assert out.sum(axis=1).tolist() == [8, 8, 8, 0, 0, 0, 0, 0]


@triton.jit
def plain(x, out):
    tl.store(out, tl.sum(load_ragged(x, 0, 3, [0, 0])))


def test_what_is_no_ragged_tensor_is_refused() -> None:
    x = np.ones((8, 8), np.float32)
    for array, block, dim, words in (
        (np.ones(8, np.float32), [8], 0, "2 or 3 dimensions, not 1"),
        (x, [8], 0, "block_shape has 1 numbers"),
        (x, [8, 8], 1, "ragged_dim is 1"),
        (x, [8, 8], -3, "ragged_dim is -3"),
    ):
        with pytest.raises(triton.LaunchValueError, match=words):
            create_ragged_descriptor(array, block, dim)
    descriptor = triton.tools.tensor_descriptor.TensorDescriptor.from_tensor(x, [8, 8])
    with pytest.raises(triton.CompilationError, match="one of create_ragged_descriptor"):
        plain[(1,)](descriptor, x)
