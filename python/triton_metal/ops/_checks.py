"""Errors of the functions of this package: each names the function, the argument, what came and what is allowed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import LaunchTypeError, LaunchValueError
from ._arrays import Array, dtype_name, framework, is_array, is_torch

_WRITTEN = {"numpy": "a NumPy array", "mlx": "an MLX array", "torch": "a PyTorch tensor"}


def listed(names: Sequence[Any], last: str = "or") -> str:
    """ "a", "a or b", "a, b or c"."""
    texts = [str(name) for name in names]
    if len(texts) < 2:
        return "".join(texts)
    return f"{', '.join(texts[:-1])} {last} {texts[-1]}"


def fail(function: str, text: str) -> LaunchValueError:
    """The error for a value that ``function`` does not take."""
    return LaunchValueError(f"[{function}] {text}")


def check_arrays(function: str, optional: str = "", **arrays: Array | None) -> None:
    """Raises unless all arguments are arrays of one framework and on one device; those that ``optional`` names may be None."""
    given = [
        (name, x) for name, x in arrays.items() if x is not None or name not in optional.split()
    ]
    first, leader = given[0]
    for name, x in given:
        if not is_array(x):
            raise LaunchTypeError(
                f"[{function}] {name} must be an array of NumPy, MLX or PyTorch but is {'None' if x is None else 'a ' + type(x).__name__}."
            )
        if framework(x) != framework(leader):
            raise LaunchTypeError(
                f"[{function}] {name} must be {_WRITTEN[framework(leader)]}, as {first} is, "
                f"but is {_WRITTEN[framework(x)]}."
            )
        if is_torch(x) and x.device != leader.device:
            raise fail(
                function,
                f"{name} must be on the device of {first}, {leader.device}, but is on {x.device}.",
            )


def check_dtype(function: str, name: str, x: Array, allowed: Sequence[str]) -> None:
    """Raises unless the dtype of ``x`` is one of ``allowed``."""
    if dtype_name(x) not in allowed:
        raise fail(
            function, f"{name} must have dtype {listed(allowed)} but has dtype {dtype_name(x)}."
        )


def check_same_dtype(function: str, **arrays: Array | None) -> None:
    """Raises unless all arrays that are not None have the first one's dtype."""
    given = [(name, x) for name, x in arrays.items() if x is not None]
    first, leader = given[0]
    for name, x in given[1:]:
        if dtype_name(x) != dtype_name(leader):
            raise fail(
                function,
                f"{name} must have the dtype of {first}, {dtype_name(leader)}, but has dtype {dtype_name(x)}.",
            )


def check_rank(function: str, name: str, x: Array, least: int, most: int | None = None) -> None:
    """Raises unless ``x`` has ``least`` to ``most`` dimensions (exactly ``least`` if ``most`` is None)."""
    most = least if most is None else most
    if not least <= x.ndim <= most:
        wanted = f"{least}" if least == most else f"{least} to {most}"
        plural = "" if wanted == "1" else "s"
        raise fail(
            function,
            f"{name} must have {wanted} dimension{plural} but has {x.ndim}: its shape is {tuple(x.shape)}.",
        )


def check_shape(function: str, name: str, x: Array, shape: Sequence[int], why: str = "") -> None:
    """Raises unless ``x`` has this shape."""
    if tuple(x.shape) != tuple(shape):
        raise fail(
            function, f"{name} must have shape {tuple(shape)}{why} but has shape {tuple(x.shape)}."
        )


def check_axis(function: str, axis: Any, rank: int) -> int:
    """The axis from 0 on; raises unless it is an integer from -rank to rank - 1."""
    if isinstance(axis, bool) or not hasattr(axis, "__index__"):
        raise LaunchTypeError(f"[{function}] axis must be an integer but is {axis!r}.")
    axis = axis.__index__()
    if not -rank <= axis < rank:
        raise fail(
            function,
            f"axis must be from {-rank} to {rank - 1} for {rank} dimensions but is {axis}.",
        )
    return axis % rank


def check_number(
    function: str,
    name: str,
    value: Any,
    *,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
    below: float | None = None,
) -> float:
    """The number as a float; raises unless it is one within the bounds."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise LaunchTypeError(f"[{function}] {name} must be a number but is {value!r}.")
    bounds = []
    if least is not None:
        bounds.append((value >= least, f"at least {least:g}"))
    if above is not None:
        bounds.append((value > above, f"more than {above:g}"))
    if most is not None:
        bounds.append((value <= most, f"at most {most:g}"))
    if below is not None:
        bounds.append((value < below, f"less than {below:g}"))
    if not all(holds for holds, _ in bounds):
        raise fail(
            function, f"{name} must be {' and '.join(text for _, text in bounds)} but is {value}."
        )
    return float(value)


def check_choice(function: str, name: str, value: Any, choices: Sequence[Any]) -> None:
    """Raises unless ``value`` is one of ``choices``."""
    if value not in choices:
        raise fail(
            function, f"{name} must be {listed([repr(c) for c in choices])} but is {value!r}."
        )
