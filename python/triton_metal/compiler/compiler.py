"""Compiles a kernel for given types, or a text of Triton IR, without a launch."""

from __future__ import annotations

import functools
import os
from typing import Any

from .. import cache, devices
from ..backends import backends
from ..backends.compiler import BaseBackend, GPUTarget, Language
from ..compilation import Job, build, compile_module, compile_text, key_of
from ..compiled import CompiledKernel, KernelMetadata, LazyDict
from ..config import kernel_config
from ..errors import OutOfResources
from ..generation import module_of
from ..runtime.cache import get_cache_key, triton_key
from ..runtime.driver import driver
from ..sources import ASTSource, IRSource


def make_backend(target: GPUTarget) -> BaseBackend:
    """The backend that compiles for a target. Raises RuntimeError if there is none."""
    for backend in backends.values():
        if backend.compiler.supports_target(target):
            return backend.compiler(target)
    raise RuntimeError(
        f"0 compatible backends for target ({target.backend}): triton_metal compiles for metal, cpu and mps"
    )


@functools.cache
def max_shared_mem(device: int) -> int:
    """The bytes of threadgroup memory of the active driver's device."""
    return driver.active.utils.get_device_properties(device)["max_shared_mem"]


def compile(
    src: ASTSource | IRSource | str | os.PathLike[str],
    target: GPUTarget | None = None,
    options: dict[str, Any] | None = None,
    _env_vars: dict[str, str] | None = None,
) -> CompiledKernel:
    """Compiles a function with the types of its arguments, or a file of Triton IR.

    ``target`` is the current device's by default. ``options`` are those of a launch. Raises CompilationError with the
    place in the source, and `OutOfResources` for a kernel that needs too much of the device.

    >>> import triton_metal, triton_metal.language as tl
    >>> @triton_metal.jit
    ... def fill(x, value, BLOCK: tl.constexpr):
    ...     tl.store(x + tl.arange(0, BLOCK), value)
    >>> source = ASTSource(fill, {"x": "*fp32", "value": "fp32", "BLOCK": "constexpr"}, {"BLOCK": 64})
    >>> kernel = compile(source)
    >>> kernel.metadata.name, "tt.store" in kernel.asm["ttir"]
    ('fill', True)
    """
    if target is None:
        target = driver.active.get_current_target()
    if not isinstance(target, GPUTarget):
        raise TypeError(f"target is {target!r}; it must be a GPUTarget")
    backend = make_backend(target)
    if not isinstance(src, (ASTSource, IRSource)):
        if not isinstance(src, (str, os.PathLike)):
            raise TypeError(f"a source is an ASTSource or the path of a file, not {src!r}")
        src = IRSource(src)
    config = kernel_config()
    defaults = {"num_warps": config.num_warps, "num_stages": config.num_stages}
    chosen = backend.parse_options(defaults | dict(options or {}) | src.parse_options())
    if (chosen.num_warps or 0) > 32:
        raise OutOfResources(chosen.num_warps * 32, 1024, "threads")  # type: ignore[operator]
    cache.configure_host_device()
    device: str = backend.device  # type: ignore[attr-defined]
    spec = devices.target_spec(device)
    if isinstance(src, IRSource):
        job = Job(src, src.name.lstrip("@"), chosen, spec, target, {}, {}, [], device)
        return build(job, key_of(job, src.src), functools.partial(compile_text, src.src, src.path))
    module, arguments, symbol = module_of(src, chosen)
    aligned = list(arguments.divisibility)
    types, constants = arguments.types, arguments.constants
    job = Job(src, symbol, chosen, spec, target, types, constants, aligned, device)
    return build(job, key_of(job, module.str()), functools.partial(compile_module, module))


__all__ = [
    "ASTSource",
    "BaseBackend",
    "CompiledKernel",
    "GPUTarget",
    "IRSource",
    "KernelMetadata",
    "Language",
    "LazyDict",
    "OutOfResources",
    "compile",
    "get_cache_key",
    "make_backend",
    "max_shared_mem",
    "triton_key",
]
