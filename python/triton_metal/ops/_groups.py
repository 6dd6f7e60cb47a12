"""The SIMD-groups of launches without a choice of tiles: kernels of rows, reductions, scans, products with vectors, elementwise ones.

The compiler chooses them for a launch of eight programs for each core (docs/threads.md), or a kernel names them for that. A launch of
fewer programs wants more of them, so that a core has work. What a program of a kernel does is nearly linear in its
numbers, its SIMD-groups and the steps of its loop: the table has the coefficients, from a few launches, and the model is asked
for the chip as it is for other families.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..cost import Chip
from ..cost.model import Sums
from ..config import kernel_config
from ._arrays import Array, dtype_name, size_of
from ._choices import MOST_REGISTERS, Config, Entry, Launch, seconds
from ._family import Candidate, Family

WARPS = (1, 2, 4, 8, 16, 32)
#: What coefficients are of: a program, a SIMD-group, a number, a step of each SIMD-group.
TERMS = ("once", "group", "number", "step")
#: With so many programs for each core, the compiler's choice or the kernel's own stands. The compiler chooses for fewer.
MANY, MANY_OF_COMPILER = 32, 8
#: Estimates that are at most so many times the least one are equal: of these a launch's own stands, else the nearest to it.
EQUAL = 1.04


class Kernel(NamedTuple):
    """How a kernel's launches are read: the argument whose numbers its programs share, and a constant whose values are kinds apart."""

    shared: str
    constant: str = ""
    values: tuple[Any, ...] = ()


#: The kernels with a table.
KERNELS: Mapping[str, Kernel] = {
    "activation_kernel": Kernel("x_ptr"),
    "activation_backward_kernel": Kernel("x_ptr"),
    "gated_kernel": Kernel("gate_ptr"),
    "softmax_kernel": Kernel("x_ptr", "LOG", (False, True)),
    "uneven_softmax_kernel": Kernel("x_ptr", "LOG", (False, True)),
    "long_softmax_kernel": Kernel("x_ptr"),
    "softmax_backward_kernel": Kernel("y_ptr"),
    "norm_kernel": Kernel("x_ptr", "CENTRE", (False, True)),
    "long_norm_kernel": Kernel("x_ptr"),
    "norm_backward_kernel": Kernel("x_ptr"),
    "row_sums_kernel": Kernel("logits_ptr"),
    "long_row_sums_kernel": Kernel("logits_ptr"),
    "cross_entropy_backward_kernel": Kernel("logits_ptr"),
    "reduce_kernel": Kernel("x_ptr", "FORM", ("rows", "columns")),
    "centred_kernel": Kernel("x_ptr", "FORM", ("rows",)),
    "place_kernel": Kernel("x_ptr", "FORM", ("rows", "columns")),
    "scan_kernel": Kernel("x_ptr"),
    "sort_kernel": Kernel("x_ptr"),
    "vector_along_rows_kernel": Kernel("m_ptr"),
    "vector_along_columns_kernel": Kernel("m_ptr"),
}
DTYPES = ("float32", "float16", "bfloat16")


def weights(warps: int, tile: int, steps: int) -> tuple[float, ...]:
    """How many of each of the TERMS a program has."""
    return (1.0, float(warps), float(tile * steps), float(warps * steps))


def tile_of(arguments: Mapping[str, Any]) -> int:
    """The numbers of a program's tile, from its constants."""
    if "WIDTHS" in arguments:
        return arguments["UNIT"] * sum(arguments["WIDTHS"])
    sides = ("BLOCK", "ROWS", "BLOCK_R", "BLOCK_K")
    return math.prod(arguments[side] for side in sides if side in arguments)


def question_of(
    kernel: Any, grid: Sequence[int], arguments: Mapping[str, Any], outputs: int
) -> tuple[str, tuple[int, ...]] | None:
    """The kind and the sizes of a launch; None if it is not one of the table's.

    Sizes are programs, the numbers of a tile, the steps of a program (a mean, rounded up), the bytes that it reads and writes in all, and
    the SIMD-groups that it names, 0 where it names none.
    """
    how = KERNELS.get(kernel.name)
    if how is None:
        return None
    shared = arguments[how.shared]
    dtype, value = dtype_name(shared), arguments.get(how.constant)
    if dtype not in DTYPES or (how.constant and value not in how.values):
        return None
    kind = f"{kernel.name} {dtype} {value}" if how.constant else f"{kernel.name} {dtype}"
    programs, tile = math.prod(grid), tile_of(arguments)
    count = size_of(tuple(shared.shape))
    steps = max(1, -(-count // (programs * tile)))
    itemsize = 4 if dtype == "float32" else 2
    return kind, (programs, tile, steps, count * itemsize + outputs, arguments.get("num_warps") or 0)


class Groups(Family):
    """SIMD-groups of kernels of `KERNELS`. A kind is the kernel's name, the dtype and its constants; sizes are those of `question_of`."""

    name = "groups"
    names = ("several", "term")
    choice = ("num_warps",)

    def __init__(self) -> None:
        super().__init__()
        self._entries: dict[tuple[Any, ...], Entry] = {}

    def kinds(self) -> Sequence[str]:
        return [
            f"{name} {dtype} {value}".rstrip()
            for name, how in KERNELS.items()
            for value in how.values or ("",)
            for dtype in DTYPES
        ]

    def configs(self, kind: str) -> Sequence[Config]:
        return [(several, term) for several in (0, 1) for term in range(len(TERMS))]

    def grid(self, kind: str, sizes: tuple[int, ...]) -> Sequence[Config]:
        """A thread has at least one number: two that have the same do its work twice."""
        return [(warps,) for warps in WARPS if warps == 1 or 32 * warps <= sizes[1]]

    def entry(self, kind: str, warps: int, tile: int, steps: int) -> Entry:
        """What a program of so many SIMD-groups, numbers of a tile and steps does."""
        key = (kind, warps, tile, steps)
        found = self._entries.get(key)
        if found is None:
            parts = {each.config: each for each in self.table[kind]}
            of_terms = weights(warps, tile, steps)
            terms = [parts[int(warps > 1), place] for place in range(len(TERMS))]
            sums = Sums(
                *(
                    max(0.0, math.fsum(w * value for w, value in zip(of_terms, values, strict=True)))
                    for values in zip(*(term.once for term in terms), strict=True)
                )
            )
            # Registers are those of a thread: a base, and places for its numbers.
            each = tile / (32 * warps)
            registers = terms[0].registers + each * terms[2].registers
            found = Entry((warps,), 32 * warps, registers, 0, False, False, 0.0, 0.0, sums, Sums())
            if len(self._entries) > 1 << 12:
                self._entries.clear()
            self._entries[key] = found
        return found

    def candidates(self, kind: str, sizes: tuple[int, ...]) -> Iterator[Candidate]:
        programs, tile, steps, memory, _ = sizes
        # Long rows have no counts of one SIMD-group, which cannot hold them.
        known = {each.config[0] for each in self.table[kind]}
        grid = [warps for (warps,) in self.grid(kind, sizes) if int(warps > 1) in known]
        every = [self.entry(kind, warps, tile, steps) for warps in grid]
        for entry in [e for e in every if e.registers <= MOST_REGISTERS] or every[-1:]:
            (warps,) = entry.config
            launch = Launch(entry, programs, 0, memory)
            yield Candidate((warps,), (abs(math.log2(warps / 4)),), (launch,), True)

    def own(self, chip: Chip, kind: str, sizes: tuple[int, ...]) -> int:
        """The SIMD-groups that a launch has without this family: those that it names, or nearly those that the compiler chooses."""
        _, *rest, named = sizes
        if named:
            return named
        many = (MANY_OF_COMPILER * chip.cores, *rest, named)
        found = self._estimates(chip, kind, many)
        least = min(found.values())
        return min((w for w in found if found[w] <= 1.02 * least), key=lambda w: abs(math.log2(w / 4)))

    def _estimates(self, chip: Chip, kind: str, sizes: tuple[int, ...]) -> dict[int, float]:
        return {
            each.config[0]: seconds(chip, each.launches) for each in self.candidates(kind, sizes)
        }

    def best(self, chip: Chip, kind: str, sizes: tuple[int, ...]) -> Config:
        """The choice for a launch on a chip; (0,) for the launch's own, which stands unless another is better."""
        if sizes[0] >= MANY * chip.cores:
            return (0,)
        key = (chip.name, chip.cores, kind, sizes)
        known = self._kept.get(key)
        if known is None:
            found = self._estimates(chip, kind, sizes)
            least, own = min(found.values()), self.own(chip, kind, sizes)
            near = [warps for warps in found if found[warps] <= EQUAL * least]
            known = (0 if own in near else min(near, key=lambda w: abs(math.log2(w / own))),)
            self.keep(key, known)
        return known


GROUPS = Groups()


def groups_of(
    kernel: Any, grid: Sequence[int], arguments: Mapping[str, Any], outputs: int, like: Array
) -> int | None:
    """The SIMD-groups of a launch on the device of ``like``; None for its own."""
    question = question_of(kernel, grid, arguments, outputs)
    if question is None or kernel_config().num_warps is not None:
        return None
    return GROUPS.choose(like, *question[:1], *question[1])[0] or None
