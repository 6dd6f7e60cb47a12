"""A lower bound of a launch's time on a chip, from what the launch does.

Each unit of the chip needs a time for its share of the work, and the launch takes at least as long as the slowest one. No
Apple GPU was asked: a bound says what a launch cannot beat, and not what it takes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from ..words import number_of
from .chips import Chip

#: Multiply-adds of an 8x8x8 product.
PRODUCT = 512
#: Of a kernel that needs many times the registers that a thread has, the share of instructions that access what does not fit.
#: From 84 kernels that spill, as Mesa's compiler for G13 makes them (docs/cost.md).
_SPILLING = 0.3
_FLOATS = ("f32", "bf16")
#: The first family of chips with tensor operations.
TENSOR_FAMILY = 10


@dataclass(frozen=True)
class Work:
    """What a launch does: the host device's counters, and what its kernel takes of a core.

    ``read_bytes`` and ``written_bytes`` are the sizes of the arrays that the kernel reads and writes, None if they are not
    known. ``half_products`` says that matrices are multiplied in 16 bits.
    """

    kernel: str
    counters: Mapping[str, int]
    programs: int
    threads: int
    registers: float
    threadgroup_bytes: int
    read_bytes: int | None = None
    written_bytes: int | None = None
    half_products: bool = False
    tensor_operations: bool = False


@dataclass(frozen=True)
class Part:
    """What one unit of the chip needs for its share of a launch."""

    unit: str
    seconds: float
    why: str


@dataclass(frozen=True)
class Cost:
    """A lower bound of a launch's time on a chip.

    ``seconds`` is the bound and ``binds`` the unit that sets it. ``estimate`` ranks configurations of one launch: it adds to the
    bound what its units do not hide from each other, waits for results, memory and barriers by round numbers, and accesses to
    registers that a thread lacks; it is no prediction of a time. ``parts`` has all units, the slowest first, ``advice`` what
    would lower the bound, and ``missing`` what the bound leaves out because nobody has published it. ``in_flight`` are the
    threads that a core can hold, by registers and by threadgroup memory, and ``held`` those that it holds of this launch at a time.
    """

    kernel: str
    chip: Chip
    seconds: float
    binds: str
    parts: tuple[Part, ...]
    advice: tuple[str, ...]
    missing: tuple[str, ...]
    in_flight: int
    held: int
    estimate: float
    work: Work = field(repr=False, compare=False)

    def __str__(self) -> str:
        alone = " (no other unit has a published rate)" if self.chip.clock is None else ""
        lines = [
            f"{self.kernel} on {self.chip.name} ({self.chip.cores} cores): at least {shown(self.seconds)}, bound by {self.binds}{alone}"
        ]
        width = max(len(part.unit) for part in self.parts)
        lines += [
            f"  {part.unit:{width}}  {shown(part.seconds):>9}  {part.why}" for part in self.parts
        ]
        few = ", as the launch has no more" if self.held < self.in_flight else ""
        lines.append(f"  threads in flight on a core: {self.held} of {self.chip.core_threads}{few}")
        lines += [f"  to lower it: {text}" for text in self.advice]
        lines += [f"  not in it: {text}" for text in self.missing]
        return "\n".join(lines)


def shown(seconds: float) -> str:
    """A time in words: "12.3 µs"."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale or unit == "µs":
            return f"{seconds / scale:.3g} {unit}"
    raise AssertionError(seconds)


class Sums(NamedTuple):
    """What the model takes of a launch's counters: operations of lanes, lines of 128 bytes, products of 8x8x8, barriers of
    threadgroups. All are sums over programs.
    """

    lines: float = 0
    halves: float = 0
    floats: float = 0
    integers: float = 0
    products: float = 0
    functions: float = 0
    divisions: float = 0
    multiplies: float = 0
    shuffles: float = 0
    operations: float = 0
    barriers: float = 0


def sums_of(work: Work) -> Sums:
    """The sums of a launch."""
    kinds = ("add", "mul", "fma", "other")
    functions = _count(work, "math_fast", "math_default", "math_precise")
    # The host computes functions by arithmetic; a GPU has instructions for them, which `math_*` counts.
    function_float, function_int = (
        _count(work, f"optimized_function_{kind}") for kind in ("float", "int")
    )
    floats = _count(work, *(f"optimized_{t}_{kind}" for t in _FLOATS for kind in kinds))
    operations = _count(
        work,
        *(
            name
            for name in work.counters
            if name.startswith("optimized_") and not name.startswith("optimized_function_")
        ),
    )
    return Sums(
        lines=_count(work, "device_lines_read", "device_lines_written"),
        halves=_count(work, *(f"optimized_f16_{kind}" for kind in kinds)),
        floats=max(0.0, floats - function_float),
        integers=max(0.0, _count(work, "optimized_int_add", "optimized_int_other") - function_int),
        products=_count(work, "optimized_int_mul"),
        functions=functions,
        divisions=_count(work, "f32_div", "f16_div", "bf16_div"),
        multiplies=_count(work, "simdgroup_matrix_multiplies"),
        shuffles=_count(work, "simd_shuffles") + 5 * _count(work, "simd_reductions"),
        operations=operations - function_float - function_int + functions,
        barriers=_count(work, "threadgroup_barriers"),
    )


def groups_in_flight(chip: Chip, registers: float, threads: int, threadgroup_bytes: int) -> int:
    """The threadgroups that a core holds, by registers and by threadgroup memory, at least one."""
    table = chip.occupancy
    groups = next((held for top, held in table if registers <= top), table[-1][1]) // threads
    if threadgroup_bytes:
        groups = min(groups, chip.core_threadgroup_bytes // threadgroup_bytes)
    return max(1, groups)


def with_spills(chip: Chip, sums: Sums, registers: float, threads: int) -> Sums:
    """The sums with what the threads of a kernel keep in memory, since it needs more registers than a thread has.

    A SIMD-group accesses a line for each: the numbers of its lanes lie beside each other.
    """
    lacking = 1.0 - registers_of(chip, threads) / max(registers, 1.0)
    if lacking <= 0:
        return sums
    share = _SPILLING * lacking
    return sums._replace(lines=sums.lines + sums.operations / 32 * share / (1.0 - share))


def registers_of(chip: Chip, threads: int) -> float:
    """The 32-bit registers that a thread of a threadgroup of so many has at most: a core must hold them all."""
    return max((most for most, held in chip.occupancy if held >= threads), default=chip.occupancy[0][0])  # fmt: skip


def threads_in_flight(chip: Chip, work: Work) -> int:
    """The threads of whole threadgroups that a core holds, by registers and by threadgroup memory.

    Chips from Apple9 on hand out registers as a kernel goes on (Apple calls it Dynamic Caching); for these it is a floor.
    """
    groups = groups_in_flight(chip, work.registers, work.threads, work.threadgroup_bytes)
    return groups * work.threads


def _cycles_when_busy(chip: Chip, simd_groups: float) -> float:
    """Cycles of an operation with so many SIMD-groups on a core, between the published points."""
    points = chip.units.busy
    if simd_groups <= points[0][0]:
        # One SIMD-group waits for its own results only: half as many take twice as long.
        return points[0][1] * points[0][0] / max(simd_groups, 1.0)
    for (low, slow), (high, fast) in pairwise(points):
        if simd_groups <= high:
            share = math.log(simd_groups / low) / math.log(high / low)
            return slow + share * (fast - slow)
    return points[-1][1]


def _count(work: Work, *names: str) -> float:
    return float(sum(work.counters.get(name, 0) for name in names))


def _asked_once(work: Work, use: str) -> float:
    asked = _count(work, f"device_distinct_bytes_{use}")
    lines = work.counters.get(f"device_memory_lines_{use}")
    return asked if lines is None else min(asked, lines * 128.0)


def memory_bytes(work: Work) -> tuple[float, float]:
    """The least bytes that the launch must bring from memory and take there: no line twice, and no byte unasked."""
    read, written = (_asked_once(work, use) for use in ("read", "written"))
    if work.read_bytes is not None:
        read = min(read, work.read_bytes)
    if work.written_bytes is not None:
        written = min(written, work.written_bytes)
    return read, written


class Load(NamedTuple):
    """How a launch is spread over a chip: ``rounds`` programs on the core with the most, ``together`` of them at a time.

    ``uneven`` is the time of that core over the mean; ``slow`` the cycles of an operation with the SIMD-groups that it holds.
    """

    rounds: int
    together: int
    uneven: float
    slow: float


def load_of(chip: Chip, programs: int, threads: int, groups: int) -> Load:
    """The load of a launch of whose threadgroups a core holds ``groups``."""
    # The core with the most programs ends last.
    rounds = math.ceil(programs / chip.cores)
    together = min(groups, rounds)
    return Load(
        rounds,
        together,
        rounds * chip.cores / programs if programs else 1.0,
        _cycles_when_busy(chip, together * threads / 32),
    )


def arithmetic_cycles(chip: Chip, sums: Sums) -> tuple[float, float]:
    """Cycles of one core for a launch's simple operations, and for products of integers, functions and divisions, which run beside them."""
    units = chip.units
    return (
        sums.halves / units.half_add
        + sums.floats / units.float_add
        + sums.integers / units.int_add,
        sums.products / units.int_mul
        + sums.functions / units.function
        + sums.divisions / units.division,
    )


def unit_cycles(chip: Chip, sums: Sums, slow: float, rate: float | None) -> tuple[float, ...]:
    """Cycles of one core for all of a launch's cache lines, arithmetic, matrix products and exchanges.

    ``rate`` is that of matrix products, None if it is not known: these are then left out.
    """
    units = chip.units
    return (
        sums.lines * 128 / units.cache_bytes,
        max(arithmetic_cycles(chip, sums)) * slow,
        sums.multiplies * PRODUCT / rate if rate else 0.0,
        sums.shuffles * 128 / units.shuffle_bytes,
    )


def matrix_rate(chip: Chip, half_products: bool, tensor_operations: bool) -> float | None:
    """Multiply-adds of matrix instructions of a core and cycle; None where nobody has published them."""
    if tensor_operations:
        return None
    return chip.units.matrix_half if half_products else chip.units.matrix_float


def bound(chip: Chip, work: Work) -> Cost:
    """The lower bound of the launch's time on the chip."""
    parts, missing = [], []
    read, written = memory_bytes(work)
    memory = (read + written) / (chip.bandwidth * 1e9)
    parts.append(
        Part(
            "memory",
            memory,
            f"{_bytes(read)} read and {_bytes(written)} written at {chip.bandwidth:g} GB/s",
        )
    )
    flight = threads_in_flight(chip, work)
    load = load_of(chip, work.programs, work.threads, flight // work.threads)
    sums = sums_of(work)
    seconds: tuple[float, ...] = (memory,)
    if chip.clock is None:
        missing.append(f"arithmetic and caches: no clock is published for {chip.name}")
    else:
        core_seconds = load.uneven / (chip.cores * chip.clock * 1e9)
        rate = matrix_rate(chip, work.half_products, work.tensor_operations)
        # Where the chip has tensor operations, a launch on it multiplies by these.
        by_tensors = bool(sums.multiplies) and (rate is None or chip.family >= TENSOR_FAMILY)
        if by_tensors:
            missing.append("matrix products: no rate of the tensor operations is published")
        why = {
            "cache": f"{sums.lines:,.0f} lines of 128 bytes",
            "arithmetic": f"{sums.halves + sums.floats:,.0f} float and {sums.integers + sums.products:,.0f} integer operations, "
            f"{sums.functions + sums.divisions:,.0f} functions",
            "matrices": f"{sums.multiplies:,.0f} products of 8x8x8",
            "shuffles": f"{sums.shuffles:,.0f} exchanges",
        }
        cycles = unit_cycles(chip, sums, load.slow, rate)
        for unit, count in zip(why, cycles, strict=True):
            if count and not (unit == "matrices" and by_tensors):
                parts.append(Part(unit, count * core_seconds, why[unit]))
        seconds = (memory, *(count * core_seconds for count in cycles))
    if chip.family > 8:
        missing.append(
            "what newer cores do more in a cycle: the rates are those of Apple8, the newest that are published"
        )
    parts.sort(key=lambda part: -part.seconds)
    binding = parts[0]
    spilled = with_spills(chip, sums, work.registers, work.threads)
    if chip.clock is not None and spilled != sums:
        cycles = unit_cycles(chip, spilled, load.slow, rate)
        seconds = (memory, *(count * core_seconds for count in cycles))
    return Cost(
        work.kernel,
        chip,
        binding.seconds,
        binding.unit,
        tuple(parts),
        tuple(_advice(chip, work, binding.unit, load, flight)),
        tuple(missing),
        flight,
        min(flight, load.together * work.threads),
        _estimate(chip, spilled, seconds, work.programs, work.threads, load),
        work,
    )


def _estimate(
    chip: Chip, sums: Sums, seconds: Sequence[float], programs: int, threads: int, load: Load
) -> float:
    """The bound with what the slowest unit does not hide: a quarter of the others' time, and waits.

    A SIMD-group waits for 2 cycles for a result of its own, for 40 for each line from memory, and all of a threadgroup for 30
    cycles and 2 more for each SIMD-group at a barrier, as in docs/threads.md. The other programs of its core work meanwhile.
    """
    slowest = max(seconds)
    busy = slowest + 0.25 * (sum(seconds) - slowest)
    if chip.clock is None or not programs:
        return busy
    groups = threads / 32
    waits = (2 * sums.operations / 32 + 40 * sums.lines) / groups
    waits += sums.barriers * (30 + 2 * groups)
    return busy + load.rounds * waits / programs / load.together / (chip.clock * 1e9)


def estimate(
    chip: Chip,
    sums: Sums,
    memory: float,
    programs: int,
    threads: int,
    groups: int,
    rate: float | None,
) -> float:
    """`Cost.estimate` of a launch in seconds, from its sums: nothing else is made.

    ``memory`` are the bytes from and to memory, ``groups`` the threadgroups that a core holds, ``rate`` is `matrix_rate`. The chip
    has a clock.
    """
    load = load_of(chip, programs, threads, groups)
    cycles = (chip.clock or 0.0) * 1e9
    core_seconds = load.uneven / (chip.cores * cycles)
    seconds = [count * core_seconds for count in unit_cycles(chip, sums, load.slow, rate)]
    seconds.append(memory / (chip.bandwidth * 1e9))
    return _estimate(chip, sums, seconds, programs, threads, load)


def _advice(chip: Chip, work: Work, binds: str, load: Load, flight: int) -> list[str]:
    """What would lower the bound, the most first."""
    texts = []
    asked = _count(work, "device_distinct_bytes_read", "device_distinct_bytes_written")
    lines = _count(work, "device_lines_read", "device_lines_written")
    used = asked / (lines * 128) if lines else 1.0
    if binds == "memory":
        texts.append(
            "move fewer bytes: smaller types, or this kernel joined with the one before or after it"
        )
    touched = _count(work, "device_memory_lines_read", "device_memory_lines_written") or lines
    if binds == "cache" and used < 0.7 and asked < touched * 128:
        texts.append(
            f"{used:.0%} of each line is used, and the rest never: have neighbouring lanes access neighbours, or lay the array out so that they do"
        )
    elif binds == "cache" and used < 0.7:
        wider = "larger tiles, whose rows fill lines and are read less often"
        if not _count(work, "simdgroup_matrix_multiplies"):
            wider += ", or neighbouring lanes that access neighbours"
        texts.append(
            f"an access uses {used:.0%} of its lines, and lines are touched {lines / touched:.1f} times: {wider}"
        )
    elif binds == "cache":
        texts.append("read each element less often: larger blocks, or tiles in threadgroup memory")
    if binds == "arithmetic":
        texts.append(
            "fewer operations an element: whole blocks without masks, matrix products by tl.dot"
        )
    is_uneven = binds != "memory" and load.uneven > 1.1
    if binds == "matrices" and not is_uneven:
        texts.append("the matrix units are busy all the time: only fewer products would help")
    if is_uneven:
        leave = "leaves" if work.programs == 1 else "leave"
        texts.append(
            f"{number_of(work.programs, 'program')} on {chip.cores} cores {leave} cores idle: smaller blocks, or a number near a multiple of {chip.cores}"
        )
    held = load.together * work.threads
    if binds == "arithmetic" and load.slow > 1.1 and held < flight:
        texts.append(
            f"a core holds {held} threads, too few to hide its latency, as the launch has {number_of(work.programs, 'program')} of {work.threads}: smaller blocks, or more SIMD-groups (num_warps)"
        )
    elif binds == "arithmetic" and load.slow > 1.1:
        texts.append(
            f"a core holds {flight} threads, too few to hide its latency: fewer registers ({work.registers:g} a thread) or less threadgroup memory ({work.threadgroup_bytes:,} bytes)"
        )
    has = registers_of(chip, work.threads)
    if work.registers > has:
        cure = (
            "more SIMD-groups (num_warps) or smaller tiles"
            if work.threads < 512
            else "smaller tiles"
        )
        texts.append(
            f"a thread needs about {work.registers:g} registers and has {has:g}, so that the rest stays in memory: {cure}"
        )
    if _count(work, "private_bytes_read", "private_bytes_written"):
        texts.append(
            "arrays are indexed by numbers that are known only at run time and stay in memory: use constant indices"
        )
    return texts


def _bytes(count: float) -> str:
    for unit in ("B", "KB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} GB"
