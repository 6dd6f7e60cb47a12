"""The host Metal device: Metal compute kernels, compiled by the clang that is in here and run on the CPU.

    import numpy as np
    import triton_metal_host as metal

    device = metal.Device()
    library = device.library(source)
    add = device.pipeline(library.function("add"))
    add(a, b, out, threads=a.size, threads_per_threadgroup=256)

docs/metal-device.md is the tutorial. `triton_metal` finds this package by itself when a kernel is launched on NumPy
arrays or CPU tensors.
"""

from ._engine import (
    CompileError,
    LaunchError,
    find_quirks,
    quirk_rows,
    scanner_version,
    table,
)
from .buffer import Buffer
from .device import Device, configure
from .library import Function, Library
from .pipeline import CommandBuffer, Pipeline, Queue
from .profile import LineProfile, Profile
from .reflection import FunctionConstant, FunctionInfo, Parameter, ThreadgroupVariable
from .run import Run
from .trace import Trace, TracedAccess, TracedSite, TracedThreadgroup

__version__ = "0.1.0"
__all__ = [
    "Buffer",
    "CommandBuffer",
    "CompileError",
    "Device",
    "Function",
    "FunctionConstant",
    "FunctionInfo",
    "LaunchError",
    "Library",
    "LineProfile",
    "Parameter",
    "Pipeline",
    "Profile",
    "Queue",
    "Run",
    "ThreadgroupVariable",
    "Trace",
    "TracedAccess",
    "TracedSite",
    "TracedThreadgroup",
    "configure",
    "find_quirks",
    "quirk_rows",
    "scanner_version",
    "table",
]
