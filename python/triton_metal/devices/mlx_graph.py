"""MLX graphs as a device: every launch becomes MLX array operations.

It has no arrays of its own. ``TRITON_METAL_DEVICE=mlx-graph`` or ``triton_metal.device("mlx-graph")`` runs launches on
NumPy arrays, CPU tensors and MLX arrays this way.
"""

from __future__ import annotations

from typing import Any

from ..mlx.graph_launches import run_in_place
from .base import DeviceProperties
from .mlx import MLXDevice


class MLXGraphDevice(MLXDevice):
    """Launches as MLX's own operations, wherever MLX runs.

    >>> import numpy, triton_metal, triton_metal.language as tl
    >>> @triton_metal.jit
    ... def double(x):
    ...     tl.store(x + tl.arange(0, 4), 2 * tl.load(x + tl.arange(0, 4)))
    >>> x = numpy.arange(4)
    >>> with triton_metal.device("mlx-graph"):
    ...     double[(1,)](x)
    >>> x
    array([0, 2, 4, 6])
    """

    name = "mlx-graph"
    array = "an MLX array"
    arrays = "NumPy arrays, CPU tensors and MLX arrays"
    array_types = ()
    readable_on = ()

    @classmethod
    def owns(cls, value: Any) -> bool:
        return False

    def properties(self) -> DeviceProperties:
        self.require()
        import mlx.core as mx

        return DeviceProperties(name=f"graphs of MLX {mx.__version__}", kind="mlx-graph")

    def run(
        self, compiled: Any, grid: tuple[int, int, int], arguments: list[Any], scalar_words: bytes
    ) -> None:
        run_in_place(compiled, grid, arguments, scalar_words)
