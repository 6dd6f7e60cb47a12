"""Stand-ins for the modules of the runtime that upstream's tests import and that triton_metal lacks.

Each is left out as soon as triton_metal has the module. They do not compile or launch anything themselves.
"""

from __future__ import annotations

import importlib
import sys
from collections import namedtuple
from types import ModuleType, SimpleNamespace
from typing import Any

_TORCH = {
    "int1": "bool",
    "float8e5": "float8_e5m2",
    "float8e4nv": "float8_e4m3fn",
    "float8e5b16": "float8_e5m2fnuz",
    "float8e4b8": "float8_e4m3fnuz",
    "float8e4b15": "float8_e4m3b15",
}
_NAMES = {
    **{name: f"fp{name[5:]}" for name in ("float16", "float32", "float64")},
    **{f"int{width}": f"i{width}" for width in (8, 16, 32, 64)},
    **{f"uint{width}": f"u{width}" for width in (8, 16, 32, 64)},
    "bfloat16": "bf16",
    "bool": "u1",
    "int1": "u1",
    **{f"float8{form}": f"fp8{form}" for form in ("e5", "e4nv", "e5b16", "e4b8", "e4b15")},
}


class _Named:
    """A dtype with the name of torch's."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __str__(self) -> str:
        return f"torch.{self._name}"


_dtypes: dict[str, _Named] = {}


class TensorWrapper:
    """A tensor under another dtype."""

    def __init__(self, base: Any, dtype: Any) -> None:
        self.base = base
        name = dtype.name if hasattr(dtype, "name") else str(dtype).removeprefix("torch.")
        name = {"fp16": "float16", "fp32": "float32", "fp64": "float64", "bf16": "bfloat16"}.get(
            name, name.replace("fp8", "float8")
        )
        import torch

        name = _TORCH.get(name, name)
        self.dtype = getattr(torch, name, None) or _dtypes.setdefault(name, _Named(name))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.base, name)


def reinterpret(tensor: Any, dtype: Any) -> Any:
    """A tensor under another dtype; the tensor itself under its own."""
    if isinstance(tensor, TensorWrapper):
        tensor = tensor.base
    return TensorWrapper(tensor, dtype)


class base_knobs:
    """A group of knobs."""


def _runtime() -> dict[str, ModuleType]:
    target = namedtuple("GPUTarget", "backend arch warp_size")("metal", "host", 32)
    active = SimpleNamespace(
        get_current_target=lambda: target,
        get_current_device=lambda: 0,
        utils=SimpleNamespace(get_device_properties=lambda _: {"max_shared_mem": 32768}),
    )
    knobs = ModuleType("triton.knobs")
    knobs.base_knobs = base_knobs
    for group in ("compilation", "language", "runtime", "cache", "nvidia", "amd"):
        setattr(knobs, group, SimpleNamespace())
    knobs.compilation.disable_line_info = False
    knobs.compilation.instrumentation_mode = ""
    knobs.runtime.override_arch = None
    import triton_metal

    jit = ModuleType("triton.runtime.jit")
    jit.TensorWrapper, jit.reinterpret = TensorWrapper, reinterpret
    jit.type_canonicalisation_dict = {**_NAMES, **{value: value for value in _NAMES.values()}}
    jit.JITFunction = triton_metal.JITFunction
    errors = ModuleType("triton.runtime.errors")
    for name in ("InterpreterError", "OutOfResources", "PTXASError"):
        setattr(errors, name, type(name, (triton_metal.TritonError,), {}))
    driver = SimpleNamespace(active=active)
    runtime = ModuleType("triton.runtime")
    runtime.__path__ = []
    runtime.driver, runtime.jit, runtime.errors = driver, jit, errors
    runtime.JITFunction = triton_metal.JITFunction
    compiler_errors = ModuleType("triton.compiler.errors")
    for name in ("CompilationError", "CompileTimeAssertionFailure", "UnsupportedLanguageConstruct"):
        setattr(compiler_errors, name, getattr(triton_metal, name))
    backends = ModuleType("triton.backends")
    backends.__path__ = []
    backends_compiler = ModuleType("triton.backends.compiler")
    backends_compiler.GPUTarget = type(target)
    return {
        "triton.knobs": knobs,
        "triton.runtime": runtime,
        "triton.runtime.jit": jit,
        "triton.runtime.errors": errors,
        "triton.compiler.errors": compiler_errors,
        "triton.backends": backends,
        "triton.backends.compiler": backends_compiler,
    }


def install() -> list[str]:
    """Puts stand-ins where triton_metal has no module; returns their names."""
    absent = []
    for name, module in _runtime().items():
        try:
            importlib.import_module(name)
        except ModuleNotFoundError:
            absent.append(name)
            sys.modules[name] = module
            package, _, short = name.rpartition(".")
            setattr(sys.modules[package], short, getattr(sys.modules[package], short, module))
    if "triton.compiler.errors" in absent:
        compiler = sys.modules["triton.compiler"]
        compiler.CompilationError = sys.modules["triton.compiler.errors"].CompilationError
        compiler.ASTSource = None
    return absent
