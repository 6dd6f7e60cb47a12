"""Loops and branches that carry tiles, and functions that are called."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np

from .. import arithmetic as m
from ..arithmetic import Value
from ..dtypes import I32, Refused
from ..machine import Machine, merged
from ..program import Function, Op, Program, Tile, lines_of
from .conditions import condition
from .jumps import Loop

MOST_TRIPS = 12


def _inner_steps(program: Program, most: int, first: int = 0) -> None:
    """Some steps in the body of another one."""
    from ..generate import draw_step

    outer = program.step.path
    for index in range(first, first + program.rng.randint(1, most)):
        path = f"{outer}.{index}"
        if path not in program.removed:
            with program.drawing(f"{path}/kind"):
                step = draw_step(program)
            program.attempt(path, step)


def _like(program: Program, target: Tile) -> Tile:
    """A tile of the block in the shape and dtype of one around it: the latest that can be."""
    prefix = program.step.path + "."
    inner = [t for t in program.visible if t.step.startswith(prefix) and t.shape == target.shape]
    inner = [t for t in inner if program.value(t).exact and program.value(t).known is None]
    if inner:
        tile = inner[-1]
        program.used.add(tile.id)
        if tile.dtype != target.dtype:
            return program.compute(
                f"{{0}}.to({target.dtype.text})", lambda x: m.cast(x, target.dtype), tile
            )
        return tile
    if target.dtype.is_float:
        return program.compute("-{0}", m.negate, target)
    return program.compute("~{0}", m.invert, target)


def _carried(program: Program) -> list[tuple[Tile, Tile]]:
    """(tile before, variable) of what a loop or branch changes."""
    pairs = []
    for _ in range(program.rng.choice([1, 1, 2, 3])):
        start = program.pick()
        if all(start.id != before.id for before, _ in pairs):
            pairs.append((start, program.tile(start.shape, start.dtype, "c")))
    return pairs


def _assign(names: list[Tile], values: list[Tile]) -> list[str]:
    left = ", ".join(tile.name for tile in names)
    right = ", ".join(tile.name for tile in values)
    return [f"{left} = {right}"]


def _indented(ops: list[Op]) -> list[str]:
    return [f"    {line}" for line in lines_of(ops)]


def _bound(program: Program, value: int) -> tuple[str, Callable[[Machine], np.ndarray]]:
    """A number of a loop: constant, an argument, or different in each program."""
    rng = program.rng
    kind = rng.choice(["constant", "argument", "argument", "program"])
    if program.pure:
        kind = "constant"
    if kind == "argument":
        argument = program.argument(number=value)
        return argument.name, lambda machine: np.full(machine.programs, value)
    if kind == "program" and program.config.programs > 1:
        program.used.add(program.pid.id)
        return f"({value} - pid % 2)", lambda machine: value - np.arange(machine.programs) % 2
    return str(value), lambda machine: np.full(machine.programs, value)


def _finish_loop(
    program: Program,
    pairs: list[tuple[Tile, Tile]],
    lines: Callable[[], list[str]],
    run: Callable[[Machine], None],
    before: tuple,
) -> None:
    """Runs a loop that has been drawn, and shows what it leaves."""
    program.rewind(before)
    program.emit(Op(lines, run))
    program.visible.extend(variable for _, variable in pairs)


def _near_the_ends(rng: random.Random) -> tuple[int, int, int, int]:
    """Start, end, step and trips of a loop whose last step would pass the largest int32, or that starts at the least."""
    most = 2**31 - 1
    step = rng.choice([1, 3, 7, 1000, 2**29, 2**30 + 1])
    trips = rng.randint(1, 3)
    if rng.random() < 0.3:
        start = 1 - most
        return start, min(start + trips * step, most), step, trips
    start = most - trips * step + rng.randrange(step)
    return start, most - rng.randrange(min(step, 2)), step, trips


def for_loop(program: Program) -> None:
    _limit(program)
    rng = program.rng
    trips = rng.choice([0, 1, 2, 2, 3, 3, 4, 5])
    step = rng.choice([1, 1, 1, 2, 3, -1, -2, 7])
    start = rng.choice([0, 0, 0, 1, -2, 5, 100])
    end = start + trips * step - rng.choice([0, 0, 1 if step > 1 else 0])
    if rng.random() < 0.15:
        start, end, step, trips = _near_the_ends(rng)
    if program.trips * max(trips, 1) > MOST_TRIPS:
        raise Refused("too many trips")
    start_text, start_of = _bound(program, start)
    end_text, end_of = _bound(program, end)
    if step < 0:
        start_text, end_text = str(start), str(start + trips * step)
        start_of = lambda machine: np.full(machine.programs, start)  # noqa: E731
        end_of = lambda machine: np.full(machine.programs, start + trips * step)  # noqa: E731
    pairs = _carried(program)
    induction = program.tile((), I32, "i")
    variables = [variable for _, variable in pairs]
    heads = ["range({})"] * 3 + [
        "tl.range({}, num_stages={stages})",
        "tl.range({}, loop_unroll_factor=2)",
    ]
    if step == 1 and start_text.lstrip("-").isdigit() and end_text.lstrip("-").isdigit():
        heads.append("tl.static_range({})")
    head = rng.choice(heads).replace("{stages}", str(rng.randint(1, 4)))
    bounds = f"{start_text}, {end_text}" if step == 1 else f"{start_text}, {end_text}, {step}"
    static = "static" in head
    saved = program.machine.snapshot()
    outer_trips, program.trips = program.trips, program.trips * max(trips, 1)
    with program.block() as body:
        machine = program.machine
        for first, variable in pairs:
            machine.values[variable.id] = machine.values[first.id]
        machine.values[induction.id] = Value(start_of(machine).astype(np.int32), I32)
        program.visible += variables + ([] if static else [induction])
        # A loop that is written out has no jumps.
        with program.in_loop(None if static else Loop(variables, induction)):
            _inner_steps(program, 4)
        results = [_like(program, variable) for variable in variables]
        body = program.ops
    program.trips = outer_trips

    def run(machine: Machine) -> None:
        here = machine.active
        starts, ends = start_of(machine), end_of(machine)
        counts = np.maximum(0, -(-(ends - starts) // step))
        for first, variable in pairs:
            machine.values[variable.id] = machine.values[first.id]
        with machine.looping() as inside:
            for trip in range(int(counts.max())):
                inside.next_trip(here & (trip < counts))
                machine.values[induction.id] = Value((starts + trip * step).astype(np.int32), I32)
                for op in body:
                    op.run(machine)
                _carry(machine, variables, results)
        machine.active = here

    def lines() -> list[str]:
        inside = [*_indented(body), *(f"    {line}" for line in _assign(variables, results))]
        loop = f"for {induction.name} in {head.format(bounds)}:"
        return [*_assign(variables, [first for first, _ in pairs]), loop, *inside]

    _finish_loop(program, pairs, lines, run, saved)


def _carry(machine: Machine, variables: list[Tile], results: list[Tile]) -> None:
    new = [machine.values[result.id] for result in results]
    for variable, value in zip(variables, new, strict=True):
        machine.values[variable.id] = merged(machine.active, value, machine.values[variable.id])


def _limit(program: Program) -> None:
    if program.depth > 2:
        raise Refused("deep enough")


def while_loop(program: Program) -> None:
    _limit(program)
    rng = program.rng
    trips = rng.choice([0, 1, 2, 3, 4])
    if program.trips * max(trips, 1) > MOST_TRIPS:
        raise Refused("too many trips")
    limit_text, limit_of = _bound(program, trips)
    pairs = _carried(program)
    variables = [variable for _, variable in pairs]
    counter = program.tile((), I32, "n")
    saved = program.machine.snapshot()
    outer_trips, program.trips = program.trips, program.trips * max(trips, 1)
    with program.block():
        machine = program.machine
        for first, variable in pairs:
            machine.values[variable.id] = machine.values[first.id]
        machine.values[counter.id] = Value(np.zeros(machine.programs, np.int32), I32)
        program.visible += [*variables, counter]
        with program.in_loop(Loop(variables, counter, [f"{counter.name} += 1"])):
            _inner_steps(program, 3)
        results = [_like(program, variable) for variable in variables]
        body = program.ops
    program.trips = outer_trips

    def run(machine: Machine) -> None:
        here, limits = machine.active, limit_of(machine)
        for first, variable in pairs:
            machine.values[variable.id] = machine.values[first.id]
        with machine.looping() as inside:
            for trip in range(max(0, int(limits.max()))):
                inside.next_trip(here & (trip < limits))
                machine.values[counter.id] = Value(np.full(machine.programs, trip, np.int32), I32)
                for op in body:
                    op.run(machine)
                _carry(machine, variables, results)
        machine.active = here

    def lines() -> list[str]:
        return [
            *_assign(variables, [first for first, _ in pairs]),
            f"{counter.name} = 0",
            f"while {counter.name} < {limit_text}:",
            *_indented(body),
            *(f"    {line}" for line in _assign(variables, results)),
            f"    {counter.name} += 1",
        ]

    _finish_loop(program, pairs, lines, run, saved)


def branch(program: Program) -> None:
    _limit(program)
    rng = program.rng
    text, test_of = condition(program)
    pairs = _carried(program)
    variables = [variable for _, variable in pairs]
    two = rng.random() < 0.5
    saved = program.machine.snapshot()
    machine = program.machine
    bodies: list[list[Op]] = []
    results: list[list[Tile]] = []
    for side in range(1 + two):
        with program.block():
            for first, variable in pairs:
                machine.values[variable.id] = machine.values[first.id]
            program.visible += variables
            _inner_steps(program, 2, 10 * side)
            results.append([_like(program, variable) for variable in variables])
            bodies.append(program.ops)

    def run(machine: Machine) -> None:
        here, test = machine.active, test_of(machine)
        for first, variable in pairs:
            machine.values[variable.id] = machine.values[first.id]
        for body, result, active in zip(bodies, results, (test, ~test), strict=False):
            machine.active = here & active
            for op in body:
                op.run(machine)
            _carry(machine, variables, result)
        machine.active = machine.staying(here)

    def lines() -> list[str]:
        result = [*_assign(variables, [first for first, _ in pairs]), f"if {text}:"]
        for index, (body, tiles) in enumerate(zip(bodies, results, strict=True)):
            result += ["else:"] if index else []
            result += [*_indented(body), *(f"    {line}" for line in _assign(variables, tiles))]
        return result

    _finish_loop(program, pairs, lines, run, saved)


def call(program: Program) -> None:
    """A function of the program, called once or twice."""
    if program.depth > 1:
        raise Refused("deep enough")
    rng = program.rng
    arguments = [program.pick() for _ in range(rng.randint(1, 3))]
    parameters = [program.tile(a.shape, a.dtype, "p") for a in arguments]
    saved, pure = program.machine.snapshot(), program.pure
    hidden = program.visible
    with program.block():
        program.pure = True
        machine = program.machine
        for parameter, argument in zip(parameters, arguments, strict=True):
            machine.values[parameter.id] = machine.values[argument.id]
        program.visible = list(parameters)
        with program.in_loop(None):
            _inner_steps(program, 3)
        shown = program.step.path + "."
        results = [
            t for t in program.visible if t.step.startswith(shown) and program.value(t).all_known
        ]
        results = results[-2:] or [_like(program, parameters[0])]
        body = program.ops
        program.pure = pure
    program.visible = hidden
    program.rewind(saved)
    name = f"f{program.step.path.replace('.', '_')}"
    program.functions[name] = Function(name, parameters, body, results)
    call_function(program, program.functions[name], arguments)
    if rng.random() < 0.4:
        others = [
            program.pick(lambda t, p=parameter: t.shape == p.shape and t.dtype == p.dtype)
            for parameter in parameters
        ]
        call_function(program, program.functions[name], others)


def call_function(program: Program, function: Function, arguments: list[Tile]) -> None:
    outs = [program.tile(result.shape, result.dtype, "r") for result in function.results]

    def run(machine: Machine) -> None:
        for parameter, argument in zip(function.parameters, arguments, strict=True):
            machine.values[parameter.id] = machine.values[argument.id]
        for op in function.body:
            op.run(machine)
        for out, result in zip(outs, function.results, strict=True):
            machine.values[out.id] = machine.values[result.id]

    names = ", ".join(argument.name for argument in arguments)
    line = f"{', '.join(out.name for out in outs)} = {function.name}({names})"
    program.used.update(argument.id for argument in arguments)
    program.emit(Op(lambda: [line], run))
    program.visible.extend(outs)
