"""A declared space of configurations: every combination of the values of its names."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ..errors import LaunchTypeError, LaunchValueError
from .config import Config

LARGEST = 100_000
_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")

#: Takes the values of a configuration and the arguments of the launch, by name; says whether to try it.
Constraint = Callable[[dict[str, Any]], Any]


class Space:
    """The space of ``autotune(space={"BLOCK": [64, 128], "num_warps": [2, 4]})``."""

    def __init__(self, kernel: str, arg_names: Sequence[str], values: Any) -> None:
        if not isinstance(values, Mapping) or not values:
            raise LaunchTypeError(
                f"autotune of {kernel}: space must be a dictionary of names and lists of values, not {values!r}"
            )
        self.values: dict[str, list[Any]] = {}
        for name, choices in values.items():
            if name not in arg_names and name not in _OPTIONS:
                raise LaunchValueError(
                    f"autotune of {kernel}: space names {name!r}, which is neither a parameter of the kernel "
                    f"({', '.join(arg_names)}) nor one of the options {', '.join(_OPTIONS)}"
                )
            if isinstance(choices, (str, bytes)) or not isinstance(choices, Iterable):
                raise LaunchTypeError(
                    f"autotune of {kernel}: space[{name!r}] must be a list of values, not {choices!r}"
                )
            self.values[name] = list(choices)
            if not self.values[name]:
                raise LaunchValueError(
                    f"autotune of {kernel}: space[{name!r}] is empty: it needs at least one value"
                )
        size = math.prod(map(len, self.values.values()))
        if size > LARGEST:
            raise LaunchValueError(
                f"autotune of {kernel}: the space has {size:,} configurations; {LARGEST:,} are the most"
            )

    def configs(self) -> list[Config]:
        """All configurations. The last name's value changes from one to the next."""
        result = []
        for choice in itertools.product(*self.values.values()):
            given = dict(zip(self.values, choice, strict=True))
            options = {name: given.pop(name) for name in _OPTIONS if name in given}
            result.append(Config(given, **options))
        return result

    def coordinates(self, config: Config) -> tuple[int, ...]:
        """The position of each of a configuration's values in its list."""
        return tuple(
            choices.index(config.kwargs[name] if name in config.kwargs else config.option(name))
            for name, choices in self.values.items()
        )


def read_constraints(kernel: str, constraints: Any) -> list[Constraint]:
    """The constraints as a list."""
    if constraints is None:
        return []
    given = [constraints] if callable(constraints) else constraints
    if not isinstance(given, (list, tuple)) or not all(map(callable, given)):
        raise LaunchTypeError(
            f"autotune of {kernel}: constraints must be a function of a dictionary, or a list of them, not {constraints!r}"
        )
    return list(given)
