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
        self._num_warps = num_warps
        self.num_ctas = num_ctas
        self._num_stages = num_stages
        self.maxnreg = maxnreg
        self.pre_hook = pre_hook
        self.ir_override = ir_override

    @property
    def num_warps(self) -> int:
        """SIMD-groups of a threadgroup; Triton's default, 4, if the configuration names none."""
        return 4 if self._num_warps is None else self._num_warps

    @num_warps.setter
    def num_warps(self, value: int | None) -> None:
        self._num_warps = value

    @property
    def num_stages(self) -> int:
        """Stages of loops; Triton's default, 3, if the configuration names none."""
        return 3 if self._num_stages is None else self._num_stages

    @num_stages.setter
    def num_stages(self, value: int | None) -> None:
        self._num_stages = value

    def option(self, name: str) -> Any:
        """An option's value; None if the configuration does not name it."""
        return getattr(self, f"_{name}" if name in ("num_warps", "num_stages") else name)

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
