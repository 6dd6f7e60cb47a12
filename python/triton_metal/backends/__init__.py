"""The backends of Triton: "metal", and the host device under the name "cpu", by which PyTorch asks for one that takes
its CPU tensors.
"""

from __future__ import annotations

from dataclasses import dataclass

from .compiler import BaseBackend
from .driver import DriverBase
from .metal.compiler import MetalBackend
from .metal.driver import HostDriver, MetalDriver


@dataclass(frozen=True)
class Backend:
    """The classes of a backend."""

    compiler: type[BaseBackend]
    driver: type[DriverBase]


backends: dict[str, Backend] = {
    "metal": Backend(MetalBackend, MetalDriver),
    "cpu": Backend(MetalBackend, HostDriver),
}

__all__ = ["Backend", "BaseBackend", "DriverBase", "backends"]
