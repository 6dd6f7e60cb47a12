"""Launches on the host device, compiled for another target."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from triton_metal import _native, devices
from triton_metal.devices.target import Target


@contextmanager
def host_target(target: Target) -> Iterator[None]:
    """Within it, kernels for the host device are compiled for ``target``."""
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(devices.get("host"), "target", lambda: target)
            _native.configuration_changed()
            yield
    finally:
        _native.configuration_changed()
