"""The driver of the backend "metal" for stock Triton. triton_metal's own driver does the work."""

from __future__ import annotations

import os
from typing import Any

from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase

# Triton takes the only active driver, or the one that this variable names.
if os.environ.get("TRITON_METAL") == "1":
    os.environ.setdefault("TRITON_DEFAULT_BACKEND", "metal")

_asking = False


def _another_is_active() -> bool:
    """Whether another backend has a GPU here."""
    from triton.backends import backends

    global _asking
    if _asking:  # another backend asks whether this one is active
        return False
    _asking = True
    try:
        others = [backend.driver for name, backend in backends.items() if name != "metal"]
        return any(driver.is_active() for driver in others)
    finally:
        _asking = False


class MetalDriver(DriverBase):
    """Launches on torch's "mps" device on a Mac, and on CPU tensors everywhere."""

    def __init__(self) -> None:
        # Only now: Triton imports this module whenever it is imported itself.
        from triton_metal.backends.metal import driver, launch

        self.own = driver.MetalDriver()
        self.launcher_cls = launch.MetalLauncher

    def __getattr__(self, name: str) -> Any:
        if name == "own":  # not made yet
            raise AttributeError(name)
        return getattr(self.own, name)

    @classmethod
    def is_active(cls) -> bool:
        """Whether Triton should take this backend: when it is asked for, or when there is no other GPU."""
        if os.environ.get("TRITON_DEFAULT_BACKEND") == "metal":
            return True
        asked = os.environ.get("TRITON_METAL", "")
        return asked != "0" and (asked == "1" or not _another_is_active())

    def get_current_target(self) -> GPUTarget:
        target = self.own.get_current_target()
        return GPUTarget("metal", target.arch, target.warp_size)

    def get_active_torch_device(self) -> Any:
        return self.own.get_active_torch_device()

    def map_python_to_cpp_type(self, ty: str) -> str:
        return self.own.map_python_to_cpp_type(ty)

    def get_benchmarker(self) -> Any:
        from triton.testing import do_bench

        return do_bench

    def allocate_default_profile_scratch(self, size: int, alignment: int, stream: Any) -> Any:
        return self.own.allocate_default_profile_scratch(size, alignment, stream)
