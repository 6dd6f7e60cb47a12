"""What kernels of packages do, and the other tests' kernels do not."""

from __future__ import annotations

import types

import numpy as np
import pytest

from kernel_support import ON_STOCK, tl, triton

if triton is not None:  # As packages guard their kernels, which gives them an indent.

    @triton.jit
    def indented_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
        """Doubles a block.

        The text has
            lines of several indents.
        """
        offsets = tl.arange(0, BLOCK)
        tl.store(out_ptr + offsets, 2 * tl.load(x_ptr + offsets))


def test_an_indented_kernel_may_have_a_docstring_of_several_lines() -> None:
    x = np.arange(16, dtype=np.float32)
    out = np.empty_like(x)
    indented_kernel[(1,)](x, out, 16)
    assert out.tolist() == (2 * x).tolist()


@triton.jit
def turned_through_memory(x_ptr, scratch_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(scratch_ptr + offsets, tl.load(x_ptr + offsets))
    tl.debug_barrier()
    return tl.load(scratch_ptr + (BLOCK - 1 - offsets))


@triton.jit
def barrier_kernel(x_ptr, scratch_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, turned_through_memory(x_ptr, scratch_ptr, BLOCK))


def test_a_called_function_may_have_a_barrier() -> None:
    x = np.arange(256, dtype=np.float32)
    scratch, out = np.zeros_like(x), np.zeros_like(x)
    barrier_kernel[(1,)](x, scratch, out, 256)
    assert out.tolist() == x[::-1].tolist()


@triton.jit
def best_kernel(
    x_ptr,
    out_ptr,
    rows,
    columns,
    K: tl.constexpr,
    PADDED: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = PADDED - BLOCK + tl.arange(0, BLOCK)
    inside = row[:, None] < rows
    x = tl.load(
        x_ptr + row[:, None] * columns + column[None, :],
        mask=inside & (column[None, :] < columns),
        other=0,
    )
    best = tl.topk((x.to(tl.uint64) << 16) | (PADDED - column)[None, :].to(tl.uint64), K, dim=1)
    for _ in range(PADDED // BLOCK - 1):
        best = tl.bitonic_merge(best)
        column -= BLOCK
        x = tl.load(x_ptr + row[:, None] * columns + column[None, :], mask=inside, other=0)
        keys = (x.to(tl.uint64) << 16) | (PADDED - column)[None, :].to(tl.uint64)
        best = tl.maximum(best, tl.topk(keys, K, dim=1))
    best = tl.sort(best, dim=1, descending=True)
    place = PADDED - (best & 0xFFFF).to(tl.int32)
    tl.store(out_ptr + row[:, None] * K + tl.arange(0, K)[None, :], place, mask=inside)


def test_the_best_of_rows_that_are_read_in_blocks() -> None:
    x = np.random.default_rng(0).integers(0, 1 << 20, (40, 200)).astype(np.uint32)
    out = np.zeros((40, 8), np.int16)
    best_kernel[(2,)](x, out, 40, 200, 8, 224, 32, 32)
    expected = np.argsort(-x.astype(np.int64), axis=1, kind="stable")[:, :8]
    assert out.tolist() == expected.tolist()


@triton.jit
def doubled(x):
    return 2 * x


@triton.jit
def template_kernel(x_ptr, STEP: tl.constexpr):
    tl.store(x_ptr, STEP(tl.load(x_ptr)))


def made_from_template(source: str, **names: object) -> triton.JITFunction:
    """A kernel of a text, as programs make it that fill in a template."""

    def empty(x_ptr):
        pass

    function = types.FunctionType(empty.__code__, globals() | names)
    function.__name__ = function.__qualname__ = "filled_kernel"
    kernel = triton.JITFunction(function)
    kernel._unsafe_update_src(source)
    kernel.raw_src = list(template_kernel.raw_src)
    kernel.file_name = template_kernel.file_name
    kernel.starting_line_number = template_kernel.starting_line_number - 1
    kernel.def_file_line_number = template_kernel.def_file_line_number - 1
    kernel.def_file_col_number = template_kernel.def_file_col_number
    return kernel


@pytest.mark.skipif(ON_STOCK, reason="the interpreter reads no changed source")
def test_a_kernel_made_from_a_template_has_the_template_s_lines() -> None:
    source = (
        "def filled_kernel(x_ptr):\n"
        "    STEP: tl.constexpr = doubled\n"
        "    tl.store(x_ptr, STEP(tl.load(x_ptr)))\n"
    )
    kernel, x = made_from_template(source), np.full(1, 3, np.float32)
    compiled = kernel[(1,)](x)
    assert x[0] == 6
    assert kernel.raw_src == template_kernel.raw_src
    line = template_kernel.def_file_line_number + 1
    assert f'test_kernels_of_packages.py":{line}:5' in compiled.asm["ttir"]


@pytest.mark.skipif(ON_STOCK, reason="the interpreter reads no changed source")
def test_an_error_in_a_kernel_made_from_a_template_names_the_template_s_line() -> None:
    source = "def filled_kernel(x_ptr):\n    STEP: tl.constexpr = doubled\n    tl.store(x_ptr, nowhere)\n"
    line = template_kernel.def_file_line_number + 1
    with pytest.raises(
        triton.CompilationError, match=rf"test_kernels_of_packages.py:{line}:.*nowhere"
    ):
        made_from_template(source)[(1,)](np.zeros(1, np.float32))


@triton.aggregate
class Steps:
    step: tl.constexpr
    dtype: tl.constexpr


@triton.jit
def steps_kernel(x_ptr, out_ptr, STEP: tl.constexpr, DTYPE: tl.constexpr):
    steps = Steps(STEP, DTYPE)
    step: tl.constexpr = steps.step
    tl.store(out_ptr, step(tl.load(x_ptr)).to(steps.dtype))


@pytest.mark.skipif(ON_STOCK, reason="the interpreter has no aggregates of functions")
def test_functions_and_dtypes_are_constexpr_fields_of_aggregates() -> None:
    x, out = np.full(1, 2.75, np.float32), np.zeros(1, np.float32)
    steps_kernel[(1,)](x, out, doubled, tl.int32)
    assert out[0] == 5


@triton.jit
def vendor_kernel(x_ptr):
    tl.store(x_ptr, tl.extra.cuda.libdevice.pow(tl.load(x_ptr), 2.0))


@pytest.mark.skipif(ON_STOCK, reason="stock Triton has the vendor's functions")
def test_a_vendor_s_functions_are_refused_with_those_to_use() -> None:
    with pytest.raises(
        triton.CompilationError,
        match=r"has no 'cuda': it holds functions of NVIDIA's GPUs; use .*libdevice",
    ):
        vendor_kernel[(1,)](np.ones(1, np.float32))
