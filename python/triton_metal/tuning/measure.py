"""What a configuration takes: a time on a GPU, the model's estimate where there is none, or what the user's function returns."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .. import devices
from ..arguments import is_descriptor
from ..devices.base import Device
from ..errors import (
    CompilationError,
    DeviceAssertionError,
    DeviceError,
    DeviceRefusal,
    LaunchTypeError,
    LaunchValueError,
    OutOfResources,
)
from ..launcher import compile_clock
from ..testing.bench import is_gpu, quantiles_of, times_on
from .config import Config
from .model import Model
from .rows import Row

#: What a configuration that cannot be compiled or launched raises.
REFUSALS = (CompilationError, DeviceRefusal, LaunchValueError, OutOfResources)
QUANTILES = (0.5, 0.2, 0.8)

# Two searches at a time would disturb each other's times.
_timing = threading.RLock()


def device_of(values: Iterable[Any]) -> Device:
    """The device of a launch on these arguments; the host device if no launch takes them, as it will say itself."""
    try:
        return devices.current([v.base if is_descriptor(v) else v for v in values])
    except (LaunchTypeError, LaunchValueError):
        return devices.get("host")


def label_of(device: Device) -> str:
    """What measured results are valid for: the device and its chip."""
    if not is_gpu(device):
        return "host"
    chip = device.properties().chip
    return f"{device.name} {chip}" if chip else device.name


class Measurement:
    """Measures the configurations of one search."""

    def __init__(
        self,
        device: Device,
        do_bench: Callable[..., Any] | None,
        warmup: float,
        rep: float,
        model: Model | None = None,
    ) -> None:
        self._device = device
        self._do_bench = do_bench
        self._warmup = warmup
        self._rep = rep
        self.model = model
        self.errors: list[Exception] = []
        self.unit = "benchmark" if do_bench else "ms" if is_gpu(device) else "model"
        # A launch that is counted may fail a check of the host device.
        self._refusals = (*REFUSALS, DeviceError) if self.unit == "model" else REFUSALS

    def measure(
        self,
        config: Config,
        hooked: Callable[[Callable[[], Any]], Any],
        launch: Callable[..., Any],
        named: Mapping[str, Any],
    ) -> tuple[Row, Any]:
        """The row of a configuration, and its timing as stock Triton keeps it.

        ``hooked`` calls a function between the hooks of the search; ``launch(warmup, turn)`` launches over the grid that ``turn`` makes of
        the launch's, or compiles only. ``named`` are the arguments.
        """
        runs, more = 0, {}

        def run(warmup: bool = False, turn: Any = None) -> Any:
            nonlocal runs
            runs += not warmup
            return launch(warmup, turn)

        def count() -> Any:
            assert self.model is not None
            value, found = self.model.estimate(config, run, named)
            more.update(estimate=value, counted=(found.counted, found.programs))

        before = compile_clock.seconds
        refusal: Exception | None = None
        timing: Any = [math.inf] * 3
        try:
            if self._do_bench is not None:
                timing = self._do_bench(lambda: hooked(run), quantiles=QUANTILES)
            elif self.unit == "ms":
                with _timing:
                    times = times_on(self._device, lambda: hooked(run), self._warmup, self._rep)
                timing = quantiles_of(times, QUANTILES)
            else:
                self._device.wait_for(list(named.values()))
                hooked(count)
                timing = [more["estimate"]] * 3
        except DeviceAssertionError:
            raise
        except self._refusals as error:
            refusal = error
            self.errors.append(error)
        compile_ms = (compile_clock.seconds - before) * 1e3
        if refusal is not None:
            reason = f"{type(refusal).__name__}: {refusal}"
            return Row(config, runs=runs, compile_ms=compile_ms, reason=reason), timing
        value, low, high = figures_of(timing)
        return Row(config, value, low, high, runs, compile_ms, **more), timing


def expected_time(found: Any) -> float:
    """What a perf_model returned. Raises LaunchTypeError if that is no number; NaN comes last."""
    try:
        value = float(found)
    except (TypeError, ValueError):
        raise LaunchTypeError(
            f"autotune's perf_model must return a number, not {found!r}"
        ) from None
    return math.inf if math.isnan(value) else value


def ordered(timing: Any) -> tuple[float, ...]:
    """The figures of a benchmark by which configurations are ordered: what is no number comes last."""
    return tuple(math.inf if math.isnan(figure) else figure for figure in figures_of(timing))


def figures_of(timing: Any) -> tuple[float, float, float]:
    """The median and the percentiles of what a benchmark returned: a number, or one for each quantile."""
    values = list(timing) if isinstance(timing, (list, tuple)) else [timing]
    try:
        numbers = [float(value) for value in values]
    except (TypeError, ValueError):
        numbers = []
    if not numbers:
        raise LaunchTypeError(
            f"autotune's do_bench must return a number, or a list of them for the quantiles, not {timing!r}"
        )
    return numbers[0], numbers[min(1, len(numbers) - 1)], numbers[-1]
