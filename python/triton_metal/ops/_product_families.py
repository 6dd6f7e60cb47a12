"""Families of matrix products: dense ones, whose K may be cut into parts, and those with a quantised matrix."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from ..cost.chips import chip
from ..cost.model import Sums, groups_in_flight
from ._choices import Config, Entry, Launch
from ._family import Candidate, Family, cdiv, parts_up_to


class AddParts(Family):
    """The launch that adds up parts of a product, whose counts other families need. A thread has one number of a small result, which
    is there sooner, and four neighbours of a large one.
    """

    name = "add_parts"
    names = choice = ("BLOCK", "num_warps")
    #: From so many numbers on a result is large.
    LARGE = 1 << 18

    def kinds(self) -> Sequence[str]:
        return ("float32", "float16", "bfloat16", "int32")

    def kind(self, dtype: str) -> str:
        """The kind of a result of this dtype; integers are as int32."""
        return dtype if dtype in self.kinds() else "int32"

    def configs(self, kind: str) -> Sequence[Config]:
        return ((128, 4), (1024, 8))

    def config(self, size: int) -> Config:
        """That of a result of so many numbers."""
        return self.configs("")[size >= self.LARGE]

    def candidates(self, kind: str, sizes: tuple[int, ...]) -> Iterator[Candidate]:
        size, parts = sizes
        yield Candidate(self.config(size), (), (self.launch(kind, size, parts),))

    def launch(self, kind: str, size: int, parts: int) -> Launch:
        """The launch for so many numbers."""
        itemsize, config = 2 if "16" in kind else 4, self.config(size)
        entry = next(each for each in self.table[kind] if each.config == config)
        return Launch(entry, cdiv(size, config[0]), parts, size * (4 * parts + itemsize))


ADD_PARTS = AddParts()

#: Addresses of one of several matrices or parts take so many registers more than what was counted; a core may then hold fewer threads.
MORE_REGISTERS = 4

#: The bytes of a number.
BYTES = {"int8": 1, "float8": 1, "float16": 2, "bfloat16": 2, "float32": 4}


def warps_for(area: int, least: int, most: int) -> list[int]:
    """SIMD-groups for a tile of so many numbers, of which each has from ``least`` to ``most``."""
    return [warps for warps in (1, 2, 4, 8, 16) if least <= area // warps <= most]


#: Tiles on simdgroup matrices, and their SIMD-groups. Small ones take more of K at once: they have fewer products for what they load.
_TILES = (
    (16, 16, 32, (1,)), (16, 32, 32, (1, 2)), (32, 16, 32, (1, 2)), (16, 64, 32, (2, 4)), (64, 16, 32, (2, 4)),
    (32, 32, 16, (4,)), (32, 32, 32, (2, 4)), (32, 64, 16, (2, 4)), (32, 64, 32, (4, 8)),
    (64, 32, 16, (2, 4)), (64, 32, 32, (4, 8)), (64, 64, 16, (2, 4, 8)), (64, 64, 32, (4, 8)),
    (64, 128, 16, (4, 8)), (64, 128, 32, (4, 8)), (128, 64, 16, (4, 8)), (128, 64, 32, (4, 8)), (128, 128, 16, (8,)),
)  # fmt: skip


#: Which operands' rows (columns) do not begin at multiples of 16 numbers: none, b's, a's, or both.
_RAGGED = ("", " ragged b", " ragged a", " ragged")


class MatrixProducts(Family):
    """Matrix products of numbers of all dtypes.

    A kind is the dtype that is multiplied ("float8" for two operands of bytes, which become float16), how both operands lie ("n" along their rows, "t" along their columns), "ragged" if
    their rows (columns) do not begin at multiples of 16 numbers, "ragged a" or "ragged b" if those of one do not, and "tensor" on tensor operations. Sizes are
    M, N, K, matrices, the bytes of a number of each operand and of the result, and the parts of K, 0 where these are chosen.
    """

    name = "matmul"
    names = ("BLOCK_M", "BLOCK_N", "BLOCK_K", "num_warps")
    choice = (*names, "parts")
    #: The most parts of K, and the least of K that is worth one.
    MOST_PARTS, LEAST_PART = 32, 128

    def __init__(self) -> None:
        super().__init__()
        self._pairs: dict[str, Any] = {}

    def kinds(self) -> Sequence[str]:
        plain = [
            f"{dtype} {a}{b}{ragged}"
            for dtype in ("float16", "bfloat16", "float32", "int8")
            for a in "nt"
            for b in "nt"
            for ragged in _RAGGED
        ]
        plain += [f"float8 nt{ragged}" for ragged in _RAGGED]
        return [*plain, *(f"{kind} tensor" for kind in plain if "ragged" not in kind)]

    def kind(self, dtype: str, a: str, b: str, ragged: tuple[bool, bool], tensor: bool) -> str:
        """The kind of these operands; ``ragged`` says which are.

        Bytes that become float16 are "float8" where both lie along K, as a linear layer's do, else as float16.
        """
        if dtype == "float8" and a + b != "nt":
            dtype = "float16"
        suffix = _RAGGED[2 * ragged[0] + ragged[1]]
        return f"{dtype} {a}{b}" + (" tensor" if tensor else suffix)

    def _pair(self, kind: str) -> tuple[dict[Config, Entry], dict[Config, Entry]]:
        """The entries of even and of ragged operands of this kind."""
        if kind not in self._pairs:
            plain = " ".join(kind.split()[:2])
            self._pairs[kind] = tuple(
                {entry.config: entry for entry in self.table[each]}
                for each in (plain, f"{plain} ragged")
            )
        return self._pairs[kind]

    def _with_ends(self, kind: str, entry: Entry, partial: bool, ragged_rows: bool) -> Entry:
        """The entry with the end of its loop and its stores as they are: whether the last step is partial and rows of the result begin
        anywhere, as with the ragged operands that were counted, does not follow from the operands' kind.
        """
        if kind.endswith("tensor"):
            return entry
        pair, config = self._pair(kind), entry.config
        if config not in pair[0] or config not in pair[1]:
            return entry
        lines = pair[ragged_rows][config].once.lines
        return replace(entry, once=pair[partial][config].once._replace(lines=lines))

    def configs(self, kind: str) -> Sequence[Config]:
        if kind.endswith("tensor"):
            # A SIMD-group has 32x32 or 32x64 numbers, as in MLX's.
            tiles = ((32, 32), (32, 64), (64, 32), (64, 64), (64, 128), (128, 64), (128, 128))
            groups = {m * n: warps_for(m * n, 1024, 2048) for m, n in tiles}
            deep = [(m, n, 32, w) for m, n in tiles for w in groups[m * n]]
            return [*deep, (64, 64, 16, 4), (64, 64, 64, 4)]
        return [(m, n, k, warps) for m, n, k, choices in _TILES for warps in choices]

    def parts(
        self, m: int, n: int, k: int, batch: int, split: int, tile: Sequence[int]
    ) -> tuple[int, ...]:
        """The numbers of parts of K that are tried for a tile."""
        if split:
            return (split,)
        programs = cdiv(m, tile[0]) * cdiv(n, tile[1]) * batch
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
        dtype, even, tensor = kind.split()[0], "ragged" not in kind, kind.endswith("tensor")
        result = "float32" if out_bytes == 4 else "bfloat16" if dtype == "bfloat16" else "float16"
        read = batch * (m * k * a_bytes + k * n * b_bytes)
        # Of equal configurations: no more products and loads than tiles of 64x64x16 have, then the least bytes of threadgroup memory.
        usual = cdiv(m, 64) * cdiv(n, 64) * batch
        usual_work, usual_traffic = usual * 4096 * cdiv(k, 16) * 16, usual * 128 * k
        for entry in self.entries(kind):
            block_m, block_n, block_k, warps = entry.config
            programs = cdiv(m, block_m) * cdiv(n, block_n) * batch
            staged = programs * (entry.staged_once + cdiv(k, block_k) * entry.staged_step)
            work = max(programs * block_m * block_n * cdiv(k, block_k) * block_k, usual_work)
            traffic = max(programs * (block_m + block_n) * k, usual_traffic)
            near = _near(kind.split()[1], sizes, entry.config)
            # What was counted stores numbers of the operands' dtype, or int32, in two tiles side by side.
            counted = (
                2 * block_n + 3 * (n % 16 != 0 and not tensor),
                {"int8": 4, "float8": 2}.get(dtype) or BYTES[dtype],
            )
            for wanted in self.parts(m, n, k, batch, split, entry.config):
                parts = parts_with_work(k, block_k, wanted)
                whole = cdiv(k, parts) % block_k == 0
                ended = self._with_ends(kind, entry, not whole, n % 16 != 0)
                if batch > 1 and parts == 1:
                    ended = replace(ended, registers=ended.registers + MORE_REGISTERS)
                first = part_launch(
                    ended, programs, k, block_k, parts, read, m * n * batch, out_bytes
                )
                size = out_bytes if parts == 1 else 4
                stores = share_of_stores(m, n, size, entry.config, counted, 16 if tensor else 8)
                launches = [first._replace(near=(stores, near))]
                if parts > 1:
                    launches.append(
                        ADD_PARTS.launch("int32" if dtype == "int8" and out_bytes == 4 else result, m * n * batch, parts)
                    )  # fmt: skip
                order = (parts, work, traffic, staged, block_k, abs(math.log2(warps / 4)))
                exact = (
                    even
                    and dtype != "float8"
                    and parts == 1
                    and not (m % block_m or n % block_n or k % block_k)
                )
                yield Candidate((*entry.config, wanted), order, tuple(launches), exact)


#: The bytes that a SIMD-group accesses at once where each lane has 16.
_ACCESS = 512


def lines_near(rows: int, inside: float, length: float, aligned: bool) -> tuple[float, float]:
    """The lines of ``rows`` rows of a tile, ``inside`` bytes of each: as they were counted, and where a matrix has rows of ``length``
    bytes, which share lines or begin within them. Rows that are not ``aligned`` were counted as such.
    """
    counted = rows * max(1.0, inside / 128)
    if length < 128:
        return counted, counted * length / 128
    if not aligned:
        return counted, counted
    # Rows begin at multiples of so many bytes within a line.
    step = math.gcd(int(length), 128)
    each = max(1.0, (inside + 128 - step) / 128)
    # One access has several rows, which share lines if they are short.
    together = min(rows, max(1, int(_ACCESS // max(inside, 1.0))))
    step = math.gcd(together * int(length), 128)
    span = math.ceil(((together - 1) * length + inside) / step) * step
    return counted, rows * min(each, (span + 128 - step) / 128 / together)


def _lines_of_tiles(rows: int, inside: float, length: float, aligned: bool) -> tuple[float, float]:
    """As `lines_near`, of the mean of the tiles along a row, of which the last one may have less."""
    counted, found = lines_near(rows, inside, length, aligned)
    rest = length % inside
    if length < 128 or not rest:
        return counted, found
    tiles = math.ceil(length / inside)
    last = lines_near(rows, rest, length, aligned)[1]
    return counted, ((tiles - 1) * found + last) / tiles


@functools.lru_cache(1 << 12)
def fragment_lines(pitch: int, inside: int) -> float:
    """The lines of a fragment of a result, which a SIMD-group stores at once: 8 rows of so many bytes, ``pitch`` bytes apart; the mean
    of those that lie side by side, and below each other.
    """
    if pitch > 128 + inside:
        pitch = pitch % 128 + 2 * 128  # no two rows share a line
    found = [
        len({(at + row * pitch + end) >> 7 for row in range(8) for end in (0, inside - 1)})
        for start in range(0, 128, math.gcd(8 * pitch, 128))
        for at in range(start, start + max(min(128, pitch), inside), inside)
    ]
    return sum(found) / len(found)


def share_of_stores(
    m: int, n: int, size: int, tile: Sequence[int], counted: tuple[int, int], wide: int = 8
) -> float:
    """The lines to which a product stores numbers of ``size`` bytes over those that were counted, of rows of ``counted`` numbers and their
    bytes. A fragment is so many columns ``wide``; of tiles that are cut, some are not there.
    """
    columns, stored = counted
    lines = fragment_lines(n * size, wide * size) / fragment_lines(columns * stored, wide * stored)
    there = cdiv(n, wide) * wide / max(cdiv(n, tile[1]) * tile[1], 1)
    return lines * share_there(m, tile[0]) * there


def _near(ways: str, sizes: tuple[int, ...], config: Config) -> float:
    """The share of the lines of both operands where rows share lines, straddle them, or are not there (see `Launch`)."""
    m, n, k, _, a_bytes, b_bytes, *_ = sizes
    block_m, block_n, block_k, _ = config
    rows_there, columns_there = share_there(m, block_m), share_there(n, block_n)
    steps_there = share_there(k, block_k)
    near = far = 0.0
    for way, rows, columns, size, row, column, there, turned_there in (
        (ways[0], block_m, block_k, a_bytes, m, k, rows_there, steps_there),
        (ways[1], block_k, block_n, b_bytes, k, n, steps_there, columns_there),
    ):
        length = column
        if way == "t":
            rows, columns, length, there = columns, rows, row, turned_there
        counted, found = _lines_of_tiles(rows, columns * size, length * size, length % 16 == 0)
        far += counted
        near += found * there
    return near / far


def share_there(size: int, block: int) -> float:
    """The share of blocks' rows that there are."""
    return size / (cdiv(size, block) * block) if size else 1.0


def between(first: Entry, second: Entry, share: float) -> Entry:
    """The entry of which the second has this share of what programs do and take."""

    def mean(a: float, b: float) -> float:
        return a + share * (b - a)

    return replace(
        second,
        registers=mean(first.registers, second.registers),
        once=Sums(*map(mean, first.once, second.once)),
        step=Sums(*map(mean, first.step, second.step)),
    )


def parts_with_work(k: int, block_k: int, parts: int) -> int:
    """How many of so many parts of whole blocks of K have any."""
    steps = max(1, cdiv(k, block_k))
    return cdiv(steps, cdiv(steps, max(1, min(parts, steps))))


def part_launch(
    entry: Entry, programs: int, k: int, block_k: int, parts: int, read: int, size: int, out_bytes: int,
    more: int = MORE_REGISTERS,
) -> Launch:  # fmt: skip
    """The launch of a product whose K is cut into parts, which takes so many registers ``more`` than whole products do."""
    steps = cdiv(cdiv(k, parts), block_k)
    # The last part has what is left.
    mean = cdiv(k, block_k) / parts if parts > 1 else steps
    written = size * (out_bytes if parts == 1 else 4 * parts)
    if parts > 1:
        entry = replace(entry, registers=entry.registers + more)
    return Launch(entry, programs * parts, mean, read + written)


MATMUL = MatrixProducts()


def held(entry: Entry) -> int:
    """The threads that a core of the M1 holds of an entry's kernel."""
    groups = groups_in_flight(chip("M1"), entry.registers, entry.threads, entry.threadgroup_bytes)
    return groups * entry.threads


def bytes_read(mode: str, dtype: str, sizes: tuple[int, ...]) -> int:
    """The bytes of the operands of a product with a quantised matrix."""
    m, n, k, batch, group = sizes
    number, bits = BYTES[dtype], 8 if mode in ("affine8", "mxfp8") else 4
    # Scales and biases of the dtype, or one byte.
    scales = 2 * number if mode.startswith("affine") else 1
    return batch * (m * k * number + n * k * bits // 8 + n * k // group * scales)


class QuantizedProducts(Family):
    """Products of more than a few rows with a quantised matrix.

    A kind is the mode with its bits, the dtype of the result, and whether the matrix is transposed ("t"). Sizes are M, N, K, matrices
    and the numbers of a group.
    """

    name = "quantized"
    # Rows of the matrix and of its scales must not be so short that they share lines.
    counted_steps = (128, 256)
    names = choice = ("BLOCK_M", "BLOCK_N", "BLOCK_K", "num_warps")

    def kinds(self) -> Sequence[str]:
        return [
            f"{mode} {dtype} {way}"
            for mode in ("affine4", "affine8", "mxfp4", "mxfp8")
            for dtype in ("float16", "bfloat16", "float32")
            for way in "tn"
        ]

    def kind(self, mode: str, bits: int, dtype: str, transpose: bool) -> str:
        """The kind of these operands."""
        return f"{mode}{bits if mode == 'affine' else ''} {dtype} {'t' if transpose else 'n'}"

    def configs(self, kind: str) -> Sequence[Config]:
        tiles = (
            (16, 32, (1, 2)), (16, 64, (2, 4)), (32, 32, (2, 4)), (32, 64, (4, 8)), (64, 32, (4, 8)), (64, 64, (4, 8)),
        )  # fmt: skip
        return [(m, n, 32, warps) for m, n, choices in tiles for warps in choices]

    def fits(self, kind: str, config: Config, group: int) -> bool:
        """Whether the side of a tile that lies along the matrix's rows divides a group."""
        return kind.endswith("t") or group % config[1] == 0

    def grid(self, kind: str, sizes: tuple[int, ...]) -> Sequence[Config]:
        return [each for each in self.configs(kind) if self.fits(kind, each, sizes[-1])]

    def candidates(self, kind: str, sizes: tuple[int, ...]) -> Iterator[Candidate]:
        m, n, k, batch, group = sizes
        mode, dtype, _ = kind.split()
        number, bits = BYTES[dtype], 8 if mode in ("affine8", "mxfp8") else 4
        memory = bytes_read(mode, dtype, sizes) + batch * m * n * number
        usual = cdiv(m, 64) * cdiv(n, 64) * batch
        for entry in self.entries(kind):
            if not self.fits(kind, entry.config, group):
                continue
            block_m, block_n, block_k, warps = entry.config
            programs, steps = cdiv(m, block_m) * cdiv(n, block_n) * batch, cdiv(k, block_k)
            order = (
                max(programs * block_m * block_n, usual * 4096),
                max(programs * (block_m * number * 8 + block_n * bits), usual * 64 * (number * 8 + bits)),
                -held(entry),
                programs * (entry.staged_once + steps * entry.staged_step),
                abs(math.log2(warps / 4)),
            )  # fmt: skip
            exact = not (m % block_m or n % block_n or k % block_k)
            near = self._near(kind, sizes, entry.config)
            launch = Launch(entry, programs, steps, memory, near)
            yield Candidate(entry.config, order, (launch,), exact)

    def _near(self, kind: str, sizes: tuple[int, ...], config: Config) -> tuple[float, float]:
        """The shares of the lines of the result and of the operands that remain where rows share lines (see `Launch`)."""
        m, n, k, _, group = sizes
        mode, dtype, way = kind.split()
        block_m, block_n, block_k, _ = config
        number, bits = BYTES[dtype], 8 if mode in ("affine8", "mxfp8") else 4
        scale, scales = (number, 2) if mode.startswith("affine") else (1, 1)
        rows, columns, length = (block_n, block_k, k) if way == "t" else (block_k, block_n, n)
        near = far = 0.0
        for count, inside, whole, there in (
            (block_m, block_k * number, k * number, share_there(m, block_m)),
            (rows, columns * bits / 8, length * bits / 8, 1.0),
            (rows * scales, columns * scale / group, length * scale / group, 1.0),
        ):
            counted, found = lines_near(count, inside, whole, True)
            far += counted
            near += found * there
        # What was counted has 1024 columns.
        return share_of_stores(m, n, number, config, (1024, number)), near / far


QUANTIZED = QuantizedProducts()
