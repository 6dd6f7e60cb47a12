"""The driver that launches kernels, which programs ask for the current device, target and stream."""

from __future__ import annotations

import os

from ..backends import backends
from ..backends.driver import DriverBase


def _make() -> DriverBase:
    """The driver that TRITON_DEFAULT_BACKEND names, or that of the backend "metal"."""
    named = os.environ.get("TRITON_DEFAULT_BACKEND") or "metal"
    if named not in backends:
        raise RuntimeError(
            f"TRITON_DEFAULT_BACKEND is {named!r}; the backends are {', '.join(backends)}"
        )
    found = backends[named].driver
    if not found.is_active():
        raise RuntimeError(f"the backend {named} has no device here")
    return found()


class DriverConfig:
    """The active driver, which is made when it is first asked for."""

    def __init__(self) -> None:
        self._default: DriverBase | None = None
        self._active: DriverBase | None = None

    @property
    def default(self) -> DriverBase:
        if self._default is None:
            self._default = _make()
        return self._default

    @property
    def active(self) -> DriverBase:
        if self._active is None:
            self._active = self.default
        return self._active

    def set_active(self, driver: DriverBase) -> None:
        """Makes a driver the active one."""
        self._active = driver

    def reset_active(self) -> None:
        """Makes the default driver the active one."""
        self._active = self.default


driver = DriverConfig()
