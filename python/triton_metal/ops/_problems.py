"""Small problems by which tables are made: calls of functions of `triton_metal.ops` whose launches have programs of given steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from . import attentions, matmuls, quantized, scaled_matmuls
from ._choices import Config, forced

#: The kernel's name, what is to be chosen for the launch, and the call.
Problem = tuple[str, Config, Callable[[], Any]]
#: Calls of a dtype.
Calls = Callable[[str], Iterator[Callable[[], Any]]]


def numpy_dtype(name: str) -> Any:
    """NumPy's dtype of this name; bfloat16 is that of ml_dtypes."""
    if name == "bfloat16":
        import ml_dtypes

        return ml_dtypes.bfloat16
    return np.dtype(name)


def zeros(dtype: str, *shape: int) -> np.ndarray:
    return np.zeros(shape, numpy_dtype(dtype))


def operand(rows: int, columns: int, way: str, dtype: str, ragged: bool = False) -> np.ndarray:
    """A matrix that lies along its rows ("n") or along its columns ("t").

    It is a part of a wider one, so that how many lines an access touches does not depend on the size. Rows (columns) that are
    ``ragged`` begin anywhere.
    """
    wide = 1021 if ragged else 1024
    if way == "t":
        return np.zeros((columns, wide), numpy_dtype(dtype))[:, :rows].T
    return np.zeros((rows, wide), numpy_dtype(dtype))[:, :columns]


def _matmul(kind: str, config: Config, steps: int) -> Problem:
    dtype, ways, *more = kind.split()
    block_m, block_n, block_k, _ = config
    both = more == ["ragged"]
    ragged_a, ragged_b = both or more[-1:] == ["a"], both or more[-1:] == ["b"]
    # The first of several tiles is a whole one. The side along which one ragged operand lies is no multiple of 16.
    odd_m = 3 if both or (ragged_a and ways[0] == "t") else 0
    odd_k = 3 if both or (ragged_a and ways[0] == "n") or (ragged_b and ways[1] == "t") else 0
    odd_n = 3 if both or (ragged_b and ways[1] == "n") else 0
    m, n, k = 2 * block_m + odd_m, 2 * block_n + odd_n, steps * block_k - odd_k
    if dtype == "float8":
        x, w = operand(m, k, "n", "uint8", ragged_a), operand(n, k, "n", "uint8", ragged_b)
        forms = {"a_format": "e4m3", "b_format": "e4m3"}
        return (
            "matmul_kernel",
            (*config, 1),
            lambda: scaled_matmuls.scaled_matmul(x, w, split_k=1, **forms),
        )
    a, b = operand(m, k, ways[0], dtype, ragged_a), operand(k, n, ways[1], dtype, ragged_b)
    precision = "tf32" if "tensor" in more and dtype == "float32" else None
    return (
        "matmul_kernel",
        (*config, 1),
        lambda: matmuls.matmul(a, b, split_k=1, precision=precision),
    )


def _add_parts(kind: str, config: Config, steps: int) -> Problem:
    dtype = "int8" if kind == "int32" else "float32"
    a, b = np.zeros((64, 256 * steps), dtype), np.zeros((256 * steps, 64), dtype)

    def call() -> None:
        with forced("matmul", (64, 64, 16, 4, steps)):
            matmuls.matmul(a, b, split_k=steps, out_dtype=kind)

    return "add_parts_kernel", config, call


def _quantized(kind: str, config: Config, steps: int) -> Problem:
    mode, dtype, way = kind.split()
    block_m, _, block_k, _ = config
    bits, affine = 8 if mode in ("affine8", "mxfp8") else 4, mode.startswith("affine")
    k, n = steps * block_k, 1024
    rows, columns = (n, k) if way == "t" else (k, n)
    group = 64 if affine else 32
    w = np.zeros((rows, columns * bits // 32), np.uint32)
    scales = np.zeros((rows, columns // group), numpy_dtype(dtype) if affine else np.uint8)
    x = np.zeros((2 * block_m, k), numpy_dtype(dtype))
    how = {"transpose": way == "t", "bits": bits, "group_size": group}
    biases = scales if affine else None
    name = "affine" if affine else mode
    return (
        "quantized_matmul_kernel",
        config,
        lambda: quantized.quantized_matmul(x, w, scales, biases, mode=name, **how),
    )


def _decode(kind: str, config: Config, steps: int) -> Problem:
    dtype, width = kind.split()
    q, k = (np.zeros((1, 1, rows, int(width)), numpy_dtype(dtype)) for rows in (1, steps))

    def call() -> None:
        with forced("groups", (0,)):
            attentions.attention_decode(q, k, k)

    return "decode_kernel", (1, *config), call


def _quantized_rows(kind: str, config: Config, steps: int) -> Problem:
    _, _, call = _quantized(kind, (1, 0, 32 * config[0], 0), steps)
    return "vector_times_kernel", config, call


#: The dtype of a format's arrays, its name for an operand of numbers with scales, and the numbers of an element of the array.
_FORMATS = {
    "e2m1": ("uint8", "mxfp4", 2), "e4m3": ("uint8", "mxfp8", 1), "fp16": ("float16", None, 1), "bf16": ("bfloat16", None, 1),
}  # fmt: skip


def _scaled(kind: str, config: Config, steps: int) -> Problem:
    block_m, block_n, block_k, _ = config
    pair, *variant = kind.split()
    parts = 2 if variant == ["split"] else 1
    # The only tile has rows that are not there, or the first of several is whole.
    rows_of_a = block_m * 3 // 4 if variant == ["cut"] else 2 * block_m
    k = parts * steps * block_k
    operands, scales, forms = [], [], []
    for rows, form in zip((rows_of_a, 2 * block_n), pair.split(":"), strict=True):
        dtype, name, each = _FORMATS[form]
        operands.append(np.zeros((rows, k // each), numpy_dtype(dtype)))
        scales.append(None if name is None else np.zeros((rows, k // 32), np.uint8))
        forms.append(name)
    return (
        "scaled_matmul_kernel",
        (*config, parts),
        lambda: scaled_matmuls.scaled_matmul(
            *operands, *scales, a_format=forms[0], b_format=forms[1], split_k=parts
        ),
    )


PROBLEMS: dict[str, Callable[[str, Config, int], Problem]] = {
    "add_parts": _add_parts,
    "decode": _decode,
    "matmul": _matmul,
    "quantized": _quantized,
    "quantized_rows": _quantized_rows,
    "scaled": _scaled,
}
