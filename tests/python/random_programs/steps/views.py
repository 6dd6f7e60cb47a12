"""Shapes: the same elements elsewhere, or several times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..arithmetic import Value
from ..dtypes import Refused
from ..program import LARGEST, Program


def moved(function: Callable[[np.ndarray], np.ndarray]) -> Callable[[Value], Value]:
    """A function of arrays (with the programs in front) as one of values."""

    def apply(value: Value) -> Value:
        known = None if value.known is None else function(value.known)
        return Value(np.ascontiguousarray(function(value.data)), value.dtype, known)

    return apply


def permute(program: Program) -> None:
    a = program.pick(lambda t: len(t.shape) > 1, unknown=True)
    rank, rng = len(a.shape), program.rng
    order = list(range(rank))
    rng.shuffle(order)
    if rng.random() < 0.4:
        order = [*range(rank - 2), rank - 1, rank - 2]
        text = rng.choice(["tl.trans({0})", "{0}.trans()"]) if rank == 2 else "tl.trans({0})"
        if rank > 2:
            text = f"tl.trans({{0}}, {', '.join(map(str, order))})"
    else:
        text = f"tl.permute({{0}}, {tuple(order)})"
    axes = (0, *(axis + 1 for axis in order))
    program.compute(text, moved(lambda x: x.transpose(axes)), a)


def reshape(program: Program) -> None:
    a = program.pick(lambda t: t.shape != (), unknown=True)
    rng = program.rng
    candidates = [s for s in program.shapes if s and np.prod(s) == a.size and s != a.shape]
    if candidates and rng.random() < 0.6:
        shape = rng.choice(candidates)
    else:
        bits = a.size.bit_length() - 1
        sizes = [0] * rng.choice([1, 1, 2, 2, 3, 4])
        for _ in range(bits):
            sizes[rng.randrange(len(sizes))] += 1
        shape = tuple(1 << size for size in sizes)
    text = f"tl.reshape({{0}}, {shape})"
    if len(shape) == 1 and rng.random() < 0.3:
        text = "tl.ravel({0})"
    program.compute(text, moved(lambda x: x.reshape((x.shape[0], *shape))), a)


def expand(program: Program) -> None:
    a = program.pick(lambda t: 0 < len(t.shape) < 4, unknown=True)
    axis = program.rng.randint(0, len(a.shape))
    if program.rng.random() < 0.5:
        index = [":"] * len(a.shape)
        index.insert(axis, "None")
        text = f"{{0}}[{', '.join(index)}]"
    else:
        text = f"tl.expand_dims({{0}}, {axis})"
    tile = program.compute(text, moved(lambda x: np.expand_dims(x, axis + 1)), a)
    if program.rng.random() < 0.6 and a.size * 2 <= LARGEST // 4:
        size = program.rng.choice([2, 4, 8])
        shape = tuple(size if i == axis else s for i, s in enumerate(tile.shape))
        if np.prod(shape) <= 1024:
            program.compute(
                f"tl.broadcast_to({{0}}, {shape})",
                moved(lambda x: np.broadcast_to(x, (x.shape[0], *shape))),
                tile,
            )


def broadcast(program: Program) -> None:
    a = program.pick(lambda t: 1 in t.shape, unknown=True)
    size = program.rng.choice([2, 4, 16, 32])
    shape = tuple(size if s == 1 else s for s in a.shape)
    if np.prod(shape) > 1024:
        raise Refused("too large")
    program.compute(
        f"tl.broadcast_to({{0}}, {shape})",
        moved(lambda x: np.broadcast_to(x, (x.shape[0], *shape))),
        a,
    )


STEPS: list[Any] = [permute, reshape, expand, broadcast]
