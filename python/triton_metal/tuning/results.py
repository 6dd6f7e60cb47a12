"""The results of a kernel's searches, which can be read, exported and shipped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..files import named, save
from . import files
from .rows import Tuning


@dataclass
class Results(Mapping[tuple[Any, ...], Tuning]):
    """The searches of a kernel, by key.

    ``print(kernel.results)`` shows them as tables; ``kernel.results.export("file.json")`` writes a file that
    ``autotune(..., results="file.json")`` takes in place of a search.
    """

    kernel: str
    _tunings: dict[tuple[Any, ...], Tuning] = field(default_factory=dict)

    def add(self, tuning: Tuning) -> None:
        self._tunings[tuning.key] = tuning

    def __getitem__(self, key: tuple[Any, ...]) -> Tuning:
        return self._tunings[key]

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(list(self._tunings))

    def __len__(self) -> int:
        return len(self._tunings)

    def __str__(self) -> str:
        if not self:
            return f"{self.kernel}: no search has been made yet"
        return "\n\n".join(f"{self.kernel}, {tuning.table()}" for tuning in self.values())

    def export(self, path: str | Path) -> None:
        """Writes the searches to a JSON file, in one step. Raises LaunchValueError if it cannot be written."""
        target = named(path, "export", "tuned.json")
        save(target, files.content(self.kernel, list(self.values())), "export")
