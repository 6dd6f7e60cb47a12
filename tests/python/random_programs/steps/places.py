"""Where the elements of a tile lie in memory: permuted along each dimension, strided, with gaps."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

import numpy as np


def index_text(axis: int, rank: int) -> str:
    """`[None, :]`: a tile of one dimension as the given one of several."""
    if rank == 1:
        return ""
    return f"[{', '.join(':' if i == axis else 'None' for i in range(rank))}]"


def along(array: np.ndarray, axis: int, rank: int) -> np.ndarray:
    return array.reshape([-1 if i == axis else 1 for i in range(rank)])


@dataclass
class Places:
    """Offsets of a tile's elements within a span of memory: all different."""

    text: str
    offsets: np.ndarray

    @property
    def span(self) -> int:
        return int(self.offsets.max()) + 1 if self.offsets.size else 1


def permuted(rng: random.Random, size: int) -> tuple[str, np.ndarray]:
    """An order of 0 to size - 1, and the text of it; {} is arange."""
    i = np.arange(size)
    kind = rng.choice(["plain", "plain", "plain", "reverse", "xor", "rotate", "odd", "halves"])
    if size == 1 or kind == "plain":
        return "{}", i
    if kind == "reverse":
        return f"({size - 1} - {{}})", size - 1 - i
    if kind == "xor":
        bits = rng.randrange(1, size)
        return f"({{}} ^ {bits})", i ^ bits
    if kind == "rotate":
        by = rng.randrange(1, size)
        operator = rng.choice([f"% {size}", f"& {size - 1}"])
        return f"(({{}} + {by}) {operator})", (i + by) % size
    if kind == "odd":
        factor = rng.randrange(1, 2 * size, 2)
        return f"(({{}} * {factor}) & {size - 1})", (i * factor) % size
    half = size // 2
    return f"tl.where({{}} < {half}, {{}} + {half}, {{}} - {half})", (i + half) % size


def draw_places(rng: random.Random, shape: tuple[int, ...], plain: bool = False) -> Places:
    """Places of a tile; with `plain`, one after the other."""
    rank = len(shape)
    if rank == 0:
        return Places("0", np.zeros((), np.int64))
    order = list(range(rank))[::-1]
    step, gaps = 1, [0]
    if not plain and rng.random() < 0.4:
        rng.shuffle(order)
        step, gaps = rng.choice([1, 1, 1, 2, 3]), [0, 0, 0, 1, 4]
    strides = [0] * rank
    for axis in order:
        strides[axis] = step
        step = step * shape[axis] + rng.choice(gaps)
    parts, offsets = [], np.zeros(shape, np.int64)
    for axis, (size, stride) in enumerate(zip(shape, strides, strict=True)):
        text, places = ("{}", np.arange(size)) if plain else permuted(rng, size)
        span = f"tl.arange(0, {size})" + index_text(axis, rank)
        text = text.replace("{}", span)
        parts.append(text if stride == 1 else f"{text} * {stride}")
        offsets = offsets + along(places * stride, axis, rank)
    return Places(" + ".join(parts), offsets)


def elements(shape: tuple[int, ...]) -> int:
    return math.prod(shape)
