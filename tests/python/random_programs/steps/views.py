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


def paired(function: Callable[..., np.ndarray]) -> Callable[..., Value]:
    """A function of several arrays of one dtype as one of values."""

    def apply(*values: Value) -> Value:
        known = None
        if any(value.known is not None for value in values):
            known = function(
                *(np.ones(v.data.shape, bool) if v.known is None else v.known for v in values)
            )
        data = function(*(value.data for value in values))
        return Value(np.ascontiguousarray(data), values[0].dtype, known)

    return apply


def join(program: Program) -> None:
    """Two tiles in one: side by side, one after the other, or alternating."""
    a = program.pick(lambda t: 0 < len(t.shape) < 4, unknown=True)
    b = program.pick(lambda t: t.shape == a.shape and t.dtype == a.dtype, unknown=True)
    kind = program.rng.choice(["join", "cat", "interleave"])
    if kind == "join":
        program.compute("tl.join({0}, {1})", paired(lambda x, y: np.stack([x, y], -1)), a, b)
    elif kind == "cat":
        dim = program.rng.randrange(len(a.shape))
        program.compute(
            f"tl.cat({{0}}, {{1}}, dim={dim})",
            paired(lambda x, y: np.concatenate([x, y], dim + 1)),
            a,
            b,
        )
    else:
        shape = (*a.shape[:-1], 2 * a.shape[-1])
        program.compute(
            "tl.interleave({0}, {1})",
            paired(lambda x, y: np.stack([x, y], -1).reshape((x.shape[0], *shape))),
            a,
            b,
        )


def split(program: Program) -> None:
    """Every second element."""
    a = program.pick(lambda t: t.shape != () and t.shape[-1] > 1, unknown=True)
    shape = (*a.shape[:-1], a.shape[-1] // 2, 2)
    if len(shape) > 4:
        raise Refused("too many dimensions")
    half = program.rng.randrange(2)
    program.compute(
        f"tl.split(tl.reshape({{0}}, {shape}))[{half}]",
        moved(lambda x: x.reshape((x.shape[0], *shape))[..., half]),
        a,
    )


def gather(program: Program) -> None:
    """Elements of a tile that another tile chooses."""
    a = program.pick(lambda t: t.shape != (), unknown=True)
    axis = program.rng.randrange(len(a.shape))
    size = a.shape[axis]

    def fits(tile: Any) -> bool:
        return (
            tile.dtype.is_int
            and tile.dtype.bits >= 8
            and len(tile.shape) == len(a.shape)
            and size <= 2 ** (tile.dtype.bits - 1)
            and all(
                s == t
                for i, (s, t) in enumerate(zip(a.shape, tile.shape, strict=True))
                if i != axis
            )
        )

    index = program.pick(fits)

    def choose(x: Value, places: Value) -> Value:
        at = (places.data & places.dtype.numpy.type(size - 1)).astype(np.int64)
        known = None if x.known is None else np.take_along_axis(x.known, at, axis + 1)
        return Value(np.take_along_axis(x.data, at, axis + 1), x.dtype, known)

    program.compute(f"tl.gather({{0}}, {{1}} & {size - 1}, {axis})", choose, a, index)
