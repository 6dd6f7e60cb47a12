"""What the examples need of arrays, those of NumPy, torch and MLX alike."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Any

import numpy as np

Array = Any  # numpy.ndarray, torch.Tensor or mlx.core.array


def is_torch(x: Array) -> bool:
    """Whether ``x`` is a torch tensor; torch is not imported for the question."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def is_mlx(x: Array) -> bool:
    """Whether ``x`` is an MLX array; MLX is not imported for the question."""
    mx = sys.modules.get("mlx.core")
    return mx is not None and isinstance(x, mx.array)


def framework(x: Array) -> Any:
    """The module whose dtypes ``x`` has."""
    return sys.modules["torch" if is_torch(x) else "mlx.core" if is_mlx(x) else "numpy"]


def empty(shape: tuple[int, ...], like: Array, dtype: Any = None) -> Array:
    """A new array of ``like``'s kind, and of its dtype unless another is given."""
    if is_torch(like):
        return like.new_empty(shape, dtype=dtype)
    if is_mlx(like):
        return framework(like).zeros(shape, like.dtype if dtype is None else dtype)
    return np.empty(shape, dtype=like.dtype if dtype is None else dtype)


def empty_float32(shape: tuple[int, ...], like: Array) -> Array:
    """A new fp32 array of ``like``'s kind."""
    return empty(shape, like, framework(like).float32)


def empty_int32(shape: tuple[int, ...], like: Array) -> Array:
    """A new int32 array of ``like``'s kind."""
    return empty(shape, like, framework(like).int32)


def strides(x: Array) -> tuple[int, ...]:
    """The strides of ``x`` in elements."""
    if is_torch(x):
        return tuple(x.stride())
    if is_mlx(x):
        from triton_metal.mlx import strides as mlx_strides

        return mlx_strides(x)
    return tuple(s // x.itemsize for s in x.strides)


def size(x: Array) -> int:
    """The number of elements of ``x``."""
    return x.numel() if is_torch(x) else x.size


def itemsize(x: Array) -> int:
    """The bytes of one element of ``x``."""
    return x.element_size() if is_torch(x) else x.itemsize


def dtype_name(x: Array) -> str:
    """``float16``, ``bfloat16``, ``float32``, ``int8``, ..."""
    return str(x.dtype).removeprefix("torch.").removeprefix("mlx.core.")


def to_float64(x: Array) -> np.ndarray:
    """A NumPy copy of ``x`` in float64 (exact for every dtype that the examples use)."""
    if is_torch(x):
        return x.cpu().double().numpy()
    if is_mlx(x) and dtype_name(x) == "bfloat16":
        x = x.astype(framework(x).float32)
    return np.asarray(x).astype(np.float64)


def available(*names: str) -> list[str]:
    """Those of the dtypes that NumPy arrays can have here: bfloat16 needs a package."""
    return [name for name in names if name != "bfloat16" or find_spec("ml_dtypes")]


def numpy_dtype(name: str) -> np.dtype:
    """The NumPy dtype called ``name``; bfloat16 comes from the ml_dtypes package."""
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)
