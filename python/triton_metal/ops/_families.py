"""The families of kernels with a choice of configurations: which there are, and how much of a table's counts a shape takes."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

from ..cost import Chip
from ._arrays import Array
from ._choices import (
    MOST_REGISTERS,
    Config,
    Entry,
    Launch,
    Table,
    answer,
    chip_for,
    seconds,
    simplest,
    tables,
)

#: So many answers are kept for a family; then all are forgotten.
KEPT = 1 << 14


def parts_up_to(most: int) -> tuple[int, ...]:
    """The numbers of parts that work may be cut into: powers of two up to ``most``, at least 1."""
    return tuple(1 << i for i in range(max(1, most).bit_length()))


class Candidate(NamedTuple):
    """A configuration for a shape, what it launches, and its place among equally good ones: the least is taken."""

    config: Config
    order: tuple[float, ...]
    launches: tuple[Launch, ...]


class Family(ABC):
    """Kernels with a table. ``names`` are those of a table's configurations, ``choice`` those of what is chosen for a shape."""

    name: ClassVar[str]
    names: ClassVar[tuple[str, ...]]
    choice: ClassVar[tuple[str, ...]]
    has_table: ClassVar[bool] = True

    def __init__(self) -> None:
        self._kept: dict[Any, Config] = {}

    @abstractmethod
    def kinds(self) -> Sequence[str]:
        """The kinds of operands that the table has."""

    @abstractmethod
    def configs(self, kind: str) -> Sequence[Config]:
        """The configurations that the table has of a kind."""

    @abstractmethod
    def candidates(self, kind: str, sizes: tuple[int, ...]) -> Iterator[Candidate]:
        """All configurations for a shape."""

    @property
    def table(self) -> Table:
        """The counts."""
        return tables(self.name, self.names, self.kinds())

    def entries(self, kind: str) -> Sequence[Entry]:
        """The configurations of a kind that do not spill; all of them if there is none."""
        every = self.table[kind]
        return [each for each in every if each.registers <= MOST_REGISTERS] or every

    def choose(self, like: Array, kind: str, *sizes: int) -> Config:
        """The configuration for a shape on the device of ``like``."""
        return answer(self.name, kind, sizes) or self.best(chip_for(like), kind, sizes)

    def grid(self, kind: str, sizes: tuple[int, ...]) -> Sequence[Config]:
        """All that may be chosen for a shape."""
        return self.configs(kind)

    def best(self, chip: Chip, kind: str, sizes: tuple[int, ...]) -> Config:
        """The configuration for a shape on a chip: of those that the model calls equal to the best, the simplest."""
        key = (chip.name, chip.cores, kind, sizes)
        found = self._kept.get(key)
        if found is None:
            found = simplest(
                [
                    (seconds(chip, each.launches), each.order, each.config)
                    for each in self.candidates(kind, sizes)
                ]
            )
            if len(self._kept) >= KEPT:
                self._kept.clear()
            self._kept[key] = found
        return found


def _ceil(size: int, block: int) -> int:
    return -(-size // block)


class AddParts(Family):
    """The launch that adds up parts of a product. It has one configuration, whose counts other families need."""

    name = "add_parts"
    names = choice = ("BLOCK",)

    def kinds(self) -> Sequence[str]:
        return ("float32", "float16", "bfloat16", "int32")

    def configs(self, kind: str) -> Sequence[Config]:
        return ((1024,),)

    def candidates(self, kind: str, sizes: tuple[int, ...]) -> Iterator[Candidate]:
        size, parts = sizes
        yield Candidate((1024,), (), (self.launch(kind, size, parts),))

    def launch(self, kind: str, size: int, parts: int) -> Launch:
        """The launch for so many numbers."""
        itemsize = 2 if "16" in kind else 4
        (entry,) = self.table[kind]
        return Launch(entry, _ceil(size, 1024), parts, size * (4 * parts + itemsize))


ADD_PARTS = AddParts()

_BYTES = {"int8": 1, "float16": 2, "bfloat16": 2, "float32": 4}


def _warps(area: int, least: int, most: int) -> list[int]:
    """SIMD-groups for a tile of so many numbers, of which each has from ``least`` to ``most``."""
    return [warps for warps in (1, 2, 4, 8, 16) if least <= area // warps <= most]


#: Tiles on simdgroup matrices, and their SIMD-groups. Small ones take more of K at once: they have fewer products for what they load.
_TILES = (
    (16, 16, 32, (1,)), (16, 32, 32, (1, 2)), (32, 16, 32, (1, 2)), (16, 64, 32, (2, 4)), (64, 16, 32, (2, 4)),
    (32, 32, 16, (4,)), (32, 32, 32, (2, 4)), (32, 64, 16, (4,)), (32, 64, 32, (4, 8)),
    (64, 32, 16, (4,)), (64, 32, 32, (4, 8)), (64, 64, 16, (2, 4, 8)), (64, 64, 32, (4, 8)),
    (64, 128, 16, (4, 8)), (64, 128, 32, (4, 8)), (128, 64, 16, (4, 8)), (128, 64, 32, (4, 8)), (128, 128, 16, (8,)),
)  # fmt: skip


class MatrixProducts(Family):
    """Matrix products of numbers of all dtypes.

    A kind is the dtype that is multiplied, how both operands lie ("n" along their rows, "t" along their columns), "ragged" if
    their rows (columns) do not begin at multiples of 16 numbers, and "tensor" on tensor operations. Sizes are
    M, N, K, matrices, the bytes of a number of each operand and of the result, and the parts of K, 0 where these are chosen.
    """

    name = "matmul"
    names = ("BLOCK_M", "BLOCK_N", "BLOCK_K", "num_warps")
    choice = (*names, "parts")
    #: The most parts of K, and the least of K that is worth one.
    MOST_PARTS, LEAST_PART = 32, 128

    def kinds(self) -> Sequence[str]:
        plain = [
            f"{dtype} {a}{b}{ragged}"
            for dtype in ("float16", "bfloat16", "float32", "int8")
            for a in "nt"
            for b in "nt"
            for ragged in ("", " ragged")
        ]
        return [*plain, *(f"{kind} tensor" for kind in plain if "ragged" not in kind)]

    def kind(self, dtype: str, a: str, b: str, ragged: bool, tensor: bool) -> str:
        """The kind of these operands."""
        return f"{dtype} {a}{b}" + (" tensor" if tensor else " ragged" if ragged else "")

    def configs(self, kind: str) -> Sequence[Config]:
        if kind.endswith("tensor"):
            # A SIMD-group has 32x32 or 32x64 numbers, as in MLX's.
            tiles = ((32, 32), (32, 64), (64, 32), (64, 64), (64, 128), (128, 64), (128, 128))
            groups = {m * n: _warps(m * n, 1024, 2048) for m, n in tiles}
            deep = [(m, n, 32, w) for m, n in tiles for w in groups[m * n]]
            return [*deep, (64, 64, 16, 4), (64, 64, 64, 4)]
        return [(m, n, k, warps) for m, n, k, choices in _TILES for warps in choices]

    def parts(
        self, m: int, n: int, k: int, batch: int, split: int, tile: Sequence[int]
    ) -> tuple[int, ...]:
        """The numbers of parts of K that are tried for a tile."""
        if split:
            return (split,)
        programs = _ceil(m, tile[0]) * _ceil(n, tile[1]) * batch
        # No chip of today is busier with more programs.
        return parts_up_to(min(self.MOST_PARTS, k // self.LEAST_PART, 4096 // max(programs, 1)))

    def grid(self, kind: str, sizes: tuple[int, ...]) -> Sequence[Config]:
        m, n, k, batch, *_, split = sizes
        return [
            (*config, parts)
            for config in self.configs(kind)
            for parts in self.parts(m, n, k, batch, split, config)
        ]

    def candidates(self, kind: str, sizes: tuple[int, ...]) -> Iterator[Candidate]:
        m, n, k, batch, a_bytes, b_bytes, out_bytes, split = sizes
        dtype = kind.split()[0]
        result = "float32" if out_bytes == 4 else "bfloat16" if dtype == "bfloat16" else "float16"
        read = batch * (m * k * a_bytes + k * n * b_bytes)
        # Of equal configurations: no more products and loads than tiles of 64x64x16 have, then the least bytes of threadgroup memory.
        usual = _ceil(m, 64) * _ceil(n, 64) * batch
        usual_work, usual_traffic = usual * 4096 * _ceil(k, 16) * 16, usual * 128 * k
        for entry in self.entries(kind):
            block_m, block_n, block_k, warps = entry.config
            programs = _ceil(m, block_m) * _ceil(n, block_n) * batch
            staged = programs * (entry.staged_once + _ceil(k, block_k) * entry.staged_step)
            work = max(programs * block_m * block_n * _ceil(k, block_k) * block_k, usual_work)
            traffic = max(programs * (block_m + block_n) * k, usual_traffic)
            for parts in self.parts(m, n, k, batch, split, entry.config):
                launches = [_part(entry, programs, k, block_k, parts, read, m * n * batch, out_bytes)]  # fmt: skip
                if parts > 1:
                    launches.append(
                        ADD_PARTS.launch("int32" if dtype == "int8" and out_bytes == 4 else result, m * n * batch, parts)
                    )  # fmt: skip
                order = (parts, work, traffic, staged, block_k, abs(math.log2(warps / 4)))
                yield Candidate((*entry.config, parts), order, tuple(launches))


def _part(
    entry: Entry, programs: int, k: int, block_k: int, parts: int, read: int, size: int, out_bytes: int
) -> Launch:  # fmt: skip
    """The launch of a product whose K is cut into parts."""
    steps = _ceil(_ceil(k, parts), block_k)
    # The last part has what is left.
    mean = _ceil(k, block_k) / parts if parts > 1 else steps
    written = size * (out_bytes if parts == 1 else 4 * parts)
    return Launch(entry, programs * parts, mean, read + written)


MATMUL = MatrixProducts()

FAMILIES: dict[str, Family] = {each.name: each for each in (ADD_PARTS, MATMUL)}
