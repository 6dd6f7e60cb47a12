"""Launches on NumPy arrays and CPU tensors as MLX graphs."""

from __future__ import annotations

from typing import Any

from ..errors import GraphRefusal, LaunchValueError
from ..mlx.graph_launches import check_overlap, run_in_place
from .buffers import is_bindable, kernels_memory


class AsGraph:
    """A route that runs a launch as MLX's own operations, and counts those that are refused."""

    def __init__(self, counts: dict[str, int]) -> None:
        self.counts = counts

    def __call__(
        self, compiled: Any, grid: tuple[int, int, int], arguments: list[Any], words: bytes
    ) -> None:
        if not can_be_graph(compiled, arguments):
            self.counts["host"] = self.counts.get("host", 0) + 1
            compiled.native.launch(grid, arguments, words)
            return
        way = "mlx-graph"
        try:
            run_in_place(compiled, grid, arguments, words)
        except GraphRefusal:
            way = "refused"
            raise
        finally:
            self.counts[way] = self.counts.get(way, 0) + 1


def can_be_graph(compiled: Any, arguments: list[Any]) -> bool:
    """Whether the arrays of a launch are what arrays of MLX can be to each other."""
    given = [
        (argument, value)
        for argument, value in zip(compiled.metadata.args, arguments, strict=False)
        if argument["kind"] == "buffer"
    ]
    if not all(is_bindable(value) for _, value in given):
        return False
    memories = [kernels_memory(value) for _, value in given]
    ranges = [(memory.ctypes.data, memory.nbytes) for memory in memories]
    try:
        check_overlap(compiled.metadata.name, given, ranges)
    except LaunchValueError:
        return False
    return True
