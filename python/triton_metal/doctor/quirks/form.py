"""What a probe consists of: buffers, a Metal text in two forms, and the output that is right.

The texts are written by hand. A form consists of a kernel's body and what stands before it, because one of the routes,
``mx.fast.metal_kernel``, writes the signature itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

KERNEL = "quirk"

#: Metal's types of buffers, as NumPy has them.
DTYPES = {
    "float": "float32",
    "half": "float16",
    "int": "int32",
    "uint": "uint32",
    "uchar": "uint8",
    "ulong": "uint64",
}

#: The positions that a body may name, with their types. MLX gives them the same names.
POSITIONS = {
    "thread_position_in_grid": "uint3",
    "threadgroup_position_in_grid": "uint3",
    "thread_index_in_threadgroup": "uint",
    "thread_index_in_simdgroup": "uint",
}

#: What the compiler prints at the head of a text.
SAFE = "#pragma METAL fp math_mode(safe)\n#pragma METAL fp contract(off)\n"
FAST = "#pragma METAL fp math_mode(fast)\n"


@dataclass(frozen=True)
class Buffer:
    """An argument of the kernel, with its content before the launch."""

    name: str
    type: str
    values: Callable[[], Any]

    def array(self) -> np.ndarray:
        """The content, as a new array."""
        import numpy as np

        return np.array(self.values(), dtype=DTYPES[self.type]).reshape(-1)


@dataclass(frozen=True)
class Form:
    """One Metal text of a probe."""

    body: str
    header: str = ""
    pragmas: str = SAFE
    includes: str = ""
    attributes: str = ""
    """What stands behind ``[[kernel, ``."""
    declared: Mapping[str, str] = field(default_factory=dict)
    """Declarations of buffers that are not the ordinary ones."""

    @property
    def has_own_signature(self) -> bool:
        """Whether the signature is a part of the construct, so that no framework may write it."""
        return bool(self.attributes or self.declared)


@dataclass(frozen=True)
class Probe:
    """One known defect: the construct as it was reported, and what the compiler prints instead."""

    row: int
    construct: str
    """The construct, in a few words."""
    happens: str
    """What happens on a Mac that has the defect."""
    source: str
    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    expected: Callable[[], Mapping[str, Any]]
    raw: Form | None
    ours: Form | None
    groups: int = 1
    threads: int = 32
    cure: str = ""
    """The feature of the target that makes the compiler print the cured form, if the cure costs time."""
    needs: tuple[str, ...] = ()
    """Features of a target without which neither form is a text of Metal."""
    ours_needs: tuple[str, ...] = ()
    """Features that the cured form needs besides."""

    @property
    def key(self) -> str:
        """How the command line and the worker name the probe."""
        return str(self.row)

    def form(self, which: str) -> Form | None:
        """The form with this name, "raw" or "ours"."""
        return self.raw if which == "raw" else self.ours


@dataclass(frozen=True)
class Question:
    """Something that Metal does not promise: what this Mac does is neither right nor wrong."""

    name: str
    asks: str
    source: str
    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    text: Form
    answer: Callable[[Mapping[str, np.ndarray]], str]
    groups: int = 1
    threads: int = 32
    needs: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """How the command line and the worker name the question."""
        return self.name

    def form(self, which: str) -> Form:
        """The only form."""
        return self.text


def text_of(probe: Probe | Question, form: Form) -> str:
    """The whole text, for the routes that take one."""
    signature = []
    buffers = [(buffer, "const ") for buffer in probe.inputs]
    buffers += [(buffer, "") for buffer in probe.outputs]
    for index, (buffer, const) in enumerate(buffers):
        declared = form.declared.get(buffer.name, f"device {const}{buffer.type} *{buffer.name}")
        signature.append(f"    {declared} [[buffer({index})]]")
    signature += [
        f"    {type} {name} [[{name}]]" for name, type in POSITIONS.items() if name in form.body
    ]
    attributes = f"kernel, {form.attributes}" if form.attributes else "kernel"
    return (
        head_of(form)
        + f"[[{attributes}]] void {KERNEL}(\n"
        + ",\n".join(signature)
        + ") {\n"
        + form.body
        + "}\n"
    )


def head_of(form: Form) -> str:
    """What stands before the kernel."""
    matrices = "simdgroup_" in form.body + form.header and "8x8" in form.body + form.header
    return (
        "#include <metal_stdlib>\n"
        + ("#include <metal_simdgroup_matrix>\n" if matrices else "")
        + form.includes
        + "using namespace metal;\n\n"
        + form.pragmas
        + ("\n" if form.pragmas else "")
        + (form.header + "\n" if form.header else "")
    )


def zeros(count: int) -> Callable[[], Any]:
    """The content of an output that nothing has written."""

    def values() -> Any:
        import numpy as np

        return np.zeros(count)

    return values


__all__ = [
    "DTYPES",
    "FAST",
    "KERNEL",
    "POSITIONS",
    "SAFE",
    "Buffer",
    "Form",
    "Probe",
    "Question",
    "head_of",
    "text_of",
    "zeros",
]
