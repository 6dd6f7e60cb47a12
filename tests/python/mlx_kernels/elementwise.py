"""Kernels that compute each element by itself: arange, copy, unary, binary and ternary operations."""

from __future__ import annotations

from collections.abc import Iterator

from mlx_kernels.family import FLOATS, INTEGERS, TYPES, WIDE, Family, Instance, instance

ALL = list(TYPES)


def arange() -> Iterator[Instance]:
    for t in [*INTEGERS, *FLOATS]:
        yield instance(f"arange{t}", "arange", TYPES[t])


def strided(prefix: str, name: str, function: str, *arguments: object) -> Iterator[Instance]:
    """Kernels for strided arrays, with 32- and 64-bit indices."""
    for n in (1, 2, 3):
        yield instance(f"{prefix}{n}_{name}", f"{function}_nd{n}", *arguments, "int")
        yield instance(f"{prefix}{n}large_{name}", f"{function}_nd{n}", *arguments)
    yield instance(f"{prefix}n2_{name}", function, *arguments, 2, "int")
    yield instance(f"{prefix}n4large_{name}", function, *arguments, 4)


def copy() -> Iterator[Instance]:
    for source, target in [(a, b) for a in ALL for b in ALL]:
        types = TYPES[source], TYPES[target]
        name = f"copy{source}{target}"
        for kind in ("s", "v"):
            yield instance(f"{kind}_{name}", f"copy_{kind}", *types, 1)
            yield instance(f"{kind}2_{name}", f"copy_{kind}2", *types)
            if target not in WIDE:
                yield instance(f"{kind}n_{name}", f"copy_{kind}", *types)
        yield from strided("g", name, "copy_g", *types)
    for t in ALL:
        yield from strided("gg", f"copy{t}{t}", "copy_gg", TYPES[t], TYPES[t])
        yield from strided("gg", f"dynamic_copy{t}{t}", "copy_gg_dynamic", TYPES[t], TYPES[t])


UNARY_FLOAT = (
    "ArcCos ArcCosh ArcSin ArcSinh ArcTan ArcTanh Cos Cosh Exp Expm1 Log Log2 Log10 Log1p Sigmoid Erf ErfInv Sin Sinh "
    "Sqrt Rsqrt Tan Tanh Round"
).split()
UNARY_ANY = "Abs Ceil Floor Negative Sign Square".split()
UNARY_COMPLEX = (
    "Abs ArcCos ArcSin ArcTan Conjugate Cos Cosh Exp Log Log1p Log2 Log10 Negative Sign Sin Sinh Square Sqrt Rsqrt Tan "
    "Tanh Round"
).split()


def unary_operations() -> Iterator[tuple[str, str, str]]:
    """Operations with the types that they take and give."""
    for op in UNARY_FLOAT:
        yield from ((op, t, t) for t in FLOATS)
    for op in UNARY_ANY:
        yield from ((op, t, t) for t in ["bool_", *INTEGERS, *FLOATS])
    yield from (("BitwiseInvert", t, t) for t in INTEGERS)
    yield from ((op, "complex64", "complex64") for op in UNARY_COMPLEX)
    yield from ((op, "complex64", "float32") for op in ("Real", "Imag"))
    yield ("LogicalNot", "bool_", "bool_")
    for t in FLOATS:
        yield ("ToFP8", t, "uint8")
        yield ("FromFP8", "uint8", t)


def unary() -> Iterator[Instance]:
    for op, source, target in unary_operations():
        name, arguments = f"{op}{source}{target}", (TYPES[source], TYPES[target], op)
        yield instance(f"v_{name}", "unary_v", *arguments, 1)
        yield instance(f"v2_{name}", "unary_v2", *arguments)
        yield instance(f"gn1_{name}", "unary_g", *arguments, 1, "int")
        yield instance(f"gn4large_{name}", "unary_g", *arguments, 4)
        if source not in WIDE:
            yield instance(f"vn_{name}", "unary_v", *arguments)


BINARY_ANY = "Add Divide Maximum Minimum Multiply Subtract Power Remainder".split()
BINARY_BOOL = "Equal Greater GreaterEqual Less LessEqual NotEqual".split()


def binary_operations() -> Iterator[tuple[str, str, str]]:
    for op in BINARY_ANY:
        yield from ((op, t, t) for t in ALL)
    for op in BINARY_BOOL:
        yield from ((op, t, "bool_") for t in ALL)
    yield from (("LogAddExp", t, t) for t in [*FLOATS, "complex64"])
    yield from (("ArcTan2", t, t) for t in FLOATS)
    yield from (("NaNEqual", t, "bool_") for t in [*FLOATS, "complex64"])
    yield from ((op, "bool_", "bool_") for op in ("LogicalOr", "LogicalAnd"))
    for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
        yield from ((op, t, t) for t in [*INTEGERS, "bool_"])
    for op in ("LeftShift", "RightShift"):
        yield from ((op, t, t) for t in INTEGERS)


def binary_kernels(op: str, source: str, target: str) -> Iterator[Instance]:
    name, arguments = f"{op}{source}", (TYPES[source], TYPES[target], op)
    yield instance(f"ss_{name}", "binary_ss", *arguments)
    for kind in ("sv", "vs", "vv"):
        yield instance(f"{kind}_{name}", f"binary_{kind}", *arguments, 1)
        yield instance(f"{kind}2_{name}", f"binary_{kind}2", *arguments)
        if source not in WIDE:
            yield instance(f"{kind}n_{name}", f"binary_{kind}", *arguments)
    yield from strided("g", name, "binary_g", *arguments)


def binary() -> Iterator[Instance]:
    for operation in binary_operations():
        yield from binary_kernels(*operation)


def binary_two() -> Iterator[Instance]:
    for t in ALL:
        yield from binary_kernels("DivMod", t, t)


def ternary() -> Iterator[Instance]:
    for t in ALL:
        name, arguments = f"Select{t}", (TYPES[t], "Select")
        for kind, scalars in (("v", (False, False)), ("vs", (False, True)), ("sv", (True, False))):
            yield instance(f"{kind}_{name}", "ternary_v", *arguments, *scalars, 1)
            yield instance(f"{kind}2_{name}", "ternary_v2", *arguments, *scalars)
            if t not in WIDE:
                yield instance(f"{kind}n_{name}", "ternary_v", *arguments, *scalars)
        yield from strided("g", name, "ternary_g", *arguments)


FAMILIES = [
    Family("arange", ("utils.h", "arange.h"), arange, "arange"),
    Family("copy", ("utils.h", "copy.h"), copy, "copy"),
    Family("unary", ("utils.h", "unary_ops.h", "unary.h"), unary, "unary"),
    Family("binary", ("utils.h", "binary_ops.h", "binary.h"), binary, "binary"),
    Family("binary_two", ("utils.h", "binary_ops.h", "binary_two.h"), binary_two, "binary_two"),
    Family("ternary", ("utils.h", "ternary_ops.h", "ternary.h"), ternary, "ternary"),
]
