"""log(sum(exp(x))) of each row, which a program holds in registers."""

from __future__ import annotations

import triton_metal as triton
import triton_metal.language as tl

from _arrays import Array, empty


@triton.jit
def logsumexp_kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=-float("inf"))
    x = x.to(tl.float32)
    highest = tl.max(x, axis=0)
    # A row of nothing but -inf has that as its result, and no NaN.
    shift = tl.where(highest == -float("inf"), 0.0, highest)
    result = shift + tl.log(tl.sum(tl.exp(x - shift), axis=0))
    tl.store(out_ptr + row, result.to(out_ptr.dtype.element_ty))


def logsumexp(x: Array, num_warps: int = 4) -> Array:
    """The logarithms (rows,) of the sums of exponentials of x (rows, columns), side by side, of up to 32,768 columns."""
    n_rows, n_cols = x.shape
    out = empty((n_rows,), like=x)
    logsumexp_kernel[(n_rows,)](
        x, out, n_cols, BLOCK=triton.next_power_of_2(n_cols), num_warps=num_warps
    )
    return out
