"""What a search found: a row for each configuration, as a table that can be read."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .config import Config

#: The units of a measurement, and what a table says about them.
UNITS = {
    "ms": "medians in milliseconds",
    "model": (
        "estimates of the model in microseconds, from counts of the host device, not times on an Apple GPU"
    ),
    "benchmark": "what the given do_bench returned",
}


@dataclass(frozen=True)
class Row:
    """One configuration of a search.

    ``value`` is the median, and ``low`` and ``high`` are the 20th and 80th percentiles, in the unit of the search;
    infinity if the configuration was refused or, as ``left_out`` says, not measured, and then ``reason`` says why. ``runs`` counts
    launches, ``compile_ms`` is the time from Python to the Metal text. ``estimate`` is the model's in microseconds where it was asked,
    and ``counted`` the programs that it counted and those of the launch.
    """

    config: Config
    value: float = math.inf
    low: float = math.inf
    high: float = math.inf
    runs: int = 0
    compile_ms: float = 0.0
    reason: str = ""
    left_out: bool = False
    estimate: float | None = None
    counted: tuple[int, int] | None = None

    @property
    def ok(self) -> bool:
        """Whether the configuration ran."""
        return not self.reason


@dataclass(frozen=True)
class Tuning:
    """The search for one key.

    ``unit`` is "ms", "model" (the cost model's estimates, in microseconds) or "benchmark" (whatever the caller's ``do_bench``
    returns). ``how`` says in words what was compared: "ranked by the model for M1", or "measured 4 of 12, those that the model for M2 Max
    puts first". ``source`` is "search", "cache" or "file".
    """

    key: tuple[Any, ...]
    best: Config
    rows: tuple[Row, ...]
    unit: str = "ms"
    device: str = ""
    seconds: float = 0.0
    source: str = "search"
    how: str = ""

    def table(self) -> str:
        """The rows as a text, best first."""
        ranked = self.unit != "model" and any(row.estimate is not None for row in self.rows)
        model = ("model us",) if ranked else ()
        unit = "model us" if self.unit == "model" else self.unit
        head = ("configuration", unit, "20 %", "80 %", *model, "runs", "compile ms", "")
        lines = [head]
        for row in sorted(self.rows, key=lambda row: (row.value, row.estimate or math.inf)):
            if row.ok:
                figures = [f"{v:.6g}" for v in (row.value, row.low, row.high)]
                note = "<- best" if row.config == self.best else ""
            else:
                figures = ["-", "-", "-"]
                what = "left out" if row.left_out else "refused"
                note = f"{what}: {row.reason.splitlines()[0]}"
            if row.counted and row.counted[0] < row.counted[1]:
                note += f" (counted {row.counted[0]} of {row.counted[1]} programs)"
            if ranked:
                figures.append("-" if row.estimate is None else f"{row.estimate:.6g}")
            figures += [str(row.runs), f"{row.compile_ms:.1f}"]
            lines.append((str(row.config), *figures, note.strip()))
        widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
        text = [
            "  ".join(
                part.ljust(width) if i in (0, len(head) - 1) else part.rjust(width)
                for i, (part, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        ]
        title = f"key {self.key} on {self.device}: {UNITS[self.unit]}"
        if self.how:
            title += f"; {self.how}"
        return "\n".join([title, *text])


def shown_key(key: Sequence[Any]) -> str:
    """A key as text that distinguishes keys in files: JSON where that is possible, and Python's form otherwise."""
    return json.dumps(list(key), default=_plain)


def _plain(value: Any) -> Any:
    """A value that JSON does not have, as one that it has."""
    if type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0:
        return value.item()
    return {"repr": repr(value)}
