"""Sorts, the largest elements, flips and histograms."""

from __future__ import annotations

import numpy as np

from .. import arithmetic as m
from ..arithmetic import Value
from ..dtypes import I32
from ..program import Program, Tile
from .views import moved

#: A sort is written out step by step: larger ones make large texts.
MOST_SORTED = 32
MOST_ELEMENTS = 1024


def _sortable(tile: Tile) -> bool:
    """Integers: a float may be NaN, or a zero with either sign."""
    return tile.shape != () and tile.shape[-1] <= MOST_SORTED and tile.size <= MOST_ELEMENTS


def _sorted(x: np.ndarray, falling: bool) -> np.ndarray:
    rows = np.sort(x, -1)
    return rows[..., ::-1] if falling else rows


def sort(program: Program) -> None:
    a = program.pick(lambda t: t.dtype.is_int and _sortable(t))
    falling = program.rng.random() < 0.5
    text = "tl.sort({0}, descending=True)" if falling else "tl.sort({0})"
    # A row of one number is its own extreme, which has 32 bits at least.
    wide = a.shape[-1] == 1 and a.dtype.bits < 32
    order = moved(lambda x: _sorted(x, falling))
    program.compute(text, lambda x: order(m.cast(x, I32) if wide else x), a)


def topk(program: Program) -> None:
    a = program.pick(lambda t: t.dtype.is_int and _sortable(t) and t.shape[-1] > 1)
    k = 1 << program.rng.randrange(a.shape[-1].bit_length())
    largest = program.rng.random() < 0.7
    text = f"tl.topk({{0}}, {k})" if largest else f"tl.topk({{0}}, {k}, descending=False)"
    chosen = moved(lambda x: _sorted(x, largest)[..., :k])
    # Like the maximum of a row, what is chosen among several has 32 bits at least.
    wide = k < a.shape[-1] and a.dtype.bits < 32
    program.compute(text, lambda x: chosen(m.cast(x, I32) if wide else x), a)


def flip(program: Program) -> None:
    a = program.pick(lambda t: t.shape != (), unknown=True)
    axis = program.rng.randrange(len(a.shape))
    program.compute(f"tl.flip({{0}}, {axis})", moved(lambda x: np.flip(x, axis + 1)), a)


def histogram(program: Program) -> None:
    a = program.pick(lambda t: len(t.shape) == 1 and t.dtype.is_int and t.dtype.bits >= 8)
    bins = program.rng.choice([1, 2, 16, 64])

    def count(x: Value) -> Value:
        places = (x.data & x.dtype.numpy.type(63)).astype(np.int64)
        rows = [np.bincount(row[row < bins], minlength=bins) for row in places]
        return Value(np.stack(rows).astype(np.int32), I32)

    program.compute(f"tl.histogram({{0}} & 63, {bins})", count, a)
