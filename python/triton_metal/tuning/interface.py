"""What can be launched as ``kernel[grid](...)``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..errors import LaunchTypeError
from ..functions import KernelFunction
from ..jit import JITFunction


class KernelInterface:
    """Something around a kernel that is launched as one. Subclasses have ``run``."""

    fn: Any
    arg_names: list[str]

    def run(self, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        """Launches, or compiles only."""
        raise NotImplementedError

    def warmup(self, *args: Any, grid: Any = None, **kwargs: Any) -> Any:
        """Compiles for these arguments without a launch."""
        return self.run(*args, grid=grid, warmup=True, **kwargs)

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        """``kernel[grid](...)`` launches the kernel over a grid of programs."""
        return functools.partial(self.run, grid=grid, warmup=False)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = getattr(self, "__name__", type(self).__name__)
        raise RuntimeError(f"{name} is a kernel: launch it as {name}[grid](...)")


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
