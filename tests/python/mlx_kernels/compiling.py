"""Compiles kernels to machine code."""

from __future__ import annotations

import triton_metal_host as metal


def compile_kernel(library: metal.Library, name: str) -> metal.Pipeline:
    """The pipeline of a kernel, with a value for each constant that it needs. Raises what the compiler says."""
    constants = {
        constant.index: True if constant.type == "bool" else 1
        for constant in library.functions[name].constants
        if constant.required
    }
    return metal.Device().pipeline(library.function(name, constants))
