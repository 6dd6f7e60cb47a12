"""What the arguments of launches are."""

from __future__ import annotations

from typing import Any

from .errors import LaunchTypeError


def is_descriptor(value: Any) -> bool:
    """Whether a value is a tensor descriptor, as the native launcher decides it."""
    return hasattr(type(value), "__triton_parts__")


def as_array(value: Any) -> Any:
    """A NumPy array on the memory of an object with ``__array_interface__`` or ``__dlpack__``.

    Raises LaunchTypeError if the memory is not the CPU's, or has a dtype that NumPy does not have.
    """
    import numpy as np

    try:
        if hasattr(value, "__array_interface__"):
            return np.asarray(value)
        return np.from_dlpack(value)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        raise LaunchTypeError(
            f"a {type(value).__name__} cannot be read as an array in the CPU's memory: {error}"
        ) from None
