"""Runs one of MLX's kernels as MLX does: NumPy arrays in, NumPy arrays out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from metal_run import run
from mlx_kernels import FAMILIES
from mlx_kernels.family import TYPES, Family, Instance, include_folder, instance

_BY_NAME = {family.name: family for family in FAMILIES}
NUMPY = {
    "bool_": np.bool_,
    "uint8": np.uint8,
    "uint16": np.uint16,
    "uint32": np.uint32,
    "uint64": np.uint64,
    "int8": np.int8,
    "int16": np.int16,
    "int32": np.int32,
    "int64": np.int64,
    "float16": np.float16,
    "bfloat16": np.uint16,
    "float32": np.float32,
    "complex64": np.complex64,
}
#: How far a result of a few operations may be from the exact one, relative to it.
TOLERANCE = {"float32": 2e-6, "float16": 2e-3, "bfloat16": 1.6e-2, "complex64": 4e-6}


def family(name: str) -> Family:
    return _BY_NAME[name]


def generator(seed: int = 7) -> np.random.Generator:
    return np.random.default_rng(seed)


def i32(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def i64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def raw(*parts: np.ndarray) -> np.ndarray:
    """The bytes of a struct of parameters."""
    return np.frombuffer(b"".join(part.tobytes() for part in parts), np.uint8)


def encode(array: np.ndarray, t: str) -> np.ndarray:
    """The array as a kernel of that type reads it: bfloat16 as its bits, complex numbers as pairs of float32."""
    if t == "bfloat16":
        bits = np.ascontiguousarray(array, np.float32).view(np.uint32).astype(np.uint64)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    if t == "complex64":
        return np.ascontiguousarray(array, np.complex64).view(np.float32)
    return np.ascontiguousarray(array).astype(NUMPY[t])


def decode(stored: np.ndarray, t: str) -> np.ndarray:
    """What `encode` made, as numbers of 64 bits."""
    if t == "bfloat16":
        return (stored.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if t == "complex64":
        return np.ascontiguousarray(stored).view(np.complex64).astype(np.complex128)
    return stored.astype(np.float64) if t in ("float16", "float32") else stored


def rounded(array: np.ndarray, t: str) -> np.ndarray:
    """The numbers that a kernel of that type is given."""
    return decode(encode(array, t), t)


def numbers(shape: Sequence[int], t: str, seed: int = 7, scale: float = 1.0) -> np.ndarray:
    """Random numbers of the type: small integers, or normally distributed."""
    g = generator(seed)
    if t == "bool_":
        return g.integers(0, 2, shape).astype(bool)
    if t.startswith("uint"):
        return g.integers(0, 100, shape).astype(NUMPY[t])
    if t.startswith("int"):
        return g.integers(-100, 100, shape).astype(NUMPY[t])
    if t == "complex64":
        return rounded((g.standard_normal(shape) + 1j * g.standard_normal(shape)) * scale, t)
    return rounded(g.standard_normal(shape) * scale, t)


def blank(shape: Sequence[int], t: str) -> np.ndarray:
    """Memory for a result, filled with something that no kernel writes."""
    size = int(np.prod(shape)) * np.dtype(NUMPY[t]).itemsize
    return (
        np.full(size, 0x5A, np.uint8).view(NUMPY[t]).reshape(shape)
        if t != "complex64"
        else (np.full(size, 0x5A, np.uint8).view(np.float32).reshape(*shape[:-1], -1))
    )


def launch(
    of: Family | str,
    kernel: Instance | tuple[object, ...],
    buffers: Mapping[int, np.ndarray],
    outputs: Sequence[int],
    directory: Path,
    *,
    threadgroups: Sequence[int] | None = None,
    grid: Sequence[int] | None = None,
    group: Sequence[int] = (32,),
    constants: Mapping[int, object] | None = None,
    options: Sequence[str] = (),
) -> list[np.ndarray]:
    """Runs a kernel, checked, and returns the buffers `outputs`. A kernel is given by its function and template arguments."""
    chosen = family(of) if isinstance(of, str) else of
    each = kernel if isinstance(kernel, Instance) else instance("k", *kernel)  # type: ignore[arg-type]

    def joined(sizes: Sequence[int]) -> str:
        return ",".join(str(int(size)) for size in sizes)

    where = f"--grid={joined(grid)}" if grid else f"--threadgroups={joined(threadgroups or (1,))}"
    values = {i: str(v).lower() for i, v in (constants or {}).items()}
    return run(
        chosen.text([each]),
        directory,
        {str(index): array for index, array in buffers.items()},
        [str(index) for index in outputs],
        where,
        f"--group={joined(group)}",
        f"-I{include_folder()}",
        "--check=bounds",
        *(f"--constant={index}={value}" for index, value in values.items()),
        *options,
    )


def assert_close(
    got: np.ndarray, exact: np.ndarray, t: str, *, terms: int = 1, atol: float = 0.0
) -> None:
    """The stored result is that of `terms` operations in the type; integers are equal."""
    if t in TOLERANCE:
        bound = TOLERANCE[t]
        scale = float(np.nanmax(np.abs(exact[np.isfinite(exact)]), initial=0.0))
        np.testing.assert_allclose(
            decode(got, t), exact, rtol=bound, atol=max(atol, bound * scale * terms**0.5)
        )
    else:
        np.testing.assert_array_equal(got, exact.astype(NUMPY[t]))


def metal(t: str) -> str:
    return TYPES[t]
