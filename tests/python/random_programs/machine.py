"""Runs a program's operations in NumPy, for all programs of its grid at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from .arithmetic import Value
from .dtypes import DType


@dataclass
class Memory:
    """An array's elements: what they must be, whether they must, and how exactly."""

    dtype: DType
    data: np.ndarray
    known: np.ndarray
    error: np.ndarray | None = None

    @classmethod
    def of(cls, dtype: DType, data: np.ndarray) -> Memory:
        return cls(dtype, data.copy(), np.ones(data.shape, bool))

    def copy(self) -> Memory:
        error = None if self.error is None else self.error.copy()
        return Memory(self.dtype, self.data.copy(), self.known.copy(), error)


@dataclass
class Trips:
    """Which programs have left the innermost loop, or the present trip of it."""

    machine: Machine
    broken: np.ndarray
    skipped: np.ndarray

    def next_trip(self, active: np.ndarray) -> None:
        self.skipped = np.zeros_like(self.broken)
        self.machine.active = active & ~self.broken


@dataclass
class Machine:
    """The values that a program's tiles have, and its memory."""

    programs: int
    values: dict[int, Value] = field(default_factory=dict)
    memory: dict[str, Memory] = field(default_factory=dict)
    active: np.ndarray = field(default_factory=lambda: np.ones(1, bool))
    trips: Trips | None = None

    def __post_init__(self) -> None:
        self.active = np.ones(self.programs, bool)

    @contextmanager
    def looping(self) -> Iterator[Trips]:
        """A loop runs in this block."""
        outer = self.trips
        self.trips = Trips(self, np.zeros(self.programs, bool), np.zeros(self.programs, bool))
        try:
            yield self.trips
        finally:
            self.trips = outer

    def jump(self, here: np.ndarray, leaves: bool) -> None:
        """These programs end their trip; if `leaves`, their loop as well."""
        if self.trips is not None:
            self.trips.skipped = self.trips.skipped | here
            if leaves:
                self.trips.broken = self.trips.broken | here
        self.active = self.active & ~here

    def staying(self, programs: np.ndarray) -> np.ndarray:
        """Those of some programs that have not ended their trip."""
        return programs if self.trips is None else programs & ~self.trips.skipped

    def snapshot(self) -> tuple:
        memory = {name: array.copy() for name, array in self.memory.items()}
        return dict(self.values), memory, self.active.copy()

    def restore(self, snapshot: tuple) -> None:
        values, memory, active = snapshot
        self.values, self.active = dict(values), active.copy()
        self.memory = {name: array.copy() for name, array in memory.items()}

    def lanes(self, shape: tuple[int, ...], mask: np.ndarray | None) -> np.ndarray:
        """Which elements of a tile take part: of programs that are here, and where a mask is true."""
        here = self.active.reshape((-1, *([1] * len(shape))))
        here = np.broadcast_to(here, (self.programs, *shape))
        return here if mask is None else here & np.broadcast_to(mask, here.shape)

    def load(self, name: str, places: np.ndarray, lanes: np.ndarray, other: np.ndarray) -> Value:
        """Elements of an array, and `other` in lanes that take no part."""
        memory = self.memory[name]
        safe = np.where(lanes, places, 0)
        data = np.where(lanes, memory.data[safe], other).astype(memory.dtype.numpy)
        return Value(data, memory.dtype, np.where(lanes, memory.known[safe], True))

    def store(self, name: str, places: np.ndarray, lanes: np.ndarray, value: Value) -> None:
        memory = self.memory[name]
        data = np.broadcast_to(value.data, lanes.shape)
        memory.data[places[lanes]] = data[lanes]
        known = True if value.known is None else np.broadcast_to(value.known, lanes.shape)[lanes]
        memory.known[places[lanes]] = known
        if value.error is not None:
            if memory.error is None:
                memory.error = np.zeros(memory.data.shape)
            memory.error[places[lanes]] = np.broadcast_to(value.error, lanes.shape)[lanes]
        elif memory.error is not None:
            memory.error[places[lanes]] = 0


def merged(active: np.ndarray, new: Value, old: Value) -> Value:
    """The new value in programs that are active, the old one in others."""
    rank = max(new.data.ndim, old.data.ndim)
    chosen = active.reshape((-1, *([1] * (rank - 1))))
    data = np.where(chosen, new.data, old.data)
    known = None
    if new.known is not None or old.known is not None:
        masks = [np.ones(v.data.shape, bool) if v.known is None else v.known for v in (new, old)]
        known = np.where(chosen, *masks)
    return Value(data.astype(new.dtype.numpy), new.dtype, known)
