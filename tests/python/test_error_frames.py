"""What the traceback of a kernel's error shows: the program's frames, and not those of the walk over the kernel."""

from __future__ import annotations

import traceback
from pathlib import Path

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl

WALK = Path(triton.__file__).parent / "codegen"


@triton.jit
def uneven(x, N: tl.constexpr):
    tl.store(x + tl.arange(0, N), 0)


@triton.constexpr_function
def divide(n):
    return 1 // n


@triton.jit
def divides(x, N: tl.constexpr):
    tl.store(x, divide(N))


def caught(kernel: triton.JITFunction, n: int) -> triton.CompilationError:
    with pytest.raises(triton.CompilationError) as error:
        kernel[(1,)](np.zeros(8, np.int32), n)
    return error.value


def files(error: BaseException | None) -> set[Path]:
    assert error is not None
    return {Path(frame.filename) for frame in traceback.extract_tb(error.__traceback__)}


def test_the_frames_of_the_walk_are_left_out() -> None:
    error = caught(uneven, 3)
    assert files(error) == {Path(__file__)}
    assert isinstance(error.__cause__, ValueError)  # as Triton's errors have it, in one line
    assert error.__cause__.__traceback__ is None
    assert "power of 2" in str(error)


def test_the_programs_own_python_is_shown_where_it_fails() -> None:
    error = caught(divides, 0)
    assert "ZeroDivisionError" in str(error)
    assert files(error.__cause__) == {Path(__file__)}
    (frame,) = traceback.extract_tb(error.__cause__.__traceback__)
    assert frame.name == "divide"


def test_a_knob_keeps_all_frames() -> None:
    with triton.knobs.compilation.scope():
        triton.knobs.compilation.front_end_debugging = True
        error = caught(uneven, 3)
    assert any(file.is_relative_to(WALK) for file in files(error))
    assert isinstance(error.__cause__, ValueError)
