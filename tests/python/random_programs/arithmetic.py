"""What operations mean, in NumPy: every result is exact, or known not to be.

A `Value` is an array with one leading dimension more than the tile: the programs of the grid. Where an element may be
anything (a division by zero, the sign of a zero that `fmax` chose), `known` is false, and so is whatever comes from it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .dtypes import BOOL, F16, F32, F64, DType, Refused, of_number, of_width, promote


@dataclass
class Value:
    """A tile in all programs: data[program, ...]."""

    data: np.ndarray
    dtype: DType
    known: np.ndarray | None = None  # None: all of it
    error: np.ndarray | None = None  # how far from `data` a result may be; None: not at all

    def __post_init__(self) -> None:
        assert self.data.dtype == self.dtype.numpy, (self.data.dtype, self.dtype)
        if self.known is not None and self.known.all():
            self.known = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape[1:]

    @property
    def exact(self) -> bool:
        return self.error is None

    @property
    def all_known(self) -> bool:
        return self.known is None and self.error is None


def both(*masks: np.ndarray | None) -> np.ndarray | None:
    """Where all masks are true; None is a mask that is true everywhere."""
    result = None
    for mask in masks:
        if mask is not None:
            result = mask if result is None else result & mask
    return result


def aligned(values: list[Value]) -> list[Value]:
    """The same values with as many dimensions, new ones behind that of the programs."""
    rank = max(len(value.shape) for value in values)

    def wider(array: np.ndarray | None) -> np.ndarray | None:
        if array is None:
            return None
        shape = (array.shape[0], *([1] * (rank + 1 - array.ndim)), *array.shape[1:])
        return array.reshape(shape)

    return [Value(wider(v.data), v.dtype, wider(v.known), wider(v.error)) for v in values]


def of_constant(number: bool | int | float, dtype: DType, programs: int) -> Value:
    """A Python number as a scalar of a dtype."""
    if dtype.is_float:
        data = of_literal(number, dtype)
    else:
        if not dtype.low <= int(number) <= dtype.high:
            raise Refused(f"{number} is no {dtype}")
        data = (
            np.array(int(number)).astype(dtype.numpy) if dtype == BOOL else dtype.numpy.type(number)
        )
    return Value(np.full((programs,), data, dtype.numpy), dtype)


def of_literal(number: int | float, dtype: DType) -> np.generic:
    """A Python number as a float: narrower types come through float32."""
    return np.float64(number) if dtype == F64 else np.float32(number).astype(dtype.numpy)


def sure(value: Value) -> Value:
    """A value that decides something: all of it must be known."""
    if not value.all_known:
        raise Refused("decided by what may be anything")
    return value


# --- Conversions -----------------------------------------------------------------------------------


def _odd(narrow: np.ndarray, wide: np.ndarray) -> np.ndarray:
    """float32 numbers rounded to odd: a second rounding to fewer digits is as one rounding."""
    bits = narrow.view(np.uint32).copy()
    back = narrow.astype(np.longdouble)
    wide = wide.astype(np.longdouble)
    inexact = (back != wide) & np.isfinite(back)
    even = (bits & 1) == 0
    away = np.abs(back) < np.abs(wide)
    step = np.where(away, 1, -1).astype(np.int64)
    moved = (bits.astype(np.int64) + np.where(inexact & even, step, 0)).astype(np.uint32)
    return moved.view(np.float32)


def float_to_float(data: np.ndarray, target: DType) -> np.ndarray:
    if target == F64:
        return data.astype(np.float64)
    if data.dtype == np.float64:
        narrow = data.astype(np.float32)
        return narrow if target == F32 else _odd(narrow, data).astype(target.numpy)
    return data.astype(np.float32).astype(target.numpy)


def int_to_float(data: np.ndarray, target: DType) -> np.ndarray:
    if target == F64:
        return data.astype(np.float64)
    narrow = data.astype(np.float32)
    if target == F32:
        return narrow
    return _odd(narrow, data).astype(target.numpy)


def float_to_int(data: np.ndarray, target: DType) -> np.ndarray:
    """Towards zero, held within the type; NaN is zero."""
    wide = np.trunc(np.nan_to_num(data.astype(np.float64), nan=0.0, posinf=1e300, neginf=-1e300))
    above, below = wide >= float(target.high) + (target.bits < 53), wide <= float(target.low)
    inside = np.where(above | below, 0.0, wide)
    result = inside.astype(np.uint64 if target.kind == "u" else np.int64).astype(target.numpy)
    result = np.where(above, target.numpy.type(target.high), result)
    return np.where(below, target.numpy.type(target.low), result).astype(target.numpy)


def cast(value: Value, target: DType) -> Value:
    """`value.to(dtype)`."""
    source, data = value.dtype, value.data
    if source == target:
        return value
    if not value.exact:
        raise Refused("an inexact value")
    with np.errstate(all="ignore"):
        if target == BOOL:
            result = data != 0
        elif source.is_float and target.is_float:
            result = float_to_float(data, target)
        elif source.is_float:
            result = float_to_int(data, target)
        elif target.is_float:
            result = int_to_float(data, target)
        else:
            result = data.astype(target.numpy)
    return Value(result, target, value.known)


def bitcast(value: Value, target: DType) -> Value:
    if value.dtype.bits != target.bits or BOOL in (value.dtype, target):
        raise Refused("widths differ")
    known = value.known
    if value.dtype.is_float:  # The bits of a NaN are not told.
        known = both(known, ~np.isnan(value.data))
    return Value(value.data.view(target.numpy), target, known)


# --- Operators -------------------------------------------------------------------------------------

Number = bool | int | float
Operand = Value | bool | int | float


def is_number(operand: Operand) -> bool:
    return not isinstance(operand, Value)


def converted(a: Operand, b: Operand, *, division: bool = False) -> tuple[Value, Value, DType]:
    """Both operands in their common dtype and of one rank."""
    programs = (a if isinstance(a, Value) else b).data.shape[0]
    types = [of_number(x) if is_number(x) else x.dtype for x in (a, b)]
    dtype = promote(*types, a_number=is_number(a), b_number=is_number(b), division=division)
    values = []
    for x in (a, b):
        if is_number(x):
            if dtype.kind in "ub" and not dtype.is_float and x < 0:
                raise Refused("a negative number beside an unsigned value")
            values.append(of_constant(x, dtype, programs))
        else:
            values.append(cast(x, dtype))
    x, y = aligned(values)
    return x, y, dtype


def _known(*values: Value) -> np.ndarray | None:
    for value in values:
        if not value.exact:
            raise Refused("an inexact value")
    shape = np.broadcast_shapes(*(value.data.shape for value in values))
    masks = [
        None if value.known is None else np.broadcast_to(value.known, shape) for value in values
    ]
    return both(*masks)


def _float(function: Callable[..., Any], *values: Value) -> np.ndarray:
    """One operation on floats, rounded once: float32 has digits enough for what is narrower."""
    wide = np.float64 if values[0].dtype == F64 else np.float32
    with np.errstate(all="ignore"):
        result = function(*(value.data.astype(wide) for value in values))
        return result.astype(values[0].dtype.numpy)


def _wrapping(function: Callable[..., Any], dtype: DType, *arrays: np.ndarray) -> np.ndarray:
    if dtype == BOOL:
        return (function(*(array.astype(np.uint8) for array in arrays)) & 1).astype(bool)
    with np.errstate(all="ignore"):
        return function(*arrays).astype(dtype.numpy)


def simple(function: Callable[..., Any]) -> Callable[[Operand, Operand], Value]:
    """+, - and *."""

    def operator(a: Operand, b: Operand) -> Value:
        x, y, dtype = converted(a, b)
        if dtype.is_float:
            return Value(_float(function, x, y), dtype, _known(x, y))
        return Value(_wrapping(function, dtype, x.data, y.data), dtype, _known(x, y))

    return operator


def true_divide(a: Operand, b: Operand) -> Value:
    x, y, dtype = converted(a, b, division=True)
    dtype = F64 if dtype == F64 else F32
    x, y = cast(x, dtype), cast(y, dtype)
    return Value(_float(np.divide, x, y), dtype, _known(x, y))


def _quotient(x: np.ndarray, y: np.ndarray, dtype: DType) -> tuple[np.ndarray, np.ndarray]:
    """The quotient towards zero, and where C defines it."""
    if dtype == BOOL:
        return x.copy() & np.ones_like(y), np.broadcast_to(y, np.broadcast_shapes(x.shape, y.shape))
    x, y = np.broadcast_arrays(x, y)
    defined = y != 0
    if dtype.is_signed:
        defined = defined & ~((x == dtype.low) & (y == -1))
    y = np.where(defined, y, dtype.numpy.type(1))
    quotient = x // y
    if dtype.is_signed:
        quotient = quotient + ((quotient * y != x) & ((x < 0) != (y < 0)))
    return quotient.astype(dtype.numpy), defined


def floor_divide(a: Operand, b: Operand) -> Value:
    x, y, dtype = converted(a, b, division=True)
    if dtype.is_float:
        raise Refused("// of floats")
    quotient, defined = _quotient(x.data, y.data, dtype)
    return Value(quotient, dtype, both(_known(x, y), defined))


def remainder(a: Operand, b: Operand) -> Value:
    x, y, dtype = converted(a, b, division=True)
    if dtype.is_float:
        return Value(_float(np.fmod, x, y), dtype, _known(x, y))
    quotient, defined = _quotient(x.data, y.data, dtype)
    if dtype == BOOL:
        return Value(np.zeros_like(quotient), dtype, both(_known(x, y), defined))
    with np.errstate(all="ignore"):
        result = x.data - quotient * y.data
    return Value(result.astype(dtype.numpy), dtype, both(_known(x, y), defined))


def bitwise(function: Callable[..., Any]) -> Callable[[Operand, Operand], Value]:
    """&, | and ^."""

    def operator(a: Operand, b: Operand) -> Value:
        x, y, dtype = converted(a, b)
        if dtype.is_float:
            raise Refused("bits of floats")
        return Value(function(x.data, y.data), dtype, _known(x, y))

    return operator


def _amount(y: Value, dtype: DType) -> np.ndarray:
    """Shift amounts count modulo the width."""
    return (y.data.astype(np.uint8 if dtype == BOOL else dtype.numpy).astype(np.int64)) & (
        dtype.bits - 1
    )


def shift_left(a: Operand, b: Operand) -> Value:
    x, y, dtype = converted(a, b)
    if dtype.is_float:
        raise Refused("bits of floats")
    if dtype == BOOL:
        x, y = aligned([x, y])
        return Value(x.data | np.zeros_like(y.data), dtype, _known(x, y))
    unsigned = of_width(dtype.bits, "u").numpy
    data = x.data.astype(unsigned) << _amount(y, dtype).astype(unsigned)
    return Value(data.astype(dtype.numpy), dtype, _known(x, y))


def shift_right(a: Operand, b: Operand) -> Value:
    """Arithmetic where the operand whose method it is, is signed: the left one, unless that is a number."""
    owner = b if is_number(a) else a
    x, y, dtype = converted(a, b)
    if dtype.is_float:
        raise Refused("bits of floats")
    if dtype == BOOL:
        return Value(x.data | np.zeros_like(y.data), dtype, _known(x, y))
    how = of_width(dtype.bits, "i" if owner.dtype.is_signed else "u").numpy
    data = x.data.astype(how) >> _amount(y, dtype).astype(how)
    return Value(data.astype(dtype.numpy), dtype, _known(x, y))


def comparison(function: Callable[..., Any]) -> Callable[[Operand, Operand], Value]:
    def operator(a: Operand, b: Operand) -> Value:
        x, y, _ = converted(a, b)
        return Value(function(x.data, y.data), BOOL, _known(x, y))

    return operator


def logical(function: Callable[..., Any]) -> Callable[[Operand, Operand], Value]:
    return bitwise(function)


def _extreme(integer: Callable[..., Any], floating: Callable[..., Any]) -> Callable[..., Value]:
    def operator(a: Operand, b: Operand) -> Value:
        x, y, dtype = converted(a, b)
        if not dtype.is_float:
            return Value(integer(x.data, y.data), dtype, _known(x, y))
        result = _float(floating, x, y)
        # Which zero fmin and fmax return is open.
        zeros = (x.data == 0) & (y.data == 0) & (np.signbit(x.data) != np.signbit(y.data))
        return Value(result, dtype, both(_known(x, y), ~zeros))

    return operator


minimum = _extreme(np.minimum, np.fmin)
maximum = _extreme(np.maximum, np.fmax)
minimum_nan = _extreme(np.minimum, np.minimum)
maximum_nan = _extreme(np.maximum, np.maximum)


def where(condition: Value, a: Operand, b: Operand) -> Value:
    if is_number(a) and is_number(b):
        types = [of_number(a), of_number(b)]
        dtype = promote(*types)
        programs = condition.data.shape[0]
        x, y = of_constant(a, dtype, programs), of_constant(b, dtype, programs)
    else:
        x, y, dtype = converted(a, b)
    test, x, y = aligned([cast(condition, BOOL), x, y])
    data = np.where(test.data, x.data, y.data)
    known = test.known
    if x.known is not None or y.known is not None:
        chosen = [np.ones_like(v.data, bool) if v.known is None else v.known for v in (x, y)]
        known = both(
            None if known is None else np.broadcast_to(known, data.shape),
            np.where(test.data, *chosen),
        )
    elif known is not None:
        known = np.broadcast_to(known, data.shape)
    return Value(data.astype(dtype.numpy), dtype, known)


def clamp(x: Value, low: Operand, high: Operand) -> Value:
    """Values and numbers combine apart, so that each number meets the dtype of all values."""
    operands: list[Operand] = [x, low, high]
    dtype = None
    for operand in operands:
        if not is_number(operand):
            dtype = operand.dtype if dtype is None else promote(dtype, operand.dtype)
    numbers = [of_number(n) for n in operands if is_number(n)]
    if numbers:
        joined = numbers[0] if len(numbers) == 1 else promote(*numbers)
        dtype = promote(dtype, joined, b_number=True)
    programs = x.data.shape[0]
    values = []
    for operand in operands:
        if is_number(operand):
            if dtype.kind in "ub" and operand < 0:
                raise Refused("a negative number beside an unsigned value")
            values.append(of_constant(operand, dtype, programs))
        else:
            values.append(cast(operand, dtype))
    a, lo, hi = aligned(values)
    if dtype.is_float:
        if not np.all(lo.data.astype(np.float64) <= hi.data.astype(np.float64)):
            raise Refused("clamp of floats between nothing")
        at_least = maximum(a, lo)
        result = minimum(at_least, hi)
        # A NaN gives either bound.
        return Value(result.data, dtype, both(result.known, ~np.isnan(a.data)))
    return minimum(maximum(a, lo), hi)


def _exact_fma(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """float32 operands: the product is exact in float64; the sum is rounded to odd."""
    with np.errstate(all="ignore"):
        product, z = x.astype(np.float64) * y.astype(np.float64), z.astype(np.float64)
        total = product + z
        back = total - product
        error = (product - (total - back)) + (z - back)
        bits = total.view(np.int64)
        odd = (bits & 1) == 1
        step = np.where((error > 0) == (total > 0), 1, -1)
        move = np.isfinite(total) & (error != 0) & ~odd & np.isfinite(error)
        return np.where(move, bits + step, bits).view(np.float64)


def fma(a: Value, b: Value, c: Value) -> Value:
    dtype = promote(promote(a.dtype, b.dtype), c.dtype)
    if dtype not in (F16, F32):
        raise Refused("fma of another dtype")
    x, y, z = aligned([cast(v, dtype) for v in (a, b, c)])
    x32, y32, z32 = np.broadcast_arrays(*(v.data.astype(np.float32) for v in (x, y, z)))
    with np.errstate(all="ignore"):
        wide = _exact_fma(x32, y32, z32)
        data = wide.astype(np.float32) if dtype == F32 else float_to_float(wide, F16)
    return Value(data, dtype, _known(x, y, z))


def umulhi(a: Operand, b: Operand) -> Value:
    for operand in (a, b):
        if not is_number(operand) and (operand.dtype.is_float or operand.dtype.bits < 32):
            raise Refused("umulhi takes 32 and 64 bits")
    x, y, dtype = converted(a, b)
    if dtype.is_float:
        raise Refused("umulhi takes integers")
    unsigned = of_width(dtype.bits, "u").numpy
    p, q = x.data.astype(unsigned), y.data.astype(unsigned)
    if dtype.bits == 32:
        data = ((p.astype(np.uint64) * q.astype(np.uint64)) >> np.uint64(32)).astype(np.uint32)
    else:
        low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
        with np.errstate(all="ignore"):
            p0, p1, q0, q1 = p & low, p >> half, q & low, q >> half
            mid = p1 * q0 + ((p0 * q0) >> half)
            mid2 = p0 * q1 + (mid & low)
            data = p1 * q1 + (mid >> half) + (mid2 >> half)
    return Value(data.astype(dtype.numpy), dtype, _known(x, y))


# --- One operand -----------------------------------------------------------------------------------


def negate(a: Value) -> Value:
    if a.dtype.is_float:
        return Value(-a.data, a.dtype, _known(a))
    zero = np.zeros_like(a.data)
    return Value(_wrapping(np.subtract, a.dtype, zero, a.data), a.dtype, _known(a))


def invert(a: Value) -> Value:
    if a.dtype.is_float:
        raise Refused("bits of floats")
    return Value(~a.data, a.dtype, _known(a))


def absolute(a: Value) -> Value:
    if a.dtype.kind in "ub":
        return Value(a.data, a.dtype, _known(a))
    with np.errstate(all="ignore"):
        return Value(np.abs(a.data), a.dtype, _known(a))


def exact_function(function: Callable[..., Any]) -> Callable[[Value], Value]:
    """floor, ceil and the correctly rounded square root."""

    def operator(a: Value) -> Value:
        if a.dtype not in (F32, F64):
            raise Refused("takes float32 and float64")
        return Value(_float(function, a), a.dtype, _known(a))

    return operator


def close_function(function: Callable[..., Any], ulps: float, low: float, high: float) -> Any:
    """A function that is within some units in the last place where its argument is in a range."""

    def operator(a: Value) -> Value:
        if a.dtype != F32 or not a.exact:
            raise Refused("takes float32")
        x = a.data.astype(np.float64)
        with np.errstate(all="ignore"):
            inside = (x >= low) & (x <= high)
            result = function(np.where(inside, x, 1.0))
        result = np.asarray(result, np.float64)
        error = ulps * np.maximum(np.abs(result) * 2.0**-23, 2.0**-126)
        # The sign of an exact zero must be right, too.
        return Value(result.astype(np.float32), F32, both(_known(a), inside), error)

    return operator
