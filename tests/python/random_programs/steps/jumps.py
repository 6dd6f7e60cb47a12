"""break and continue: programs leave a loop, or a trip of it, each where its own numbers say so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from .. import arithmetic as m
from ..dtypes import Refused
from ..machine import Machine, merged
from ..program import Op, Program, Tile
from .conditions import condition


@dataclass
class Loop:
    """The loop whose body is being drawn."""

    variables: list[Tile]
    induction: Tile
    before_continue: list[str] = field(default_factory=list)  # what the end of the body would do


def jump(program: Program) -> None:
    """if ...: [a variable of the loop becomes another tile;] break or continue"""
    loop = program.loop
    if loop is None:
        raise Refused("not in a loop")
    rng = program.rng
    leaves = rng.random() < 0.5
    if rng.random() < 0.5:
        trip = rng.choice([0, 1, 1, 2])
        sign = rng.choice(["==", ">"])
        text, test = _at_trip(program, loop, sign, trip)
    else:
        text, test = condition(program)
    changed: tuple[Tile, Tile] | None = None
    if rng.random() < 0.5:
        variable = rng.choice(loop.variables)
        value = program.pick(lambda t: t.shape == variable.shape and t.dtype == variable.dtype)
        if value.id != variable.id:
            changed = (variable, value)
    sign, change = "", None
    if changed is not None and rng.random() < 0.4:
        sign, change = ("-", m.negate) if changed[0].dtype.is_float else ("~", m.invert)

    def run(machine: Machine) -> None:
        here = machine.active & test(machine)
        if changed:
            new, old = (machine.values[tile.id] for tile in (changed[1], changed[0]))
            if change:
                new = change(new)
            machine.values[changed[0].id] = merged(here, new, old)
        machine.jump(here, leaves)

    def lines() -> list[str]:
        body = [f"{changed[0].name} = {sign}{changed[1].name}"] if changed else []
        body += ["break"] if leaves else [*loop.before_continue, "continue"]
        return [f"if {text}:", *(f"    {line}" for line in body)]

    program.emit(Op(lines, run))


def _at_trip(
    program: Program, loop: Loop, sign: str, trip: int
) -> tuple[str, Callable[[Machine], np.ndarray]]:
    """The loop's own number against that of one of its first trips."""
    first = int(program.machine.values[loop.induction.id].data.reshape(-1)[0])
    number = first + trip
    if not -(2**31) <= number < 2**31:
        raise Refused("the number is no int32")

    def test(machine: Machine) -> np.ndarray:
        now = machine.values[loop.induction.id].data.reshape(-1)
        return now == number if sign == "==" else now > number

    return f"{loop.induction.name} {sign} {number}", test
