"""Numbers that are known while compiling give what the same numbers give at run time, at and beyond every edge.

Each operation is written with a constexpr and with an argument, alone, chosen by tl.where and carried through a loop.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from integer_model import NAMES, binary, edges
from kernel_support import FLOATS, assert_same, dtype, tl, triton


@triton.jit
def operations(x, y, OP: tl.constexpr):
    if OP == "//":
        return x // y
    elif OP == "%":
        return x % y
    elif OP == "<<":
        return x << y
    else:
        return x >> y


@triton.jit
def constant_kernel(x_ptr, out_ptr, y, flag, OP: tl.constexpr, Y: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, operations(x, y.to(x.dtype), OP))
    tl.store(out_ptr + N + i, operations(x, Y, OP))
    tl.store(out_ptr + 2 * N + i, operations(x, tl.full((N,), Y, x.dtype), OP))
    tl.store(out_ptr + 3 * N + i, operations(x, tl.where(x == x, Y, Y).to(x.dtype), OP))
    carried = tl.full((), Y, x.dtype)
    for _ in range(flag):
        carried = tl.minimum(carried, Y)
    tl.store(out_ptr + 4 * N + i, operations(x, carried, OP))
    known = tl.full((), 1, x.dtype)
    for _ in range(3):
        known = tl.full((), Y, x.dtype)
    tl.store(out_ptr + 5 * N + i, operations(x, known, OP))
    # The scalar on the left as well.
    first = tl.load(x_ptr)
    tl.store(out_ptr + 6 * N + i, operations(first, Y, OP) + tl.zeros((N,), x.dtype))
    tl.store(out_ptr + 7 * N + i, operations(first, y.to(x.dtype), OP) + tl.zeros((N,), x.dtype))


CASES = [
    (name, op, y)
    for name in NAMES
    for op, numbers in (("//", (0, -1)), ("%", (0, -1)), ("<<", (8, 33, 64)), (">>", (8, 40, 64)))
    for y in numbers
    if y >= 0 or name.startswith("int")
]


@pytest.mark.own_check("divides by zero, and takes remainders of negative numbers")
@pytest.mark.parametrize(("name", "op", "y"), CASES)
def test_constants_and_arguments_agree(name: str, op: str, y: int) -> None:
    x = np.resize(np.array(edges(name), name), 64)
    x[0] = np.iinfo(name).min
    out = np.full((8, 64), 99, name)
    constant_kernel[(1,)](x, out, y, 2, OP=op, Y=y, N=64, num_warps=1)
    expected = np.array([binary(name, op, int(v), y) for v in x], name)
    for row in out[:6]:
        assert_same(row, expected)
    for row in out[6:]:
        assert_same(row, np.resize(expected[:1], 64))


@triton.jit
def amounts_kernel(x_ptr, y_ptr, out_ptr, OP: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, operations(x, tl.load(y_ptr + i), OP))


@pytest.mark.own_check("divides by zero, and takes remainders of negative numbers")
@pytest.mark.parametrize("size", [32, 128])
@pytest.mark.parametrize("op", ["//", "%", "<<", ">>"])
@pytest.mark.parametrize("name", NAMES)
def test_operands_beyond_every_edge(name: str, op: str, size: int) -> None:
    near = np.array(edges(name), name)
    x, y = (side.ravel() for side in np.meshgrid(near, near))
    for start in range(0, x.size, size):
        a, b = (np.resize(side[start:], size) for side in (x, y))
        out = np.zeros(size, name)
        amounts_kernel[(1,)](a, b, out, OP=op, N=size, num_warps=1)
        expected = [binary(name, op, int(v), int(w)) for v, w in zip(a, b, strict=True)]
        assert_same(out, np.array(expected, name))


@triton.jit
def convert_kernel(out_ptr, x_ptr, NUMBERS: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    to = out_ptr.dtype.element_ty
    for k in tl.static_range(len(NUMBERS)):
        x = tl.load(x_ptr + k)
        X = tl.full((), NUMBERS[k], x.dtype)
        out = out_ptr + 4 * N * k + i
        tl.store(out, x.to(to) + tl.zeros((N,), to))
        tl.store(out + N, tl.full((N,), NUMBERS[k], x.dtype).to(to))
        tl.store(out + 2 * N, X.to(to) + tl.zeros((N,), to))
        tl.store(out + 3 * N, tl.where(i < N, X, 0.0).to(to))


SOURCES = (1e20, -1e20, -1.5, 300.0, 1e400, -1e400, float("nan"), -0.0, 0.99, 2147483648.0, 1e10)


@pytest.mark.parametrize("source", FLOATS)
@pytest.mark.parametrize("name", NAMES)
def test_floats_become_the_nearest_integer(name: str, source: str) -> None:
    info = np.iinfo(name)
    with np.errstate(over="ignore"):
        x = np.array(SOURCES, np.float32).astype(dtype(source))
    out = np.full((len(SOURCES), 4, 32), 99, name)
    convert_kernel[(1,)](out, x, NUMBERS=SOURCES, N=32, num_warps=1)
    for rows, number in zip(out, x.astype(np.float64), strict=True):
        # Towards zero, to the type's ends, and NaN to 0.
        limited = 0 if np.isnan(number) else np.clip(number, -(2.0**70), 2.0**70)
        expected = min(max(int(limited), info.min), info.max)
        assert_same(rows, np.full((4, 32), expected, name))


@triton.jit
def place_kernel(out_ptr, x_ptr, value, VALUE: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    to = out_ptr.dtype.element_ty
    zero = tl.load(x_ptr + i)
    tl.store(out_ptr + i, tl.full((N,), VALUE, to))
    tl.store(out_ptr + N + i, VALUE)
    tl.store(out_ptr + 2 * N + i, tl.where(zero == 0, tl.full((), VALUE, to), 1.0))
    tl.store(out_ptr + 3 * N + i, tl.where(zero == 0, value, 1.0))
    tl.store(out_ptr + 4 * N + i, tl.load(x_ptr + i, mask=i < 0, other=VALUE))
    carried = tl.full((N,), VALUE, to)
    for _ in range(2):
        carried = tl.where(zero == 0, carried, zero)
    tl.store(out_ptr + 5 * N + i, carried)
    tl.store(out_ptr + 6 * N + i, tl.minimum(VALUE, zero + VALUE, tl.PropagateNan.ALL))
    tl.store(out_ptr + 7 * N + i, (zero + 1) * VALUE)
    tl.store(out_ptr + 8 * N + i, tl.sum(tl.where(i == 0, tl.full((), VALUE, to), -0.0), 0))
    negated = -tl.full((N,), VALUE, to)
    tl.store(out_ptr + 9 * N + i, -negated)
    tl.store(out_ptr + 10 * N + i, tl.load(x_ptr + i, mask=i < 0, other=value))


@pytest.mark.own_check("expects subnormal results of fp32 and bfloat16, which Metal may flush")
@pytest.mark.parametrize(
    "value",
    [
        pytest.param(-0.0, marks=pytest.mark.not_as_graph("MLX's sum of zeros is 0.0")),
        0.0, 1e400, -1e400, float("nan"), 1e-45, 1e-40, 3.4e38,
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", FLOATS)
def test_float_constants_in_every_place(name: str, value: float) -> None:
    with np.errstate(over="ignore"):
        number = np.array(value, np.float32).astype(dtype(name))
    out, x = np.ones((11, 64), number.dtype), np.full(64, -0.0, number.dtype)
    if value == 0 and not np.signbit(number):
        x = -x
    place_kernel[(1,)](out, x, float(value), VALUE=value, N=64, num_warps=1)
    for row in out:
        assert_same(row, np.full(64, number))


@triton.jit
def atomic_kernel(out_ptr, x_ptr):
    i = tl.arange(0, 32)
    x = tl.load(x_ptr + i)
    tl.atomic_add(out_ptr + (x >> 40), 1)
    tl.atomic_add(out_ptr + (x << 65) // 0 % 32, 1)


def test_addresses_of_shifted_numbers() -> None:
    x, out = np.arange(0, 32, dtype=np.int32) << 8, np.zeros(64, np.int32)
    x &= 0xFFF
    atomic_kernel[(1,)](out, x)
    expected = np.bincount(x >> 8, minlength=64) + np.bincount((x << 1) % 32, minlength=64)
    assert_same(out, expected.astype(np.int32))


BEYOND: dict[str, Any] = {
    "x + 2**64": "18446744073709551616 fits in no type",
    "x * (1 << 100)": "fits in no type",
    "tl.full((32,), 2**63, tl.int64)": "out of range for int64",
    "tl.full((32,), 300, tl.int8)": "out of range for int8",
    "tl.full((32,), -1, tl.uint8)": "out of range for uint8",
    "tl.full((32,), -(2**200), tl.int32)": "fits in no type",
    "tl.full((32,), 1e400, tl.int32)": "no int32",
    "tl.arange(2147483647, 2147483648)": "fit in int32",
    "tl.arange(2**40, 2**40 + 32)": "fit in int32",
    "tl.arange(0, 33)": "power of 2",
    "tl.arange(3, 3)": "greater than the start",
    "1 // 0": "by zero",
    "1 << -1": "negative shift count",
}


@pytest.mark.parametrize("text", BEYOND)
def test_numbers_of_no_type_are_refused(text: str, tmp_path: Any) -> None:
    from language_support import OUR_HEADER, load_source

    source = f"@triton.jit\ndef k(x_ptr):\n    x = tl.load(x_ptr)\n    y = {text}\n"
    kernel = load_source(tmp_path, source, OUR_HEADER).k
    with pytest.raises(triton.CompileError, match=BEYOND[text]):
        kernel[(1,)](np.zeros(1, np.int32))
