"""Small problems by which tables are made: calls of functions of `triton_metal.ops` whose launches have programs of given steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import matmuls
from ._choices import Config, forced

#: The kernel's name, what is to be chosen for the launch, and the call.
Problem = tuple[str, Config, Callable[[], Any]]


def numpy_dtype(name: str) -> Any:
    """NumPy's dtype of this name; bfloat16 is that of ml_dtypes."""
    if name == "bfloat16":
        import ml_dtypes

        return ml_dtypes.bfloat16
    return np.dtype(name)


def operand(rows: int, columns: int, way: str, dtype: str) -> np.ndarray:
    """A matrix that lies along its rows ("n") or along its columns ("t")."""
    if way == "t":
        return np.zeros((columns, rows), numpy_dtype(dtype)).T
    return np.zeros((rows, columns), numpy_dtype(dtype))


def _matmul(kind: str, config: Config, steps: int) -> Problem:
    dtype, ways, *more = kind.split()
    block_m, block_n, block_k, _ = config
    # The first of several tiles is a whole one.
    odd = 3 if "ragged" in more else 0
    m, n, k = 2 * block_m + odd, 2 * block_n + odd, steps * block_k - odd
    a, b = operand(m, k, ways[0], dtype), operand(k, n, ways[1], dtype)
    precision = "tf32" if "tensor" in more and dtype == "float32" else None
    return (
        "matmul_kernel",
        (*config, 1),
        lambda: matmuls.matmul(a, b, split_k=1, precision=precision),
    )


def _add_parts(kind: str, config: Config, steps: int) -> Problem:
    dtype = "int8" if kind == "int32" else "float32"
    a, b = operand(64, 256 * steps, "n", dtype), operand(256 * steps, 64, "n", dtype)

    def call() -> None:
        with forced("matmul", (64, 64, 16, 4, steps)):
            matmuls.matmul(a, b, split_k=steps, out_dtype=kind)

    return "add_parts_kernel", config, call


PROBLEMS: dict[str, Callable[[str, Config, int], Problem]] = {
    "add_parts": _add_parts,
    "matmul": _matmul,
}
