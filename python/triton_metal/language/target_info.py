"""What kernels may ask of the target while they are compiled."""

from __future__ import annotations

from typing import NamedTuple

from ..functions import constexpr_function


class Target(NamedTuple):
    """A target: its backend, its architecture and the threads of a SIMD-group."""

    backend: str
    arch: str
    warp_size: int


_METAL = Target("metal", "apple", 32)


@constexpr_function
def current_target():
    """The target: its ``backend`` is "metal" on every device."""
    return _METAL


@constexpr_function
def is_cuda():
    """False: the target is Metal."""
    return False


@constexpr_function
def cuda_capability_geq(major, minor=0):
    """False: the target is Metal."""
    return False


@constexpr_function
def is_hip():
    """False: the target is Metal."""
    return False


@constexpr_function
def is_hip_cdna3():
    """False: the target is Metal."""
    return False


@constexpr_function
def is_hip_cdna4():
    """False: the target is Metal."""
    return False


@constexpr_function
def is_hip_gfx1250():
    """False: the target is Metal."""
    return False


__all__ = ["current_target"]
