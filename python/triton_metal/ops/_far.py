"""Offsets that need 64 bits: kernels count in 32 bits unless a launch says that an array reaches far.

What says so is a constant of the kernel, so that other launches keep their texts.
"""

from __future__ import annotations

from collections.abc import Sequence

import triton_metal as triton
import triton_metal.language as tl

from ._arrays import Array, size_of, strides

#: So many elements away, an offset does not fit into 32 bits.
FAR_FROM = 1 << 31


@triton.jit
def index(x, FAR: tl.constexpr):
    """A number of rows, heads or elements that is multiplied by a step: 64 bits where arrays are far across."""
    return tl.cast(x, tl.int64) if FAR else x


@triton.jit
def far_steps(steps):
    """Steps of 64 bits: what they are multiplied by may stay as it is."""
    found = ()
    for i in tl.static_range(len(steps)):
        found = found + (tl.cast(steps[i], tl.int64),)
    return found


def reach(sizes: Sequence[int], steps: Sequence[int]) -> int:
    """How many elements the last element of these dimensions lies from the first."""
    return sum((n - 1) * abs(step) for n, step in zip(sizes, steps, strict=True) if n)


def far(*arrays: Array | None) -> bool:
    """Whether one of these arrays, or one of its shape, reaches over 2^31 elements or more."""
    for x in arrays:
        if x is not None:
            spans = reach(x.shape, strides(x))
            # The last block of rows reaches behind its array.
            if max(spans, size_of(x.shape)) >= FAR_FROM - (1 << 20):
                return True
    return False
