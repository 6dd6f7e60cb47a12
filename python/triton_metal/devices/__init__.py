"""Devices: where kernels run, and how one is chosen.

A kernel runs where its arguments are: NumPy arrays and torch's CPU tensors on the host Metal device, MLX arrays
with MLX, tensors on "mps" with PyTorch. ``triton_metal.device("host")`` (for this thread) or the environment
variable ``TRITON_METAL_DEVICE`` (``host``, ``mlx`` or ``mps``, for the process) ask for one of them: arguments of
another are then refused.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .. import _native
from ..errors import DeviceError, LaunchTypeError, LaunchValueError
from .base import Device, DeviceProperties, Event, MemoryStatistics, pack_scalars

if TYPE_CHECKING:
    from .target import Target

NAMES = ("host", "mlx", "mps")

_devices: dict[str, Device] = {}
_factories: dict[str, Callable[[], Device]] = {}
_routes: dict[str, Callable[..., None]] = {}
_lock = threading.RLock()
_thread = threading.local()


def register(name: str, factory: Callable[[], Device]) -> None:
    """Makes ``factory()`` the device of that name, in place of the present one."""
    _check_name(name)
    with _lock:
        _factories[name] = factory
        _devices.pop(name, None)


def set_route(name: str, route: Callable[..., None]) -> None:
    """Sets what launches on a framework's arrays go through.

    ``route(compiled, grid, arguments, scalar_words)``: three integers, the arguments in the kernel's order, and the
    words of its scalar buffer.
    """
    _check_name(name)
    _routes[name] = route


def route(name: str) -> Callable[..., None]:
    """The route of a framework: what it registered, or ``launch`` of triton_metal.mlx or triton_metal.mps."""
    if name not in _routes:
        module = importlib.import_module(f"triton_metal.{name}")
        if name not in _routes:
            _routes[name] = module.launch
    return _routes[name]


def get(name: str) -> Device:
    """The device of that name, whether it is there or not.

    >>> import triton_metal
    >>> triton_metal.devices.get("host").name
    'host'
    """
    _check_name(name)
    with _lock:
        if name not in _devices:
            _devices[name] = _factories[name]()
        return _devices[name]


def available() -> list[Device]:
    """The devices that are there."""
    return [get(name) for name in NAMES if get(name).problem() is None]


def chosen() -> str | None:
    """The device that this thread, or TRITON_METAL_DEVICE, asks for; None: the arguments' own."""
    name = getattr(_thread, "name", None)
    if name is not None:
        return name
    named = os.environ.get("TRITON_METAL_DEVICE", "")
    if not named:
        return None
    if named not in NAMES:
        raise LaunchValueError(
            f"TRITON_METAL_DEVICE is {named!r}; the devices are {', '.join(NAMES)}"
        )
    return named


class device:
    """Asks for a device in this thread, from now on or for a ``with`` block.

    >>> import triton_metal
    >>> with triton_metal.device("host") as chosen:
    ...     print(chosen.name, triton_metal.devices.current().name)
    host host

    Raises DeviceError where the device is not there. ``device(None)`` goes back to the arguments' own device.
    """

    def __init__(self, name: str | None) -> None:
        if name is not None:
            get(name).require()
        self._before = getattr(_thread, "name", None)
        self._name = name
        _set_thread(name)

    @property
    def name(self) -> str | None:
        """The name that was asked for."""
        return self._name

    def __enter__(self) -> Device:
        return current()

    def __exit__(self, *exception: object) -> None:
        _set_thread(self._before)


def device_of(value: Any) -> str | None:
    """The name of the device that an argument is on; None for what is no array."""
    mlx = sys.modules.get("mlx.core")
    if mlx is not None and isinstance(value, mlx.array):
        return "mlx"
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        if value.device.type == "mps":
            return "mps"
        if value.device.type == "cpu":
            return "host"
        raise LaunchValueError(
            f"is a tensor on {value.device}: a kernel takes tensors on the CPU or on mps"
        )
    if hasattr(value, "__array_struct__") and getattr(value, "ndim", None) is not None:
        return "host" if hasattr(value, "ctypes") or not hasattr(value, "item") else None
    if isinstance(value, (bytearray, memoryview)):
        return "host"
    return None


def current(arguments: Iterable[Any] = ()) -> Device:
    """The device that a launch on these arguments takes.

    Without an array among them: the one that was asked for, or else the best that is there.
    """
    wanted = chosen()
    found: tuple[str, int] | None = None
    for index, value in enumerate(arguments):
        try:
            name = device_of(value)
        except LaunchValueError as error:
            raise LaunchValueError(f"argument {index} {error}") from None
        if name is None:
            continue
        if found is not None and found[0] != name:
            raise LaunchTypeError(
                f"argument {found[1]} is on the device {found[0]} and argument {index} on {name}: "
                "a launch takes arrays of one device"
            )
        found = found or (name, index)
    if found is None:
        name = wanted or _best()
    else:
        name = found[0]
        # MLX arrays are in memory that the host device can read, too.
        if wanted is not None and wanted != name and (wanted, name) != ("host", "mlx"):
            raise LaunchTypeError(
                f"argument {found[1]} is on the device {name}, but the device {wanted} was asked for"
            )
    result = get(name)
    result.require()
    return result


def device_for_launch(kernel: str, own: str | None) -> str:
    """The device of a launch on arrays of ``own`` where one is asked for; called by the native launcher."""
    wanted = chosen()
    if wanted is None:
        return own or "host"
    if own is None or own == wanted:
        return wanted
    if (wanted, own) == ("host", "mlx"):
        return "host"
    arrays = {
        "host": "NumPy arrays and CPU tensors",
        "mlx": "MLX arrays",
        "mps": "PyTorch tensors on mps",
    }
    raise LaunchTypeError(
        f"{kernel}: the device {wanted} was asked for, which takes {arrays[wanted]}, but the arguments are "
        f"{arrays[own]}"
    )


def launch_mlx_on_host(compiled: Any, grid: Any, arguments: list[Any], words: bytes) -> None:
    """The route of MLX arrays where the host device was asked for; called by the native launcher."""
    import mlx.core as mx

    with mx.stream(mx.cpu):
        route("mlx")(compiled, grid, arguments, words)


def target_for(name: str) -> Target:
    """What kernels are compiled for on that device, within ``set_kernel_config``'s limits.

    >>> import triton_metal
    >>> triton_metal.devices.target_for("host").msl_version
    '3.2'
    """
    from ..config import kernel_config
    from . import detect
    from .target import BASELINE

    _check_name(name)
    config = kernel_config()
    base = BASELINE
    if name != "host" and detect.is_mac() and (name == "mps" or get("mlx").on_gpu()):  # type: ignore[attr-defined]
        base = detect.detect_quickly().target(name)
        _limit_arrays(name)
    return replace(
        base,
        max_threads=min(base.max_threads, config.max_threads),
        threadgroup_bytes=min(base.threadgroup_bytes, config.shared_memory),
    )


@functools.cache
def _limit_arrays(name: str) -> None:
    """Has launches refuse arrays that do not fit the device, as far as its framework says what fits."""
    properties = get(name).properties()
    limits = (properties.working_set_bytes, properties.max_buffer_bytes)
    _native.set_largest_array(name, min((n for n in limits if n is not None), default=None))


def target_spec(name: str) -> str:
    """The same as the compiler takes it; empty for the baseline."""
    from .target import BASELINE

    spec = target_for(name).spec()
    return "" if spec == BASELINE.spec() else spec


def _best() -> str:
    if sys.platform == "darwin":
        for name in ("mlx", "mps"):
            if get(name).problem() is None and (name == "mps" or get(name).on_gpu()):  # type: ignore[attr-defined]
                return name
    return "host"


def _set_thread(name: str | None) -> None:
    _thread.name = name
    _native.ask_for_device(name is not None)


def _check_name(name: object) -> None:
    if name not in NAMES:
        raise DeviceError(f"there is no device {name!r}; the devices are {', '.join(NAMES)}")


def _host() -> Device:
    from .host import HostDevice

    return HostDevice()


def _mlx() -> Device:
    from .frameworks import MLXDevice

    return MLXDevice()


def _mps() -> Device:
    from .frameworks import MPSDevice

    return MPSDevice()


_factories.update(host=_host, mlx=_mlx, mps=_mps)

__all__ = [
    "NAMES",
    "Device",
    "DeviceProperties",
    "Event",
    "MemoryStatistics",
    "available",
    "chosen",
    "current",
    "device",
    "device_for_launch",
    "device_of",
    "get",
    "launch_mlx_on_host",
    "pack_scalars",
    "register",
    "route",
    "set_route",
    "target_for",
    "target_spec",
]
