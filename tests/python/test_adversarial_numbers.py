"""Numbers at the edges of their types: conversions, divisions, shifts, high products, bits, NaN."""

from __future__ import annotations

import numpy as np
import pytest

from kernel_support import assert_same, dtype, integers, tl, triton


@triton.jit
def convert_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, x.to(out_ptr.dtype.element_ty), mask=offsets < n)


def nearest_bfloat(value: int) -> float:
    """The bfloat nearest to an integer, to even where two are."""
    magnitude = abs(value)
    cut = max(magnitude.bit_length() - 8, 0)
    quotient, rest = magnitude >> cut, magnitude & ((1 << cut) - 1)
    half = 1 << cut >> 1
    quotient += cut > 0 and (rest > half or (rest == half and quotient & 1))
    return float((-1 if value < 0 else 1) * (quotient << cut))


@pytest.mark.parametrize("name", ["int32", "uint32", "int64", "uint64"])
def test_large_integers_round_once_to_bfloat(name: str) -> None:
    info, rng = np.iinfo(name), np.random.default_rng(0)
    # Just above, at and just below the middle of two neighbours.
    edges = [
        (((1 << 8) | odd) << shift) + nudge
        for shift in range(1, info.bits)
        for odd in (1, 3, 255)
        for nudge in (-1, 0, 1)
    ]
    edges += [-edge for edge in edges] + [info.min, info.max, 0]
    values = [edge for edge in edges if info.min <= edge <= info.max]
    x = np.concatenate([np.array(values, name), integers(rng, 1000, name)])
    x = np.concatenate(
        [x, integers(rng, 500, name) >> np.array(rng.integers(0, info.bits, 500), name)]
    )
    out = np.zeros(x.size, dtype("bfloat16"))
    convert_kernel[(1,)](x, out, x.size, BLOCK=4096)
    assert_same(out, np.array([nearest_bfloat(int(v)) for v in x], np.float32).astype(out.dtype))


@triton.jit
def scalar_convert_kernel(out_ptr, x):
    tl.store(out_ptr, x.to(tl.bfloat16))


@pytest.mark.parametrize(
    "x", [(257 << 17) + 1, -(257 << 17) - 1, (259 << 40) - 1, 2**63 + 2**55 + 1]
)
def test_large_scalars_round_once_to_bfloat(x: int) -> None:
    out = np.zeros(1, dtype("bfloat16"))
    scalar_convert_kernel[(1,)](out, x)
    assert float(out[0]) == nearest_bfloat(x)


@triton.jit
def wrong_axis_kernel(out_ptr):
    tl.store(out_ptr, tl.sum(tl.arange(0, 8), 1))


def test_errors_inside_of_the_language_are_the_callers() -> None:
    with pytest.raises(triton.CompileError, match="axis 1 is not in") as caught:
        wrong_axis_kernel[(1,)](np.zeros(1, np.int32))
    assert caught.value.location.file == __file__
    assert "tl.sum(tl.arange(0, 8), 1)" in str(caught.value)
    assert "standard.py" not in str(caught.value)
