"""Loops over rows, block after block: bounds that cut blocks, groups that share an element, and rows that change in place."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import arithmetic as m
from ..arithmetic import Value
from ..dtypes import BOOL, I32, DType, Refused
from ..machine import Machine, merged
from ..program import Argument, Op, Program, Tile
from .memory import draw_dtype, new_array
from .places import index_text
from .reductions import bits

#: A number of the launch in each program.
Numbers = Callable[[int], np.ndarray]


@dataclass
class Walk:
    """The numbers `first + trip * step` of a loop, and those of a block that begins there."""

    shape: tuple[int, ...]
    first: int
    step: int
    trips: int

    @property
    def columns(self) -> np.ndarray:
        return np.broadcast_to(np.arange(self.shape[-1]), self.shape)

    @property
    def rows(self) -> np.ndarray:
        return np.arange(self.shape[0])[:, None] if len(self.shape) == 2 else np.zeros(1, int)

    def index(self, trip: int) -> np.ndarray:
        return self.first + trip * self.step + self.columns

    @property
    def lowest(self) -> int:
        return min(self.first, self.first + (self.trips - 1) * self.step, 0)

    @property
    def highest(self) -> int:
        last = self.first + (self.trips - 1) * self.step
        return max(self.first, last, 0) + self.shape[-1] - 1


def _number(program: Program, value: int, varies: bool = True) -> tuple[str, Numbers]:
    """A number as a constant, as an argument, or different in each program."""
    rng = program.rng
    kind = rng.choice(["constant", "argument", "argument", "program"])
    if kind == "program" and varies and program.config.programs > 1:
        program.used.add(program.pid.id)
        return f"({value} - pid % 2)", lambda programs: value - np.arange(programs) % 2
    if kind == "argument":
        name = program.argument(number=value).name
        return name, lambda programs: np.full(programs, value)
    return str(value), lambda programs: np.full(programs, value)


def number_text(program: Program, value: int) -> str:
    """A number that is the same in all programs, as a constant or as an argument."""
    return _number(program, value, varies=False)[0]


@dataclass
class Test:
    """A condition of a block's elements: a text, and what it is in a trip, for each program."""

    text: str
    value: Callable[[int, int], np.ndarray]


def _test(program: Program, walk: Walk, columns: str) -> Test:
    """Whether an element is inside of a bound."""
    rng, rank = program.rng, len(walk.shape)
    end = walk.first + walk.trips * walk.step
    size = walk.shape[-1]
    bound = rng.choice(
        [
            end,
            end,
            end - 1,
            end - 3,
            end + 3,
            end // 2,
            size,
            2 * size,
            0,
            -2,
            end - size,
            end + size,
        ]
    )
    text, bound_of = _number(program, bound)

    def against(compare: Any) -> Callable[[int, int], np.ndarray]:
        return lambda trip, programs: compare(
            walk.index(trip)[None], bound_of(programs).reshape((-1, *([1] * rank)))
        )

    kind = rng.choice(["<", "<", "<", "<", ">", "<=", "!=", "both", "rows", "odd"])
    if kind == "rows" and rank == 2:
        most = rng.randint(0, walk.shape[0])
        most_text, most_of = _number(program, most)
        rows = f"tl.arange(0, {walk.shape[0]})[:, None]"
        inside = against(np.less)
        return Test(
            f"({rows} < {most_text}) & ({columns} < {text})",
            lambda trip, programs: (
                (walk.rows[None] < most_of(programs).reshape((-1, 1, 1))) & inside(trip, programs)
            ),
        )
    if kind == "both":
        least = rng.choice([0, 1, walk.first + 1, -1])
        inside = against(np.less)
        return Test(
            f"({columns} >= {least}) & ({columns} < {text})",
            lambda trip, programs: (walk.index(trip) >= least)[None] & inside(trip, programs),
        )
    if kind == "odd":
        return Test(
            f"({columns} & 3) != 1",
            lambda trip, programs: np.broadcast_to(
                (walk.index(trip) & 3) != 1, (programs, *walk.shape)
            ),
        )
    if kind == ">":
        return Test(f"{text} > {columns}", against(np.less))
    compare = {"<": np.less, "<=": np.less_equal, "!=": np.not_equal}.get(kind, np.less)
    return Test(f"{columns} {kind if kind in ('<=', '!=') else '<'} {text}", against(compare))


@dataclass
class Row:
    """Where a loop's blocks are in an array; all elements of a block apart, or in groups."""

    argument: Argument
    span: int
    text: str  # behind the base, for each element
    places: Callable[[int], np.ndarray]
    is_apart: bool

    def at(self, trip: int, programs: int) -> np.ndarray:
        places = self.places(trip)
        pid = np.arange(programs).reshape((-1, *([1] * places.ndim)))
        return places[None] + pid * self.span


def _row(program: Program, walk: Walk, columns: str, dtype: DType) -> Row:
    rng = program.rng
    low, high = walk.lowest, walk.highest
    kind = rng.choice(["plain", "plain", "plain", "wide", "backward", "group", "group", "wrap"])
    group, shift = 1, -low
    if kind == "wide":
        factor = rng.choice([2, 3])
        length = (high - low + 1) * factor
        text, place = f"({columns}) * {factor}", lambda i: i * factor
        shift = -low * factor
    elif kind == "backward":
        length = high - low + 1
        text, place, shift = f"{high} - ({columns})", lambda i: high - i, 0
    elif kind == "group":
        group = rng.choice([2, 3, 4, 8, 16, 100])
        group_text = number_text(program, group)
        length = high // group - low // group + 3
        shift = -int(low / group)
        text = f"({columns}) // {group_text}"
        place = lambda i: np.trunc(i / group).astype(np.int64)  # noqa: E731
    elif kind == "wrap":
        width = rng.choice([1, 2, 5, 16, 32])
        width_text = number_text(program, width)
        length, shift = 2 * width, width
        text, place = f"({columns}) % {width_text}", lambda i: np.fmod(i, width)
    else:
        length, text, place = high - low + 1, columns, lambda i: i
    rows = np.zeros(1, np.int64)
    if len(walk.shape) == 2:
        stride = rng.choice([length, length + 1, length + 3])
        stride_text = number_text(program, stride)
        rows = walk.rows * stride
        text += f" + tl.arange(0, {walk.shape[0]})[:, None] * {stride_text}"
        length = stride * walk.shape[0]
    span = length + rng.choice([0, 0, 1, 5])
    if span * program.config.programs > 6000:
        raise Refused("too much memory")
    argument = new_array(program, dtype, span, False)
    program.used.add(program.pid.id)
    base = f"{argument.name} + pid * {span}" + (f" + {shift}" if shift else "")
    return Row(
        argument,
        span,
        f"{base} + {text}",
        lambda trip: rows + place(walk.index(trip)) + shift,
        kind not in ("group", "wrap"),
    )


def _draw_walk(rng: random.Random) -> Walk:
    size = 1 << rng.choice([0, 1, 2, 3, 4, 4, 5, 5, 6, 7, 8])
    shape = (size,)
    if size <= 64 and rng.random() < 0.35:
        shape = (1 << rng.choice([0, 1, 2, 3]), size)
    step = rng.choice([size, size, size, size, max(1, size // 2), 2 * size, size + 3])
    first = rng.choice([0, 0, 0, 0, 3, size, -size, -2])
    return Walk(shape, first, step, rng.choice([0, 1, 1, 2, 3, 3, 5]))


@dataclass
class Step:
    """A line of a loop's body, and what it does in a trip."""

    text: str
    run: Callable[[Machine, int], None]


class Body:
    """What a loop does with each block."""

    def __init__(self, program: Program, walk: Walk, columns: str, dtype: DType) -> None:
        self.program, self.walk, self.columns, self.dtype = program, walk, columns, dtype
        self.rows: list[Row] = []
        self.tests = [_test(program, walk, columns) for _ in range(program.rng.choice([1, 1, 2]))]
        self.steps: list[Step] = []

    def load(self) -> Tile:
        """A block, with a number where a condition is false."""
        program, rng, dtype, walk = self.program, self.program.rng, self.dtype, self.walk
        if not self.rows or rng.random() < 0.7:
            self.rows.append(_row(program, walk, self.columns, dtype))
        row = rng.choice(self.rows)
        test = rng.choice([None, *self.tests, *self.tests])
        other = rng.choice([0, 0, 1, 7])
        tail = f", mask={test.text}, other={other}" if test else ""
        tile = program.tile(walk.shape, dtype)

        def run(machine: Machine, trip: int) -> None:
            inside = None if test is None else test.value(trip, machine.programs)
            machine.values[tile.id] = machine.load(
                row.argument.array,
                row.at(trip, machine.programs),
                machine.lanes(walk.shape, inside),
                np.asarray(other, dtype.numpy),
            )

        self.steps.append(Step(f"{tile.name} = tl.load({row.text}{tail})", run))
        return tile

    def compute(self, text: str, function: Callable[..., Value], *tiles: Tile) -> Tile:
        result = self.program.tile(self.walk.shape, self.dtype)

        def run(machine: Machine, trip: int) -> None:
            machine.values[result.id] = function(*(machine.values[t.id] for t in tiles))

        self.steps.append(Step(f"{result.name} = {text.format(*(t.name for t in tiles))}", run))
        return result

    def choose(self, tile: Tile) -> Tile:
        """Another number where a condition is false."""
        test, result = (
            self.program.rng.choice(self.tests),
            self.program.tile(tile.shape, tile.dtype),
        )

        def run(machine: Machine, trip: int) -> None:
            inside = Value(test.value(trip, machine.programs).copy(), BOOL)
            machine.values[result.id] = m.where(inside, machine.values[tile.id], 2)

        self.steps.append(Step(f"{result.name} = tl.where({test.text}, {tile.name}, 2)", run))
        return result

    def store(self, tile: Tile) -> None:
        """The block goes back in place, or to a row of its own."""
        program, rng, walk = self.program, self.program.rng, self.walk
        rows = [row for row in self.rows if row.is_apart]
        if not rows or rng.random() < 0.3:
            rows = [_row(program, walk, self.columns, self.dtype)]
        row = rng.choice(rows)
        if not row.is_apart:
            raise Refused("elements meet")
        self.rows.append(row)
        test = rng.choice([None, *self.tests])
        tail = f", mask={test.text}" if test else ""
        program.written.add(row.argument.array)

        def run(machine: Machine, trip: int) -> None:
            inside = None if test is None else test.value(trip, machine.programs)
            machine.store(
                row.argument.array,
                row.at(trip, machine.programs),
                machine.lanes(walk.shape, inside),
                machine.values[tile.id],
            )

        self.steps.append(Step(f"tl.store({row.text}, {tile.name}{tail})", run))


def walk_row(program: Program) -> None:
    """Adds up blocks of rows that a loop reads, and may change."""
    if program.pure or program.depth:
        raise Refused("no loop here")
    rng = program.rng
    dtype = draw_dtype(program)
    if dtype == BOOL:
        raise Refused("takes numbers")
    walk, writes = _draw_walk(rng), rng.random() < 0.5
    if writes:
        # The scanner of texts follows counters of for loops alone, which begin at 0 or above.
        walk.first = max(walk.first, 0)
    end = walk.first + walk.trips * walk.step - rng.choice([0, 0, 1]) * (walk.step > 1)
    if not walk.trips:
        end = walk.first - rng.choice([0, 0, 5])
    first_text = str(walk.first) if writes else number_text(program, walk.first)
    end_text = number_text(program, end)
    counter, acc = program.tile((), I32, "k"), program.tile(walk.shape, dtype, "acc")
    side = None
    if dtype.is_int and dtype.bits >= 32 and rng.random() < 0.4:
        side = program.tile(walk.shape[:-1], dtype, "side")
    axis = index_text(len(walk.shape) - 1, len(walk.shape))
    columns = f"{counter.name} + tl.arange(0, {walk.shape[-1]}){axis}"
    body = Body(program, walk, columns, dtype)
    for _ in range(rng.choice([1, 1, 2, 3])):
        tile = body.load()
        if rng.random() < 0.4:
            tile = body.choose(tile)
        new = _added(body, acc, tile)
        body.steps.append(_assign(acc, new))
        if side is not None:
            body.steps.append(_reduced(side, tile, len(walk.shape)))
        if writes and rng.random() < 0.7:
            body.store(rng.choice([acc, tile]))
    head = rng.choice(
        ["range({})"] * 3 + ["tl.range({}, num_stages=1)", "tl.range({}, num_stages=3)"]
    ).format(f"{first_text}, {end_text}, {walk.step}")
    carried = [acc] if side is None else [acc, side]

    def run(machine: Machine) -> None:
        here, programs = machine.active, machine.programs
        for tile in carried:
            zero = np.zeros((programs, *tile.shape), tile.dtype.numpy)
            machine.values[tile.id] = Value(zero, tile.dtype)
        for trip in range(walk.trips):
            before = {tile.id: machine.values[tile.id] for tile in carried}
            with np.errstate(all="ignore"):
                for step in body.steps:
                    step.run(machine, trip)
            for tile in carried:
                machine.values[tile.id] = merged(here, machine.values[tile.id], before[tile.id])

    def lines() -> list[str]:
        zeros = [
            f"{t.name} = tl.zeros({t.shape}, {t.dtype.text})"
            if t.shape
            else f"{t.name} = tl.to_tensor(0).to({t.dtype.text})"
            for t in carried
        ]
        return [
            *zeros,
            f"for {counter.name} in {head}:",
            *(f"    {step.text}" for step in body.steps),
        ]

    program.emit(Op(lines, run))
    program.visible += carried


def _assign(target: Tile, source: Tile) -> Step:
    def run(machine: Machine, trip: int) -> None:
        machine.values[target.id] = machine.values[source.id]

    return Step(f"{target.name} = {source.name}", run)


def _added(body: Body, acc: Tile, tile: Tile) -> Tile:
    if body.dtype.is_float:
        return body.compute("tl.maximum({0}, {1})", m.maximum, acc, tile)
    add, times = m.simple(np.add), m.simple(np.multiply)
    return body.compute("{0} * 3 + {1}", lambda a, x: add(times(a, 3), x), acc, tile)


def _reduced(side: Tile, tile: Tile, rank: int) -> Step:
    fold = bits(np.bitwise_xor)

    def run(machine: Machine, trip: int) -> None:
        part = fold(machine.values[tile.id], (rank,), False)
        machine.values[side.id] = m.bitwise(np.bitwise_xor)(machine.values[side.id], part)

    return Step(f"{side.name} = {side.name} ^ tl.xor_sum({tile.name}, {rank - 1})", run)


def groups(program: Program) -> None:
    """Neighbours that read one element, with numbers of their own, or of their groups, where a mask is false."""
    if program.pure:
        raise Refused("no memory here")
    rng, programs = program.rng, program.config.programs
    dtype = draw_dtype(program)
    size = 1 << rng.choice([2, 3, 4, 5, 6, 7, 8, 9])
    group = rng.choice([2, 4, 4, 8, 16, 32, 3, 64])
    by = rng.choice([group, 2 * group, group // 2 or 1, 3])
    start = rng.choice([0, 0, 0, -size, -group, 5, 8])
    group_text = number_text(program, group)
    start_text = number_text(program, start)
    i = np.arange(size)[None] + np.arange(programs)[:, None] * size + start
    index = f"({start_text} + pid * {size} + tl.arange(0, {size}))"
    places = np.trunc(i / group).astype(np.int64)
    shift = -int(places.min())
    array = new_array(program, dtype, int(places.max()) + shift + 1, True)
    program.used.add(program.pid.id)
    inside, tail, other = np.ones(i.shape, bool), "", np.zeros(i.shape)
    if rng.random() < 0.7:
        quotient = np.trunc(i / by).astype(np.int64)
        limit = int(rng.choice([i.max(), i.max() // 2, i.min() + by, i.min() + 1]))
        text, inside = rng.choice(
            [
                (f"{index} < {limit}", i < limit),
                (f"({index} // {by}) % 2 == 0", np.fmod(quotient, 2) == 0),
                (f"{index} % 3 != 0", np.fmod(i, 3) != 0),
            ]
        )
        other_text, other = rng.choice(
            [
                ("7", np.full(i.shape, 7)),
                (f"({index} & 7)", i & 7),
                (f"(({index} // {by}) & 15)", quotient & 15),
            ]
        )
        if dtype == BOOL:
            other_text, other = "False", np.zeros(i.shape)
        elif other_text != "7":
            other_text += f".to({dtype.text})"
        tail = f", mask={text}, other={other_text}"
    tile = program.tile((size,), dtype)
    fill = other.astype(np.float32).astype(dtype.numpy)

    def run(machine: Machine) -> None:
        lanes = machine.lanes((size,), inside)
        value = machine.load(array.array, np.broadcast_to(places + shift, lanes.shape), lanes, fill)
        machine.values[tile.id] = value

    line = f"{tile.name} = tl.load({array.name} + {shift} + {index} // {group_text}{tail})"
    program.emit(Op(lambda: [line], run))
    program.visible.append(tile)
