"""What the kernel tests share.

With TRITON_METAL_TESTS_ON_STOCK=1 the same tests run on stock Triton's interpreter: that is how a test itself is
tested. Tests of counts are skipped there.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
ON_STOCK = os.environ.get("TRITON_METAL_TESTS_ON_STOCK") == "1"
for folder in ("examples", "benchmarks"):
    if str(ROOT / folder) not in sys.path:
        sys.path.insert(0, str(ROOT / folder))
if ON_STOCK:
    import stock

    stock.use_stock_interpreter()

import triton_metal as triton  # noqa: E402, F401
import triton_metal.language as tl  # noqa: E402, F401

from _arrays import numpy_dtype, to_float64  # noqa: E402
from _bounds import share_of_bound  # noqa: E402

needs_counters = pytest.mark.skipif(ON_STOCK, reason="the interpreter counts nothing")

FLOATS = ("float16", "bfloat16", "float32")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def torch_or_skip() -> Any:
    """torch, or a skipped test; where TRITON_METAL_REQUIRE_TORCH is set, a failed one."""
    if ON_STOCK:
        pytest.skip("NumPy's arrays are torch tensors there already")
    if os.environ.get("TRITON_METAL_REQUIRE_TORCH"):
        import torch

        return torch
    return pytest.importorskip("torch")


def dtype(name: str) -> np.dtype:
    """The NumPy dtype of that name, bfloat16 too (from ml_dtypes, or a skipped test)."""
    if name == "bfloat16":
        pytest.importorskip("ml_dtypes")
        if ON_STOCK:
            pytest.skip("the interpreter truncates to bfloat16 and adds it as integers")
    return numpy_dtype(name)


def normal(rng: np.random.Generator, shape: Any, name: str = "float32") -> np.ndarray:
    """Normal random numbers."""
    return rng.standard_normal(shape, dtype=np.float32).astype(dtype(name))


def integers(rng: np.random.Generator, shape: Any, name: str) -> np.ndarray:
    """Random integers over the whole range of the type."""
    info = np.iinfo(name)
    return rng.integers(info.min, info.max, shape, dtype=name, endpoint=True)


def numbers(rng: np.random.Generator, shape: Any, name: str) -> np.ndarray:
    """Normal floats, or integers over the whole range."""
    return normal(rng, shape, name) if "float" in name else integers(rng, shape, name)


def assert_within(actual: Any, expected: np.ndarray, bound: Any) -> None:
    """Every element within its bound; what is not finite must be the same."""
    error, limit = share_of_bound(to_float64(actual), expected, np.asarray(bound))
    assert error <= limit, f"error {error:.6g}, bound {limit:.6g}"


def assert_same(actual: Any, expected: np.ndarray) -> None:
    """Bit for bit, with any NaN for a NaN, and with the sign of zero."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape
    assert actual.dtype == expected.dtype
    if actual.dtype.kind in "iub":
        np.testing.assert_array_equal(actual, expected)
        return
    wide, wanted = actual.astype(np.float64), expected.astype(np.float64)
    np.testing.assert_array_equal(wide, wanted)
    numbers_ = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(wide)[numbers_], np.signbit(wanted)[numbers_])
