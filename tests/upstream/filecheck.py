"""`triton._filecheck` on triton_metal: the Triton IR of a kernel as the walk makes it, and LLVM's FileCheck on it."""

from __future__ import annotations

import functools
import inspect
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from triton_metal._native import dtype
from triton_metal.codegen import CodegenOptions, RuntimeLeaf, generate_module
from triton_metal.constexpr import constexpr, unwrap
from triton_metal.tuples import rebuild_tuple


class MatchError(ValueError):
    """Triton IR that does not match."""


def _tool() -> str:
    for name in ("FileCheck", "FileCheck-22", "/usr/lib/llvm-22/bin/FileCheck"):
        if found := shutil.which(name):
            return found
    raise FileNotFoundError("LLVM's FileCheck is not installed")


def run_filecheck(name: str, module_str: str, check_template: str) -> None:
    """Checks a module's text against the CHECK lines of a template."""
    with tempfile.TemporaryDirectory() as folder:
        module, expected = Path(folder, "module"), Path(folder, "expected")
        module.write_text(module_str, encoding="utf-8")
        expected.write_text(check_template, encoding="utf-8")
        command = [_tool(), str(expected), "--input-file", str(module)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise MatchError(f"{name}: FileCheck: {done.stderr[:2000]}")


class Parsed:
    """The module of a kernel before any pass."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def str_nodebug(self) -> str:
        """Its text without locations."""
        return self._module.str(debug_info=False)

    def __str__(self) -> str:
        return self._module.str()


def _leaf(value: Any) -> Any:
    """An argument as the walk takes it: a compile-time value, or the type of one that is known at run time."""
    if isinstance(value, tuple):
        return rebuild_tuple(type(value), map(_leaf, value))
    if isinstance(value, constexpr) or value is None or isinstance(value, str):
        return unwrap(value)
    if isinstance(value, bool):
        return RuntimeLeaf(dtype("int1"))
    if isinstance(value, int) and value != 1:
        return RuntimeLeaf(dtype("int32"))
    if isinstance(value, float):
        return RuntimeLeaf(dtype("fp32"))
    return value


def run_parser(kernel_fn: Any, args: Any = (), kwargs: Any = None, target: Any = None) -> Parsed:
    """The module of a kernel for these arguments."""
    kwargs = dict(kwargs or {})
    options = {name: kwargs.pop(name, None) for name in ("sanitize_overflow", "debug")}
    kwargs = {name: value for name, value in kwargs.items() if name in kernel_fn.arg_names}
    bound = kernel_fn.signature.bind(*args, **kwargs)
    bound.apply_defaults()
    static = {param.name for param in kernel_fn.params if param.is_constexpr}
    values = {
        name: unwrap(value) if name in static else _leaf(value)
        for name, value in bound.arguments.items()
    }
    chosen = CodegenOptions(bool(options["debug"]), bool(options["sanitize_overflow"]))
    return Parsed(generate_module(kernel_fn, values, {}, chosen))


def run_filecheck_test(kernel_fn: Any) -> None:
    """Checks a kernel's Triton IR against the CHECK lines of its source."""
    source = inspect.getsource(getattr(kernel_fn, "fn", kernel_fn))
    if not re.search(r"CHECK", source):
        raise ValueError("the kernel has no CHECK lines")
    run_filecheck(kernel_fn.__name__, run_parser(kernel_fn).str_nodebug(), source)


def filecheck_test(fn: Any) -> Callable[[], None]:
    """Makes a kernel a test."""

    @functools.wraps(fn)
    def test_fn() -> None:
        run_filecheck_test(fn)

    return test_fn
