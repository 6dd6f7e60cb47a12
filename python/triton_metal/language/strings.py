"""Types from their names in signatures: "*fp32", "i64", "constexpr", "tensordesc<fp16[32,64]>"."""

from __future__ import annotations

import builtins
import re
from typing import Any

from .._native import dtype
from . import types
from .values import constexpr_type, tensor_descriptor_type, tuple_type

_NAMES = {
    **{f"i{width}": f"int{width}" for width in (1, 8, 16, 32, 64)},
    **{f"u{width}": f"uint{width}" for width in (8, 16, 32, 64)},
    "u1": "int1",
    "B": "int1",
}
_SCALARS = ("fp8e4nv", "fp8e4b8", "fp8e5", "fp8e5b16", "fp8e4b15", "fp16", "bf16", "fp32", "fp64")
_DESCRIPTOR = re.compile(r"tensordesc<(?P<element>\w+)\[(?P<shape>[\d, ]+)\]>")


def str_to_ty(name: Any, c: Any) -> Any:
    """The type of this name. ``c`` is the value that "constexpr" stands for.

    >>> str_to_ty("*fp32", None)
    pointer<fp32>
    """
    if isinstance(name, (builtins.tuple, list)):
        return tuple_type([str_to_ty(part, c) for part in name], getattr(name, "_fields", None))
    if name.startswith("*"):
        is_const = name.startswith("*k")
        return dtype.pointer(str_to_ty(name[2 if is_const else 1 :], c), const=is_const)
    if match := _DESCRIPTOR.fullmatch(name):
        shape = [int(size) for size in match["shape"].split(",")]
        block = dtype.block(str_to_ty(match["element"], None), shape)
        rank = len(shape)
        return tensor_descriptor_type(
            block, tuple_type([types.int32] * rank), tuple_type([types.int64] * rank)
        )
    if name.startswith("constexpr"):
        return constexpr_type(c)
    if name in _NAMES or name in _SCALARS:
        return dtype(_NAMES.get(name, name))
    raise KeyError(f"{name!r} is not the name of a type in a signature")
