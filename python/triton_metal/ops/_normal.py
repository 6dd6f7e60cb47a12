"""The normal distribution, of which the exact gelu is made."""

from __future__ import annotations

import triton_metal as triton
import triton_metal.language as tl


@triton.jit
def normal_below(x):
    """The part of the normal distribution below x, (1 + erf(x / √2)) / 2, in float32 within 2^-24 and 3 ulp.

    Below -|x| it is a power of two: its exponent is -1 at 0 and falls like a square, so that a short polynomial is near
    enough wherever the power is no less than a rounding of 1, and the power is 0 far from there.
    """
    t = tl.abs(x)
    exponent = -2.3349257e-06 * t + 3.373756e-05
    exponent = exponent * t - 0.00016129272
    exponent = exponent * t - 0.000191706
    exponent = exponent * t + 0.0071268682
    exponent = exponent * t - 0.052533615
    exponent = exponent * t - 0.45919827
    exponent = exponent * t - 1.151106
    tail = tl.exp2(exponent * t - 1)
    return tl.where(x < 0, tail, 1 - tail)
