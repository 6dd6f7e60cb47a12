"""Conditions of branches and jumps: one number in each program."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import arithmetic as m
from ..arithmetic import sure
from ..dtypes import BOOL
from ..machine import Machine
from ..program import Program


def condition(program: Program) -> tuple[str, Callable[[Machine], np.ndarray]]:
    rng = program.rng
    kind = rng.choice(["program", "argument", "scalar", "scalar"])
    if program.pure:
        kind = "scalar"
    if kind == "program":
        program.used.add(program.pid.id)
        return "pid % 2 == 0", lambda machine: np.arange(machine.programs) % 2 == 0
    if kind == "argument":
        value = rng.choice([0, 1, 5])
        argument = program.argument(number=value)
        return f"{argument.name} > 2", lambda machine: np.full(machine.programs, value > 2)
    scalar = program.pick(lambda t: t.shape == ())
    compare: dict[str, Any] = {
        "<": operator.lt,
        ">": operator.gt,
        "==": operator.eq,
        "!=": operator.ne,
    }
    sign = rng.choice(list(compare))
    number: Any = 3 if scalar.dtype != BOOL else True

    def test(machine: Machine) -> np.ndarray:
        return sure(m.comparison(compare[sign])(machine.values[scalar.id], number)).data

    return f"{scalar.name} {sign} {number}", test
