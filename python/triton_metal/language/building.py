"""Helpers of the language's functions: the active walk, markers of builtins, and conversions of arguments."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, TypeVar

from .. import _native
from .._native import dtype, tensor
from ..constexpr import unwrap

F = TypeVar("F", bound=Callable[..., Any])


class PropagateNan(Enum):
    """Whether minimum, maximum and clamp return NaN when an operand is NaN."""

    NONE = 0
    ALL = 0xFFFF


active = threading.local()


def current_generator() -> Any:
    """The AST walk that is active in this thread."""
    generator = getattr(active, "generator", None)
    if generator is None:
        raise RuntimeError(
            "operations of triton_metal.language work only inside a function that is decorated "
            "with @triton_metal.jit and launched as a kernel"
        )
    return generator


def builder() -> _native.Builder:
    return current_generator().builder


def builtin(fn: F) -> F:
    """Marks a function that the AST walk calls with tensors and compile-time values."""
    fn.__triton_builtin__ = True  # type: ignore[attr-defined]
    return fn


def is_builtin(fn: object) -> bool:
    return getattr(fn, "__triton_builtin__", False) is True


tensor_methods: dict[str, Any] = {}
"""Functions that are also methods of tensors."""


def tensor_method(fn: Any) -> Any:
    """Makes a function also a method of tensors. Its first parameter is the tensor."""
    tensor_methods[fn.__name__] = fn
    return fn


def read_shape(shape: Any) -> list[int]:
    """A shape as written: ``16, 32`` or ``(16, 32)``."""
    shape = unwrap(shape)
    if isinstance(shape, int) and not isinstance(shape, bool):
        shape = (shape,)
    if not isinstance(shape, (tuple, list)):
        raise TypeError(f"a shape is a tuple of constexpr integers, not {describe(shape)}")
    sizes = []
    for index, size in enumerate(shape):
        size = unwrap(size)
        if isinstance(size, bool) or not isinstance(size, int):
            raise TypeError(
                f"shape element {index} must be a constexpr integer, not {describe(size)}. "
                "Annotate the variable that holds it with tl.constexpr"
            )
        sizes.append(size)
    return sizes


def spread(values: Sequence[Any]) -> Sequence[Any]:
    """``f((a, b))`` means ``f(a, b)``."""
    if len(values) == 1 and isinstance(values[0], (tuple, list)):
        return values[0]
    return values


def describe(value: Any) -> str:
    if isinstance(value, tensor):
        return f"the run-time value {value.type}"
    return f"{value!r} ({type(value).__name__})"


def read_int(name: str, value: Any) -> int:
    value = unwrap(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be a constexpr integer, not {describe(value)}")
    return value


def read_dtype(name: str, value: Any) -> dtype:
    value = unwrap(value)
    if not isinstance(value, dtype):
        raise TypeError(f"{name} must be a dtype such as tl.float32, not {describe(value)}")
    return value


def read_static(name: str, value: Any) -> Any:
    value = unwrap(value)
    if isinstance(value, tensor):
        raise TypeError(f"{name} must be constexpr, not {describe(value)}")
    return value


def read_tensor(name: str, value: Any) -> tensor:
    if isinstance(value, tensor):
        return value
    if isinstance(value, (bool, int, float)):
        return builder().to_tensor(value)
    raise TypeError(f"{name} must be a tensor or a number, not {describe(value)}")


def read_nan(value: Any) -> bool:
    value = read_static("propagate_nan", value)
    if not isinstance(value, PropagateNan):
        raise TypeError(f"propagate_nan must be a tl.PropagateNan, not {describe(value)}")
    return value is PropagateNan.ALL


def wrap_axis(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} is not in {-rank} to {rank - 1}")
    return axis % rank
