"""Devices: where kernels run, and how a launch chooses one.

A kernel runs on the device of its arguments: NumPy arrays and torch's CPU tensors on the host Metal device, MLX
arrays with MLX, tensors on "mps" with PyTorch. ``triton_metal.device("host")`` (for this thread) and the environment
variable ``TRITON_METAL_DEVICE`` (``host``, ``mlx`` or ``mps``, for the process) choose one explicitly. A launch then
refuses the arguments of other devices.
"""

from .base import ArrayDescription, Device, DeviceProperties, Event, MemoryStatistics
from .memory import MemoryPool, memory_pool
from .registry import available, get, names, register, unregister
from .selection import (
    chosen,
    current,
    device,
    device_for_launch,
    device_of,
    target_for,
    target_spec,
)

__all__ = [
    "ArrayDescription",
    "Device",
    "DeviceProperties",
    "Event",
    "MemoryPool",
    "MemoryStatistics",
    "available",
    "chosen",
    "current",
    "device",
    "device_for_launch",
    "device_of",
    "get",
    "memory_pool",
    "names",
    "register",
    "target_for",
    "target_spec",
    "unregister",
]
