"""The interface of a device: it compiles, allocates, launches, synchronises, and describes itself.

A device is one class in its own file and one entry in registry.py; docs/adding-a-device.md has an example.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from types import SimpleNamespace
from typing import Any, ClassVar, NamedTuple

from .. import _native, messages
from ..errors import DeviceError, LaunchTypeError, LaunchValueError
from .target import BASELINE, Target


@dataclass(frozen=True)
class MemoryStatistics:
    """Current and maximum number of bytes of arrays on a device; None if the device does not report them."""

    current_allocated: int | None
    max_allocated: int | None


@dataclass(frozen=True)
class DeviceProperties:
    """The known properties of a device. None means unknown; nothing is guessed."""

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
        """The properties as plain values, for JSON."""
        return asdict(self) | {"features": dict(self.features)}


class ArrayDescription(NamedTuple):
    """What a launch needs to know about an array.

    ``dtype`` is Triton's name of the element type ("fp32"). Arrays share memory if their ranges of ``bytes`` from
    ``address`` on overlap; the address may be any number with this property. ``aligned`` says whether the array
    begins at a multiple of 16 bytes.
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
        """Marks the point after the work that the device has been given so far."""

    @abstractmethod
    def synchronize(self) -> None:
        """Waits until the device has reached the point."""

    @abstractmethod
    def elapsed_time(self, end: Any) -> float:
        """Milliseconds from this point to ``end``."""


class TextKernel:
    """A kernel that consists of a Metal text and its launch contract."""

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
        """Why this device is not available, and what to do; None if it is."""

    @abstractmethod
    def properties(self) -> DeviceProperties:
        """The known properties of the device."""

    def target(self) -> Target:
        """What kernels are compiled for on this device."""
        return BASELINE

    def is_preferred(self) -> bool:
        """Whether a launch without arrays goes here rather than to the host device."""
        return False

    # --- Arrays ------------------------------------------------------------------------------------

    @classmethod
    def owns(cls, value: Any) -> bool:
        """Whether a value is an array of this device. Raises LaunchValueError for an array that no device can take."""
        return any(
            f"{base.__module__}.{base.__qualname__}" in cls.array_types
            for base in type(value).__mro__
        )

    @classmethod
    def describe(cls, array: Any) -> ArrayDescription:
        """Describes an array for a launch. Launches read the arrays of host, mlx and mps without it."""
        raise LaunchTypeError(f"the device {cls.name} does not describe arrays")

    @abstractmethod
    def allocate(self, shape: int | Sequence[int], dtype: str = "float32") -> Any:
        """A new array of this device. Its elements are uninitialised (MLX's are zero)."""

    @abstractmethod
    def from_numpy(self, array: Any) -> Any:
        """An array of this device with the values and dtype of a NumPy array."""

    @abstractmethod
    def to_numpy(self, array: Any) -> Any:
        """A NumPy array with the values of an array of this device. Waits until they are computed."""

    @abstractmethod
    def memory_stats(self) -> MemoryStatistics:
        """Bytes of arrays on the device."""

    @abstractmethod
    def reset_peak(self) -> None:
        """Resets the maximum to the current number of bytes."""

    # --- Launches ----------------------------------------------------------------------------------

    def compile(self, metal: str, metadata: Mapping[str, Any] | str) -> Any:
        """The kernel of a Metal text, ready to launch. ``metadata`` is the compiler's launch contract."""
        self.require()
        return TextKernel(metal, metadata)

    def launch(self, compiled: Any, grid: int | Sequence[int], arguments: Sequence[Any]) -> None:
        """Launches a kernel from ``compile``, or a compiled @jit kernel.

        ``arguments`` are in the order of the kernel's run-time arguments.
        """
        self.require()
        native = getattr(compiled, "native", None)
        if not isinstance(native, _native.Kernel):
            raise LaunchTypeError(
                "launch() takes a kernel from the device's compile() or a compiled kernel, "
                f"not {compiled!r}"
            )
        arguments = list(arguments)
        sizes = native.grid(grid)
        if messages.sites_of(compiled):
            words = native.pack([*arguments, *[0] * len(messages.roles(compiled))])
            if 0 not in sizes:
                messages.launch(self.run, compiled, sizes, arguments, words)
            return
        words = native.pack(arguments)
        if 0 not in sizes:
            self.run(compiled, sizes, arguments, words)

    @abstractmethod
    def run(
        self,
        compiled: Any,
        grid: tuple[int, int, int],
        arguments: list[Any],
        scalar_words: bytes,
    ) -> None:
        """Runs a packed launch. ``launch`` and ``kernel[grid](...)`` both call it.

        ``compiled`` has the Metal text in ``asm["metal"]`` and the launch contract in ``metadata``. ``arguments`` are
        in the kernel's order and include the arrays; ``scalar_words`` is the content of the scalar buffer. Both have
        been checked.
        """

    def run_on(
        self,
        device: str,
        compiled: Any,
        grid: tuple[int, int, int],
        arguments: list[Any],
        scalar_words: bytes,
    ) -> None:
        """Runs a packed launch on another device, one of ``readable_on``."""
        raise DeviceError(f"the device {device} cannot run kernels on {self.arrays}")

    @abstractmethod
    def synchronize(self) -> None:
        """Waits until all launches have ended."""

    def wait_for(self, value: Any) -> None:
        """Waits until the arrays in a result are computed."""
        self.synchronize()

    @abstractmethod
    def event(self) -> Event:
        """A new event."""

    def require(self) -> None:
        """Raises DeviceError if this device is not available."""
        problem = self.problem()
        if problem is not None:
            raise DeviceError(f"the device {self.name} is not available: {problem}")

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
    """A shape as a tuple of integers of 0 or more."""
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    if any(isinstance(s, bool) or not isinstance(s, int) or s < 0 for s in sizes):
        raise LaunchValueError(f"a shape must consist of integers of 0 or more, not {shape!r}")
    return sizes
