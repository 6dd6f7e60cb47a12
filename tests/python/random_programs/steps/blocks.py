"""Block pointers and tensor descriptors: tensors that end within a block, and blocks that begin outside of them."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

from .. import arithmetic as m
from ..arithmetic import Value
from ..dtypes import BOOL, DType, Refused
from ..machine import Machine
from ..program import Op, Program, Tile
from .memory import draw_dtype, new_array
from .rows import number_text


@dataclass
class Tensor:
    """A tensor in memory, and a block that a loop moves over it."""

    block: tuple[int, ...]
    shape: list[int]
    strides: list[int]
    start: list[int]
    move: list[int]
    trips: int

    @property
    def rank(self) -> int:
        return len(self.block)

    @property
    def elements(self) -> int:
        return 1 + sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True))

    def places(self, trip: int) -> tuple[np.ndarray, np.ndarray]:
        """Where a block's elements are, and which of them are inside of the tensor."""
        places, inside = np.zeros(self.block, np.int64), np.ones(self.block, bool)
        for axis, grid in enumerate(np.indices(self.block)):
            index = grid + self.start[axis] + trip * self.move[axis]
            inside &= (index >= 0) & (index < self.shape[axis])
            places += index * self.strides[axis]
        return np.where(inside, places, 0), inside

    def is_inside(self, axis: int) -> bool:
        """Whether no block leaves the tensor along an axis."""
        starts = [self.start[axis] + trip * self.move[axis] for trip in range(self.trips)]
        return all(0 <= s and s + self.block[axis] <= self.shape[axis] for s in starts)


def _draw(rng: random.Random, dtype: DType, is_descriptor: bool) -> Tensor:
    rank = rng.choice([1, 1, 2, 2, 2, 3, 4])
    sizes = [0, 1, 2, 3, 4, 5] if rank < 3 else [0, 1, 2, 3]
    block = [1 << rng.choice(sizes) for _ in range(rank)]
    aligned = max(1, 128 // dtype.bits) if is_descriptor else 1
    if is_descriptor:
        block[-1] = max(block[-1], aligned)
    shape = [max(1, rng.choice([1, 3, 5, b - 1, b, b + 1, 2 * b, 2 * b + 1])) for b in block]
    order = list(range(rank))[::-1]
    if not is_descriptor:
        rng.shuffle(order)
    strides, step = [0] * rank, 1
    for axis in order:
        strides[axis] = step
        step = -(-(step * shape[axis] + rng.choice([0, 0, 1, 5])) // aligned) * aligned
    start = [
        rng.choice([0, 0, 0, 1, -1, -3, b, n - b, n, n + 2, -b])
        for b, n in zip(block, shape, strict=True)
    ]
    move = [rng.choice([0, 0, 1, b, b, -b, 3]) for b in block]
    return Tensor(tuple(block), shape, strides, start, move, rng.choice([0, 1, 1, 2, 3]))


def _texts(program: Program, numbers: list[int]) -> str:
    return ", ".join(number_text(program, number) for number in numbers)


def walk_blocks(program: Program) -> None:
    """Adds up the blocks of a tensor that a loop visits, and may change them in place."""
    if program.pure or program.depth:
        raise Refused("no loop here")
    rng, dtype = program.rng, draw_dtype(program)
    if dtype == BOOL:
        raise Refused("takes numbers")
    is_descriptor = rng.random() < 0.5
    tensor = _draw(rng, dtype, is_descriptor)
    span = -(-tensor.elements // 16) * 16
    if np.prod(tensor.block) > 2048 or span * program.config.programs > 6000:
        raise Refused("too large")
    argument = new_array(program, dtype, span, False)
    program.used.add(program.pid.id)
    base = f"{argument.name} + pid * {span}"
    shape, move = _texts(program, tensor.shape), _texts(program, tensor.move)
    start = [number_text(program, number) for number in tensor.start]
    trips = number_text(program, tensor.trips)
    padding = rng.choice(["zero", "nan"] if dtype.is_float else ["zero"])
    block, acc = program.tile(tensor.block, dtype, "b"), program.tile(tensor.block, dtype, "acc")
    writes = rng.random() < 0.5
    counter = f"k{block.name}"
    if is_descriptor:
        strides = _texts(program, tensor.strides[:-1])
        option = f", padding_option='{padding}'" if dtype.is_float else ""
        offsets = [f"o{axis}{block.name}" for axis in range(tensor.rank)]
        at = ", ".join(offsets)
        head = [
            f"d{block.name} = tl.make_tensor_descriptor({base}, [{shape}], [{strides + ', ' * bool(strides)}1], "
            f"{list(tensor.block)}{option})",
            *(f"{o} = tl.to_tensor({s}) + 0" for o, s in zip(offsets, start, strict=True)),
        ]
        load, store = f"d{block.name}.load([{at}])", f"d{block.name}.store([{at}], {acc.name})"
        step = [f"{o} += {by}" for o, by in zip(offsets, move.split(", "), strict=True)]
    else:
        checked = [a for a in range(tensor.rank) if not tensor.is_inside(a) or rng.random() < 0.3]
        checks = f"boundary_check={tuple(checked)}" if checked else ""
        option = f", padding_option='{padding}'" if checked else ""
        order = list(range(tensor.rank))
        rng.shuffle(order)
        strides = _texts(program, tensor.strides)
        head = [
            f"p{block.name} = tl.make_block_ptr({base}, ({shape},), ({strides},), ({', '.join(start)},), "
            f"{tensor.block}, {tuple(order)})"
        ]
        load = f"tl.load(p{block.name}, {checks}{option})"
        store = f"tl.store(p{block.name}, {acc.name}, {checks})"
        step = [f"p{block.name} = tl.advance(p{block.name}, ({move},))"]
    if dtype.is_float:
        text, add = f"tl.maximum({acc.name}, {block.name})", m.maximum
    else:
        text, add = f"{acc.name} * 3 + {block.name}", _thrice_and
    if writes:
        program.written.add(argument.array)
    lines = [
        *head,
        f"{acc.name} = tl.zeros({tensor.block}, {dtype.text})",
        f"for {counter} in range({trips}):",
        f"    {block.name} = {load}",
        f"    {acc.name} = {text}",
        *([f"    {store}"] if writes else []),
        *(f"    {line}" for line in step),
    ]
    fill = np.asarray(np.nan if padding == "nan" else 0, np.float32).astype(dtype.numpy)
    program.emit(
        Op(
            lambda: lines,
            lambda machine: _run(machine, tensor, argument.array, span, acc, fill, add, writes),
        )
    )
    program.visible.append(acc)


def _thrice_and(a: Value, b: Value) -> Value:
    return m.simple(np.add)(m.simple(np.multiply)(a, 3), b)


def _run(
    machine: Machine, tensor: Tensor, array: str, span: int, acc: Tile, fill, add, writes: bool
) -> None:
    pid = np.arange(machine.programs).reshape((-1, *([1] * tensor.rank)))
    value = Value(np.zeros((machine.programs, *tensor.block), acc.dtype.numpy), acc.dtype)
    for trip in range(tensor.trips):
        places, inside = tensor.places(trip)
        lanes = machine.lanes(tensor.block, inside[None])
        with np.errstate(all="ignore"):
            value = add(value, machine.load(array, places + pid * span, lanes, fill))
        if writes:
            machine.store(array, places + pid * span, lanes, value)
    machine.values[acc.id] = value
