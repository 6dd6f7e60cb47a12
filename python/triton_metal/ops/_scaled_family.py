"""Products whose groups of 32 numbers of K have scales: tiles and SIMD-groups, and the parts of K."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ._choices import MOST_REGISTERS, Config
from ._family import Candidate, Family, cdiv, parts_up_to
from ._product_families import (
    ADD_PARTS,
    between,
    lines_near,
    part_launch,
    parts_with_work,
    share_of_stores,
    share_there,
    warps_for,
)

#: The bytes of a number of each format.
BYTES = {"e2m1": 0.5, "e4m3": 1.0, "fp16": 2.0, "bf16": 2.0}
#: Formats that are read like another.
_LIKE = {"e5m2": "e4m3"}
#: The numbers that share a scale.
GROUP = 32


class ScaledProducts(Family):
    """Tiles of scaled products.

    A kind is the formats of both operands, or these and "cut", of programs whose tiles have rows that are not there: they read bytes one by
    one, while those of whole tiles read several at once; or "split", of programs that have a part of K. Sizes are M, N, K, the bytes of a number of the result, and the parts of K, 0 where these are
    chosen.
    """

    name = "scaled"
    # Rows of operands and of scales must not be so short that they share lines.
    counted_steps = (64, 96)
    names = ("BLOCK_M", "BLOCK_N", "BLOCK_K", "num_warps")
    choice = (*names, "parts")
    #: The most parts of K, and the least of K that is worth one.
    MOST_PARTS, LEAST_PART = 32, 128

    def kinds(self) -> Sequence[str]:
        small = ("e2m1", "e4m3")
        pairs = [(a, b) for a in BYTES for b in BYTES if a in small or b in small]
        return [f"{a}:{b}{form}" for form in ("", " cut", " split") for a, b in pairs]

    def kind(self, a: str, b: str) -> str:
        """The kind of operands in these formats, by what `tl.dot_scaled` calls them."""
        return f"{_LIKE.get(a, a)}:{_LIKE.get(b, b)}"

    def configs(self, kind: str) -> Sequence[Config]:
        tiles = ((16, 32), (32, 32), (16, 64), (64, 32), (32, 64), (64, 64))
        return [(m, n, 64, warps) for m, n in tiles for warps in warps_for(m * n, 128, 512)]

    def parts(self, m: int, n: int, k: int, split: int, config: Config) -> tuple[int, ...]:
        """The numbers of parts of K that are tried for a tile."""
        if split:
            return (split,)
        programs = cdiv(m, config[0]) * cdiv(n, config[1])
        return parts_up_to(min(self.MOST_PARTS, k // self.LEAST_PART, 4096 // max(programs, 1)))

    def grid(self, kind: str, sizes: tuple[int, ...]) -> Sequence[Config]:
        m, n, k, _, split = sizes
        return [
            (*config, parts)
            for config in self.configs(kind)
            for parts in self.parts(m, n, k, split, config)
        ]

    def candidates(self, kind: str, sizes: tuple[int, ...]) -> Iterator[Candidate]:
        m, n, k, out_bytes, split = sizes
        a, b = kind.split(":")
        read = int(sum(rows * k * (BYTES[form] + _scales(form)) for rows, form in ((m, a), (n, b))))
        result = "float32" if out_bytes == 4 else "float16"
        usual = cdiv(m, 64) * cdiv(n, 64) * 4096
        cut, split_k = ({each.config: each for each in self.table[f"{kind} {form}"]} for form in ("cut", "split"))  # fmt: skip
        for entry in self.entries(kind):
            block_m, block_n, block_k, warps = entry.config
            programs = cdiv(m, block_m) * cdiv(n, block_n)
            if entry.config in cut:
                share = 1 - (m // block_m) * (n // block_n) / max(programs, 1)
                whole = between(entry, cut[entry.config], share)
            else:
                whole = entry
            near = _near(kind, sizes, entry.config)
            work = max(programs * block_m * block_n, usual)
            staged = programs * (entry.staged_once + cdiv(k, block_k) * entry.staged_step)
            for wanted in self.parts(m, n, k, split, entry.config):
                parts = parts_with_work(k, block_k, wanted)
                found = whole if parts == 1 else split_k.get(entry.config)
                if found is None or found.registers > MOST_REGISTERS:
                    continue
                first = part_launch(found, programs, k, block_k, parts, read, m * n, out_bytes, 0)
                # What was counted stores numbers of 16 bits, or 32 of parts, in two tiles side by side.
                size, stored = (out_bytes, 2) if parts == 1 else (4, 4)
                stores = share_of_stores(m, n, size, entry.config, (2 * block_n, stored))
                launches = [first._replace(near=(stores, near))]
                if parts > 1:
                    launches.append(ADD_PARTS.launch(result, m * n, parts))
                order = (parts, work, staged, abs(math.log2(warps / 4)))
                yield Candidate((*entry.config, wanted), order, tuple(launches))


def _scales(form: str) -> float:
    """The bytes of scales for a number."""
    return 1 / GROUP if form in ("e2m1", "e4m3") else 0.0


def _near(kind: str, sizes: tuple[int, ...], config: Config) -> float:
    """The share of the lines of the operands that remains where rows share lines (see `Launch`)."""
    m, n, k, *_ = sizes
    block_m, block_n, block_k, _ = config
    near = far = 0.0
    for form, rows, of_rows in zip(kind.split(":"), (block_m, block_n), (share_there(m, block_m), share_there(n, block_n)), strict=True):  # fmt: skip
        for each in (BYTES[form], _scales(form)):
            if each:
                counted, found = lines_near(rows, block_k * each, k * each, True)
                far += counted
                near += found * of_rows
    return near / far


SCALED = ScaledProducts()
