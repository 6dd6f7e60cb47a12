"""What arrays take of a device's memory."""

from __future__ import annotations

from .base import Device
from .registry import get
from .selection import current


class MemoryPool:
    """Bytes of arrays on a device.

    >>> import triton_metal
    >>> pool = triton_metal.memory_pool("host")
    >>> before = pool.current_allocated
    >>> x = triton_metal.devices.get("host").allocate(256)
    >>> pool.current_allocated - before, pool.max_allocated >= pool.current_allocated
    (1024, True)
    """

    def __init__(self, device: Device) -> None:
        self._device = device

    @property
    def device(self) -> str:
        """The device's name."""
        return self._device.name

    @property
    def current_allocated(self) -> int:
        """Bytes of the arrays that are alive now."""
        return self._device.memory_stats().current_allocated

    @property
    def max_allocated(self) -> int:
        """The most bytes that were alive at once, since the start or ``reset_max_allocated``."""
        return self._device.memory_stats().max_allocated

    def reset_max_allocated(self) -> None:
        """Begins to look for the most bytes anew."""
        self._device.reset_peak()

    def __repr__(self) -> str:
        return (
            f"MemoryPool({self.device}: {self.current_allocated:,} bytes now, "
            f"{self.max_allocated:,} at most)"
        )


def memory_pool(device: str | None = None) -> MemoryPool:
    """The memory of a device; without a name, of the one that a launch without arrays would take.

    The host device counts the arrays that its ``allocate`` gave, MLX and torch.mps all of theirs. torch.mps keeps no
    peak: there it is the most of the times that it was asked here.
    """
    chosen = current() if device is None else get(device)
    chosen.require()
    return MemoryPool(chosen)
