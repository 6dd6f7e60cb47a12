"""Offsets that are permuted, or not linear, in a thread's registers: every way to take the registers must find them."""

from __future__ import annotations

import numpy as np
import pytest

from kernel_support import assert_same, tl, triton

# What becomes of an index on an axis of n: each is a permutation of 0..n-1.
ORDERS = {
    "plain": lambda i, n: i,
    "rotated": lambda i, n: (i + 1) & (n - 1),
    "reversed": lambda i, n: n - 1 - i,
    "times_5": lambda i, n: (i * 5) & (n - 1),
    "flipped": lambda i, n: i ^ (n // 2 + 1) & (n - 1),
    "gray": lambda i, n: i ^ (i >> 1),
    "rotated_gray": lambda i, n: ((i ^ (i >> 1)) + 3) & (n - 1),
}


@triton.jit
def order(i, N: tl.constexpr, ORDER: tl.constexpr):
    if ORDER == "rotated":
        i = (i + 1) & (N - 1)
    elif ORDER == "reversed":
        i = N - 1 - i
    elif ORDER == "times_5":
        i = (i * 5) & (N - 1)
    elif ORDER == "flipped":
        i = i ^ (N // 2 + 1) & (N - 1)
    elif ORDER == "gray":
        i = i ^ (i >> 1)
    elif ORDER == "rotated_gray":
        i = ((i ^ (i >> 1)) + 3) & (N - 1)
    return i


@triton.jit
def copy_kernel(
    x_ptr,
    out_ptr,
    limit,
    A: tl.constexpr,
    B: tl.constexpr,
    C: tl.constexpr,
    LOADED: tl.constexpr,
    STORED: tl.constexpr,
    PADDED: tl.constexpr,
    MASK: tl.constexpr,
    MATH: tl.constexpr,
    ATOMIC: tl.constexpr,
):
    a = tl.arange(0, A)[:, None, None]
    b = tl.arange(0, B)[None, :, None]
    c = tl.arange(0, C)[None, None, :]
    from_offsets = order(a, A, LOADED) * (B * C) + order(b, B, LOADED) * C + order(c, C, LOADED)
    to_offsets = order(a, A, STORED) * C + order(b, B, STORED) * PADDED + order(c, C, STORED)
    if MASK == "load":
        x = tl.load(x_ptr + from_offsets, mask=from_offsets < limit, other=7)
    else:
        x = tl.load(x_ptr + from_offsets)
    if MATH:
        x = tl.floor(tl.sqrt(x.to(tl.float32) * x.to(tl.float32)) + 0.5).to(x.dtype)
    if ATOMIC:
        tl.atomic_add(out_ptr + to_offsets, x)
    elif MASK == "store":
        tl.store(out_ptr + to_offsets, x, mask=from_offsets < limit)
    else:
        tl.store(out_ptr + to_offsets, x)


def check(
    shape: tuple[int, int, int],
    name: str,
    loaded: str,
    stored: str,
    mask: str = "none",
    math: bool = True,
    atomic: bool = False,
    num_warps: int = 1,
) -> None:
    rng = np.random.default_rng(0)
    count = int(np.prod(shape))
    limit = count - 5
    padded = shape[0] * shape[2] + 1
    x = (rng.permutation(count) % 100 + 1).astype(name)
    a, b, c = np.ogrid[tuple(slice(0, n) for n in shape)]
    (fa, fb, fc), (ta, tb, tc) = (
        [ORDERS[which](i, n) for i, n in zip((a, b, c), shape, strict=True)]
        for which in (loaded, stored)
    )
    source = fa * (shape[1] * shape[2]) + fb * shape[2] + fc
    target = ta * shape[2] + tb * padded + tc
    expected = np.zeros(shape[1] * padded, x.dtype)
    value = x[source]
    if mask == "load":
        value = np.where(source < limit, value, np.array(7, x.dtype))
    written = source < limit if mask == "store" else np.full(shape, True)
    expected[target[written]] = value[written]
    out = np.zeros_like(expected)
    copy_kernel[(1,)](
        x,
        out,
        limit,
        *shape,
        LOADED=loaded,
        STORED=stored,
        PADDED=padded,
        MASK=mask,
        MATH=math,
        ATOMIC=atomic,
        num_warps=num_warps,
    )
    assert_same(out, expected)


@pytest.mark.parametrize("stored", ORDERS)
@pytest.mark.parametrize("loaded", ["plain", "rotated", "flipped"])
@pytest.mark.parametrize("shape", [(1, 1, 64), (1, 8, 8), (4, 8, 4), (4, 16, 4)], ids=str)
def test_every_order(shape: tuple[int, int, int], loaded: str, stored: str) -> None:
    check(shape, "float32", loaded, stored)


@pytest.mark.parametrize("mask", ["load", "store"])
@pytest.mark.parametrize("orders", [("plain", "rotated"), ("rotated_gray", "plain")], ids=str)
@pytest.mark.parametrize("shape", [(1, 1, 64), (4, 8, 4), (4, 16, 4)], ids=str)
def test_masks(shape: tuple[int, int, int], orders: tuple[str, str], mask: str) -> None:
    check(shape, "float32", *orders, mask=mask)


@pytest.mark.parametrize("name", ["int8", "float16", "int32", "int64"])
@pytest.mark.parametrize("orders", [("plain", "rotated"), ("times_5", "gray")], ids=str)
def test_dtypes(orders: tuple[str, str], name: str) -> None:
    check((4, 8, 4), name, *orders, math=name != "int64")


@pytest.mark.parametrize("math", [False, True])
@pytest.mark.parametrize("shape", [(1, 1, 64), (4, 8, 4), (4, 16, 4)], ids=str)
@pytest.mark.parametrize("stored", ["rotated", "flipped"])
def test_atomics(stored: str, shape: tuple[int, int, int], math: bool) -> None:
    check(shape, "int32", "plain", stored, math=math, atomic=True)


@pytest.mark.parametrize("num_warps", [2, 4])
def test_several_simd_groups(num_warps: int) -> None:
    check((4, 16 * num_warps, 4), "float32", "times_5", "rotated_gray", num_warps=num_warps)
