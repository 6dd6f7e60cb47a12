"""What is published of the GPUs of Apple's chips, each figure with its source.

Apple publishes cores and bandwidth, and neither clocks nor what a core does in a cycle: those are others' measurements.
What nobody has published is None, and the model leaves out what depends on it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ..errors import LaunchTypeError, LaunchValueError

_METAL_BENCHMARKS = "philipturner/metal-benchmarks, README (measured on M1, M1 Max and A15)"


@dataclass(frozen=True)
class Units:
    """What a core does in a cycle. Operations are those of lanes; bytes are per core.

    ``float_add`` counts additions, multiplications and fused ones alike. ``matrix`` counts multiply-adds of matrix
    instructions by the type of their operands.
    """

    float_add: float = 128
    half_add: float = 128
    int_add: float = 128
    int_mul: float = 32
    conversion: float = 32
    function: float = 32
    division: float = 21
    matrix_half: float | None = 102.5
    matrix_float: float | None = 101.7
    shuffle_bytes: float = 256
    cache_bytes: float = 64
    instructions: float = 128
    source: str = _METAL_BENCHMARKS
    #: Cycles of an operation by the SIMD-groups that a core holds, at four independent operations in each.
    busy: tuple[tuple[int, float], ...] = ((4, 2.75), (8, 1.6), (24, 1.0))


#: The families after Apple8 have no published measurement of this kind; those of Apple8 are the newest there are.
UNITS = Units()


#: Threads that a core of Apple7 and Apple8 holds by the 32-bit registers of each (Mesa's agx_occupancy table).
OCCUPANCY = (
    (52, 1024), (56, 896), (64, 832), (68, 768), (72, 704), (80, 640), (92, 576), (104, 512), (116, 448), (128, 384),
)  # fmt: skip


@dataclass(frozen=True)
class Chip:
    """The GPU of a chip with all its cores, or with fewer.

    ``clock`` is in GHz, ``bandwidth`` in GB/s (10^9 bytes), ``last_level`` the megabytes of the cache in front of the memory.
    ``sources`` says where each comes from.
    """

    name: str
    family: int
    cores: int
    bandwidth: float
    clock: float | None
    last_level: float | None
    units: Units = UNITS
    occupancy: tuple[tuple[float, int], ...] = OCCUPANCY
    core_threadgroup_bytes: int = 60 * 1024
    sources: Mapping[str, str] = field(default_factory=dict)

    @property
    def core_threads(self) -> int:
        """The threads that a core holds at most."""
        return self.occupancy[0][1]


_APPLE = "Apple's announcement of the chip"
_CLOCK = {
    "M1": (1.278, "philipturner/metal-benchmarks, README"),
    "M1 Pro": (1.296, "philipturner/metal-benchmarks, README"),
    "M2": (1.398, "philipturner/metal-benchmarks, README"),
    "M3": (1.338, "philipturner/applegpuinfo, issue 15: powermetrics on a MacBook Air"),
    "M3 Pro": (1.380, "eclecticlight.co, 6 January 2025, as psutil's pull request 2824 quotes it"),
    "M3 Max": (1.380, "philipturner/applegpuinfo, issue 4: powermetrics"),
    "M4 Pro": (1.578, "eclecticlight.co, 22 January 2025: powermetrics on a Mac mini"),
    "M5 Max": (1.620, "feedback-assistant/reports, issue 830: powermetrics under load"),
}
#: Chips whose clock is the one of another: the same measurement lists them together.
_SAME_CLOCK = {"M1 Max": "M1 Pro", "M1 Ultra": "M1 Pro", "M2 Pro": "M2", "M2 Max": "M2"}
_LAST_LEVEL = {
    "M1": 8,
    "M1 Pro": 24,
    "M1 Max": 48,
    "M1 Ultra": 96,
    "M2": 8,
    "M2 Pro": 24,
    "M2 Max": 48,
}

#: Name, family, and the cores with the bandwidth of each form; the largest last.
_FORMS: tuple[tuple[str, int, tuple[tuple[int, float], ...]], ...] = (
    ("M1", 7, ((7, 68.3), (8, 68.3))),
    ("M1 Pro", 7, ((14, 200), (16, 200))),
    ("M1 Max", 7, ((24, 400), (32, 400))),
    ("M1 Ultra", 7, ((48, 800), (64, 800))),
    ("M2", 8, ((8, 100), (10, 100))),
    ("M2 Pro", 8, ((16, 200), (19, 200))),
    ("M2 Max", 8, ((30, 400), (38, 400))),
    ("M2 Ultra", 8, ((60, 800), (76, 800))),
    ("M3", 9, ((8, 100), (10, 100))),
    ("M3 Pro", 9, ((14, 150), (18, 150))),
    ("M3 Max", 9, ((30, 300), (40, 400))),
    ("M3 Ultra", 9, ((60, 819), (80, 819))),
    ("M4", 9, ((8, 120), (10, 120))),
    ("M4 Pro", 9, ((16, 273), (20, 273))),
    ("M4 Max", 9, ((32, 410), (40, 546))),
    ("M5", 10, ((8, 153), (10, 153))),
    ("M5 Pro", 10, ((16, 307), (20, 307))),
    ("M5 Max", 10, ((32, 460), (40, 614))),
)


def _chips() -> dict[str, list[Chip]]:
    result: dict[str, list[Chip]] = {}
    for name, family, forms in _FORMS:
        clock, source = _CLOCK.get(_SAME_CLOCK.get(name, name), (None, ""))
        units = UNITS
        sources = {"cores": _APPLE, "bandwidth": _APPLE, "units": units.source}
        if clock is not None:
            sources["clock"] = source
        if name == "M1":
            sources["bandwidth"] = (
                "128 bits of LPDDR4X-4266: 68.3 GB/s; Apple says that M2 has half as much again"
            )
        if name in _LAST_LEVEL:
            sources["last_level"] = "philipturner/metal-benchmarks, README"
        result[name] = [
            Chip(name, family, cores, gbs, clock, _LAST_LEVEL.get(name), units, sources=sources)
            for cores, gbs in forms
        ]
    return result


CHIPS = _chips()
_NAME = re.compile(
    r"(?:Apple )?(M\d+(?: (?:Pro|Max|Ultra))?)(?:[ ,]+(\d+)[- ]?cores?)?", re.IGNORECASE
)


def chip(name: str) -> Chip:
    """The GPU of a chip: "M3 Max" or "Apple M3 Max" with all its cores, "M3 Max 30 cores" with fewer.

    Raises LaunchValueError for a chip or a number of cores that is not in the table.

    >>> chip("Apple M3 Max").cores, chip("M3 Max, 30 cores").bandwidth
    (40, 300)
    """
    if not isinstance(name, str):
        raise LaunchTypeError(f"[cost] chip must be a name such as 'M3 Max' but is {name!r}.")
    match = _NAME.fullmatch(" ".join(name.split()))
    known = {each.lower(): each for each in CHIPS}
    if match is None or match[1].lower() not in known:
        raise LaunchValueError(
            f"[cost] chip must be one of {', '.join(CHIPS)}, or one with its number of cores such as "
            f"'M3 Max 30 cores', but is {name!r}."
        )
    forms = CHIPS[known[match[1].lower()]]
    if match[2] is None:
        return forms[-1]
    for form in forms:
        if form.cores == int(match[2]):
            return form
    raise LaunchValueError(
        f"[cost] {forms[0].name} has {' or '.join(str(form.cores) for form in forms)} GPU cores, not {match[2]}."
    )


#: Chips without a published clock, and the one whose clock stands in where configurations are ranked: the chip before with one.
_CLOCK_OF = {
    "M2 Ultra": "M2 Max",
    "M3 Ultra": "M3 Max",
    **dict.fromkeys(("M4", "M4 Max", "M5", "M5 Pro"), "M4 Pro"),
}


def ranking_chip(name: str) -> Chip:
    """The chip with this name, for comparing configurations with each other.

    A bound leaves out arithmetic and caches where no clock is published; a comparison would be blind to them. There the clock of the
    nearest chip with a published one stands in, as ``sources["clock"]`` says. Raises what `chip` raises.

    >>> ranking_chip("M4 Max").clock, ranking_chip("M4 Max").sources["clock"]
    (1.578, 'none is published: that of M4 Pro')
    """
    found = chip(name)
    if found.clock is not None:
        return found
    other = _CLOCK_OF[found.name]
    sources = {**found.sources, "clock": f"none is published: that of {other}"}
    return replace(found, clock=chip(other).clock, sources=sources)


def full_name(found: Chip) -> str:
    """The name that `chip` reads as this chip, with its cores where there are more of them in others.

    >>> full_name(chip("Apple M3 Max")), full_name(chip("M3 Max 30 cores"))
    ('M3 Max', 'M3 Max 30 cores')
    """
    whole = CHIPS[found.name][-1].cores
    return found.name if found.cores == whole else f"{found.name} {found.cores} cores"
