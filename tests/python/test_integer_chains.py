"""Random chains of integer operations over every integer type, near the edges of all of them, against exact integers.

The chains take their operands from memory, of which nothing is known, and from ranges, masks, conversions and numbers,
of which much is: what the compiler concludes from ranges must hold for every value in them.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from integer_model import NAMES, binary, bits_of, edges, is_signed, unary, wrap
from kernel_support import assert_same
from language_support import OUR_HEADER, load_source

BINARY = ("+", "-", "*", "//", "%", "&", "|", "^", "<<", ">>", "minimum", "maximum")
PROGRAM, TRIPS = 2, 3
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


class Chain:
    """The text of a kernel, and what each of its values must be."""

    def __init__(self, seed: int, size: int, steps: int) -> None:
        self.random = random.Random(seed)
        self.size = size
        self.lines: list[str] = []
        self.values: list[tuple[str, str, list[int]]] = []
        self.inputs: dict[str, np.ndarray] = {}
        self.numbers: dict[str, int] = {}
        for _ in range(3):
            self.load()
        self.add("tl.arange(0, N)", "int32", list(range(size)))
        self.add("tl.program_id(0)", "int32", [PROGRAM] * size)
        # 1 would be known while compiling, and smaller numbers are of smaller types.
        self.number(self.random.choice([v for v in edges("int32") if v != 1]), "int32")
        self.number(self.random.choice([v for v in edges("int64") if abs(v) > 2**32]), "int64")
        self.number(self.random.choice([v for v in edges("uint64") if v >= 2**63]), "uint64")
        for _ in range(steps):
            self.step()

    def add(self, text: str, name: str, value: list[int]) -> None:
        variable = f"v{len(self.values)}"
        self.lines.append(f"{variable} = {text}")
        self.values.append((variable, name, value))

    def number(self, value: int, name: str) -> None:
        """An argument of the kernel, whose type its value decides."""
        argument = f"number{len(self.numbers)}"
        self.numbers[argument] = value
        self.add(argument, name, [value] * self.size)

    def load(self) -> None:
        name = self.random.choice(NAMES)
        info = np.iinfo(name)
        near = edges(name)
        value = [
            self.random.choice(near)
            if self.random.random() < 0.8
            else self.random.randint(info.min, info.max)
            for _ in range(self.size)
        ]
        argument = f"in{len(self.inputs)}"
        self.inputs[argument] = np.array(value, name)
        if self.random.random() < 0.3:
            self.add(f"tl.load({argument} + 1)", name, [value[1]] * self.size)
        else:
            self.add(f"tl.load({argument} + tl.arange(0, N))", name, value)

    def operand(self, name: str) -> tuple[str, list[int]]:
        """A value, converted to a type; or a number of the type."""
        if self.random.random() < 0.35:
            number = self.random.choice(edges(name))
            if self.random.random() < 0.3:
                number = self.random.randint(0, min(70, np.iinfo(name).max))
            return str(number), [number] * self.size
        variable, _, value = self.random.choice(self.values[-6:])
        return f"{variable}.to(tl.{name})", [wrap(name, v) for v in value]

    def typed(self, name: str) -> tuple[str, list[int]]:
        variable, _, value = self.random.choice(self.values[-6:])
        return f"{variable}.to(tl.{name})", [wrap(name, v) for v in value]

    def step(self) -> None:
        # Most in 64 bits, where the compiler looks for what 32 suffice for.
        name = self.random.choice((*NAMES, "int64", "int64", "int64", "uint64"))
        a_text, a = self.typed(name)
        kind = self.random.random()
        if kind < 0.1:
            op = self.random.choice(("-", "~", "abs"))
            text = f"tl.abs({a_text})" if op == "abs" else f"{op}({a_text})"
            return self.add(text, name, [unary(name, op, x) for x in a])
        b_text, b = self.operand(name)
        if self.random.random() < 0.2:
            a_text, a, b_text, b = b_text, b, a_text, a
            if a_text.lstrip("-").isdigit():
                a_text = f"tl.full((), {a_text}, tl.{name})"
        if kind < 0.25:
            op = self.random.choice(COMPARISONS)
            holds = [binary(name, op, x, y) for x, y in zip(a, b, strict=True)]
            value = [x if c else wrap(name, y + 1) for c, x, y in zip(holds, a, b, strict=True)]
            b_typed = (
                f"tl.full((), {b_text}, tl.{name})" if b_text.lstrip("-").isdigit() else b_text
            )
            return self.add(
                f"tl.where({a_text} {op} {b_text}, {a_text}, {b_typed} + 1)", name, value
            )
        if kind < 0.35:
            op = self.random.choice(("+", "-", "*", "//", "<<", ">>", "^"))
            name_, before = f"v{len(self.values)}", f"{a_text} + tl.zeros((N,), tl.{name})"
            self.lines.append(f"{name_} = {before}")
            self.lines.append("for _ in range(trips):")
            self.lines.append(f"    {name_} = {name_} {op} {b_text}")
            for _ in range(TRIPS):
                a = [binary(name, op, x, y) for x, y in zip(a, b, strict=True)]
            return self.add(name_, name, a)
        op = self.random.choice(BINARY + (("umulhi",) if bits_of(name) >= 32 else ()))
        text = f"tl.{op}({a_text}, {b_text})" if op.isalpha() else f"{a_text} {op} {b_text}"
        return self.add(text, name, [binary(name, op, x, y) for x, y in zip(a, b, strict=True)])

    def source(self) -> str:
        outputs = [f"out{i}" for i in range(len(self.values))]
        arguments = ", ".join([*self.inputs, "signed", "unsigned", "trips", *self.numbers])
        text = f"@triton.jit\ndef chain({arguments}, N: tl.constexpr):\n"
        text += "".join(f"    {line}\n" for line in self.lines)
        for index, (variable, name, _) in enumerate(self.values):
            side = "signed" if is_signed(name) else "unsigned"
            wide = f"{variable} + tl.zeros((N,), tl.{name})"
            text += f"    {outputs[index]} = ({wide}).to({side}.dtype.element_ty)\n"
            text += f"    inside = tl.program_id(0) + tl.zeros((N,), tl.int32) == {PROGRAM}\n"
            text += f"    tl.store({side} + {index} * N + tl.arange(0, N), {outputs[index]}, mask=inside)\n"
        return text


@pytest.mark.own_check("divides by zero, and takes remainders of negative numbers")
@pytest.mark.parametrize("seed", range(20))
def test_chains_of_integers(seed: int, tmp_path: Path) -> None:
    chain = Chain(seed, size=(32, 128, 512)[seed % 3], steps=16)
    kernel: Any = load_source(tmp_path, chain.source(), OUR_HEADER).chain
    count = len(chain.values)
    signed = np.zeros((count, chain.size), np.int64)
    unsigned = np.zeros((count, chain.size), np.uint64)
    arguments = [*chain.inputs.values(), signed, unsigned, TRIPS, *chain.numbers.values()]
    kernel[(PROGRAM + 1,)](*arguments, N=chain.size, num_warps=1)
    for index, (variable, name, value) in enumerate(chain.values):
        out, wide = (signed, np.int64) if is_signed(name) else (unsigned, np.uint64)
        try:
            assert_same(out[index], np.array(value, wide))
        except AssertionError as error:
            text = "\n".join(chain.lines)
            raise AssertionError(f"{variable} ({name}) of\n{text}\n{error}") from None
