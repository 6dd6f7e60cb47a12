"""Pointers as values: moved along in a loop, chosen between, kept in a tile."""

from __future__ import annotations

import numpy as np

from .. import arithmetic as m
from ..arithmetic import Value, sure
from ..dtypes import BOOL, Refused
from ..machine import Machine
from ..program import Op, Program
from .memory import draw_dtype, draw_shape, new_array
from .places import draw_places


def moving(program: Program) -> None:
    """A pointer that a loop moves from block to block, to read, or to read and write back."""
    if program.pure or program.depth:
        raise Refused("no loop here")
    rng = program.rng
    shape, dtype = draw_shape(program), draw_dtype(program)
    places = draw_places(rng, shape)
    trips, gap = rng.choice([0, 1, 2, 3, 4]), rng.choice([0, 0, 1, 3])
    step = places.span + gap
    if step * max(trips, 1) > 4096:
        raise Refused("too much memory")
    backward = rng.random() < 0.25
    span = step * max(trips, 1)
    argument = new_array(program, dtype, span, False)
    array, programs = argument.array, program.config.programs
    writes = rng.random() < 0.5
    if writes:
        program.written.add(array)
    start = step * (max(trips, 1) - 1) if backward else 0
    pointer, counter = program.tile(shape, dtype, "ptr"), program.tile((), dtype, "k")
    total, element = program.tile(shape, dtype, "sum"), program.tile(shape, dtype)
    zero = Value(np.zeros((programs, *shape), dtype.numpy), dtype)
    combine = m.maximum if dtype.is_float else m.bitwise(np.bitwise_xor)
    text = (
        f"tl.maximum({total.name}, {element.name})"
        if dtype.is_float
        else f"{total.name} ^ {element.name}"
    )
    limit = program.argument(number=trips).name if rng.random() < 0.7 else str(trips)
    pid = np.arange(programs).reshape((-1, *([1] * len(shape)))) * span
    pure_shape = (
        f"tl.zeros({shape}, {dtype.text})" if shape else f"tl.to_tensor(0).to({dtype.text})"
    )
    lines = [
        f"{pointer.name} = {argument.name} + pid * {span} + {start} + {places.text}",
        f"{total.name} = {pure_shape}",
        f"for {counter.name} in range({limit}):",
        f"    {element.name} = tl.load({pointer.name})",
        f"    {total.name} = {text}",
        *([f"    tl.store({pointer.name}, {total.name})"] if writes else []),
        f"    {pointer.name} {'-' if backward else '+'}= {step}",
    ]
    program.used.add(program.pid.id)

    def run(machine: Machine) -> None:
        value, lanes = zero, machine.lanes(shape, None)
        at = places.offsets + start + pid
        for _ in range(trips):
            loaded = machine.load(array, at, lanes, np.zeros((), dtype.numpy))
            value = combine(value, loaded)
            if writes:
                machine.store(array, at, lanes, value)
            at = at - step if backward else at + step
        machine.values[total.id] = value

    program.emit(Op(lambda: lines, run))
    program.visible.append(total)


def chosen(program: Program) -> None:
    """A tile of pointers that a mask chooses from two: in one array, or in two of them."""
    if program.pure:
        raise Refused("no memory here")
    rng = program.rng
    test = program.pick(lambda t: t.dtype == BOOL and t.shape != ())
    shape, dtype = test.shape, draw_dtype(program)
    first, second = draw_places(rng, shape), draw_places(rng, shape)
    size = max(first.span, second.span)
    left = new_array(program, dtype, size, True)
    right = left if rng.random() < 0.6 else new_array(program, dtype, size, True)
    tile = program.tile(shape, dtype)
    line = (
        f"{tile.name} = tl.load(tl.where({test.name}, {left.name} + ({first.text}), "
        f"{right.name} + ({second.text})))"
    )

    def run(machine: Machine) -> None:
        chosen = sure(machine.values[test.id]).data
        lanes, none = machine.lanes(shape, None), np.zeros((), dtype.numpy)
        wide = [np.broadcast_to(p.offsets, (machine.programs, *shape)) for p in (first, second)]
        a = machine.load(left.array, wide[0], lanes, none)
        b = machine.load(right.array, wide[1], lanes, none)
        known = None
        if a.known is not None or b.known is not None:
            masks = [np.ones(lanes.shape, bool) if v.known is None else v.known for v in (a, b)]
            known = np.where(chosen, *masks)
        data = np.where(chosen, a.data, b.data).astype(dtype.numpy)
        machine.values[tile.id] = Value(data, dtype, known)

    program.used.add(test.id)
    program.emit(Op(lambda: [line], run))
    program.visible.append(tile)
