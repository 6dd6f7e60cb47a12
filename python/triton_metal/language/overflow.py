"""The overflow sanitizer: assertions on additions, subtractions and products of integers, with ``debug=True``."""

from __future__ import annotations

from typing import Any

from .._native import BinaryOp, Builder, tensor
from .types import int64

_NAMES = {BinaryOp.add: "add", BinaryOp.sub: "sub", BinaryOp.mul: "mul"}


def checked_binary(build: Builder, options: Any, op: BinaryOp, x: Any, y: Any) -> tensor:
    """The result of an operation. If the kernel is compiled for that, it asserts before that a result of less than 64
    bits is exact.
    """
    if op not in _NAMES or not (options.debug and options.sanitize_overflow):
        return build.binary(op, x, y)
    if not is_small_integer(x) or not is_small_integer(y):
        return build.binary(op, x, y)
    x, y = build.operands(x, y)
    if is_small_integer(x):
        scalar = x.dtype
        width, signed = scalar.primitive_bitwidth, scalar.is_int_signed()
        least, greatest = (
            (-1 << width - 1, (1 << width - 1) - 1) if signed else (0, (1 << width) - 1)
        )
        exact = build.binary(op, build.cast(x, int64, ""), build.cast(y, int64, ""))
        fits = build.binary(
            BinaryOp.and_,
            build.binary(BinaryOp.le, exact, greatest),
            build.binary(BinaryOp.ge, exact, least),
        )
        message = f"int{width} overflow detected for operation {_NAMES[op]}"
        build.device_assert(fits, message, None)
    return build.binary(op, x, y)


def is_small_integer(value: Any) -> bool:
    """Whether a value is an integer whose operations have exact results in 64 bits."""
    if isinstance(value, tensor):
        return value.dtype.is_int() and 8 <= value.dtype.primitive_bitwidth < 64
    return isinstance(value, int)
