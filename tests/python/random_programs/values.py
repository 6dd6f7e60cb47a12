"""Numbers that defects like: at and around every edge of every type."""

from __future__ import annotations

import random

import numpy as np

from .dtypes import BF16, BOOL, F64, DType

FLOAT_EDGES = [
    *(0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.5, 127.5, 128.0, -128.5, 255.5, 256.0, 300.0),
    *(float("inf"), float("-inf"), float("nan"), 2.0**31, -(2.0**31), 2.0**32, 2.0**63, -(2.0**63)),
    *(2.0**64, 1e20, -1e20, 65504.0, 65520.0, 32767.5, -32769.0, 2.0**-24, 2.0**-14, 2.0**-126),
    *(
        2.0**-149,
        2.0**24 + 2,
        2.0**31 - 128,
        2.0**53,
        3e38,
        -3e38,
        0.1,
        1 / 3,
        1e-10,
        2049.0,
        257.0,
    ),
]


# Those that only float64 has.
WIDE_EDGES = [
    *(2.0**-1022, 2.0**-1074, -(2.0**-1074), 1.7976931348623157e308, -1e300, 1e-300, 1 + 2.0**-52),
    *(2.0**53 - 1, 2.0**63 - 1024, 2.0**64 - 2048, 3.4028235677973366e38, 65519.99999999999),
    *(2.0**-150, 2.0**-25, 1 + 2.0**-24, 1 + 2.0**-11, 1 + 2.0**-11 + 2.0**-40, -1 - 2.0**-8),
]


def integer_edges(dtype: DType) -> list[int]:
    """Both ends of the type, zero, and the neighbours of powers of two."""
    edges = {0, 1, 2, 3, 5, 7, 10, dtype.low, dtype.low + 1, dtype.high, dtype.high - 1}
    for bits in (3, 4, 7, 8, 15, 16, 24, 31, 32, 33, 48, 53, 63, 64):
        for near in (-1, 0, 1):
            edges |= {(1 << bits) + near, -(1 << bits) + near}
    edges |= {-1, -2, -3, -7, 3_000_000_000, -3_000_000_000, 5_000_000_000}
    return sorted(edge for edge in edges if dtype.low <= edge <= dtype.high)


def contents(seed: int, size: int, dtype: DType, style: str) -> np.ndarray:
    """An array of edge values ("edges"), of small whole numbers ("small") or of anything ("any")."""
    rng = np.random.default_rng(seed)
    if dtype == BOOL:
        return rng.integers(0, 2, size).astype(bool)
    if dtype.is_float:
        if style == "small":
            return rng.integers(-4, 5, size).astype(np.float32).astype(dtype.numpy)
        wide = np.float64 if dtype == F64 else np.float32
        normal = (rng.standard_normal(size) * 2.0 ** rng.integers(-8, 12, size)).astype(wide)
        if style == "any":
            return normal.astype(dtype.numpy)
        edges = np.array(FLOAT_EDGES + (WIDE_EDGES if dtype == F64 else []), np.float64)
        edges = edges.astype(wide)
        with np.errstate(all="ignore"):
            chosen = np.where(rng.integers(0, 3, size) > 0, rng.choice(edges, size), normal)
            return chosen.astype(dtype.numpy)
    if style == "small":
        return rng.integers(-8 if dtype.is_signed else 0, 9, size).astype(dtype.numpy)
    whole = rng.integers(dtype.low, dtype.high, size, dtype=dtype.numpy, endpoint=True)
    if style == "any":
        return whole
    edges = np.array(integer_edges(dtype), dtype.numpy)
    return np.where(rng.integers(0, 4, size) > 0, rng.choice(edges, size), whole)


def number(rng: random.Random, dtype: DType) -> bool | int | float:
    """A Python number that may stand beside a tile of this dtype."""
    if dtype == BOOL:
        return rng.choice([True, False])
    if dtype.is_float:
        if rng.random() < 0.4:
            return rng.choice([0, 1, -1, 2, 3, -7, 100])
        value = rng.choice([0.0, -0.0, 1.0, 0.5, -1.5, 2.0, 0.1, -3.75, 127.5, 1000.0, 65504.0])
        return float(np.float32(value)) if dtype == BF16 and rng.random() < 0.5 else value
    if rng.random() < 0.5:
        return rng.choice(
            [n for n in (0, 1, 2, 3, -1, -2, 5, 7, 10) if dtype.low <= n <= dtype.high]
        )
    return rng.choice(integer_edges(dtype))
