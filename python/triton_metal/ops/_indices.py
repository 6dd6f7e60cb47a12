"""Integer arguments and arrays of indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import LaunchTypeError
from ._arrays import Array, is_torch
from ._checks import fail, integer

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")


def check_index(function: str, name: str, value: Any, least: int = -(2**31), bits: int = 31) -> int:
    """The value as an integer; raises unless it is one from ``least`` to 2**bits - 1."""
    number = integer(value)
    if number is None:
        raise LaunchTypeError(f"[{function}] {name} must be an integer but is {value!r}.")
    if not least <= number < 2**bits:
        raise fail(function, f"{name} must be from {least} to 2**{bits} - 1 but is {number}.")
    return number


def check_indices(
    function: str, name: str, indices: Array, count: int, ignored: int | None = None
) -> None:
    """Raises if the host has the indices at hand and one is neither from 0 to count - 1 nor ``ignored``.

    Looking at those of a GPU would wait for it.
    """
    if is_torch(indices):
        if indices.device.type != "cpu":
            return
        indices = indices.detach().numpy()
    if not isinstance(indices, np.ndarray) or not indices.size:
        return
    if indices.min() >= 0 and indices.max() < count:
        return
    wrong = (indices < 0) | (indices >= count)
    if ignored is not None:
        wrong &= indices != ignored
    if wrong.any():
        place = tuple(int(i) for i in np.argwhere(wrong)[0])
        found = indices[place]
        allowed = "" if ignored is None else f", or {ignored} to be ignored"
        raise fail(
            function,
            f"{name} must be from 0 to {count - 1}{allowed}, but is {found} at {place}.",
        )
