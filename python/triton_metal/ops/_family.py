"""What families of kernels with a choice of configurations share: how the best one for a shape is found, and kept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

from ..cost import Chip
from ._arrays import Array
from ._choices import (
    EQUAL,
    MOST_REGISTERS,
    NEARLY,
    Config,
    Entry,
    Launch,
    Table,
    answer,
    chip_for,
    seconds,
    tables,
)

#: So many answers are kept for a family; then all are forgotten.
KEPT = 1 << 14


def parts_up_to(most: int) -> tuple[int, ...]:
    """The numbers of parts that work may be cut into: powers of two up to ``most``, at least 1."""
    return tuple(1 << i for i in range(max(1, most).bit_length()))


class Candidate(NamedTuple):
    """A configuration for a shape, what it launches, and its place among equally good ones: the least is taken.

    ``exact`` says that all programs and steps are whole, as those that were counted.
    """

    config: Config
    order: tuple[float, ...]
    launches: tuple[Launch, ...]
    exact: bool = False


class Family(ABC):
    """Kernels with a table. ``names`` are those of a table's configurations, ``choice`` those of what is chosen for a shape."""

    name: ClassVar[str]
    names: ClassVar[tuple[str, ...]]
    choice: ClassVar[tuple[str, ...]]
    has_table: ClassVar[bool] = True
    #: Steps of the two launches that are counted.
    counted_steps: ClassVar[tuple[int, int]] = (2, 10)

    def __init__(self) -> None:
        self._kept: dict[Any, Config] = {}

    @abstractmethod
    def kinds(self) -> Sequence[str]:
        """The kinds of operands that the table has."""

    @abstractmethod
    def configs(self, kind: str) -> Sequence[Config]:
        """The configurations that the table has of a kind."""

    @abstractmethod
    def candidates(self, kind: str, sizes: tuple[int, ...]) -> Iterator[Candidate]:
        """All configurations for a shape."""

    @property
    def table(self) -> Table:
        """The counts."""
        return tables(self.name, self.names, self.kinds())

    def entries(self, kind: str) -> Sequence[Entry]:
        """The configurations of a kind that do not spill; all of them if there is none."""
        every = self.table[kind]
        return [each for each in every if each.registers <= MOST_REGISTERS] or every

    def choose(self, like: Array, kind: str, *sizes: int) -> Config:
        """The configuration for a shape on the device of ``like``."""
        return answer(self.name, kind, sizes) or self.best(chip_for(like), kind, sizes)

    def grid(self, kind: str, sizes: tuple[int, ...]) -> Sequence[Config]:
        """All that may be chosen for a shape."""
        return self.configs(kind)

    def best(self, chip: Chip, kind: str, sizes: tuple[int, ...]) -> Config:
        """The configuration for a shape on a chip: of those that the model calls equal to the best, the simplest."""
        key = (chip.name, chip.cores, kind, sizes)
        found = self._kept.get(key)
        if found is None:
            found = _chosen(
                [(seconds(chip, each.launches), each) for each in self.candidates(kind, sizes)]
            )
            self.keep(key, found)
        return found

    def keep(self, key: Any, found: Config) -> None:
        """Keeps an answer."""
        if len(self._kept) >= KEPT:
            self._kept.clear()
        self._kept[key] = found


def _chosen(found: Sequence[tuple[float, Candidate]]) -> Config:
    """Of candidates with their estimates, the one with the least order among those whose estimates equal the least."""
    least = min(estimate for estimate, _ in found)
    equal = [
        each for estimate, each in found if estimate <= least * (EQUAL if each.exact else NEARLY)
    ]
    return min(equal, key=lambda each: each.order).config


def cdiv(size: int, block: int) -> int:
    return -(-size // block)
