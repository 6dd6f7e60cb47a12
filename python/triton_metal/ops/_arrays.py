"""What the functions of this package need of arrays: those of NumPy, MLX and PyTorch alike.

An array's *framework* is "numpy", "mlx" or "torch". A dtype goes by its name, such as "float16"; bfloat16 of NumPy is
that of the package ml_dtypes. No framework is imported before one of its arrays is met.
"""

from __future__ import annotations

import functools
import math
import sys
from typing import Any

import numpy as np

from ..errors import LaunchTypeError

Array = Any  # numpy.ndarray, mlx.core.array or torch.Tensor
FLOATS = ("float16", "bfloat16", "float32")


def is_torch(x: Any) -> bool:
    """Whether ``x`` is a tensor of PyTorch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def is_mlx(x: Any) -> bool:
    """Whether ``x`` is an array of MLX."""
    mx = sys.modules.get("mlx.core")
    return mx is not None and isinstance(x, mx.array)


def is_array(x: Any) -> bool:
    """Whether ``x`` is an array of one of the frameworks."""
    return isinstance(x, np.ndarray) or is_torch(x) or is_mlx(x)


def framework(x: Any) -> str:
    """The name of the framework whose array ``x`` is; LaunchTypeError if it is none."""
    if is_torch(x):
        return "torch"
    if is_mlx(x):
        return "mlx"
    if isinstance(x, np.ndarray):
        return "numpy"
    raise LaunchTypeError(
        f"an array of NumPy, MLX or PyTorch is needed, not {type(x).__module__}.{type(x).__qualname__}"
    )


def dtype_name(x: Array) -> str:
    """The name of an array's dtype: "float16", "bfloat16", "float32", "int8", …"""
    return str(x.dtype).removeprefix("torch.").removeprefix("mlx.core.")


@functools.cache
def item_size(dtype: str) -> int:
    """The bytes of an element."""
    bits = "".join(each for each in dtype if each.isdigit())
    return int(bits or 8) // 8


def dtype_of(name: str, like: Array) -> Any:
    """The dtype of this name in ``like``'s framework."""
    where = framework(like)
    if where == "numpy":
        if name == "bfloat16":
            import ml_dtypes

            return np.dtype(ml_dtypes.bfloat16)
        return np.dtype(name)
    if where == "mlx":
        return getattr(sys.modules["mlx.core"], "bool_" if name == "bool" else name)
    return getattr(sys.modules["torch"], name)


def places_dtype(like: Array) -> str:
    """The dtype of places in arrays of ``like``'s framework: MLX gives uint32, NumPy and PyTorch int64."""
    return "uint32" if is_mlx(like) else "int64"


def empty(shape: tuple[int, ...], dtype: str, like: Array) -> Array:
    """A new array of ``like``'s framework and device, whose elements are anything (zeros in MLX)."""
    where, made = framework(like), dtype_of(dtype, like)
    if where == "torch":
        return like.new_empty(shape, dtype=made)
    return np.empty(shape, made) if where == "numpy" else sys.modules["mlx.core"].zeros(shape, made)


def full(shape: tuple[int, ...], value: float, dtype: str, like: Array) -> Array:
    """A new array of ``like``'s framework and device with ``value`` everywhere."""
    where, made = framework(like), dtype_of(dtype, like)
    if where == "torch":
        return like.new_full(shape, value, dtype=made)
    if where == "numpy":
        return np.full(shape, value, made)
    # mx.full takes the value's dtype if that is the wider one.
    return sys.modules["mlx.core"].full(shape, value, made).astype(made)


def converted(x: Array, dtype: str) -> Array:
    """``x`` with elements of this dtype; ``x`` itself if it has it."""
    if dtype_name(x) == dtype:
        return x
    made = dtype_of(dtype, x)
    return x.to(made) if is_torch(x) else x.astype(made)


def strides(x: Array) -> tuple[int, ...]:
    """The steps from element to element in each dimension, in elements, as a kernel meets them.

    MLX hands over row-major copies of views, so the steps of its arrays follow from their shapes.
    """
    if is_torch(x):
        return tuple(x.stride())
    if is_mlx(x):
        from ..mlx import strides as mlx_strides

        return mlx_strides(x)
    return tuple(step // x.itemsize for step in x.strides)


def is_contiguous(x: Array) -> bool:
    """Whether the elements lie side by side in row-major order."""
    if is_torch(x):
        return x.is_contiguous()
    return is_mlx(x) or bool(x.flags.c_contiguous and x.flags.aligned)


def contiguous(x: Array) -> Array:
    """``x`` in row-major order: itself, or a copy, whose elements are aligned."""
    if is_contiguous(x):
        return x
    # numpy.ascontiguousarray leaves an array that is not aligned where it is.
    return x.contiguous() if is_torch(x) else np.array(x, order="C")


def resolved(x: Any) -> Any:
    """``x``, or a copy of a tensor whose numbers do not lie in memory: with the negative bit, they have the other sign there, and
    a zero tensor (what `torch.sgn` gives as a gradient) has no memory.
    """
    if not is_torch(x):
        return x
    if x._is_zerotensor():
        import torch

        zeros = torch.zeros(x.shape, dtype=x.dtype, device=x.device)
        return zeros + x if x.requires_grad else zeros
    return x.resolve_neg() if x.is_neg() else x


def is_whole(x: Array) -> bool:
    """Whether kernels can read the elements where they lie: aligned, and whole elements apart."""
    return not isinstance(x, np.ndarray) or bool(
        x.flags.aligned and x.dtype.isnative and not any(step % x.itemsize for step in x.strides)
    )


def reshaped(x: Array, shape: tuple[int, ...]) -> Array:
    """``x`` in another shape: a view where the framework can give one, else a copy."""
    return x if tuple(x.shape) == tuple(shape) else x.reshape(shape)


def size_of(shape: tuple[int, ...]) -> int:
    """The number of elements of an array of this shape."""
    return math.prod(shape)
