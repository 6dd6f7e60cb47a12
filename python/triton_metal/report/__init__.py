"""A page about a kernel's launch: its texts side by side, what its loads and stores touch, and what sets its time.

`kernel.report("k.html", grid, *args)` writes one; ``python -m triton_metal report PROGRAM.py`` one for each kernel of a
program. docs/report.md has an example.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..array_copies import ArrayCopies
from ..cost.chips import Chip
from ..cost.chips import chip as find
from ..cost.measure import counting_apart
from ..devices.selection import device
from ..errors import LaunchTypeError, LaunchValueError
from .output import checked_path, write
from .page import page_of
from .record import Recorded, Recording, record, recording

__all__ = ["Recorded", "Recording", "page_of", "record", "recording", "report_of"]


def report_of(
    kernel: Any,
    path: Any,
    grid: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    chips: str | Chip | Iterable[str | Chip],
) -> Path:
    """Writes the page of ``kernel[grid](*args, **kwargs)``, which runs on copies of the arrays on the host device."""
    target = checked_path(path)
    known = chips_of(chips)
    copies = ArrayCopies([*args, *kwargs.values()])
    with device("host"), counting_apart(), recording() as found:
        kernel[grid](*map(copies.of, args), **{n: copies.of(v) for n, v in kwargs.items()})
    if not found.recorded:
        raise LaunchValueError(
            f"[report] {getattr(kernel, '__name__', kernel)}: the grid has no programs, so there is nothing to report."
        )
    write(target, page_of(found.recorded[-1], known))
    return target


def chips_of(chips: str | Chip | Iterable[str | Chip]) -> list[Chip]:
    """The chips of a name, or of several. Raises LaunchValueError for one that is not in the model's table."""
    if isinstance(chips, (str, Chip)):
        chips = [chips]
    if not isinstance(chips, Iterable):
        raise LaunchTypeError(
            f"[report] chips must be names such as ['M1', 'M3 Max'] but is {chips!r}."
        )
    found = [each if isinstance(each, Chip) else find(each) for each in chips]
    if not found:
        raise LaunchValueError("[report] chips is empty: name one chip or more, such as 'M1'.")
    return found
