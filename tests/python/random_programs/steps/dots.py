"""Matrix products: operands that are used twice, transposed, scaled, reduced, and in loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import arithmetic as m
from ..arithmetic import Value
from ..dtypes import BF16, F16, F32, I8, I32, DType, Refused
from ..machine import Machine
from ..program import Op, Program, Tile, lines_of
from .memory import new_array
from .reductions import check_whole, extreme, total

PRECISIONS = [
    "",
    "",
    ", input_precision='ieee'",
    ", input_precision='tf32'",
    ", input_precision='tf32x3'",
]


def product(a: Value, b: Value, acc: Value | None, out: DType) -> Value:
    """a @ b + acc, which must be exact in any order of adding."""
    for value in (a, b, *([acc] if acc else [])):
        if not value.all_known:
            raise Refused("an unknown operand")
    x, y = a.data.astype(np.float64), b.data.astype(np.float64)
    result = np.matmul(x, y)
    if acc is not None:
        result = result + acc.data.astype(np.float64)
    if out.is_float:
        sizes = np.matmul(np.abs(x), np.abs(y)) + (
            0 if acc is None else np.abs(acc.data.astype(np.float64))
        )
        if (
            not np.all(sizes <= 2**out.digits)
            or np.any(x != np.trunc(x))
            or np.any(y != np.trunc(y))
        ):
            raise Refused("the product may round")
        if acc is not None and np.any(acc.data != np.trunc(acc.data.astype(np.float32))):
            raise Refused("the product may round")
    result = np.where(result == 0, 0.0, result)
    return Value(result.astype(out.numpy), out)


def loaded(program: Program, shape: tuple[int, int], dtype: DType) -> Tile:
    """A matrix of small whole numbers."""
    rows, columns = shape
    argument = new_array(program, dtype, rows * columns, True, "small")
    tile = program.tile(shape, dtype)
    row, column = f"tl.arange(0, {rows})", f"tl.arange(0, {columns})"
    strides = (columns, 1) if program.rng.random() < 0.7 else (1, rows)
    places = np.arange(rows)[:, None] * strides[0] + np.arange(columns) * strides[1]
    line = f"{tile.name} = tl.load({argument.name} + {row}[:, None] * {strides[0]} + {column}[None, :] * {strides[1]})"
    array, wide = argument.array, np.broadcast_to(places, (program.config.programs, *shape))

    def run(machine: Machine) -> None:
        lanes = machine.lanes(shape, None)
        machine.values[tile.id] = machine.load(array, wide, lanes, np.zeros((), dtype.numpy))

    program.emit(Op(lambda: [line], run))
    program.visible.append(tile)
    return tile


def operand(program: Program, dtype: DType, shape: tuple[int, int]) -> Tile:
    """A matrix of the program that can be one, or a fresh one."""
    rng = program.rng
    if rng.random() < 0.6 or program.pure:
        try:
            return program.pick(
                lambda t: (
                    t.shape == shape
                    and t.dtype == dtype
                    and np.abs(
                        np.nan_to_num(program.value(t).data.astype(np.float64), nan=1e9)
                    ).max()
                    <= 64
                )
            )
        except Refused:
            if program.pure:
                raise
    return loaded(program, shape, dtype)


def changed(program: Program, tile: Tile) -> Tile:
    """The operand itself, or one that comes from it."""
    rng = program.rng
    for _ in range(rng.choice([0, 0, 1, 1, 2])):
        kind = rng.choice(["scale", "add", "negate", "where", "convert"])
        if kind == "scale":
            tile = program.compute("{0} * 2", lambda x: m.simple(np.multiply)(x, 2), tile)
        elif kind == "add":
            tile = program.compute("{0} + 1", lambda x: m.simple(np.add)(x, 1), tile)
        elif kind == "negate":
            tile = program.compute("0 - {0}", lambda x: m.simple(np.subtract)(0, x), tile)
        elif kind == "where":
            tile = program.compute(
                "tl.where({0} > 0, {0}, 0)",
                lambda x: m.where(m.comparison(np.greater)(x, 0), x, 0),
                tile,
            )
        elif tile.dtype in (F16, BF16):
            dtype = tile.dtype
            wide = program.compute("{0}.to(tl.float32)", lambda x: m.cast(x, F32), tile)
            tile = program.compute(f"{{0}}.to({dtype.text})", lambda x: m.cast(x, dtype), wide)
    return tile


def transposed(program: Program, tile: Tile) -> Tile:
    from .views import moved

    return program.compute("tl.trans({0})", moved(lambda x: x.transpose(0, 2, 1)), tile)


def observed(program: Program, tile: Tile) -> None:
    """A reduction of an operand, so that it is used twice."""
    rng = program.rng
    axis = rng.randrange(2)
    if rng.random() < 0.5:
        program.compute(
            f"tl.max({{0}}, {axis})", lambda x: extreme(False)(x, (axis + 1,), False), tile
        )
    elif tile.dtype.is_float:
        wide = program.compute(
            "{0}.to(tl.float32) + 64", lambda x: m.simple(np.add)(m.cast(x, F32), 64), tile
        )
        program.compute(f"tl.sum({{0}}, {axis})", lambda x: total(x, (axis + 1,), False), wide)
    else:
        program.compute(f"tl.sum({{0}}, {axis})", lambda x: total(x, (axis + 1,), False), tile)


def _shape(program: Program) -> tuple[int, int, int]:
    sizes = [16, 16, 16, 32] + ([32, 64] if program.config.num_warps >= 4 else [])
    return tuple(program.rng.choice(sizes) for _ in range(3))


def dot(program: Program) -> None:
    """One product, of operands that are used elsewhere as well."""
    rng = program.rng
    dtype = rng.choice([F16, F16, BF16, F32, F32, I8])
    rows, columns, inner = _shape(program)
    kind = rng.choice(["two", "two", "twice", "gram", "gram"])
    if kind == "twice":
        columns = inner = rows
    if kind == "gram":
        columns = rows
    first = operand(program, dtype, (rows, inner))
    a = changed(program, first)
    if kind == "two":
        second = operand(
            program, dtype, (inner, columns) if rng.random() < 0.6 else (columns, inner)
        )
        b = changed(program, second)
        if b.shape != (inner, columns) or (inner == columns and rng.random() < 0.3):
            b = transposed(program, b)
    elif kind == "twice":
        b = a if rng.random() < 0.5 else first
    else:
        b = transposed(program, a if rng.random() < 0.5 else first)
    if rng.random() < 0.5:
        observed(program, rng.choice([first, a, b]))
    multiply(program, a, b, dtype)


def multiply(program: Program, a: Tile, b: Tile, dtype: DType) -> Tile:
    rng = program.rng
    out = I32 if dtype == I8 else F32
    extra = rng.choice(PRECISIONS) if dtype == F32 else ""
    if dtype == F16 and rng.random() < 0.2:
        out, extra = F16, ", out_dtype=tl.float16"
    shape = (a.shape[0], b.shape[1])
    acc = None
    if rng.random() < 0.4:
        try:
            acc = program.pick(
                lambda t: (
                    t.shape == shape
                    and t.dtype == out
                    and np.abs(
                        np.nan_to_num(program.value(t).data.astype(np.float64), nan=1e9)
                    ).max()
                    < 2**20
                )
            )
        except Refused:
            acc = None
    if acc is not None:
        return program.compute(
            f"tl.dot({{0}}, {{1}}, {{2}}{extra})", lambda x, y, z: product(x, y, z, out), a, b, acc
        )
    return program.compute(
        f"tl.dot({{0}}, {{1}}{extra})", lambda x, y: product(x, y, None, out), a, b
    )


def dot_loop(program: Program) -> None:
    """A product over a long inner dimension: tiles are loaded in a loop, changed, multiplied, and reduced beside that."""
    if program.pure or program.depth:
        raise Refused("no loop here")
    rng = program.rng
    dtype = rng.choice([F16, F16, BF16, F32, I8])
    rows, columns, inner = _shape(program)
    out = I32 if dtype == I8 else F32
    trips = rng.choice([0, 1, 2, 3, 4])
    same = rng.random() < 0.4
    if same:
        columns = rows
    left = new_array(program, dtype, rows * inner * max(trips, 1), True, "small")
    right = (
        left if same else new_array(program, dtype, columns * inner * max(trips, 1), True, "small")
    )
    acc, side = program.tile((rows, columns), out, "acc"), program.tile((rows,), out, "side")
    limit = program.argument(number=trips).name if rng.random() < 0.7 else str(trips)
    counter = program.tile((), I32, "k")
    head = (
        f"for {counter.name} in {rng.choice(['range({})', 'tl.range({}, num_stages=3)'])}:".format(
            limit
        )
    )
    # a[i, k] lies at i * inner * trips + k, or b's transpose like that.
    width = inner * max(trips, 1)
    a_places = np.arange(rows)[:, None] * width + np.arange(inner)
    b_places = np.arange(columns)[:, None] * width + np.arange(inner)
    a_text = f"tl.arange(0, {rows})[:, None] * {width} + tl.arange(0, {inner})[None, :]"
    b_text = f"tl.arange(0, {columns})[:, None] * {width} + tl.arange(0, {inner})[None, :]"
    programs = program.config.programs
    observe = rng.choice(["", "first", "changed", "second"])
    saved = program.machine.snapshot()
    with program.block():
        machine = program.machine
        machine.values[counter.id] = Value(np.zeros(programs, np.int32), I32)
        machine.values[acc.id] = Value(np.zeros((programs, rows, columns), out.numpy), out)
        machine.values[side.id] = Value(np.zeros((programs, rows), out.numpy), out)
        first = _load_part(program, left.name, left.array, a_text, a_places, counter, inner, dtype)
        a = changed(program, first)
        if same:
            b = transposed(program, rng.choice([a, first]))
        else:
            second = _load_part(
                program, right.name, right.array, b_text, b_places, counter, inner, dtype
            )
            b = transposed(program, changed(program, second))
        watched = {"first": first, "changed": a, "second": a}.get(observe)
        reduced = side
        if watched is not None:
            part = program.compute(
                f"tl.sum({{0}}.to({out.text}), 1)", lambda x: _plain_total(m.cast(x, out)), watched
            )
            reduced = program.compute("{0} + {1}", m.simple(np.add), side, part)
        extra = rng.choice(PRECISIONS) if dtype == F32 else ""
        if rng.random() < 0.6:
            new = program.compute(
                f"tl.dot({{0}}, {{1}}, {{2}}{extra})",
                lambda x, y, z: product(x, y, z, out),
                a,
                b,
                acc,
            )
        else:
            part = program.compute(
                f"tl.dot({{0}}, {{1}}{extra})", lambda x, y: product(x, y, None, out), a, b
            )
            new = program.compute("{0} + {1}", m.simple(np.add), acc, part)
        body = program.ops

    def run(machine: Machine) -> None:
        machine.values[acc.id] = Value(np.zeros((programs, rows, columns), out.numpy), out)
        machine.values[side.id] = Value(np.zeros((programs, rows), out.numpy), out)
        for trip in range(trips):
            machine.values[counter.id] = Value(np.full(programs, trip, np.int32), I32)
            for op in body:
                op.run(machine)
            machine.values[acc.id], machine.values[side.id] = (
                machine.values[new.id],
                machine.values[reduced.id],
            )

    def lines() -> list[str]:
        text = [f"{acc.name} = tl.zeros(({rows}, {columns}), {out.text})"]
        names, values = acc.name, new.name
        if watched is not None:
            text.append(f"{side.name} = tl.zeros(({rows},), {out.text})")
            names, values = f"{acc.name}, {side.name}", f"{new.name}, {reduced.name}"
        inside = [*lines_of(body), f"{names} = {values}"]
        return [*text, head, *(f"    {line}" for line in inside)]

    program.rewind(saved)
    program.emit(Op(lines, run))
    program.visible += [acc] if watched is None else [acc, side]


def _plain_total(value: Value) -> Value:
    if value.dtype.is_float:
        check = np.where(value.data == 0, 0, value.data)
        check_whole(check.astype(np.float32), (2,), value.dtype)
    data: Any = value.data.astype(np.float64).sum(axis=2)
    return Value(np.where(data == 0, 0, data).astype(value.dtype.numpy), value.dtype)


def _load_part(
    program: Program,
    name: str,
    array: str,
    text: str,
    places: np.ndarray,
    counter: Tile,
    inner: int,
    dtype: DType,
) -> Tile:
    tile = program.tile(places.shape, dtype)
    line = f"{tile.name} = tl.load({name} + {text} + {counter.name} * {inner})"

    def run(machine: Machine) -> None:
        at: Callable[..., Any] = machine.values[counter.id].data.reshape((-1, 1, 1)).astype
        wide = places[None] + at(np.int64) * inner
        machine.values[tile.id] = machine.load(
            array, wide, machine.lanes(places.shape, None), np.zeros((), dtype.numpy)
        )

    program.emit(Op(lambda: [line], run))
    program.visible.append(tile)
    return tile
