"""What every device is: a class that compiles, allocates, launches, synchronises, and says what it is.

A device is one class in a file of its own and one entry in registry.py; docs/adding-a-device.md has an example.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from types import SimpleNamespace
from typing import Any, ClassVar, NamedTuple

from .. import _native
from ..errors import DeviceError, LaunchTypeError, LaunchValueError
from .target import BASELINE, Target


@dataclass(frozen=True)
class MemoryStatistics:
    """Bytes of arrays on a device: now, and the most so far. None: the device does not say."""

    current_allocated: int | None
    max_allocated: int | None


@dataclass(frozen=True)
class DeviceProperties:
    """What is known of a device. None stands for unknown: nothing here is guessed."""

    name: str
    kind: str
    chip: str | None = None
    gpu_cores: int | None = None
    gpu_family: str | None = None
    os: str | None = None
    msl_version: str | None = None
    working_set_bytes: int | None = None
    max_buffer_bytes: int | None = None
    memory_bytes: int | None = None
    max_threads: int = 1024
    threadgroup_bytes: int = 32768
    simd_width: int = 32
    features: Mapping[str, bool | None] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """The same as plain values, for JSON."""
        return asdict(self) | {"features": dict(self.features)}


class ArrayDescription(NamedTuple):
    """What a launch has to know of an array.

    ``dtype`` is the element type in Triton's words ("fp32"). Arrays whose ranges of ``bytes`` from ``address`` on
    overlap share memory; the address may be any number that says so. ``aligned`` says that the array begins at a
    multiple of 16 bytes.
    """

    dtype: str
    address: int
    bytes: int
    aligned: bool


class Event(ABC):
    """A point in a device's work.

    >>> import triton_metal
    >>> device = triton_metal.devices.get("host")
    >>> start, end = device.event(), device.event()
    >>> start.record(); end.record()
    >>> start.elapsed_time(end) >= 0
    True
    """

    @abstractmethod
    def record(self) -> None:
        """Marks the point up to which work has been given to the device."""

    @abstractmethod
    def synchronize(self) -> None:
        """Waits until the device has come to the point."""

    @abstractmethod
    def elapsed_time(self, end: Any) -> float:
        """Milliseconds from this point to ``end``."""


class TextKernel:
    """A kernel that is only a Metal text and its launch contract."""

    def __init__(self, metal: str, metadata: Mapping[str, Any] | SimpleNamespace | str) -> None:
        fields = read_metadata(metadata)
        self.name = fields["name"]
        self.asm = {"metal": metal}
        self.metadata = SimpleNamespace(**fields)
        # The text may rely on addresses that are multiples of 16: every array is brought to one.
        buffers = [a["name"] for a in fields["args"] if a["kind"] == "buffer"]
        self.native = _native.Kernel(metal, json.dumps(fields), buffers)

    def __repr__(self) -> str:
        return f"TextKernel({self.name})"


class Device(ABC):
    """A place where kernels run."""

    name: ClassVar[str]
    """What the device is called, as in ``triton_metal.device(name)``."""
    array: ClassVar[str]
    """One of its arrays, in words: "an MLX array"."""
    arrays: ClassVar[str]
    """Its arrays, in words: "MLX arrays"."""
    array_types: ClassVar[tuple[str, ...]] = ()
    """The types of its arrays, as "module.name": a launch knows them without an import."""
    readable_on: ClassVar[tuple[str, ...]] = ()
    """The other devices that can run a launch on this one's arrays, through ``run_on``."""

    # --- What the device is ------------------------------------------------------------------------

    @abstractmethod
    def problem(self) -> str | None:
        """Why this device is not there, and what to do; None where it is."""

    @abstractmethod
    def properties(self) -> DeviceProperties:
        """What is known of the device."""

    def target(self) -> Target:
        """What kernels are compiled for on this device."""
        return BASELINE

    def is_preferred(self) -> bool:
        """Whether a launch without arrays goes here rather than to the host device."""
        return False

    # --- Arrays ------------------------------------------------------------------------------------

    @classmethod
    def owns(cls, value: Any) -> bool:
        """Whether a value is an array of this device. Raises LaunchValueError for an array that no device takes."""
        return any(
            f"{base.__module__}.{base.__qualname__}" in cls.array_types
            for base in type(value).__mro__
        )

    @classmethod
    def describe(cls, array: Any) -> ArrayDescription:
        """What a launch has to know of an array. Launches read the arrays of host, mlx and mps without it."""
        raise LaunchTypeError(f"the device {cls.name} describes no arrays")

    @abstractmethod
    def allocate(self, shape: int | Sequence[int], dtype: str = "float32") -> Any:
        """A new array of this device. Its elements are not set (MLX's are zero)."""

    @abstractmethod
    def from_numpy(self, array: Any) -> Any:
        """An array of this device with the values and dtype of a NumPy array."""

    @abstractmethod
    def to_numpy(self, array: Any) -> Any:
        """A NumPy array with the values of an array of this device, once they are there."""

    @abstractmethod
    def memory_stats(self) -> MemoryStatistics:
        """Bytes of arrays on the device."""

    @abstractmethod
    def reset_peak(self) -> None:
        """Begins to look for the most bytes anew."""

    # --- Launches ----------------------------------------------------------------------------------

    def compile(self, metal: str, metadata: Mapping[str, Any] | str) -> Any:
        """The kernel of a Metal text, ready to launch. ``metadata`` is the compiler's launch contract."""
        self.require()
        return TextKernel(metal, metadata)

    def launch(self, compiled: Any, grid: int | Sequence[int], arguments: Sequence[Any]) -> None:
        """Launches what ``compile`` or a warmed-up @jit kernel gave.

        ``arguments`` come in the order of the kernel's run-time arguments.
        """
        self.require()
        native = getattr(compiled, "native", None)
        if not isinstance(native, _native.Kernel):
            raise LaunchTypeError(
                "a launch takes what compile() of the device gave, or a compiled kernel, "
                f"not {compiled!r}"
            )
        arguments = list(arguments)
        self.run(compiled, native.grid(grid), arguments, native.pack(arguments))

    @abstractmethod
    def run(
        self,
        compiled: Any,
        grid: tuple[int, int, int],
        arguments: list[Any],
        scalar_words: bytes,
    ) -> None:
        """Runs a launch that is packed: what ``launch`` and ``kernel[grid](...)`` end in.

        ``compiled`` has the Metal text in ``asm["metal"]`` and the launch contract in ``metadata``. ``arguments`` are in the
        kernel's order, arrays among them; ``scalar_words`` is the scalar buffer's content. Both have been checked.
        """

    def run_on(
        self,
        device: str,
        compiled: Any,
        grid: tuple[int, int, int],
        arguments: list[Any],
        scalar_words: bytes,
    ) -> None:
        """The same on another device, one of ``readable_on``."""
        raise DeviceError(f"the device {device} cannot run kernels on {self.arrays}")

    @abstractmethod
    def synchronize(self) -> None:
        """Waits until everything that was launched is done."""

    def wait_for(self, value: Any) -> None:
        """Waits until arrays, or what a computation gave, are there."""
        self.synchronize()

    @abstractmethod
    def event(self) -> Event:
        """A new event."""

    def require(self) -> None:
        """Raises DeviceError where this device is not there."""
        problem = self.problem()
        if problem is not None:
            raise DeviceError(f"the device {self.name} is not there: {problem}")

    def __repr__(self) -> str:
        return f"<triton_metal device {self.name}>"


def read_metadata(metadata: Any) -> dict[str, Any]:
    """The launch contract as a dictionary, from JSON, a dictionary or a CompiledKernel's."""
    if isinstance(metadata, str):
        return json.loads(metadata)
    if isinstance(metadata, SimpleNamespace):
        return dict(vars(metadata))
    return dict(metadata)


def read_shape(shape: int | Sequence[int]) -> tuple[int, ...]:
    """A shape as a tuple of integers that are not negative."""
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    if any(isinstance(s, bool) or not isinstance(s, int) or s < 0 for s in sizes):
        raise LaunchValueError(f"a shape is integers from 0 up, not {shape!r}")
    return sizes
