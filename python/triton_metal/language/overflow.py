"""The overflow sanitizer: assertions on additions, subtractions and products of integers, with ``debug=True``."""

from __future__ import annotations

from typing import Any

from .._native import BinaryOp, Builder, tensor
from .types import int64

_NAMES = {BinaryOp.add: "add", BinaryOp.sub: "sub", BinaryOp.mul: "mul"}


def check_overflow(build: Builder, options: Any, op: BinaryOp, x: Any, y: Any, result: Any) -> None:
    """Asserts that a result of less than 64 bits is the exact one, if the kernel is compiled for that."""
    if op not in _NAMES or not (options.debug and options.sanitize_overflow):
        return
    scalar = result.dtype.scalar
    if not scalar.is_int() or not 8 <= scalar.primitive_bitwidth < 64:
        return
    width, signed = scalar.primitive_bitwidth, scalar.is_int_signed()
    least, greatest = (-1 << width - 1, (1 << width - 1) - 1) if signed else (0, (1 << width) - 1)
    operands = [value if isinstance(value, tensor) else build.to_tensor(value) for value in (x, y)]
    wide = [build.cast(build.cast(value, scalar, ""), int64, "") for value in operands]
    exact = build.binary(op, *wide)
    fits = build.binary(
        BinaryOp.and_,
        build.binary(BinaryOp.le, exact, greatest),
        build.binary(BinaryOp.ge, exact, least),
    )
    build.device_assert(fits, f"int{width} overflow detected for operation {_NAMES[op]}", None)
