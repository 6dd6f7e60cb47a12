"""Counts of what launches on the host device did."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import triton_metal as triton


@dataclass
class Counts:
    """What the launches of one ``counting`` block did together, and the kernels that they ran."""

    counters: dict[str, int] = field(default_factory=dict)
    kernels: list[Any] = field(default_factory=list)

    @property
    def programs(self) -> int:
        return self.counters["threadgroups"]

    @property
    def device_bytes(self) -> int:
        """Bytes of tiles and results; the packed scalars, a few words a thread, are in constant memory."""
        return self.counters["device_bytes_read"] + self.counters["device_bytes_written"]

    @property
    def device_accesses(self) -> int:
        """Loads and stores of device memory, of any width."""
        return sum(self.counters[f"device_accesses_{width}"] for width in (1, 2, 4, 8, 16))

    @property
    def multiplies(self) -> int:
        """8x8x8 products on simdgroup matrices."""
        return self.counters["simdgroup_matrix_multiplies"]

    @property
    def scalar_multiply_adds(self) -> int:
        return sum(self.counters[f"{t}_fma"] for t in ("f32", "f16", "bf16"))

    @property
    def barriers(self) -> int:
        return self.counters["threadgroup_barriers"]

    @property
    def barriers_per_program(self) -> float:
        return self.barriers / self.programs

    @property
    def private_bytes(self) -> int:
        return self.counters["private_bytes_read"] + self.counters["private_bytes_written"]

    @property
    def registers(self) -> int:
        return self.counters["registers_per_thread"]

    @property
    def threadgroup_bytes(self) -> int:
        return self.counters["threadgroup_memory_bytes"]


@contextmanager
def counting(kernel: str | None = None) -> Iterator[Counts]:
    """Counts the launches inside; of one kernel only, if its name is given."""
    counts = Counts()
    with triton.launch_options(count=True) as report:
        yield counts
    launches = [launch for launch in report.launches if kernel in (None, launch.kernel.name)]
    for launch in launches:
        counts.kernels.append(launch.kernel)
        for name, value in launch.counters.items():
            known = counts.counters.get(name, 0)
            largest = name in ("registers_per_thread", "threadgroup_memory_bytes")
            counts.counters[name] = max(known, value) if largest else known + value
