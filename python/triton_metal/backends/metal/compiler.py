"""The compiler of the backend "metal", as Triton's tools ask for it."""

from __future__ import annotations

import re
from types import ModuleType
from typing import Any

from ... import cache, devices
from ..compiler import BaseBackend, GPUTarget
from .options import DOT_PRECISIONS, FP8_TYPES, MetalOptions, read_options

#: The names of targets that this backend compiles for. PyTorch names its own devices.
TARGETS = ("metal", "cpu", "mps")


class MetalBackend(BaseBackend):
    """Compiles kernels for ``GPUTarget("metal", arch, 32)``. ``arch`` is the chip, or "host" for the host device."""

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        return target.backend in TARGETS

    @property
    def device(self) -> str:
        """The name of the device that kernels are for."""
        return device_of(self.target)

    def hash(self) -> str:
        return f"metal-{self.device}-{cache.build_id()}-{devices.target_spec(self.device)}"

    def parse_options(self, opts: dict[str, Any]) -> MetalOptions:
        return read_options(opts, "host" if self.device == "host" else str(self.target.arch))

    def pack_metadata(self, metadata: Any) -> tuple[int, int, int]:
        return metadata.num_warps, metadata.num_ctas, metadata.shared

    def get_codegen_implementation(self, options: MetalOptions) -> dict[str, Any]:
        # Dots of any size are compiled; small ones are padded.
        return {"min_dot_size": lambda lhs, rhs: (1, 1, 1)}

    def get_module_map(self) -> dict[str, ModuleType]:
        return {}

    def load_dialects(self, context: Any) -> None:
        """Needs none: the compiler has its own context."""

    def add_stages(
        self, stages: dict[str, Any], options: MetalOptions, language: Any = None
    ) -> None:
        """The names of the stages. They run inside of one call of the compiler."""
        for name in ("ttir", "metal"):
            stages[name] = lambda module, metadata: module


def device_of(target: GPUTarget) -> str:
    """The name of the device of a target."""
    return "host" if target.backend == "cpu" or target.arch == "host" else "mps"


_TOO_MUCH_MEMORY = re.compile(r"needs (\d+) bytes of threadgroup memory, .*?(\d+)")
_TOO_MANY_THREADS = re.compile(
    r"which is (\d+) threads in a threadgroup, and the target takes (\d+)"
)


def excess_of(message: str) -> tuple[int, int, str] | None:
    """What a kernel needs too much of, from the compiler's message: (needed, limit, name)."""
    for pattern, name in ((_TOO_MUCH_MEMORY, "shared memory"), (_TOO_MANY_THREADS, "threads")):
        if found := pattern.search(message):
            return int(found[1]), int(found[2]), name
    return None


__all__ = [
    "DOT_PRECISIONS",
    "FP8_TYPES",
    "MetalBackend",
    "MetalOptions",
    "device_of",
    "excess_of",
    "read_options",
]
