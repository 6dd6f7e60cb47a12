"""Bayesian search, by Optuna's tree-structured Parzen estimator. Optuna is an optional extra of this package."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Any

from .config import Config
from .space import Space


def require(where: str) -> None:
    """Raises ImportError if Optuna is not installed."""
    try:
        found = importlib.util.find_spec("optuna") is not None
    except ValueError:  # a module without a spec, or None in its place
        found = False
    if not found:
        raise ImportError(
            f'{where}: search="bayes" needs Optuna, which is not installed: pip install triton-metal[tune]'
        )


class Bayes:
    """Suggests the configurations that promise most after the results so far.

    A suggestion that is not in the list, because a constraint excludes it or it has been tried, stands for the nearest
    one that is. No configuration is tried twice.
    """

    def __init__(self, space: Space, configs: Sequence[Config], seed: int) -> None:
        import optuna

        self._optuna = optuna
        self._space = space
        self._left = {space.coordinates(config): config for config in configs}
        self._scales = [max(1, len(choices) - 1) for choices in space.values.values()]
        self._distributions: dict[str, Any] = {
            name: optuna.distributions.IntDistribution(0, len(choices) - 1)
            if _is_ordered(choices)
            else optuna.distributions.CategoricalDistribution(range(len(choices)))
            for name, choices in space.values.items()
        }
        self._ordered = [_is_ordered(choices) for choices in space.values.values()]
        sampler = optuna.samplers.TPESampler(seed=seed % (1 << 32), n_startup_trials=5)
        verbosity = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        try:
            self._study = optuna.create_study(sampler=sampler, direction="minimize")
        finally:
            optuna.logging.set_verbosity(verbosity)

    def ask(self) -> Config | None:
        if not self._left:
            return None
        trial = self._study.ask(self._distributions)
        self._study.tell(
            trial, state=self._optuna.trial.TrialState.FAIL
        )  # `tell` adds the real one
        wanted = tuple(trial.params[name] for name in self._space.values)
        found = min(self._left, key=lambda at: (self._distance(at, wanted), at))
        return self._left.pop(found)

    def tell(self, config: Config, value: float) -> None:
        params = dict(zip(self._space.values, self._space.coordinates(config), strict=True))
        self._study.add_trial(
            self._optuna.trial.create_trial(
                params=params, distributions=self._distributions, value=value
            )
        )

    def _distance(self, at: tuple[int, ...], wanted: tuple[int, ...]) -> float:
        parts = zip(at, wanted, self._scales, self._ordered, strict=True)
        return sum(abs(a - b) / scale if ordered else a != b for a, b, scale, ordered in parts)


def _is_ordered(choices: list[Any]) -> bool:
    """Whether the values are numbers in order, so that neighbours are alike."""
    numbers = all(isinstance(c, (int, float)) and not isinstance(c, bool) for c in choices)
    return numbers and (choices == sorted(choices) or choices == sorted(choices, reverse=True))
