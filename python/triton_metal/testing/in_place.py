"""Launches on NumPy arrays and CPU tensors through MLX arrays that are changed in place."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..mlx import in_place
from .buffers import is_bindable, is_reversed, kernels_memory
from .mlx_arrays import bytes_of, copy_of


class InPlace:
    """A route that copies to MLX arrays, launches on them in place, and copies the written arrays back.

    Every second launch gets arrays that are not computed yet, so that both kinds of launches occur. They run on MLX's
    default device, which on a Mac is the GPU.
    """

    def __init__(self, counts: dict[str, int]) -> None:
        self.counts = counts
        self.launches = 0

    def __call__(
        self, compiled: Any, grid: tuple[int, int, int], arguments: list[Any], words: bytes
    ) -> None:
        import mlx.core as mx

        described = compiled.metadata.args
        places = [i for i, argument in enumerate(described) if argument["kind"] == "buffer"]
        if not all(is_bindable(arguments[place]) for place in places):
            self.on_host(compiled, grid, arguments, words)
            return
        memories = {place: kernels_memory(arguments[place]) for place in places}
        ranges = {place: (memory.ctypes.data, memory.nbytes) for place, memory in memories.items()}
        if any(is_reversed(arguments[place]) for place in places) or overlap(ranges, arguments):
            # What no two arrays of MLX are to each other.
            self.on_host(compiled, grid, arguments, words)
            return
        self.counts["mlx in place"] = self.counts.get("mlx in place", 0) + 1
        self.launches += 1
        arrays: dict[tuple[int, int], Any] = {}
        values = list(arguments)
        for place in places:
            key = ranges[place] if ranges[place][1] else (-1 - place, 0)
            if key not in arrays:
                array = copy_of(arguments[place])
                arrays[key] = mx.where(mx.array(True), array, array) if self.launches % 2 else array
            values[place] = arrays[key]
        in_place.launch(compiled, grid, values, words)
        for place in places:
            if described[place]["writes"] or described[place]["atomic"]:
                memories[place][:] = np.frombuffer(bytes_of(values[place]), np.uint8)
        in_place.synchronize()

    def on_host(
        self, compiled: Any, grid: tuple[int, int, int], arguments: list[Any], words: bytes
    ) -> None:
        self.counts["host"] = self.counts.get("host", 0) + 1
        compiled.native.launch(grid, arguments, words)


def overlap(ranges: dict[int, tuple[int, int]], arguments: list[Any]) -> bool:
    """Whether two arguments share memory without being the same array with the same dtype."""
    places = sorted(ranges)
    for i, first in enumerate(places):
        for second in places[:i]:
            (start, size), (other, length) = ranges[first], ranges[second]
            if start < other + length and other < start + size:
                same = ranges[first] == ranges[second]
                if not same or str(arguments[first].dtype) != str(arguments[second].dtype):
                    return True
    return False
