"""Each row of error_rows.py is refused at its line, with its words, and with a caret."""

import linecache
import math

import pytest
import triton_metal as triton
import triton_metal.language as tl

from error_rows import ROWS, Row

GLOBAL = 42
TABLE = [1, 2]
SYMBOLS = tl.constexpr({(tl.float32,): ("f", tl.float32)})


def host_function(value):
    return value


@triton.jit
def reduce_one(a):
    return a


@triton.jit
def helper(a, b):
    return a + b


@triton.jit
def static_helper(a: tl.constexpr):
    return tl.arange(0, a)


@triton.jit
def endless(a):
    return endless(a)


@triton.jit
def two_types(a):
    if a > 0:
        return 1.5
    return a


@triton.jit
def half_return(a):
    if a > 0:
        return a
    return


@triton.constexpr_function
def next_odd(a):
    if a == 7:
        raise ValueError("not seven")
    return a | 1


@triton.must_use_result
@triton.jit
def must_use(a):
    return a


@triton.aggregate
class Pair:
    first: tl.tensor
    second: tl.constexpr


@tl.core.builtin
def checked(a, _semantic=None):
    raise ValueError(f"{a.value} is too small")


def kernel_of(row: Row):
    """The kernel of a row, and the number of the line at fault."""
    head = "def kernel(x, i, n, N: tl.constexpr):\n"
    text = head + "".join(f"    {line}\n" for line in row.body.split("\n"))
    file = f"<row {row.name}>"
    lines = text.splitlines(keepends=True)
    linecache.cache[file] = (len(text), None, lines, file)
    namespace = dict(globals(), math=math)
    exec(compile(text, file, "exec"), namespace)
    at_fault = next(k for k, line in enumerate(lines, 1) if k > 1 and line.strip() == row.line)
    return namespace["kernel"], file, at_fault


def test_the_table_has_rows_enough_and_no_name_twice():
    assert len(ROWS) >= 150
    assert len({row.name for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_the_error_names_the_line_and_the_reason(row):
    function, file, at_fault = kernel_of(row)
    kernel = triton.jit(function)
    with pytest.raises(triton.CompilationError) as caught:
        kernel.warmup(tl.float32, tl.int32, 3, 16, grid=(1,))
    error = caught.value
    assert error.location is not None, str(error)
    places = [error.location, *error.callers]
    assert any((place.file, place.line) == (file, at_fault) for place in places), str(error)
    text = str(error)
    for word in row.words:
        assert word.lower() in text.lower(), text
    assert "^" in text
    assert "incompatible function arguments" not in text
    assert "Traceback" not in text
