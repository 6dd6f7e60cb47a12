"""The decorator @jit, which turns a Python function into a kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, overload

from .descriptors import KernelLauncher
from .functions import KernelFunction


class JITFunction(KernelFunction):
    """A kernel, or a function that kernels call."""

    _launcher: KernelLauncher | None = None

    @property
    def launcher(self) -> Any:
        if self._launcher is None:
            with self._lock:
                if self._launcher is None:
                    self._launcher = KernelLauncher(self)
        return self._launcher

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        """``kernel[grid](...)`` launches the kernel over a grid of programs."""
        return self.launcher.at(grid)

    def warmup(self, *args: Any, grid: Any = None, **kwargs: Any) -> Any:
        """Compiles for these arguments without a launch. Dtypes may replace arrays."""
        return self.launcher.warmup(args, kwargs)

    def run(self, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:
        """Launches the kernel, or compiles it only."""
        if kwargs.get("num_ctas") == 1:
            del kwargs["num_ctas"]
        if warmup:
            return self.launcher.warmup(args, kwargs)
        return self.launcher.at(grid)(*args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            f"{self.name} is a @triton_metal.jit function: launch it as {self.name}[grid](...), or "
            "call it from another kernel"
        )


@overload
def jit(function: Callable[..., Any]) -> JITFunction: ...


@overload
def jit(
    *,
    do_not_specialize: Iterable[int | str] = ...,
    do_not_specialize_on_alignment: Iterable[int | str] = ...,
    debug: bool = ...,
    noinline: bool = ...,
) -> Callable[[Callable[..., Any]], JITFunction]: ...


def jit(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Turns a Python function that is written in triton_metal.language into a kernel.

    ``do_not_specialize`` names parameters (or their positions) that are not specialised on the value 1 and on
    multiples of 16. ``do_not_specialize_on_alignment`` only disables the latter.
    """
    if function is None:
        return lambda f: JITFunction(f, **options)
    return JITFunction(function, **options)
