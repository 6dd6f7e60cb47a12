"""From a number to a program."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from .dtypes import ALL, BOOL, F32, I32, I64, U32, U64, DType
from .machine import Machine
from .program import Config, Op, Program, Tile
from .steps import (
    atomics,
    blocks,
    control_flow,
    dots,
    elementwise,
    float8,
    jumps,
    memory,
    orders,
    pointers,
    reductions,
    rows,
    scaled_dots,
    scans,
    views,
)
from .steps.places import draw_places

Step = Callable[[Program], object]

STEPS: list[tuple[float, Step]] = [
    (6, elementwise.binary),
    (6, elementwise.binary),
    (3, elementwise.convert),
    (1, elementwise.bits),
    (2, elementwise.unary),
    (2, elementwise.select),
    (1.5, elementwise.clamp),
    (0.7, elementwise.multiply_add),
    (0.5, elementwise.divide_exactly),
    (1, elementwise.function),
    (0.8, elementwise.arange),
    (1.2, elementwise.constant),
    (0.8, elementwise.float_constant),
    (1, elementwise.scalar),
    (1, elementwise.constexpr),
    (0.8, float8.rounded),
    (0.4, float8.bits),
    (0.4, float8.codes),
    (2, memory.load),
    (1, memory.load_again),
    (2.5, memory.in_place),
    (0.7, memory.gather),
    (1, memory.store),
    (0.5, memory.store_number),
    (0.8, pointers.moving),
    (1.2, rows.walk_row),
    (0.5, rows.groups),
    (0.8, blocks.walk_blocks),
    (0.4, pointers.chosen),
    (1, views.permute),
    (1, views.reshape),
    (1, views.expand),
    (0.6, views.broadcast),
    (1, views.join),
    (0.6, views.split),
    (0.8, views.gather),
    (3, reductions.reduce),
    (1, reductions.reduce_joined),
    (0.5, reductions.reduce_small),
    (0.5, reductions.reduce_pair),
    (0.5, reductions.softmax_like),
    (1.5, scans.scan),
    (0.5, scans.scan_pair),
    (0.4, orders.sort),
    (0.3, orders.topk),
    (0.5, orders.flip),
    (0.4, orders.histogram),
    (0.8, atomics.distinct),
    (0.4, atomics.exchange),
    (0.5, atomics.colliding),
    (1.5, control_flow.for_loop),
    (0.5, control_flow.while_loop),
    (1.2, control_flow.branch),
    (0.6, control_flow.call),
]
IN_LOOPS: list[tuple[float, Step]] = [(4, jumps.jump)]
DOTS: list[tuple[float, Step]] = [
    (12, dots.dot),
    (8, dots.dot_loop),
    (4, float8.dot),
    (4, scaled_dots.scaled),
]


def draw_step(program: Program) -> Step:
    steps = STEPS + (DOTS if program.dots and not program.depth else [])
    steps = steps + (IN_LOOPS if program.loop is not None else [])
    weights = [weight for weight, _ in steps]
    return program.rng.choices([step for _, step in steps], weights)[0]


def draw_config(rng: random.Random) -> Config:
    """How the program is launched: small tiles on many warps come of themselves."""
    grid = rng.choice([(1,), (1,), (1,), (2,), (3,), (2, 2), (1, 2), (2, 1, 2)])
    return Config(
        num_warps=rng.choice([1, 1, 2, 2, 4, 4, 8, 16, 32]),
        num_stages=rng.choice([1, 2, 2, 3, 4]),
        grid=grid,
        schedule=rng.choice([None, None, rng.randrange(1000)]),
        check=rng.choice([None, "bounds", "portable", "bounds,races,initialized,divergence"]),
        processor=rng.choice([None, None, "x86-64-v3", "x86-64-v4"]),
    )


def draw_palette(rng: random.Random) -> list[DType]:
    """The few dtypes that most of a program is in."""
    kind = rng.random()
    if kind < 0.2:
        return [I64, rng.choice([U32, U64, I32])]
    if kind < 0.35:
        return [F32, rng.choice(ALL)]
    return rng.sample(ALL, rng.choice([1, 2, 2, 3, 4]))


def generate(
    seed: int,
    removed: frozenset[str] = frozenset(),
    config: Config | None = None,
) -> Program:
    """The program of a number, without some of its steps."""
    rng = random.Random(seed)
    drawn = draw_config(rng)
    config = replace(config) if config else drawn
    program = Program(seed, config, removed)
    program.dots = rng.random() < 0.06
    program.place()
    program.palette = draw_palette(rng)
    with program.drawing("0/shapes"):
        program.shapes = [memory.fresh_shape(program) for _ in range(2)]
        program.shapes.append(tuple(reversed(program.shapes[0])))
        program.shapes.append(())
    size = rng.choice([4, 6, 8, 8, 10, 12, 16])
    program.attempt("0", memory.load)
    for index in range(1, size):
        path = str(index)
        with program.drawing(f"{path}/kind"):
            step = draw_step(program)
        if index <= 2 and rng.random() < 0.6:
            step = memory.load
        program.attempt(path, step)
    store_results(program)
    return program


def store_results(program: Program) -> None:
    """Stores what nothing else used, each dtype in an array of its own."""
    outputs: dict[DType, list[Tile]] = {}
    for tile in program.visible:
        if tile.id not in program.used and tile is not program.pid:
            outputs.setdefault(tile.dtype, []).append(tile)
    with program.drawing("out"):
        for dtype, tiles in outputs.items():
            _store_all(program, dtype, tiles)


def _store_all(program: Program, dtype: DType, tiles: list[Tile]) -> None:
    rng, programs = program.rng, program.config.programs
    places, starts, span = [], [], rng.choice([0, 0, 0, 1])
    for tile in tiles:
        with program.drawing(f"out/{tile.name}"):
            place = draw_places(program.rng, tile.shape)
            places.append(place)
            starts.append(span)
            span += place.span + program.rng.choice([0, 0, 0, 1])
    fill = np.full(span * programs, 77 if dtype != BOOL else True, np.float32).astype(dtype.numpy)
    array = program.array(dtype, fill, span)
    argument = program.argument(array=array)
    program.written.add(array)
    for tile, place, start in zip(tiles, places, starts, strict=True):
        program.emit(_store(program, tile, place, start, argument.name, array, span))


def _store(
    program: Program, tile: Tile, place: object, start: int, name: str, array: str, span: int
) -> Op:
    pid = np.arange(program.config.programs).reshape((-1, *([1] * len(tile.shape))))
    where = np.broadcast_to(
        place.offsets + start + pid * span, (program.config.programs, *tile.shape)
    )
    base = (
        f"{name} + pid * {span} + {start}" if program.config.programs > 1 else f"{name} + {start}"
    )
    text = (
        f"tl.store({base} + {place.text}, {tile.name})"
        if tile.shape
        else f"tl.store({base}, {tile.name})"
    )

    def run(machine: Machine) -> None:
        machine.store(array, where, machine.lanes(tile.shape, None), machine.values[tile.id])

    return Op(lambda: [text], run)
