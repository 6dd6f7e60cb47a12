"""The dtypes of kernels, in NumPy, and Triton's rules of promotion."""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np


@dataclass(frozen=True)
class DType:
    """A dtype by its name in Triton."""

    name: str
    numpy: np.dtype
    kind: str  # "b", "i", "u" or "f"
    bits: int

    @property
    def is_float(self) -> bool:
        return self.kind == "f"

    @property
    def is_int(self) -> bool:
        return self.kind != "f"

    @property
    def is_signed(self) -> bool:
        return self.kind == "i"

    @property
    def rank(self) -> int:
        """bool, integer, float: a Python number changes a tile's dtype only if its rank is higher."""
        return {"b": 0, "i": 1, "u": 1, "f": 2}[self.kind]

    @property
    def low(self) -> int:
        return -(1 << (self.bits - 1)) if self.is_signed else 0

    @property
    def high(self) -> int:
        return (1 << (self.bits - 1 if self.is_signed else self.bits)) - 1

    @property
    def text(self) -> str:
        return f"tl.{self.name}"

    @property
    def digits(self) -> int:
        """Bits of a float's significand."""
        return {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}[self.name]

    def __repr__(self) -> str:
        return self.name


BOOL = DType("int1", np.dtype(bool), "b", 1)
I8, I16, I32, I64 = (DType(f"int{b}", np.dtype(f"i{b // 8}"), "i", b) for b in (8, 16, 32, 64))
U8, U16, U32, U64 = (DType(f"uint{b}", np.dtype(f"u{b // 8}"), "u", b) for b in (8, 16, 32, 64))
F16 = DType("float16", np.dtype(np.float16), "f", 16)
BF16 = DType("bfloat16", np.dtype(ml_dtypes.bfloat16), "f", 16)
F32 = DType("float32", np.dtype(np.float32), "f", 32)
F64 = DType("float64", np.dtype(np.float64), "f", 64)

SIGNED, UNSIGNED, FLOATS = (I8, I16, I32, I64), (U8, U16, U32, U64), (F16, BF16, F32, F64)
INTEGERS = SIGNED + UNSIGNED
ALL = (BOOL, *INTEGERS, *FLOATS)


class Refused(Exception):
    """What Triton does not allow, or this model cannot say the result of."""


def of_width(bits: int, kind: str) -> DType:
    return next(dtype for dtype in ALL if dtype.bits == bits and dtype.kind == kind)


def of_number(value: bool | int | float) -> DType:
    """The dtype that a Python number has by itself."""
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, int):
        for dtype in (I32, U32, I64, U64):
            if dtype.low <= value <= dtype.high:
                return dtype
        raise Refused(f"{value} has no dtype")
    size = abs(value)
    if (
        size == 0
        or np.isinf(size)
        or np.isnan(size)
        or 2.0**-126 <= size <= np.finfo(np.float32).max
    ):
        return F32
    raise Refused(f"{value} is a float64")


def promote_integers(a: DType, b: DType) -> DType:
    """C's usual arithmetic conversions, without promotion to int."""
    if a.is_signed == b.is_signed:
        return a if a.bits > b.bits else b
    if not a.is_signed:
        return a if a.bits >= b.bits else b
    return b if b.bits >= a.bits else a


def promote(
    a: DType, b: DType, *, a_number: bool = False, b_number: bool = False, division: bool = False
) -> DType:
    """The dtype in which Triton computes with both."""
    if a_number != b_number:
        number, value = (a, b) if a_number else (b, a)
        if number.rank <= value.rank:
            a = b = value
    if F64 in (a, b):
        return F64
    if division and (a.is_float or b.is_float):
        return F32
    for dtype in (F32, F16):
        if dtype in (a, b):
            return dtype
    if a == b == BF16:
        return BF16
    if BF16 in (a, b):
        return F32
    if division and a.is_signed != b.is_signed:
        raise Refused(f"{a} and {b} differ in signedness")
    return promote_integers(a, b)
