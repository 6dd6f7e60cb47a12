"""PyTorch's tensors on "mps" as a device."""

from __future__ import annotations

import math
import platform
import sys
from collections.abc import Sequence
from typing import Any

from .. import mps, refusals
from ..errors import LaunchTypeError
from . import detect
from .base import DeviceProperties, Event, MemoryStatistics, read_shape
from .framework import FrameworkDevice, parse_version

OLDEST_TORCH = (2, 9)


class MPSEvent(Event):
    """An event of torch.mps."""

    def __init__(self) -> None:
        import torch

        self.event = torch.mps.Event(enable_timing=True)

    def record(self) -> None:
        self.event.record()

    def synchronize(self) -> None:
        self.event.synchronize()

    def elapsed_time(self, end: MPSEvent) -> float:
        return self.event.elapsed_time(end.event)


class MPSDevice(FrameworkDevice):
    """PyTorch tensors on the device "mps"."""

    name = "mps"
    array = "an MPS tensor"
    arrays = "PyTorch tensors on mps"
    framework = "torch"

    def __init__(self) -> None:
        self._highest = 0

    def problem(self) -> str | None:
        try:
            torch = self.installed()
        except ImportError as error:
            return f"torch is installed, but cannot be imported ({error})"
        if torch is None:
            return "torch is not installed: pip install torch"
        version = str(getattr(torch, "__version__", ""))
        if parse_version(version)[:2] < OLDEST_TORCH:
            oldest = ".".join(map(str, OLDEST_TORCH))
            return f"torch {version} is too old: {oldest} or later is needed (pip install -U torch)"
        backend = getattr(torch.backends, "mps", None)
        if backend is None or not backend.is_built():
            return (
                f"torch {version} for {platform.system()} {platform.machine()} is built without MPS, "
                "which only Macs with Apple silicon have"
            )
        if not backend.is_available():
            return (
                f"torch {version} finds no MPS device: it needs macOS 14 or later and an Apple GPU"
            )
        if not hasattr(torch.mps, "compile_shader"):
            return f"torch {version} has no torch.mps.compile_shader: pip install -U torch"
        return None

    @classmethod
    def owns(cls, value: Any) -> bool:
        torch = sys.modules.get("torch")
        return torch is not None and isinstance(value, torch.Tensor) and value.device.type == "mps"

    def allocate(self, shape: int | Sequence[int], dtype: str = "float32") -> Any:
        self.require()
        import torch

        element = getattr(torch, dtype, None)
        if not isinstance(element, torch.dtype):
            raise LaunchTypeError(f"torch has no dtype {dtype!r}")
        sizes = read_shape(shape)
        self.check_size(math.prod(sizes) * element.itemsize, f"a tensor of shape {sizes}")
        result = torch.empty(sizes, dtype=element, device="mps")
        self.memory_stats()
        return result

    def from_numpy(self, array: Any) -> Any:
        self.require()
        import numpy as np
        import torch

        self.check_size(array.nbytes, f"a tensor of shape {array.shape}")
        if str(array.dtype) == "bfloat16":
            return torch.from_numpy(array.astype("float32")).to(torch.bfloat16).to("mps")
        return torch.from_numpy(np.ascontiguousarray(array)).to("mps")

    def to_numpy(self, array: Any) -> Any:
        import torch

        with refusals.reporting("mps"):
            copy = array.cpu()
        if array.dtype == torch.bfloat16:
            import ml_dtypes

            return copy.float().numpy().astype(ml_dtypes.bfloat16)
        return copy.numpy()

    run = staticmethod(mps.launch)

    def synchronize(self) -> None:
        self.require()
        import torch

        with refusals.reporting("mps"):
            torch.mps.synchronize()

    def event(self) -> MPSEvent:
        self.require()
        return MPSEvent()

    def properties(self) -> DeviceProperties:
        self.require()
        import torch

        return detect.detect_with("mps").properties("mps", f"PyTorch {torch.__version__}")

    def memory_stats(self) -> MemoryStatistics:
        """The maximum is the one of the queries and allocations here, because torch.mps keeps none."""
        self.require()
        import torch

        current = torch.mps.current_allocated_memory()
        self._highest = max(self._highest, current)
        return MemoryStatistics(current, self._highest)

    def reset_peak(self) -> None:
        """Resets the maximum."""
        self._highest = 0
