"""Conversions between MLX arrays and bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .buffers import kernels_memory


def dtype_name(dtype: Any) -> str:
    """NumPy's name of an MLX dtype: "float32"."""
    return str(dtype).rpartition(".")[2].removesuffix("_")


def bytes_of(array: Any) -> bytes:
    """The elements in row-major order."""
    import mlx.core as mx

    if array.dtype == mx.bfloat16:
        array = array.view(mx.uint16) if array.ndim else array.reshape(1).view(mx.uint16)
    return np.ascontiguousarray(np.array(array)).tobytes()


def array_from(memory: np.ndarray, shape: tuple[int, ...], dtype: Any) -> Any:
    """An MLX array with these bytes."""
    import mlx.core as mx

    name = dtype_name(dtype)
    view = memory.view(np.uint16 if name == "bfloat16" else np.dtype(name))
    array = mx.array(view)
    return (array.view(mx.bfloat16) if name == "bfloat16" else array).reshape(shape)


def dtype_of(array: Any) -> Any:
    """The MLX dtype of a NumPy array or tensor."""
    import mlx.core as mx

    name = str(array.dtype).removeprefix("torch.")
    return mx.bool_ if name == "bool" else getattr(mx, name)


def copy_of(array: Any) -> Any:
    """An MLX array with all elements that a kernel may access of a NumPy array or tensor."""
    return array_from(kernels_memory(array), (-1,), dtype_of(array))
