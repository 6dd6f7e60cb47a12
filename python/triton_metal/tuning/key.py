"""The key of a search: the values of the parameters that the user names, and the dtypes of all arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..arguments import is_descriptor
from ..constants import unwrapped
from ..errors import LaunchTypeError


def dtype_of(value: Any) -> Any:
    """The dtype of an array, or of a tensor descriptor's array; None for other values."""
    found = getattr(value, "dtype", None)
    if found is None and is_descriptor(value):
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
    """Reads keys from the arguments of launches. Packages compute the same keys: Triton's order is a part of the interface."""

    def __init__(self, kernel: str, names: Sequence[str], keys: Sequence[str]) -> None:
        self._kernel = kernel
        self._names = list(names)
        self._keys = list(keys)

    def read(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
        """The key of a launch: the values of the keys that it gives, and the dtypes of its arrays as they come."""
        given = dict(zip(self._names, args, strict=False))
        given |= {name: value for name, value in kwargs.items() if name in self._names}
        key = [self._value(name, given[name]) for name in self._keys if name in given]
        dtypes = map(dtype_of, given.values())
        return (*key, *(str(dtype) for dtype in dtypes if dtype is not None))

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
