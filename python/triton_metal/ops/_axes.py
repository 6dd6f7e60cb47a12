"""Axes and dtypes of reductions, scans and sorts, and the walk over an axis that their kernels share.

An array is seen as (outer, length, inner) around the axis; what lies along it is a *row*. A program takes ROWS of them, block
by block, or where they are few and long, a part of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import triton_metal as triton
import triton_metal.language as tl

from ._arrays import Array, contiguous, dtype_name, is_torch, size_of
from ._arrays import item_size as item_size


def limits(dtype: str) -> tuple[float, float]:
    """The least and the largest number of a dtype."""
    if dtype.startswith(("float", "bfloat")):
        return -float("inf"), float("inf")
    bits = int(dtype.removeprefix("u").removeprefix("int"))
    if dtype.startswith("u"):
        return 0, 2**bits - 1
    return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1


def accumulator(dtype: str) -> str:
    """The dtype in which numbers of this one are compared, or floats are added."""
    if dtype.startswith(("float", "bfloat")):
        return "float32"
    if dtype in ("int64", "uint64", "uint32"):
        return dtype
    return "int32"


def total_dtype(x: Array) -> str:
    """The dtype of a sum: floats keep theirs; that of integers and bools is the widest, as in NumPy."""
    name = dtype_name(x)
    if name.startswith(("float", "bfloat")):
        return name
    return "uint64" if name.startswith("uint") and not is_torch(x) else "int64"


def is_wide(sizes: Sequence[int]) -> bool:
    """Whether an offset may need 64 bits, also that of a masked lane."""
    return size_of(tuple(sizes)) >= 2**31 - 2**24


def as_rows(x: Array, axes: Sequence[int]) -> tuple[Array, tuple[int, int, int], list[int]]:
    """`x` with the reduced axes side by side and contiguous, its (outer, length, inner), and the order of its axes."""
    shape = tuple(x.shape)
    order = list(range(len(shape)))
    length = size_of(tuple(shape[axis] for axis in axes))
    wide = [axis for axis in order if shape[axis] != 1]
    reduced = [axis for axis in wide if axis in axes]
    if not reduced:
        return contiguous(x), (size_of(shape), 1, 1), order
    first, last = reduced[0], reduced[-1]
    if wide.index(last) - wide.index(first) + 1 == len(reduced):
        return contiguous(x), (size_of(shape[:first]), length, size_of(shape[last + 1 :])), order
    kept = [axis for axis in order if axis not in axes]
    order = kept + [axis for axis in order if axis in axes]
    outer = size_of(tuple(shape[axis] for axis in kept))
    return contiguous(permuted(x, order)), (outer, length, 1), order


def permuted(x: Array, order: Sequence[int]) -> Array:
    """`x` with its axes in another order."""
    return x.permute(*order) if is_torch(x) else x.transpose(*order)


def unpermuted(x: Array, order: Sequence[int]) -> Array:
    """The array of which `permuted(…, order)` is `x`."""
    back = sorted(range(len(order)), key=lambda place: order[place])
    return x if back == list(order) == list(range(len(order))) else contiguous(permuted(x, back))


#: With so many neighbours or more, a program takes neighbours alone; else rows as they follow each other.
ACROSS = 32
#: Of fewer rows, the last ones are not read twice to fill a program.
FEW = 1024


@triton.jit
def walked_rows(
    rows, length, inner, part_length, parts,
    FORM: tl.constexpr, PARTED: tl.constexpr, WIDE: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """This program's part and its ROWS rows.

    Gives where the part begins and ends, what all offsets into the array are to be counted from, and (1, ROWS) of the rows' numbers, where they
    begin from there, where their results lie, and which of them there are. But for FORM "columns" all rows can be read: there are
    at least ROWS, and those that are not there are another program's.
    """
    program, part, begin, end = tl.program_id(0), 0, 0, length
    if WIDE:
        program = program.to(tl.int64)
        begin, end = program * 0, length + program * 0
    if PARTED:
        part = tl.program_id(1).to(tl.int64) if WIDE else tl.program_id(1)
        begin, end = part * part_length, min(length, (part + 1) * part_length)
    each = tl.arange(0, ROWS)[None, :]
    if FORM == "columns":
        tiles = (inner + ROWS - 1) // ROWS
        outer, column = program // tiles, program % tiles * ROWS + each
        given, origin = column < inner, outer * length * inner
        first, row, to = column, outer * inner + column, (outer * parts + part) * inner + column
    else:
        # The last program begins early rather than being cut.
        base = tl.minimum(program * ROWS, rows - ROWS)
        row = base + each
        given = row >= program * ROWS
        if FORM == "rows":
            origin, first, to = base * length, each * length, row * parts + part
        else:
            outer, column = row // inner, row % inner
            origin, first = program * 0, outer * length * inner + column
            to = (outer * parts + part) * inner + column
    return begin, end, origin, row, first, to, given


class Walk(NamedTuple):
    """How a kernel goes over an array (outer, length, inner)."""

    sizes: tuple[int, int, int]
    block: int
    side: int
    #: "rows" that lie one behind the other, "columns" side by side, or "rows of columns", which are few.
    form: str
    #: Parts of a row, and their length.
    parts: int = 1
    part_length: int = 0

    @property
    def programs(self) -> int:
        outer, _, inner = self.sizes
        if self.form == "columns":
            return outer * triton.cdiv(inner, self.side)
        return triton.cdiv(outer * inner, self.side)

    @property
    def grid(self) -> tuple[int, int]:
        return self.programs, self.parts

    @property
    def result(self) -> tuple[int, int, int]:
        """The shape of what each part gives."""
        return self.sizes[0], self.parts, self.sizes[2]

    def in_parts(self, least: int, most: int) -> Walk:
        """The same in at most so many parts, each of at least so many blocks."""
        length = max(self.sizes[1], 1)
        parts = max(1, min(most, triton.cdiv(length, least * self.block)))
        part_length = triton.cdiv(triton.cdiv(length, parts), self.block) * self.block
        return self._replace(parts=triton.cdiv(length, part_length), part_length=part_length)

    def arguments(self) -> dict[str, Any]:
        """What every kernel that goes this way takes."""
        outer, length, inner = self.sizes
        return {
            "rows": outer * inner, "length": length, "inner": inner, "parts": self.parts,
            "part_length": self.part_length or triton.cdiv(max(length, 1), self.block) * self.block,
            "FORM": self.form, "PARTED": self.parts > 1, "WIDE": is_wide(self.sizes),
            "BLOCK": self.block, "ROWS": self.side,
        }  # fmt: skip


def power_of_two_within(n: int) -> int:
    """The largest power of two that is at most `n`, or 1."""
    return 1 << max(n.bit_length() - 1, 0)


def form_of(inner: int) -> str:
    """The FORM of rows whose numbers lie this far apart."""
    return "rows" if inner == 1 else "columns" if inner >= ACROSS else "rows of columns"


def walk(sizes: tuple[int, int, int], itemsize: int, held: int) -> Walk:
    """Blocks of about `held` numbers: of neighbours side by side, or of rows of which most blocks are whole.

    Neighbours are so many that each lane has 16 bytes of them, or fewer where that leaves a chip without work.
    """
    outer, length, inner = sizes
    whole = triton.next_power_of_2(max(length, 1))
    most = power_of_two_within(outer * inner)
    if inner > 1:
        side = triton.next_power_of_2(min(inner, 32 * 16 // max(itemsize, 2)))
        across = form_of(inner) == "columns"
        least = 128 // min(itemsize, 4)
        while across and side > least and outer * triton.cdiv(inner, side) < 64:
            side //= 2
        side = side if across else min(side, most)
        return Walk(sizes, min(whole, max(4, held // side)), side, form_of(inner))
    if whole <= held // 4:
        # Several short rows, each of one block.
        side = min(most, held // whole)
        return Walk(sizes, whole, side, "rows")
    # The masks of a row's last block serve the block of other rows, too.
    side = 4 if outer >= 256 else 2 if outer >= 128 else 1
    if length % held == 0:
        side = 1
    while outer < FEW and outer % side:
        side //= 2
    return Walk(sizes, min(whole, held // side), side, "rows")
