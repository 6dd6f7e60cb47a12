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

    ``backend`` is "mps" or "cpu", as PyTorch calls the device, and ``arch`` the chip, such as "Apple M2", or "host". Stock
    Triton's name for both is "metal".
    """

    backend: str
    arch: int | str
    warp_size: int


def target_of(arch: str) -> GPUTarget:
    """The target with the name by which PyTorch knows its device. Programs make tensors with it, as with "cuda"."""
    return GPUTarget("cpu" if arch == "host" else "mps", arch, 32)


#: Metal tells no registers, and programs divide by those of a kernel. With this figure, and as many for each thread of the
#: largest threadgroup, programs find that so many threads run at a time.
NOMINAL_REGISTERS = 32


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
