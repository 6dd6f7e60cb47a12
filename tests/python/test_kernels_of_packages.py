"""What kernels of packages do, and the other tests' kernels do not."""

from __future__ import annotations

import numpy as np

from kernel_support import tl, triton

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
