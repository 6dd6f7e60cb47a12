"""Graphs of launches that come again, compiled by MLX."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from .graph_programs import Summary, run

#: Compiled launches that a kernel keeps. Each has its own grid, scalars and arrays.
_MOST = 64


def run_compiled(
    compiled: Any,
    grid: tuple[int, int, int],
    arrays: Sequence[Any],
    words: bytes,
    enabled: bool | None,
    convolves: bool | None = None,
) -> tuple[list[Any], list[bool], Summary]:
    """As :func:`graph_programs.run`. Launches that come again are compiled if ``enabled``, or if it is None, on a GPU.

    On a GPU, ``mx.compile`` makes one kernel of a chain of operations, and a call no longer walks over the kernel's
    program. On the CPU, MLX's own operations use vector instructions and its compiled ones do not.
    """
    import mlx.core as mx

    if enabled is None:
        enabled = mx.default_device().type == mx.DeviceType.gpu
    if not enabled:
        return run(compiled, grid, arrays, words, convolves=convolves)
    # Which arguments are one array is a part of the program.
    places: dict[int, int] = {}
    distinct = []
    for array in arrays:
        if id(array) not in places:
            places[id(array)] = len(distinct)
            distinct.append(array)
    order = tuple(places[id(array)] for array in arrays)
    sizes = tuple((tuple(array.shape), array.dtype) for array in distinct)
    key = (tuple(grid), bytes(words), order, sizes, convolves)
    launches = vars(compiled).setdefault("_mlx_compiled_graphs", OrderedDict())
    entry = launches.get(key)
    if entry is None:
        results, written, summary = run(compiled, grid, arrays, words, convolves=convolves)
        if not summary.reads_elements and not summary.unchecked_assertions:

            def changed(*given: Any) -> list[Any]:
                results, written, _ = run(
                    compiled, grid, [given[i] for i in order], words, convolves=convolves
                )
                return [
                    result
                    for result, is_written in zip(results, written, strict=True)
                    if is_written
                ]

            launches[key] = (mx.compile(changed), written, summary)
            if len(launches) > _MOST:
                launches.popitem(last=False)
        return results, written, summary
    launches.move_to_end(key)
    function, written, summary = entry
    fresh = iter(function(*distinct))
    results = [
        next(fresh) if is_written else array
        for array, is_written in zip(arrays, written, strict=True)
    ]
    return results, written, summary
