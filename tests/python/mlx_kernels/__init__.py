"""MLX's Metal kernels as tables: what MLX's build instantiates from the headers that an installed MLX has."""

import os

import pytest

from mlx_kernels import attention, elementwise, matrices, quantized, reductions, runtime, signals
from mlx_kernels.compiling import compile_kernel
from mlx_kernels.family import Family, Instance, include_folder, source_folder

FAMILIES: list[Family] = [
    *elementwise.FAMILIES,
    *reductions.FAMILIES,
    *matrices.FAMILIES,
    *attention.FAMILIES,
    *quantized.FAMILIES,
    *signals.FAMILIES,
    *runtime.FAMILIES,
]

#: For modules of tests, which fail without MLX where TRITON_METAL_REQUIRE_MLX is set.
NEEDS_MLX = pytest.mark.skipif(
    include_folder() is None and not os.environ.get("TRITON_METAL_REQUIRE_MLX"),
    reason="MLX is not installed",
)

__all__ = [
    "FAMILIES",
    "NEEDS_MLX",
    "Family",
    "Instance",
    "compile_kernel",
    "include_folder",
    "source_folder",
]
