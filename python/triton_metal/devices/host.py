"""The host Metal device: kernels run on the CPU, on NumPy arrays and torch's CPU tensors."""

from __future__ import annotations

import math
import os
import platform
import sys
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

from .. import _native
from ..cache import configure_host_device
from ..errors import DeviceError, LaunchTypeError, LaunchValueError
from ..mlx.graph_launches import run_in_place
from .base import (
    Device,
    DeviceProperties,
    Event,
    MemoryStatistics,
    TextKernel,
    read_shape,
)
from .target import BASELINE

_ALIGNMENT = 128  # a cache line of an Apple GPU


class HostEvent(Event):
    """A point in time: launches on the host device have ended when they return."""

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
    """The device that is available everywhere.

    >>> import numpy, triton_metal
    >>> device = triton_metal.devices.get("host")
    >>> x = device.allocate(1000)
    >>> x.shape, x.dtype, device.memory_stats().current_allocated >= 4000
    ((1000,), dtype('float32'), True)
    """

    name = "host"
    array = "a NumPy array"
    arrays = "NumPy arrays and CPU tensors"
    readable_on = ("mlx-graph",)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._current = 0
        self._highest = 0

    def problem(self) -> str | None:
        return _native.host_device_problem()

    @classmethod
    def owns(cls, value: Any) -> bool:
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(value, torch.Tensor):
            if value.device.type not in ("cpu", "mps"):
                raise LaunchValueError(
                    f"is a tensor on {value.device}: a kernel takes tensors on the CPU or on mps"
                )
            return value.device.type == "cpu"
        if hasattr(value, "__array_struct__") and getattr(value, "ndim", None) is not None:
            return hasattr(value, "ctypes") or not hasattr(value, "item")
        return isinstance(value, (bytearray, memoryview))

    def compile(self, metal: str, metadata: Mapping[str, Any] | str) -> TextKernel:
        configure_host_device()
        kernel = super().compile(metal, metadata)
        kernel.native.prepare()
        return kernel

    def allocate(self, shape: int | Sequence[int], dtype: str = "float32") -> Any:
        import numpy as np

        sizes = read_shape(shape)
        if dtype == "bfloat16" or dtype.startswith("float8_"):
            try:
                import ml_dtypes
            except ImportError:
                raise DeviceError(f"NumPy has no {dtype}: pip install ml_dtypes") from None
            if not hasattr(ml_dtypes, dtype):
                raise LaunchTypeError(f"there is no dtype {dtype!r}")
            element = np.dtype(getattr(ml_dtypes, dtype))
        else:
            try:
                element = np.dtype(dtype)
            except TypeError:
                raise LaunchTypeError(f"there is no dtype {dtype!r}") from None
        size = math.prod(sizes) * element.itemsize
        try:
            memory = np.empty(size + _ALIGNMENT, np.uint8)
        except MemoryError:
            raise DeviceError(
                f"the host device cannot allocate {size:,} bytes for an array"
            ) from None
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
        # A finaliser may run at any point of this thread, even while it holds the lock.
        self._current -= size

    def run(
        self, compiled: Any, grid: tuple[int, int, int], arguments: list[Any], scalar_words: bytes
    ) -> None:
        compiled.native.launch(grid, arguments, scalar_words)

    def run_on(
        self,
        device: str,
        compiled: Any,
        grid: tuple[int, int, int],
        arguments: list[Any],
        scalar_words: bytes,
    ) -> None:
        run_in_place(compiled, grid, arguments, scalar_words)

    def synchronize(self) -> None:
        """Does nothing: a launch returns when the kernel has ended."""

    def event(self) -> HostEvent:
        return HostEvent()

    def properties(self) -> DeviceProperties:
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
        """Resets the maximum to the current number of bytes."""
        with self._lock:
            self._highest = self._current


def physical_memory() -> int | None:
    """Bytes of memory of this machine; None if the system does not report it."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None
