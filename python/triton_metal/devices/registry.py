"""The table of devices, with one entry for each."""

from __future__ import annotations

import threading
from typing import Any

from .. import _native
from ..errors import DeviceError
from .base import Device
from .host import HostDevice
from .mlx import MLXDevice
from .mlx_graph import MLXGraphDevice
from .mps import MPSDevice

#: The classes of all devices. A launch without arrays takes the first one that is preferred, or the first of all.
DEVICES: tuple[type[Device], ...] = (HostDevice, MLXDevice, MPSDevice, MLXGraphDevice)

_classes: dict[str, type[Device]] = {}
_devices: dict[str, Device] = {}
_lock = threading.RLock()


def register(device_class: type[Device]) -> None:
    """Makes a class the device of its name. It is added to the others, or replaces the one with this name."""
    name = device_class.name

    def route(*launch: Any) -> None:
        # Later launches call the device directly, unless another route was set meanwhile.
        run = get(name).run
        if (present := _native.set_route(name, run)) is not route:
            _native.set_route(name, present)
        run(*launch)

    with _lock:
        _classes[name] = device_class
        _devices.pop(name, None)
        _native.register_device(
            name, device_class.array, list(device_class.array_types), route, device_class.describe
        )


def unregister(name: str) -> None:
    """Removes a device. Launches do not know its arrays any more."""
    check_name(name)
    with _lock:
        del _classes[name]
        _devices.pop(name, None)
        _native.register_device(name, "", [], None, None)


def names() -> tuple[str, ...]:
    """The names of all devices, including unavailable ones."""
    return tuple(_classes)


def get(name: str) -> Device:
    """The device with this name, which may be unavailable.

    >>> import triton_metal
    >>> triton_metal.devices.get("host").name
    'host'
    """
    check_name(name)
    with _lock:
        if name not in _devices:
            _devices[name] = _classes[name]()
        return _devices[name]


def available() -> list[Device]:
    """The available devices."""
    return [device for device in map(get, names()) if device.problem() is None]


def check_name(name: object) -> None:
    """Raises DeviceError if no device has this name."""
    if name not in _classes:
        raise DeviceError(f"there is no device {name!r}; the devices are {', '.join(names())}")


for _class in DEVICES:
    register(_class)
