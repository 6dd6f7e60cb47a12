"""Defaults of kernels, and limits for their compilation."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import Any

from . import _native
from .errors import LaunchTypeError, LaunchValueError
from .knobs import getenv_bool

MAX_THREADS = 1024
MAX_SHARED_MEMORY = 32768


@dataclass(frozen=True)
class KernelConfig:
    """Options for launches that do not set their own, and limits.

    ``num_warps``: SIMD-groups of a threadgroup. ``num_stages``: stages of a loop's loads; 2 or more mean 2 if they
    fit (``metadata.pipeline_stages`` of a kernel gives the result). None has the compiler choose for each kernel
    (docs/threads.md). ``max_threads``: the maximum number of threads of
    a threadgroup. ``shared_memory``: the maximum number of bytes of threadgroup memory of a kernel.
    ``choose_threads``: launches and configurations that name ``num_warps`` and ``num_stages`` have the compiler choose, too.
    """

    num_warps: int | None = None
    num_stages: int | None = None
    max_threads: int = MAX_THREADS
    shared_memory: int = MAX_SHARED_MEMORY
    choose_threads: bool = False

    def threads(
        self, num_warps: int | None, num_stages: int | None, module: str
    ) -> dict[str, int | None]:
        """``num_warps`` and ``num_stages`` of a launch that names these, of a kernel of a module. None, or 0, names none."""
        # What triton_metal.ops names is chosen for Apple's GPUs already.
        if self.choose_threads and not module.startswith("triton_metal.ops."):
            num_warps = num_stages = None
        return {
            "num_warps": num_warps or self.num_warps,
            "num_stages": num_stages or self.num_stages,
        }


_DEFAULTS = KernelConfig(choose_threads=getenv_bool("TRITON_METAL_CHOOSE_THREADS", False))
_UNSET: Any = object()
_lock = threading.Lock()
_config = _DEFAULTS


def kernel_config() -> KernelConfig:
    """The current configuration."""
    return _config


def set_kernel_config(
    *,
    num_warps: int | None = _UNSET,
    num_stages: int | None = _UNSET,
    max_threads: int | None = _UNSET,
    shared_memory: int | None = _UNSET,
    choose_threads: bool | None = _UNSET,
) -> KernelConfig:
    """Sets defaults and limits for all kernels of the process, and returns the configuration.

    Options that are not named keep their value. None restores the initial value. ``num_warps`` and ``num_stages``
    apply to launches that do not set their own; with None, as at first, the compiler chooses for each kernel. It
    refuses a kernel that needs more than ``max_threads`` threads in a threadgroup or more than ``shared_memory`` bytes
    of threadgroup memory, and chooses within these limits.

    ``choose_threads=True`` (at first if TRITON_METAL_CHOOSE_THREADS=1) takes no notice of the ``num_warps`` and ``num_stages``
    that launches and configurations of `autotune` name: they are often those of GPUs whose threads have more registers.

    >>> import triton_metal
    >>> triton_metal.set_kernel_config(num_warps=8, num_stages=1).num_warps
    8
    >>> triton_metal.set_kernel_config(num_warps=None, num_stages=None).num_warps is None
    True
    """
    global _config
    given = {
        name: value
        for name, value in (
            ("num_warps", num_warps),
            ("num_stages", num_stages),
            ("max_threads", max_threads),
            ("shared_memory", shared_memory),
            ("choose_threads", choose_threads),
        )
        if value is not _UNSET
    }
    for name, value in given.items():
        if value is not None:
            _check(name, value)
    with _lock:
        values = {
            name: getattr(_DEFAULTS, name) if value is None else value
            for name, value in given.items()
        }
        config = replace(_config, **values)
        if config.num_warps is not None and config.num_warps * 32 > config.max_threads:
            raise LaunchValueError(
                f"set_kernel_config: num_warps={config.num_warps} is {config.num_warps * 32} threads in a "
                f"threadgroup, and max_threads is {config.max_threads}"
            )
        if config != _config:
            _config = config
            _native.configuration_changed()
        return config


def warps_within(threads: int) -> int:
    """The largest power of two of SIMD-groups that fits in this many threads.

    >>> warps_within(1000)
    16
    """
    return 1 << ((threads // 32).bit_length() - 1)


def _check(name: str, value: object) -> None:
    limits = {
        "num_warps": "1, 2, 4, 8, 16 or 32",
        "num_stages": "an integer from 1 to 16",
        "max_threads": "an integer from 32 to 1024",
        "shared_memory": "bytes, an integer from 0 to 32768",
        "choose_threads": "True or False",
    }
    if isinstance(value, bool) != (name == "choose_threads") or not isinstance(value, int):
        raise LaunchTypeError(f"set_kernel_config: {name} must be {limits[name]}, not {value!r}")
    fits = {
        "num_warps": 1 <= value <= 32 and value & (value - 1) == 0,
        "num_stages": 1 <= value <= 16,
        "max_threads": 32 <= value <= MAX_THREADS,
        "shared_memory": 0 <= value <= MAX_SHARED_MEMORY,
        "choose_threads": True,
    }
    if not fits[name]:
        raise LaunchValueError(f"set_kernel_config: {name} must be {limits[name]}, not {value!r}")
