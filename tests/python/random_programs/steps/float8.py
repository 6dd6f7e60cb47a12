"""Floats of 8 bits: what conversions to them and back make of numbers, their bits, and dots of them."""

from __future__ import annotations

import numpy as np

from float8_model import FORMATS, Format

from ..arithmetic import Value, both
from ..dtypes import F16, F32, FLOATS, I8, U8, DType, Refused
from ..program import Program
from .dots import operand, product

ROUNDINGS = {
    "": "rtne",
    ", fp_downcast_rounding='rtne'": "rtne",
    ", fp_downcast_rounding='rtz'": "rtz",
}


def known_numbers(value: Value) -> np.ndarray:
    """Where a result is told: not for a NaN, whose bits and sign may be any."""
    if not value.exact:
        raise Refused("an inexact value")
    numbers = ~np.isnan(value.data.astype(np.float64))
    return numbers if value.known is None else both(value.known, numbers)


def encoded(value: Value, format: Format, rounding: str) -> Value:
    known = known_numbers(value)
    with np.errstate(all="ignore"):
        codes = format.encode(value.data.astype(np.float64), rounding)
    return Value(codes, U8, known)


def decoded(codes: Value, format: Format, target: DType) -> Value:
    """All three types of floats hold each of these numbers."""
    numbers = format.values()[codes.data.view(np.uint8)]
    return Value(numbers.astype(target.numpy), target, codes.known)


def rounded(program: Program) -> None:
    """To 8 bits and back."""
    rng = program.rng
    a = program.pick(lambda t: t.dtype.is_float, unknown=True)
    format, text = FORMATS[rng.choice(list(FORMATS))], rng.choice(list(ROUNDINGS))
    target = rng.choice(FLOATS)
    program.compute(
        f"{{0}}.to(tl.{format.name}{text}).to({target.text})",
        lambda x: decoded(encoded(x, format, ROUNDINGS[text]), format, target),
        a,
    )


def bits(program: Program) -> None:
    """The code of a number."""
    rng = program.rng
    a = program.pick(lambda t: t.dtype.is_float, unknown=True)
    format, text = FORMATS[rng.choice(list(FORMATS))], rng.choice(list(ROUNDINGS))
    program.compute(
        f"{{0}}.to(tl.{format.name}{text}).to(tl.uint8, bitcast=True)",
        lambda x: encoded(x, format, ROUNDINGS[text]),
        a,
    )


def codes(program: Program) -> None:
    """The number of a code."""
    rng = program.rng
    a = program.pick(lambda t: t.dtype in (I8, U8), unknown=True)
    format, target = FORMATS[rng.choice(list(FORMATS))], rng.choice(FLOATS)
    program.compute(
        f"{{0}}.to(tl.{format.name}, bitcast=True).to({target.text})",
        lambda x: decoded(x, format, target),
        a,
    )


def dot(program: Program) -> None:
    """A dot of whole numbers, rounded to 8 bits."""
    rng = program.rng
    m, n, k = (rng.choice([1, 4, 8, 16, 32]) for _ in range(3))
    dtype = rng.choice([F16, F32])
    a, b = operand(program, dtype, (m, k)), operand(program, dtype, (k, n))
    # The numbers of the format without large ones are no whole numbers.
    names = [name for name in FORMATS if name != "float8e4b15"]
    left, right = FORMATS[rng.choice(names)], FORMATS[rng.choice(names)]

    def multiply(x: Value, y: Value) -> Value:
        return product(
            decoded(encoded(x, left, "rtne"), left, F32),
            decoded(encoded(y, right, "rtne"), right, F32),
            None,
            F32,
        )

    program.compute(f"tl.dot({{0}}.to(tl.{left.name}), {{1}}.to(tl.{right.name}))", multiply, a, b)
