"""What can be launched as ``kernel[grid](...)``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class KernelInterface(Generic[T]):
    """A kernel, or something around one that is launched in its place. Subclasses have ``run``."""

    def run(self, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        """Launches over a grid, or compiles only."""
        raise NotImplementedError(f"{type(self).__name__} has no run")

    def warmup(self, *args: Any, grid: Any = None, **kwargs: Any) -> Any:
        """Compiles for these arguments without a launch. Dtypes may replace arrays."""
        return self.run(*args, grid=grid, warmup=True, **kwargs)

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        """``kernel[grid](...)`` launches the kernel over a grid of programs."""
        return functools.partial(self.run, grid=grid, warmup=False)

    def cost(self, chip: Any, grid: Any, *args: Any, **kwargs: Any) -> Any:
        """A lower bound of the time that ``kernel[grid](*args, **kwargs)`` takes on one of Apple's chips, what sets it, and
        what would lower it: a `triton_metal.cost.Cost`, which can be printed.

        ``chip`` is a name such as "M3 Max" or "M3 Max 30 cores". The host device runs the launch on copies of the arrays and
        counts what it does; a model of the chip makes the bound (docs/cost.md). No Apple GPU is asked.

        Raises LaunchValueError for a chip that is not in the model's table.
        """
        from .cost import cost_of

        return cost_of(self, chip, grid, args, kwargs)

    def report(
        self, path: Any, grid: Any, /, *args: Any, chips: Any = ("M1",), **kwargs: Any
    ) -> Any:
        """Writes a page about ``kernel[grid](*args, **kwargs)``: one HTML file that needs no other and no network.

        It has the kernel's Python, Triton IR and Metal text with their lines linked, pictures of what each load and store
        touches, the time on ``chips`` by the model of `cost` and what would lower it, and warnings (docs/report.md).
        ``chips`` are names such as ["M1", "M3 Max 30 cores"], or one. The host device runs the launch on copies of the
        arrays; no Apple GPU is asked. Returns the path as a `pathlib.Path`.

        Raises LaunchValueError if the path cannot be written, for a chip that is not in the model's table, and for a grid
        without programs; nothing is written then.
        """
        from .report import report_of

        return report_of(self, path, grid, args, kwargs, chips)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = getattr(self, "__name__", type(self).__name__)
        raise RuntimeError(f"{name} is a kernel: launch it as {name}[grid](...)")
