"""Kernels and what is launched like them, under the names of Triton's module."""

from __future__ import annotations

from typing import Any

from .._utils import type_canonicalisation_dict
from ..errors import LaunchTypeError
from ..functions import ConstexprFunction, JITCallable, constexpr_function
from ..functions import Param as KernelParam
from ..interface import KernelInterface, T
from ..jit import JITFunction, jit
from ..specialization import (
    JitFunctionInfo,
    serialize_specialization_data,
    shown,
    specialized,
)
from ..specialization import tuples as convert_to_tuple_if_list
from .cache import get_cache_key
from .driver import driver


class MockTensor:
    """Stands for a tensor of a dtype where a kernel is only compiled."""

    def __init__(self, dtype: Any, shape: Any = None) -> None:
        self.dtype = dtype
        self.shape = [1] if shape is None else shape

    @staticmethod
    def wrap_dtype(arg: Any) -> Any:
        """A stand-in for one of torch's dtypes; anything else unchanged."""
        kind = type(arg)
        if kind.__name__ == "dtype" and kind.__module__.partition(".")[0] == "torch":
            return MockTensor(arg)
        return arg

    def stride(self) -> tuple[int, ...]:
        strides = [1]
        for size in reversed(self.shape[1:]):
            strides.insert(0, strides[0] * size)
        return tuple(strides)

    @staticmethod
    def data_ptr() -> int:
        return 0  # a multiple of 16

    @staticmethod
    def ptr_range() -> int:
        return 0


class TensorWrapper:
    """A tensor that kernels read as another dtype."""

    def __init__(self, base: Any, dtype: Any) -> None:
        self.base = base
        self.dtype = dtype
        self.data = base.data
        self.device = base.device
        self.shape = base.shape

    def data_ptr(self) -> int:
        return self.base.data_ptr()

    def stride(self, *args: Any) -> Any:
        return self.base.stride(*args)

    def element_size(self) -> int:
        return self.base.element_size()

    def cpu(self) -> TensorWrapper:
        return TensorWrapper(self.base.cpu(), self.dtype)

    def copy_(self, other: TensorWrapper) -> None:
        self.base.copy_(other.base)

    def clone(self) -> TensorWrapper:
        return TensorWrapper(self.base.clone(), self.dtype)

    def to(self, device: Any) -> TensorWrapper:
        return TensorWrapper(self.base.to(device), self.dtype)

    def new_empty(self, sizes: Any) -> TensorWrapper:
        return TensorWrapper(self.base.new_empty(sizes), self.dtype)

    def __str__(self) -> str:
        return f"TensorWrapper[{self.dtype}]({self.base})"


def reinterpret(tensor: Any, dtype: Any) -> Any:
    """A tensor, as kernels read it with another dtype of the same size.

    >>> import torch, triton_metal.language as tl
    >>> print(reinterpret(torch.zeros(2, dtype=torch.uint8), tl.float8e5).dtype)
    fp8e5
    """
    if isinstance(tensor, TensorWrapper):
        same = dtype == tensor.base.dtype
        return tensor.base if same else TensorWrapper(tensor.base, dtype)
    if not hasattr(tensor, "data_ptr"):
        raise LaunchTypeError(f"Cannot reinterpret a {type(tensor)}: it has no data_ptr()")
    return TensorWrapper(tensor, dtype)


def mangle_type(arg: Any, specialize: bool = False) -> Any:
    """The type of an argument: "*fp32", "i32", "constexpr"."""
    return specialized(arg, False, specialize, specialize)[0]


def native_specialize_impl(
    backend: Any, arg: Any, is_const: bool, specialize_value: bool, align: bool
) -> tuple[Any, Any]:
    """The type of an argument and what a kernel is specialised on."""
    return specialized(arg, is_const, specialize_value, specialize_value and align)


def compute_cache_key(kernel_key_cache: dict[Any, str], specialization: Any, options: Any) -> str:
    """The key of a specialisation with these options."""
    key = (tuple(specialization), str(options))
    if key not in kernel_key_cache:
        kernel_key_cache[key] = f"{shown(specialization)}{options}"
    return kernel_key_cache[key]


def get_full_name(fn: Any) -> str:
    """The module and the name of a function."""
    return f"{fn.__module__}.{fn.__qualname__}"


def get_device_key() -> int:
    """The key of the current device in ``device_caches``."""
    return driver.active.get_current_device()


__all__ = [
    "ConstexprFunction",
    "JITCallable",
    "JITFunction",
    "JitFunctionInfo",
    "KernelInterface",
    "KernelParam",
    "MockTensor",
    "T",
    "TensorWrapper",
    "compute_cache_key",
    "constexpr_function",
    "convert_to_tuple_if_list",
    "driver",
    "get_cache_key",
    "get_device_key",
    "get_full_name",
    "jit",
    "mangle_type",
    "native_specialize_impl",
    "reinterpret",
    "serialize_specialization_data",
    "type_canonicalisation_dict",
]
