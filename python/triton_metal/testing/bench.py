"""Measuring what a function takes on a device."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .. import devices
from ..devices.base import Device
from ..launcher import CompiledKernel

RETURN_MODES = ("min", "max", "mean", "median", "all")
#: What is overwritten between two runs on a GPU, so that each begins with cold caches: more than their sizes.
_FLUSHED_BYTES = 128 << 20
_MOST_RUNS = 100_000


def quantiles_of(times: Sequence[float], quantiles: Iterable[float]) -> list[float]:
    """Quantiles, interpolated between neighbours.

    >>> quantiles_of([4.0, 1.0, 2.0], [0.5, 0.75])
    [2.0, 3.0]
    """
    ordered = sorted(times)
    result = []
    for quantile in quantiles:
        if not 0 <= quantile <= 1:
            raise ValueError(f"quantiles must be from 0 to 1, not {quantile!r}")
        place = quantile * (len(ordered) - 1)
        below = math.floor(place)
        share = place - below
        result.append((1 - share) * ordered[below] + share * ordered[math.ceil(place)])
    return result


def summary(times: list[float], quantiles: Sequence[float] | None, return_mode: str) -> Any:
    """The times as the caller wants them."""
    if quantiles is not None:
        found = quantiles_of(times, quantiles)
        return found[0] if len(found) == 1 else found
    if return_mode == "all":
        return times
    functions: dict[str, Callable[[list[float]], float]] = {
        "min": min,
        "max": max,
        "mean": lambda values: math.fsum(values) / len(values),
        "median": lambda values: quantiles_of(values, [0.5])[0],
    }
    return functions[return_mode](times)


def _check(
    fn: Any, warmup: Any, rep: Any, quantiles: Sequence[float] | None, return_mode: str
) -> None:
    if not callable(fn):
        raise TypeError(f"do_bench measures a function without arguments, not {fn!r}")
    if return_mode not in RETURN_MODES:
        raise ValueError(
            f"do_bench: return_mode must be one of {', '.join(RETURN_MODES)}, not {return_mode!r}"
        )
    for name, value in (("warmup", warmup), ("rep", rep)):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
            raise ValueError(f"do_bench: {name} must be milliseconds, 0 or more, not {value!r}")
    if quantiles is not None:
        quantiles_of([0.0], quantiles)


def device_of_result(result: Any) -> Device:
    """The device that a function has used: that of the kernel or of the arrays that it returns, or else the chosen or
    preferred one.
    """
    values = result if isinstance(result, (tuple, list)) else (result,)
    for value in values:
        if isinstance(value, CompiledKernel):
            device = devices.get(value.device)
            # Where a stand-in takes the launches of a device, there is none.
            return device if device.problem() is None else devices.get("host")
    for value in values:
        name = devices.device_of(value)
        if name is not None:
            return devices.get(name)
    return devices.current(())


def is_gpu(device: Device) -> bool:
    """Whether launches on a device's arrays run on a GPU."""
    on_gpu = getattr(device, "on_gpu", None)
    return device.name != "host" and (on_gpu is None or bool(on_gpu()))


def _flusher(device: Device) -> Callable[[], Any]:
    """What brings other data into the caches of a GPU. The host device's runs keep theirs."""
    if not is_gpu(device) or device.name not in ("mps", "mlx"):
        return lambda: None
    if device.name == "mps":
        return device.allocate(_FLUSHED_BYTES, "int8").zero_
    import mlx.core as mx

    return lambda: mx.eval(mx.zeros((_FLUSHED_BYTES,), mx.int8) + 1)


def times_on(
    device: Device,
    fn: Callable[[], Any],
    warmup: float,
    rep: float,
    before_each: Callable[[], Any] = lambda: None,
) -> list[float]:
    """The milliseconds of single calls. ``warmup`` and ``rep`` are the milliseconds to spend."""
    queued = (
        device.name == "mps"
    )  # its events are points in the GPU's work, so that nothing has to wait

    def finish(result: Any) -> None:
        if not queued:
            device.wait_for(result)

    device.wait_for(fn())
    flush = _flusher(device)
    start = time.perf_counter()
    for _ in range(3):
        flush()
        device.wait_for(fn())
    estimate = max((time.perf_counter() - start) / 3 * 1e3, 1e-4)
    for _ in range(min(_MOST_RUNS, int(warmup / estimate))):
        fn()
    runs = min(_MOST_RUNS, max(1, int(rep / estimate)))
    events = [(device.event(), device.event()) for _ in range(runs)]
    device.synchronize()
    for begin, end in events:
        before_each()
        flush()
        begin.record()
        finish(fn())
        end.record()
    device.synchronize()
    return [begin.elapsed_time(end) for begin, end in events]


def do_bench(
    fn: Callable[[], Any],
    warmup: float = 25,
    rep: float = 100,
    grad_to_none: Sequence[Any] | None = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
) -> Any:
    """What a call of a function takes, in milliseconds.

    ``fn`` runs for about ``warmup`` milliseconds, and then for about ``rep`` milliseconds, each call measured by the
    device's own events: those of torch.mps, or the clock for MLX and the host device, after the work has ended. The
    device is the one of the kernel or the arrays that ``fn`` returns, or else the chosen one
    (``triton_metal.device``) or the Mac's. On a GPU other data is brought into the caches before each call. A time on the host
    device is a time of this processor, not of a GPU.

    ``grad_to_none`` lists tensors whose ``grad`` is set to None before each call. ``quantiles`` gives those
    quantiles: a list, or a number if there is one. ``return_mode`` is "mean", "median", "min", "max" or "all" (a list of
    all times) where no quantiles are asked for. Raises ValueError for other arguments.

    >>> import triton_metal
    >>> low, median, high = triton_metal.testing.do_bench(lambda: sum(range(100)), 1, 2, quantiles=[0.2, 0.5, 0.8])
    >>> 0 < low <= median <= high
    True
    """
    _check(fn, warmup, rep, quantiles, return_mode)
    device = device_of_result(fn())

    def forget_gradients() -> None:
        for value in grad_to_none or ():
            value.grad = None

    return summary(times_on(device, fn, warmup, rep, forget_gradients), quantiles, return_mode)


def do_bench_cudagraph(
    fn: Callable[[], Any],
    rep: float = 20,
    grad_to_none: Sequence[Any] | None = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
) -> Any:
    """`do_bench`: Metal has no CUDA graphs, so that the calls are measured one by one."""
    return do_bench(fn, rep / 4, rep, grad_to_none, quantiles, return_mode)
