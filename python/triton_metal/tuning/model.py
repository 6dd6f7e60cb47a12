"""What the model of triton_metal.cost says of configurations: an estimate of each for a chip, from counts of the host device."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .. import knobs
from ..arguments import is_descriptor
from ..array_copies import may_change
from ..cost import Chip, Sampled, bound, chip, full_name, ranking_chip, sampled
from ..cost.sampling import is_divisible
from ..cost.spread import LaunchAt, launcher_of
from ..devices.base import Device
from ..errors import LaunchTypeError, LaunchValueError
from ..launcher import CompiledKernel
from . import arrays
from .config import Config
from .key import has_shape

#: The chip of rankings where there is no Apple GPU and nobody names one.
DEFAULT_CHIP = "M1"
VARIABLE = "TRITON_METAL_CHIP"
#: If programs all over the grid are like the first ones in so many configurations, they are in the others: one more text each is saved.
ALIKE = 2
#: Options that grids cannot see.
_UNSEEN = ("num_stages", "num_ctas", "maxnreg")


def read_chip(where: str, name: Any) -> Chip:
    """The chip that an option or the environment names. Raises an error that begins with ``where``."""
    try:
        return ranking_chip(name)
    except (LaunchTypeError, LaunchValueError) as error:
        raise type(error)(str(error).replace("[cost] chip", where, 1)) from None


def chip_of_environment() -> Chip | None:
    """The chip of `knobs.autotuning.chip`, TRITON_METAL_CHIP; None if neither is set."""
    name = knobs.autotuning.chip
    return read_chip(VARIABLE, name) if name else None


def chip_of_device(device: Device) -> Chip | None:
    """The chip of a GPU; None if the model does not know it."""
    found = device.properties()
    for name in (f"{found.chip} {found.gpu_cores} cores", found.chip):
        try:
            return ranking_chip(name or "")
        except LaunchValueError:
            continue
    return None


def chip_for(given: Chip | None, gpu: Device | None) -> Chip | None:
    """The chip of a search: the given one, that of the environment, the GPU's, or, without a GPU, the default. None if the model
    does not know the GPU.
    """
    found = given or chip_of_environment()
    if found is not None:
        return found
    return chip_of_device(gpu) if gpu is not None else chip(DEFAULT_CHIP)


def described(found: Chip) -> str:
    """A chip's name, and what stands in for what is not published of it."""
    source = found.sources.get("clock", "")
    return full_name(found) + (f" (clock: {source})" if source.startswith("none") else "")


class Model:
    """Estimates the configurations of one search on a chip."""

    def __init__(self, gpu: Chip) -> None:
        self.chip = gpu
        self._known: dict[tuple[str, str], tuple[float, Sampled]] = {}
        self._alike = 0

    def estimate(
        self, config: Config, launch: Callable[..., Any], named: Mapping[str, Any]
    ) -> tuple[float, Sampled]:
        """The estimate in microseconds, and what was counted for it.

        ``launch(warmup, turn)`` launches on the host device, over the grid that ``turn`` makes of the launch's, or compiles only. What the
        launches change in the arrays of ``named`` is undone. Configurations that become the same Metal text share a count.
        """
        compiled, same = launch(True, None), None
        if isinstance(compiled, CompiledKernel):
            seen = {k: v for k, v in config.all_kwargs().items() if k not in _UNSEEN}
            same = compiled.asm["metal"], repr(seen)
            if same in self._known:
                return self._known[same]
        changed = list(_changed(compiled, named))
        kept = [(value, arrays.copy_of("launch", value)) for value in changed]

        def restore() -> None:
            for value, before in kept:
                arrays.restore(value, before)

        def elsewhere(grid: tuple[int, int, int], count: int) -> LaunchAt | None:
            return launcher_of(compiled, named, grid, count) if self._alike < ALIKE else None

        divisible = same is not None and is_divisible(compiled)
        found = sampled(lambda turn: launch(False, turn), restore, divisible, elsewhere)
        if found.spread:
            self._alike = self._alike + 1 if found.alike else 0
        estimate = math.fsum(bound(self.chip, work).estimate for work in found.works) * 1e6
        if same is not None:
            self._known[same] = estimate, found
        return estimate, found


def _changed(compiled: Any, named: Mapping[str, Any]) -> Iterable[Any]:
    """The arrays that a launch changes; all of them where the kernel is not known."""
    names: Iterable[str] = named
    if isinstance(compiled, CompiledKernel):
        written = [
            entry["name"].partition(".")[0]
            for entry in compiled.metadata.args
            if entry["kind"] == "buffer" and (entry["writes"] or entry["atomic"])
        ]
        if all(name in named for name in written):
            names = dict.fromkeys(written)
    for name in names:
        # A launch refuses to write what is read-only.
        yield from filter(may_change, _arrays(named[name]))


def _arrays(value: Any) -> Iterable[Any]:
    if is_descriptor(value):
        yield value.base
    elif isinstance(value, tuple):
        for part in value:
            yield from _arrays(part)
    elif has_shape(value):
        yield value
