"""MLX as a device."""

from __future__ import annotations

import math
import platform
import sys
import time
from collections.abc import Sequence
from typing import Any

from .. import refusals
from ..errors import DeviceError, LaunchTypeError
from ..mlx import in_place
from ..mlx.graph_launches import run_in_place
from . import detect
from .base import DeviceProperties, Event, MemoryStatistics, read_shape
from .framework import FrameworkDevice, parse_version
from .target import BASELINE

OLDEST_MLX = (0, 30)


class MLXEvent(Event):
    """A point in time: MLX has no events, so recording waits for the work so far."""

    def __init__(self, device: MLXDevice) -> None:
        self.device = device
        self.time: int | None = None

    def record(self) -> None:
        self.device.synchronize()
        self.time = time.perf_counter_ns()

    def synchronize(self) -> None:
        self.device.synchronize()

    def elapsed_time(self, end: MLXEvent) -> float:
        if self.time is None or end.time is None:
            raise DeviceError("the event has not been recorded: call record() first")
        return (end.time - self.time) / 1e6


class MLXDevice(FrameworkDevice):
    """MLX arrays, on the Apple GPU, or on the host device if MLX runs on the CPU."""

    name = "mlx"
    array = "an MLX array"
    arrays = "MLX arrays"
    array_types = ("mlx.core.array",)
    readable_on = ("host", "mlx-graph")
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

        with refusals.reporting("mlx"):
            if array.dtype == mx.bfloat16:
                import ml_dtypes

                return np.array(array.astype(mx.float32)).astype(ml_dtypes.bfloat16)
            return np.array(array)

    def run(
        self, compiled: Any, grid: tuple[int, int, int], arguments: list[Any], scalar_words: bytes
    ) -> None:
        in_place.launch(compiled, grid, arguments, scalar_words)

    def run_on(
        self,
        device: str,
        compiled: Any,
        grid: tuple[int, int, int],
        arguments: list[Any],
        scalar_words: bytes,
    ) -> None:
        if device == "mlx-graph":
            run_in_place(compiled, grid, arguments, scalar_words)
            return
        # The host device runs where MLX's CPU streams do.
        import mlx.core as mx

        with mx.stream(mx.cpu):
            in_place.launch(compiled, grid, arguments, scalar_words)

    def synchronize(self) -> None:
        self.require()
        import mlx.core as mx

        with refusals.reporting("mlx"):
            mx.synchronize()

    def wait_for(self, value: Any) -> None:
        import mlx.core as mx

        if isinstance(value, (mx.array, tuple, list)):
            with refusals.reporting("mlx"):
                mx.eval(value)
        self.synchronize()

    def event(self) -> MLXEvent:
        self.require()
        return MLXEvent(self)

    def properties(self) -> DeviceProperties:
        self.require()
        import mlx.core as mx

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
        """Resets the maximum to the current number of bytes."""
        import mlx.core as mx

        mx.reset_peak_memory()
