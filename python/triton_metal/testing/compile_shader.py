"""A stand-in for `torch.mps.compile_shader` that runs on the host Metal device.

It accepts and refuses the same arguments as PyTorch, according to torch/csrc/mps/Module.cpp (calls and their
arguments) and aten/src/ATen/native/mps/OperationUtils.mm (binding, threads); docs/apple.md lists the details.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import _native
from .buffers import Buffer, buffer_of, is_tensor

MAX_SET_BYTES = 4096
MAX_BUFFERS = 31

#: What refuses a stage ("library", "function", "pipeline", "limit") of a kernel; refusing.py sets it.
refuse: Callable[[str, str, str, int], int | None] | None = None

_INTEGER_CASTS = {"int32": 4, "int16": 2, "int8": 1, "uint8": 1}


def compile_shader(source: str) -> ShaderLibrary:
    """Compiles Metal text at once; its kernels are attributes of the result.

    >>> import numpy as np
    >>> library = compile_shader(
    ...     "kernel void full(device float* out, constant float& value, uint i [[thread_position_in_grid]])"
    ...     " { out[i] = value; }")
    >>> x = np.zeros(4, np.float32)
    >>> library.full(x, 3.5)
    >>> x.tolist()
    [3.5, 3.5, 3.5, 3.5]
    """
    if not isinstance(source, str):
        raise TypeError(f"compile_shader takes text, not {type(source).__name__}")
    # [NSString stringWithCString:encoding:NSASCIIStringEncoding]
    if not source.isascii():
        raise RuntimeError("Failed to create metal library: the source is not ASCII")
    if refuse is not None:
        refuse("library", "", source, 0)
    # The text ends at the first NUL.
    try:
        library = _native.MetalLibrary(source.partition("\0")[0])
    except ValueError as error:
        raise SyntaxError(str(error)) from None
    return ShaderLibrary(library, source)


class ShaderLibrary:
    """`torch._C._mps_ShaderLibrary`."""

    def __init__(self, library: _native.MetalLibrary, source: str = "") -> None:
        self._library = library
        self._source = source

    def __getattr__(self, name: str) -> MetalKernel:
        if name not in self._library.kernels:
            raise RuntimeError(f"Failed to create function state object for: {name}")
        kernel = MetalKernel(self._library, name)
        if refuse is not None:
            threads = kernel.max_threads_per_threadgroup
            refuse("function", name, self._source, threads)
            refuse("pipeline", name, self._source, threads)
            kernel.limit = refuse("limit", name, self._source, threads)
        return kernel

    def __dir__(self) -> list[str]:
        return list(self._library.kernels)


class MetalKernel:
    """`torch._C._mps_MetalKernel`."""

    def __init__(self, library: _native.MetalLibrary, name: str) -> None:
        self._library = library
        self._name = name
        self._info = library.kernels[name]
        self.limit: int | None = None
        self._needed = {
            parameter["index"]: parameter["name"]
            for parameter in self._info["parameters"]
            if parameter["kind"] == "buffer"
        }

    @property
    def max_threads_per_threadgroup(self) -> int:
        threads: int = self._info["max_threads"]
        return threads if self.limit is None else min(threads, self.limit)

    @property
    def thread_execution_width(self) -> int:
        return 32

    @property
    def static_thread_group_memory_length(self) -> int:
        return self._library.threadgroup_memory(self._name)

    def __call__(
        self,
        *args: Any,
        threads: int | Sequence[int] | None = None,
        group_size: int | Sequence[int] | None = None,
        arg_casts: str | dict[int, str] | None = None,
        error_buf_idx: int | None = None,
    ) -> None:
        grid, group = _extents(threads), _extents(group_size)
        default_cast, casts = _casts(arg_casts)
        bindings: list[Buffer | None] = []
        for index, value in enumerate(args):
            if is_tensor(value) or isinstance(value, np.ndarray):
                bindings.append(buffer_of(value))
                if grid is None:
                    grid = [value.numel() if is_tensor(value) else value.size]
                continue
            bindings.append(_by_value(value, casts.get(index, default_cast)))
        if error_buf_idx is not None:
            bindings += [None] * (error_buf_idx + 1 - len(bindings))
            bindings[error_buf_idx] = buffer_of(np.zeros(4096, np.uint8))
        if grid is None:
            raise RuntimeError("Number of threads is undefined or has wrong dimension")
        if group is not None and len(group) != len(grid):
            raise RuntimeError("threads and group_size must have the same number of dimensions")
        self._dispatch(bindings, grid, group)

    def _dispatch(
        self, bindings: list[Buffer | None], grid: list[int], group: list[int] | None
    ) -> None:
        limit = self.max_threads_per_threadgroup
        if group is None:
            group = [min(grid[0], limit) if len(grid) == 1 else limit]
        if math.prod(group) > limit:
            raise ValueError(f"Threadgroup size exceeds {limit} limit")
        if len(bindings) > MAX_BUFFERS:
            raise RuntimeError(
                f"the buffer index {len(bindings) - 1} is past Metal's {MAX_BUFFERS - 1}"
            )
        # What PyTorch leaves to Metal, whose validation ends the process.
        for index, name in self._needed.items():
            if index >= len(bindings) or bindings[index] is None:
                raise RuntimeError(f"{self._name}: nothing is bound to {name} [[buffer({index})]]")
        size, extent = _padded(grid), _padded(group)
        if any(not 1 <= value < 1 << 32 for value in size + extent):
            raise RuntimeError(f"{self._name}: cannot dispatch {grid} threads in groups of {group}")
        self._library.dispatch(
            self._name, [buffer and buffer.binding for buffer in bindings], size, extent
        )


def _padded(values: list[int]) -> tuple[int, int, int]:
    return tuple(values + [1] * (3 - len(values)))  # type: ignore[return-value]


def _extents(value: Any) -> list[int] | None:
    if value is None:
        return None
    values = [value] if isinstance(value, int) else list(value)
    if any(not isinstance(item, int) or item < 0 for item in values):
        raise TypeError("threads and group_size take unsigned 64-bit integers")
    if not 1 <= len(values) <= 3:
        raise RuntimeError("Expected 1 to 3 dimensions")
    return values


def _casts(value: Any) -> tuple[str, dict[int, str]]:
    if value is None:
        return "", {}
    if isinstance(value, str):
        return value, {}
    if isinstance(value, dict):
        if any(not isinstance(k, int) or not isinstance(v, str) for k, v in value.items()):
            raise RuntimeError("Unable to cast arg_casts to a map of integers to texts")
        return "", value
    raise RuntimeError(f"Unexpected caster arg type {type(value).__name__}")


def _by_value(value: Any, cast: str) -> Buffer:
    """Like setBytes: for one number or a list of numbers."""
    if isinstance(value, (tuple, list)):
        if not value:
            raise RuntimeError("Empty list/tuple can not be an argument to metal kernel")
        if is_tensor(value[0]):
            raise RuntimeError(
                "lists of tensors are GPU addresses, which the host device does not have"
            )
        if not isinstance(value[0], (int, float)):
            raise RuntimeError("Unexpected argument types")
        kind = int if isinstance(value[0], int) else float
        for item in value:
            _check_number(item, kind)
        data = b"".join(_encode(item, kind, cast) for item in value)
    elif isinstance(value, (int, float)):
        kind = int if isinstance(value, int) else float
        _check_number(value, kind)
        data = _encode(value, kind, cast)
    else:
        raise RuntimeError("Unsupported argument type")
    if len(data) > MAX_SET_BYTES:
        raise RuntimeError(
            f"setBytes:length:atIndex: takes {MAX_SET_BYTES} bytes at most, not {len(data)}"
        )
    held = np.frombuffer(data, np.uint8).copy()
    return Buffer(held.ctypes.data, held.nbytes, False, held)


def _check_number(value: Any, kind: Callable[..., Any]) -> None:
    if kind is int and (not isinstance(value, int) or not -(1 << 63) <= value < 1 << 63):
        raise RuntimeError(f"Unable to cast {value!r} to a 64-bit integer")
    if kind is float and not isinstance(value, (int, float)):
        raise RuntimeError(f"Unable to cast {value!r} to float")


def _encode(value: Any, kind: Callable[..., Any], cast: str) -> bytes:
    if cast == "":
        return struct.pack("<q", value) if kind is int else np.float32(value).tobytes()
    if cast in _INTEGER_CASTS:
        size = _INTEGER_CASTS[cast]
        return (int(value) & ((1 << 8 * size) - 1)).to_bytes(size, "little")
    if cast in ("fp16", "bf16"):
        # By way of a float, as PyTorch reads the number.
        return _native.pack_float(cast, float(np.float32(value)))[:2]
    raise RuntimeError(f"Unsupported cast instruction {cast}")
