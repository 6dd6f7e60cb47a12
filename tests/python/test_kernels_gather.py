"""Gathers along an axis of a tile: within a SIMD-group and across, every dtype, any index type, ranks 1 to 3."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernel_support import FLOATS, INTEGERS, assert_same, needs_counters, numbers, tl, triton

WARPS = (1, 4, 16)


@triton.jit
def gather_kernel(src_ptr, index_ptr, out_ptr, S: tl.constexpr, N: tl.constexpr):
    n = tl.arange(0, N)
    src = tl.load(src_ptr + tl.arange(0, S))
    tl.store(out_ptr + n, tl.gather(src, tl.load(index_ptr + n), 0))


def values(seed: int, shape: Any, name: str) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if name == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    return numbers(rng, shape, name)


@pytest.mark.parametrize("num_warps", WARPS)
@pytest.mark.parametrize("n", [1, 16, 128, 2048])
@pytest.mark.parametrize("size", [1, 2, 16, 32, 64, 1024])
def test_sizes(size: int, n: int, num_warps: int) -> None:
    src = values(0, size, "float32")
    index = np.random.default_rng(1).integers(0, size, n, dtype=np.int32)
    out = np.empty(n, np.float32)
    gather_kernel[(1,)](src, index, out, S=size, N=n, num_warps=num_warps)
    assert_same(out, src[index])


@pytest.mark.parametrize("name", [*FLOATS, *INTEGERS, "bool"])
@pytest.mark.parametrize("size", [16, 256])
def test_types_of_elements(size: int, name: str) -> None:
    src = values(2, size, name)
    index = np.random.default_rng(3).integers(0, size, 256, dtype=np.int32)
    out = np.empty(256, src.dtype)
    gather_kernel[(1,)](src, index, out, S=size, N=256)
    assert_same(out, src[index])


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("size", [32, 256])
def test_types_of_indices(size: int, name: str) -> None:
    if name == "int8":
        size = min(size, 128)
    src = values(4, size, "float32")
    index = np.random.default_rng(5).integers(0, size, 512).astype(name)
    out = np.empty(512, np.float32)
    gather_kernel[(1,)](src, index, out, S=size, N=512)
    assert_same(out, src[index.astype(np.int64)])


@triton.jit
def gather_2d_kernel(
    src_ptr,
    index_ptr,
    out_ptr,
    SM: tl.constexpr,
    SN: tl.constexpr,
    M: tl.constexpr,
    N: tl.constexpr,
    AXIS: tl.constexpr,
):
    src = tl.load(src_ptr + tl.arange(0, SM)[:, None] * SN + tl.arange(0, SN)[None, :])
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out_ptr + at, tl.gather(src, tl.load(index_ptr + at), AXIS))


@pytest.mark.parametrize("num_warps", WARPS)
@pytest.mark.parametrize(
    ("source", "index", "axis"),
    [
        ((4, 8), (4, 8), 0),
        ((4, 8), (4, 8), 1),
        ((32, 16), (4, 16), 0),
        ((8, 64), (8, 2), 1),
        ((64, 32), (64, 32), 0),
        ((64, 32), (64, 128), 1),
        ((1, 32), (1, 256), 1),
        ((128, 1), (512, 1), 0),
        ((16, 64), (128, 64), 0),
    ],
    ids=str,
)
def test_two_dimensions(
    source: tuple[int, int], index: tuple[int, int], axis: int, num_warps: int
) -> None:
    src = values(6, source, "float32")
    places = np.random.default_rng(7).integers(0, source[axis], index, dtype=np.int32)
    out = np.empty(index, np.float32)
    gather_2d_kernel[(1,)](src, places, out, *source, *index, AXIS=axis, num_warps=num_warps)
    assert_same(out, np.take_along_axis(src, places, axis))


@pytest.mark.parametrize("num_warps", WARPS)
@pytest.mark.parametrize("name", ["int64", "uint64"])
@pytest.mark.parametrize("shape", [(8, 16), (2, 64), (32, 32)], ids=str)
def test_wide_elements(shape: tuple[int, int], name: str, num_warps: int) -> None:
    src = values(8, shape, name)
    places = np.random.default_rng(9).integers(0, shape[0], shape, dtype=np.int32)
    out = np.empty_like(src)
    gather_2d_kernel[(1,)](src, places, out, *shape, *shape, AXIS=0, num_warps=num_warps)
    assert_same(out, np.take_along_axis(src, places, 0))


@triton.jit
def gather_3d_kernel(
    src_ptr,
    index_ptr,
    out_ptr,
    A: tl.constexpr,
    B: tl.constexpr,
    C: tl.constexpr,
    AXIS: tl.constexpr,
):
    at = (
        tl.arange(0, A)[:, None, None] * B * C
        + tl.arange(0, B)[None, :, None] * C
        + tl.arange(0, C)[None, None, :]
    )
    tl.store(out_ptr + at, tl.gather(tl.load(src_ptr + at), tl.load(index_ptr + at), AXIS))


@pytest.mark.parametrize("shape", [(2, 4, 8), (16, 2, 32), (8, 32, 4)], ids=str)
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_three_dimensions(axis: int, shape: tuple[int, int, int]) -> None:
    src = values(8, shape, "int16")
    places = np.random.default_rng(9).integers(0, shape[axis], shape, dtype=np.int32)
    out = np.empty(shape, np.int16)
    gather_3d_kernel[(1,)](src, places, out, *shape, AXIS=axis)
    assert_same(out, np.take_along_axis(src, places, axis))


@triton.jit
def split_kernel(
    src_ptr,
    index_ptr,
    out_ptr,
    A: tl.constexpr,
    B: tl.constexpr,
    AXIS: tl.constexpr,
    VARIES: tl.constexpr,
):
    """What is gathered is split, so that its columns lie in the registers of a thread and those of the source in lanes."""
    at = tl.arange(0, A)[:, None, None] * B * 2 + tl.arange(0, B)[None, :, None] * 2
    src = tl.load(src_ptr + (at + tl.arange(0, 2)[None, None, :]))
    index = src.to(tl.int32) & 0
    if VARIES:
        index = tl.load(index_ptr + (at + tl.arange(0, 2)[None, None, :]))
    left, right = tl.split(tl.gather(src, index, AXIS))
    to = tl.arange(0, A)[:, None] * B + tl.arange(0, B)[None, :]
    tl.store(out_ptr + to, left)
    tl.store(out_ptr + A * B + to, right)


@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize("varies", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", ["uint64", "float32", "int8"])
@pytest.mark.parametrize("shape", [(1, 8), (8, 1), (2, 8), (8, 4)], ids=str)
def test_columns_that_a_split_takes_apart(
    shape: tuple[int, int], name: str, axis: int, varies: bool, num_warps: int
) -> None:
    src = np.arange(1, shape[0] * shape[1] * 2 + 1).reshape(*shape, 2).astype(name)
    index = np.random.default_rng(15).integers(0, shape[axis], src.shape, dtype=np.int32)
    out = np.empty((2, *shape), src.dtype)
    split_kernel[(1,)](src, index, out, *shape, AXIS=axis, VARIES=varies, num_warps=num_warps)
    expected = np.take_along_axis(src, index if varies else np.zeros_like(index), axis)
    assert_same(out, np.moveaxis(expected, 2, 0))


@triton.jit
def chase_kernel(next_ptr, out_ptr, count, N: tl.constexpr):
    n = tl.arange(0, N)
    follow = tl.load(next_ptr + n)
    at = n
    for _ in range(count):
        at = tl.gather(follow, at, 0)
    tl.store(out_ptr + n, at)


@pytest.mark.parametrize("n", [32, 1024])
def test_gather_of_what_was_gathered_in_a_loop(n: int) -> None:
    follow = np.random.default_rng(10).permutation(n).astype(np.int32)
    out = np.empty(n, np.int32)
    chase_kernel[(1,)](follow, out, 7, N=n)
    expected = np.arange(n)
    for _ in range(7):
        expected = follow[expected]
    assert_same(out, expected.astype(np.int32))


@triton.jit
def pointers_kernel(a_ptr, b_ptr, index_ptr, out_ptr, N: tl.constexpr):
    n = tl.arange(0, N)
    pointers = tl.cat(a_ptr + n, b_ptr + n, can_reorder=True)
    chosen = tl.gather(a_ptr + n, tl.load(index_ptr + n), 0)
    tl.store(out_ptr + n, tl.load(chosen))
    tl.store(out_ptr + N, tl.sum(tl.load(pointers)))


def test_pointers() -> None:
    rng = np.random.default_rng(11)
    a, b = (rng.integers(-100, 100, 64, dtype=np.int32) for _ in range(2))
    index = rng.integers(0, 64, 64, dtype=np.int32)
    out = np.empty(65, np.int32)
    pointers_kernel[(1,)](a, b, index, out, N=64)
    assert_same(out, np.append(a[index], a.sum() + b.sum()).astype(np.int32))


@triton.jit
def dequantize_kernel(code_ptr, packed_ptr, scale_ptr, out_ptr, N: tl.constexpr):
    code = tl.load(code_ptr + tl.arange(0, 16))
    packed = tl.load(packed_ptr + tl.program_id(0) * N + tl.arange(0, N))
    low = tl.gather(code, (packed & 15).to(tl.int32), 0)
    high = tl.gather(code, (packed >> 4).to(tl.int32), 0)
    scale = tl.load(scale_ptr + tl.program_id(0))
    tl.store(
        out_ptr + tl.program_id(0) * 2 * N + tl.arange(0, 2 * N), tl.interleave(low, high) * scale
    )


def test_dequantisation_with_a_table_of_sixteen() -> None:
    rng = np.random.default_rng(12)
    code = np.sort(rng.standard_normal(16, dtype=np.float32))
    packed = rng.integers(0, 256, (3, 512)).astype(np.uint8)
    scale = rng.standard_normal(3, dtype=np.float32)
    out = np.empty((3, 1024), np.float32)
    dequantize_kernel[(3,)](code, packed, scale, out, N=512)
    nibbles = np.stack([packed & 15, packed >> 4], axis=-1).reshape(3, 1024)
    assert_same(out, code[nibbles] * scale[:, None])


@needs_counters
def test_a_table_of_one_simdgroup_needs_no_memory() -> None:
    src = values(13, 32, "float32")
    index = np.random.default_rng(14).integers(0, 32, 512, dtype=np.int32)
    out = np.empty(512, np.float32)
    kernel = gather_kernel.warmup(src, index, out, S=32, N=512, grid=(1,))
    assert kernel.metadata.threadgroup_bytes == 0
