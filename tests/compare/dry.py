"""Has stock Triton compile kernels to TTIR only, and launch nothing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any


def install() -> None:
    """Ends the backend's work after the front end. Results stay what the memory held."""
    from triton_metal.backends.metal import launch
    from triton_metal_backend import compiler

    def make_metal(module: Any, metadata: dict[str, Any], *_: Any) -> str:
        metadata |= {
            "name": "kernel",
            "shared": 0,
            # Whatever a kernel's would be: stock Triton compares it with the device's limit.
            "num_warps": metadata["num_warps"] or 4,
            "num_stages": metadata["num_stages"] or 1,
            "global_scratch_size": 0,
            "profile_scratch_size": 0,
            "global_scratch_align": 1,
            "profile_scratch_align": 1,
            "tmem_size": 0,
            "metal": {},
        }
        return ""

    compiler.make_ttir = lambda module: module
    compiler.make_metal = make_metal
    launch.MetalFunction.load = classmethod(lambda cls, binary: SimpleNamespace())
    launch.MetalLauncher.__call__ = lambda self, *arguments: None
