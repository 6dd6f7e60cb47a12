"""Kernels on MLX arrays.

``kernel[grid](...)`` takes ``mlx.core.array`` arguments and changes those that it writes in place, under the names
that were passed. :mod:`triton_metal.mlx.in_place` describes arrays that share memory or are not computed yet. This
package does not import MLX before it is used.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {
    "call": "functional",
    "custom": "customs",
    "graph": "graphs",
    "launch": "in_place",
    "synchronize": "in_place",
}

__all__ = ["call", "custom", "graph", "launch", "strides", "synchronize"]


def strides(array: Any) -> tuple[int, ...]:
    """The strides of an array, in elements, as a kernel sees it. MLX arrays have no strides of their own.

    A kernel always receives the elements in row-major order, also of a view.

    >>> import mlx.core as mx
    >>> import triton_metal.mlx
    >>> triton_metal.mlx.strides(mx.zeros((2, 3, 4)))
    (12, 4, 1)
    >>> triton_metal.mlx.strides(mx.zeros((3, 4)).T)
    (3, 1)
    """
    result = []
    step = 1
    for size in reversed(array.shape):
        result.append(step)
        step *= size
    return tuple(reversed(result))


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
