"""The kernels below decorators."""

from __future__ import annotations

from typing import Any

from ..errors import LaunchTypeError
from ..functions import KernelFunction
from ..jit import JITFunction


def kernel_of(decorator: str, fn: Any) -> JITFunction:
    """The kernel below the decorators. Raises LaunchTypeError if there is none."""
    below = fn
    while not isinstance(below, KernelFunction):
        inner = getattr(below, "fn", None)
        if inner is None or not hasattr(below, "run"):
            raise LaunchTypeError(
                f"@{decorator} takes a kernel: put it above @jit, not on {getattr(fn, '__name__', fn)!r}"
            )
        below = inner
    return below


__all__ = ["kernel_of"]
