"""The bounds of docs/arithmetic.md, and kernels that compute each function of many floats."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import triton_metal
import triton_metal.language as tl

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]

SMALLEST = 2.0**-126
"""The smallest float that is not subnormal."""
LARGEST = float(np.finfo(np.float32).max)
FAR = 131072.0
"""Where the sine and the cosine become Metal's precise ones."""


@triton_metal.jit
def apply(y, x, NAME: tl.constexpr, BLOCK: tl.constexpr):
    """Stores a function of each element."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i)
    tl.store(y + i, getattr(tl, NAME)(value))


@triton_metal.jit
def apply_beside(y, x, NAME: tl.constexpr, OTHER: tl.constexpr, BLOCK: tl.constexpr):
    """Stores a function of each element, if another one of it is a number."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i)
    result, other = getattr(tl, NAME)(value), getattr(tl, OTHER)(value)
    tl.store(y + i, tl.where(other == other, result, other))


@triton_metal.jit
def divide(q, x, y, BLOCK: tl.constexpr):
    """Stores the quotient of each pair."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(q + i, tl.load(x + i) / tl.load(y + i))


@triton_metal.jit
def divide_rows(q, x, s, COLUMNS: tl.constexpr):
    """Stores rows that are divided by one number each."""
    row = tl.program_id(0)
    i = row * COLUMNS + tl.arange(0, COLUMNS)
    tl.store(q + i, tl.load(x + i) / tl.load(s + row))


def ulp(exact: Doubles) -> Doubles:
    """The unit in the last place of float32 for a real number, as Metal's specification defines it."""
    _, exponent = np.frexp(np.abs(exact))
    return np.ldexp(1.0, np.maximum(exponent, -125) - 24)


def trigonometric(x: Doubles, exact: Doubles) -> Doubles:
    return np.where(np.abs(x) <= FAR, 2.0**-22, 4 * ulp(exact))


@dataclass(frozen=True)
class Bound:
    """What a function may give for a float."""

    exact: Callable[[Doubles], Doubles]
    """The function, precise enough in float64."""
    error: Callable[[Doubles, Doubles], Doubles]
    """The largest error for an operand and its exact result."""


def in_ulps(ulps: float) -> Callable[[Doubles, Doubles], Doubles]:
    """A bound in units in the last place."""
    return lambda x, exact: ulps * ulp(exact)


def exponential(x: Doubles, exact: Doubles) -> Doubles:
    return (3 + np.floor(np.abs(2 * x))) * ulp(exact)


BOUNDS = {
    "exp": Bound(np.exp, exponential),
    "exp2": Bound(np.exp2, exponential),
    "log": Bound(np.log, in_ulps(1)),
    "log2": Bound(np.log2, in_ulps(2)),
    "sin": Bound(np.sin, trigonometric),
    "cos": Bound(np.cos, trigonometric),
    "sin beside cos": Bound(np.sin, trigonometric),
    "cos beside sin": Bound(np.cos, trigonometric),
    "sqrt": Bound(np.sqrt, in_ulps(4.5)),
    "rsqrt": Bound(lambda x: 1 / np.sqrt(x), in_ulps(2)),
}

PRECISE = {
    name: Bound(bound.exact, in_ulps({"sqrt": 0.5, "rsqrt": 1.5}.get(name, 4)))
    for name, bound in BOUNDS.items()
}
"""With ``precise_math``: Metal's table without fast math, in which rsqrt is the nearest float. That of the host device rounds
twice."""


def outside(y: Floats, exact: Doubles, error: Doubles) -> npt.NDArray[np.bool_]:
    """Which results are neither within an error of the exact ones, nor special values that are due."""
    got = y.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        wrong = ~(np.abs(got - exact) <= error)
        wrong &= ~((got == exact) | (np.isnan(got) & np.isnan(exact)))
        # A result that is subnormal may be 0, and one past the largest float is infinite.
        wrong &= ~((np.abs(exact) < SMALLEST + error) & (got == 0))
        too_large = np.abs(exact) + np.where(np.isfinite(error), error, 0) > LARGEST
        wrong &= ~(too_large & (got == np.copysign(np.inf, exact)))
    return wrong


def violations(bound: Bound, x: Floats, y: Floats) -> npt.NDArray[np.intp]:
    """The places where results break a bound. Operands that are subnormal may count as 0."""
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
        exact = bound.exact(wide)
        wrong = outside(y, exact, bound.error(wide, exact))
        tiny = wrong & (np.abs(wide) < SMALLEST)
        if tiny.any():
            zero = np.copysign(0.0, wide[tiny])
            exact = bound.exact(zero)
            wrong[tiny] = outside(y[tiny], exact, bound.error(zero, exact))
    return np.flatnonzero(wrong)


def largest_error(bound: Bound, x: Floats, y: Floats) -> float:
    """The largest error in units in the last place among finite results that are not subnormal."""
    with np.errstate(all="ignore"):
        exact = bound.exact(x.astype(np.float64))
        errors = np.abs(y - exact) / ulp(exact)
        usual = np.isfinite(errors) & (np.abs(exact) >= SMALLEST) & (np.abs(x) >= SMALLEST)
    return float(errors[usual].max(initial=0.0))


def computed(name: str, x: Floats, **options: bool) -> Floats:
    """A function of floats, whose number is a multiple of 1024."""
    y, grid = np.empty_like(x), (x.size // 1024,)
    if " beside " in name:
        apply_beside[grid](y, x, *name.split(" beside "), BLOCK=1024, **options)
    else:
        apply[grid](y, x, name, BLOCK=1024, **options)
    return y


SPECIAL = np.array(
    [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, SMALLEST, LARGEST, -LARGEST]
    + [0.5, 2.0, np.pi, np.pi / 2, FAR, FAR * 1.001, 88.7, -87.3, -104.0, 127.99, -126.0, -150.0],
    np.float32,
)


def sample(seed: int = 0) -> Floats:
    """Special values, and floats of every exponent and both signs."""
    generator = np.random.default_rng(seed)
    bits = np.repeat(np.arange(512, dtype=np.uint32) << 23, 128)
    bits |= generator.integers(0, 1 << 23, bits.size, dtype=np.uint32)
    edges = np.arange(512, dtype=np.uint32) << 23
    near = np.array([0, 1, 0x7FFFFF], np.uint32)
    edges = (edges[:, None] | near).ravel()
    usual = generator.uniform(-20, 20, 65536).astype(np.float32)
    x = np.concatenate([bits.view(np.float32), edges.view(np.float32), usual, SPECIAL])
    return np.resize(x, -(-x.size // 1024) * 1024)
