"""Into how many parts `attention_decode` splits a query's keys, and the SIMD-groups of each: few queries want many, so that all cores have work.

A program reads the keys of its part one after the other, and a second launch joins the parts of a query. The table has what a program
does once and for a key; what the second launch does is that of its kernel in the table of SIMD-groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import triton_metal as triton

from ._arrays import Array, dtype_name
from ._choices import Config, Launch
from ._family import Candidate, Family, cdiv, parts_up_to
from ._groups import DTYPES, GROUPS
from ._product_families import BYTES

#: The most parts, and the most numbers of all parts of a query: the program that joins them holds them at once.
MOST_PARTS, MOST_JOINED = 512, 1 << 15


#: Widths of heads with counts of their own: in how many pieces a row is read, and how many lines these touch, depends on the width.
WIDTHS = (*range(16, 129, 16), *range(160, 257, 32))


def width_of(width: int) -> int:
    """The least of `WIDTHS` that holds a head."""
    return min((w for w in WIDTHS if w >= width), default=width)


class Decode(Family):
    """Parts of keys and their SIMD-groups. A kind is the dtype and the one of `WIDTHS` that holds a head; sizes are queries in all, keys that
    one sees, the heads of keys in all, and the width of a head.
    """

    name = "decode"
    names = ("num_warps",)
    choice = ("parts", "num_warps")
    counted_steps = (16, 64)

    def kinds(self) -> Sequence[str]:
        return [f"{dtype} {width}" for dtype in DTYPES for width in WIDTHS]

    def configs(self, kind: str) -> Sequence[Config]:
        return ((1,), (2,), (4,))

    def grid(self, kind: str, sizes: tuple[int, ...]) -> Sequence[Config]:
        block, keys = _block(kind), sizes[1]
        most = min(MOST_PARTS, MOST_JOINED // block, keys)
        every = (warps for (warps,) in self.configs(kind) if 32 * warps <= block or warps == 1)
        return [(parts, warps) for warps in every for parts in parts_up_to(most)]

    def candidates(self, kind: str, sizes: tuple[int, ...]) -> Iterator[Candidate]:
        rows, keys, shared, width = sizes
        dtype, block = kind.split()[0], _block(kind)
        entries = {each.config: each for each in self.table[kind]}
        number = BYTES[dtype]
        read = (rows + 2 * shared * keys) * width * number
        for parts, warps in self.grid(kind, sizes):
            kept = rows * parts * (width + 2) * 4
            first = Launch(entries[warps,], rows * parts, cdiv(keys, parts), read + kept)
            written = kept + rows * width * number
            least, numbers = groups_to_join(parts, block), parts * block
            joined = (rows, numbers, 1, written, least, numbers)
            for each in GROUPS.candidates(f"join_kernel {block}", joined):
                if each.config[0] >= least:
                    # A step of several SIMD-groups has barriers, of which the model knows nothing.
                    yield Candidate((parts, warps), (warps, parts), (first, *each.launches))


def _block(kind: str) -> int:
    """The power of two that holds a head."""
    return triton.next_power_of_2(int(kind.split()[1]))


DECODE = Decode()


def groups_to_join(parts: int, block: int) -> int:
    """The SIMD-groups that join the parts of one of many queries: a thread has 32 numbers."""
    return min(16, max(1, parts * block // 1024))


def parts_and_groups(
    q: Array, k_heads: int, queries: int, keys: int, left: int, right: int
) -> Config:
    """Into how many parts the keys of each of so many queries are split, and the SIMD-groups of a part. A query sees no more keys than
    a window has.
    """
    if left >= 0:
        keys = min(keys, left + (right + 1 if right >= 0 else q.shape[2]))
    # A cache that grows by a key at a time asks for a few numbers of keys only.
    step = 1 << max(0, keys.bit_length() - 4)
    keys = cdiv(max(1, keys), step) * step
    width = q.shape[3]
    kind = f"{dtype_name(q)} {width_of(width)}"
    return DECODE.choose(q, kind, queries, keys, k_heads, width)
