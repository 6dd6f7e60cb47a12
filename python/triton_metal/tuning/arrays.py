"""The contents of arrays: set to zero, kept and restored around the launches of a search."""

from __future__ import annotations

import sys
from typing import Any

from ..errors import LaunchTypeError


def _mlx(value: Any) -> Any:
    """mlx.core if this is an MLX array."""
    module = sys.modules.get("mlx.core")
    return module if module is not None and isinstance(value, module.array) else None


def _numpy(value: Any) -> Any:
    """numpy if this is one of its arrays."""
    module = sys.modules.get("numpy")
    return module if module is not None and isinstance(value, module.ndarray) else None


def _data(value: Any) -> Any:
    """A tensor without its history: a parameter of a model may not be written otherwise."""
    detach = getattr(value, "detach", None)
    return detach() if callable(detach) else value


def set_to_zero(name: str, value: Any) -> None:
    """Makes every element of an array zero."""
    if mx := _mlx(value):
        value[:] = mx.zeros(value.shape, value.dtype)
    elif _numpy(value) is not None:
        value[...] = 0
    elif callable(getattr(value, "zero_", None)):
        _data(value).zero_()
    else:
        raise _not_an_array("reset_to_zero", name, value)


def copy_of(name: str, value: Any) -> Any:
    """A copy of an array."""
    if mx := _mlx(value):
        copy = mx.array(value)
        mx.eval(copy)
        return copy
    if _numpy(value) is not None:
        return value.copy()
    if callable(getattr(value, "clone", None)) and callable(getattr(value, "copy_", None)):
        return _data(value).clone()
    raise _not_an_array("restore_value", name, value)


def restore(value: Any, copy: Any) -> None:
    """Gives an array the contents of a copy."""
    if _mlx(value):
        value[:] = copy
    elif _numpy(value) is not None:
        value[...] = copy
    else:
        _data(value).copy_(copy)


def _not_an_array(option: str, name: str, value: Any) -> LaunchTypeError:
    return LaunchTypeError(
        f"{option} names {name}, which is {value!r}: it takes an array of NumPy, torch or MLX, or None"
    )
