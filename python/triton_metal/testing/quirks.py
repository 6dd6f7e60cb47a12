"""Finds in Metal text what Apple's compilers and GPUs are known to get wrong; docs/apple-quirks.md explains the rows."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass


@dataclass(frozen=True)
class QuirkHit:
    """One finding. `kind` is "defect", "costly" (a cure costs time), "unproven" (it depends on values) or "advice"."""

    row: int
    name: str
    kind: str
    file: str
    line: int
    column: int
    message: str

    def __str__(self) -> str:
        kind = "" if self.kind == "defect" else f" [{self.kind}]"
        place = f"{self.file}:{self.line}:{self.column}"
        return f"{place}: row {self.row} ({self.name}): {self.message}{kind}"


@dataclass(frozen=True)
class QuirkRow:
    """One row of docs/apple-quirks.md that the scanner knows. Rows from 101 on are what Metal does not promise."""

    row: int
    name: str
    explanation: str
    source: str


def find_quirks(
    text: str, *, file_name: str = "kernel.metal", safe_math: bool = False
) -> list[QuirkHit]:
    """The findings in a Metal text, by line."""
    from triton_metal_host import find_quirks as scan

    found = json.loads(scan(text, file_name, safe_math))
    if isinstance(found, dict):
        raise ValueError(found["error"])
    return [QuirkHit(**hit) for hit in found]


@functools.cache
def quirk_rows() -> tuple[QuirkRow, ...]:
    """All rows, by number."""
    from triton_metal_host import quirk_rows as rows

    return tuple(QuirkRow(**row) for row in json.loads(rows()))


@functools.cache
def scanner_version() -> str:
    """Changes whenever the scanner may find something else in a text."""
    from triton_metal_host import scanner_version as version

    return version()
