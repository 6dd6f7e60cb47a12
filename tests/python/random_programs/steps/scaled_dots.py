"""Scaled dots: small floats of every format, blocks with scales of their own, results that are exact in any order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from float8_model import FORMATS

from ..arithmetic import Value
from ..dtypes import BF16, F16, F32, U8, DType, Refused
from ..machine import Machine
from ..program import Op, Program

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])
KINDS = ("e2m1", "e4m3", "e5m2", "bf16", "fp16")


@dataclass
class Side:
    """One operand: how the kernel reads it, and its numbers times their scales (rows x K)."""

    text: str
    scale: str
    kind: str
    along_k: bool
    numbers: np.ndarray


def _numbers(
    rng: np.random.Generator, kind: str, shape: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray, DType]:
    """Codes or floats, the numbers that they are, and the dtype of the array."""
    if kind == "e2m1":
        codes = rng.integers(0, 16, shape, dtype=np.uint8)
        return codes, E2M1[codes], U8
    if kind in ("e4m3", "e5m2"):
        values = FORMATS["float8e4nv" if kind == "e4m3" else "float8e5"].values()
        with np.errstate(all="ignore"):
            halves = (values * 2 == np.trunc(values * 2)) & (np.abs(values) <= 16)
        codes = rng.choice(np.flatnonzero(halves), shape).astype(np.uint8)
        return codes, values[codes].astype(np.float64), U8
    dtype = BF16 if kind == "bf16" else F16
    numbers = rng.integers(-8, 9, shape) / 2
    return numbers.astype(dtype.numpy), numbers, dtype


def _side(
    program: Program, kind: str, rows: int, k: int, group: int | None, transposed: bool
) -> Side:
    """A left operand of rows x K, or (`transposed`) a right one of K x rows."""
    rng = np.random.default_rng(program.rng.randrange(1 << 30))
    codes, numbers, dtype = _numbers(rng, kind, (rows, k))
    along_k = kind != "e2m1" or program.rng.random() < 0.6
    if kind == "e2m1":
        low, high = (codes[:, ::2], codes[:, 1::2]) if along_k else (codes[::2], codes[1::2])
        codes = low | (high << 4)
    scale = "None"
    if group:
        powers = rng.integers(125, 130, (rows, k // group)).astype(np.uint8)
        numbers = numbers * np.exp2(np.repeat(powers, group, axis=1).astype(np.float64) - 127)
        argument = program.argument(array=program.array(U8, powers.reshape(-1), powers.size))
        width = k // group
        scale = (
            f"tl.load({argument.name} + tl.arange(0, {rows})[:, None] * {width} "
            f"+ tl.arange(0, {width})[None, :])"
        )
    if transposed:
        codes = codes.T
    flat = np.ascontiguousarray(codes).reshape(-1)
    argument = program.argument(array=program.array(dtype, flat, flat.size))
    text = (
        f"tl.load({argument.name} + tl.arange(0, {codes.shape[0]})[:, None] * {codes.shape[1]} "
        f"+ tl.arange(0, {codes.shape[1]})[None, :])"
    )
    return Side(text, scale, kind, along_k, numbers)


def scaled(program: Program) -> None:
    """One scaled dot of fresh operands, and perhaps an accumulator that is here."""
    if program.pure or program.depth:
        raise Refused("no memory here")
    rng = program.rng
    m, n = rng.choice([16, 16, 32]), rng.choice([16, 16, 32])
    k = rng.choice([32, 64, 64, 128])
    # Scales for blocks of 16 are floats of 8 bits in Triton; those of 32 are powers of 2.
    left = _side(program, rng.choice(KINDS), m, k, rng.choice([None, 32, 32]), False)
    right = _side(program, rng.choice(KINDS), n, k, rng.choice([None, 32, 32]), True)
    total = left.numbers @ right.numbers.T
    size = np.abs(left.numbers) @ np.abs(right.numbers.T)
    if size.max() * 2**8 > 2**24:
        raise Refused("the product may round")
    acc = None
    if rng.random() < 0.4:
        acc = program.pick(lambda t: t.shape == (m, n) and t.dtype == F32)
        data = program.value(acc).data.astype(np.float64)
        if not np.all(np.abs(np.nan_to_num(data, nan=1e9)) < 2**10) or np.any(
            data != np.trunc(data)
        ):
            raise Refused("the sum may round")
    tile = program.tile((m, n), F32)
    options: dict[str, Any] = {"lhs_k_pack": left.along_k, "rhs_k_pack": right.along_k}
    options["fast_math"] = rng.random() < 0.3
    words = [*([acc.name] if acc else []), *(f"{name}={value}" for name, value in options.items())]
    operands = [part for side in (left, right) for part in (side.text, side.scale, repr(side.kind))]
    line = f"{tile.name} = tl.dot_scaled({', '.join([*operands, *words])})"
    programs = program.config.programs

    def run(machine: Machine) -> None:
        data = np.broadcast_to(total, (programs, m, n))
        if acc is not None:
            data = data + machine.values[acc.id].data.astype(np.float64)
        data = np.where(data == 0, 0.0, data).astype(np.float32)
        machine.values[tile.id] = Value(data, F32)

    if acc is not None:
        program.used.add(acc.id)
    program.emit(Op(lambda: [line], run))
    program.visible.append(tile)
