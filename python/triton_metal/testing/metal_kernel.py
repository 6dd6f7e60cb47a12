"""A stand-in for `mx.fast.metal_kernel` that runs on the host Metal device.

It writes MLX's signature, passes the same arguments and refuses the same calls, according to
mlx/backend/common/metal_kernel.cpp, mlx/backend/metal/custom_kernel.cpp and python/src/fast.cpp; docs/apple.md lists
the details. Launches of whole threadgroups are lazy, as in MLX; others are evaluated at once.
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from .. import _native
from ..mlx import in_place
from .buffers import allocate
from .mlx_arrays import array_from, bytes_of, dtype_name

MAX_CONSTANT_ARRAY_SIZE = 8

# In MLX's order, which is that of the parameters.
ATTRIBUTES = {
    "dispatch_quadgroups_per_threadgroup": "uint",
    "dispatch_simdgroups_per_threadgroup": "uint",
    "dispatch_threads_per_threadgroup": "uint3",
    "grid_origin": "uint3",
    "grid_size": "uint3",
    "quadgroup_index_in_threadgroup": "uint",
    "quadgroups_per_threadgroup": "uint",
    "simdgroup_index_in_threadgroup": "uint",
    "simdgroups_per_threadgroup": "uint",
    "thread_execution_width": "uint",
    "thread_index_in_quadgroup": "uint",
    "thread_index_in_simdgroup": "uint",
    "thread_index_in_threadgroup": "uint",
    "thread_position_in_grid": "uint3",
    "thread_position_in_threadgroup": "uint3",
    "threadgroup_position_in_grid": "uint3",
    "threadgroups_per_grid": "uint3",
    "threads_per_grid": "uint3",
    "threads_per_simdgroup": "uint",
    "threads_per_threadgroup": "uint3",
}

TYPES = {
    "float32": "float",
    "float16": "float16_t",
    "bfloat16": "bfloat16_t",
    "float64": "double",
    "complex64": "complex64_t",
    "bool": "bool",
    **{
        f"{sign}int{width}": f"{sign}int{width}_t"
        for sign in ("", "u")
        for width in (8, 16, 32, 64)
    },
}


@dataclass
class Launch:
    """One launch: its whole Metal text, grid and threadgroup."""

    name: str
    text: str
    grid: tuple[int, int, int]
    threadgroup: tuple[int, int, int]


@dataclass
class Recorder:
    """The launches under `recording()`."""

    launches: list[Launch] = field(default_factory=list)


#: What refuses a stage ("library", "function", "pipeline", "limit") of a kernel; refusing.py sets it.
refuse: Callable[[str, str, str, int], int | None] | None = None

_recorders: list[Recorder] = []
_contents: list[Callable[[int, int], bytes]] = []


@contextlib.contextmanager
def recording() -> Iterator[Recorder]:
    """Collects the launches in this block."""
    recorder = Recorder()
    _recorders.append(recorder)
    try:
        yield recorder
    finally:
        _recorders.remove(recorder)


@contextlib.contextmanager
def uninitialized(contents: Callable[[int, int], bytes]) -> Iterator[None]:
    """New outputs hold `contents(index, bytes)`, because uninitialised memory may hold anything."""
    _contents.append(contents)
    try:
        yield
    finally:
        _contents.pop()


def metal_kernel(
    name: str,
    input_names: Sequence[str],
    output_names: Sequence[str],
    source: str,
    header: str = "",
    ensure_row_contiguous: bool = True,
    atomic_outputs: bool = False,
    compile_options: dict[str, str] | None = None,
) -> MetalKernel:
    """A kernel with a generated signature.

    >>> import mlx.core as mx
    >>> kernel = metal_kernel("double_", ["x"], ["y"],
    ...     "y[thread_position_in_grid.x] = 2 * x[thread_position_in_grid.x];")
    >>> x = mx.arange(3)
    >>> kernel(inputs=[x], output_shapes=[x.shape], output_dtypes=[x.dtype], grid=(3, 1, 1), threadgroup=(32, 1, 1))
    [array([0, 2, 4], dtype=int32)]
    """
    for value in (name, source, header, *input_names, *output_names):
        if not isinstance(value, str):
            raise TypeError("metal_kernel(): incompatible function arguments")
    if not output_names:
        raise ValueError("[metal_kernel] Must specify at least one output.")
    for option, value in (compile_options or {}).items():
        if option != "math_mode":
            raise ValueError(f"[metal_kernel] Unknown compile option `{option}`.")
        if value not in ("safe", "relaxed", "fast"):
            raise ValueError(
                "[metal_kernel] Expected math_mode to be 'safe', 'relaxed', or 'fast'."
            )
    return MetalKernel(
        name,
        list(input_names),
        list(output_names),
        source,
        header,
        ensure_row_contiguous,
        atomic_outputs,
    )


class MetalKernel:
    """The result of `metal_kernel`. It takes keyword arguments only."""

    def __init__(
        self,
        name: str,
        input_names: list[str],
        output_names: list[str],
        source: str,
        header: str,
        ensure_row_contiguous: bool,
        atomic_outputs: bool,
    ) -> None:
        self.name = name
        self.input_names = input_names
        self.output_names = output_names
        self.source = source
        self.header = header
        self.ensure_row_contiguous = ensure_row_contiguous
        self.atomic_outputs = atomic_outputs
        # Parts of words count, too: MLX looks for the text.
        self.shape_infos = [
            tuple(f"{input}{suffix}" in source for suffix in ("_shape", "_strides", "_ndim"))
            for input in input_names
        ]
        self.attributes = [
            f"  {type} {attribute} [[{attribute}]]"
            for attribute, type in ATTRIBUTES.items()
            if attribute in source
        ]

    def __call__(
        self,
        *,
        inputs: Sequence[Any],
        output_shapes: Sequence[Sequence[int]],
        output_dtypes: Sequence[Any],
        grid: tuple[int, int, int],
        threadgroup: tuple[int, int, int],
        template: Sequence[tuple[str, Any]] | None = None,
        init_value: float | None = None,
        verbose: bool = False,
        stream: Any = None,
    ) -> list[Any]:
        import mlx.core as mx

        arrays = [value if isinstance(value, mx.array) else mx.array(value) for value in inputs]
        _check_count("inputs", arrays, self.input_names)
        _check_count("output_shapes", output_shapes, self.output_names)
        _check_count("output_dtypes", output_dtypes, self.output_names)
        _check_ints("grid", grid)
        _check_ints("threadgroup", threadgroup)
        _check_stream(stream)
        function = f"custom_kernel_{self.name}"
        arguments = _template_arguments(template or [])
        if arguments:
            listed = ", ".join(text for _, _, text in arguments)
            function += "_" + re.sub("[<>]|, ", "_", f"<{listed}>")[:-1]
        function += "".join(
            f"_{TYPES[dtype_name(array.dtype)]}"
            + ("s" if not array.ndim else "c" if array.size < MAX_CONSTANT_ARRAY_SIZE else "")
            for array in arrays
        ) + "".join(f"_{TYPES[dtype_name(dtype)]}" for dtype in output_dtypes)
        text = self.signature(function, arrays, output_dtypes, arguments)
        if arguments:
            call = f"{function}<{listed}>"
            text += f'\ntemplate [[host_name("{function}")]] [[kernel]] decltype({call}) {call};\n'
        if verbose:
            print(f"Generated source code for `{self.name}`:\n```\n{text}\n```")
        for recorder in _recorders:
            recorder.launches.append(Launch(function, text, grid, threadgroup))
        return self.evaluate(
            function, text, arrays, output_shapes, output_dtypes, grid, threadgroup, init_value
        )

    def signature(
        self,
        function: str,
        arrays: Sequence[Any],
        output_dtypes: Sequence[Any],
        arguments: Sequence[tuple[str, str, str]],
    ) -> str:
        """The kernel's text as MLX writes it."""
        text = self.header
        if arguments:
            text += f"template <{', '.join(f'{type} {name}' for name, type, _ in arguments)}>\n"
        text += f"[[kernel]] void {function}(\n"
        index = 0
        for name, array, infos in zip(self.input_names, arrays, self.shape_infos, strict=True):
            space = "constant" if array.size < MAX_CONSTANT_ARRAY_SIZE else "device"
            reference = "*" if array.ndim else "&"
            type = TYPES[dtype_name(array.dtype)]
            text += f"  const {space} {type}{reference} {name} [[buffer({index})]],\n"
            index += 1
            if array.ndim:
                added = (("int* ", "_shape"), ("int64_t* ", "_strides"), ("int& ", "_ndim"))
                for wanted, (kind, suffix) in zip(infos, added, strict=True):
                    if wanted:
                        text += f"  const constant {kind}{name}{suffix} [[buffer({index})]],\n"
                        index += 1
        last = len(arrays) + len(self.output_names) - 1
        for name, dtype in zip(self.output_names, output_dtypes, strict=True):
            type = TYPES[dtype_name(dtype)]
            type = f"atomic<{type}>" if self.atomic_outputs else type
            # MLX counts buffers here, the added ones too.
            end = ",\n" if index < last or self.attributes else ") {\n"
            text += f"  device {type}* {name} [[buffer({index})]]{end}"
            index += 1
        text += ",\n".join(self.attributes) + (") {\n" if self.attributes else "")
        return f"{text}{self.source}\n}}\n"

    def evaluate(
        self,
        function: str,
        text: str,
        arrays: Sequence[Any],
        output_shapes: Sequence[Sequence[int]],
        output_dtypes: Sequence[Any],
        grid: tuple[int, int, int],
        threadgroup: tuple[int, int, int],
        init_value: float | None,
    ) -> list[Any]:
        """Runs the kernel, as MLX does when it evaluates the outputs."""
        import mlx.core as mx

        if refuse is not None:
            refuse("library", function, text, math.prod(threadgroup))
        try:
            library = _library(text)
        except ValueError as error:
            raise RuntimeError(
                f"[metal::Device] Unable to build metal library from source\n{error}"
            ) from None
        limit = library.kernels[function]["max_threads"]
        if refuse is not None:
            refuse("function", function, text, math.prod(threadgroup))
            refuse("pipeline", function, text, math.prod(threadgroup))
            smaller = refuse("limit", function, text, math.prod(threadgroup))
            limit = limit if smaller is None else min(limit, smaller)
        if math.prod(threadgroup) > limit:
            raise ValueError(
                f"Thread group size ({math.prod(threadgroup)}) is greater than  the maximum allowed threads per "
                f"threadgroup ({limit})."
            )
        if (
            not any(map(any, self.shape_infos))
            and threadgroup[1:] == (1, 1)
            and grid[0] % threadgroup[0] == 0
        ):
            return self.launch_lazily(
                function, text, arrays, output_shapes, output_dtypes, grid, threadgroup, init_value
            )
        memories, results = [], []
        for index, (shape, dtype) in enumerate(zip(output_shapes, output_dtypes, strict=True)):
            size = math.prod(shape) * dtype.size
            memory = allocate(size)
            if init_value is not None:
                value = mx.array(init_value, dtype=dtype)
                memory[:] = np.frombuffer(bytes_of(mx.broadcast_to(value, tuple(shape))), np.uint8)
            else:
                contents = _contents[-1](index, size) if _contents else _garbage(size)
                memory[:] = np.frombuffer(contents, np.uint8)
            memories.append(memory)
        try:
            library = _library(text)
        except ValueError as error:
            raise RuntimeError(
                f"[metal::Device] Unable to build metal library from source\n{error}"
            ) from None
        bindings: list[tuple[int, int, bool]] = []
        held: list[Any] = []

        def bind(data: bytes | np.ndarray, *, offset: int = 0, writable: bool = False) -> None:
            if not writable:
                copy = allocate(len(data), offset=offset)
                copy[:] = np.frombuffer(data, np.uint8)
                data = copy
            held.append(data)
            bindings.append((data.ctypes.data, data.nbytes, writable))  # type: ignore[union-attr]

        for array, infos in zip(arrays, self.shape_infos, strict=True):
            # MLX's arrays may begin anywhere in a buffer.
            bind(bytes_of(array), offset=array.dtype.size)
            if array.ndim:
                shape = np.asarray(array.shape, np.int32)
                strides = np.cumprod([1, *reversed(array.shape[1:])])[::-1].astype(np.int64)
                rank = np.asarray([array.ndim], np.int32)
                for wanted, values in zip(infos, (shape, strides, rank), strict=True):
                    if wanted:
                        bind(values.tobytes())
        for memory in memories:
            bind(memory, writable=True)
        group = tuple(min(pair) for pair in zip(threadgroup, grid, strict=True))
        library.dispatch(function, bindings, grid, group)
        for memory, shape, dtype in zip(memories, output_shapes, output_dtypes, strict=True):
            results.append(array_from(memory, tuple(shape), dtype))
        return results

    def launch_lazily(
        self,
        function: str,
        text: str,
        arrays: Sequence[Any],
        output_shapes: Sequence[Sequence[int]],
        output_dtypes: Sequence[Any],
        grid: tuple[int, int, int],
        threadgroup: tuple[int, int, int],
        init_value: float | None,
    ) -> list[Any]:
        """Runs the kernel as a part of MLX's graph: an in-place launch of the whole text on new arrays."""
        import mlx.core as mx

        outputs = []
        for index, (shape, dtype) in enumerate(zip(output_shapes, output_dtypes, strict=True)):
            if init_value is not None:
                outputs.append(mx.full(tuple(shape), mx.array(init_value, dtype)))
                continue
            size = math.prod(shape) * dtype.size
            contents = _contents[-1](index, size) if _contents else _garbage(size)
            outputs.append(array_from(np.frombuffer(contents, np.uint8), tuple(shape), dtype))
        kernel = _kernel(function, text, threadgroup[0], len(arrays), len(outputs))
        groups = (grid[0] // threadgroup[0], grid[1], grid[2])
        in_place.launch(kernel, groups, [*arrays, *outputs], b"")
        return outputs


def _check_count(what: str, actual: Sequence[Any], expected: Sequence[Any]) -> None:
    if len(actual) != len(expected):
        raise ValueError(
            f"[metal_kernel] Expected `{what}` to have size {len(expected)} but got size {len(actual)}.\n"
        )


def _check_ints(what: str, values: tuple[int, int, int]) -> None:
    if len(values) != 3 or any(
        isinstance(value, bool) or not isinstance(value, int) or not -(1 << 31) <= value < 1 << 31
        for value in values
    ):
        raise TypeError(f"__call__(): incompatible function arguments: {what} is {values!r}")
    # Metal's validation ends the process.
    if any(value < 1 for value in values):
        raise ValueError(f"dispatchThreads: takes a {what} of 1 and more, not {values!r}")


def _check_stream(stream: Any) -> None:
    import mlx.core as mx

    device = getattr(stream, "device", stream)
    if device is None or device == mx.gpu or device == mx.Device(mx.gpu, 0):
        return
    raise ValueError("[metal_kernel] Only supports the GPU.")


def _template_arguments(template: Sequence[tuple[str, Any]]) -> list[tuple[str, str, str]]:
    import mlx.core as mx

    arguments = []
    for name, value in template:
        if isinstance(value, bool):
            arguments.append((name, "bool", str(int(value))))
        elif isinstance(value, int):
            arguments.append((name, "int", str(value)))
        elif isinstance(value, mx.Dtype):
            arguments.append((name, "typename", TYPES[dtype_name(value)]))
        else:
            raise ValueError(
                "[metal_kernel] Invalid template argument. Must be `mlx.core.Dtype`, `int` or `bool`."
            )
    return arguments


_garbage_source = np.random.default_rng(0x6D6C78)


def _garbage(size: int) -> bytes:
    return _garbage_source.bytes(size)


@functools.lru_cache(maxsize=256)
def _library(text: str) -> _native.MetalLibrary:
    return _native.MetalLibrary(mlx_utilities() + text)


@functools.lru_cache(maxsize=256)
def _kernel(function: str, text: str, threads: int, inputs: int, outputs: int) -> SimpleNamespace:
    """The kernel for the in-place route."""
    arguments = [
        {
            "name": f"buffer {slot}",
            "kind": "buffer",
            "slot": slot,
            "reads": slot < inputs,
            "writes": slot >= inputs,
        }
        for slot in range(inputs + outputs)
    ]
    metadata = {"name": function, "threads": threads, "args": arguments, "scalar_buffer": -1}
    native = _native.Kernel(mlx_utilities() + text, json.dumps(metadata))
    return SimpleNamespace(name=function, native=native)


@functools.cache
def mlx_utilities() -> str:
    """The text that MLX prepends to every kernel, from the headers in its wheel."""
    import mlx.core as mx

    root = Path(mx.__file__).parent / "include"
    seen: set[str] = set()

    def embed(path: str) -> str:
        if path in seen:
            return ""
        seen.add(path)
        lines = []
        for line in (root / path).read_text(encoding="utf-8").splitlines():
            include = re.match(r'\s*#include "([^"]+)"', line)
            if include:
                lines.append(embed(include[1]))
            elif line.strip() != "#pragma once":
                lines.append(line)
        return "\n".join(lines) + "\n"

    return embed("mlx/backend/metal/kernels/utils.h")
