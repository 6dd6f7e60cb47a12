"""A problem that both sides solve: a row of the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mlx_kernels.running import TOLERANCE

#: What a function of `triton_metal.ops` takes by itself.
DEFAULT = "default"
#: Solves the problem in one way and returns its result.
Launch = Callable[[], np.ndarray]


@dataclass(frozen=True)
class Problem:
    """A problem, and the ways in which each side solves it, by the names of their configurations. Ours that is named DEFAULT
    stands wherever it counts no more than MLX's.

    `ours` returns float64 (or integers), `mlx` what the kernel has stored. `check` gets either as numbers and raises
    AssertionError if they are not the result.
    """

    ours: Mapping[str, Launch]
    mlx: Mapping[str, Launch]
    check: Callable[[np.ndarray], None]


@dataclass(frozen=True)
class Case:
    """A row: what is computed, on which shape and type, and how the problem is made.

    `source` says that MLX's kernel is in its checkout only, `quick` that the row is part of the quick table.
    """

    family: str
    shape: str
    dtype: str
    make: Callable[[], Problem]
    source: bool = False
    quick: bool = False

    @property
    def name(self) -> str:
        return f"{self.family} {self.shape} {self.dtype}"


def near(
    exact: np.ndarray, t: str, *, terms: int = 1, rtol: float | None = None
) -> Callable[[np.ndarray], None]:
    """A check that a result is `exact` within the rounding of the type and of a sum of so many terms."""
    bound = TOLERANCE.get(t, 0.0)
    finite = np.abs(exact[np.isfinite(exact)])
    scale = float(np.max(finite, initial=0.0))

    def check(result: np.ndarray) -> None:
        assert result.size == exact.size, f"{result.size} numbers instead of {exact.size}"
        np.testing.assert_allclose(
            result.reshape(exact.shape),
            exact,
            rtol=bound if rtol is None else rtol,
            atol=bound * scale * max(1, terms) ** 0.5,
        )

    return check


def equal(exact: np.ndarray) -> Callable[[np.ndarray], None]:
    """A check that a result is `exact`."""

    def check(result: np.ndarray) -> None:
        np.testing.assert_array_equal(result.reshape(exact.shape), exact)

    return check


def default(make: Launch) -> dict[str, Launch]:
    """The one launch of a function of `triton_metal.ops`, which chooses its tiles itself."""
    return {DEFAULT: make}


def grid_of(
    make: Callable[..., np.ndarray], names: str, choices: Sequence[tuple[object, ...]]
) -> dict[str, Launch]:
    """A launch for each choice of the options that `names` lists, called as those are: "BLOCK_M 64, num_warps 4"."""
    keys = names.split()
    result: dict[str, Launch] = {}
    for choice in choices:
        options = dict(zip(keys, choice, strict=True))
        label = ", ".join(f"{key} {value}" for key, value in options.items())
        result[label] = lambda options=options: make(**options)
    return result
