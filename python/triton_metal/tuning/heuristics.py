"""Parameters of a kernel whose values are computed from the arguments of the launch."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import LaunchTypeError
from ..interface import KernelInterface
from ..jit import JITFunction
from .interface import kernel_of


class Heuristics(KernelInterface):
    """A kernel with computed parameters; `heuristics` makes it."""

    def __init__(
        self, fn: Any, arg_names: list[str], values: Mapping[str, Callable[..., Any]]
    ) -> None:
        kernel = kernel_of("heuristics", fn)
        if not isinstance(values, Mapping):
            raise LaunchTypeError(
                f"heuristics of {kernel.name} takes a dictionary of parameters and functions, not {values!r}"
            )
        for name, function in values.items():
            if not callable(function):
                raise LaunchTypeError(
                    f"heuristics of {kernel.name}: {name} must be a function of the arguments, not {function!r}"
                )
        self.fn = fn
        self.values = values
        self.arg_names = arg_names
        self.base_fn = kernel.function
        # Straight to the launch, unless a class of the program's own has a `run` that is to see it.
        is_own = type(self).run is Heuristics.run
        self._is_plain = type(fn) is JITFunction
        is_known = self._is_plain or hasattr(fn, "_at")
        self._at = self._launch if is_own and is_known else self._run_at
        self.__name__ = kernel.name
        self.__doc__ = kernel.__doc__
        self.__module__ = kernel.__module__

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        """``kernel[grid](...)`` computes the parameters and launches the kernel over a grid of programs."""
        return functools.partial(self._at, grid)

    def run(self, *args: Any, **kwargs: Any) -> Any:
        named = dict(zip(self.arg_names, args, strict=False))
        kwargs |= self._computed({**named, **kwargs})
        return self.fn.run(*args, **kwargs)

    def _run_at(self, grid: Any, /, *args: Any, **kwargs: Any) -> Any:
        return self.run(*args, grid=grid, warmup=False, **kwargs)

    def _launch(self, grid: Any, /, *args: Any, **kwargs: Any) -> Any:
        named = dict(zip(self.arg_names, args, strict=False))
        kwargs |= self._computed({**named, **kwargs, "grid": grid, "warmup": False})
        if self._is_plain and kwargs.get("num_ctas") == 1:
            del kwargs["num_ctas"]  # what every launch has
        return self.fn[grid](*args, **kwargs)

    @property
    def added_names(self) -> set[str]:
        """The parameters that are computed."""
        return set(self.values)

    def added(self, named: Mapping[str, Any], grid: Any, arrays: Any = None) -> dict[str, Any]:
        """What a launch with these arguments by name, whose functions see ``grid``, has besides them: the computed parameters."""
        return self._computed({**named, "grid": grid, "warmup": False})

    def _computed(self, seen: dict[str, Any]) -> dict[str, Any]:
        """The computed parameters. ``seen`` is what the functions see; each sees those before it."""
        for name, function in self.values.items():
            seen[name] = function(seen)
        return {name: seen[name] for name in self.values}

    def __repr__(self) -> str:
        return f"Heuristics({self.fn!r})"
