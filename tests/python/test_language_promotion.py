"""Every pair of dtypes under every operator gives what stock Triton gives."""

from __future__ import annotations

import pytest

from language_support import (
    OUR_HEADER,
    STOCK_HEADER,
    canonical,
    histogram,
    load_source,
    operations,
    our_ttir,
    stock_ttir,
)

DTYPES = ["i1", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "fp16", "bf16", "fp32"]
OPERATORS = [
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "&",
    "|",
    "^",
    "<<",
    ">>",
    "<",
    "<=",
    ">",
    ">=",
    "==",
    "!=",
]
FUNCTIONS = ["tl.minimum", "tl.maximum"]
NUMBERS = ["True", "0", "2", "-3", "300", "3000000000", "5000000000", "1.5", "1e-300"]

TAIL = """
    tl.store(out, z.to(tl.float32))
"""

BINARY = (
    "".join(
        f"""
@triton.jit
def op_{i}(a, b, out):
    x = tl.load(a)
    y = tl.load(b)
    z = x {op} y{TAIL}"""
        for i, op in enumerate(OPERATORS)
    )
    + "".join(
        f"""
@triton.jit
def op_{i}(a, b, out):
    x = tl.load(a)
    y = tl.load(b)
    z = {function}(x, y){TAIL}"""
        for i, function in enumerate(FUNCTIONS, len(OPERATORS))
    )
    + f"""
@triton.jit
def op_where(a, b, out):
    x = tl.load(a)
    y = tl.load(b)
    z = tl.where(tl.load(out) > 0, x, y){TAIL}
@triton.jit
def op_clamp(a, b, out):
    x = tl.load(a)
    y = tl.load(b)
    z = tl.clamp(x, 0, y){TAIL}
@triton.jit
def op_fma(a, b, out):
    x = tl.load(a)
    y = tl.load(b)
    z = tl.fma(x, y, 2.0){TAIL}
@triton.jit
def op_cast(a, b, out):
    x = tl.load(a)
    tl.store(b, x)
@triton.jit
def op_bitcast(a, b, out):
    x = tl.load(a)
    y = tl.load(b)
    z = x.to(y.dtype, bitcast=True){TAIL}
@triton.jit
def op_umulhi(a, b, out):
    z = tl.umulhi(tl.load(a), tl.load(b)){TAIL}
@triton.jit
def op_fdiv(a, b, out):
    z = tl.fdiv(tl.load(a), tl.load(b)){TAIL}
"""
)

KERNELS = [
    *(f"op_{i}" for i in range(len(OPERATORS) + len(FUNCTIONS))),
    "op_where",
    "op_clamp",
    "op_fma",
    "op_cast",
    "op_bitcast",
    "op_umulhi",
    "op_fdiv",
]

WITH_NUMBER = (
    "".join(
        f"""
@triton.jit
def left_{i}(a, out, NUMBER: tl.constexpr):
    x = tl.load(a)
    z = NUMBER {op} x{TAIL}
@triton.jit
def right_{i}(a, out, NUMBER: tl.constexpr):
    x = tl.load(a)
    z = x {op} NUMBER{TAIL}"""
        for i, op in enumerate(OPERATORS)
    )
    + f"""
@triton.jit
def left_where(a, out, NUMBER: tl.constexpr):
    z = tl.where(tl.load(out) > 0, NUMBER, tl.load(a)){TAIL}
@triton.jit
def right_max(a, out, NUMBER: tl.constexpr):
    z = tl.maximum(tl.load(a), NUMBER){TAIL}
@triton.jit
def stored(a, out, NUMBER: tl.constexpr):
    tl.store(a, NUMBER)
@triton.jit
def masked(a, out, NUMBER: tl.constexpr):
    z = tl.load(a, mask=tl.load(out) > 0, other=NUMBER){TAIL}
"""
)

UNARY = f"""
@triton.jit
def neg(a, out):
    z = -tl.load(a){TAIL}
@triton.jit
def invert(a, out):
    z = ~tl.load(a){TAIL}
@triton.jit
def absolute(a, out):
    z = tl.abs(tl.load(a)){TAIL}
@triton.jit
def exponential(a, out):
    z = tl.exp(tl.load(a)){TAIL}
@triton.jit
def total(a, out):
    z = tl.sum(tl.load(a + tl.arange(0, 16)), 0){TAIL}
@triton.jit
def largest(a, out):
    z = tl.max(tl.load(a + tl.arange(0, 16)), 0){TAIL}
@triton.jit
def add_atomically(a, out):
    tl.atomic_add(a, 1)
@triton.jit
def max_atomically(a, out):
    tl.atomic_max(a, tl.load(a))
"""


@pytest.fixture(scope="module")
def modules(tmp_path_factory):
    directory = tmp_path_factory.mktemp("promotion")
    source = BINARY + WITH_NUMBER + UNARY
    return (
        load_source(directory, source, STOCK_HEADER),
        load_source(directory, source, OUR_HEADER),
    )


def outcome(generate, kernel, signature, constexprs):
    """The operations, or that the kernel is refused."""
    try:
        return operations(generate(kernel, signature, constexprs))
    except Exception as error:
        return f"refused ({type(error).__name__})", str(error)


def check(modules, name, signature, constexprs=None):
    stock, ours = modules
    theirs = outcome(stock_ttir, getattr(stock, name), signature, constexprs or {})
    mine = outcome(our_ttir, getattr(ours, name), signature, constexprs or {})
    if isinstance(theirs, tuple):
        assert isinstance(mine, tuple), f"stock refuses {name} {signature}: {theirs[1]}"
    else:
        assert isinstance(mine, list), f"{name} {signature} is refused: {mine[1]}"
        assert mine == theirs, f"{name} {signature} {constexprs}"


def check_canonical(modules, name, signature, constexprs=None):
    stock, ours = modules
    mine = canonical(our_ttir(getattr(ours, name), signature, constexprs or {}))
    theirs = canonical(stock_ttir(getattr(stock, name), signature, constexprs or {}))
    assert histogram(mine) == histogram(theirs)


@pytest.mark.parametrize("a", DTYPES)
@pytest.mark.parametrize("b", DTYPES)
def test_two_values(modules, a, b):
    for name in KERNELS:
        check(modules, name, {"a": f"*{a}", "b": f"*{b}", "out": "*fp32"})


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_value_and_number(modules, dtype, number):
    for name in dir(modules[1]):
        if name.startswith(("left_", "right_")):
            check(modules, name, {"a": f"*{dtype}", "out": "*fp32"}, {"NUMBER": eval(number)})


@pytest.mark.parametrize("name", ["stored", "masked"])
@pytest.mark.parametrize("number", [True, 0, 1, -3, 300, 3000000000, 0.125, -2.5])
@pytest.mark.parametrize("dtype", DTYPES)
def test_number_in_memory(modules, dtype, number, name):
    check_canonical(modules, name, {"a": f"*{dtype}", "out": "*fp32"}, {"NUMBER": number})


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "name",
    [
        "neg",
        "invert",
        "absolute",
        "exponential",
        "total",
        "largest",
        "add_atomically",
        "max_atomically",
    ],
)
def test_one_value(modules, name, dtype):
    if name in ("total", "largest", "max_atomically") and not (
        name == "max_atomically" and dtype != "fp32"
    ):
        # Reductions call functions that are named by their module; bits are taken once, not twice.
        check_canonical(modules, name, {"a": f"*{dtype}", "out": "*fp32"})
    else:
        check(modules, name, {"a": f"*{dtype}", "out": "*fp32"})
