"""Words of messages."""

from __future__ import annotations


def number_of(count: int, one: str, several: str = "") -> str:
    """A number of things.

    >>> number_of(1, "program"), number_of(2000, "program"), number_of(0, "launch", "launches")
    ('1 program', '2,000 programs', '0 launches')
    """
    return f"{count:,} {one if count == 1 else several or one + 's'}"
