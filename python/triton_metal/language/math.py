"""Elementwise mathematical functions."""

from __future__ import annotations

from .._native import MathOp
from . import core
from .building import builder, builtin, read_static, tensor_method
from .core import unwrap

exp = core.math_function("exp", MathOp.exp, "e to the power of x.")
exp2 = core.math_function("exp2", MathOp.exp2, "2 to the power of x.")
log = core.math_function("log", MathOp.log, "The natural logarithm.")
log2 = core.math_function("log2", MathOp.log2, "The logarithm to base 2.")
sin = core.math_function("sin", MathOp.sin, "The sine.")
cos = core.math_function("cos", MathOp.cos, "The cosine.")
sqrt = core.math_function("sqrt", MathOp.sqrt, "The square root, fast.")
sqrt_rn = core.math_function("sqrt_rn", MathOp.sqrt_rn, "The square root, rounded to nearest.")
rsqrt = core.math_function("rsqrt", MathOp.rsqrt, "One over the square root.")
erf = core.math_function("erf", MathOp.erf, "The error function.")
floor = core.math_function("floor", MathOp.floor, "The largest integer that is not above x.")
ceil = core.math_function("ceil", MathOp.ceil, "The smallest integer that is not below x.")


@tensor_method
@builtin
def abs(x):
    """The absolute value."""
    return builder().abs(unwrap(x))


@builtin
def fdiv(x, y, ieee_rounding=False):
    """x / y in floating point; with ``ieee_rounding`` rounded to nearest."""
    return builder().fdiv(unwrap(x), unwrap(y), bool(read_static("ieee_rounding", ieee_rounding)))


@builtin
def div_rn(x, y):
    """x / y, rounded to nearest."""
    return builder().div_rn(unwrap(x), unwrap(y))


@builtin
def umulhi(x, y):
    """The upper half of the product of unsigned integers."""
    return builder().umulhi(unwrap(x), unwrap(y))


@builtin
def fma(x, y, z):
    """x * y + z with one rounding."""
    return builder().fma(unwrap(x), unwrap(y), unwrap(z))
