"""Loads and stores: views, masks, arguments that share memory, and tiles that go back where they came from."""

from __future__ import annotations

import math

import numpy as np

from ..arithmetic import Value, cast, of_constant, sure
from ..dtypes import ALL, BOOL, DType, Refused
from ..machine import Machine
from ..program import Argument, Op, Program, Tile
from ..values import contents, number
from .places import Places, along, draw_places, index_text


def draw_shape(program: Program) -> tuple[int, ...]:
    """Mostly one of the program's few shapes, so that tiles meet."""
    if program.shapes and program.rng.random() < 0.85:
        return program.rng.choice(program.shapes)
    return fresh_shape(program)


def fresh_shape(program: Program) -> tuple[int, ...]:
    rng = program.rng
    most = 8 + (program.config.num_warps >= 4) + 3 * (program.config.num_warps >= 8)
    if rng.random() < 0.06:
        most = 12  # many elements a thread
    bits = min(rng.choice([0, 1, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 8, 10, 12]), most)
    rank = rng.choice([1, 1, 1, 2, 2, 3, 4])
    sizes = [0] * rank
    for _ in range(bits):
        sizes[rng.randrange(rank)] += 1
    return tuple(1 << size for size in sizes)


def draw_dtype(program: Program) -> DType:
    if program.palette and program.rng.random() < 0.85:
        return program.rng.choice(program.palette)
    return program.rng.choice(ALL)


class Access:
    """A tile's places in an array, of which each program has a part of its own."""

    def __init__(self, program: Program, argument: Argument, places: Places, shared: bool) -> None:
        self.argument, self.array = argument, argument.array
        span = program.spans[self.array]
        pid = np.arange(program.config.programs).reshape((-1, *([1] * places.offsets.ndim)))
        self.places = np.broadcast_to(
            places.offsets + (0 if shared else pid * span),
            (program.config.programs, *places.offsets.shape),
        )
        if self.places.max(initial=0) >= len(program.initial[self.array]):
            raise Refused("outside of the array")
        if self.places.min(initial=1 << 40) < argument.offset:
            raise Refused("before the first element of this argument")
        self.shape = places.offsets.shape
        terms = [argument.name]
        own = not shared and (program.config.programs > 1 or program.rng.random() < 0.3)
        if own:
            program.used.add(program.pid.id)
        if own and not argument.offset and program.rng.random() < 0.15:
            # One index, taken apart and put together again.
            index = f"(pid * {span} + {places.text})"
            width = program.rng.choice([2, 3, 4, 8, 16, 32, 100])
            terms.append(f"{index} // {width} * {width} + {index} % {width}")
        else:
            if own:
                terms.append(f"pid * {span}")
            if argument.offset:
                terms.append(f"({places.text} - {argument.offset})")
            elif self.shape or not shared:
                terms.append(places.text)
        self.pointer = " + ".join(terms)


class Mask:
    """Which lanes of an access take part."""

    def __init__(self, program: Program, shape: tuple[int, ...], scalar: bool = True) -> None:
        rng = program.rng
        self.operands: list[Tile] = []
        self.text, self.constant = "", None
        if rng.random() < 0.6:
            return
        if rng.random() < 0.4:
            try:
                tile = program.pick(lambda t: t.dtype == BOOL and t.shape in (shape, ()))
            except Refused:
                pass
            else:
                self.operands, self.text = [tile], tile.name
                return
        if not shape:
            self.text, self.constant = f"pid {rng.choice(['<', '>=', '!='])} 1", None
            compare = {"<": np.less, ">=": np.greater_equal, "!=": np.not_equal}
            pid = np.arange(program.config.programs)
            self.constant = compare[self.text.split()[1]](pid, 1)
            return
        axis = rng.randrange(len(shape))
        kept = rng.randint(0, shape[axis])
        if rng.random() < 0.5:
            argument = program.argument(number=kept)
            limit = argument.name
        else:
            limit = str(kept)
        where = np.arange(shape[axis]) < kept
        text = f"tl.arange(0, {shape[axis]}){index_text(axis, len(shape))} < {limit}"
        if rng.random() < 0.3:
            text, where = f"({text}) == False", ~where
        self.text = text
        self.constant = np.broadcast_to(
            along(where, axis, len(shape)), (program.config.programs, *shape)
        )

    def value(self, machine: Machine) -> np.ndarray | None:
        if self.operands:
            return sure(machine.values[self.operands[0].id]).data
        return self.constant


def _lanes(machine: Machine, access: Access, mask: Mask) -> np.ndarray:
    value = mask.value(machine)
    if value is not None:
        value = value.reshape(
            (value.shape[0], *([1] * (len(access.shape) + 1 - value.ndim)), *value.shape[1:])
        )
    return machine.lanes(access.shape, value)


def add_load(program: Program, access: Access, mask: Mask, other: Tile | None) -> Tile:
    dtype = program.machine.memory[access.array].dtype
    rng = program.rng
    number_other = None
    text = f"tl.load({access.pointer}"
    if mask.text:
        text += f", mask={mask.text}"
        if other is not None:
            text += f", other={other.name}"
        else:
            number_other = number(rng, dtype) if rng.random() < 0.6 else None
            if dtype.is_int and isinstance(number_other, float):
                number_other = 1
            if number_other is not None:
                text += f", other={number_other!r}".replace("inf", "float('inf')")
    if rng.random() < 0.03:
        text += ", volatile=True"
    if rng.random() < 0.05:
        text += f", cache_modifier={rng.choice(['.cg', '.ca'])!r}"
    text += ")"
    tile = program.tile(access.shape, dtype)
    filled = mask.text and (other is not None or number_other is not None)

    def run(machine: Machine) -> None:
        lanes = _lanes(machine, access, mask)
        fill = np.zeros((), dtype.numpy)
        if other is not None:
            wide = cast(machine.values[other.id], dtype).data
            fill = wide.reshape((wide.shape[0], *([1] * (lanes.ndim - wide.ndim)), *wide.shape[1:]))
        elif number_other is not None:
            fill = (
                np.float32(number_other).astype(dtype.numpy)
                if dtype.is_float
                else np.array(number_other, dtype.numpy)
            )
        value = machine.load(access.array, access.places, lanes, fill)
        if not filled:
            # Without `other`, what masked lanes have is open.
            asked = np.ones(access.shape, bool) if mask.value(machine) is None else lanes
            idle = ~machine.lanes(access.shape, None)
            known = value.known if value.known is not None else np.ones(lanes.shape, bool)
            value = Value(value.data, dtype, known & (asked | idle))
        machine.values[tile.id] = value

    program.emit(Op(lambda: [f"{tile.name} = {text}"], run))
    program.visible.append(tile)
    return tile


def add_store(program: Program, access: Access, mask: Mask, tile: Tile) -> None:
    dtype = program.machine.memory[access.array].dtype
    text = f"tl.store({access.pointer}, {tile.name}{mask.text and f', mask={mask.text}'})"
    program.written.add(access.array)
    program.used.add(tile.id)

    def run(machine: Machine) -> None:
        value = (
            cast(machine.values[tile.id], dtype)
            if machine.values[tile.id].exact
            else machine.values[tile.id]
        )
        data = value.data
        shape = (data.shape[0], *([1] * (len(access.shape) + 1 - data.ndim)), *data.shape[1:])
        known = None if value.known is None else value.known.reshape(shape)
        error = None if value.error is None else value.error.reshape(shape)
        wide = Value(data.reshape(shape), dtype, known, error)
        machine.store(access.array, access.places, _lanes(machine, access, mask), wide)

    program.emit(Op(lambda: [text], run))


# --- Steps -----------------------------------------------------------------------------------------


def new_array(program: Program, dtype: DType, span: int, shared: bool, style: str = "") -> Argument:
    style = style or program.rng.choice(["edges", "edges", "edges", "any", "small"])
    parts = 1 if shared else program.config.programs
    data = contents(program.rng.randrange(1 << 30), max(1, span * parts), dtype, style)
    return program.argument(array=program.array(dtype, data, span))


def load(program: Program) -> Tile:
    """A tile of a fresh array."""
    if program.pure:
        raise Refused("no memory here")
    shape, dtype = draw_shape(program), draw_dtype(program)
    places = draw_places(program.rng, shape)
    shared = program.rng.random() < 0.15
    argument = new_array(program, dtype, places.span + program.rng.choice([0, 0, 1, 3]), shared)
    access = Access(program, argument, places, shared)
    mask = Mask(program, shape)
    other = None
    if mask.text and program.rng.random() < 0.3:
        try:
            other = program.pick(lambda t: t.dtype == dtype and t.shape in (shape, ()))
        except Refused:
            other = None
    return add_load(program, access, mask, other)


def load_again(program: Program) -> None:
    """A tile of an array that the program has: the same one, at other places."""
    argument = _some_array(program)
    shape = draw_shape(program)
    add_load(program, _access_within(program, argument, shape), Mask(program, shape), None)


def _some_array(program: Program) -> Argument:
    if program.pure:
        raise Refused("no memory here")
    arrays = [
        a
        for a in program.arguments
        if a.array
        and len(program.initial[a.array]) == program.spans[a.array] * program.config.programs
    ]
    if not arrays:
        raise Refused("no array")
    return program.rng.choice(arrays)


def _access_within(program: Program, argument: Argument, shape: tuple[int, ...]) -> Access:
    span = program.spans[argument.array]
    if math.prod(shape) > span - argument.offset:
        raise Refused("the array is too small")
    places = draw_places(program.rng, shape)
    if places.span > span - argument.offset:
        places = draw_places(program.rng, shape, plain=True)
    low, room = argument.offset, span - places.span
    shift = program.rng.choice([low, room, program.rng.randint(low, room)])
    if shift:
        places = Places(f"{places.text} + {shift}", places.offsets + shift)
    return Access(program, argument, places, False)


def in_place(program: Program) -> None:
    """Loads and stores through one array, in the order that the program says, each at places of its own."""
    if program.pure:
        raise Refused("no memory here")
    rng = program.rng
    shape = draw_shape(program)
    dtype = draw_dtype(program)
    existing = rng.random() < 0.5
    if existing:
        argument = _some_array(program)
        dtype = program.machine.memory[argument.array].dtype
        if math.prod(shape) > program.spans[argument.array]:
            shape = rng.choice([(1 << (program.spans[argument.array].bit_length() - 1),), ()])
    else:
        places = draw_places(rng, shape)
        argument = new_array(program, dtype, places.span + rng.choice([0, 0, 1, 4, 16]), False)
    names = [argument]
    if rng.random() < 0.4:
        names.append(alias(program, argument, shape))
    tile = None
    for _ in range(rng.choice([1, 2, 2, 3, 3, 4])):
        if tile is None or rng.random() < 0.5:
            access = _access_within(program, rng.choice(names), shape)
            tile = add_load(program, access, Mask(program, shape), None)
            if dtype != BOOL and rng.random() < 0.6:
                tile = _changed(program, tile)
        else:
            stored = tile
            if rng.random() < 0.3:
                stored = program.pick(
                    lambda t: t.shape in (shape, ()) and t.dtype.is_float == dtype.is_float
                )
            access = _access_within(program, rng.choice(names), shape)
            add_store(program, access, Mask(program, shape), stored)


def _changed(program: Program, tile: Tile) -> Tile:
    from .. import arithmetic

    text, function = program.rng.choice(
        [
            ("{0} + 1", lambda a: arithmetic.simple(np.add)(a, 1)),
            ("{0} * 2", lambda a: arithmetic.simple(np.multiply)(a, 2)),
            ("{0} - 3", lambda a: arithmetic.simple(np.subtract)(a, 3)),
        ]
    )
    return program.compute(text, function, tile)


def alias(program: Program, argument: Argument, shape: tuple[int, ...]) -> Argument:
    """Another argument on the same memory: all of it, or from a later element on."""
    if sum(a.array == argument.array for a in program.arguments) > 2:
        raise Refused("names enough")
    room = program.spans[argument.array] - math.prod(shape)
    offset = min(room, program.rng.choice([0, 0, 1, 2, 3, 4, 8, 16]))
    return program.argument(array=argument.array, offset=offset)


def gather(program: Program) -> None:
    """A load at places that a tile holds."""
    if program.pure:
        raise Refused("no memory here")
    index = program.pick(lambda t: t.dtype.is_int and t.dtype != BOOL)
    dtype, rng = draw_dtype(program), program.rng
    size = rng.choice([1, 2, 8, 64])
    size = min(size, index.dtype.high // 2 + 1)
    argument = new_array(program, dtype, size, True)
    tile = program.tile(index.shape, dtype)
    array = argument.array
    line = f"{tile.name} = tl.load({argument.name} + ({index.name} & {size - 1}))"

    def run(machine: Machine) -> None:
        value = machine.values[index.id]
        places = (value.data & value.dtype.numpy.type(size - 1)).astype(np.int64)
        lanes = machine.lanes(index.shape, None)
        loaded = machine.load(array, places, lanes, np.zeros((), dtype.numpy))
        known = (
            value.known
            if loaded.known is None
            else loaded.known
            if value.known is None
            else loaded.known & value.known
        )
        machine.values[tile.id] = Value(loaded.data, dtype, known)

    program.used.add(index.id)
    program.emit(Op(lambda: [line], run))
    program.visible.append(tile)


def store(program: Program) -> None:
    """Stores a tile where the program may read it again."""
    if program.pure:
        raise Refused("no memory here")
    tile = program.pick(unknown=True)
    if program.rng.random() < 0.5:
        argument = _some_array(program)
        if program.machine.memory[argument.array].dtype.is_float != tile.dtype.is_float:
            raise Refused("another kind")
        access = _access_within(program, argument, tile.shape)
    else:
        places = draw_places(program.rng, tile.shape)
        dtype = draw_dtype(program)
        argument = new_array(program, dtype, places.span, False)
        access = Access(program, argument, places, False)
    add_store(program, access, Mask(program, tile.shape), tile)


def store_number(program: Program) -> None:
    """Stores a Python number, or a tile filled with one."""
    if program.pure:
        raise Refused("no memory here")
    shape, dtype, rng = draw_shape(program), draw_dtype(program), program.rng
    value = number(rng, dtype)
    if isinstance(value, bool) or (isinstance(value, float) and value != value):
        value = 1
    places = draw_places(rng, shape)
    argument = new_array(program, dtype, places.span, False)
    access = Access(program, argument, places, False)
    if not shape:
        raise Refused("a number is no tile")
    tile = program.tile(shape, dtype)
    data = np.broadcast_to(
        of_constant(value, dtype, program.config.programs).data.reshape((-1, *([1] * len(shape)))),
        (program.config.programs, *shape),
    ).copy()

    def run(machine: Machine) -> None:
        machine.values[tile.id] = Value(data, dtype)

    line = f"{tile.name} = tl.full({shape}, {value!r}, {dtype.text})"
    program.emit(Op(lambda: [line], run))
    program.visible.append(tile)
    add_store(program, access, Mask(program, shape), tile)
