"""Block pointers and tensor descriptors in our own language, against NumPy."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl
from triton_metal.errors import CompileError, LaunchValueError
from triton_metal.tools.tensor_descriptor import TensorDescriptor

from _arrays import numpy_dtype
from kernel_support import FLOATS, INTEGERS, ON_STOCK

pytestmark = pytest.mark.skipif(ON_STOCK, reason="host descriptors are ours here")

RNG = np.random.default_rng(5)


def array(shape: tuple[int, ...], name: str) -> np.ndarray:
    if name == "bool":
        return RNG.integers(0, 2, shape).astype(bool)
    kind = numpy_dtype(name)
    return RNG.integers(-100 if name[0] != "u" else 0, 100, shape).astype(kind)


def window(
    x: np.ndarray, at: tuple[int, ...], block: tuple[int, ...], other: Any = 0
) -> np.ndarray:
    """A block of an array, with another value outside."""
    out = np.full(block, other, dtype=x.dtype)
    for place in np.ndindex(*block):
        where = tuple(a + p for a, p in zip(at, place, strict=True))
        if all(0 <= w < n for w, n in zip(where, x.shape, strict=True)):
            out[place] = x[where]
    return out


def put(x: np.ndarray, at: tuple[int, ...], tile: np.ndarray) -> None:
    """Writes a block into an array, but for what is outside."""
    for place in np.ndindex(*tile.shape):
        where = tuple(a + p for a, p in zip(at, place, strict=True))
        if all(0 <= w < n for w, n in zip(where, x.shape, strict=True)):
            x[where] = tile[place]


@triton.jit
def move(x, y, m, n, stride, i, j, BM: tl.constexpr, BN: tl.constexpr, PAD: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [m, n], [stride, 1], [BM, BN], padding_option=PAD)
    rows, columns = tl.arange(0, BM)[:, None], tl.arange(0, BN)[None, :]
    tl.store(y + rows * BN + columns, source.load([i, j]))


@triton.jit
def put_block(x, y, m, n, stride, i, j, BM: tl.constexpr, BN: tl.constexpr):
    target = tl.make_tensor_descriptor(y, [m, n], [stride, 1], [BM, BN])
    rows, columns = tl.arange(0, BM)[:, None], tl.arange(0, BN)[None, :]
    target.store([i, j], tl.load(x + rows * BN + columns))


PLACES = [(0, 0), (3, 5), (-2, -3), (8, 16), (-100, 0), (0, 1 << 30), (-(1 << 31), (1 << 31) - 1)]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("shape", [(13, 21), (8, 16), (3, 5), (1, 1), (0, 7), (7, 0)])
def test_a_descriptor_reads_and_writes_what_is_inside(
    shape: tuple[int, int], place: tuple[int, int]
) -> None:
    m, n = shape
    stride = n + 3
    memory = RNG.standard_normal((m + 1, stride)).astype(np.float32)
    for pad, other in (("zero", 0), ("nan", np.nan)):
        out = np.full((8, 16), 7, np.float32)
        move[(1,)](memory, out, m, n, stride, *place, BM=8, BN=16, PAD=pad)
        np.testing.assert_array_equal(out, window(memory[:m, :n], place, (8, 16), other))
    tile = RNG.standard_normal((8, 16)).astype(np.float32)
    wanted = memory.copy()
    put(wanted[:m, :n], place, tile)
    put_block[(1,)](tile, memory, m, n, stride, *place, BM=8, BN=16)
    np.testing.assert_array_equal(memory, wanted)


NAMES = [*FLOATS, *INTEGERS, pytest.param("float64", marks=pytest.mark.own_route), "bool"]


@pytest.mark.parametrize("name", NAMES)
def test_a_descriptor_of_each_dtype(name: str) -> None:
    x = array((11, 32), name)
    out = np.zeros((8, 32), x.dtype)
    move[(1,)](x, out, 11, 32, 32, 5, -1, BM=8, BN=32, PAD="zero")
    np.testing.assert_array_equal(out, window(x, (5, -1), (8, 32)))
    put_block[(1,)](out, x, 11, 32, 32, 5, -1, BM=8, BN=32)
    wanted = x.copy()
    put(wanted, (5, -1), out)
    np.testing.assert_array_equal(x, wanted)


@triton.jit
def copy_deep(x, y, shape, strides, at, block: tl.constexpr, elements: tl.constexpr):
    d = tl.make_tensor_descriptor(x, shape, strides, block)
    tl.store(y + tl.arange(0, elements), d.load(at).reshape([elements]))


@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
def test_a_descriptor_of_each_rank(rank: int) -> None:
    shape = (3, 5, 2, 7, 9)[-rank:]
    block = (2, 4, 1, 4, 8)[-rank:]
    at = (2, -1, 1, 3, 4)[-rank:]
    x = RNG.standard_normal(shape).astype(np.float32)
    steps = tuple(stride // 4 for stride in x.strides)

    names = ", ".join(f"n{i}" for i in range(rank))
    kernel = KERNELS[rank]
    out = np.full(block, 7, np.float32)
    kernel[(1,)](x, out, *shape, *steps[:-1], *at, BLOCK=block, ELEMENTS=out.size)
    np.testing.assert_array_equal(out, window(x, at, block))
    assert names


@triton.jit
def deep1(x, y, a, i, BLOCK: tl.constexpr, ELEMENTS: tl.constexpr):
    copy_deep(x, y, (a,), (1,), (i,), BLOCK, ELEMENTS)


@triton.jit
def deep2(x, y, a, b, s, i, j, BLOCK: tl.constexpr, ELEMENTS: tl.constexpr):
    copy_deep(x, y, (a, b), (s, 1), (i, j), BLOCK, ELEMENTS)


@triton.jit
def deep3(x, y, a, b, c, s, t, i, j, k, BLOCK: tl.constexpr, ELEMENTS: tl.constexpr):
    copy_deep(x, y, (a, b, c), (s, t, 1), (i, j, k), BLOCK, ELEMENTS)


@triton.jit
def deep4(x, y, a, b, c, d, s, t, u, i, j, k, h, BLOCK: tl.constexpr, ELEMENTS: tl.constexpr):
    copy_deep(x, y, (a, b, c, d), (s, t, u, 1), (i, j, k, h), BLOCK, ELEMENTS)


@triton.jit
def deep5(
    x, y, a, b, c, d, e, s, t, u, v, i, j, k, h, m, BLOCK: tl.constexpr, ELEMENTS: tl.constexpr
):
    copy_deep(x, y, (a, b, c, d, e), (s, t, u, v, 1), (i, j, k, h, m), BLOCK, ELEMENTS)


KERNELS = {1: deep1, 2: deep2, 3: deep3, 4: deep4, 5: deep5}


@triton.jit
def update(x, y, m, n, i, j, HOW: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    target = tl.make_tensor_descriptor(y, [m, n], [n, 1], [BM, BN])
    v = tl.load(x + tl.arange(0, BM)[:, None] * BN + tl.arange(0, BN)[None, :])
    if HOW == "add":
        target.atomic_add([i, j], v)
    elif HOW == "min":
        target.atomic_min([i, j], v)
    elif HOW == "max":
        target.atomic_max([i, j], v)
    elif HOW == "and":
        target.atomic_and([i, j], v)
    elif HOW == "or":
        target.atomic_or([i, j], v)
    else:
        target.atomic_xor([i, j], v)


UPDATES = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


@pytest.mark.parametrize(
    ("name", "how"),
    [
        *itertools.product(["int32", "uint32", "int64", "uint64"], UPDATES),
        *itertools.product(["float16", "float32"], ["add", "min", "max"]),
    ],
)
def test_updates_of_a_block(name: str, how: str) -> None:
    x, y = array((4, 16), name), array((9, 20), name)
    if name.startswith("u"):
        y[0] = np.iinfo(y.dtype).max - 3
    wanted = y.copy()
    put(wanted, (-1, 9), UPDATES[how](window(y, (-1, 9), (4, 16)), x).astype(y.dtype))
    update[(1,)](x, y, 9, 20, -1, 9, HOW=how, BM=4, BN=16)
    np.testing.assert_array_equal(y, wanted)


@triton.jit
def gather_rows(x, y, rows, m, n, j, R: tl.constexpr, BN: tl.constexpr):
    d = tl.make_tensor_descriptor(x, [m, n], [n, 1], [1, BN])
    which = tl.load(rows + tl.arange(0, R))
    tl.store(y + tl.arange(0, R)[:, None] * BN + tl.arange(0, BN)[None, :], d.gather(which, j))


@triton.jit
def scatter_rows(x, y, rows, m, n, j, R: tl.constexpr, BN: tl.constexpr):
    d = tl.make_tensor_descriptor(y, [m, n], [n, 1], [1, BN])
    which = tl.load(rows + tl.arange(0, R))
    d.scatter(tl.load(x + tl.arange(0, R)[:, None] * BN + tl.arange(0, BN)[None, :]), which, j)


@pytest.mark.parametrize("kind", [np.int16, np.int32])
@pytest.mark.parametrize("j", [0, 5, -4, 100])
def test_rows(kind: Any, j: int) -> None:
    x = RNG.standard_normal((12, 20)).astype(np.float32)
    rows = np.array([3, 0, 11, -1, 12, 7, 30000, -5], kind)
    out = np.full((8, 16), 7, np.float32)
    gather_rows[(1,)](x, out, rows, 12, 20, j, R=8, BN=16)
    wanted = np.concatenate([window(x, (int(row), j), (1, 16)) for row in rows])
    np.testing.assert_array_equal(out, wanted)
    tile, wanted = RNG.standard_normal((8, 16)).astype(np.float32), x.copy()
    for row, values in zip(rows, tile, strict=True):
        put(wanted, (int(row), j), values[None])
    scatter_rows[(1,)](tile, x, rows, 12, 20, j, R=8, BN=16)
    np.testing.assert_array_equal(x, wanted)


# --- Block pointers ---------------------------------------------------------------------------------


@triton.jit
def sum_columns(
    x, y, m, n, sm, sn, BM: tl.constexpr, BN: tl.constexpr, CHECK: tl.constexpr, PAD: tl.constexpr
):
    block = tl.make_block_ptr(x, (m, n), (sm, sn), (tl.program_id(0) * BM, 0), (BM, BN), (1, 0))
    total = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, n, BN):
        total += tl.load(block, boundary_check=CHECK, padding_option=PAD)
        block = tl.advance(block, (0, BN))
    out = tl.make_block_ptr(y, (m,), (1,), (tl.program_id(0) * BM,), (BM,), (0,))
    tl.store(out, tl.sum(total, 1), boundary_check=(0,))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(13, 40), (16, 32), (3, 5), (1, 100)])
def test_a_block_pointer_in_a_loop(shape: tuple[int, int], order: str) -> None:
    x = np.asarray(RNG.integers(-9, 9, shape), np.float32, order=order)
    steps = [stride // 4 for stride in x.strides]
    out = np.full(shape[0] + 1, 7, np.float32)
    memory = x.ravel(order="K")
    sum_columns[(-(-shape[0] // 4),)](
        memory, out, *shape, *steps, BM=4, BN=16, CHECK=(0, 1), PAD="zero"
    )
    np.testing.assert_array_equal(out[:-1], x.sum(1))
    assert out[-1] == 7


@triton.jit(do_not_specialize=["flag"])
def either(x, y, n, flag, BN: tl.constexpr):
    a = tl.make_block_ptr(x, (n,), (1,), (0,), (BN,), (0,))
    b = tl.make_block_ptr(y, (n,), (1,), (4,), (BN,), (0,))
    if flag > 0:
        c = a
    else:
        c = tl.advance(b, (tl.load(y).to(tl.int32),))
    while flag < 3:
        c = tl.advance(c, (1,))
        flag += 1
    tl.store(
        c, c.dtype.element_ty(5) if False else tl.full((BN,), 5, tl.float32), boundary_check=[0]
    )


@pytest.mark.parametrize("flag", [-1, 1])
def test_block_pointers_through_branches_and_loops(flag: int) -> None:
    x, y = np.zeros(16, np.float32), np.ones(16, np.float32)
    wanted = [x.copy(), y.copy()]
    if flag > 0:
        wanted[0][2:10] = 5
    else:
        wanted[1][9:] = 5
    either[(1,)](x, y, 16, flag, BN=8)
    np.testing.assert_array_equal([x, y], wanted)


@triton.jit
def as_before(a, b, i):
    return a.load([i, 0]) - b.load([i, 0])


@triton.jit
def swap(x, y, out, m, n, flag, BM: tl.constexpr, BN: tl.constexpr):
    a = tl.make_tensor_descriptor(x, [m, n], [n, 1], [BM, BN])
    b = tl.make_tensor_descriptor(y, [m, n], [n, 1], [BM, BN])
    total = tl.zeros((BM, BN), tl.float32)
    for i in range(a.shape[0] // BM):
        total += as_before(a, b, i * BM)
        if flag > i:
            a, b = b, a
    tl.store_tensor_descriptor(
        tl.make_tensor_descriptor(out, [BM, BN], [BN, 1], [BM, BN]), [0, 0], total
    )


def test_descriptors_through_calls_and_branches() -> None:
    x, y = RNG.integers(-9, 9, (2, 16, 16)).astype(np.float32)
    out = np.zeros((4, 16), np.float32)
    swap[(1,)](x, y, out, 16, 16, 2, BM=4, BN=16)
    wanted = sum(
        sign * (x[i : i + 4] - y[i : i + 4])
        for i, sign in zip((0, 4, 8, 12), (1, -1, 1, 1), strict=True)
    )
    np.testing.assert_array_equal(out, wanted)


@triton.jit
def move_any(
    x, out, v, m, n, sm, sn, i, j, first, BM: tl.constexpr, BN: tl.constexpr, PAD: tl.constexpr
):
    block = tl.make_block_ptr(x + first, (m, n), (sm, sn), (i, 0), (BM, BN), (0, 1))
    block = tl.advance(block, (0, j))
    places = tl.arange(0, BM)[:, None] * BN + tl.arange(0, BN)[None, :]
    tl.store(out + places, tl.load(block, boundary_check=(1, 0), padding_option=PAD))
    tl.store(block, tl.load(v + places), boundary_check=(0, 1))


STRIDES = [(40, 1), (1, 30), (-40, 1), (40, -1), (3, 90), (-1, -30)]


@pytest.mark.parametrize("seed", range(24))
def test_block_pointers_with_any_strides(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kind = numpy_dtype(["float32", "int8", "float16", "int64"][seed % 4])
    bm, bn = rng.choice([1, 2, 8, 16]), rng.choice([1, 4, 16, 32])
    m, n = rng.integers(0, 20), rng.integers(0, 30)
    sm, sn = STRIDES[seed % len(STRIDES)]
    i, j = rng.integers(-20, 25), rng.integers(-40, 35)
    first = 1500
    memory = rng.integers(-50, 50, 4500).astype(kind)
    pad = "nan" if np.issubdtype(kind, np.floating) and seed % 3 else "zero"
    tile, wanted = rng.integers(-50, 50, (bm, bn)).astype(kind), memory.copy()
    block = np.full((bm, bn), np.nan if pad == "nan" else 0).astype(kind)
    for a, b in np.ndindex(bm, bn):
        if 0 <= i + a < m and 0 <= j + b < n:
            place = first + (i + a) * sm + (j + b) * sn
            block[a, b], wanted[place] = memory[place], tile[a, b]
    out = np.zeros((bm, bn), kind)
    numbers = (int(number) for number in (m, n, sm, sn, i, j, first))
    move_any[(1,)](memory, out, tile, *numbers, BM=int(bm), BN=int(bn), PAD=pad)
    np.testing.assert_array_equal(out, block)
    np.testing.assert_array_equal(memory, wanted)


# --- Host descriptors -------------------------------------------------------------------------------


@triton.jit
def copy_host(source, target, i, j):
    target.store([i, j], source.load([i, j]) + source.shape[0])


def test_host_descriptors() -> None:
    x, y = RNG.standard_normal((13, 20)).astype(np.float32), np.zeros((13, 20), np.float32)
    wanted = y.copy()
    put(wanted, (8, 16), window(x, (8, 16), (8, 16)) + 13)
    copy_host[(1,)](
        TensorDescriptor.from_tensor(x, [8, 16]), TensorDescriptor.from_tensor(y, [8, 16]), 8, 16
    )
    np.testing.assert_array_equal(y, wanted)


def test_host_descriptors_of_views() -> None:
    memory = np.arange(20 * 64, dtype=np.float32).reshape(20, 64)
    into = np.zeros((20, 64), np.float32)
    source, target = memory[2:15, :50], into[3:16, :50]
    for i in (0, 8):
        copy_host[(1,)](
            TensorDescriptor.from_tensor(source, [8, 64]),
            TensorDescriptor.from_tensor(target, [8, 64]),
            i,
            0,
        )
    wanted = np.zeros_like(into)
    wanted[3:16, :50] = source + 13
    np.testing.assert_array_equal(into, wanted)


@triton.jit
def load_host(source, out, N: tl.constexpr):
    tl.store(out + tl.arange(0, N), source.load([tl.program_id(0)]))


def test_padding_and_rounding_of_host_descriptors() -> None:
    x = np.array([1 + 2**-11, 1 + 3 * 2**-11, -np.inf, np.nan, 3.4e38, 1e-40], np.float32)
    out = np.zeros(8, np.float32)
    load_host[(1,)](TensorDescriptor(x, [6], [1], [8], padding="nan"), out, N=8)
    np.testing.assert_array_equal(out, [*x, np.nan, np.nan])
    load_host[(1,)](TensorDescriptor(x, [6], [1], [8], round_f32_to_tf32=True), out, N=8)
    bits = x.view(np.uint32)
    rounded = ((bits + 0xFFF + (bits >> 13 & 1)) & np.uint32(0xFFFFE000)).view(np.float32)
    wanted = np.where(np.isfinite(x), rounded, x)
    np.testing.assert_array_equal(out, [*wanted, 0, 0])


@triton.jit
def load_both(a, b, out, BM: tl.constexpr, BN: tl.constexpr):
    at = tl.arange(0, BM)[:, None] * BN + tl.arange(0, BN)[None, :]
    tl.store(out + at, a.load([0, 0]))
    tl.store(out + BM * BN + at, b.load([0, 0]))


def test_descriptors_of_one_array_are_their_own() -> None:
    memory = np.arange(1, 257, dtype=np.float32) * np.float32(1 + 2**-20)
    square, flat = memory.reshape(16, 16), memory.reshape(8, 32)
    pairs = [(square, square[:2]), (square[:, :8], square), (square, flat), (square, square.copy())]
    kinds: list[dict[str, Any]] = [{}, {"padding": "nan"}, {"round_f32_to_tf32": True}]
    for (x, y), first, second in itertools.product(pairs, kinds, kinds):
        out = np.zeros((2, 4, 64), np.float32)
        load_both[(1,)](
            *(
                TensorDescriptor(v, list(v.shape), [s // 4 for s in v.strides], [4, 64], **kind)
                for v, kind in ((x, first), (y, second))
            ),
            out,
            BM=4,
            BN=64,
        )
        for v, kind, got in ((x, first, out[0]), (y, second, out[1])):
            if "round_f32_to_tf32" in kind:
                bits = np.ascontiguousarray(v).view(np.uint32)
                v = (bits + 0xFFF + (bits >> 13 & 1) & np.uint32(0xFFFFE000)).view(np.float32)
            other = np.nan if "padding" in kind else 0
            np.testing.assert_array_equal(got, window(v, (0, 0), (4, 64), other))


@triton.jit
def both_updates(x, n, BLOCK: tl.constexpr):
    d = tl.make_tensor_descriptor(x, [n], [1], [BLOCK])
    d.atomic_and([0], tl.zeros([BLOCK], tl.int32))
    d.atomic_max([5], tl.arange(0, BLOCK))


@pytest.mark.parametrize("num_warps", [1, 4, 8])
def test_updates_of_different_kinds_come_in_their_order(num_warps: int) -> None:
    x = np.full(264, 700, np.int32)
    wanted = x.copy()
    wanted[:256] = 0
    wanted[5:261] = np.maximum(wanted[5:261], np.arange(256))
    both_updates[(1,)](x, 264, BLOCK=256, num_warps=num_warps)
    np.testing.assert_array_equal(x, wanted)


@triton.jit
def product_of_host_descriptors(A, B, C, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(A.load([m, k]), B.load([n, k]).T, acc)
    C.store([m, n], acc)


def test_a_launch_knows_the_sizes_of_host_descriptors() -> None:
    a = RNG.integers(-3, 4, (40, 48)).astype(np.float16)
    b = RNG.integers(-3, 4, (72, 48)).astype(np.float16)
    c = np.full((40, 72), np.nan, np.float32)
    kernel = product_of_host_descriptors[(2, 2)](
        TensorDescriptor.from_tensor(a, [32, 32]),
        TensorDescriptor.from_tensor(b, [64, 32]),
        TensorDescriptor.from_tensor(c, [32, 64]),
        48,
        32,
        64,
        32,
    )
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32).T)
    # Rows of 48 numbers end between two vectors: none is loaded number by number. What is passed twice is read once.
    text = kernel.asm["metal"]
    assert "A_size" not in text
    assert "_shape_1" in text
    assert not re.search(r"\? \w+\[", text)


def test_a_grid_function_sees_the_descriptor() -> None:
    x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    load_host[lambda meta: (meta["source"].shape[0] // 8,)](
        TensorDescriptor.from_tensor(x, [8]), out, N=8
    )
    np.testing.assert_array_equal(out, x)


# --- Bad input --------------------------------------------------------------------------------------


@triton.jit
def bad_stride(x):
    tl.make_tensor_descriptor(x, [8, 8], [1, 8], [8, 8])


@triton.jit
def bad_rank(x):
    tl.make_tensor_descriptor(x, [8], [8, 1], [8, 8])


@triton.jit
def bad_padding(x):
    tl.make_tensor_descriptor(x, [8], [1], [8], padding_option="one")


@triton.jit
def bad_offsets(x):
    tl.make_tensor_descriptor(x, [8, 8], [8, 1], [8, 8]).load([0])


@triton.jit
def bad_store(x):
    tl.make_tensor_descriptor(x, [8], [1], [8]).store([0], tl.zeros((16,), tl.float32))


@triton.jit
def bad_order(x):
    tl.make_block_ptr(x, (8, 8), (8, 1), (0, 0), (8, 8), (1, 1))


@triton.jit
def bad_check(x):
    tl.load(tl.make_block_ptr(x, (8,), (1,), (0,), (8,), (0,)), boundary_check=(1,))


@triton.jit
def bad_mask(x):
    tl.load(tl.make_block_ptr(x, (8,), (1,), (0,), (8,), (0,)), mask=tl.arange(0, 8) < 4)


@triton.jit
def bad_pointer(x):
    tl.load(x + tl.arange(0, 8), boundary_check=(0,))


@triton.jit
def bad_block_padding(x):
    b = tl.make_block_ptr(x, (8,), (1,), (0,), (8,), (0,))
    tl.load(b, boundary_check=(0,), padding_option="one")


@triton.jit
def bad_rows(x):
    d = tl.make_tensor_descriptor(x, [8, 8], [8, 1], [2, 8])
    d.gather(tl.arange(0, 8), 0)


@triton.jit
def bad_attribute(x):
    tl.make_tensor_descriptor(x, [8], [1], [8]).swizzle


@triton.jit(do_not_specialize=["flag"])
def bad_branch(x, flag=2):
    if flag > 0:
        d = tl.make_tensor_descriptor(x, [8], [1], [8])
    else:
        d = tl.make_tensor_descriptor(x, [8], [1], [4])
    d.store([0], 0.0)


BAD = [
    (bad_branch, r"a tensor_descriptor with blocks \[8\] of fp32"),
    (bad_stride, "the last stride is 8"),
    (bad_rank, "1 sizes are given for a block of 2 dimensions"),
    (bad_padding, "padding_option is 'one'"),
    (bad_offsets, "1 offsets are given for a block of 2 dimensions"),
    (bad_store, r"a block of float32\[8\] is stored, and the value is float32\[16\]"),
    (bad_order, "order must list each of the 2 dimensions once"),
    (bad_check, "boundary_check lists dimensions of the block"),
    (bad_mask, "a block pointer has no mask"),
    (bad_pointer, "boundary_check and padding_option are for block pointers"),
    (bad_block_padding, "padding_option is 'one'"),
    (bad_rows, "the descriptor's block must be one row"),
    (bad_attribute, "a tensor_descriptor has no attribute 'swizzle'"),
]


@pytest.mark.parametrize(("kernel", "message"), BAD, ids=[kernel.name for kernel, _ in BAD])
def test_bad_input_points_at_the_line(kernel: Any, message: str) -> None:
    with pytest.raises(CompileError, match=message) as caught:
        kernel[(1,)](np.zeros(64, np.float32))
    assert caught.value.location.file.endswith("test_language_descriptors.py")


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (([8, 8], [1, 8], [8, 8]), "the last stride of a tensor descriptor is 8"),
        (([8, 8], [1], [8, 8]), "strides of a tensor descriptor has 1 numbers"),
        (([8], [1], [6]), "is a power of 2, not 6"),
        (([8], [1], [8], "one"), "padding of a tensor descriptor is 'one'"),
        (([-1], [1], [8]), "from 0 to"),
    ],
)
def test_bad_host_descriptors(parts: tuple[Any, ...], message: str) -> None:
    with pytest.raises(LaunchValueError, match=message):
        TensorDescriptor(np.zeros(64, np.float32), *parts)
