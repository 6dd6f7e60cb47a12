"""What every device offers: compile, allocate, launch, synchronise, events, properties, memory."""

from __future__ import annotations

import json
import struct
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from types import SimpleNamespace
from typing import Any

from ..errors import DeviceError, LaunchTypeError, LaunchValueError


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


class Device(ABC):
    """A place where kernels run."""

    name: str

    @abstractmethod
    def problem(self) -> str | None:
        """Why this device is not there, and what to do; None where it is."""

    @abstractmethod
    def compile(self, metal: str, metadata: Mapping[str, Any] | str) -> Any:
        """The kernel of a Metal text, ready to launch. ``metadata`` is the compiler's launch contract."""

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
    def launch(self, compiled: Any, grid: int | Sequence[int], arguments: Sequence[Any]) -> None:
        """Launches what ``compile`` or a warmed-up @jit kernel gave.

        ``arguments`` come in the order of the kernel's run-time arguments.
        """

    @abstractmethod
    def synchronize(self) -> None:
        """Waits until everything that was launched is done."""

    @abstractmethod
    def event(self) -> Event:
        """A new event."""

    @abstractmethod
    def properties(self) -> DeviceProperties:
        """What is known of the device."""

    @abstractmethod
    def memory_stats(self) -> MemoryStatistics:
        """Bytes of arrays on the device."""

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


def read_grid(grid: int | Sequence[int]) -> tuple[int, int, int]:
    """A grid with 1 to 3 dimensions as three integers."""
    sizes = (grid,) if isinstance(grid, int) else tuple(grid)
    if not 1 <= len(sizes) <= 3 or any(
        isinstance(size, bool) or not isinstance(size, int) or not 1 <= size < 1 << 31
        for size in sizes
    ):
        raise LaunchValueError(
            f"the grid must be 1 to 3 integers from 1 to 2147483647, not {grid!r}"
        )
    return sizes + (1,) * (3 - len(sizes))  # type: ignore[return-value]


def pack_scalars(metadata: Mapping[str, Any], arguments: Sequence[Any]) -> bytes:
    """The words of the scalar buffer for arguments in the order of the kernel.

    >>> args = [{"name": "x", "kind": "buffer", "slot": 0, "words": 0, "type": "*f32"},
    ...         {"name": "n", "kind": "scalar", "slot": 0, "words": 1, "type": "i32"},
    ...         {"name": "a", "kind": "scalar", "slot": 1, "words": 1, "type": "f32"}]
    >>> pack_scalars({"args": args}, [None, -2, 1.0]).hex()
    'feffffff0000803f'
    """
    expected = metadata["args"]
    if len(arguments) != len(expected):
        names = ", ".join(argument["name"] for argument in expected)
        raise LaunchTypeError(
            f"the kernel takes {len(expected)} arguments ({names}), but {len(arguments)} were given"
        )
    scalars = [
        (argument, value)
        for argument, value in zip(expected, arguments, strict=True)
        if argument["kind"] == "scalar"
    ]
    words = bytearray(4 * sum(argument["words"] for argument, _ in scalars))
    for argument, value in scalars:
        start, size = 4 * argument["slot"], 4 * argument["words"]
        words[start : start + size] = pack_scalar(argument, value)
    return bytes(words)


def pack_scalar(argument: Mapping[str, Any], value: Any) -> bytes:
    """One scalar as little-endian words."""
    name, type, size = argument["name"], argument["type"], 4 * argument["words"]
    if isinstance(value, (str, bytes)) or not hasattr(value, "__float__"):
        raise LaunchTypeError(f"argument {name} must be a number ({type}), not {value!r}")
    if type.startswith("i"):
        try:
            number = value.__index__()
        except AttributeError:
            raise LaunchTypeError(
                f"argument {name} must be an integer ({type}), not {value!r}"
            ) from None
        bits = int(type[1:])
        if not -(1 << (bits - 1)) <= number < 1 << bits:
            raise LaunchValueError(
                f"argument {name} is {number}, which does not fit its type {type}"
            )
        return (number & ((1 << 8 * size) - 1)).to_bytes(size, "little")
    number = float(value)
    if type == "f16":
        return _half(number).to_bytes(size, "little")
    if type == "bf16":
        return _bfloat(number).to_bytes(size, "little")
    return struct.pack(
        "<d" if type == "f64" else "<f", _to_float(number) if type == "f32" else number
    )


def _to_float(number: float) -> float:
    try:
        struct.pack("<f", number)
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")
    return number


def _half(number: float) -> int:
    try:
        return int.from_bytes(struct.pack("<e", number), "little")
    except OverflowError:
        return 0x7C00 if number > 0 else 0xFC00


def _bfloat(number: float) -> int:
    if number != number:
        return 0x7FC0
    single = struct.unpack("<f", struct.pack("<f", _to_float(number)))[0]
    bits = int.from_bytes(struct.pack("<f", single), "little")
    if single in (float("inf"), float("-inf")):
        return bits >> 16
    # Rounding twice must not round up at a tie that the first rounding made.
    if single != number and bits & 0xFFFF == 0x8000:
        away = abs(single) > abs(number)
        return (bits >> 16) + (not away)
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
