"""What programs ask of Triton's runtime. The parts are loaded when they are first used."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

from .driver import driver

#: The module of each name.
_NAMES = {
    **dict.fromkeys(("Autotuner", "Config", "Heuristics", "autotune", "heuristics"), "autotuner"),
    **dict.fromkeys(("RedisRemoteCacheBackend", "RemoteCacheBackend"), "cache"),
    **dict.fromkeys(
        ("JITFunction", "KernelInterface", "MockTensor", "TensorWrapper", "reinterpret"), "jit"
    ),
    **dict.fromkeys(("InterpreterError", "OutOfResources"), "errors"),
}

_MODULES = (
    "_allocation",
    "_async_compile",
    "autotuner",
    "build",
    "cache",
    "errors",
    "interpreter",
    "jit",
)

__all__ = [
    "Autotuner",
    "Config",
    "Heuristics",
    "InterpreterError",
    "JITFunction",
    "KernelInterface",
    "MockTensor",
    "OutOfResources",
    "RedisRemoteCacheBackend",
    "RemoteCacheBackend",
    "TensorWrapper",
    "autotune",
    "driver",
    "heuristics",
    "reinterpret",
]


class _Runtime(ModuleType):
    """This module. ``runtime.driver`` is the object of that name, also after its module was imported."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "driver" or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Runtime


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    module = _NAMES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{module}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
