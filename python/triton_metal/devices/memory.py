"""The memory of arrays on a device."""

from __future__ import annotations

from .base import Device
from .registry import get
from .selection import current


class MemoryPool:
    """The number of bytes of arrays on a device.

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
        """Bytes of the arrays that are alive."""
        return self._device.memory_stats().current_allocated

    @property
    def max_allocated(self) -> int:
        """The maximum number of bytes that were alive at once, since the start or ``reset_max_allocated``."""
        return self._device.memory_stats().max_allocated

    def reset_max_allocated(self) -> None:
        """Resets the maximum to the current number of bytes."""
        self._device.reset_peak()

    def __repr__(self) -> str:
        return (
            f"MemoryPool({self.device}: {self.current_allocated:,} bytes now, "
            f"{self.max_allocated:,} at most)"
        )


def memory_pool(device: str | None = None) -> MemoryPool:
    """The memory of a device. Without a name, the device is the one of a launch without arrays.

    The host device counts the arrays that its ``allocate`` returned. MLX and torch.mps count all of their arrays.
    torch.mps keeps no maximum; there it is the maximum of the queries.
    """
    chosen = current() if device is None else get(device)
    chosen.require()
    return MemoryPool(chosen)
