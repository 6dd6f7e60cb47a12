"""How launches are read for the table of SIMD-groups (`_groups`): what a kernel's arguments say of its work."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ._arrays import Array, dtype_name, item_size, size_of


class Seen(NamedTuple):
    """What a launch's arguments say: the dtype of its numbers and what else tells its kind, the numbers of a program's tile, the
    steps of a program (0: as many as it takes to read an array), the bytes that are read, and the numbers of a program that are there
    (0: all of its tiles').
    """

    kind: str
    tile: int
    steps: int
    read: int
    there: int = 0


#: A launch that no table knows.
NONE = Seen("", 0, 0, 0)
Arguments = Mapping[str, Any]
Reader = Callable[[Arguments, Sequence[int]], Seen]


#: The names of dtypes that arrays have had; those of three frameworks are not many.
_names: dict[Any, str] = {}


def name_of(x: Array) -> str:
    """`dtype_name`, which torch.compile traces and which therefore keeps nothing, for every launch."""
    found = _names.get(x.dtype)
    if found is None:
        found = _names[x.dtype] = dtype_name(x)
    return found


def bytes_of(x: Array) -> int:
    return size_of(tuple(x.shape)) * item_size(name_of(x))


def form_of(kind: str, length: int) -> str:
    """A kind, whose first word is a dtype, of rows of this length.

    Rows that begin anywhere are read in smaller pieces than those at multiples of 16 bytes, of which a launch tells the kernel.
    """
    multiple = max(4, 16 // item_size(kind.split()[0]))
    return f"{kind} ragged" if length % multiple else kind


def fours_form(kind: str, length: int) -> str:
    """As `form_of`, of what is read four by four where rows of 16 bits begin at multiples of 8 bytes, of which a launch tells, too."""
    found = form_of(kind, length)
    return found if found == kind or length % 4 else f"{kind} fours"


def columns_form(kind: str, inner: int) -> str:
    """A kind of so many columns side by side, the last of which fill their tile or do not."""
    return f"{kind} ragged" if inner % 16 else kind


def rows_of(array: str, constant: str = "", length: str = "") -> Reader:
    """Programs that share the numbers of an array; the values of a constant are kinds apart, and rows whose `length` is ragged."""

    def read(arguments: Arguments, grid: Sequence[int]) -> Seen:
        x = arguments[array]
        if x is None:
            return NONE
        dtype, tile = name_of(x), arguments.get("BLOCK", 1)
        kind = f"{dtype} {arguments[constant]}" if constant else dtype
        if "WIDTHS" in arguments:
            tile = arguments["UNIT"] * sum(arguments["WIDTHS"])
        tile *= arguments.get("ROWS", 1)
        if length:
            kind = form_of(kind, arguments[length])
        count, programs = size_of(tuple(x.shape)), math.prod(grid)
        steps = -(-count // (programs * tile))
        return Seen(kind, tile, steps, count * item_size(dtype), -(-count // programs))

    return read


def side_by_side(array: str, constant: str = "", length: str = "length") -> Reader:
    """As `rows_of`; neighbours side by side are kinds by their number."""
    read_rows = rows_of(array, constant)

    def read(arguments: Arguments, grid: Sequence[int]) -> Seen:
        found, side = read_rows(arguments, grid), arguments.get("ROWS", 1)
        if side == 1:
            return found._replace(kind=form_of(found.kind, arguments[length]))
        block = f" {arguments['BLOCK']}" if side == SIDES[-1] else ""
        return found._replace(
            kind=columns_form(f"{found.kind} side {side}{block}", arguments["inner"])
        )

    return read


DTYPES = ("float32", "float16", "bfloat16")
#: The columns that a program has side by side; how the most of them lie in threads depends on the block of their numbers.
SIDES = (2, 4, 8, 16, 32)
SHORT_COLUMNS = tuple(1 << bit for bit in range(1, 8))
BY_SIDES = (*(f"side {side}" for side in SIDES[:-1]), *(f"side 32 {n}" for n in SHORT_COLUMNS))


def with_values(*values: Any) -> tuple[str, ...]:
    """Kinds of each dtype with each of these values."""
    return tuple(f"{dtype} {value}" for value in values for dtype in DTYPES)


def both_forms(*kinds: str) -> tuple[str, ...]:
    """These kinds, of rows that begin at multiples of 16 numbers and anywhere."""
    return tuple(f"{kind}{form}" for form in ("", " ragged") for kind in kinds)
