"""A program while it is drawn: its operations, its tiles, its arguments.

Steps are named by paths ("3", "3.1" for one in the body of step 3), and draw from generators of their own, so that a program
without a step is otherwise the same program.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from .arithmetic import Value
from .dtypes import I32, DType, Refused
from .machine import Machine, Memory

LARGEST = 4096


@dataclass(frozen=True)
class Tile:
    """A variable of the kernel."""

    id: int
    name: str
    shape: tuple[int, ...]
    dtype: DType
    step: str
    order: int

    @property
    def size(self) -> int:
        return math.prod(self.shape)


@dataclass
class Op:
    """Some lines of the kernel, and what they do."""

    lines: Callable[[], list[str]]
    run: Callable[[Machine], None]


@dataclass
class Argument:
    """A parameter of the kernel: an array from one of its elements on, or a number."""

    name: str
    array: str | None = None  # the name of the memory
    offset: int = 0
    number: Any = None
    annotation: str = ""


@dataclass
class Config:
    """How the kernel is launched."""

    num_warps: int = 1
    num_stages: int = 2
    grid: tuple[int, ...] = (1,)
    schedule: int | None = None
    check: str | None = None
    processor: str | None = None  # what the host device compiles for; None: the host's own

    @property
    def programs(self) -> int:
        return math.prod(self.grid)

    @property
    def seed(self) -> int | None:
        """Of what a portable launch draws: here, subnormal numbers stay what they are."""
        return 1 if self.check == "portable" else None


@dataclass
class Function:
    """A device function of the program."""

    name: str
    parameters: list[Tile]
    body: list[Op]
    results: list[Tile]
    helper: str = ""  # the text of a combine function


@dataclass
class Draw:
    """Where a step's choices come from."""

    path: str
    rng: random.Random
    picks: int = 0


class Program:
    def __init__(self, seed: int, config: Config, removed: frozenset[str] = frozenset()) -> None:
        self.seed, self.config, self.removed = seed, config, removed
        self.machine = Machine(config.programs)
        self.initial: dict[str, np.ndarray] = {}
        self.written: set[str] = set()
        self.spans: dict[str, int] = {}
        self.arguments: list[Argument] = []
        self.ops: list[Op] = []
        self.visible: list[Tile] = []
        self.used: set[int] = set()
        self.functions: dict[str, Function] = {}
        self.steps: list[str] = []
        self.depth = 0
        self.trips = 1
        self.dots = False
        self.pure = False  # in a device function: no memory, no arguments
        self.loop: Any = None  # the innermost loop (a steps.jumps.Loop), if it can be left
        self.palette: list[DType] = []
        self.shapes: list[tuple[int, ...]] = []
        self.step = Draw("", random.Random(seed))
        self.count = 0
        self.places: dict[str, int] = {}

    # --- Drawing -----------------------------------------------------------------------------------

    @property
    def rng(self) -> random.Random:
        return self.step.rng

    def pick(
        self, where: Callable[[Tile], bool] = lambda tile: True, unknown: bool = False
    ) -> Tile:
        """A tile, late ones more likely; others being there or not changes nothing.

        Only with `unknown` is it one with elements that may be anything.
        """
        self.step.picks += 1
        best, lowest = None, math.inf
        for tile in self.visible:
            value = self.machine.values[tile.id]
            if not value.exact or (not unknown and value.known is not None) or not where(tile):
                continue
            text = f"{self.seed}/{self.step.path}/{self.step.picks}/{tile.step}/{tile.order}"
            digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
            uniform = (int.from_bytes(digest, "big") + 1) / 2**64
            distance = abs(int(self.step.path.split(".")[0]) - int(tile.step.split(".")[0]))
            depth = 0.4 if tile.step.count(".") < self.step.path.count(".") else 1.0
            key = -math.log(uniform) * (1 + distance) / depth
            if key < lowest:
                best, lowest = tile, key
        if best is None:
            raise Refused("no such tile")
        self.used.add(best.id)
        return best

    def value(self, tile: Tile) -> Value:
        return self.machine.values[tile.id]

    @contextmanager
    def drawing(self, path: str) -> Iterator[None]:
        """Choices in this block are those of a step."""
        before = self.step
        self.step = Draw(path, random.Random(f"{self.seed}/{path}"))
        try:
            yield
        finally:
            self.step = before

    def attempt(self, path: str, step: Callable[[Program], None]) -> bool:
        """Adds what a step draws; nothing if it finds that it cannot."""
        if path in self.removed:
            return False
        before = self._state()
        with self.drawing(path), np.errstate(all="ignore"):
            try:
                step(self)
            except Refused:
                self._restore(before)
                return False
        self.steps.append(path)
        return True

    def _state(self) -> tuple:
        return (
            self.machine.snapshot(),
            list(self.ops),
            list(self.visible),
            set(self.used),
            list(self.arguments),
            dict(self.initial),
            set(self.written),
            dict(self.spans),
            dict(self.functions),
            list(self.steps),
            (self.depth, self.trips, self.pure, self.loop),
            dict(self.places),
        )

    def _restore(self, state: tuple) -> None:
        self.machine.restore(state[0])
        self.ops[:] = state[1]
        (
            self.visible,
            self.used,
            self.arguments,
            self.initial,
            self.written,
            self.spans,
            self.functions,
            self.steps,
        ) = state[2:10]
        self.depth, self.trips, self.pure, self.loop = state[10]
        self.places = state[11]

    # --- Adding ------------------------------------------------------------------------------------

    def tile(self, shape: Sequence[int], dtype: DType, prefix: str = "v") -> Tile:
        """A fresh variable."""
        self.count += 1
        place = self.places[self.step.path] = self.places.get(self.step.path, 0) + 1
        name = f"{prefix}{self.step.path.replace('.', '_')}_{place}"
        return Tile(self.count, name, tuple(shape), dtype, self.step.path, place)

    def emit(self, op: Op) -> None:
        self.ops.append(op)
        op.run(self.machine)

    def compute(
        self,
        text: str,
        function: Callable[..., Value],
        *operands: Tile,
        dtype: DType | None = None,
    ) -> Tile:
        """A variable that is a function of others; {0}, {1}, ... stand for them."""
        value = function(*(self.value(operand) for operand in operands))
        if math.prod(value.shape) > LARGEST:
            raise Refused("too large")
        tile = self.tile(value.shape, value.dtype)
        line = f"{tile.name} = {text.format(*(operand.name for operand in operands))}"

        def run(machine: Machine) -> None:
            machine.values[tile.id] = function(*(machine.values[o.id] for o in operands))

        self.used.update(operand.id for operand in operands)
        self.emit(Op(lambda: [line], run))
        self.visible.append(tile)
        return tile

    @contextmanager
    def block(self) -> Iterator[list[Op]]:
        """Operations that are added in this block are the body of another one."""
        outer, visible = self.ops, list(self.visible)
        self.ops = []
        self.depth += 1
        try:
            yield self.ops
        finally:
            self.ops, self.visible = outer, visible
            self.depth -= 1

    @contextmanager
    def in_loop(self, loop: Any) -> Iterator[None]:
        """Jumps that are drawn in this block leave this loop; with None there are none."""
        outer, self.loop = self.loop, loop
        try:
            yield
        finally:
            self.loop = outer

    def array(self, dtype: DType, data: np.ndarray, span: int) -> str:
        """Memory, of which each program has `span` elements of its own."""
        name = f"m{self.step.path.replace('.', '_')}_{len(self.initial)}"
        self.initial[name] = data
        self.machine.memory[name] = Memory.of(dtype, data)
        self.spans[name] = span
        return name

    def rewind(self, snapshot: tuple) -> None:
        """Back to what values and memory were; arrays that are newer than that become as they began."""
        newer = {n: a.dtype for n, a in self.machine.memory.items() if n not in snapshot[1]}
        self.machine.restore(snapshot)
        for name, dtype in newer.items():
            self.machine.memory[name] = Memory.of(dtype, self.initial[name])

    def argument(self, **fields: Any) -> Argument:
        # What is left is for the results, an array for each dtype.
        if self.step.path != "out" and sum(a.array is not None for a in self.arguments) > 15:
            raise Refused("too many buffers")
        argument = Argument(f"a{self.step.path.replace('.', '_')}_{len(self.arguments)}", **fields)
        self.arguments.append(argument)
        return argument

    def place(self) -> None:
        """Makes the program's number in the grid a tile."""
        tile = Tile(self.count, "pid", (), I32, "0", 0)
        self.machine.values[tile.id] = Value(np.arange(self.config.programs, dtype=np.int32), I32)
        self.visible.append(tile)
        self.pid = tile

    def head(self) -> list[str]:
        text = "pid = tl.program_id(0)"
        for axis in range(1, len(self.config.grid)):
            sizes = " * ".join(f"tl.num_programs({before})" for before in range(axis))
            text += f" + tl.program_id({axis}) * {sizes}"
        return [text]

    # --- The text ----------------------------------------------------------------------------------

    def text(self) -> str:
        """The kernel and the functions that it calls."""
        parts = []
        for function in self.functions.values():
            if function.helper:
                parts.append(function.helper)
                continue
            parameters = ", ".join(parameter.name for parameter in function.parameters)
            results = ", ".join(result.name for result in function.results)
            body = [*lines_of(function.body), f"return {results}"]
            parts.append(_function(function.name, parameters, body))
        names = [f"{a.name}{a.annotation and ': ' + a.annotation}" for a in self.arguments]
        body = lines_of(self.ops) or ["pass"]
        parts.append(_function("kernel", ", ".join(names), [*self.head(), *body]))
        return "\n\n".join(parts)


def _function(name: str, parameters: str, body: list[str]) -> str:
    return f"@triton.jit\ndef {name}({parameters}):\n" + "".join(f"    {line}\n" for line in body)


def lines_of(ops: list[Op]) -> list[str]:
    return [line for op in ops for line in op.lines()]
