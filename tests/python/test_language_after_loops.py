"""The variable of a loop after its loop, as in Python, and globals that a knob allows."""

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl


@triton.jit
def after(out, start, end, step, stop):
    for i in range(start, end, step):  # noqa: B007
        tl.store(out, 0)
    tl.store(out, i)
    for j in range(start, end, step):
        if j == stop:
            break
    tl.store(out + 1, j)
    k = start - start + 77
    for k in range(start, end, step):  # noqa: B007
        for _ in range(2):
            tl.store(out + 2, 0)
    tl.store(out + 2, k)


@pytest.mark.parametrize("bounds", [(0, 10, 3), (5, -6, -2), (3, 4, 1), (2, 3, 16)])
@pytest.mark.parametrize("stop", [3, 100])
def test_the_variable_of_a_loop_keeps_its_last_value(bounds, stop):
    out = np.zeros(3, np.int32)
    after[(1,)](out, *bounds, stop)
    values = list(range(*bounds))
    assert out.tolist() == [values[-1], stop if stop in values else values[-1], values[-1]]


def test_a_loop_that_does_not_run_leaves_the_variable_alone():
    out = np.zeros(3, np.int32)
    after[(1,)](out, 4, 4, 2, 0)
    assert out[2] == 77


@triton.jit
def twice(out, n):
    for i in tl.static_range(3):
        tl.store(out, i)
    for i in range(n):
        if i == 3:
            break
    tl.store(out + 1, i)


@pytest.mark.parametrize(("n", "last"), [(0, 2), (1, 0), (3, 2), (8, 3)])
def test_a_loop_goes_on_with_the_variable_of_one_that_ran_while_compiling(n, last):
    out = np.zeros(2, np.int32)
    twice[(1,)](out, n)
    assert out.tolist() == [2, last]


PLAIN = 5


@triton.jit
def reads_plain(out):
    tl.store(out, PLAIN)


def test_a_plain_global_is_read_where_the_knob_allows_it_and_is_in_the_key(monkeypatch):
    out = np.zeros(1, np.int32)
    with pytest.raises(triton.CompilationError, match="Cannot access global variable PLAIN"):
        reads_plain[(1,)](out)
    monkeypatch.setenv("TRITON_ALLOW_NON_CONSTEXPR_GLOBALS", "1")
    reads_plain[(1,)](out)
    assert out[0] == 5
    monkeypatch.setitem(globals(), "PLAIN", 6)
    reads_plain[(1,)](out)
    assert out[0] == 6
