"""One configuration of a kernel: values of its constexpr parameters, and options of the launch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_OPTIONS = ("num_warps", "num_ctas", "num_stages", "maxnreg", "ir_override")


class Config:
    """Values for a kernel's parameters, and options, that `autotune` may launch the kernel with.

    ``kwargs`` names parameters of the kernel. ``num_warps`` and ``num_stages`` are options of the launch; what a
    configuration does not name the compiler chooses (docs/threads.md). A program that reads such an option still finds
    Triton's default, 4 or 3. Apple's GPUs have no clusters and no limit of registers, so that ``num_ctas`` and
    ``maxnreg`` change nothing. ``pre_hook`` is called with all arguments before every launch with this configuration.

    >>> import triton_metal
    >>> print(triton_metal.Config({"BLOCK": 128}, num_warps=8))
    BLOCK: 128, num_warps: 8, num_ctas: 1, num_stages: None, maxnreg: None
    """

    #: What a configuration has that names none: SIMD-groups of a threadgroup, and stages of loops.
    num_warps: int = 4
    num_stages: int = 3

    def __init__(
        self,
        kwargs: dict[str, Any],
        num_warps: int | None = None,
        num_stages: int | None = None,
        num_ctas: int | None = 1,
        maxnreg: int | None = None,
        pre_hook: Callable[..., Any] | None = None,
        ir_override: str | None = None,
    ) -> None:
        if not isinstance(kwargs, dict):
            raise TypeError(
                f"Config takes a dictionary of the kernel's parameters and their values, not {kwargs!r}"
            )
        self.kwargs = kwargs
        if num_warps is not None:
            self.num_warps = num_warps
        self.num_ctas = num_ctas
        if num_stages is not None:
            self.num_stages = num_stages
        self.maxnreg = maxnreg
        self.pre_hook = pre_hook
        self.ir_override = ir_override

    def option(self, name: str) -> Any:
        """An option's value; None if the configuration does not name it."""
        # PyTorch also writes options into the dictionary.
        return vars(self).get(name)

    def __getstate__(self) -> dict[str, Any]:
        state = {name: self.option(name) for name in _OPTIONS}
        return {"kwargs": self.kwargs, **state, "pre_hook": self.pre_hook}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**{"kwargs": {}, **state})  # type: ignore[misc]

    def all_kwargs(self) -> dict[str, Any]:
        """The keywords of a launch with this configuration."""
        options = {name: self.option(name) for name in _OPTIONS}
        return {**self.kwargs, **{k: v for k, v in options.items() if v is not None}}

    def __str__(self) -> str:
        options = {name: self.option(name) for name in _OPTIONS[:-1]}
        if self.ir_override is not None:
            options["ir_override"] = self.ir_override
        return ", ".join(f"{name}: {value}" for name, value in {**self.kwargs, **options}.items())

    def __repr__(self) -> str:
        return f"<Config {self}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Config):
            return NotImplemented
        return self.all_kwargs() == other.all_kwargs() and self.pre_hook == other.pre_hook

    def __hash__(self) -> int:
        try:
            return hash((frozenset(self.all_kwargs().items()), self.pre_hook))
        except TypeError:  # a value such as a list
            return hash((frozenset(self.all_kwargs()), self.pre_hook))
