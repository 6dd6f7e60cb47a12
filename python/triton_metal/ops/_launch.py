"""One launch for the arrays of every framework: outputs are new arrays, which the kernel writes completely."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ._arrays import Array, dtype_of, empty, full, is_mlx, item_size, size_of
from ._groups import KERNELS, groups_of
from ._pieces import spread

#: The shape and the name of the dtype of an array that a launch makes.
Spec = tuple[Sequence[int], str]


#: What is launched in place of a grid, given the kernel and the grid.
Turn = Callable[[Any, tuple[int, ...]], tuple[int, ...]]


class _Thread(threading.local):
    """What this thread's launches make of their grids, and the SIMD-groups that they take; None for nothing and their own."""

    turn: Turn | None = None
    warps: int | None = None


_thread = _Thread()


@contextmanager
def turned_grids(turn: Turn) -> Iterator[None]:
    """Within it, launches of this thread take ``turn(kernel, grid)`` for their grids: to count some of their programs for all."""
    _thread.turn = turn
    try:
        yield
    finally:
        _thread.turn = None


@contextmanager
def forced_warps(warps: int) -> Iterator[None]:
    """Within it, launches of this thread have so many SIMD-groups, whatever they name."""
    before, _thread.warps = _thread.warps, warps
    try:
        yield
    finally:
        _thread.warps = before


def launch(
    kernel: Any,
    grid: Sequence[int],
    outputs: Mapping[str, Spec],
    *,
    like: Array,
    fill: float | None = None,
    **arguments: Any,
) -> tuple[Array, ...]:
    """Runs ``kernel`` on ``grid`` and returns its outputs, in the order of ``outputs``.

    ``outputs`` gives each argument that the kernel writes a shape and the name of a dtype; the arrays are new, of the
    framework and device of ``like``. ``fill`` is what is in them before the launch, for kernels that do not write all of them
    or add to them. A grid without programs launches nothing, and so do outputs without elements.
    """
    specs = {name: (tuple(shape), dtype) for name, (shape, dtype) in outputs.items()}
    if 0 in grid or not any(size_of(shape) for shape, _ in specs.values()):
        return tuple(full(shape, fill or 0, dtype, like) for shape, dtype in specs.values())
    if _thread.warps is not None:
        arguments = spread(arguments, _thread.warps)
    elif kernel.name in KERNELS:
        written = sum(size_of(shape) * item_size(dtype) for shape, dtype in specs.values())
        groups = groups_of(kernel, grid, arguments, written, like)
        if groups is not None:
            arguments = spread(arguments, groups)
    if _thread.turn is not None:
        grid = _thread.turn(kernel, tuple(grid))
    if is_mlx(like):
        from ..mlx import call

        wanted = {name: (shape, dtype_of(dtype, like)) for name, (shape, dtype) in specs.items()}
        made = call(kernel, grid=tuple(grid), outputs=wanted, init_value=fill, **arguments)
        return made if isinstance(made, tuple) else (made,)
    new = {
        name: empty(shape, dtype, like) if fill is None else full(shape, fill, dtype, like)
        for name, (shape, dtype) in specs.items()
    }
    kernel[tuple(grid)](**new, **arguments)
    return tuple(new.values())
