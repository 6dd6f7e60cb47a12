"""How often numbers fall into bins. Programs count parts of the array, and a second launch adds the counts."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import triton_metal as triton
import triton_metal.language as tl

from ..errors import LaunchTypeError
from ._arrays import FLOATS, Array, contiguous, framework, is_torch, reshaped, size_of
from ._checks import check_arrays, check_dtype, check_number, fail, integer
from ._launch import launch
from ._operators import Operator
from ._reduce import reduce_rows
from ._reducing import INTEGERS

#: The largest float32.
_LARGEST = 3.4028234663852886e38
_SHORT = ("int8", "int16", "uint8", "uint16")


@triton.jit
def histogram_kernel(
    x_ptr,
    edges_ptr,
    counts_ptr,
    n,
    part_length,
    bins,
    low,
    scale,
    steps,
    SEARCH: tl.constexpr,
    BLOCK: tl.constexpr,
    BINS: tl.constexpr,
):
    """The counts of BINS bins in one part of x; without edges the numbers are those of their bins.

    With SEARCH bins are bisected, 2 ** steps being more than the number of edges. Without, rounding may miss a bin by one.
    """
    part, first = tl.program_id(0), tl.program_id(1) * BINS
    counts = tl.zeros((BINS,), tl.int32)
    begin = part.to(tl.int64) * part_length
    for start in range(0, part_length, BLOCK):
        at = begin + start + tl.arange(0, BLOCK)
        mask = (at < n) & (start + tl.arange(0, BLOCK) < part_length)
        if edges_ptr is None:
            bin = tl.load(x_ptr + at, mask=mask, other=0)
            mask &= (bin >= 0) & (bin.to(tl.uint64) < bins)
            bin = bin.to(tl.int32)
        else:
            x = tl.load(x_ptr + at, mask=mask, other=0).to(tl.float32)
            mask &= (x >= low) & (x <= tl.load(edges_ptr + bins))
            if SEARCH:
                bin = tl.zeros((BLOCK,), tl.int32)
                above = bin + bins + 1  # the first edge above x is one of those from bin to here
                for _ in range(steps):
                    middle = (bin + above) // 2
                    reached = tl.load(edges_ptr + middle, mask=bin < above, other=float("inf")) <= x
                    bin = tl.where(reached, middle + 1, bin)
                    above = tl.where(reached, above, middle)
                bin = tl.maximum(bin - 1, 0)
            else:
                bin = tl.where(mask, (x - low) * scale, 0.0).to(tl.int32)
                bin = tl.minimum(tl.maximum(bin, 0), bins - 1)
                bin -= (x < tl.load(edges_ptr + bin)).to(tl.int32)
                bin = tl.maximum(bin, 0)
                bin += (x >= tl.load(edges_ptr + bin + 1)).to(tl.int32)
            bin = tl.minimum(bin, bins - 1)  # the last bin has its upper edge
        bin -= first
        mask &= (bin >= 0) & (bin < BINS)
        counts += tl.histogram(tl.where(mask, bin, 0), BINS, mask=mask)
    at = first + tl.arange(0, BINS)
    tl.store(counts_ptr + part.to(tl.int64) * bins + at, counts, mask=at < bins)


def _is_near(bins: int, low: float, high: float) -> bool:
    """Whether (x - low) · bins / (high - low) in float32 misses the bin of x by less than one.

    It is off by 3 · 2^-24 of itself, and each edge by 2^-24 of its size. What is subnormal may count as 0.
    """
    width, size = high - low, max(abs(low), abs(high))
    within = 2.0**-100 < width < 2.0**127 and bins / width < 2.0**100
    return within and bins * (3 + size / width) < 2**23


def _counts(x: Array, edges: Array | None, bins: int, low: float, high: float) -> tuple[Array, ...]:
    n, block = size_of(tuple(x.shape)), 1024
    tile = min(triton.next_power_of_2(max(bins, 2)), 1024)
    parts = max(1, min(256, triton.cdiv(n, 8 * block)))
    part_length = triton.cdiv(triton.cdiv(n, parts), block) * block
    search = edges is not None and not _is_near(bins, low, high)
    (counts,) = launch(
        histogram_kernel,
        (parts, triton.cdiv(bins, tile)),
        {"counts_ptr": ((parts, bins), "int32")},
        like=x,
        x_ptr=contiguous(x),
        edges_ptr=edges,
        n=n,
        part_length=part_length,
        bins=bins,
        low=float(low),
        scale=1.0 if search or edges is None else bins / (high - low),
        steps=(bins + 1).bit_length(),
        SEARCH=search,
        BLOCK=block,
        BINS=tile,
    )
    return (reshaped(reduce_rows(counts, (1, parts, bins), "sum", "int64"), (bins,)),)


_HISTOGRAM = Operator(
    "histogram(Tensor x, Tensor? edges, int bins, float low, float high) -> (counts)",
    _counts,
    lambda x, edges, bins, *_: [((bins,), "int64")],
)


#: The edges are made by an operator, so that torch.compile does not follow how.
_EDGES = Operator(
    "histogram_edges(Tensor x, int bins, float low, float high) -> (edges)",
    lambda x, bins, low, high: (_like(np.linspace(low, high, bins + 1).astype(np.float32), x),),
    lambda x, bins, *_: [((bins + 1,), "float32")],
)


def _bins(function: str, name: str, value: Any, least: int) -> int:
    number = integer(value)
    if number is None:
        raise LaunchTypeError(f"[{function}] {name} must be an integer but is {value!r}.")
    if not least <= number < 2**30:
        raise fail(function, f"{name} must be from {least} to {2**30 - 1} but is {number}.")
    return number


def histogram(x: Array, bins: int = 10, *, range: tuple[float, float]) -> tuple[Array, Array]:
    """How many numbers of x are in each of ``bins`` bins of one width over ``range``, as int64, and the bins + 1 edges, in float32.

    A bin has the numbers from its lower edge up to but without its upper edge; the last has its upper edge too. Numbers outside of
    ``range``, and NaNs, are not counted, as in numpy.histogram. ``x`` is float16, bfloat16, float32, or an integer of 8 or 16 bits, of
    any shape. ``range`` is (low, high) with low < high, in float32; the edges are rounded to it.

    Raises LaunchValueError for another dtype, or numbers out of range.

    Exact. Without gradients.

    >>> import numpy as np, triton_metal.ops as ops
    >>> counts, edges = ops.histogram(np.array([0, 1, 1, 2, 4, 9], np.float32), 4, range=(0, 4))
    >>> counts
    array([1, 2, 1, 1])
    >>> edges
    array([0., 1., 2., 3., 4.], dtype=float32)
    """
    check_arrays("histogram", x=x)
    check_dtype("histogram", "x", x, (*_SHORT, *FLOATS))
    bins = _bins("histogram", "bins", bins, 1)
    if not isinstance(range, (tuple, list)) or len(range) != 2:
        raise LaunchTypeError(f"[histogram] range must be two numbers but is {range!r}.")
    low, high = (check_number("histogram", "range", each) for each in range)
    begin, end = _rounded(low), _rounded(high)
    if not -_LARGEST <= begin < end <= _LARGEST:
        raise fail("histogram", f"range must be finite and begin below its end but is {range!r}.")
    plain = x.detach() if is_torch(x) else x
    (edges,) = _EDGES(plain, bins, low, high)
    return _HISTOGRAM(plain, edges, bins, begin, end)[0], edges


def bincount(x: Array, length: int) -> Array:
    """How often each of 0, 1, … length - 1 is in x, as int64.

    ``x`` has integers, in any shape; others than these are not counted. (``length`` is given, since the shape of a result cannot depend
    on data on the way.)

    Raises LaunchValueError for another dtype, or a length below 0.

    Exact. Without gradients.

    >>> import numpy as np, triton_metal.ops as ops
    >>> ops.bincount(np.array([0, 2, 2, 5]), 4)
    array([1, 0, 2, 0])
    """
    check_arrays("bincount", x=x)
    check_dtype("bincount", "x", x, INTEGERS)
    return _HISTOGRAM(x, None, _bins("bincount", "length", length, 0), 0.0, 1.0)[0]


def _rounded(x: float) -> float:
    """The float32 next to a number."""
    with np.errstate(over="ignore"):
        return float(np.float32(x))


# torch.compile calls this and does not follow it into NumPy.
_rounded._dynamo_marked_constant = True  # type: ignore[attr-defined]


def _like(x: np.ndarray, like: Array) -> Array:
    """An array of NumPy's as one of another's framework and device."""
    where = framework(like)
    if where == "torch":
        return sys.modules["torch"].from_numpy(x).to(like.device)
    return x if where == "numpy" else sys.modules["mlx.core"].array(x)
