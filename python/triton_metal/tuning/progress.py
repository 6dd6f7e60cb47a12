"""A progress bar for long searches, where somebody watches."""

from __future__ import annotations

import sys
import time
from typing import Any

LONG_SECONDS = 3.0


class Progress:
    """Shows a bar on stderr once a search is expected to take long; needs a terminal, and rich."""

    def __init__(self, title: str, total: int) -> None:
        self._title = title
        self._total = total
        self._done = 0
        self._start = time.monotonic()
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def advance(self) -> None:
        """One configuration more has been measured."""
        self._done += 1
        if self._bar is None and self._done < self._total and self._is_long():
            self._begin()
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done)

    def _is_long(self) -> bool:
        elapsed = time.monotonic() - self._start
        expected = elapsed / self._done * self._total
        return expected >= LONG_SECONDS and sys.stderr is not None and sys.stderr.isatty()

    def _begin(self) -> None:
        try:
            from rich.console import Console
            from rich.progress import Progress as Bar
        except ImportError:
            self._total = 0  # do not ask again
            return
        self._bar = Bar(console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task(self._title, total=self._total)
        self._bar.start()

    def close(self) -> None:
        """Takes the bar away."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
