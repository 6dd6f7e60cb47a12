"""The host Metal device: kernels run on the CPU, on NumPy arrays and torch's CPU tensors."""

from __future__ import annotations

import json
import math
import os
import platform
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import DeviceError, LaunchTypeError, LaunchValueError
from .base import (
    Device,
    DeviceProperties,
    Event,
    MemoryStatistics,
    pack_scalars,
    read_grid,
    read_metadata,
)

_ALIGNMENT = 128  # a cache line of an Apple GPU


class HostLibrary:
    """A kernel's text on the host device."""

    def __init__(self, metal: str, metadata: Mapping[str, Any] | str) -> None:
        from .. import _native
        from ..launcher import configure_device

        configure_device()
        self.metadata = read_metadata(metadata)
        self.native = _native.HostLibrary(metal, json.dumps(self.metadata))
        self.native.prepare()


class HostEvent(Event):
    """Launches on the host device have run when they return, so that an event is a time."""

    def __init__(self) -> None:
        self.time: int | None = None

    def record(self) -> None:
        self.time = time.perf_counter_ns()

    def synchronize(self) -> None:
        self._recorded()

    def elapsed_time(self, end: Event) -> float:
        if not isinstance(end, HostEvent):
            raise DeviceError(f"an event of the host device cannot be measured against {end!r}")
        return (end._recorded() - self._recorded()) / 1e6

    def _recorded(self) -> int:
        if self.time is None:
            raise DeviceError("the event has not been recorded: call record() first")
        return self.time


class HostDevice(Device):
    """The device that is there everywhere.

    >>> import numpy, triton_metal
    >>> device = triton_metal.devices.get("host")
    >>> x = device.allocate(1000)
    >>> x.shape, x.dtype, device.memory_stats().current_allocated >= 4000
    ((1000,), dtype('float32'), True)
    """

    name = "host"

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._current = 0
        self._highest = 0

    def problem(self) -> str | None:
        from .. import _native

        return _native.host_device_problem()

    def compile(self, metal: str, metadata: Mapping[str, Any] | str) -> HostLibrary:
        self.require()
        return HostLibrary(metal, metadata)

    def allocate(self, shape: int | Sequence[int], dtype: str = "float32") -> Any:
        import numpy as np

        sizes = read_shape(shape)
        if dtype == "bfloat16":
            try:
                import ml_dtypes
            except ImportError:
                raise DeviceError(
                    "NumPy has no bfloat16 of its own: pip install ml_dtypes"
                ) from None
            element = np.dtype(ml_dtypes.bfloat16)
        else:
            try:
                element = np.dtype(dtype)
            except TypeError:
                raise LaunchTypeError(f"there is no dtype {dtype!r}") from None
        size = math.prod(sizes) * element.itemsize
        try:
            memory = np.empty(size + _ALIGNMENT, np.uint8)
        except MemoryError:
            raise DeviceError(f"the host device has no {size:,} bytes for an array") from None
        start = -memory.ctypes.data % _ALIGNMENT
        # Every view of the array keeps `memory`, which NumPy names as their base.
        weakref.finalize(memory, self._released, size).atexit = False
        with self._lock:
            self._current += size
            self._highest = max(self._highest, self._current)
        return memory[start : start + size].view(element).reshape(sizes)

    def from_numpy(self, array: Any) -> Any:
        result = self.allocate(array.shape, str(array.dtype))
        result[...] = array
        return result

    def to_numpy(self, array: Any) -> Any:
        import numpy as np

        return np.array(array)

    def _released(self, size: int) -> None:
        # A finaliser may run at any point of this thread, also where it holds the lock.
        self._current -= size

    def launch(self, compiled: Any, grid: int | Sequence[int], arguments: Sequence[Any]) -> None:
        library = compiled if isinstance(compiled, HostLibrary) else self._library(compiled)
        words = pack_scalars(library.metadata, arguments)
        library.native.launch(read_grid(grid), list(arguments), words)

    def _library(self, compiled: Any) -> HostLibrary:
        library = getattr(compiled, "_host_library", None)
        if library is None:
            asm = getattr(compiled, "asm", None)
            if not isinstance(asm, dict) or "metal" not in asm:
                raise LaunchTypeError(
                    "a launch takes what compile() of the device gave, or a compiled kernel, "
                    f"not {compiled!r}"
                )
            library = self.compile(asm["metal"], compiled.metadata)
            compiled._host_library = library
        return library

    def synchronize(self) -> None:
        """Nothing is under way: a launch returns when the kernel has run."""

    def event(self) -> HostEvent:
        return HostEvent()

    def properties(self) -> DeviceProperties:
        from .target import BASELINE

        return DeviceProperties(
            name="host Metal device",
            kind="host",
            chip=platform.machine() or None,
            os=f"{platform.system()} {platform.release()}",
            msl_version=BASELINE.msl_version,
            memory_bytes=physical_memory(),
            features=dict(BASELINE.features),
        )

    def memory_stats(self) -> MemoryStatistics:
        return MemoryStatistics(self._current, self._highest)

    def reset_peak(self) -> None:
        """The most so far is what it is now."""
        with self._lock:
            self._highest = self._current


def physical_memory() -> int | None:
    """Bytes of memory of this machine; None where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None


def read_shape(shape: int | Sequence[int]) -> tuple[int, ...]:
    """A shape as a tuple of integers that are not negative."""
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    if any(isinstance(s, bool) or not isinstance(s, int) or s < 0 for s in sizes):
        raise LaunchValueError(f"a shape is integers from 0 up, not {shape!r}")
    return sizes
