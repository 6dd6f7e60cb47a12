"""Triton kernels on Apple GPUs, and on a Metal device that runs on the CPU."""

from . import devices, language, testing
from .compiler import compile_ttir
from .devices import device
from .errors import (
    CacheError,
    CompileError,
    DeviceError,
    LaunchTypeError,
    LaunchValueError,
    StaticAssertionError,
    TritonMetalError,
    UnsupportedConstruct,
)
from .jit import JITFunction, constexpr_function, jit
from .launcher import CompiledKernel, LaunchLog, launch_options

__version__ = "0.1.0"


@constexpr_function
def cdiv(x: int, y: int) -> int:
    """x / y, rounded up."""
    return (x + y - 1) // y


@constexpr_function
def next_power_of_2(n: int) -> int:
    """The smallest power of 2 that is not below n."""
    return 1 << max(n - 1, 0).bit_length()


__all__ = [
    "CacheError",
    "CompileError",
    "CompiledKernel",
    "DeviceError",
    "JITFunction",
    "LaunchLog",
    "LaunchTypeError",
    "LaunchValueError",
    "StaticAssertionError",
    "TritonMetalError",
    "UnsupportedConstruct",
    "cdiv",
    "compile_ttir",
    "constexpr_function",
    "device",
    "devices",
    "jit",
    "language",
    "launch_options",
    "next_power_of_2",
    "testing",
]
