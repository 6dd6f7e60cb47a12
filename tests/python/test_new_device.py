"""A new device is one class and one entry: this one lives in this file, and everything else takes it as it is."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl
from triton_metal import devices
from triton_metal.devices import (
    ArrayDescription,
    Device,
    DeviceProperties,
    Event,
    MemoryStatistics,
    registry,
)
from triton_metal.devices.base import read_shape
from triton_metal.devices.target import BASELINE, Target, apple
from triton_metal.errors import DeviceError, LaunchTypeError, LaunchValueError

# The launches here go to a device of their own.
pytestmark = [pytest.mark.own_route, pytest.mark.own_target]

_TRITON = {"float32": "fp32", "float16": "fp16", "int32": "int32", "bool": "int1"}


class CrateArray:
    """An array that nothing but its device can read."""

    def __init__(self, values: np.ndarray) -> None:
        self.crate = values

    @property
    def nbytes(self) -> int:
        return self.crate.nbytes


class CrateEvent(Event):
    def record(self) -> None:
        self.time = time.perf_counter()

    def synchronize(self) -> None:
        pass

    def elapsed_time(self, end: CrateEvent) -> float:
        return (end.time - self.time) * 1e3


class CrateDevice(Device):
    """Runs kernels on the host device, on arrays of its own."""

    name = "crate"
    array = "an array in a crate"
    arrays = "arrays in crates"
    array_types = (f"{CrateArray.__module__}.{CrateArray.__qualname__}",)
    readable_on = ("host",)

    def __init__(self) -> None:
        self.log: list[str] = []

    def problem(self) -> str | None:
        return None

    def properties(self) -> DeviceProperties:
        return DeviceProperties(name="a crate", kind="crate")

    def target(self) -> Target:
        return apple("14.5", "Apple M1")

    @classmethod
    def describe(cls, array: CrateArray) -> ArrayDescription:
        values = array.crate
        address = values.ctypes.data
        return ArrayDescription(
            _TRITON[str(values.dtype)], address, values.nbytes, address % 16 == 0
        )

    def allocate(self, shape: int | Sequence[int], dtype: str = "float32") -> CrateArray:
        return CrateArray(np.empty(read_shape(shape), dtype))

    def from_numpy(self, array: Any) -> CrateArray:
        return CrateArray(np.array(array))

    def to_numpy(self, array: CrateArray) -> Any:
        return array.crate.copy()

    def memory_stats(self) -> MemoryStatistics:
        return MemoryStatistics(None, None)

    def reset_peak(self) -> None:
        pass

    def run(
        self, compiled: Any, grid: tuple[int, int, int], arguments: list[Any], scalar_words: bytes
    ) -> None:
        self.log.append(f"{compiled.metadata.name} on {grid}, {len(scalar_words)} bytes of scalars")
        opened = [getattr(argument, "crate", argument) for argument in arguments]
        compiled.native.launch(grid, opened, scalar_words)

    def run_on(self, device: str, *launch: Any) -> None:
        self.log.append(f"for {device}")
        self.run(*launch)

    def synchronize(self) -> None:
        pass

    def event(self) -> CrateEvent:
        return CrateEvent()


@triton.jit
def scale_kernel(x_ptr, y_ptr, n, factor, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * factor, mask=mask)


@pytest.fixture
def crate(monkeypatch: pytest.MonkeyPatch) -> Iterator[CrateDevice]:
    monkeypatch.delenv("TRITON_METAL_DEVICE", raising=False)
    # The entry. In the package it is the class's name in `registry.DEVICES`.
    devices.register(CrateDevice)
    device = devices.get("crate")
    assert isinstance(device, CrateDevice)
    yield device
    devices.unregister("crate")


def test_the_package_registers_its_table() -> None:
    assert tuple(device.name for device in registry.DEVICES) == devices.names()


def test_launches_go_where_the_arrays_are(crate: CrateDevice) -> None:
    x, y = crate.from_numpy(np.arange(300, dtype=np.float32)), crate.allocate(300)
    kernel = scale_kernel[(5,)](x, y, 300, 2.5, BLOCK=64)
    assert np.array_equal(crate.to_numpy(y), np.arange(300, dtype=np.float32) * 2.5)
    # Compiled for what the device is, and packed before it is asked.
    assert "#pragma METAL fp" not in kernel.asm["metal"]
    scale_kernel[lambda meta: (triton.cdiv(300, meta["BLOCK"]),)](x, y, 300, -1.0, BLOCK=64)
    assert crate.log == ["scale_kernel on (5, 1, 1), 8 bytes of scalars"] * 2
    assert np.array_equal(crate.to_numpy(y), -np.arange(300, dtype=np.float32))
    assert scale_kernel.warmup(x, y, 300, 2.5, BLOCK=64).native is kernel.native


def test_a_compiled_text_is_launched(crate: CrateDevice) -> None:
    x, y = crate.from_numpy(np.ones(64, np.float32)), crate.allocate(64)
    kernel = scale_kernel.warmup(x, y, 64, 1.0, BLOCK=64)
    text = crate.compile(kernel.asm["metal"], kernel.metadata)
    for compiled in (kernel, text):
        crate.launch(compiled, 1, [x, y, 64, 3.0])
        assert (crate.to_numpy(y) == 3).all()
        crate.to_numpy(y)[:] = 0
    with pytest.raises(LaunchValueError, match="grid dimension 0 is -1"):
        crate.launch(text, -1, [x, y, 64, 3.0])
    with pytest.raises(LaunchTypeError, match="argument n must be an integer"):
        crate.launch(text, 1, [x, y, 6.5, 3.0])


def test_arrays_that_overlap_are_known(crate: CrateDevice) -> None:
    memory = np.arange(65, dtype=np.float32)
    kernel = scale_kernel[(1,)](CrateArray(memory[:64]), CrateArray(memory[1:]), 64, 2.0, BLOCK=64)
    apart = scale_kernel[(1,)](
        CrateArray(memory[:64]), CrateArray(memory[1:].copy()), 64, 2.0, BLOCK=64
    )
    assert kernel.native is not apart.native


def test_the_device_is_chosen_by_name(crate: CrateDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = crate.from_numpy(np.ones(64, np.float32)), crate.allocate(64)
    array = np.ones(64, np.float32)
    assert devices.current([3, x]).name == "crate"
    assert [device.name for device in devices.available()][-1] == "crate"
    with triton.device("crate"):
        scale_kernel[(1,)](x, y, 64, 2.0, BLOCK=64)
        assert devices.current() is crate
        with pytest.raises(
            LaunchTypeError, match="which takes arrays in crates, but the arguments"
        ):
            scale_kernel[(1,)](array, array, 64, 2.0, BLOCK=64)
    monkeypatch.setenv("TRITON_METAL_DEVICE", "crate")
    scale_kernel[(1,)](x, y, 64, 4.0, BLOCK=64)
    assert (crate.to_numpy(y) == 4).all()
    monkeypatch.setenv("TRITON_METAL_DEVICE", "host")
    scale_kernel[(1,)](x, y, 64, 5.0, BLOCK=64)
    assert (crate.to_numpy(y) == 5).all()
    assert "for host" in crate.log
    assert devices.target_for("host") == BASELINE


def test_wrong_arrays_are_refused(crate: CrateDevice) -> None:
    x, array = crate.from_numpy(np.ones(64, np.float32)), np.ones(64, np.float32)
    with pytest.raises(
        LaunchTypeError, match=r"x_ptr is an array in a crate, but argument y_ptr is a "
    ):
        scale_kernel[(1,)](x, array, 64, 2.0, BLOCK=64)
    wide = CrateArray(np.ones(64, np.float64))
    with pytest.raises(KeyError):
        scale_kernel[(1,)](wide, wide, 64, 2.0, BLOCK=64)


def test_a_device_is_forgotten(crate: CrateDevice) -> None:
    x = crate.from_numpy(np.ones(64, np.float32))
    devices.unregister("crate")
    try:
        with pytest.raises(LaunchTypeError, match="which is not an array"):
            scale_kernel[(1,)](x, x, 64, 2.0, BLOCK=64)
        with pytest.raises(
            DeviceError, match="there is no device 'crate'; the devices are host, mlx"
        ):
            devices.get("crate")
    finally:
        devices.register(CrateDevice)
