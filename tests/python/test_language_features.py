"""What the language has beside its operations: compile-time values, functions, loops, names."""

from __future__ import annotations

import copy
import pickle
import re

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl
from triton_metal.testing import ttir

FOUR = tl.constexpr(4)
NAME = tl.constexpr("square")
PAIR = tl.constexpr((2, 3))


@triton.jit
def compile_time(out, N: tl.constexpr, FLAG: tl.constexpr = None):
    a: tl.constexpr = N * 2 + 1
    b: tl.constexpr = a // 3 - (a % 3) + 2**3
    c: tl.constexpr = -a if N > 3 else a
    tl.store(out + 0, b)
    tl.store(out + 1, c)
    tl.store(out + 2, FOUR + FOUR.value * 2)
    if NAME == "square":
        tl.store(out + 3, 1)
    else:
        tl.store(out + 3, undefined_is_never_looked_at)  # noqa: F821
    tl.store(out + 4, PAIR[0] * PAIR[1] + len(PAIR))
    if FLAG is None:
        tl.store(out + 5, 5)
    if FLAG is not None and FLAG > 3:
        tl.store(out + 5, FLAG)
    tl.store(out + 6, min(N, 3) + max(N, 3, a))
    tl.store(out + 7, int(2.75) + float(3))
    shape: tl.constexpr = [N, 2]
    tl.store(out + 8, tl.sum(tl.full(shape, 1, tl.int32)))
    tl.store(out + 9, tl.cdiv(N, 3) + triton.cdiv(N, 3) + triton.next_power_of_2(N + 1))
    squares = [i * i for i in (1, 2, 3) if i != 2]
    tl.store(out + 10, squares[0] + squares[1])
    tl.store(out + 11, (N & 6) | (N ^ 1) | (N << 2) | (N >> 1) | (~N + 64))
    tl.store(out + 12, isinstance(N, tl.constexpr) and not isinstance(out, tl.constexpr))
    tl.store(out + 13, 1 < N < 100)
    tl.store(out + 14, not N == 4)


def test_compile_time_values():
    out = np.zeros(15, np.float32)
    n, a = 4, 9
    compile_time[(1,)](out, N=n)
    expected = [
        a // 3 - a % 3 + 8, -a, 12, 1, 8, 5, 3 + 9, 5, 8, 2 + 2 + 8, 10,
        (n & 6) | (n ^ 1) | (n << 2) | (n >> 1) | (~n + 64), 1, 1, 0,
    ]  # fmt: skip
    assert out.tolist() == expected
    compile_time[(1,)](out, N=n, FLAG=9)
    assert out[5] == 9


@triton.constexpr_function
def digits(n):
    return sum(int(c) for c in str(n))


@triton.jit
def host_function(out, N: tl.constexpr):
    tl.store(out, digits(N))


def test_constexpr_function():
    out = np.zeros(1, np.int32)
    host_function[(1,)](out, N=1234)
    assert out[0] == 10
    assert digits(tl.constexpr(99)) == 18


@triton.jit
def several(a, b, scale=2, *, shift: tl.constexpr = 0):
    return a * scale + shift, b - scale


@triton.jit
def nested(x, out, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    v = tl.load(x + offs)
    a, b = several(v, v)
    c, d = several(a, b, 3, shift=1)
    (e, f), g = several(c, d, scale=v), a
    tl.store(out + offs, e + f + g)


def test_functions():
    x = np.arange(16, dtype=np.float32)
    out = np.zeros_like(x)
    nested[(1,)](x, out, BLOCK=16)
    a, b = x * 2, x - 2
    c, d = a * 3 + 1, b - 3
    e, f = c * x, d - x
    assert (out == e + f + a).all()


@triton.jit
def first_positive(v, fallback):
    if v > 0:
        return v
    if v < -10:
        return fallback
    return -v


@triton.jit
def early_returns(x, out, n):
    i = tl.program_id(0)
    if i >= n:
        return
    tl.store(out + i, first_positive(tl.load(x + i), 100))


def test_early_returns():
    x = np.array([3, -4, -20, 7, 9], np.int32)
    out = np.zeros(5, np.int32)
    early_returns[(5,)](x, out, 4)
    assert out.tolist() == [3, 4, 100, 7, 0]


@triton.jit
def loops(out, n):
    total = 0
    for i in range(n):
        for j in range(i, 0, -2):
            if j % 3 == 0:
                total += j
            else:
                total -= 1
    k = n
    steps = 0
    while k != 1:
        k = k // 2 if k % 2 == 0 else 3 * k + 1
        steps += 1
    for u in tl.static_range(1, 4):
        total = total * u
    tl.store(out, total)
    tl.store(out + 1, steps)


def reference_loops(n):
    total = 0
    for i in range(n):
        for j in range(i, 0, -2):
            total = total + j if j % 3 == 0 else total - 1
    k, steps = n, 0
    while k != 1:
        k = k // 2 if k % 2 == 0 else 3 * k + 1
        steps += 1
    return total * 6, steps


@pytest.mark.parametrize("n", [1, 2, 7, 27])
def test_loops(n):
    out = np.zeros(2, np.int32)
    loops[(1,)](out, n)
    assert tuple(out.tolist()) == reference_loops(n)


@triton.jit
def integer_arithmetic(a, b, out, N: tl.constexpr):
    i = tl.arange(0, N)
    x, y = tl.load(a + i), tl.load(b + i)
    tl.store(out + i, x // y)
    tl.store(out + N + i, x % y)
    tl.store(out + 2 * N + i, x >> 1)
    tl.store(out + 3 * N + i, -x)
    tl.store(out + 4 * N + i, ~x)
    tl.store(out + 5 * N + i, tl.abs(x))
    tl.store(out + 6 * N + i, 7 - x)
    tl.store(out + 7 * N + i, 100 // y)


def test_integers_divide_like_c():
    a = np.array([7, -7, 7, -7, 0, 1, -1, 100], np.int32)
    b = np.array([2, 2, -2, -2, 5, 3, 3, -7], np.int32)
    out = np.zeros(8 * 8, np.int32)
    integer_arithmetic[(1,)](a, b, out, N=8)
    quotient = np.trunc(a / b).astype(np.int32)
    rows = [quotient, a - quotient * b, a >> 1, -a, ~a, abs(a), 7 - a, np.trunc(100 / b)]
    assert (out.reshape(8, 8) == np.stack(rows).astype(np.int32)).all()


@triton.jit
def nan_rules(a, b, out, N: tl.constexpr):
    i = tl.arange(0, N)
    x, y = tl.load(a + i), tl.load(b + i)
    tl.store(out + i, tl.minimum(x, y))
    tl.store(out + N + i, tl.maximum(x, y))
    tl.store(out + 2 * N + i, tl.minimum(x, y, propagate_nan=tl.PropagateNan.ALL))
    tl.store(out + 3 * N + i, tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL))
    tl.store(out + 4 * N + i, (x == y).to(tl.float32) + 2 * (x != y))


def test_nan_rules():
    nan, inf = float("nan"), float("inf")
    a = np.array([1, nan, 3, nan, -inf, inf, 0, 5], np.float32)
    b = np.array([2, 2, nan, nan, inf, nan, 0, 5], np.float32)
    out = np.zeros(40, np.float32)
    nan_rules[(1,)](a, b, out, N=8)
    rows = [
        np.fmin(a, b),
        np.fmax(a, b),
        np.minimum(a, b),
        np.maximum(a, b),
        (a == b) + 2.0 * (a != b),
    ]
    np.testing.assert_array_equal(out.reshape(5, 8), np.stack(rows).astype(np.float32))


@triton.jit
def talkative(out, N: tl.constexpr):
    tl.static_print("N is", N, sep=": ")
    tl.static_print(f"half of it is {N // 2:03d}, a string {'s'!r}")
    tl.store(out, N)


def test_static_print(capsys):
    ttir(talkative, {"out": "*i32"}, {"N": 10})
    assert capsys.readouterr().out == "N is: 10\nhalf of it is 005, a string 's'\n"


@triton.jit
def named(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    value = tl.load(x_ptr + offsets, mask=mask)
    total = value * 2
    for step in range(n):
        total += value * step
    tl.store(out_ptr + offsets, total, mask=mask)


def test_names_reach_the_ir():
    text = str(ttir(named, {"x_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32"}, {"BLOCK": 16}))
    for name in ("x_ptr", "out_ptr", "n", "offsets", "mask", "value", "total", "step"):
        assert re.search(rf"%{name}\b", text), name
        assert name == "step" or f'loc("{name}"(' in text, name


@triton.jit
def argument_that_is_one(out, n):
    tl.store(out, n.to(tl.float32) / 2)
    tl.static_assert(n.dtype == tl.int32)


def test_an_argument_that_is_one_still_answers_like_a_tensor():
    out = np.zeros(1, np.float32)
    for n in (1, 2, 3):
        argument_that_is_one[(1,)](out, n)
        assert out[0] == n / 2


@triton.jit
def debugged(x, n):
    tl.device_assert(n > 0, "n must be positive")
    tl.store(x, n)


def test_device_assert_is_for_debugging():
    assert "tt.assert" not in str(ttir(debugged, {"x": "*i32", "n": "i32"}))
    loud = triton.jit(debug=True)(debugged.function)
    assert "tt.assert" in str(ttir(loud, {"x": "*i32", "n": "i32"}))


def test_what_a_kernel_is_made_of_cannot_be_assigned():
    for name in ("function", "name"):
        with pytest.raises(AttributeError, match="no setter"):
            setattr(debugged, name, True)


def test_same_input_same_bytes():
    texts = {
        str(ttir(named, {"x_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32"}, {"BLOCK": 64}))
        for _ in range(5)
    }
    assert len(texts) == 1


def test_cdiv_and_next_power_of_2():
    assert [triton.cdiv(x, 4) for x in (0, 1, 4, 5)] == [0, 1, 1, 2]
    assert [triton.next_power_of_2(x) for x in (1, 2, 3, 5, 1024, 1025)] == [1, 2, 4, 8, 1024, 2048]


@triton.jit
def of_two_kinds(x, kind):
    if kind == 0:
        return x * 2, 1.5
    elif kind == 1:
        return x + 1, 2.5


@triton.jit
def without_a_last_return(out, kind, N: tl.constexpr):
    a, b = of_two_kinds(tl.arange(0, N), kind)
    tl.store(out + tl.arange(0, N), a + b)


def test_a_function_may_end_without_a_return_on_a_path_that_no_launch_takes():
    x = np.arange(8, dtype=np.float32)
    for kind, expected in ((0, x * 2 + 1.5), (1, x + 1 + 2.5)):
        out = np.zeros(8, np.float32)
        without_a_last_return[(1,)](out, kind, N=8)
        assert (out == expected).all()


@triton.jit
def store_of_any_rank(out, value, RANK: tl.constexpr):
    if RANK == 1:
        out = out[None, :]
    else:
        out = out[None, None, :]
    tl.store(out, value + tl.zeros((1,) * RANK, tl.float32))


@pytest.mark.parametrize("rank", [1, 2])
def test_a_scalar_is_indexed_as_a_row_is(rank):
    out = np.zeros(1, np.float32)
    store_of_any_rank[(1,)](out, 2.5, RANK=rank)
    assert out[0] == 2.5


@pytest.mark.parametrize(
    "kind",
    [
        tl.float32,
        tl.int1,
        tl.float8e4b15,
        tl.void,
        tl.pointer_type(tl.float16, const=True),
        tl.pointer_type(tl.pointer_type(tl.int8)),
        tl.block_type(tl.pointer_type(tl.bfloat16), [4, 8]),
    ],
    ids=str,
)
def test_types_are_copied_and_pickled(kind):
    assert copy.deepcopy({"kind": kind}) == {"kind": kind}
    assert pickle.loads(pickle.dumps(kind)) == kind
    assert pickle.loads(pickle.dumps(tl.constexpr(kind))).value == kind
