"""What a kernel's error says of its place, and what Triton's programs read from it: positions, causes, attributes."""

from __future__ import annotations

import ast
import pickle
from pathlib import Path

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl


@triton.jit
def halved(v):
    return v + tl.arange(0, 3)


@triton.jit
def calls(x):
    v = tl.load(x)
    tl.store(x, halved(v))


@triton.jit
def adds(x):
    tl.store(x, 1 + "a")


@triton.jit
def asserts(x):
    tl.static_assert(False, "never")


def caught(kernel: triton.JITFunction) -> triton.CompilationError:
    with pytest.raises(triton.CompilationError) as error:
        kernel[(1,)](np.zeros(8, np.int32))
    return error.value


def test_the_text_has_the_file_s_line_and_the_position_in_the_function() -> None:
    lines = str(caught(adds)).splitlines()
    assert lines[0].startswith(f"{__file__}:{adds.def_file_line_number + 1}:17: ")
    assert lines[1:] == ["in adds at 2:16:", '    tl.store(x, 1 + "a")', "                ^~~~~~~"]


def test_a_call_s_text_has_both_positions_and_its_cause_is_the_error_in_the_function() -> None:
    error = caught(calls)
    assert "in halved at 2:15:" in str(error)
    assert "in calls at 3:16:" in str(error)
    inner = error.__cause__
    assert isinstance(inner, triton.CompilationError)
    assert "at 2:15:" in str(inner)
    assert "calls" not in str(inner)
    assert inner.__cause__ is None  # it would say the same again
    assert inner.error_message == error.error_message


def test_only_calls_have_a_cause() -> None:
    assert caught(adds).__cause__ is None
    failure = caught(asserts)
    assert isinstance(failure, triton.CompileTimeAssertionFailure)
    assert failure.__cause__ is None


def test_the_attributes_are_triton_s() -> None:
    error = caught(adds)
    assert error.src == adds.src
    assert isinstance(error.node, ast.BinOp)
    assert error.node.lineno == 2
    assert error.error_message == "unsupported operand type(s) for +: 'int' and 'str'"
    assert error.message == str(error)


def test_an_error_goes_to_another_process_whole() -> None:
    error = caught(calls)
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error)
    assert copy.src == error.src
    assert ast.dump(copy.node) == ast.dump(error.node)


def test_programs_raise_it_as_triton_s() -> None:
    source = "def f(x):\n    return x @ x\n"
    node = ast.parse(source).body[0].body[0].value  # type: ignore[attr-defined]
    error = triton.CompilationError(source, node, "no @ here")
    assert str(error) == "no @ here\nat 2:11:\n    return x @ x\n           ^~~~~"
    assert (error.src, error.node, error.error_message) == (source, node, "no @ here")
    assert "at 2:11:" in str(triton.CompilationError(None, node, None))


def test_a_constant_that_is_not_specialised_on_is_an_error_of_the_compilation() -> None:
    @triton.jit(do_not_specialize=["N"])
    def kernel(x, N: tl.constexpr):
        tl.store(x, N)

    with pytest.raises(triton.CompilationError, match="N marked as constexpr and listed in do_not"):
        kernel[(1,)](np.zeros(1, np.int32), 5)
    with pytest.raises(triton.CompilationError, match=Path(__file__).name):
        triton.compiler.ASTSource(kernel, {"x": "*i32"}, {"N": 5})
