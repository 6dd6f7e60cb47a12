"""MLX and PyTorch MPS as devices. Neither framework is imported before it is needed."""

from __future__ import annotations

import importlib
import importlib.util
import json
import math
import platform
import sys
from collections.abc import Mapping, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

from .. import _native
from ..errors import DeviceError, LaunchTypeError
from .base import (
    Device,
    DeviceProperties,
    Event,
    MemoryStatistics,
    pack_scalars,
    read_grid,
    read_metadata,
)
from .host import read_shape

OLDEST_MLX = (0, 30)
OLDEST_TORCH = (2, 9)


def parse_version(text: str) -> tuple[int, ...]:
    """The leading numbers of a version.

    >>> parse_version("2.13.0a0+cpu")
    (2, 13, 0)
    """
    numbers: list[int] = []
    for part in text.split("+")[0].split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        numbers.append(int(digits))
        if digits != part:
            break
    return tuple(numbers)


class TextKernel:
    """A kernel that is only a Metal text and its contract, for a framework's route."""

    def __init__(self, metal: str, metadata: Mapping[str, Any] | str) -> None:
        fields = read_metadata(metadata)
        self.name = fields["name"]
        self.asm = {"metal": metal}
        self.metadata = SimpleNamespace(**fields)
        # The text may rely on addresses that are multiples of 16: every array is brought to one.
        buffers = [a["name"] for a in fields["args"] if a["kind"] == "buffer"]
        self.native = _native.Kernel(metal, json.dumps(fields), buffers)

    def __repr__(self) -> str:
        return f"TextKernel({self.name})"


class FrameworkDevice(Device):
    """What MLX and MPS share: launches go through the route that the framework's module gives."""

    module: str  # ours
    framework: str  # theirs

    def compile(self, metal: str, metadata: Mapping[str, Any] | str) -> Any:
        self.require()
        return TextKernel(metal, metadata)

    def launch(self, compiled: Any, grid: int | Sequence[int], arguments: Sequence[Any]) -> None:
        self.require()
        from . import route

        words = pack_scalars(read_metadata(compiled.metadata), arguments)
        route(self.name)(compiled, read_grid(grid), list(arguments), words)

    def installed(self) -> ModuleType | None:
        """The framework's module, imported; None where it is not installed."""
        top = self.framework.partition(".")[0]
        if top not in sys.modules and importlib.util.find_spec(top) is None:
            return None
        return importlib.import_module(self.framework)

    def check_size(self, size: int, what: str) -> None:
        """Raises where so many bytes are more than the device takes."""
        properties = self.properties()
        for limit, name in (
            (properties.max_buffer_bytes, "a buffer"),
            (properties.working_set_bytes, "its working set"),
        ):
            if limit is not None and size > limit:
                raise DeviceError(
                    f"{what} has {size:,} bytes, but the device {self.name} takes {limit:,} in {name}"
                )


class MLXEvent(Event):
    """MLX has no events: recording waits for the work so far, and notes the time."""

    def __init__(self, device: MLXDevice) -> None:
        self.device = device
        self.time: int | None = None

    def record(self) -> None:
        import time

        self.device.synchronize()
        self.time = time.perf_counter_ns()

    def synchronize(self) -> None:
        self.device.synchronize()

    def elapsed_time(self, end: MLXEvent) -> float:
        if self.time is None or end.time is None:
            raise DeviceError("the event has not been recorded: call record() first")
        return (end.time - self.time) / 1e6


class MLXDevice(FrameworkDevice):
    """Arrays of MLX: on the Apple GPU, or on the host device where MLX runs on the CPU."""

    name = "mlx"
    module = "triton_metal.mlx"
    framework = "mlx.core"

    def problem(self) -> str | None:
        try:
            mx = self.installed()
        except ImportError as error:
            return f"mlx is installed, but cannot be imported ({error})"
        if mx is None:
            return "mlx is not installed: pip install mlx" + (
                "" if sys.platform == "darwin" else "[cpu]"
            )
        version = getattr(mx, "__version__", "")
        if parse_version(version)[:2] < OLDEST_MLX:
            oldest = ".".join(map(str, OLDEST_MLX))
            return f"mlx {version} is too old: {oldest} or later is needed (pip install -U mlx)"
        return None

    def on_gpu(self) -> bool:
        """Whether MLX has an Apple GPU."""
        mx = self.installed()
        return mx is not None and bool(mx.metal.is_available())

    def allocate(self, shape: int | Sequence[int], dtype: str = "float32") -> Any:
        self.require()
        import mlx.core as mx

        element = getattr(mx, "bool_" if dtype == "bool" else dtype, None)
        if not isinstance(element, mx.Dtype):
            raise LaunchTypeError(f"MLX has no dtype {dtype!r}")
        sizes = read_shape(shape)
        self.check_size(math.prod(sizes) * element.size, f"an array of shape {sizes}")
        return mx.zeros(sizes, element)

    def from_numpy(self, array: Any) -> Any:
        self.require()
        import mlx.core as mx

        self.check_size(array.nbytes, f"an array of shape {array.shape}")
        if str(array.dtype) == "bfloat16":
            return mx.array(array.astype("float32")).astype(mx.bfloat16)
        return mx.array(array)

    def to_numpy(self, array: Any) -> Any:
        import mlx.core as mx
        import numpy as np

        if array.dtype == mx.bfloat16:
            import ml_dtypes

            return np.array(array.astype(mx.float32)).astype(ml_dtypes.bfloat16)
        return np.array(array)

    def synchronize(self) -> None:
        self.require()
        import mlx.core as mx

        mx.synchronize()

    def event(self) -> MLXEvent:
        self.require()
        return MLXEvent(self)

    def properties(self) -> DeviceProperties:
        self.require()
        import mlx.core as mx

        from . import detect
        from .target import BASELINE

        if not self.on_gpu():
            return DeviceProperties(
                name=f"MLX {mx.__version__} on the CPU, with the host Metal device",
                kind="mlx",
                chip=platform.machine() or None,
                os=f"{platform.system()} {platform.release()}",
                msl_version=BASELINE.msl_version,
                features=dict(BASELINE.features),
            )
        return detect.detect_with("mlx").properties("mlx", f"MLX {mx.__version__}")

    def memory_stats(self) -> MemoryStatistics:
        self.require()
        import mlx.core as mx

        return MemoryStatistics(mx.get_active_memory(), mx.get_peak_memory())

    def reset_peak(self) -> None:
        """The most so far is what it is now."""
        import mlx.core as mx

        mx.reset_peak_memory()


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
    """Tensors of PyTorch on the device "mps"."""

    name = "mps"
    module = "triton_metal.mps"
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
                "which is there on Macs with Apple silicon alone"
            )
        if not backend.is_available():
            return (
                f"torch {version} finds no MPS device: it needs macOS 14 or later and an Apple GPU"
            )
        if not hasattr(torch.mps, "compile_shader"):
            return f"torch {version} has no torch.mps.compile_shader: pip install -U torch"
        return None

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

        if array.dtype == torch.bfloat16:
            import ml_dtypes

            return array.cpu().float().numpy().astype(ml_dtypes.bfloat16)
        return array.cpu().numpy()

    def synchronize(self) -> None:
        self.require()
        import torch

        torch.mps.synchronize()

    def event(self) -> MPSEvent:
        self.require()
        return MPSEvent()

    def properties(self) -> DeviceProperties:
        self.require()
        import torch

        from . import detect

        return detect.detect_with("mps").properties("mps", f"PyTorch {torch.__version__}")

    def memory_stats(self) -> MemoryStatistics:
        """The most is of the times that it was asked or allocated here: torch.mps keeps no peak."""
        self.require()
        import torch

        current = torch.mps.current_allocated_memory()
        self._highest = max(self._highest, current)
        return MemoryStatistics(current, self._highest)

    def reset_peak(self) -> None:
        """The most so far is what it is now."""
        self._highest = 0
