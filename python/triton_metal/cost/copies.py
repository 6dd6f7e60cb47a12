"""Copies of arrays for the host device that look to a kernel as the arrays do: strides, alignment, and what overlaps."""

from __future__ import annotations

import copy
import sys
from typing import Any

#: Addresses are kept modulo so many bytes: kernels are specialised to aligned arrays.
_ALIGNMENT = 256


class HostCopies:
    """Makes copies. Arrays that share memory share that of their copies, and an array is copied once."""

    def __init__(self) -> None:
        self._copies: dict[int, tuple[Any, Any]] = {}
        self._memory: dict[Any, tuple[Any, Any]] = {}

    def __call__(self, value: Any) -> Any:
        """The copy of an array, of a tensor descriptor with its array, or of a tuple with them; another value as it is."""
        if id(value) not in self._copies:
            self._copies[id(value)] = (value, self._copy(value))
        return self._copies[id(value)][1]

    def _copy(self, value: Any) -> Any:
        from ..arguments import is_descriptor

        if type(value).__module__.startswith("mlx"):
            return _of_mlx(value)
        if hasattr(value, "untyped_storage"):
            return self._of_torch(value)
        numpy = sys.modules.get("numpy")
        if numpy is not None and isinstance(value, numpy.ndarray) and value.ndim:
            return self._of_numpy(value)
        if type(value) is tuple:
            return tuple(map(self, value))
        if is_descriptor(value):
            other = copy.copy(value)
            other.base = self(value.base)
            return other
        return value

    def _of_numpy(self, value: Any) -> Any:
        import numpy as np

        whole = value
        while isinstance(whole.base, np.ndarray):
            whole = whole.base
        low, high = _bounds(whole)
        if (low, high) not in self._memory:
            memory = np.empty(high - low + _ALIGNMENT, np.uint8)
            first = (low - memory.ctypes.data) % _ALIGNMENT
            memory = memory[first : first + high - low]
            _strided(memory, whole, low)[...] = whole
            self._memory[low, high] = (whole, memory)
        return _strided(self._memory[low, high][1], value, low)

    def _of_torch(self, value: Any) -> Any:
        import torch

        storage = value.untyped_storage()
        key = (str(value.device), storage.data_ptr(), storage.nbytes())
        if key not in self._memory:
            bytes_of = torch.empty(0, dtype=torch.uint8, device=value.device).set_(storage)
            self._memory[key] = (storage, bytes_of.detach().cpu().clone())
        memory = self._memory[key][1]
        found = torch.empty(0, dtype=value.dtype)
        return found.set_(
            memory.untyped_storage(), value.storage_offset(), value.shape, value.stride()
        )


def _bounds(value: Any) -> tuple[int, int]:
    """The addresses of an array's first byte and of the one behind its last."""
    first = last = value.__array_interface__["data"][0]
    if not value.size:
        return first, last
    for size, step in zip(value.shape, value.strides, strict=True):
        reach = (size - 1) * step
        first, last = first + min(reach, 0), last + max(reach, 0)
    return first, last + value.itemsize


def _strided(memory: Any, value: Any, low: int) -> Any:
    """A view of bytes that begin at the address ``low`` elsewhere, as ``value`` is one there."""
    import numpy as np

    at = value.__array_interface__["data"][0] - low
    return np.ndarray(value.shape, value.dtype, memory, at, value.strides)


def _of_mlx(value: Any) -> Any:
    import mlx.core as mx
    import numpy as np

    if not isinstance(value, mx.array):
        return value
    if value.dtype == mx.bfloat16:
        import ml_dtypes

        return np.array(value.view(mx.uint16)).view(ml_dtypes.bfloat16)
    return np.array(value)
