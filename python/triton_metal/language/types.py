"""The types of values in kernels."""

from __future__ import annotations

import builtins
from collections.abc import Sequence

from .._native import dtype
from ..constexpr import unwrap

void = dtype("void")
int1 = dtype("int1")
int8 = dtype("int8")
int16 = dtype("int16")
int32 = dtype("int32")
int64 = dtype("int64")
uint8 = dtype("uint8")
uint16 = dtype("uint16")
uint32 = dtype("uint32")
uint64 = dtype("uint64")
float8e5 = dtype("float8e5")
float8e4nv = dtype("float8e4nv")
float8e5b16 = dtype("float8e5b16")
float8e4b8 = dtype("float8e4b8")
float8e4b15 = dtype("float8e4b15")
float16 = dtype("float16")
bfloat16 = dtype("bfloat16")
float32 = dtype("float32")
float64 = dtype("float64")


class _PointerMeta(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, dtype) and instance.is_ptr()


class pointer_type(metaclass=_PointerMeta):
    """``pointer_type(float32)`` is the dtype of pointers to float32."""

    def __new__(cls, element_ty: dtype, const: bool = False) -> dtype:  # type: ignore[misc]
        return dtype.pointer(unwrap(element_ty), const=builtins.bool(unwrap(const)))


class _BlockMeta(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, dtype) and instance.is_block()


class block_type(metaclass=_BlockMeta):
    """``block_type(float32, [16, 32])`` is the type of tiles of that shape."""

    def __new__(cls, element_ty: dtype, shape: Sequence[int]) -> dtype:  # type: ignore[misc]
        return dtype.block(unwrap(element_ty), [unwrap(size) for size in shape])


pi32_t = pointer_type(int32)
