"""What shapes of calls of `triton_metal.ops` are drawn by: sizes, arrays and rows."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from triton_metal.ops import _problems

FLOATS = ("float16", "bfloat16", "float32")
#: The most numbers of an array of rows: the host device counts some kernels whole.
MOST = 1 << 24


@dataclass(frozen=True)
class Shape:
    """A call of a function on arrays of one shape."""

    function: str
    text: str
    call: Callable[[], Any]


Draw = Callable[[random.Random], Shape]


def zeros(*shape: int, dtype: str = "float32") -> np.ndarray:
    """An array whose memory nobody has touched."""
    return _problems.zeros(dtype, *shape)


def size(rng: random.Random, low: int, high: int, odd: float = 0.3) -> int:
    """A size, evenly drawn in its logarithm: a multiple of 16 or, with the probability ``odd``, any number."""
    found = round(low * (high / low) ** rng.random())
    return found if rng.random() < odd else max(16, found // 16 * 16)


def rows(rng: random.Random, longest: int = 32768) -> tuple[np.ndarray, str]:
    count, length = size(rng, 1, 4096, 1.0), size(rng, 32, longest)
    dtype = rng.choice(FLOATS)
    count = max(1, min(count, MOST // length))
    return zeros(count, length, dtype=dtype), f"{count}×{length} {dtype}"


def of_rows(name: str, call: Callable[[np.ndarray], Any], longest: int = 32768) -> Draw:
    """Shapes of a function of rows."""

    def make(rng: random.Random) -> Shape:
        x, text = rows(rng, longest)
        return Shape(name, text, lambda: call(x))

    return make


def of_numbers(name: str, call: Callable[..., Any], arrays: int = 1) -> Draw:
    """Shapes of a function of so many arrays of numbers, whose shape does not matter."""

    def make(rng: random.Random) -> Shape:
        count, dtype = size(rng, 1000, MOST // 4), rng.choice(FLOATS)
        given = [zeros(count, dtype=dtype) for _ in range(arrays)]
        return Shape(name, f"{count} {dtype}", lambda: call(*given))

    return make
