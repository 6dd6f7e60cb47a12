"""Operators and functions of tiles and numbers, of every pair of dtypes."""

from __future__ import annotations

import operator

import numpy as np

from .. import arithmetic as m
from ..arithmetic import Value
from ..dtypes import ALL, BOOL, F16, F32, F64, FLOATS, I32, I64, Refused
from ..machine import Machine
from ..program import Op, Program, Tile
from ..values import FLOAT_EDGES, integer_edges, number

BINARY = {
    "{} + {}": m.simple(np.add),
    "{} - {}": m.simple(np.subtract),
    "{} * {}": m.simple(np.multiply),
    "{} / {}": m.true_divide,
    "{} // {}": m.floor_divide,
    "{} % {}": m.remainder,
    "{} & {}": m.bitwise(np.bitwise_and),
    "{} | {}": m.bitwise(np.bitwise_or),
    "{} ^ {}": m.bitwise(np.bitwise_xor),
    "{} << {}": m.shift_left,
    "{} >> {}": m.shift_right,
    "{} < {}": m.comparison(operator.lt),
    "{} <= {}": m.comparison(operator.le),
    "{} > {}": m.comparison(operator.gt),
    "{} >= {}": m.comparison(operator.ge),
    "{} == {}": m.comparison(operator.eq),
    "{} != {}": m.comparison(operator.ne),
    "tl.minimum({}, {})": m.minimum,
    "tl.maximum({}, {})": m.maximum,
    "tl.minimum({}, {}, propagate_nan=tl.PropagateNan.ALL)": m.minimum_nan,
    "tl.maximum({}, {}, propagate_nan=tl.PropagateNan.ALL)": m.maximum_nan,
    "tl.umulhi({}, {})": m.umulhi,
}
WIDE = ("{} // {}", "{} % {}", "{} >> {}", "{} << {}", "tl.maximum({}, {})", "tl.minimum({}, {})")


def meets(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """Whether two shapes broadcast to one that is not too large."""
    try:
        shape = np.broadcast_shapes(a, b)
    except ValueError:
        return False
    return int(np.prod(shape)) <= 4096


def binary(program: Program) -> None:
    rng = program.rng
    a = program.pick(unknown=True)
    text = rng.choice(list(BINARY) + [t for t in WIDE if a.dtype.is_int])
    function = BINARY[text]
    if rng.random() < 0.4:
        constant = literal(program, a, text)
        if rng.random() < 0.25:
            program.compute(
                text.format(repr_of(constant), "{0}"), lambda x: function(constant, x), a
            )
        else:
            program.compute(
                text.format("{0}", repr_of(constant)), lambda x: function(x, constant), a
            )
        return
    division = "/" in text or "%" in text
    b = program.pick(
        lambda t: (
            meets(a.shape, t.shape)
            and (
                not division
                or t.dtype.is_float
                or a.dtype.is_float
                or t.dtype.is_signed == a.dtype.is_signed
            )
        ),
        unknown=True,
    )
    program.compute(text.format("{0}", "{1}"), function, a, b)


def repr_of(value: float) -> str:
    if isinstance(value, float) and not np.isfinite(value):
        return f"float('{value}')"
    return repr(value)


def literal(program: Program, tile: Tile, text: str) -> bool | int | float:
    """A number to stand beside a tile."""
    rng, dtype = program.rng, tile.dtype
    if "<<" in text or ">>" in text:
        width = dtype.bits
        most = dtype.high if dtype.is_int else 0
        return rng.choice(
            [n for n in (0, 1, 3, width - 1, width, width + 1, 31, 32, 33, 40, 63, 64) if n <= most]
            or [0]
        )
    value = number(rng, dtype)
    if dtype.is_int and rng.random() < 0.06:
        return rng.choice([0.5, -1.5, 3.0, 1e10])  # floats beside integers
    if dtype == BOOL and rng.random() < 0.4:
        return rng.choice([0, 1, 2, -3, 300, 2**31, 5_000_000_000])
    return value


def unary(program: Program) -> None:
    kinds = {
        "-{0}": m.negate,
        "~{0}": m.invert,
        "tl.abs({0})": m.absolute,
        "tl.floor({0})": m.exact_function(np.floor),
        "tl.ceil({0})": m.exact_function(np.ceil),
        "tl.sqrt_rn({0})": m.exact_function(np.sqrt),
        "tl.sqrt({0})": m.exact_function(np.sqrt),
    }
    text = program.rng.choice(list(kinds))
    if text.startswith(("tl.floor", "tl.ceil", "tl.sqrt")):
        # The square root of float32 is only close without `_rn`, which float64 does not have.
        allowed = {"tl.sqrt_rn({0})": (F32,), "tl.sqrt({0})": (F64,)}.get(text, (F32, F64))
        a = program.pick(lambda t: t.dtype in allowed, unknown=True)
    else:
        a = program.pick(lambda t: not (text[0] == "~" and t.dtype.is_float), unknown=True)
    program.compute(text, kinds[text], a)


def convert(program: Program) -> None:
    a = program.pick(unknown=True)
    rng = program.rng
    target = rng.choice(program.palette or ALL) if rng.random() < 0.6 else rng.choice(ALL)
    if rng.random() < 0.2 and target.bits == a.dtype.bits and BOOL not in (target, a.dtype):
        program.compute(f"{{0}}.to({target.text}, bitcast=True)", lambda x: m.bitcast(x, target), a)
        return
    program.compute(f"{{0}}.to({target.text})", lambda x: m.cast(x, target), a)


def bits(program: Program) -> None:
    """The bits of a tile as another dtype of its width."""
    rng = program.rng
    a = program.pick(lambda t: t.dtype != BOOL, unknown=True)
    target = rng.choice([d for d in ALL if d.bits == a.dtype.bits and d != a.dtype])
    program.compute(f"{{0}}.to({target.text}, bitcast=True)", lambda x: m.bitcast(x, target), a)


def select(program: Program) -> None:
    rng = program.rng
    a = program.pick(unknown=True)
    test = (
        program.pick(lambda t: meets(t.shape, a.shape) and t.dtype == BOOL)
        if rng.random() < 0.7
        else None
    )
    if test is None:
        other = program.pick(lambda t: meets(t.shape, a.shape) and t.dtype.is_int)
        test = program.compute(
            "{0} % 2 == 0",
            lambda x: m.comparison(operator.eq)(m.remainder(x, 2), 0),
            other,
        )
    if rng.random() < 0.3:
        constant = number(rng, a.dtype)
        program.compute(
            f"tl.where({{0}}, {{1}}, {repr_of(constant)})",
            lambda t, x: m.where(t, x, constant),
            test,
            a,
        )
        return
    shape = np.broadcast_shapes(test.shape, a.shape)
    b = program.pick(lambda t: meets(t.shape, shape), unknown=True)
    program.compute("tl.where({0}, {1}, {2})", m.where, test, a, b)


def clamp(program: Program) -> None:
    rng = program.rng
    a = program.pick(unknown=True)
    numbers = sorted((number(rng, a.dtype) for _ in range(2)), key=float)
    if a.dtype == BOOL:
        raise Refused("clamp of bool")
    if rng.random() < 0.6:
        low, high = numbers
        program.compute(
            f"tl.clamp({{0}}, {repr_of(low)}, {repr_of(high)})", lambda x: m.clamp(x, low, high), a
        )
        return
    b = program.pick(lambda t: meets(t.shape, a.shape) and t.dtype != BOOL, unknown=True)
    high = numbers[1]
    program.compute(
        f"tl.clamp({{0}}, {{1}}, {repr_of(high)})", lambda x, y: m.clamp(x, y, high), a, b
    )


def multiply_add(program: Program) -> None:
    a = program.pick(lambda t: t.dtype in (F16, F32), unknown=True)
    b = program.pick(lambda t: t.dtype in (F16, F32) and meets(t.shape, a.shape), unknown=True)
    shape = np.broadcast_shapes(a.shape, b.shape)
    c = program.pick(lambda t: t.dtype in (F16, F32) and meets(t.shape, shape), unknown=True)
    program.compute("tl.fma({0}, {1}, {2})", m.fma, a, b, c)


def divide_exactly(program: Program) -> None:
    a = program.pick(lambda t: t.dtype == F32, unknown=True)
    b = program.pick(lambda t: t.dtype == F32 and meets(t.shape, a.shape), unknown=True)
    text = program.rng.choice(["tl.div_rn({0}, {1})", "tl.fdiv({0}, {1})"])
    program.compute(text, m.true_divide, a, b)


def _erf(x: np.ndarray) -> np.ndarray:
    from scipy.special import erf

    return erf(x)


# The accuracy of Metal's precise functions, doubled; the ranges leave out where a result is subnormal or infinite.
CLOSE = {
    "tl.exp({0})": (np.exp, 8, -80.0, 80.0),
    "tl.exp2({0})": (np.exp2, 8, -120.0, 120.0),
    "tl.log({0})": (np.log, 8, 2.0**-120, 1e38),
    "tl.log2({0})": (np.log2, 8, 2.0**-120, 1e38),
    "tl.sin({0})": (np.sin, 8, -100.0, 100.0),
    "tl.cos({0})": (np.cos, 8, -100.0, 100.0),
    "tl.sqrt({0})": (np.sqrt, 2, 2.0**-120, 1e38),
    "tl.rsqrt({0})": (lambda x: 1 / np.sqrt(x), 4, 2.0**-120, 1e38),
    "tl.erf({0})": (_erf, 16, -10.0, 10.0),
}


def function(program: Program) -> None:
    """A function whose result is only close: it is stored, and nothing comes from it."""
    a = program.pick(lambda t: t.dtype == F32, unknown=True)
    text = program.rng.choice(list(CLOSE))
    program.compute(text, m.close_function(*CLOSE[text]), a)


def arange(program: Program) -> None:
    rng = program.rng
    shape = rng.choice([s for s in program.shapes if s] or [(8,)])
    size = rng.choice([*shape, 32])
    start = rng.choice([0, 0, 0, 1, 5, 32, 100])
    data = np.arange(start, start + size, dtype=np.int32)
    value = np.broadcast_to(data, (program.config.programs, size)).copy()
    program.compute(f"tl.arange({start}, {start + size})", lambda: Value(value, I32))


def constant(program: Program) -> None:
    """A tile filled with a number, or with a scalar."""
    rng = program.rng
    shape = rng.choice([s for s in program.shapes if s] or [(8,)])
    dtype = rng.choice(program.palette or ALL)
    if rng.random() < 0.4:
        scalar = program.pick(lambda t: t.shape == (), unknown=True)

        def filled(x: Value) -> Value:
            value = m.cast(x, dtype)
            size = (x.data.shape[0], *([1] * len(shape)))
            known = (
                None
                if value.known is None
                else np.broadcast_to(value.known.reshape(size), (x.data.shape[0], *shape))
            )
            return Value(
                np.broadcast_to(value.data.reshape(size), (x.data.shape[0], *shape)).copy(),
                dtype,
                known,
            )

        program.compute(f"tl.full({shape}, {{0}}, {dtype.text})", filled, scalar)
        return
    if dtype.is_float:
        value = rng.choice([0.0, -0.0, 1.5, -1.5, 300.0, 1e20, float("inf"), 3, -7])
        data = m.of_literal(value, dtype)
    else:
        value = rng.choice([True, False]) if dtype == BOOL else rng.choice(integer_edges(dtype))
        data = np.array(value, dtype.numpy)
    full = np.full((program.config.programs, *shape), data, dtype.numpy)
    if rng.random() < 0.15 and not dtype.is_float and dtype != BOOL and value == 0:
        text = f"tl.zeros({shape}, {dtype.text})"
    else:
        text = f"tl.full({shape}, {repr_of(value)}, {dtype.text})"
    tile = program.compute(text, lambda: Value(full, dtype))
    if rng.random() < 0.7:  # Constants are folded: with one another, and through conversions.
        target = rng.choice(ALL)
        program.compute(f"{{0}}.to({target.text})", lambda x: m.cast(x, target), tile)


def float_constant(program: Program) -> None:
    """A float that no integer has, as an integer."""
    rng = program.rng
    shape = rng.choice([s for s in program.shapes if s] or [(8,)])
    dtype, target = rng.choice(FLOATS), rng.choice([d for d in ALL if d.is_int])
    value = rng.choice(FLOAT_EDGES)
    data = m.of_literal(value, dtype)
    full = np.full((program.config.programs, *shape), data, dtype.numpy)
    program.compute(
        f"tl.full({shape}, {repr_of(value)}, {dtype.text}).to({target.text})",
        lambda: m.cast(Value(full, dtype), target),
    )


def scalar(program: Program) -> None:
    """A number that the launch passes, or that is a constant of the kernel."""
    rng = program.rng
    if program.pure:
        raise Refused("no arguments here")
    if rng.random() < 0.25:
        value: int | float = rng.choice([0.5, -1.5, 3.0, -0.0, 1e10, float("inf")])
        dtype = F32
    else:
        value = rng.choice([0, 1, 2, 3, 5, 7, 16, 32, 64, -1, -16, *integer_edges(I64)])
        dtype = next(d for d in (I32, I64) if d.low <= value <= d.high)
    argument = program.argument(number=value)
    data = np.full((program.config.programs,), value, dtype.numpy)
    tile = program.tile((), dtype)
    name = argument.name
    # The launch may make a constant of the number 1, which then is no tile.
    line = f"{tile.name} = tl.to_tensor({name})"

    def run(machine: Machine) -> None:
        machine.values[tile.id] = Value(data, dtype)

    program.emit(Op(lambda: [line], run))
    program.visible.append(tile)


def constexpr(program: Program) -> None:
    """A constexpr argument beside a tile."""
    if program.pure:
        raise Refused("no arguments here")
    a = program.pick(unknown=True)
    text = program.rng.choice(list(BINARY))
    value = literal(program, a, text)
    if isinstance(value, float) and not np.isfinite(value):
        raise Refused("not as an argument")
    function = BINARY[text]
    argument = program.argument(number=value, annotation="tl.constexpr")
    program.compute(text.format("{0}", argument.name), lambda x: function(x, value), a)
