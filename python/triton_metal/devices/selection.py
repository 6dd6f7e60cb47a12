"""The device of a launch: the one of its arguments, or the one that this thread or the environment chose."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from .. import _native
from ..config import kernel_config
from ..errors import LaunchTypeError, LaunchValueError
from . import quirks
from .base import Device
from .registry import get, names
from .target import BASELINE, Target

_thread = threading.local()


def chosen() -> str | None:
    """The device that this thread or TRITON_METAL_DEVICE chose; None means the device of the arguments."""
    name = getattr(_thread, "name", None)
    if name is not None:
        return name
    named = os.environ.get("TRITON_METAL_DEVICE", "")
    if not named:
        return None
    if named not in names():
        raise LaunchValueError(
            f"TRITON_METAL_DEVICE is {named!r}; the devices are {', '.join(names())}"
        )
    return named


class device:
    """Chooses a device in this thread, from now on or for a ``with`` block.

    >>> import triton_metal
    >>> with triton_metal.device("host") as chosen:
    ...     print(chosen.name, triton_metal.devices.current().name)
    host host

    Raises DeviceError if the device is not available. ``device(None)`` restores the arguments' own device.
    """

    def __init__(self, name: str | None) -> None:
        if name is not None:
            get(name).require()
        self._before = getattr(_thread, "name", None)
        self._name = name
        _set_thread(name)

    @property
    def name(self) -> str | None:
        """The chosen name."""
        return self._name

    def __enter__(self) -> Device:
        return current()

    def __exit__(self, *exception: object) -> None:
        _set_thread(self._before)


def device_of(value: Any) -> str | None:
    """The name of the device that owns an argument; None if it is not an array."""
    return next((name for name in names() if get(name).owns(value)), None)


def current(arguments: Iterable[Any] = ()) -> Device:
    """The device of a launch on these arguments.

    Without an array among them, it is the chosen device, or else the preferred one.
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
        name = wanted or _preferred()
    else:
        name = found[0]
        if wanted is not None and wanted != name and wanted not in get(name).readable_on:
            raise LaunchTypeError(
                f"argument {found[1]} is on the device {name}, but the device {wanted} was requested"
            )
    result = get(name)
    result.require()
    return result


def device_for_launch(kernel: str, own: str | None) -> str:
    """The device of a launch on arrays of ``own`` if one was chosen. The native launcher calls it."""
    wanted = chosen()
    if wanted is None:
        return own or "host"
    if own is None or own == wanted or wanted in get(own).readable_on:
        return wanted
    raise LaunchTypeError(
        f"{kernel}: the device {wanted} was requested, which takes {get(wanted).arrays}, but the arguments are "
        f"{get(own).arrays}"
    )


def run_elsewhere(device: str, own: str, *launch: Any) -> None:
    """Runs a launch on arrays of ``own`` on another device. The native launcher calls it."""
    get(own).run_on(device, *launch)


def target_for(name: str) -> Target:
    """The target of kernels on a device, within the limits of ``set_kernel_config``.

    >>> import triton_metal
    >>> triton_metal.devices.target_for("host").msl_version
    '3.2'
    """
    config = kernel_config()
    base = get(name).target()
    named = quirks.chosen()
    return replace(
        base,
        quirks=base.quirks if named is None else named,
        max_threads=min(base.max_threads, config.max_threads),
        threadgroup_bytes=min(base.threadgroup_bytes, config.shared_memory),
    )


def target_spec(name: str) -> str:
    """The target as the compiler reads it; empty for the baseline."""
    spec = target_for(name).spec()
    return "" if spec == BASELINE.spec() else spec


def _preferred() -> str:
    """The device of a launch without arrays."""
    return next((name for name in names() if get(name).is_preferred()), "host")


def _set_thread(name: str | None) -> None:
    _thread.name = name
    _native.ask_for_device(name is not None)


_native.set_device_hooks(device_for_launch, run_elsewhere)
