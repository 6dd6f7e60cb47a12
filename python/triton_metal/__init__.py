"""Triton kernels on Apple GPUs, and on a Metal device that runs on the CPU."""

from . import _loaded as _loaded  # isort: skip
from . import _C as _C
from . import backends, compiler, devices, knobs, language, runtime, testing, tools
from .as_triton import install
from .compiler import compile, compile_ttir
from .config import KernelConfig, kernel_config, set_kernel_config
from .devices import MemoryPool, device, memory_pool
from .errors import (
    AutotunerError,
    CacheError,
    CacheWarning,
    CompilationError,
    CompileError,
    CompileTimeAssertionFailure,
    DeviceError,
    DeviceRefusal,
    LaunchOverflowError,
    LaunchTypeError,
    LaunchValueError,
    RefusalWarning,
    StaticAssertionError,
    TritonError,
    TritonMetalError,
    UnsupportedConstruct,
    UnsupportedLanguageConstruct,
)
from .functions import constexpr_function
from .jit import JITFunction, jit
from .launcher import CompiledKernel, LaunchLog, launch_options
from .profiling import profile
from .runtime._allocation import set_allocator
from .runtime._async_compile import AsyncCompileMode, FutureKernel
from .runtime.autotuner import Autotuner, Config, Heuristics, autotune, heuristics
from .runtime.errors import InterpreterError, OutOfResources
from .runtime.jit import KernelInterface, MockTensor, TensorWrapper, reinterpret

__version__ = "0.1.0"

aggregate = language.core._aggregate
must_use_result = language.core.must_use_result


@constexpr_function
def cdiv(x: int, y: int) -> int:
    """x / y, rounded up."""
    return (x + y - 1) // y


@constexpr_function
def next_power_of_2(n: int) -> int:
    """The smallest power of 2 that is at least n."""
    return 1 << max(n - 1, 0).bit_length()


__all__ = [
    "AsyncCompileMode",
    "Autotuner",
    "AutotunerError",
    "CacheError",
    "CacheWarning",
    "CompilationError",
    "CompileError",
    "CompileTimeAssertionFailure",
    "CompiledKernel",
    "Config",
    "DeviceError",
    "DeviceRefusal",
    "FutureKernel",
    "Heuristics",
    "InterpreterError",
    "JITFunction",
    "KernelConfig",
    "KernelInterface",
    "LaunchLog",
    "LaunchOverflowError",
    "LaunchTypeError",
    "LaunchValueError",
    "MemoryPool",
    "MockTensor",
    "OutOfResources",
    "RefusalWarning",
    "StaticAssertionError",
    "TensorWrapper",
    "TritonError",
    "TritonMetalError",
    "UnsupportedConstruct",
    "UnsupportedLanguageConstruct",
    "aggregate",
    "autotune",
    "backends",
    "cdiv",
    "compile",
    "compile_ttir",
    "compiler",
    "constexpr_function",
    "device",
    "devices",
    "heuristics",
    "install",
    "jit",
    "kernel_config",
    "knobs",
    "language",
    "launch_options",
    "memory_pool",
    "must_use_result",
    "next_power_of_2",
    "profile",
    "reinterpret",
    "runtime",
    "set_allocator",
    "set_kernel_config",
    "testing",
    "tools",
]
