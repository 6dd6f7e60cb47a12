"""The order in which configurations are tried, and when to stop."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from ..errors import LaunchTypeError, LaunchValueError
from .config import Config
from .space import Space

SEARCHES = ("grid", "random", "bayes")


class Search(Protocol):
    """A way through a list of configurations."""

    def ask(self) -> Config | None:
        """The next configuration to try; None if there is none left."""

    def tell(self, config: Config, value: float) -> None:
        """Reports what a configuration took; infinity if it was refused."""


class Listed:
    """Tries configurations in the order of a list."""

    def __init__(self, configs: Sequence[Config]) -> None:
        self._left = iter(configs)

    def ask(self) -> Config | None:
        return next(self._left, None)

    def tell(self, config: Config, value: float) -> None:
        """Does nothing: the order does not depend on the results."""


class Plan:
    """How to search: the checked options of `autotune`."""

    def __init__(
        self, kernel: str, search: str, budget: Any, seconds: Any, seed: Any, space: Space | None
    ) -> None:
        where = f"autotune of {kernel}"
        if search not in SEARCHES:
            raise LaunchValueError(
                f"{where}: there is no search {search!r}; the searches are {', '.join(SEARCHES)}"
            )
        if budget is not None and (isinstance(budget, bool) or not isinstance(budget, int)):
            raise LaunchTypeError(
                f"{where}: budget must be a number of configurations, not {budget!r}; seconds=... limits the time"
            )
        if budget is not None and budget <= 0:
            raise LaunchValueError(
                f"{where}: budget must be at least 1 configuration, not {budget}"
            )
        if seconds is not None and (
            isinstance(seconds, bool) or not isinstance(seconds, (int, float))
        ):
            raise LaunchTypeError(f"{where}: seconds must be a number, not {seconds!r}")
        if seconds is not None and not seconds > 0:
            raise LaunchValueError(f"{where}: seconds must be more than 0, not {seconds}")
        if isinstance(seed, bool) or not isinstance(seed, int):
            raise LaunchTypeError(f"{where}: seed must be an integer, not {seed!r}")
        if search != "grid" and budget is None and seconds is None:
            raise LaunchValueError(
                f"{where}: search={search!r} needs budget=... configurations or seconds=..."
            )
        if search == "bayes" and space is None:
            raise LaunchTypeError(
                f'{where}: search="bayes" needs space=..., whose values it can compare; configs=... is a plain list'
            )
        if search == "bayes":
            from .bayes import require

            require(where)
        self.search = search
        self.budget = budget
        self.seconds = seconds
        self.seed = seed
        self.space = space

    def __repr__(self) -> str:
        parts = (self.search, self.budget, self.seconds, self.seed)
        return repr((*parts, self.space and self.space.values))

    def start(self, configs: Sequence[Config]) -> Search:
        """A new search through these configurations."""
        if self.search == "bayes":
            from .bayes import Bayes

            assert self.space is not None
            return Bayes(self.space, configs, self.seed)
        if self.search == "random":
            import random

            return Listed(random.Random(self.seed).sample(list(configs), len(configs)))
        return Listed(configs)

    def count(self, configs: Sequence[Config], limit: int | None = None) -> int:
        """The number of configurations that will be tried at most; ``limit`` is that of the environment."""
        return min(n for n in (len(configs), self.budget, limit) if n is not None)

    def run(
        self,
        configs: Sequence[Config],
        measure: Callable[[Config], float],
        limit: int | None = None,
        share: float = 1.0,
    ) -> Iterator[Config]:
        """Measures configurations until the budget is spent, and gives each after its measurement. ``share`` is that of the seconds."""
        search = self.start(configs)
        end = None if self.seconds is None else time.monotonic() + share * self.seconds
        ran = False
        for _ in range(self.count(configs, limit)):
            config = search.ask()
            if config is None:
                return
            value = measure(config)
            ran = ran or value < math.inf
            search.tell(config, value)
            yield config
            if end is not None and ran and time.monotonic() >= end:
                return
