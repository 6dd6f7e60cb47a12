"""The key of a search: the values of the parameters that the user names, and the dtypes of all arrays."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from ..constants import unwrapped
from ..errors import LaunchTypeError


def dtype_of(value: Any) -> Any:
    """The dtype of an array, or of a tensor descriptor's array; None for other values."""
    found = getattr(value, "dtype", None)
    if found is None and hasattr(type(value), "__triton_parts__"):
        found = getattr(value.base, "dtype", None)
    return found


def has_shape(value: Any) -> bool:
    """Whether a value is an array, of which the key has the shape."""
    if not (hasattr(value, "dtype") and hasattr(value, "shape")):
        return False
    return (
        getattr(value, "ndim", 1) != 0 or type(value).__module__ != "numpy"
    )  # NumPy's scalars are numbers


class KeyReader:
    """Reads keys from the arguments of launches."""

    def __init__(self, kernel: str, signature: inspect.Signature, keys: Sequence[str]) -> None:
        self._kernel = kernel
        self._names = list(signature.parameters)
        self._defaults = {
            name: parameter.default
            for name, parameter in signature.parameters.items()
            if parameter.default is not inspect.Parameter.empty
        }
        self._keys = list(keys)

    def read(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
        """The key of a launch. It does not depend on the order of keyword arguments."""
        given = {**dict(zip(self._names, args, strict=False)), **kwargs}
        key = []
        for name in self._keys:
            if name in given or name in self._defaults:
                key.append(self._value(name, given.get(name, self._defaults.get(name))))
        for name in self._names:
            dtype = dtype_of(given.get(name))
            if dtype is not None:
                key.append(str(dtype))
        return tuple(key)

    def _value(self, name: str, value: Any) -> Any:
        value = unwrapped(value)
        if has_shape(value):
            return tuple(value.shape)  # its dtype is in the key in any case
        try:
            hash(value)
        except TypeError:
            raise LaunchTypeError(
                f"{self._kernel}: argument {name} is in autotune's key, so it must be a number, a string, a dtype or "
                f"another value that can be hashed, not {value!r}"
            ) from None
        return value
