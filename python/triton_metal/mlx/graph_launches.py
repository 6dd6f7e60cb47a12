"""Launches that run as MLX graphs and change the arrays that they are given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..array_memory import buffer_of, is_tensor, kernels_memory
from ..errors import LaunchValueError
from . import graph_programs

#: Of an axis of MLX's arrays, whose shapes are numbers of 32 bits (`mlx::core::ShapeElem`).
MOST_ELEMENTS = 2**31 - 1


def run_in_place(
    compiled: Any, grid: tuple[int, int, int], arguments: list[Any], scalar_words: bytes
) -> None:
    """Runs a packed launch as a graph, and changes the arrays that it writes."""
    import mlx.core as mx
    import numpy as np

    described = compiled.metadata.args[: len(graph_programs.program_of(compiled).arguments)]
    given = [
        (argument, value)
        for argument, value in zip(described, arguments, strict=False)
        if argument["kind"] == "buffer"
    ]
    if all(isinstance(value, mx.array) for _, value in given):
        results, written, _ = graph_programs.run(
            compiled, grid, [value for _, value in given], scalar_words
        )
        for (_, value), result, changed in zip(given, results, written, strict=True):
            if changed:
                value[:] = result if value.ndim else value * 0 + result
        return
    # Buffers and objects with an array interface are read as NumPy reads them.
    given = [
        (argument, value if is_tensor(value) else np.asarray(value)) for argument, value in given
    ]
    for argument, value in given:
        if (argument["writes"] or argument["atomic"]) and not buffer_of(value).writable:
            raise LaunchValueError(
                f"{compiled.metadata.name}: argument {argument['name']} is a read-only array, but the kernel writes it"
            )
    memories = [kernels_memory(value) for _, value in given]
    ranges = [(memory.ctypes.data, memory.nbytes) for memory in memories]
    check_overlap(compiled.metadata.name, given, ranges)
    copies: dict[tuple[int, int, int], Any] = {}
    arrays = []
    for index, ((argument, _), memory, (address, size)) in enumerate(
        zip(given, memories, ranges, strict=True)
    ):
        key = (address, size, 0) if size else (0, 0, index)
        if key not in copies:
            elements = memory.view(unsigned(argument["type"], size))
            if elements.size > MOST_ELEMENTS:
                raise LaunchValueError(
                    f"{compiled.metadata.name}: argument {argument['name']} has {elements.size} elements, but an axis of an MLX "
                    f"array has at most {MOST_ELEMENTS}"
                )
            copies[key] = mx.array(elements)
        arrays.append(copies[key])
    results, written, _ = graph_programs.run(compiled, grid, arrays, scalar_words)
    mx.eval(results)
    for memory, result, changed in zip(memories, results, written, strict=True):
        if changed:
            memory[:] = np.ascontiguousarray(np.array(result)).view(np.uint8)


def unsigned(type: str, size: int) -> str:
    """NumPy's unsigned integers as wide as the elements of a pointer type; bytes if they do not fit the memory."""
    digits = "".join(filter(str.isdigit, type.partition("E")[0])) or "64"
    width = max(8, int(digits))
    return f"uint{width}" if size % (width // 8) == 0 else "uint8"


def check_overlap(
    name: str, given: Sequence[tuple[dict[str, Any], Any]], ranges: Sequence[tuple[int, int]]
) -> None:
    """Raises if two arrays share a part of their memory: no two MLX arrays do."""
    for i, (first, size) in enumerate(ranges):
        for j, (second, length) in enumerate(ranges[:i]):
            overlaps = first < second + length and second < first + size
            writes = any(given[k][0]["writes"] or given[k][0]["atomic"] for k in (i, j))
            if overlaps and writes and (first, size) != (second, length):
                raise LaunchValueError(
                    f"{name}: arguments {given[j][0]['name']} and {given[i][0]['name']} share a part of their memory, "
                    "which arrays of an MLX graph cannot"
                )
