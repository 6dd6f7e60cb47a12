"""Mathematical functions, element by element."""

from __future__ import annotations

from .._native import MathOp
from . import core
from .core import builtin, tensor_method, unwrap

exp = core._math_function("exp", MathOp.exp, "e to the power of x.")
exp2 = core._math_function("exp2", MathOp.exp2, "2 to the power of x.")
log = core._math_function("log", MathOp.log, "The natural logarithm.")
log2 = core._math_function("log2", MathOp.log2, "The logarithm to base 2.")
sin = core._math_function("sin", MathOp.sin, "The sine.")
cos = core._math_function("cos", MathOp.cos, "The cosine.")
sqrt = core._math_function("sqrt", MathOp.sqrt, "The square root, fast.")
sqrt_rn = core._math_function("sqrt_rn", MathOp.sqrt_rn, "The square root, rounded to nearest.")
rsqrt = core._math_function("rsqrt", MathOp.rsqrt, "One over the square root.")
erf = core._math_function("erf", MathOp.erf, "The error function.")
floor = core._math_function("floor", MathOp.floor, "The largest integer that is not above x.")
ceil = core._math_function("ceil", MathOp.ceil, "The smallest integer that is not below x.")


@tensor_method
@builtin
def abs(x):
    """The absolute value."""
    return core._b().abs(unwrap(x))


@builtin
def fdiv(x, y, ieee_rounding=False):
    """x / y in floating point; with ``ieee_rounding`` rounded to nearest."""
    return core._b().fdiv(unwrap(x), unwrap(y), bool(core._static("ieee_rounding", ieee_rounding)))


@builtin
def div_rn(x, y):
    """x / y, rounded to nearest."""
    return core._b().div_rn(unwrap(x), unwrap(y))


@builtin
def umulhi(x, y):
    """The upper half of the product of unsigned integers."""
    return core._b().umulhi(unwrap(x), unwrap(y))


@builtin
def fma(x, y, z):
    """x * y + z with one rounding."""
    return core._b().fma(unwrap(x), unwrap(y), unwrap(z))
