"""Small kernels that each test one capability of a device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .. import language as tl
from ..jit import jit

if TYPE_CHECKING:
    import numpy as np


@jit
def axpy_kernel(x_ptr, y_ptr, n, factor, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    y = tl.load(y_ptr + offsets, mask=mask) + tl.load(x_ptr + offsets, mask=mask) * factor
    tl.store(y_ptr + offsets, y, mask=mask)


@jit
def softmax_kernel(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    places = tl.program_id(0) * columns + tl.arange(0, BLOCK)
    mask = tl.arange(0, BLOCK) < columns
    x = tl.load(x_ptr + places, mask=mask, other=-float("inf"))
    e = tl.exp(x - tl.max(x))
    tl.store(y_ptr + places, e / tl.sum(e), mask=mask)


@jit
def product_kernel(a_ptr, b_ptr, c_ptr, N: tl.constexpr):
    places = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(c_ptr + places, tl.dot(tl.load(a_ptr + places), tl.load(b_ptr + places)))


@jit
def count_kernel(x_ptr, counts_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    bins = tl.load(x_ptr + offsets, mask=mask, other=0)
    tl.atomic_add(counts_ptr + bins, 1, mask=mask)


@jit
def accumulate_kernel(x_ptr, total_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    tl.atomic_add(total_ptr, tl.sum(x))


@dataclass(frozen=True)
class Probe:
    """One kernel with its inputs and expected output."""

    name: str
    needs: str
    arrays: Callable[[], list[Any]]
    launch: Callable[[list[Any]], Any]
    output: int
    expected: Callable[[list[np.ndarray]], np.ndarray]
    tolerance: float


def _normal(*shape: int, dtype: str = "float32", seed: int = 0) -> np.ndarray:
    import numpy as np

    values = np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)
    if dtype == "bfloat16":
        import ml_dtypes

        return values.astype(ml_dtypes.bfloat16)
    return values.astype(dtype)


def _softmax(x: np.ndarray) -> np.ndarray:
    import numpy as np

    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def _elementwise(dtype: str, tolerance: float) -> Probe:
    n = 10_007
    return Probe(
        f"elementwise {dtype}",
        "masked loads and stores, scalars",
        lambda: [_normal(n, dtype=dtype), _normal(n, dtype=dtype, seed=1)],
        lambda a: axpy_kernel[((n + 1023) // 1024,)](a[0], a[1], n, 0.5, BLOCK=1024),
        1,
        lambda a: a[1].astype("float64") + a[0].astype("float64") * 0.5,
        tolerance,
    )


def _product(dtype: str, tolerance: float) -> Probe:
    return Probe(
        f"matrix product {dtype}",
        "simdgroup matrices, threadgroup memory",
        lambda: [
            _normal(64, 64, dtype=dtype),
            _normal(64, 64, dtype=dtype, seed=1),
            _normal(64, 64),
        ],
        lambda a: product_kernel[(1,)](*a, N=64),
        2,
        lambda a: a[0].astype("float64") @ a[1].astype("float64"),
        tolerance,
    )


def probes() -> list[Probe]:
    """All probes, the simplest first. Tolerances are absolute; they follow from the dtype and the length of sums."""
    import numpy as np

    def labels() -> list[Any]:
        return [
            np.random.default_rng(2).integers(0, 50, 5000).astype(np.int32),
            np.zeros(50, np.int32),
        ]

    return [
        _elementwise("float32", 1e-6),
        _elementwise("float16", 8e-3),
        _elementwise("bfloat16", 6e-2),
        Probe(
            "softmax of rows",
            "reductions, exp, barriers",
            lambda: [_normal(33, 781), _normal(33, 781)],
            lambda a: softmax_kernel[(33,)](a[0], a[1], 781, BLOCK=1024),
            1,
            lambda a: _softmax(a[0]),
            1e-6,
        ),
        _product("float32", 1e-4),
        _product("float16", 1e-4),
        _product("bfloat16", 1e-4),
        Probe(
            "atomic counts",
            "integer atomics",
            labels,
            lambda a: count_kernel[(20,)](a[0], a[1], 5000, BLOCK=256),
            1,
            lambda a: np.bincount(a[0], minlength=50).astype(np.float64),
            0.0,
        ),
        Probe(
            "atomic sum",
            "float atomics",
            lambda: [_normal(4096), np.zeros(1, np.float32)],
            lambda a: accumulate_kernel[(16,)](a[0], a[1], BLOCK=256),
            1,
            lambda a: a[0].astype(np.float64).sum(keepdims=True),
            1e-3,
        ),
    ]
