"""Settings, each from an environment variable until a program sets it."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any


class _Flag:
    """A truth value, from the environment until it is set."""

    def __init__(self, variable: str) -> None:
        self._variable = variable

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, knobs: Any, owner: type) -> Any:
        if knobs is None:
            return self
        given = vars(knobs).get(self._name)
        text = os.environ.get(self._variable, "").lower()
        return text in ("1", "true", "on", "yes", "y") if given is None else given

    def __set__(self, knobs: Any, value: bool) -> None:
        vars(knobs)[self._name] = value


class autotuning_knobs:
    """What autotuning keeps and says."""

    cache = _Flag("TRITON_CACHE_AUTOTUNING")
    print = _Flag("TRITON_PRINT_AUTOTUNING")
    listener: Callable[..., None] | None = None


autotuning = autotuning_knobs()
