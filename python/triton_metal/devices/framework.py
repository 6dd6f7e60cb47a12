"""What the devices of Python frameworks share. No framework is imported before it is needed."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from types import ModuleType
from typing import ClassVar

from .. import _native, refit
from ..errors import DeviceError
from . import detect, quirks
from .base import Device
from .target import BASELINE, FEATURES, Target, downgraded, parse_msl

refit.targets = refit.Targets(
    baseline=BASELINE.spec(),
    since={name: needs.msl for name, needs in FEATURES.items()},
    understood=lambda: quirks.understood(),
)


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


class FrameworkDevice(Device):
    """A device of a Python framework that may be missing, with the Apple GPU behind it."""

    framework: ClassVar[str]
    """The framework's module."""

    def on_gpu(self) -> bool:
        """Whether the framework has an Apple GPU."""
        return True

    def is_preferred(self) -> bool:
        return detect.is_mac() and self.problem() is None and self.on_gpu()

    def target(self) -> Target:
        if not (detect.is_mac() and self.on_gpu()):
            return BASELINE
        self.limit_arrays()
        target = detect.detect_quickly().target(self.name)
        limit = refit.language_limit(self.name)
        if limit is not None and parse_msl(limit) < parse_msl(target.msl_version):
            return downgraded(target, limit)
        return target

    _arrays_are_limited = False

    def limit_arrays(self) -> None:
        """Makes launches refuse arrays that do not fit the device, if its framework reports the limits."""
        if self._arrays_are_limited:
            return
        self._arrays_are_limited = True
        properties = self.properties()
        limits = (properties.working_set_bytes, properties.max_buffer_bytes)
        _native.set_largest_array(
            self.name, min((n for n in limits if n is not None), default=None)
        )

    def installed(self) -> ModuleType | None:
        """The framework's module, imported; None if it is not installed."""
        top = self.framework.partition(".")[0]
        if top not in sys.modules and importlib.util.find_spec(top) is None:
            return None
        return importlib.import_module(self.framework)

    def check_size(self, size: int, what: str) -> None:
        """Raises if the device cannot hold this many bytes."""
        properties = self.properties()
        for limit, name in (
            (properties.max_buffer_bytes, "a buffer"),
            (properties.working_set_bytes, "its working set"),
        ):
            if limit is not None and size > limit:
                raise DeviceError(
                    f"{what} has {size:,} bytes, but the device {self.name} takes {limit:,} in {name}"
                )
