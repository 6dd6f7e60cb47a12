"""What a backend's compiler has, and the targets that it compiles for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from types import ModuleType
from typing import Any


@dataclass(frozen=True)
class GPUTarget:
    """What kernels are compiled for: a backend's name, a chip, and the threads of a SIMD-group.

    The backend "metal" has the chips of Apple's GPUs, such as "Apple M2", and "host", the host device.
    """

    backend: str
    arch: int | str
    warp_size: int


class Language(Enum):
    """The language of a kernel."""

    TRITON = 0
    GLUON = 1


class BaseBackend(ABC):
    """Compiles kernels for a target."""

    supports_native_tensor_specialization = True
    binary_ext = "binary"

    def __init__(self, target: GPUTarget) -> None:
        if not self.supports_target(target):
            raise AssertionError(f"{type(self).__name__} does not compile for {target}")
        self.target = target

    @staticmethod
    @abstractmethod
    def supports_target(target: GPUTarget) -> bool:
        """Whether this class compiles for a target."""

    @abstractmethod
    def hash(self) -> str:
        """A text that changes with the compiler and the target."""

    @abstractmethod
    def parse_options(self, opts: dict[str, Any]) -> Any:
        """The options of a kernel among the keywords of a launch."""

    @abstractmethod
    def add_stages(self, stages: dict[str, Any], options: Any, language: Any = None) -> None:
        """Adds the stages to ``stages``: for each name a function of the stage before and the metadata."""

    @abstractmethod
    def load_dialects(self, context: Any) -> None:
        """Makes an MLIR context ready."""

    @abstractmethod
    def get_module_map(self) -> dict[str, ModuleType]:
        """The modules of the language that the backend replaces."""

    @staticmethod
    def parse_attr(desc: str) -> list[list[Any]]:
        """The attributes that a specialisation stands for: "D" is a multiple of 16."""
        return [["tt.divisibility", 16]] if "D" in desc else []

    @staticmethod
    def get_int_specialization(arg: int, **kwargs: Any) -> str:
        """How a kernel is specialised on an integer."""
        return "D" if kwargs.get("align") and arg % 16 == 0 else ""

    @staticmethod
    def get_tensor_specialization(arg: Any, **kwargs: Any) -> str:
        """How a kernel is specialised on an array."""
        return "D" if kwargs.get("align") and arg.data_ptr() % 16 == 0 else ""
