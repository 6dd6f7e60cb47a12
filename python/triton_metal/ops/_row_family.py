"""How many SIMD-groups take a few rows times a quantised matrix whose rows lie along the result.

Each has 32 rows of the matrix in a step, so that more of them take fewer steps. They meet once, at the end of a program.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ._choices import Config, Launch
from ._family import Candidate, Family, cdiv
from ._product_families import BYTES, QUANTIZED, bytes_read

#: The columns of a program, and the rows of the matrix that a SIMD-group has in a step.
COLUMNS, ROWS = 32, 32


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
        m, n, k, batch, _ = sizes
        mode, dtype, _ = kind.split()
        memory = bytes_read(mode, dtype, sizes) + batch * m * n * BYTES[dtype]
        for entry in self.entries(kind):
            (warps,) = entry.config
            launch = Launch(entry, cdiv(n, COLUMNS) * m * batch, cdiv(k, ROWS * warps), memory)
            yield Candidate((warps,), (warps,), (launch,))


QUANTIZED_ROWS = QuantizedRows()
