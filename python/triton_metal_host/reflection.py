"""What is known about kernels without running them: parameters, function constants, threadgroup variables."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

# The names that NumPy and DLPack have for Metal's numbers.
DTYPES = {
    "bool": "bool",
    "char": "int8",
    "uchar": "uint8",
    "short": "int16",
    "ushort": "uint16",
    "int": "int32",
    "uint": "uint32",
    "long": "int64",
    "ulong": "uint64",
    "half": "float16",
    "bfloat": "bfloat16",
    "float": "float32",
}


@dataclass(frozen=True)
class Parameter:
    """A parameter of a kernel.

    ``kind`` is "buffer" (``device`` or ``constant``), "threadgroup" or "position" (a number that the device supplies).
    ``size`` and ``alignment`` are those of what it points to, in bytes; ``size`` is 0 for ``void``. ``scalar`` is
    Metal's name of the numbers that it points to ("float" for ``float4 *``), None for structures, and ``components``
    is how many of them one value has. ``exists`` is False if ``[[function_constant(c)]]`` removes it.
    """

    name: str
    kind: str
    scalar: str | None
    components: int
    index: int = -1
    space: str = ""
    const: bool = False
    reference: bool = False
    type: str = ""
    size: int = 0
    alignment: int = 1
    exists: bool = True
    declaration: str = ""

    @property
    def dtype(self) -> str | None:
        """The name of the dtype that arrays must have: "float32"; None if the parameter points to no numbers."""
        return DTYPES.get(self.scalar) if self.scalar else None

    @property
    def access(self) -> str:
        """ "read" or "read_write", from the parameter's type."""
        return "read" if self.const else "read_write"

    def __str__(self) -> str:
        if self.kind == "position":
            return self.name
        return f"{self.declaration} [[{self.kind}({self.index})]]"


@dataclass(frozen=True)
class FunctionConstant:
    """``constant T name [[function_constant(index)]]``; ``required`` if the kernel cannot be made without a value."""

    name: str
    index: int
    type: str
    scalar: str | None
    components: int
    required: bool

    def __str__(self) -> str:
        text = f"constant {self.type} {self.name} [[function_constant({self.index})]]"
        return text + (" (required)" if self.required else "")


@dataclass(frozen=True)
class ThreadgroupVariable:
    """A ``threadgroup`` variable of the kernel or of what it calls; sizes in bytes."""

    name: str
    size: int
    alignment: int
    line: int


@dataclass(frozen=True)
class FunctionInfo:
    """A kernel's signature.

    ``max_total_threads_per_threadgroup`` is what the kernel declares, or the device's limit of 1024.
    """

    name: str
    line: int
    max_total_threads_per_threadgroup: int
    parameters: tuple[Parameter, ...]
    constants: tuple[FunctionConstant, ...]
    variables: tuple[ThreadgroupVariable, ...]
    buffers: tuple[Parameter, ...] = field(init=False, repr=False)
    threadgroup_arguments: tuple[Parameter, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        of_kind = {
            kind: tuple(p for p in self.parameters if p.kind == kind)
            for kind in ("buffer", "threadgroup")
        }
        object.__setattr__(self, "buffers", of_kind["buffer"])
        object.__setattr__(self, "threadgroup_arguments", of_kind["threadgroup"])

    def __str__(self) -> str:
        arguments = ", ".join(str(p) for p in self.parameters if p.kind != "position")
        return f"kernel void {self.name}({arguments})"


def parse(text: str) -> list[FunctionInfo]:
    """Reads the engine's description of kernels."""
    return [
        FunctionInfo(
            entry["name"],
            entry["line"],
            entry["max_threads"],
            tuple(Parameter(**parameter) for parameter in entry["parameters"]),
            tuple(FunctionConstant(**constant) for constant in entry["constants"]),
            tuple(ThreadgroupVariable(**variable) for variable in entry["variables"]),
        )
        for entry in json.loads(text)
    ]
