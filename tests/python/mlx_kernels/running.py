"""Runs one of MLX's kernels as MLX does: NumPy arrays in, NumPy arrays out."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

import numpy as np
import triton_metal_host as metal_api

from mlx_kernels import FAMILIES
from mlx_kernels.family import (
    KERNELS,
    TYPES,
    Family,
    include_folder,
    instance,
    source_folder,
)

Case = TypeVar("Case")
#: A function and its template arguments.
Kernel = tuple[object, ...]
#: Values of function constants by index.
Constants = tuple[tuple[int, object], ...]
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


#: What launches are checked for.
CHECKS = frozenset(os.environ.get("TRITON_METAL_MLX_CHECKS", "bounds").split(","))
if "all" in CHECKS:
    CHECKS = frozenset(("bounds", "races", "initialized", "divergence", "arithmetic", "steps"))
#: Every operation runs for these types. Of the others, one in three does, unless all checks are asked for.
FULL = ("float32", "int32", "bool_", "complex64")


def some(cases: Sequence[Case], t: str) -> list[Case]:
    """The cases of a type that run."""
    return list(cases if t in FULL or len(CHECKS) > 1 else cases[list(TYPES).index(t) % 3 :: 3])


#: The header of a kernel with a true defect, the check that finds it, and its report. docs/mlx-kernels.md tells what is wrong.
#: Such a kernel runs without that check.
DEFECTS = (
    ("scan.h", "initialized", r"line 317:49: a load .* 'simdgroup_sums'"),
    ("steel_gemm_gather.h", "races", r"line 125:29 of loader\.h \(called in line 124:16\): a race"),
    ("reduce.h", "divergence", r"line 67:5: not all threads .* threadgroup barrier"),
    ("gemv.h", "divergence", r"line (219|350):9 \(.*: not all threads .* threadgroup barrier"),
    ("gemv.h", "divergence", r"line (206:23|373:7 of utils\.h) \(.*: a shuffle reads lane"),
    ("gemv.h", "races", r"line 222:29 \(.*: a race|meets .* in line 2(16|22):\d+ "),
    ("gemv_masked.h", "divergence", r"line 508:9 \(.*: not all threads .* threadgroup barrier"),
    ("gemv_masked.h", "divergence", r"line 313:23 \(.*: a shuffle reads lane"),
    ("fft.h", "races", r"line 429:40 of readwrite\.h \(.*: a race"),
    ("quantized.h", "initialized", r"the variable 'w(0|_local)' is read"),
    ("fp_quantized.h", "initialized", r"of fp[48]\.h \(.*: the variable 'x' is read"),
    ("fft.h", "divergence", r"not all threads .* threadgroup barrier"),
)

#: Of files that write memory which is not theirs, what is wrong and what is right. `counted` runs them so, as they would fault: a thread behind
#: the row stores into its array from a negative place on. What is right does less.
CORRECTED = {"layer_norm": ("for (int i = n; i", "for (int i = max(n, 0); i")}


_checks: list[frozenset[str]] = [CHECKS]


@dataclass(frozen=True)
class Counted:
    """What one launch did, and the kernel that did it: its text, the folder that it includes from, and its launch."""

    counters: dict[str, int]
    text: str
    folder: Path
    name: str
    constants: Constants
    threads: int


_counts: list[list[Counted]] = []


@contextmanager
def counted() -> Iterator[list[Counted]]:
    """Counts what the launches inside do, unchecked, and lists them."""
    _counts.append([])
    try:
        yield _counts[-1]
    finally:
        _counts.pop()


@contextmanager
def checked(checks: str) -> Iterator[None]:
    """Checks launches for this, whatever TRITON_METAL_MLX_CHECKS says, and knows no defects."""
    _checks.append(frozenset(checks.split(",")))
    try:
        yield
    finally:
        _checks.pop()


@cache
def _device() -> metal_api.Device:
    return metal_api.Device()


@cache
def _library(text: str, folder: Path) -> metal_api.Library:
    return _device().library(text, include=[folder])


@cache
def _pipeline(
    text: str,
    folder: Path,
    name: str,
    constants: tuple[tuple[int, object], ...],
    checks: frozenset[str],
    counters: bool = False,
) -> metal_api.Pipeline:
    function = _library(text, folder).function(name, dict(constants))
    return _device().pipeline(function, checks=checks, counters=counters)


@dataclass(frozen=True)
class _Kernel:
    """A kernel of a text, with its constants."""

    text: str
    folder: Path
    name: str
    constants: Constants

    def run(
        self,
        buffers: Mapping[int, np.ndarray],
        outputs: Sequence[int],
        size: Mapping[str, object],
        checks: str | None,
    ) -> list[np.ndarray]:
        if _counts:
            return self.count(buffers, outputs, size)
        wanted = _checks[-1] if checks is None else frozenset(checks.split(","))
        pipeline = _pipeline(self.text, self.folder, self.name, self.constants, wanted)
        memory = _bound(pipeline, buffers)
        arguments = {index: metal_api.Buffer(array) for index, array in memory.items()}
        try:
            pipeline(arguments=arguments, **size)
        except metal_api.LaunchError as error:
            known = [
                check
                for header, check, report in DEFECTS
                if f"/{header}" in self.text and check in wanted and re.search(report, str(error))
            ]
            if checks is not None or not known or len(_checks) > 1:
                raise
            return self.run(buffers, outputs, size, ",".join(wanted - set(known)))
        return [memory[index] for index in outputs]

    def count(
        self, buffers: Mapping[int, np.ndarray], outputs: Sequence[int], size: Mapping[str, object]
    ) -> list[np.ndarray]:
        """Runs it unchecked, and adds what it did to the list of `counted`."""
        none: frozenset[str] = frozenset()
        pipeline = _pipeline(self.text, self.folder, self.name, self.constants, none, True)
        memory = _bound(pipeline, buffers)
        arguments = {index: metal_api.Buffer(array) for index, array in memory.items()}
        run = pipeline(arguments=arguments, **size)
        threads = int(np.prod(size["threads_per_threadgroup"]))
        _counts[-1].append(
            Counted(run.counters, self.text, self.folder, self.name, self.constants, threads)
        )
        return [memory[index] for index in outputs]


def _size(
    threadgroups: Sequence[int] | None, grid: Sequence[int] | None, group: Sequence[int]
) -> dict[str, object]:
    extent = {"threads": grid} if grid else {"threadgroups": threadgroups or (1,)}
    sizes = {**extent, "threads_per_threadgroup": group}
    return {name: tuple(map(int, each)) for name, each in sizes.items()}


#: Where a kernel is: the text, and its name in there.
_texts: dict[tuple[str, Kernel], tuple[str, str]] = {}


def together(of: str, kernels: Iterable[Kernel]) -> None:
    """Has `launch` compile these kernels in one text, which takes less time than a text for each."""
    new = [kernel for kernel in dict.fromkeys(kernels) if (of, kernel) not in _texts]
    named = {kernel: f"k{i}" for i, kernel in enumerate(new)}
    text = family(of).text(instance(name, *kernel) for kernel, name in named.items())
    _texts.update({(of, kernel): (text, name) for kernel, name in named.items()})


def _bound(pipeline: metal_api.Pipeline, buffers: Mapping[int, np.ndarray]) -> dict[int, object]:
    """The memory of each buffer: a copy, if the kernel writes it, and one element for what MLX leaves unbound."""
    result: dict[int, object] = {}
    for parameter in pipeline.function.info.buffers:
        if parameter.index in buffers:
            array = np.asarray(buffers[parameter.index], order="C")
            written = parameter.index in pipeline.written_buffers
            result[parameter.index] = array.copy() if written else array
        elif parameter.exists:
            result[parameter.index] = np.zeros(max(1, parameter.size), np.uint8)
    unknown = set(buffers) - {parameter.index for parameter in pipeline.function.info.buffers}
    assert not unknown, f"{pipeline.function.info} has no buffers {sorted(unknown)}"
    return result


def launch(
    of: str,
    kernel: Kernel | str,
    buffers: Mapping[int, np.ndarray],
    outputs: Sequence[int],
    *,
    threadgroups: Sequence[int] | None = None,
    grid: Sequence[int] | None = None,
    group: Sequence[int] = (32,),
    constants: Mapping[int, object] | None = None,
    checks: str | None = None,
) -> list[np.ndarray]:
    """Runs a kernel, checked, and returns the buffers `outputs`.

    A kernel of the family `of` is given by its function and template arguments; one of the file `of` of MLX's build, by
    its name.

    What launches are checked for is "bounds", what TRITON_METAL_MLX_CHECKS names, or `checks`. Raises `LaunchError` with
    what a check has found; the arrays that are given stay as they are.
    """
    make = _built if isinstance(kernel, str) else _instantiated
    chosen = make(of, kernel, tuple((constants or {}).items()))
    return chosen.run(buffers, outputs, _size(threadgroups, grid, group), checks)


def _instantiated(of: str, kernel: Kernel, constants: Constants) -> _Kernel:
    if (of, kernel) not in _texts:
        together(of, [kernel])
    folder = include_folder()
    assert folder is not None
    text, name = _texts[of, kernel]
    return _Kernel(text, folder, name, constants)


def _built(file: str, name: str, constants: Constants = ()) -> _Kernel:
    folder = source_folder()
    assert folder is not None
    text = f'#include "{KERNELS}/{file}.metal"\n'
    if _counts and file in CORRECTED:
        text = _corrected(folder / KERNELS / f"{file}.metal", *CORRECTED[file])
    return _Kernel(text, folder, name, constants)


@cache
def _corrected(path: Path, wrong: str, right: str) -> str:
    text = path.read_text("utf-8")
    assert wrong in text, f"{path} has no {wrong!r}"
    return text.replace(wrong, right)


def function_of(file: str, name: str) -> metal_api.Function:
    """A kernel that one of the files of MLX's build makes; the installed package does not have them."""
    kernel = _built(file, name)
    return _library(kernel.text, kernel.folder).function(name)


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
