"""Errors of the functions of this package: each names the function, the argument, what came and what is allowed."""

from __future__ import annotations

import numbers
import operator
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import LaunchTypeError, LaunchValueError
from ._arrays import Array, dtype_name, framework, is_array, is_torch

#: The largest float32.
LARGEST = 2.0**128 - 2.0**104
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


def integer(value: Any) -> int | None:
    """``value`` as an int; None if it is no integer, or a bool."""
    if isinstance(value, (bool, np.bool_)):
        return None
    # An integer that torch.compile traces is an int here, and cannot be asked for its attributes.
    if isinstance(value, int):
        return value
    try:
        return operator.index(value)
    except TypeError:
        return None


def unusual_kind(x: Array) -> str | None:
    """What keeps kernels from computing with an array as with its numbers alone, or None."""
    if isinstance(x, np.ma.MaskedArray):
        return "a masked array, whose mask a kernel does not see"
    if isinstance(x, np.matrix):
        return "a numpy.matrix, which has two dimensions in any shape"
    if not is_torch(x):
        return None
    torch = sys.modules["torch"]
    if x.layout != torch.strided or x.is_nested:
        return "a nested tensor" if x.is_nested else f"a tensor of layout {x.layout}"
    if torch.compiler.is_compiling():
        return None
    if x.device.type not in ("cpu", "mps"):
        return f"a tensor on {x.device}, where there are no kernels"
    functorch = torch._C._functorch
    if functorch.is_functorch_wrapped_tensor(x) or functorch.is_legacy_batchedtensor(x):
        return "a tensor under a transform of torch.func, such as vmap or grad"
    forward = torch.autograd.forward_ad
    if forward._current_level >= 0 and forward.unpack_dual(x).tangent is not None:
        return "a dual tensor, and there are no derivatives in forward mode"
    return None


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
        unusual = unusual_kind(x)
        if unusual is not None:
            raise LaunchTypeError(f"[{function}] {name} must be a plain array but is {unusual}.")
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
    place = integer(axis)
    if place is None:
        raise LaunchTypeError(f"[{function}] axis must be an integer but is {axis!r}.")
    if not -rank <= place < rank:
        raise fail(
            function,
            f"axis must be from {-rank} to {rank - 1} for {rank} dimensions but is {place}.",
        )
    # A constant, also where torch.compile traces the axis: it neither sorts traced integers nor finds them in lists.
    axes = [each for each in range(rank) if place == each or place == each - rank]
    return axes[0]


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
    """The number as a float; raises unless it is within the bounds and no larger than a float32 can be."""
    if isinstance(value, bool) or not isinstance(value, (int, float, numbers.Real)):
        raise LaunchTypeError(f"[{function}] {name} must be a number but is {value!r}.")
    if isinstance(value, np.floating):
        value = float(value)  # what it is compared with may be none of its numbers
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
    # Kernels take it as a float32, in which a larger one is infinite.
    if not -LARGEST <= value <= LARGEST:
        raise fail(
            function, f"{name} must be a finite number of at most {LARGEST:.8g} but is {value}."
        )
    return float(value)


def check_flag(function: str, name: str, value: Any) -> bool:
    """The value as a bool; raises unless it is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise LaunchTypeError(f"[{function}] {name} must be True or False but is {value!r}.")
    return bool(value)


def check_choice(function: str, name: str, value: Any, choices: Sequence[Any]) -> None:
    """Raises unless ``value`` is one of ``choices``, which are strings, numbers and None."""
    kind = str if isinstance(value, str) else numbers.Real
    plain = value is None or (isinstance(value, kind) and not isinstance(value, bool))
    if not plain or value not in choices:
        raise fail(
            function, f"{name} must be {listed([repr(c) for c in choices])} but is {value!r}."
        )
