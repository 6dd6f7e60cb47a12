"""Python functions with a meaning of their own in kernels."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from .._native import dtype, tensor
from ..language import core
from ..reads import Reads
from .values import BoundMethod, is_runtime


def static_isinstance(reads: Reads, value: Any, classes: Any) -> bool:
    classes = classes if isinstance(classes, tuple) else (classes,)
    for cls in classes:
        if cls is core.constexpr:
            if not is_runtime(value):
                return True
        elif reads.call(isinstance, value, cls):
            return True
    return False


def static_getattr(reads: Reads, value: Any, name: str, *default: Any) -> Any:
    if isinstance(value, tensor) and name in core.tensor_methods:
        return BoundMethod(core.tensor_methods[name], value)
    return reads.call(getattr, value, name, *default)


def static_hasattr(reads: Reads, value: Any, name: str) -> bool:
    is_method = isinstance(value, tensor) and name in core.tensor_methods
    return is_method or reads.call(hasattr, value, name)


def static_unwrap(reads: Reads, value: Any) -> Any:
    # Compile-time values are plain ones in the walk.
    return value


def static_len(reads: Reads, value: Any) -> int:
    if isinstance(value, tensor) and value.shape:
        raise TypeError("len takes a tuple, not a tile: use its shape")
    if isinstance(value, tensor):
        raise TypeError(
            f"len takes a tuple, not {value.type}: a kernel does not know how long the array of a pointer is, so "
            "pass its size as an argument"
        )
    return reads.call(len, value)


BUILTINS: dict[str, Any] = {
    "range": builtins.range,
    "len": len,
    "int": int,
    "float": float,
    "bool": bool,
    "str": str,
    "list": tuple,
    "tuple": tuple,
    "isinstance": isinstance,
    "getattr": getattr,
    "hasattr": hasattr,
    "print": core.device_print,
    "zip": zip,
    "enumerate": enumerate,
    "reversed": reversed,
    "min": core.builtin_min,
    "max": core.builtin_max,
}

#: Functions whose results a kernel loops over.
ITERATORS = frozenset({zip, enumerate, reversed})

# None: they work on compile-time values only.
STATIC_FUNCTIONS: dict[int, Callable[..., Any] | None] = {
    id(len): static_len,
    id(isinstance): static_isinstance,
    id(getattr): static_getattr,
    id(hasattr): static_hasattr,
    id(core._unwrap_if_constexpr): static_unwrap,
    **{id(cls): None for cls in (int, float, bool, str, tuple, builtins.range, dtype)},
}

STATIC_CLASSES = (
    core.constexpr,
    core.range,
    core.static_range,
    core.condition,
    core.pointer_type,
    core.block_type,
    core.constexpr_type,
    core.tuple_type,
)
