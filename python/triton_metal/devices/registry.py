"""The devices that there are: one entry each."""

from __future__ import annotations

import threading
from typing import Any

from .. import _native
from ..errors import DeviceError
from .base import Device
from .host import HostDevice
from .mlx import MLXDevice
from .mps import MPSDevice

#: The classes of all devices. A launch without arrays takes the first one that is preferred, or the first of all.
DEVICES: tuple[type[Device], ...] = (HostDevice, MLXDevice, MPSDevice)

_classes: dict[str, type[Device]] = {}
_devices: dict[str, Device] = {}
_lock = threading.RLock()


def register(device_class: type[Device]) -> None:
    """Makes a class the device of its name, beside the others or in place of the present one."""
    name = device_class.name

    def route(*launch: Any) -> None:
        # From the next launch on without this detour, unless another way was set meanwhile.
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
    """Forgets a device: launches do not know its arrays any more."""
    check_name(name)
    with _lock:
        del _classes[name]
        _devices.pop(name, None)
        _native.register_device(name, "", [], None, None)


def names() -> tuple[str, ...]:
    """The names of all devices, whether they are there or not."""
    return tuple(_classes)


def get(name: str) -> Device:
    """The device of that name, whether it is there or not.

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
    """The devices that are there."""
    return [device for device in map(get, names()) if device.problem() is None]


def check_name(name: object) -> None:
    """Raises DeviceError for what is no device's name."""
    if name not in _classes:
        raise DeviceError(f"there is no device {name!r}; the devices are {', '.join(names())}")


for _class in DEVICES:
    register(_class)
