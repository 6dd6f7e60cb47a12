"""The driver of the backend "metal": which device is there, and how kernels are loaded, launched and timed.

The backend for stock Triton (triton_metal_backend) uses the same driver.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Callable
from typing import Any

from ... import devices
from ...errors import DeviceError
from ..compiler import NOMINAL_REGISTERS, GPUTarget, target_of
from ..driver import DriverBase
from .launch import MetalFunction, OwnLauncher


class MetalUtils:
    """What Triton's runtime asks of a driver."""

    def __init__(self, device: Any) -> None:
        self._device = device
        self._properties: dict[str, int] | None = None

    def get_device_properties(self, device: int = 0) -> dict[str, int]:
        """The limits of the device under the names that Triton uses; 0 where a figure is not known."""
        if self._properties is None:
            known = self._device.properties()
            self._properties = {
                "max_shared_mem": known.threadgroup_bytes,
                "max_num_regs": NOMINAL_REGISTERS * known.max_threads,
                "multiprocessor_count": known.gpu_cores or os.cpu_count() or 1,
                "warpSize": known.simd_width,
                "max_threads_per_block": known.max_threads,
                "sm_clock_rate": 0,
                "mem_clock_rate": 0,
                "mem_bus_width": 0,
            }
        return self._properties

    def load_binary(
        self, name: str, kernel: bytes, shared: int, device: int
    ) -> tuple[MetalFunction, MetalFunction, int, int, int]:
        """The kernel as module and as function, its registers (nominal) and spills (0), and the most threads that it can
        have.
        """
        function = MetalFunction.load(kernel)
        limit = self.get_device_properties(device)["max_threads_per_block"]
        return function, function, NOMINAL_REGISTERS, 0, limit

    def unload_module(self, module: MetalFunction) -> None:
        """Does nothing: a kernel goes with its last user."""


class HostEvent:
    """An event of torch's interface: a point in time, as launches on the host device end before they return."""

    def __init__(self, enable_timing: bool = False) -> None:
        self.time = 0

    def record(self, stream: Any = None) -> None:
        self.time = time.perf_counter_ns()

    def synchronize(self) -> None:
        """Does nothing."""

    def query(self) -> bool:
        return True

    def elapsed_time(self, end: HostEvent) -> float:
        """Milliseconds from this event to ``end``; at least a nanosecond, by which callers divide."""
        return max(end.time - self.time, 1) / 1e6


class DeviceInterface:
    """What ``torch.cuda`` is to CUDA: the events of a device, which is the only one."""

    def __init__(self, event: Callable[..., Any], synchronize: Callable[[], None]) -> None:
        self.Event = event
        self._synchronize = synchronize

    def synchronize(self, device: Any = None) -> None:
        """Waits until all launches have ended."""
        self._synchronize()

    def is_available(self) -> bool:
        return True

    def current_device(self) -> int:
        return 0

    def device_count(self) -> int:
        return 1


#: Triton's names of scalar types in Metal's text.
_METAL_TYPES = {
    "i1": "bool", "i8": "char", "i16": "short", "i32": "int", "i64": "long",
    "u1": "bool", "u8": "uchar", "u16": "ushort", "u32": "uint", "u64": "ulong",
    "fp16": "half", "bf16": "bfloat", "fp32": "float", "f32": "float", "fp64": "ulong",
}  # fmt: skip


class MetalDriver(DriverBase):
    """Launches on torch's "mps" device on a Mac, and on CPU tensors everywhere."""

    def __init__(self) -> None:
        mps = devices.get("mps")
        wanted = os.environ.get("TRITON_METAL_DEVICE", "")
        if wanted not in ("", "host", "mps"):
            raise RuntimeError(
                f"TRITON_METAL_DEVICE is {wanted!r}; a driver launches on host (CPU tensors) or mps"
            )
        has_mps = sys.platform == "darwin" and mps.problem() is None
        self._take(wanted or ("mps" if has_mps else "host"))

    def _take(self, name: str) -> None:
        self.device = devices.get(name)
        self.device.require()
        self.on_mps = self.device.name == "mps"
        self.utils = MetalUtils(self.device)
        self.launcher_cls = OwnLauncher

    @classmethod
    def is_active(cls) -> bool:
        """Whether kernels can be launched here."""
        return any(devices.get(name).problem() is None for name in ("host", "mps"))

    def get_current_target(self) -> GPUTarget:
        """The target; its ``backend`` is "cpu" or "mps".

        Programs take that name for PyTorch's device, as it is for CUDA.
        """
        return target_of((self.device.properties().chip or "apple") if self.on_mps else "host")

    def get_active_torch_device(self) -> Any:
        import torch

        return torch.device("mps" if self.on_mps else "cpu")

    def get_device_interface(self) -> Any:
        """Events and synchronisation: ``torch.mps``'s, or the clock for the host device."""
        if not self.on_mps:
            return DeviceInterface(HostEvent, lambda: None)
        import torch

        return DeviceInterface(torch.mps.Event, torch.mps.synchronize)

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: int) -> None:
        """There is one device."""
        if device != 0:
            raise ValueError(f"there is no device {device}: this machine has one, device 0")

    def get_current_stream(self, device: int = 0) -> int:
        """PyTorch's MPS has one stream."""
        return 0

    def get_device_capability(self, device: int = 0) -> tuple[int, int]:
        """CUDA's measure, which no Metal device has."""
        return 0, 0

    def map_python_to_cpp_type(self, ty: str) -> str:
        """The type of an argument in Metal's text."""
        if ty.startswith("*"):
            return f"device {self.map_python_to_cpp_type(ty[1:].removeprefix('k'))} *"
        return "uchar" if ty.startswith("fp8") else _METAL_TYPES[ty]

    def get_benchmarker(self) -> Any:
        # Measuring is above drivers: it compiles kernels.
        return importlib.import_module("triton_metal.testing").do_bench

    def get_empty_cache_for_benchmark(self) -> Any:
        """A tensor that is larger than the last level of caches."""
        import torch

        return torch.empty(64 << 20, dtype=torch.int32, device=self.get_active_torch_device())

    def clear_cache(self, cache: Any) -> None:
        cache.zero_()


class HostDriver(MetalDriver):
    """The driver for CPU tensors, whatever else is there."""

    def __init__(self) -> None:
        self._take("host")

    @classmethod
    def is_active(cls) -> bool:
        try:
            devices.get("host").require()
        except DeviceError:
            return False
        return True
