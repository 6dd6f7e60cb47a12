"""MLX's Metal kernels as tables: what MLX's build instantiates from the headers that an installed MLX has."""

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

__all__ = ["FAMILIES", "Family", "Instance", "compile_kernel", "include_folder", "source_folder"]
