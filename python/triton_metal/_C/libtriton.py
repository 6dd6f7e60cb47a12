"""What programs, PyTorch among them, ask of Triton's compiled part: Triton IR to read, and what a kernel is specialised on.

The rest of it builds and runs stock Triton's compiler, which is not here.
"""

from __future__ import annotations

from typing import Any

from ..runtime.jit import native_specialize_impl
from . import ir


def __getattr__(name: str) -> Any:
    raise AttributeError(
        f"triton-metal has no triton._C.libtriton.{name}: of stock Triton's compiled part it has {', '.join(__all__)}"
    )


__all__ = ["ir", "native_specialize_impl"]
