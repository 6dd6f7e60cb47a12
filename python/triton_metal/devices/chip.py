"""Apple's chips, by their names."""

from __future__ import annotations

import re
from dataclasses import dataclass

#: Apple's Metal feature set tables: the family of a chip's GPU.
FAMILY_OF_M = {1: 7, 2: 8, 3: 9, 4: 9, 5: 10}


@dataclass(frozen=True)
class Chip:
    """The parts of a chip's name."""

    name: str | None
    generation: int | None = None  # 1 for M1
    variant: str | None = None  # "", "Pro", "Max" or "Ultra"
    virtual: bool = False

    @property
    def is_apple_gpu(self) -> bool:
        """Whether this is a chip of the M series. The oldest one has a GPU of family Apple7."""
        return self.generation is not None

    @property
    def family(self) -> int | None:
        """The N of MTLGPUFamily.appleN, from Apple's feature set tables; None if they do not list the chip."""
        return FAMILY_OF_M.get(self.generation or 0)


def parse_chip(name: str | None) -> Chip:
    """Reads sysctl's machdep.cpu.brand_string or MTLDevice.name.

    >>> parse_chip("Apple M3 Max").variant, parse_chip("Apple M3 Max").family
    ('Max', 9)
    >>> parse_chip("Apple M1 (Virtual)").virtual, parse_chip("Intel(R) Core(TM) i7").is_apple_gpu
    (True, False)
    """
    match = re.fullmatch(r"Apple M(\d+)(?: (Pro|Max|Ultra))?( \(Virtual\))?", (name or "").strip())
    if match is None:
        return Chip(name)
    return Chip(name, int(match[1]), match[2] or "", match[3] is not None)
