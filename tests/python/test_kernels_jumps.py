"""break, continue and return inside of loops."""

from typing import Any

import numpy as np
import pytest

from kernel_support import tl, triton


@triton.jit
def sums(x_ptr, out_ptr, n):
    total = 0
    last = -1
    for i in range(n):
        v = tl.load(x_ptr + i)
        if v == 0:
            continue
        if v < 0:
            last = i
            break
        total += v
    tl.store(out_ptr, total)
    tl.store(out_ptr + 1, last)


@pytest.mark.parametrize("x", [[], [1, 2, 0, 4, -1, 7], [0, 0], [-5], [3, 0, 9], [0, -1, 0]])
def test_break_and_continue(x: list[int]) -> None:
    out = np.zeros(2, np.int32)
    sums[(1,)](np.array([*x, -9], np.int32), out, len(x))
    total, last = 0, -1
    for i, v in enumerate(x):
        if v == 0:
            continue
        if v < 0:
            last = i
            break
        total += v
    assert out.tolist() == [total, last]


@triton.jit
def nested(x_ptr, out_ptr, n, N: tl.constexpr):
    places = tl.arange(0, N)
    total = tl.zeros((N,), tl.float32)
    i = 0
    while True:
        if i >= n:
            break
        v = tl.load(x_ptr + i)
        i += 1
        if v % 5 == 4:
            continue
        for j in range(v):
            if j == 6:
                break
            if j % 2 == 1:
                if v > 3:
                    continue
                total += 100.0
            k = j
            while k > 0:
                k -= 2
                if k == 1:
                    break
                total += places * k
            total += places
        if v == 13:
            break
    tl.store(out_ptr + places, total)


def nested_model(x: list[int], n: int) -> np.ndarray:
    places = np.arange(n, dtype=np.float32)
    total = np.zeros(n, np.float32)
    for v in x:
        if v % 5 == 4:
            continue
        for j in range(v):
            if j == 6:
                break
            if j % 2 == 1:
                if v > 3:
                    continue
                total += 100
            k = j
            while k > 0:
                k -= 2
                if k == 1:
                    break
                total += places * k
            total += places
        if v == 13:
            break
    return total


@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize("seed", range(8))
def test_nested_loops(seed: int, num_warps: int) -> None:
    x = np.random.default_rng(seed).integers(0, 15, seed + 1).astype(np.int32)
    out = np.zeros(64, np.float32)
    nested[(1,)](x, out, len(x), N=64, num_warps=num_warps)
    np.testing.assert_array_equal(out, nested_model(x.tolist(), 64))


@triton.jit
def place_of(x_ptr, n, m, wanted):
    for i in range(n):
        for j in range(m):
            if tl.load(x_ptr + i * m + j) == wanted:
                return i, j
    return n, m


@triton.jit
def finds(x_ptr, out_ptr, n, m, wanted):
    i, j = place_of(x_ptr, n, m, wanted)
    if i == n:
        tl.store(out_ptr + 2, 1)
        return
    while True:
        tl.store(out_ptr, i)
        tl.store(out_ptr + 1, j)
        return


@pytest.mark.parametrize("wanted", [0, 7, 34, 35, -1])
def test_return_from_loops(wanted: int) -> None:
    x = np.arange(35, dtype=np.int32)
    out = np.full(3, -1, np.int32)
    finds[(1,)](x, out, 5, 7, wanted)
    expected = [wanted // 7, wanted % 7, -1] if 0 <= wanted < 35 else [-1, -1, 1]
    assert out.tolist() == expected


@triton.jit
def visits(out_ptr, lower, upper, step, skipped):
    count = tl.zeros((), tl.int64)
    total = tl.zeros((), tl.int64)
    for i in range(lower, upper, step):
        if i == skipped:
            continue
        count += 1
        total += i
        if count == 40:
            break
    tl.store(out_ptr, count)
    tl.store(out_ptr + 1, total)


MOST = 2**31 - 1


@pytest.mark.parametrize(
    ("lower", "upper", "step"),
    [
        (0, 10, 1),
        (10, 0, -3),
        (0, 10, -1),
        (10, 0, 1),
        (5, 5, 1),
        (MOST - 20, MOST, 7),
        (-MOST, -MOST - 1, -1),
        (-MOST - 1, MOST, 2**30),
        (MOST, -MOST - 1, -(2**30)),
        (2**40, 2**40 + 100, 3),
        (2**40 + 100, 2**40, -9),
        (0, 1000, 1),
    ],
)
def test_ranges_with_jumps(lower: int, upper: int, step: int) -> None:
    for skipped in (lower, lower + step, 123456789):
        out = np.zeros(2, np.int64)
        visits[(1,)](out, lower, upper, step, skipped)
        chosen = [i for i in range(lower, upper, step) if i != skipped][:40]
        assert out.tolist() == [len(chosen), sum(chosen)]


@triton.jit
def static_loops(out_ptr, n, STOP: tl.constexpr):
    total = 0
    for i in tl.static_range(8):
        if i == 2:
            continue
        if i == STOP:
            break
        if n > i:
            total += i * 10
    tl.store(out_ptr, total)


@pytest.mark.parametrize("stop", [0, 1, 5, 9])
def test_static_loops(stop: int) -> None:
    out = np.zeros(1, np.int32)
    static_loops[(1,)](out, 4, STOP=stop)
    assert out[0] == sum(10 * i for i in range(min(8, stop)) if i != 2 and i < 4)


@triton.jit
def static_break(x_ptr, n):
    for i in tl.static_range(4):
        if i == n:
            break
        tl.store(x_ptr, i)


@triton.jit
def changes_type(x_ptr, n):
    value = 1
    for i in range(n):
        if i == 3:
            value = 1.5
            break
    tl.store(x_ptr, value)


@pytest.mark.parametrize(
    ("kernel", "words"), [(static_break, "use tl.range"), (changes_type, "its type must stay")]
)
def test_what_is_refused(kernel: Any, words: str) -> None:
    with pytest.raises(triton.CompileError, match=words):
        kernel[(1,)](np.zeros(1, np.int32), 2)


@triton.jit
def one_value_for_two_variables(out, start, most):
    first, second = 77, 78
    for i in range(start, 25, 7):
        value = i
        steps = 0
        while steps < most:
            if steps > 1:
                break
            value = ~value
            steps += 1
        first, second = value, value
    tl.store(out, first)
    tl.store(out + 1, second)


@pytest.mark.parametrize("most", [0, 1, 2, 5])
def test_two_variables_take_one_value_from_an_inner_loop(most: int) -> None:
    out = np.zeros(2, np.int32)
    one_value_for_two_variables[(1,)](out, 5, most)
    expected = 19 if min(most, 2) % 2 == 0 else ~19
    assert out.tolist() == [expected, expected]
