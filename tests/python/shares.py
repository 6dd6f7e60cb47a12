"""Shares of the suite: a part of the cases of each test function, for runs that repeat the suite another way."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence


def share(text: str) -> tuple[int, int]:
    """K and N of "K/N", K from 1 to N."""
    which, _, of = text.partition("/")
    if not (which.isdecimal() and of.isdecimal() and 1 <= int(which) <= int(of)):
        raise argparse.ArgumentTypeError(f"a share is K/N with K from 1 to N, not {text!r}")
    return int(which), int(of)


def in_share(places: Sequence[str], which: int, of: int) -> list[bool]:
    """Which of the items are in a share, given each item's test function: every `of`-th case of a function, from `which` on.

    A function with fewer cases than shares has one in each.
    """
    counts = Counter(places)
    seen: Counter[str] = Counter()
    kept = []
    for place in places:
        kept.append(seen[place] % of == (which - 1) % min(of, counts[place]))
        seen[place] += 1
    return kept
