"""What a table of instantiations is made of."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

KERNELS = "mlx/backend/metal/kernels"

#: MLX's name of a type in the names of kernels, and the type in Metal.
TYPES = {
    "bool_": "bool",
    "uint8": "uint8_t",
    "uint16": "uint16_t",
    "uint32": "uint32_t",
    "uint64": "uint64_t",
    "int8": "int8_t",
    "int16": "int16_t",
    "int32": "int32_t",
    "int64": "int64_t",
    "float16": "half",
    "bfloat16": "bfloat16_t",
    "float32": "float",
    "complex64": "complex64_t",
}
FLOATS = ["float16", "bfloat16", "float32"]
INTEGERS = ["uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"]
#: Types of 8 bytes, of which a thread never takes several.
WIDE = {"uint64", "int64", "complex64"}


@dataclass(frozen=True)
class Instance:
    """One kernel: its name in the library, the function template, and the template's arguments."""

    name: str
    function: str
    arguments: tuple[str, ...]

    def text(self) -> str:
        return f'instantiate_kernel("{self.name}", {", ".join([self.function, *self.arguments])})\n'


def instance(name: str, function: str, *arguments: object) -> Instance:
    def spelled(argument: object) -> str:
        return str(argument).lower() if isinstance(argument, bool) else str(argument)

    return Instance(name, function, tuple(map(spelled, arguments)))


def _is_number(argument: str) -> bool:
    return argument.lstrip("-").isdigit() or argument in ("true", "false")


@dataclass(frozen=True)
class Family:
    """Kernels that one file of MLX's instantiates.

    `headers` are relative to MLX's folder of kernels. `source` is the file that instantiates them, without its suffix, or
    empty if MLX compiles the kernels while it runs.
    """

    name: str
    headers: tuple[str, ...]
    make: Callable[[], Iterable[Instance]]
    source: str = ""
    preamble: str = ""

    def instances(self) -> list[Instance]:
        return list(self.make())

    def text(self, instances: Iterable[Instance]) -> str:
        includes = "".join(f'#include "{KERNELS}/{header}"\n' for header in self.headers)
        return includes + self.preamble + "".join(each.text() for each in instances)

    def sample(self) -> list[Instance]:
        """Each function of the family once, and more until each type has been its argument."""
        seen: set[str] = set()
        chosen = []
        for each in self.make():
            # Numbers and flags vary in a family, types are its dimensions.
            parts = {each.function, *(a for a in each.arguments if not _is_number(a))}
            if not parts <= seen:
                seen |= parts
                chosen.append(each)
        return chosen


@cache
def include_folder() -> Path | None:
    """The installed package's headers; TRITON_METAL_MLX_INCLUDE names another place. None if there are none."""
    named = os.environ.get("TRITON_METAL_MLX_INCLUDE")
    places = [Path(named)] if named else []
    spec = importlib.util.find_spec("mlx")
    if spec is not None and spec.submodule_search_locations is not None:
        places += [Path(place) / "include" for place in spec.submodule_search_locations]
    return next((place for place in places if (place / KERNELS / "utils.h").exists()), None)


@cache
def source_folder() -> Path | None:
    """The checkout of MLX that TRITON_METAL_MLX_SOURCE names, or None."""
    named = os.environ.get("TRITON_METAL_MLX_SOURCE")
    return Path(named) if named else None
