"""Defaults of kernels, and limits for their compilation."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import Any

from . import _native
from .errors import LaunchTypeError, LaunchValueError

DEFAULT_NUM_WARPS = 4
DEFAULT_NUM_STAGES = 2
MAX_THREADS = 1024
MAX_SHARED_MEMORY = 32768


@dataclass(frozen=True)
class KernelConfig:
    """Options for launches that do not set their own, and limits.

    ``num_warps``: SIMD-groups of a threadgroup. ``num_stages``: stages of a loop's loads; 2 or more mean 2 if they
    fit (``metadata.pipeline_stages`` of a kernel gives the result). ``max_threads``: the maximum number of threads of
    a threadgroup. ``shared_memory``: the maximum number of bytes of threadgroup memory of a kernel.
    """

    num_warps: int = DEFAULT_NUM_WARPS
    num_stages: int = DEFAULT_NUM_STAGES
    max_threads: int = MAX_THREADS
    shared_memory: int = MAX_SHARED_MEMORY


_DEFAULTS = KernelConfig()
_UNSET: Any = object()
_lock = threading.Lock()
_config = _DEFAULTS
_names_warps = False


def kernel_config() -> KernelConfig:
    """The current configuration."""
    return _config


def set_kernel_config(
    *,
    num_warps: int | None = _UNSET,
    num_stages: int | None = _UNSET,
    max_threads: int | None = _UNSET,
    shared_memory: int | None = _UNSET,
) -> KernelConfig:
    """Sets defaults and limits for all kernels of the process, and returns the configuration.

    Options that are not named keep their value. None restores the initial value. ``num_warps`` and ``num_stages``
    apply to launches that do not set their own. The compiler refuses a kernel that needs more than ``max_threads``
    threads in a threadgroup or more than ``shared_memory`` bytes of threadgroup memory. A launch without its own
    ``num_warps`` takes fewer SIMD-groups instead.

    >>> import triton_metal
    >>> triton_metal.set_kernel_config(num_warps=8, num_stages=1).num_warps
    8
    >>> triton_metal.set_kernel_config(num_warps=None, num_stages=None).num_warps
    4
    """
    global _config, _names_warps
    given = {
        name: value
        for name, value in (
            ("num_warps", num_warps),
            ("num_stages", num_stages),
            ("max_threads", max_threads),
            ("shared_memory", shared_memory),
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
        names_warps = _names_warps
        if "num_warps" in given:
            names_warps = given["num_warps"] is not None
        config = replace(_config, **values)
        if config.num_warps * 32 > config.max_threads:
            if names_warps:
                raise LaunchValueError(
                    f"set_kernel_config: num_warps={config.num_warps} is {config.num_warps * 32} threads in a "
                    f"threadgroup, and max_threads is {config.max_threads}"
                )
            config = replace(config, num_warps=warps_within(config.max_threads))
        elif not names_warps:
            config = replace(
                config, num_warps=min(DEFAULT_NUM_WARPS, warps_within(config.max_threads))
            )
        if config != _config:
            _config, _names_warps = config, names_warps
            _native.configuration_changed()
        else:
            _names_warps = names_warps
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
    }
    if isinstance(value, bool) or not isinstance(value, int):
        raise LaunchTypeError(f"set_kernel_config: {name} must be {limits[name]}, not {value!r}")
    fits = {
        "num_warps": 1 <= value <= 32 and value & (value - 1) == 0,
        "num_stages": 1 <= value <= 16,
        "max_threads": 32 <= value <= MAX_THREADS,
        "shared_memory": 0 <= value <= MAX_SHARED_MEMORY,
    }
    if not fits[name]:
        raise LaunchValueError(f"set_kernel_config: {name} must be {limits[name]}, not {value!r}")
