"""What other parts of the package are asked or told of launches that MLX makes a part of its graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: Each is told of every call of `triton_metal.mlx.call`, before it: the kernel, the grid, and the arguments with new arrays for
#: the outputs.
call_listeners: list[Callable[[Any, tuple[int, int, int], list[Any]], None]] = []
#: The first one says whether a launch with options in a function that MLX traces may go without them. `launcher` adds it.
askers: list[Callable[[Any], bool]] = []


def leaves_out(kernel: Any) -> bool:
    """Whether such a launch of a compiled kernel may go without its options."""
    return bool(askers) and askers[0](kernel)
