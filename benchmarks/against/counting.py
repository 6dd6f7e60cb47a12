"""Counts what a side's launches do on the host Metal device, and chooses between a side's configurations."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import triton_metal as triton
from benchmarks.agx.report import threads_in_flight

from against.problem import DEFAULT, Launch, Problem
from mlx_kernels.running import counted

FLOATS = tuple(
    f"optimized_{t}_{kind}"
    for t in ("f32", "f16", "bf16")
    for kind in ("add", "mul", "fma", "other")
)
INTEGERS = ("optimized_int_add", "optimized_int_mul", "optimized_int_other")

#: Columns of the table, and the counters of the host device that each one adds up (docs/host-device.md).
COUNTS: dict[str, tuple[str, ...]] = {
    "device bytes": ("device_bytes_read", "device_bytes_written"),
    "lines": ("device_lines_read", "device_lines_written"),
    "multiplies": ("simdgroup_matrix_multiplies",),
    "barriers": ("threadgroup_barriers",),
    "tg read": ("threadgroup_bytes_read",),
    "tg written": ("threadgroup_bytes_written",),
    "shuffles": ("simd_shuffles", "simd_reductions"),
    "float": FLOATS,
    "integer": INTEGERS,
    "functions": ("math_fast", "math_precise", "math_default"),
    "private bytes": ("private_bytes_read", "private_bytes_written"),
}
#: What is taken off some of these: the host's way of computing elementary functions, which a GPU has as instructions.
#: *functions* has how many there are.
OWN: dict[str, str] = {
    "float": "optimized_function_float",
    "integer": "optimized_function_int",
}
#: Traffic and order, which cost most.
MEMORY = ("device bytes", "multiplies", "barriers", "tg read", "tg written")
#: Those that are at most MLX's in a kernel that costs no more. The others say why.
JUDGED = (*MEMORY, "float", "integer")
#: Columns that are the largest of a problem's launches: both decide how many threads are in flight.
LARGEST = {"registers": "registers_per_thread", "tg memory": "threadgroup_memory_bytes"}
#: What MLX's configuration is chosen by.
CHOSEN = (*JUDGED, *LARGEST, "private bytes")
#: What ours is chosen by, with the threads in flight.
HELD = (*JUDGED, "registers", "private bytes")


@dataclass(frozen=True)
class Text:
    """A kernel's Metal text with what its compiler must know: see `against.judge`."""

    text: str
    include: Path | None
    name: str
    constants: tuple[tuple[int, object], ...]
    threads: int


@dataclass
class Measured:
    """A configuration, the counts of all its launches together, and their texts; `error` says why there are none."""

    configuration: str
    counts: dict[str, int] = field(default_factory=dict)
    texts: list[Text] = field(default_factory=list)
    error: str = ""

    def add(self, counters: Mapping[str, int]) -> None:
        for name, parts in COUNTS.items():
            count = sum(counters[part] for part in parts) - (
                counters[OWN[name]] if name in OWN else 0
            )
            self.counts[name] = self.counts.get(name, 0) + count
        self.counts["threads"] = self.counts.get("threads", 0) + counters["threads"]
        for name, counter in LARGEST.items():
            self.counts[name] = max(self.counts.get(name, 0), counters[counter])

    @property
    def product(self) -> float:
        """The logarithm of the product of the counts in CHOSEN, each of them plus one: less is better."""
        return sum(math.log1p(self.counts[name]) for name in CHOSEN)

    @property
    def in_flight(self) -> int:
        """The threads that a core holds, by the estimate of registers and by threadgroup memory."""
        return self._held(self.counts["registers"])

    @property
    def in_flight_by_memory(self) -> int:
        """The threads that a core holds by threadgroup memory, which is no estimate."""
        return self._held(0)

    def _held(self, registers: float) -> int:
        memory = self.counts["tg memory"]
        return min(threads_in_flight(registers, memory, text.threads) for text in self.texts)


def ours(configuration: str, launch: Launch, check: Callable[[np.ndarray], None]) -> Measured:
    """Our kernel's counts; without them, and with the reason, if its result is wrong or it is refused."""
    measured = Measured(configuration)
    try:
        with triton.launch_options(count=True) as report:
            result = launch()
        check(np.asarray(result, np.float64) if result.dtype.kind not in "iu" else result)
    except Exception as error:  # each row stands for itself
        return Measured(configuration, error=_told(error))
    if not report.launches:
        return Measured(configuration, error="nothing was launched")
    for each in report.launches:
        measured.add(each.counters)
        kernel = each.kernel
        measured.texts.append(
            Text(kernel.asm["metal"], None, kernel.name, (), 32 * kernel.metadata.num_warps)
        )
    return measured


def mlx(configuration: str, launch: Launch, check: Callable[[np.ndarray], None]) -> Measured:
    """The counts of MLX's kernels; without them, and with the reason, if the result is wrong."""
    measured = Measured(configuration)
    try:
        with counted() as launches:
            result = launch()
        check(result)
    except Exception as error:
        return Measured(configuration, error=_told(error))
    if not launches:
        return Measured(configuration, error="nothing was launched")
    for each in launches:
        measured.add(each.counters)
        measured.texts.append(Text(each.text, each.folder, each.name, each.constants, each.threads))
    return measured


def _told(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines[:4])}"[:300]


def ratio(a: int, b: int) -> float:
    """a : b; 1 if both are 0, and infinite if only b is."""
    if b:
        return a / b
    return math.inf if a else 1.0


@dataclass(frozen=True)
class Compared:
    """A row's result: what each side's configuration did, and what the others did."""

    ours: Measured
    mlx: Measured
    all_ours: list[Measured]
    all_mlx: list[Measured]

    def ratios(self, of: Measured | None = None) -> dict[str, float]:
        """Counts of `ours`, or of another configuration, divided by MLX's."""
        measured = of or self.ours
        if measured.error or self.mlx.error:
            return {}
        names = (*COUNTS, *LARGEST)
        return {name: ratio(measured.counts[name], self.mlx.counts[name]) for name in names}

    def above(self, most: float = 1.005) -> list[str]:
        """The judged counts of which ours are more."""
        return [name for name, value in self.ratios().items() if name in JUDGED and value > most]

    @property
    def default(self) -> Measured | None:
        """What our function takes by itself, where another configuration stands."""
        if self.ours.configuration == DEFAULT:
            return None
        named = (each for each in self.all_ours if each.configuration == DEFAULT)
        return next(named, None)


def compare(problem: Problem) -> Compared:
    """Counts all configurations of both sides, ours beside a default only where that counts more than MLX's.

    Of MLX's, that one stands whose counts in CHOSEN have the least product. Of ours, a default that is in nothing above it in
    JUDGED, else one of the others that are in nothing above it, else one of all. Of several it is that one which exceeds MLX's
    least: first in MEMORY and private bytes, then in all of HELD and in the threads that it has fewer in flight, or would have by
    threadgroup memory alone (by the product of the ratios above 1, each at most 64). Of equal ones it is that with the least
    product.
    """
    all_mlx = [mlx(name, launch, problem.check) for name, launch in problem.mlx.items()]
    right_mlx = [each for each in all_mlx if not each.error]
    best_mlx = min(right_mlx, key=lambda each: each.product, default=all_mlx[0])
    if DEFAULT in problem.ours:
        default = ours(DEFAULT, problem.ours[DEFAULT], problem.check)
        only = Compared(default, best_mlx, [default], all_mlx)
        # A default that is wrong is no row, whatever else is right.
        if default.error or len(problem.ours) == 1 or not only.above():
            return only
        others = {name: launch for name, launch in problem.ours.items() if name != DEFAULT}
        all_ours = [default, *(ours(*each, problem.check) for each in others.items())]
    else:
        all_ours = [ours(*each, problem.check) for each in problem.ours.items()]
    right_ours = [each for each in all_ours if not each.error]

    def above(value: float) -> float:
        return math.log(min(max(value, 1.0), 64.0))

    def excess(each: Measured, names: tuple[str, ...]) -> float:
        return sum(above(ratio(each.counts[name], best_mlx.counts[name])) for name in names)

    def rank(each: Measured) -> tuple[float, float, float]:
        # A hundredth more decides nothing.
        return (
            round(excess(each, (*MEMORY, "private bytes")), 2),
            excess(each, HELD)
            + max(
                above(ratio(best_mlx.in_flight, each.in_flight)),
                above(ratio(best_mlx.in_flight_by_memory, each.in_flight_by_memory)),
            ),
            each.product,
        )

    if right_ours and right_mlx:
        within = [each for each in right_ours if not Compared(each, best_mlx, [], []).above()]
        best_ours = min(within or right_ours, key=rank)
    else:
        best_ours = right_ours[0] if right_ours else all_ours[0]
    return Compared(best_ours, best_mlx, all_ours, all_mlx)
