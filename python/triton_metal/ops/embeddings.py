"""Rows of a matrix by indices, with a gradient that is the same on every run.

The gradient sorts the indices with the framework's own sort. Then each row of the matrix has a program of its own, which finds the
places of its index by bisection and adds up their gradients in that order, in float32.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import triton_metal as triton
import triton_metal.language as tl

from ._arrays import FLOATS, Array, contiguous, dtype_name, framework, size_of
from ._checks import check_arrays, check_dtype, check_rank
from ._indices import INTEGERS, check_indices
from ._launch import Spec, launch
from ._operators import Operator


@triton.jit
def embedding_kernel(weight_ptr, indices_ptr, y_ptr, n, width, BLOCK: tl.constexpr):
    """A block of the row that an index names; NaN if there is none."""
    place = tl.program_id(0)
    index = tl.load(indices_ptr + place).to(tl.int64)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < width
    known = (index >= 0) & (index < n)
    row = tl.load(weight_ptr + index * width + cols, mask=mask & known, other=float("nan"))
    tl.store(y_ptr + place.to(tl.int64) * width + cols, row, mask=mask)


@triton.jit
def first_at_least(sorted_ptr, count, value):
    """The first place in a sorted list of a number that is at least value."""
    low = 0
    high = count
    while low < high:
        middle = low + (high - low) // 2
        if tl.load(sorted_ptr + middle).to(tl.int64) < value:
            low = middle + 1
        else:
            high = middle
    return low


@triton.jit
def embedding_backward_kernel(
    dy_ptr, sorted_ptr, order_ptr, dweight_ptr, count, width,
    PLACES: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """A block of a row of dweight: the sum of dy at the places whose index is this row."""
    row = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < width
    first = first_at_least(sorted_ptr, count, row)
    end = first_at_least(sorted_ptr, count, row + 1)
    sums = tl.zeros((PLACES, BLOCK), tl.float32)
    for start in range(first, end, PLACES):
        at = start + tl.arange(0, PLACES)
        places = tl.load(order_ptr + at, mask=at < end, other=0).to(tl.int64)
        inside = (at < end)[:, None] & mask[None, :]
        dy = tl.load(dy_ptr + places[:, None] * width + cols[None, :], mask=inside, other=0.0)
        sums += dy.to(tl.float32)
    total = tl.sum(sums, axis=0).to(dweight_ptr.dtype.element_ty)
    tl.store(dweight_ptr + row.to(tl.int64) * width + cols, total, mask=mask)


def _forward(weight: Array, indices: Array) -> tuple[Array, ...]:
    n, width = weight.shape
    check_indices("embedding", "indices", indices, n)
    shape = tuple(indices.shape)
    block = min(triton.next_power_of_2(max(width, 1)), 1024)
    return launch(
        embedding_kernel,
        (size_of(shape), triton.cdiv(width, block)),
        {"y_ptr": (shape + (width,), dtype_name(weight))},
        like=weight,
        weight_ptr=contiguous(weight),
        indices_ptr=contiguous(indices),
        n=n,
        width=width,
        BLOCK=block,
    )


def _sorted(indices: Array) -> tuple[Array, Array]:
    """The indices in order, equal ones as they came, and where each was."""
    flat = contiguous(indices).reshape((-1,))
    where = framework(flat)
    if 0 in indices.shape:  # MLX's sort of nothing divides by zero
        return flat, flat
    if where == "torch":
        torch = sys.modules["torch"]
        return tuple(torch.sort(flat.to(torch.int64), stable=True))
    if where == "numpy":
        order = np.argsort(flat, kind="stable")
    else:
        order = sys.modules["mlx.core"].argsort(flat)
    return flat[order], order


def _backward(dy: Array, indices: Array, n: int) -> tuple[Array, ...]:
    width = dy.shape[-1]
    ordered, order = _sorted(indices)
    block = min(triton.next_power_of_2(max(width, 1)), 256)
    return launch(
        embedding_backward_kernel,
        (n, triton.cdiv(width, block)),
        {"dweight_ptr": ((n, width), dtype_name(dy))},
        like=dy,
        dy_ptr=contiguous(dy),
        sorted_ptr=ordered,
        order_ptr=order,
        count=size_of(tuple(indices.shape)),
        width=width,
        PLACES=8,
        BLOCK=block,
    )


def _results(weight: Array, indices: Array) -> list[Spec]:
    return [(tuple(indices.shape) + (weight.shape[1],), dtype_name(weight))]


_BACKWARD = Operator(
    "embedding_backward(Tensor dy, Tensor indices, SymInt n) -> (dweight)",
    _backward,
    lambda dy, indices, n: [((n, dy.shape[-1]), dtype_name(dy))],
)


def _gradient(kept: Any, dy: Array) -> dict[str, Array]:
    return {"weight": _BACKWARD(dy, kept.indices, kept.weight.shape[0])[0]}


_EMBEDDING = Operator(
    "embedding(Tensor weight, Tensor indices) -> (y)",
    _forward,
    _results,
    _gradient,
    keeps="weight indices",
)


def embedding(weight: Array, indices: Array) -> Array:
    """weight[indices]: the row of ``weight`` that each index names.

    ``weight`` (n, width) is float16, bfloat16 or float32; ``indices`` is of integers from 0 to n - 1, of any shape. The result has the
    shape of ``indices`` and then width, and the dtype of ``weight``.

    Differentiable in ``weight``: the gradient of a row is the sum over all places of its index, added up in float32 in an order that
    the indices alone decide. Raises LaunchValueError for shapes or dtypes that do not fit, and for indices out of range
    where the host has them at hand (arrays of NumPy, tensors of PyTorch on the CPU); elsewhere their rows are NaN, and they
    add nothing to the gradient.

    Exact; gradients have an error of (n + 1) 2^-24 Σ |dy| for n places of an index, beside the rounding.

    >>> import numpy as np, triton_metal.ops as ops
    >>> ops.embedding(np.array([[1, 2], [3, 4], [5, 6]], np.float32), np.array([2, 0, 2]))
    array([[5., 6.],
           [1., 2.],
           [5., 6.]], dtype=float32)
    """
    check_arrays("embedding", weight=weight, indices=indices)
    check_dtype("embedding", "weight", weight, FLOATS)
    check_rank("embedding", "weight", weight, 2)
    check_dtype("embedding", "indices", indices, INTEGERS)
    return _EMBEDDING(weight, indices)[0]
