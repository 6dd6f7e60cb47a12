"""Atomic updates: by tiles and scalars, masked, several lanes and programs at one address."""

from __future__ import annotations

import numpy as np

from .. import arithmetic as m
from ..arithmetic import Value, sure
from ..dtypes import BF16, F16, F32, I16, I32, I64, U16, U32, U64, Refused
from ..machine import Machine
from ..program import Op, Program
from .memory import Access, Mask, _lanes, draw_shape, new_array
from .places import draw_places

ORDERS = ["", "", ", sem='relaxed'", ", sem='acquire'", ", sem='release'", ", sem='acq_rel'"]
INTEGER = {
    "add": lambda old, new: old + new,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "xchg": lambda old, new: new,
}


def distinct(program: Program) -> None:
    """Each lane updates an element of its own, and gets what was there."""
    if program.pure:
        raise Refused("no memory here")
    rng = program.rng
    shape, dtype = draw_shape(program), rng.choice([I32, U32, F32, I64, U64, F16, BF16])
    kinds = ["add"] if dtype.bits == 16 else ["add", "xchg"] if dtype == F32 else list(INTEGER)
    kind = rng.choice(kinds)
    update = INTEGER[kind]
    places = draw_places(rng, shape)
    argument = new_array(program, dtype, places.span, False)
    program.written.add(argument.array)
    operand = program.pick(lambda t: t.shape in (shape, ()) and t.dtype.is_float == dtype.is_float)
    if operand.dtype != dtype:
        operand = program.compute(f"{{0}}.to({dtype.text})", lambda x: m.cast(x, dtype), operand)
    access, mask = Access(program, argument, places, False), Mask(program, shape)
    tile = program.tile(shape, dtype)
    masked = f", mask={mask.text}" if mask.text else ""
    text = f"{tile.name} = tl.atomic_{kind}({access.pointer}, {operand.name}{masked}{rng.choice(ORDERS)})"

    def run(machine: Machine) -> None:
        lanes = _lanes(machine, access, mask)
        old = machine.load(access.array, access.places, lanes, np.zeros((), dtype.numpy))
        value = m.sure(machine.values[operand.id]).data
        value = value.reshape(
            (value.shape[0], *([1] * (lanes.ndim - value.ndim)), *value.shape[1:])
        )
        with np.errstate(all="ignore"):
            new = np.broadcast_to(update(old.data, value), lanes.shape).astype(dtype.numpy)
        machine.store(access.array, access.places, lanes, Value(new, dtype))
        known = old.known if old.known is not None else np.ones(lanes.shape, bool)
        asked = lanes | ~machine.lanes(shape, None)
        machine.values[tile.id] = Value(old.data, dtype, known & asked)

    program.emit(Op(lambda: [text], run))
    program.visible.append(tile)


def exchange(program: Program) -> None:
    """Compare and swap, once or twice at the same places."""
    if program.pure:
        raise Refused("no memory here")
    rng = program.rng
    shape, dtype = draw_shape(program), rng.choice([I32, U32, I16, U16, I64, U64])
    places = draw_places(rng, shape)
    argument = new_array(program, dtype, places.span, False, "small")
    program.written.add(argument.array)
    access = Access(program, argument, places, False)
    operand = program.pick(lambda t: t.shape in (shape, ()) and t.dtype.is_int)
    expected = rng.choice([0, 1, 2, 3])
    tile = program.tile(shape, dtype)
    text = (
        f"{tile.name} = tl.atomic_cas({access.pointer}, {expected}, {operand.name}.to({dtype.text})"
        f"{rng.choice(ORDERS)})"
    )

    def run(machine: Machine) -> None:
        lanes = machine.lanes(shape, None)
        old = machine.load(access.array, access.places, lanes, np.zeros((), dtype.numpy))
        value = m.cast(m.sure(machine.values[operand.id]), dtype).data
        value = value.reshape(
            (value.shape[0], *([1] * (lanes.ndim - value.ndim)), *value.shape[1:])
        )
        new = np.where(old.data == expected, value, old.data).astype(dtype.numpy)
        machine.store(access.array, access.places, lanes, Value(new, dtype))
        machine.values[tile.id] = old

    program.used.add(operand.id)
    program.emit(Op(lambda: [text], run))
    program.visible.append(tile)


def colliding(program: Program) -> None:
    """Many lanes, of all programs, add to few elements: only what is left in memory is told."""
    if program.pure or not program.machine.active.all():
        raise Refused("no memory here")
    rng = program.rng
    dtype = rng.choice([I32, U32, F32, I64, U64])
    kind = "add" if dtype == F32 else rng.choice(["add", "max", "min", "and", "or", "xor"])
    index = program.pick(lambda t: t.dtype.is_int and t.dtype.bits >= 8)
    size = rng.choice([1, 2, 4, 8, 32])
    argument = new_array(program, dtype, size, True, "small")
    array = argument.array
    program.written.add(array)
    if dtype == F32:
        operand, value_text = index, f"(({index.name} & 3) - 1).to(tl.float32)"
    else:
        operand = program.pick(lambda t: t.shape in (index.shape, ()) and t.dtype.is_int)
        value_text = f"{operand.name}.to({dtype.text})"
    mask = Mask(program, index.shape)
    masked = f", mask={mask.text}" if mask.text else ""
    order = rng.choice(ORDERS)
    text = f"tl.atomic_{kind}({argument.name} + ({index.name} & {size - 1}), {value_text}{masked}{order})"
    update = {
        "add": np.add,
        "max": np.maximum,
        "min": np.minimum,
        "and": np.bitwise_and,
        "or": np.bitwise_or,
        "xor": np.bitwise_xor,
    }[kind]

    class Shape:
        shape = index.shape

    def run(machine: Machine) -> None:
        lanes = _lanes(machine, Shape, mask)
        where = sure(machine.values[index.id])
        places = (where.data & where.dtype.numpy.type(size - 1)).astype(np.int64)
        if dtype == F32:
            low = m.simple(np.subtract)(m.bitwise(np.bitwise_and)(where, 3), 1)
            value = m.cast(low, F32).data
        else:
            value = m.cast(m.sure(machine.values[operand.id]), dtype).data
            value = value.reshape(
                (value.shape[0], *([1] * (lanes.ndim - value.ndim)), *value.shape[1:])
            )
        value = np.broadcast_to(value, lanes.shape)
        update.at(machine.memory[array].data, places[lanes], value[lanes])

    program.used.update((index.id, operand.id))
    program.emit(Op(lambda: [text], run))
