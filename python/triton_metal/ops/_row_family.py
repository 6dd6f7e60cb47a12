"""How many SIMD-groups take a few rows times a quantised matrix whose rows lie along the result.

Each has 32 rows of the matrix in a step, so that more of them take fewer steps. They meet once, at the end of a program.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ._choices import Config, Launch
from ._family import Candidate, Family, cdiv
from ._product_families import BYTES, QUANTIZED, bytes_read

#: The columns of a program, and the rows of the matrix that a SIMD-group has in a step.
COLUMNS, ROWS = 32, 32
#: The numbers of a row of the matrix that was counted, and of its groups: of floats, and of integers.
COUNTED, GROUPS_OF = 1024, (32, 64)
#: The registers that masks take where a step is not whole; whole ones were counted.
OF_MASKS = 4


class QuantizedRows(Family):
    """SIMD-groups. A kind is one of `QUANTIZED`'s that are not transposed; sizes are those of `QUANTIZED`."""

    name = "quantized_rows"
    names = choice = ("num_warps",)
    counted_steps = (2, 6)

    def kinds(self) -> Sequence[str]:
        return [kind for kind in QUANTIZED.kinds() if kind.endswith(" n")]

    def configs(self, kind: str) -> Sequence[Config]:
        return ((1,), (2,), (4,), (8,), (16,))

    def candidates(self, kind: str, sizes: tuple[int, ...]) -> Iterator[Candidate]:
        m, n, k, batch, group = sizes
        mode, dtype, _ = kind.split()
        memory = bytes_read(mode, dtype, sizes) + batch * m * n * BYTES[dtype]
        for entry in self.entries(kind):
            (warps,) = entry.config
            programs, steps = cdiv(n, COLUMNS) * m * batch, cdiv(k, ROWS * warps)
            # Of the last step's rows some are not there, and rows that are short share lines.
            share = _lines(kind, n, group) / _lines(
                kind, COUNTED, GROUPS_OF[kind.startswith("affine")]
            )
            near = (1.0, share * k / max(steps * ROWS * warps, 1))
            if k % (ROWS * warps):
                entry = replace(entry, registers=entry.registers + OF_MASKS)
            launch = Launch(entry, programs, steps, memory, near)
            yield Candidate((warps,), (warps,), (launch,))


def _lines(kind: str, n: int, group: int) -> float:
    """Lines of rows of so many numbers that a row's accesses touch: 16 bytes of it at once, and a scale."""
    mode, dtype, _ = kind.split()
    bits = 8 if mode in ("affine8", "mxfp8") else 4
    size = BYTES[dtype] if mode.startswith("affine") else 1

    def share(length: float) -> float:
        return min(1.0, length / 128)

    return COLUMNS * bits / 128 * share(n * bits / 8) + share(n / group * size)


QUANTIZED_ROWS = QuantizedRows()
