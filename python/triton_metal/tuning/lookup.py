"""How launches that look alike find their configuration in a microsecond.

Launches look alike if their arguments have the same types and were given in the same way. For each look there is a
function that reads what the key of a search depends on, the dtypes of the arrays and the values that the key names,
without texts. `eval` makes it, as a tuple of subscripts: a loop over the arguments would take twice as long.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .._native import dtype
from ..functions import ConstexprFunction
from ..jit import JITFunction
from .config import Config
from .key import has_shape

#: Values whose dtype no key has.
PLAIN = frozenset({int, float, bool, str, type(None), tuple, dtype, JITFunction, ConstexprFunction})


class Found:
    """The configuration of launches that look alike, and what it adds to them: arguments by position, where they come
    next (which is quicker), and by keyword."""

    __slots__ = ("config", "is_only", "keywords", "positional")

    def __init__(
        self, config: Config, keywords: dict[str, Any], next_names: Sequence[str], is_only: bool
    ) -> None:
        self.config = config
        positional = []
        for name in next_names:
            if name not in keywords:
                break
            positional.append(keywords.pop(name))
        self.positional = tuple(positional)
        self.keywords = keywords
        self.is_only = is_only


def look_of(args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
    """How a launch looks. `Autotuner` has the same expression."""
    return (*map(type, args), *kwargs, *map(type, kwargs.values()))


def reader_of(
    number: int,
    names: Sequence[str],
    keys: Sequence[str],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> Callable[[Any, Any], tuple[Any, ...]] | None:
    """The function for launches that look like this one; None if they need a closer look.

    ``number`` distinguishes its results from those for other looks. ``keys`` are the parameters in the key of the search.
    """
    places = {name: f"args[{i}]" for i, name in enumerate(names[: len(args)])}
    places |= {name: f"kwargs[{name!r}]" for name in kwargs}
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    parts = [str(number)]
    for name, value in given.items():
        if type(value) not in PLAIN:
            if getattr(value, "dtype", None) is None:
                return None
            parts.append(f"{places[name]}.dtype")
    for name in keys:
        if name in given:
            if has_shape(given[name]):
                return None
            parts.append(places[name])
    return eval(f"lambda args, kwargs: ({', '.join(parts)},)")
