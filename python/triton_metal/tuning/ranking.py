"""Which configurations a GPU measures: those that the model puts first."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .config import Config
from .model import Model, described
from .rows import Row

#: The share of the configurations that is measured, and their least number.
SHARE = 3
LEAST = 2


@dataclass(frozen=True)
class Ranked:
    """A configuration with its estimate in microseconds; None if the host device could not count it, for ``problem``."""

    config: Config
    estimate: float | None
    counted: tuple[int, int] | None = None
    problem: str = ""


class Ranking:
    """The configurations of one search in the model's order."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.problem = ""
        self._ranked: list[Ranked] = []

    def add(
        self,
        config: Config,
        prepare: Callable[[], None],
        launch: Callable[..., Any],
        named: Mapping[str, Any],
    ) -> float:
        """Estimates a configuration; infinity if that fails."""
        try:
            prepare()
            value, found = self.model.estimate(config, launch, named)
        except Exception as error:  # the GPU will say what it thinks of it
            self._ranked.append(Ranked(config, None, problem=f"{type(error).__name__}: {error}"))
            return math.inf
        self._ranked.append(Ranked(config, value, (found.counted, found.programs)))
        return value

    @property
    def first(self) -> int:
        """How many are measured: the first third of those with an estimate, and all others, of which the model knows nothing."""
        known = sum(each.estimate is not None for each in self._ranked)
        third = max(-(-known // SHARE), min(LEAST, known))
        return third + len(self._ranked) - known

    def ordered(self) -> list[Ranked]:
        """What the model does not know comes after its first third, and the rest last."""
        known = [each for each in self._ranked if each.estimate is not None]
        known.sort(key=lambda each: each.estimate or 0.0)  # equal ones keep their order
        unknown = [each for each in self._ranked if each.estimate is None]
        third = self.first - len(unknown)
        return [*known[:third], *unknown, *known[third:]]

    def row_left_out(self, place: int, late: bool) -> Row:
        """The row of a configuration that is not measured; ``late`` if only for want of time."""
        ordered = self.ordered()
        ranked, best = ordered[place], ordered[0]
        reason = f"the model could not count it ({ranked.problem})"
        if ranked.estimate is not None and best.estimate:
            order = sorted(each.estimate for each in ordered if each.estimate is not None)
            reason = (
                f"the model for {described(self.model.chip)} puts it in place {order.index(ranked.estimate) + 1} "
                f"of {len(order)}, at {ranked.estimate / best.estimate:.2f} times its first"
            )
        if late and place < self.first:
            reason = f"no time was left; {reason}"
        return Row(
            ranked.config,
            reason=reason,
            left_out=True,
            estimate=ranked.estimate,
            counted=ranked.counted,
        )
