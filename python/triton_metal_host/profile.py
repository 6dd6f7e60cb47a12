"""What the lines of a text did in launches."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from . import _engine


@dataclass(frozen=True)
class LineProfile:
    """One line that did something.

    ``file`` is the name of the text or of a file that it includes, ``line`` is counted from 1, and 0 is what belongs to
    no line. ``counters`` are those that are not 0. ``modelled_share`` (0 to 1) is the line's part of the time on a
    simple model of a GPU: it ranks lines, and is not measured.
    """

    file: str
    line: int
    modelled_share: float
    modelled_cycles: float
    counters: dict[str, int]


class Profile:
    """The counters of a run for each line of its texts: exact, and the same on every machine.

    ``str(profile)`` is the text with each line's counts beside it, and ``html()`` is that as a page of its own.
    """

    __slots__ = ("_handle",)

    def __init__(self, handle: Any) -> None:
        self._handle = handle

    @property
    def lines(self) -> list[LineProfile]:
        """The lines that did something, by file and line."""
        return [LineProfile(**line) for line in json.loads(self.json())["lines"]]

    def table(self) -> str:
        """The lines that did something, the most expensive one first."""
        return _engine.profile_text(self._handle, "table")

    def json(self) -> str:
        """The lines, the model's cycles and the counters of the run as JSON."""
        return _engine.profile_text(self._handle, "json")

    def html(self) -> str:
        """The listing as a page of its own, with the expensive lines in colour."""
        return _engine.profile_text(self._handle, "html")

    def __str__(self) -> str:
        return _engine.profile_text(self._handle, "text")
