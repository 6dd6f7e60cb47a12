"""The options of `autotune`, checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ..errors import LaunchTypeError, LaunchValueError
from .config import Config
from .space import Space

_PRUNE = ("early_config_prune", "perf_model", "top_k")


def read_configs(kernel: str, configs: Any, space: Space | None) -> list[Config]:
    """The configurations: the given ones, or those of the space. An empty list stands for one without values."""
    if space is not None:
        if configs is not None:
            raise LaunchTypeError(
                f"autotune of {kernel} takes either configs=[...] or space={{...}}, not both"
            )
        return space.configs()
    if configs is None:
        raise LaunchTypeError(
            f"autotune of {kernel} needs configs=[triton_metal.Config(...), ...] or space={{...}}"
        )
    if isinstance(configs, (str, Mapping, Config)) or not isinstance(configs, Iterable):
        raise LaunchTypeError(
            f"autotune of {kernel}: configs must be a list of triton_metal.Config, not {configs!r}"
        )
    found = configs if isinstance(configs, list) else list(configs)
    for i, config in enumerate(found):
        if not isinstance(config, Config):
            raise LaunchTypeError(
                f"autotune of {kernel}: configs[{i}] must be a triton_metal.Config, not {config!r}"
            )
    return found or [Config({})]


def read_names(kernel: str, option: str, names: Any, arg_names: Sequence[str]) -> list[str]:
    """A list of names of parameters."""
    if names is None and option != "key":
        return []
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise LaunchTypeError(
            f"autotune of {kernel}: {option} must be a list of the names of parameters, not {names!r}"
        )
    found = list(names)
    unknown = [name for name in found if name not in arg_names]
    if unknown:
        raise LaunchValueError(
            f"autotune of {kernel}: {option} names {', '.join(map(repr, unknown))}; the kernel's parameters are "
            f"{', '.join(arg_names)}"
        )
    return found


def read_prune(
    kernel: str, prune: Any
) -> tuple[Callable[..., Any] | None, Callable[..., Any] | None, int | float]:
    """(early_config_prune, perf_model, top_k)."""
    if prune is None:
        return None, None, 1.0
    where = f"autotune of {kernel}: prune_configs_by"
    if not isinstance(prune, Mapping):
        raise LaunchTypeError(f"{where} must be a dictionary, not {prune!r}")
    # PyTorch makes a tuner of a tuner's own attributes.
    prune = {"top_k" if name == "configs_top_k" else name: prune[name] for name in prune}
    if unknown := [name for name in prune if name not in _PRUNE]:
        raise LaunchValueError(
            f"{where} has {', '.join(map(repr, unknown))}; it takes {', '.join(_PRUNE)}"
        )
    for name in _PRUNE[:2]:
        if prune.get(name) is not None and not callable(prune[name]):
            raise LaunchTypeError(f"{where}[{name!r}] must be a function, not {prune[name]!r}")
    top_k = prune.get("top_k", 1.0)
    if top_k is None and prune.get("perf_model") is None:
        top_k = 1.0  # nothing reads it without a model
    is_count = isinstance(top_k, int) and not isinstance(top_k, bool) and top_k >= 1
    if not is_count and not (isinstance(top_k, float) and 0 <= top_k <= 1):
        raise LaunchTypeError(
            f"{where}['top_k'] must be a number of configurations, 1 or more, or a share of them as a float from 0 to 1, not "
            f"{top_k!r}"
        )
    return prune.get("early_config_prune"), prune.get("perf_model"), top_k
