"""Parameters of a kernel whose values are computed from the arguments of the launch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..errors import LaunchTypeError
from .interface import KernelInterface, kernel_of


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
        self.__name__ = kernel.name
        self.__doc__ = kernel.__doc__
        self.__module__ = kernel.__module__

    def run(self, *args: Any, **kwargs: Any) -> Any:
        for name, function in self.values.items():
            kwargs[name] = function({**dict(zip(self.arg_names, args, strict=False)), **kwargs})
        return self.fn.run(*args, **kwargs)

    def __repr__(self) -> str:
        return f"Heuristics({self.fn!r})"
