"""How far a right result may lie from NumPy's in float64, from the dtypes and the lengths alone.

A sum of n fp32 terms in any order is off by at most n * 2^-24 times the sum of the magnitudes, and, roundings being
as good as random, by no more than a small multiple of the square root of n (Higham and Mary, "A New Approach to
Probabilistic Rounding Error Analysis", 2019; the multiple here is 6). Storing a result rounds it once more.
"""

from __future__ import annotations

from typing import Any

import numpy as np

UNIT_ROUNDOFF = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-24, "float64": 2.0**-53}
SMALLEST = {"float16": 2.0**-24, "bfloat16": 2.0**-133, "float32": 2.0**-149, "float64": 2.0**-1074}
FLOAT32 = UNIT_ROUNDOFF["float32"]
FUNCTION_ULPS = 4  # what exp, exp2, rsqrt and a division may be off, in units of the last place


def rounding(reference: np.ndarray, dtype: str) -> np.ndarray:
    """The error of storing ``reference`` once as ``dtype``; integers are exact."""
    if dtype not in UNIT_ROUNDOFF:
        return np.zeros_like(reference)
    return UNIT_ROUNDOFF[dtype] * np.abs(reference) + SMALLEST[dtype]


def accumulation(magnitude: Any, terms: int) -> Any:
    """The error of an fp32 sum of ``terms`` terms whose magnitudes sum to ``magnitude``."""
    return (min(terms, 6 * terms**0.5) + 1) * FLOAT32 * magnitude


def share_of_bound(
    actual: np.ndarray, reference: np.ndarray, bound: np.ndarray
) -> tuple[float, float]:
    """The largest error and the bound at the element that comes nearest to its bound.

    Elements that are not finite in the reference must be the same in the result.
    """
    actual, reference = np.asarray(actual, np.float64), np.asarray(reference, np.float64)
    bound = np.broadcast_to(bound, reference.shape)
    finite = np.isfinite(reference)
    if not np.array_equal(actual[~finite], reference[~finite], equal_nan=True):
        return float("inf"), 0.0
    if not finite.any():
        return 0.0, 0.0
    error = np.abs(actual - reference)[finite]
    error[np.isnan(error)] = np.inf
    limit = bound[finite]
    worst = int(np.argmax(np.where(error <= 0, 0, error / np.maximum(limit, 1e-300))))
    return float(error[worst]), float(limit[worst])
