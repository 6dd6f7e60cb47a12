"""Every operation on integers that Metal holds in another type than theirs: lanes, program ids, bools, short ones.

A range of 32 elements is the `ushort` of the thread's lane, a program id a `uint`, and what is shorter than an int is
computed as one; functions and templates would go by those types.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from integer_model import binary, bits_of, unary, wrap
from kernel_support import assert_same, dtype, tl, triton


@triton.jit
def sources(KIND: tl.constexpr, N: tl.constexpr):
    """Two tiles of N elements."""
    index = tl.arange(0, N)
    if KIND == "range":
        return index, tl.arange(0, N) + 0
    elif KIND == "range and number":
        return index, 19
    elif KIND == "range and id":
        return index, tl.program_id(0)
    elif KIND == "id and range":
        return tl.program_id(0) + tl.zeros((N,), tl.int32), index
    elif KIND == "count and range":
        return tl.num_programs(0) + tl.zeros((N,), tl.int32), index
    elif KIND == "chosen":
        return tl.where(index < 7, index, tl.arange(0, N)), tl.where(index < 3, index, 7)
    elif KIND == "bools":
        return (index & 1) == 1, (index & 2) == 2
    elif KIND == "bool and range":
        return index > 5, index
    elif KIND == "int8":
        return (index - 8).to(tl.int8), (index * 37).to(tl.int8)
    elif KIND == "uint8":
        return (index + 240).to(tl.uint8), (index * 37).to(tl.uint8)
    elif KIND == "int16":
        return (index * 4099).to(tl.int16), (index - 3).to(tl.int16)
    elif KIND == "uint16":
        return (index + 65510).to(tl.uint16), (index * 4099).to(tl.uint16)
    elif KIND == "uint32":
        return index.to(tl.uint32), index.to(tl.uint32) + 4294967290
    else:
        return index.to(tl.int64), tl.program_id(0).to(tl.int64)


# The types of the operands, and of their results, as the language promotes them.
KINDS: dict[str, tuple[str, Callable[[int, int], int], Callable[[int, int], int]]] = {
    "range": ("int32", lambda i, n: i, lambda i, n: i),
    "range and number": ("int32", lambda i, n: i, lambda i, n: 19),
    "range and id": ("int32", lambda i, n: i, lambda i, n: 1),
    "id and range": ("int32", lambda i, n: 1, lambda i, n: i),
    "count and range": ("int32", lambda i, n: 2, lambda i, n: i),
    "chosen": ("int32", lambda i, n: i, lambda i, n: i if i < 3 else 7),
    "bools": ("int1", lambda i, n: i & 1, lambda i, n: i >> 1 & 1),
    "bool and range": ("int32", lambda i, n: int(i > 5), lambda i, n: i),
    "int8": ("int8", lambda i, n: wrap("int8", i - 8), lambda i, n: wrap("int8", i * 37)),
    "uint8": ("uint8", lambda i, n: wrap("uint8", i + 240), lambda i, n: wrap("uint8", i * 37)),
    "int16": ("int16", lambda i, n: wrap("int16", i * 4099), lambda i, n: wrap("int16", i - 3)),
    "uint16": (
        "uint16",
        lambda i, n: wrap("uint16", i + 65510),
        lambda i, n: wrap("uint16", i * 4099),
    ),
    "uint32": ("uint32", lambda i, n: i, lambda i, n: wrap("uint32", i + 4294967290)),
    "int64": ("int64", lambda i, n: i, lambda i, n: 1),
}

BINARY = (
    "+",
    "-",
    "*",
    "&",
    "|",
    "^",
    "//",
    "%",
    "<<",
    ">>",
    "minimum",
    "maximum",
    "<",
    "<=",
    ">",
    ">=",
    "==",
    "!=",
)


@triton.jit
def put(out, row: tl.constexpr, value, N: tl.constexpr):
    if tl.program_id(0) == 1:
        tl.store(out + row * N + tl.arange(0, N), value.to(tl.int64))


@triton.jit
def every_binary_kernel(out, KIND: tl.constexpr, WIDE: tl.constexpr, N: tl.constexpr):
    x, y = sources(KIND, N)
    put(out, 0, x + y, N)
    put(out, 1, x - y, N)
    put(out, 2, x * y, N)
    put(out, 3, x & y, N)
    put(out, 4, x | y, N)
    put(out, 5, x ^ y, N)
    # A bool and an int differ in signedness.
    if KIND != "bool and range":
        put(out, 6, x // y, N)
        put(out, 7, x % y, N)
    put(out, 8, x << y, N)
    put(out, 9, x >> y, N)
    put(out, 10, tl.minimum(x, y), N)
    put(out, 11, tl.maximum(x, y), N)
    put(out, 12, x < y, N)
    put(out, 13, x <= y, N)
    put(out, 14, x > y, N)
    put(out, 15, x >= y, N)
    put(out, 16, x == y, N)
    put(out, 17, x != y, N)
    if WIDE:
        put(out, 18, tl.umulhi(x, y), N)
        put(out, 19, tl.umulhi(x, x), N)


@pytest.mark.own_check("divides by zero, and takes remainders of negative numbers")
@pytest.mark.parametrize("size", [1, 2, 8, 32, 64, 128])
@pytest.mark.parametrize("kind", KINDS)
def test_every_binary_operation(kind: str, size: int) -> None:
    name, left, right = KINDS[kind]
    wide = bits_of(name) >= 32 and kind != "bool and range"
    out = np.zeros((20, size), np.int64)
    every_binary_kernel[(2,)](out, kind, wide, N=size, num_warps=1)
    pairs = [(left(i, size), right(i, size)) for i in range(size)]
    expected = [[binary(name, op, a, b) for a, b in pairs] for op in BINARY]
    if kind == "bool and range":
        expected[6] = expected[7] = [0] * size
    expected.append([binary(name, "umulhi", a, b) if wide else 0 for a, b in pairs])
    expected.append([binary(name, "umulhi", a, a) if wide else 0 for a, b in pairs])
    assert_same(out, np.array(expected, np.int64))


@triton.jit
def every_unary_kernel(out, floats, halves, KIND: tl.constexpr, N: tl.constexpr):
    index = tl.arange(0, N)
    x, y = sources(KIND, N)
    put(out, 0, -x, N)
    put(out, 1, ~x, N)
    put(out, 2, tl.abs(x), N)
    put(out, 3, x.to(tl.int8), N)
    put(out, 4, x.to(tl.uint8), N)
    put(out, 5, x.to(tl.int16), N)
    put(out, 6, x.to(tl.uint16), N)
    put(out, 7, x.to(tl.int32), N)
    put(out, 8, x.to(tl.uint32), N)
    put(out, 9, x.to(tl.int64), N)
    put(out, 10, x.to(tl.uint64), N)
    put(out, 11, x.to(tl.int1), N)
    put(out, 12, tl.where(index < 4, x, y), N)
    put(out, 13, tl.sum(x.to(tl.int32), 0) + tl.zeros((N,), tl.int32), N)
    put(out, 14, tl.max(x, 0) + tl.zeros((N,), tl.int32), N)
    if tl.program_id(0) == 1:
        tl.store(floats + index, x.to(tl.float32))
        tl.store(halves + index, x.to(tl.float16))
        tl.store(floats + N + index, x.to(tl.bfloat16).to(tl.float32))
        tl.store(floats + 2 * N + index, x.to(tl.float32) / 2)


@pytest.mark.parametrize("size", [1, 8, 32, 128])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if " and number" not in kind])
def test_every_unary_operation(kind: str, size: int) -> None:
    name, left, right = KINDS[kind]
    if kind == "bool and range":
        name = "int1"
    out = np.zeros((15, size), np.int64)
    floats, halves = np.zeros((3, size), np.float32), np.zeros(size, np.float16)
    every_unary_kernel[(2,)](out, floats, halves, kind, N=size, num_warps=1)
    x = [left(i, size) for i in range(size)]
    y = [right(i, size) for i in range(size)]
    expected: list[Any] = [[unary(name, op, a) for a in x] for op in ("-", "~", "abs")]
    for to in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64"):
        expected.append([wrap(to, a) for a in x])
    expected.append([wrap("int64", a) for a in x])
    expected.append([int(a != 0) for a in x])
    expected.append([a if i < 4 else b for i, (a, b) in enumerate(zip(x, y, strict=True))])
    expected.append([wrap("int32", sum(wrap("int32", a) for a in x))] * size)
    expected.append([wrap("int32", max(x))] * size)
    assert_same(out, np.array(expected, np.int64))
    exact = np.array(x, np.float64)
    assert_same(floats[0], exact.astype(np.float32))
    with np.errstate(over="ignore"):
        assert_same(halves, exact.astype(np.float32).astype(np.float16))
    assert_same(floats[1], exact.astype(dtype("bfloat16")).astype(np.float32))
    assert_same(floats[2], (exact / 2).astype(np.float32))


@triton.jit
def bits_kernel(out, N: tl.constexpr):
    index = tl.arange(0, N)
    tl.store(out + index, index.to(tl.float32, bitcast=True))
    tl.store(out + N + index, (tl.program_id(0) + index).to(tl.float32, bitcast=True))
    pid = tl.program_id(0).to(tl.float32, bitcast=True)
    tl.store(out + 2 * N + index, pid + tl.zeros((N,), tl.float32))


@pytest.mark.parametrize("size", [1, 32, 128])
def test_bits_of_lanes_and_ids(size: int) -> None:
    out = np.ones((3, size), np.float32)
    bits_kernel[(1,)](out, N=size, num_warps=1)
    index = np.arange(size, dtype=np.int32).view(np.float32)
    assert_same(out, np.array([index, index, index * 0]))


@triton.jit
def atomics_kernel(counts, out):
    lane = tl.arange(0, 32)
    tl.atomic_add(counts + lane, lane)
    tl.atomic_max(counts + 32 + lane, lane)
    tl.atomic_xchg(counts + 64 + lane, lane)
    tl.atomic_cas(counts + 96 + lane, lane * 0, lane)
    tl.store(out + lane, tl.xor_sum(lane, 0) + tl.min(tl.where(lane < 3, lane, lane), 0))


def test_atomics_and_reductions_of_lanes() -> None:
    counts, out = np.zeros((4, 32), np.int32), np.zeros(32, np.int32)
    atomics_kernel[(1,)](counts, out, num_warps=1)
    lane = np.arange(32, dtype=np.int32)
    assert_same(counts, np.array([lane] * 4))
    assert_same(out, np.zeros(32, np.int32))


@triton.jit
def uniform_kernel(out, s, t, trips, N: tl.constexpr):
    i = tl.arange(0, N)
    to = out.dtype.element_ty
    a, b = s.to(to), t.to(to)
    total = a + tl.zeros((N,), to)
    for _ in range(trips):
        total = total * b + a
    # Tiles of one number each, computed as a number, and cut to the type before they are widened.
    tile, other = total + tl.zeros((N,), to), b + tl.zeros((N,), to)
    tl.store(out + i, total)
    tl.store(out + N + i, ((total + b).to(tl.int64) >> 3).to(to))
    tl.store(out + 2 * N + i, ((tile * other).to(tl.int64) >> 3).to(to))
    tl.store(out + 3 * N + i, ((tile - other).to(tl.int64) // 3).to(to))
    tl.store(out + 4 * N + i, i.to(to) + (tile & other))
    tl.store(out + 5 * N + i, i.to(to) * (tile ^ other))


@pytest.mark.parametrize("size", [32, 512])
@pytest.mark.parametrize("name", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
def test_tiles_of_one_number(name: str, size: int) -> None:
    s, t = 65534, 40503
    out = np.zeros((6, size), name)
    uniform_kernel[(1,)](out, s, t, 3, N=size, num_warps=1)
    a, b = wrap(name, s), wrap(name, t)
    total = a
    for _ in range(3):
        total = binary(name, "+", binary(name, "*", total, b), a)
    rows = [[total] * size]
    for op in "+*":
        rows.append([wrap(name, binary("int64", ">>", binary(name, op, total, b), 3))] * size)
    rows.append([wrap(name, binary("int64", "//", binary(name, "-", total, b), 3))] * size)
    rows.append([wrap(name, i + (total & b)) for i in range(size)])
    rows.append([wrap(name, i * (total ^ b)) for i in range(size)])
    assert_same(out, np.array(rows, name))
