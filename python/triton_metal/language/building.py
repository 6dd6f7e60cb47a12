"""Helpers of the language's functions: the active walk, markers of builtins, and conversions of arguments."""

from __future__ import annotations

import functools
import inspect
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


def broadcast_all(values: Sequence[tensor], native: _native.Builder | None = None) -> list[tensor]:
    """Tiles in the shape of all of them together."""
    native = native or builder()
    result = list(values)
    for _ in range(2):  # the first has every dimension after one round, the others after two
        for index in range(1, len(result)):
            result[0], result[index] = native.broadcast(result[0], result[index])
    return result


#: Parameters through which a builtin receives the walk that calls it; the last is the name in older programs.
WALK = ("_semantic", "_generator", "_builder")


def walk_parameters(fn: Callable[..., Any]) -> tuple[str, ...]:
    """Those of them that a function has."""
    code = getattr(inspect.unwrap(fn), "__code__", None)
    if code is None:
        return ()
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return tuple(name for name in WALK if name in names)


def builtin(fn: F) -> F:
    """Marks a function that the AST walk calls with tensors and compile-time values.

    Functions of this package find the walk themselves. Another function has a parameter ``_semantic`` (`TritonSemantic`)
    or ``_generator``, and receives compile-time values as constexpr.
    """
    wants = walk_parameters(fn)
    if wants:

        @functools.wraps(fn)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if all(kwargs.get(name) is None for name in WALK):
                raise ValueError(
                    f"{fn.__name__} works only in functions that are decorated with @triton.jit (elsewhere, pass "
                    "_semantic). Did you forget to add @triton.jit?"
                )
            return fn(*args, **kwargs)

        wrapper.__triton_wants__ = wants  # type: ignore[attr-defined]
    else:

        @functools.wraps(fn)
        def wrapper(
            *args: Any,
            _semantic: Any = None,
            _generator: Any = None,
            _builder: Any = None,
            **kwargs: Any,
        ) -> Any:
            return fn(*args, **kwargs)

        # Programs look here for the name of the parameter that their own builtins need.
        signature = inspect.signature(fn)
        walk = inspect.Parameter("_semantic", inspect.Parameter.KEYWORD_ONLY, default=None)
        parameters = [*signature.parameters.values(), walk]
        wrapper.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]

    wrapper.__triton_builtin__ = True  # type: ignore[attr-defined]
    return wrapper  # type: ignore[return-value]


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
        named = str(value).rpartition(".")[2]
        own = type(value).__module__.partition(".")[0] != "builtins" and is_dtype_name(named)
        raise TypeError(
            f"{name} must be a dtype such as tl.float32, not {describe(value)}"
            f"{f': write tl.{named}' if own else ''}"
        )
    return value


def is_dtype_name(name: str) -> bool:
    """Whether a name is one of the language's dtypes."""
    try:
        dtype(name)
    except ValueError:
        return False
    return True


def read_static(name: str, value: Any) -> Any:
    value = unwrap(value)
    if isinstance(value, tensor):
        raise TypeError(f"{name} must be constexpr, not {describe(value)}")
    return value


def read_optional(value: Any) -> Any:
    """The value of an argument that may be left out, or None."""
    return None if value is None else unwrap(value)


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
