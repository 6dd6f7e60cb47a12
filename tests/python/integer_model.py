"""Integers as the language means them, in Python's exact ones: what wraps, divides, shifts and converts to what."""

from __future__ import annotations

import numpy as np

NAMES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


def bits_of(name: str) -> int:
    return 1 if name == "int1" else np.iinfo(name).bits


def is_signed(name: str) -> bool:
    return name.startswith("int") and name != "int1"


def wrap(name: str, value: int) -> int:
    """The number of that type that is congruent to the value."""
    bits = bits_of(name)
    value &= (1 << bits) - 1
    return value - (1 << bits) if is_signed(name) and value >> (bits - 1) else value


def divide(name: str, a: int, b: int) -> tuple[int, int]:
    """Quotient and remainder, towards zero; a division by zero is one by 1, and the least number by -1 wraps."""
    b = b or 1
    quotient = abs(a) // abs(b)
    quotient = wrap(name, -quotient if (a < 0) != (b < 0) else quotient)
    return quotient, wrap(name, a - quotient * b)


def binary(name: str, op: str, a: int, b: int) -> int:
    """One operation on two numbers of a type; a comparison gives 0 or 1."""
    bits = bits_of(name)
    mask = (1 << bits) - 1
    match op:
        case "+":
            return wrap(name, a + b)
        case "-":
            return wrap(name, a - b)
        case "*":
            return wrap(name, a * b)
        case "//":
            return divide(name, a, b)[0]
        case "%":
            return divide(name, a, b)[1]
        case "&":
            return wrap(name, a & b)
        case "|":
            return wrap(name, a | b)
        case "^":
            return wrap(name, a ^ b)
        case "<<":
            return wrap(name, a << (b & (bits - 1)))
        case ">>":
            return wrap(name, a >> (b & (bits - 1)))
        case "minimum":
            return min(a, b)
        case "maximum":
            return max(a, b)
        case "umulhi":
            return wrap(name, ((a & mask) * (b & mask)) >> bits)
        case "<":
            return int(a < b)
        case "<=":
            return int(a <= b)
        case ">":
            return int(a > b)
        case ">=":
            return int(a >= b)
        case "==":
            return int(a == b)
        case "!=":
            return int(a != b)
    raise AssertionError(op)


def unary(name: str, op: str, a: int) -> int:
    match op:
        case "-":
            return wrap(name, -a)
        case "~":
            return wrap(name, ~a)
        case "abs":
            return wrap(name, abs(a))
    raise AssertionError(op)


def edges(name: str) -> list[int]:
    """Numbers of a type near the edges of every type."""
    info = np.iinfo(name)
    near = {
        sign * (1 << shift) + nudge
        for shift in (0, 3, 7, 8, 15, 16, 31, 32, 63, 64)
        for sign in (-1, 1)
        for nudge in (-1, 0, 1)
    }
    near |= {0, 5, 7, 3_000_000_000, 1_000_003, -1_000_003}
    return sorted(value for value in near if info.min <= value <= info.max)
