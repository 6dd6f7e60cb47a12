"""What configurations do, counted on the host device: the rows of tables (`python -m triton_metal tune-ops`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from .. import _native, devices
from ..cost import Work, counting
from ..cost.model import Sums, sums_of
from ..cost.sampling import part_of
from ..devices.selection import device
from ..devices.target import APPLE10
from ..errors import LaunchValueError, TritonError
from ._choices import Config, Entry, asked, forced
from ._family import Family
from ._group_problems import PROBLEMS as GROUP_PROBLEMS
from ._groups import DTYPES, GROUPS, PRODUCTS, weights
from ._launch import turned_grids
from ._problems import PROBLEMS

#: Kernels whose programs share the work by how many they are: each does more of it in a part of the grid, which says nothing.
SHARING = ("decode_kernel", "norm_backward_kernel", "weight_gradients_kernel")
#: Kernels whose last axis of programs are phases, of which each does another part of the work: all are counted.
PHASED = ("convolution_kernel",)
#: Kernels whose results say where later launches read: what a part of the grid leaves out would be places outside of arrays.
PLACING = (
    "plain_indices_kernel", "sort_kernel", "split_kernel", "merge_kernel", "starts_kernel",
)  # fmt: skip


@contextmanager
def apple10() -> Iterator[None]:
    """Within it, the host device compiles for M5: matrices are multiplied by tensor operations."""
    host = devices.get("host")
    host.target = lambda: APPLE10  # type: ignore[method-assign]
    _native.configuration_changed()
    try:
        yield
    finally:
        del host.target  # type: ignore[method-assign]
        _native.configuration_changed()


def counted(call: Callable[[], Any], most: int = 1) -> list[tuple[Work, int]]:
    """The work of at most ``most`` programs of each launch of ``call`` (of all, where others rely on them), and how many programs the
    whole launch has.
    """
    programs: list[int] = []

    def turn(kernel: Any, grid: tuple[int, ...]) -> tuple[int, ...]:
        sizes = (*grid, 1, 1)[:3]
        programs.append(sizes[0] * sizes[1] * sizes[2])
        if kernel.name in SHARING + PLACING:
            return sizes
        if kernel.name in PHASED:
            return (*part_of((*sizes[:2], 1), most)[:2], sizes[2])
        return part_of(sizes, most)

    with device("host"), counting() as found, turned_grids(turn):
        call()
    return list(zip(found.works, programs, strict=True))


def entry_of(family: Family, kind: str, config: Config) -> Entry:
    """The counts of a configuration. Raises TritonError if it cannot be compiled or launched."""
    works = []
    first, last = family.counted_steps
    problem = PROBLEMS[family.name]
    for steps in (first, last):
        name, answer, call = problem(kind, config, steps)
        with forced(family.name, answer):
            works += [work for work, _ in counted(call) if work.kernel == name]
    few, more = map(sums_of, works)
    step = Sums(*((b - a) / (last - first) for a, b in zip(few, more, strict=True)))
    once = Sums(*(a - first * each for a, each in zip(few, step, strict=True)))
    work = works[-1]
    names = ("threadgroup_bytes_read", "threadgroup_bytes_written")
    staged = [sum(work.counters.get(name, 0) for name in names) for work in works]
    staged_step = (staged[1] - staged[0]) / (last - first)
    return Entry(
        config,
        work.threads,
        work.registers,
        work.threadgroup_bytes,
        work.half_products,
        work.tensor_operations,
        staged[0] - first * staged_step,
        staged_step,
        once,
        step,
    )


def observed(kind: str) -> Iterator[tuple[tuple[int, ...], int, Any]]:
    """The sizes of a launch of this kind, its SIMD-groups and its work, for calls of several sizes and all SIMD-groups."""
    kernel, *words = kind.split()
    dtype = words[0] if words[0] in DTYPES else "float32"
    own = " ".join([kernel, *(word for word in words if word != dtype)])
    for call in GROUP_PROBLEMS[own](dtype):
        with forced(GROUPS.name, (0,)), asked() as questions:
            counted(call)
        # The first row or column alone begins at a line.
        most = 8 if kind.endswith(("ragged", "fours")) or "columns" in words else 1
        sizes = next((q[2] for q in questions if q[:2] == (GROUPS.name, kind)), None)
        if sizes is None:
            continue
        for (warps,) in GROUPS.grid(kind, sizes):
            if sizes[1] > 2048 * warps:
                continue  # more than 64 numbers of a thread
            try:
                with forced(GROUPS.name, (warps,)), asked() as questions:
                    works = counted(call, most)
            except TritonError:
                continue
            names = [q[1] for q in questions if q[0] == GROUPS.name]
            of_kernel = [work for work, _ in works if work.kernel == kernel]
            place = [name for name in names if name.split()[0] == kernel].index(kind)
            yield sizes, warps, of_kernel[place]


def coefficients(kind: str) -> tuple[Entry, ...]:
    """The entries of `Groups`: what a program does of each term, by least squares over launches of several sizes."""
    seen = list(observed(kind))
    found = []
    for warps in dict.fromkeys(warps for _, warps, _ in seen):
        own = [(sizes, work) for sizes, each, work in seen if each == warps]
        tiles = np.array([sizes[1] for sizes, _ in own], float)
        rows = np.array([weights(sizes[1], sizes[2], sizes[5]) for sizes, _ in own])
        sums = np.array([np.array(sums_of(work)) / work.programs for _, work in own])
        # Each launch is to be right in proportion to what it does in all.
        scale = 1.0 / (rows[:, 1:2] + 64.0 * warps)
        used = _independent(rows * scale)
        terms = np.zeros((rows.shape[1], sums.shape[1]))
        terms[used] = np.linalg.lstsq(rows[:, used] * scale, sums * scale, rcond=1e-9)[0]
        each = tiles / (32 * warps)
        registers = np.array([work.registers for _, work in own], float)
        slope = max(0.0, np.polyfit(each, registers, 1)[0]) if len(set(tiles)) > 1 else 0.0
        base = max(0.0, float(np.mean(registers - slope * each)))
        once, place, step, number = (Sums(*map(_rounded, term)) for term in terms)
        # Of other kernels it is so little that registers alone say how many programs a core holds.
        shared = kind.split()[0] in PRODUCTS
        held = max(work.threadgroup_bytes for _, work in own) if shared else 0
        core = (32 * warps, _rounded(base), held, False, False, 0.0, _rounded(slope))
        found.append(Entry((warps, 0), *core, once, place))
        if any(step) or any(number):
            found.append(Entry((warps, 1), 32, 0.0, 0, False, False, 0.0, 0.0, step, number))
    return tuple(found)


def _independent(rows: np.ndarray) -> list[int]:
    """The terms that do not follow from others in these launches: the first ones that do not."""
    used: list[int] = []
    for place in (0, 1, 3, 2):
        columns = rows[:, [*used, place]]
        values = np.linalg.svd(columns / np.maximum(np.linalg.norm(columns, axis=0), 1e-30))[1]
        if len(values) == len(used) + 1 and values[-1] > 1e-3:
            used.append(place)
    return used


def _rounded(value: float) -> float:
    """A coefficient, without what is left of rounding."""
    return 0.0 if abs(value) < 1e-4 else float(f"{value:.3g}")


def entries(
    family: Family, kind: str, say: Callable[[str], None] = lambda text: None
) -> tuple[Entry, ...]:
    """All configurations of a kind; those that cannot be compiled are left out."""
    if family is GROUPS:
        return coefficients(kind)
    found = []

    def add_all() -> None:
        for config in family.configs(kind):
            try:
                found.append(entry_of(family, kind, config))
            except TritonError as error:
                say(f"{family.name} {kind} {config}: {str(error).splitlines()[0]}")

    if kind.endswith("tensor"):
        with apple10():
            add_all()
    else:
        add_all()
    if not found:
        raise LaunchValueError(f"[tune-ops] {family.name}: no configuration of {kind!r} runs.")
    return tuple(found)
