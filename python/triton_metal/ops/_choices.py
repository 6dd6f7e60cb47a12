"""The configurations that launches take by default: the best of a grid for the chip, by the cost model and shipped counts.

A table (``tables/NAME.json``, made by ``python -m triton_metal tune-ops``) has, for each kind of operands and each configuration of a
family of kernels, what one program does and what each further step of its loop does, as `triton_metal.cost` adds it up. These do
not depend on the chip or on the shape; a choice multiplies them, and asks the model for the chip. No launch is made, and the
answer for a shape is kept.
"""

from __future__ import annotations

import functools
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .. import knobs
from ..cost import Chip, ranking_chip
from ..cost.model import Sums, estimate, groups_in_flight, matrix_rate, with_spills
from ..devices import quirks
from ..devices.base import Device
from ..devices.registry import get
from ..devices.selection import chosen, current
from ..devices.target import WITHOUT
from ..errors import LaunchValueError
from ..tuning.model import DEFAULT_CHIP, VARIABLE, chip_of_device, read_chip
from ._arrays import Array

FORMAT = 1
FOLDER = Path(__file__).parent / "tables"
#: Estimates that are at most so many times the least one are equal: of these the one with the least order is taken. What a table
#: says is exact where all programs and steps are whole; where some are not, it is a few hundredths off, which must be left.
EQUAL, NEARLY = 1.10, 1.04
#: What a thread of a core of G13 has in registers. With more, it spills, of which the model knows nothing.
MOST_REGISTERS = 128

Config = tuple[int, ...]


@dataclass(frozen=True)
class Entry:
    """What a configuration of a kind of operands does: ``once`` a program, and ``step`` more for each step of its loop.

    ``staged`` are the bytes of threadgroup memory that are read and written; the model has no rate for these, since nobody has
    published one.
    """

    config: Config
    threads: int
    registers: float
    threadgroup_bytes: int
    half_products: bool
    tensor_operations: bool
    staged_once: float
    staged_step: float
    once: Sums
    step: Sums


#: The entries of a family, by the kind of operands.
Table = Mapping[str, tuple[Entry, ...]]


class Launch(NamedTuple):
    """So many programs of an entry, each of so many steps (a mean), and the bytes that must come from and go to memory.

    ``near`` are the lines of ``once`` and ``step`` over those that were counted, of matrices whose rows are whole lines.
    """

    entry: Entry
    programs: int
    steps: float
    memory: float
    near: tuple[float, float] = (1.0, 1.0)


_NUMBERS = frozenset((int, float))


def _numbers(values: Any, count: int) -> bool:
    """Whether these are so many numbers; a bool is none."""
    return isinstance(values, list) and len(values) == count and _NUMBERS.issuperset(map(type, values))  # fmt: skip


class Kinds(Mapping[str, tuple[Entry, ...]]):
    """The kinds of a table's file. The entries of one are checked and made when it is first asked for: a launch asks for one of
    hundreds.
    """

    def __init__(self, path: Path, kinds: Mapping[str, Any], names: int) -> None:
        self._path, self._rows, self._names = path, kinds, names
        self._made: dict[str, tuple[Entry, ...]] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, kind: str) -> tuple[Entry, ...]:
        found = self._made.get(kind)
        if found is None:
            found = self._made[kind] = self._entries(kind, self._rows[kind])
        return found

    def _entries(self, kind: str, rows: Any) -> tuple[Entry, ...]:
        entries = []
        for place, row in enumerate(rows if isinstance(rows, list) else ()):
            if (
                not isinstance(row, list)
                or len(row) != 4
                or not _numbers(row[0], self._names)
                or not _numbers(row[1], 7)
                or not all(_numbers(sums, len(Sums._fields)) for sums in row[2:])
                or min(*row[0], *row[1][:5]) < 0
                or row[1][0] < 32
            ):
                what = f"has no configuration with counts in row {place} of {kind!r}"
                raise _wrong(self._path, what)
            config, (threads, registers, threadgroup, half, tensor, *staged), once, step = row
            entries.append(
                Entry(
                    tuple(config),
                    threads,
                    registers,
                    threadgroup,
                    bool(half),
                    bool(tensor),
                    *staged,
                    Sums(*once),
                    Sums(*step),
                )
            )
        if not entries:
            raise _wrong(self._path, f"has no rows for {kind!r}")
        return tuple(entries)


def _wrong(path: Path, what: str) -> LaunchValueError:
    return LaunchValueError(
        f"[ops] the table {path} {what}: install triton-metal again, or make it by `python -m triton_metal tune-ops`."
    )


def open_table(path: Path, family: str, names: Sequence[str], needed: Sequence[str] = ()) -> Table:
    """The table of a family; ``needed`` are kinds that it must have.

    Raises LaunchValueError, which names the file and what is wrong, for one that is missing or damaged, and does so for a
    damaged kind when that is asked for: launches with the wrong tiles would be right and slow, and nobody would see why.
    """
    try:
        found = json.loads(path.read_text())
    except FileNotFoundError:
        raise _wrong(path, "is missing") from None
    except (OSError, ValueError) as error:
        raise _wrong(path, f"cannot be read ({error})") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise _wrong(path, f"has not the format {FORMAT}")
    if found.get("family") != family or found.get("names") != list(names):
        raise _wrong(path, f"is not that of {family} with {', '.join(names)}")
    if found.get("sums") != list(Sums._fields):
        raise _wrong(path, f"has not the sums {', '.join(Sums._fields)}")
    kinds = found.get("kinds")
    if not isinstance(kinds, dict) or not kinds:
        raise _wrong(path, "has no kinds of operands")
    for kind in needed:
        if kind not in kinds:
            raise _wrong(path, f"has no rows for {kind!r}")
    return Kinds(path, kinds, len(names))


def read_table(path: Path, family: str, names: Sequence[str], needed: Sequence[str] = ()) -> Table:
    """As `open_table`, with all kinds checked at once."""
    table = open_table(path, family, names, needed)
    return {kind: table[kind] for kind in table}


def written_table(family: str, names: Sequence[str], table: Table) -> str:
    """The text of a table."""

    def row(entry: Entry) -> str:
        core = (
            entry.threads,
            entry.registers,
            entry.threadgroup_bytes,
            int(entry.half_products),
            int(entry.tensor_operations),
            entry.staged_once,
            entry.staged_step,
        )
        parts = [entry.config, core, entry.once, entry.step]
        return json.dumps([[_short(value) for value in part] for part in parts])

    kinds = ",\n".join(
        f"  {json.dumps(kind)}: [\n   " + ",\n   ".join(row(entry) for entry in entries) + "\n  ]"
        for kind, entries in table.items()
    )
    head = {"format": FORMAT, "family": family, "names": list(names), "sums": list(Sums._fields)}
    return json.dumps(head)[:-1] + ',\n "kinds": {\n' + kinds + "\n }}\n"


def _short(value: float) -> float:
    """A number of a table: whole ones without a point, others in five digits."""
    return int(value) if value == int(value) else float(f"{value:.5g}")


class Tables:
    """The tables of a folder, each read when it is first asked for."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self.folder = folder
        self._known: dict[str, Table] = {}

    def __call__(self, family: str, names: Sequence[str], kinds: Sequence[str]) -> Table:
        """The table of a family, which has these kinds."""
        found = self._known.get(family)
        if found is None:
            found = open_table(self.folder / f"{family}.json", family, names, kinds)
            self._known[family] = found
        return found


tables = Tables()


#: A family, a kind of operands and sizes for which a configuration was wanted.
Question = tuple[str, str, tuple[int, ...]]


class _Thread(threading.local):
    """The configurations that this thread has named, by family, and where its questions are kept."""

    def __init__(self) -> None:
        self.configs: dict[str, Config] = {}
        self.questions: list[Question] | None = None


_thread = _Thread()


@contextmanager
def asked() -> Iterator[list[Question]]:
    """What this thread's launches within it ask for."""
    _thread.questions = found = []
    try:
        yield found
    finally:
        _thread.questions = None


@contextmanager
def forced(family: str, config: Config) -> Iterator[None]:
    """Within it, launches of this thread take a configuration, not the default, wherever the family has a choice."""
    before = _thread.configs
    _thread.configs = {**before, family: config}
    try:
        yield
    finally:
        _thread.configs = before


def answer(family: str, kind: str, sizes: tuple[int, ...]) -> Config | None:
    """The configuration that this thread has named for a family, if any. The question is kept where questions are."""
    if _thread.questions is not None:
        _thread.questions.append((family, kind, sizes))
    return _thread.configs.get(family) if _thread.configs else None


def named(choice: str) -> Config | None:
    """The configuration that this thread has named for a choice that a rule makes, without a table, if any."""
    return _thread.configs.get(choice)


@functools.lru_cache(maxsize=64)
def _chip_of_name(name: str) -> Chip:
    return read_chip(VARIABLE, name)


@functools.lru_cache(maxsize=64)
def _chip_of_device(device: Any) -> Chip:
    """The chip of a GPU, or the default without one. What the model does not know counts as the newest that it knows."""
    if device.name == "host":
        return ranking_chip(DEFAULT_CHIP)
    return chip_of_device(device) or ranking_chip(NEWEST)


#: Stands for chips that are later than the model.
NEWEST = "M5"


def _device_of(like: Array) -> Device:
    """The device of launches on ``like``."""
    if isinstance(like, np.ndarray) and chosen() is None:
        return get("host")
    return current((like,))


def chip_for(like: Array) -> Chip:
    """The chip whose best configurations launches on the device of ``like`` take.

    It is that of `knobs.autotuning.chip` (TRITON_METAL_CHIP), else that of the GPU, else the default of rankings. Raises
    LaunchValueError for a name that the model does not know.
    """
    named = knobs.autotuning.chip
    return _chip_of_name(named) if named else _chip_of_device(_device_of(like))


def has_tensor_operations(like: Array) -> bool:
    """Whether matrices are multiplied by tensor operations on the device of ``like``."""
    target = _device_of(like).target()
    if not target.features.get("tensor_ops"):
        return False
    named = quirks.chosen()
    cures = target.quirks if named is None else named
    return not any("tensor_ops" in WITHOUT.get(cure, ()) for cure in cures)


def seconds(chip: Chip, launches: Sequence[Launch]) -> float:
    """The model's estimate of launches that follow each other."""
    total = 0.0
    for entry, programs, steps, memory, near in launches:
        # What is extrapolated to fewer steps than were counted may fall below nothing.
        sums = Sums(
            *[
                programs * max(0.0, a + steps * b)
                for a, b in zip(entry.once, entry.step, strict=True)
            ]
        )
        if near != (1.0, 1.0):
            lines = programs * (entry.once.lines * near[0] + steps * entry.step.lines * near[1])
            sums = sums._replace(lines=max(0.0, lines))
        total += estimate(
            chip,
            with_spills(chip, sums, entry.registers, entry.threads),
            memory,
            programs,
            entry.threads,
            groups_in_flight(chip, entry.registers, entry.threads, entry.threadgroup_bytes),
            matrix_rate(chip, entry.half_products, entry.tensor_operations),
        )
    return total
