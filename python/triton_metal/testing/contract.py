"""Contract devices: the ways to an Apple GPU, with the host Metal device at their end."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import _native, mps
from ..errors import DeviceError
from ..mlx import functional, in_place
from . import compile_shader as shaders
from . import metal_kernel as kernels
from .buffers import buffer_of, is_tensor
from .in_place import InPlace


@contextlib.contextmanager
def contract_device(name: str, *, launches: dict[str, int] | None = None) -> Iterator[None]:
    """In this block and thread, launches go the way of a framework on a Mac, and run on the host Metal device.

    "mps": NumPy arrays and CPU tensors are taken for tensors on mps, and `torch.mps.compile_shader` is replaced by a
    stand-in. "mlx": `mx.fast.metal_kernel` is replaced by one, for `triton_metal.mlx.call`, and in-place launches on
    NumPy arrays and CPU tensors go through it where its form allows that; the others are in place on the host.
    "mlx-in-place": launches on NumPy arrays and CPU tensors are on MLX arrays of the same elements, in place.

    `launches`, where given, counts the launches by the way that they went: "mps", "mlx" or "host".
    Launches under `launch_options` stay on the host device: no framework counts or checks.
    """
    if name not in ("mps", "mlx", "mlx-in-place"):
        raise ValueError(f"there is no contract device {name!r}: mps, mlx and mlx-in-place are")
    counts = launches if launches is not None else {}
    with contextlib.ExitStack() as stack:
        if name == "mps":

            def launch(compiled: Any, grid: Any, arguments: list[Any], words: bytes) -> None:
                way = "mps" if all(map(is_bindable, arguments)) else "host"
                counts[way] = counts.get(way, 0) + 1
                (mps.launch if way == "mps" else host_launch)(compiled, grid, arguments, words)

            stack.enter_context(_replaced(mps, "_compile_shader", shaders.compile_shader))
            stack.enter_context(_replaced(mps, "_is_stand_in", _is_array))
            stack.callback(_native.set_route, "mps", _native.set_route("mps", launch))
        elif name == "mlx-in-place":
            in_place.native()
            stack.callback(_native.set_route, "mlx", _native.set_route("mlx", InPlace(counts)))
        else:
            stack.enter_context(_replaced(functional, "_metal_kernel", kernels.metal_kernel))
            # Its module takes the route when it is loaded.
            with contextlib.suppress(DeviceError):
                in_place.native()
            route = _Functional(counts)
            stack.callback(_native.set_route, "mlx", _native.set_route("mlx", route))
        _native.set_stand_in(name.removesuffix("-in-place"))
        stack.callback(_native.set_stand_in, "host")
        yield


@contextlib.contextmanager
def _replaced(module: Any, name: str, value: Any) -> Iterator[None]:
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) or is_tensor(value)


def is_bindable(value: Any) -> bool:
    """Whether a framework has such an argument: a number, a tensor, an array that may be written."""
    if isinstance(value, np.ndarray):
        return value.flags.writeable
    return is_tensor(value) or isinstance(value, (int, float, np.number, np.bool_))


class _Functional:
    """An in-place launch by way of `mx.fast.metal_kernel`, for kernels that write arrays and do not read them."""

    def __init__(self, counts: dict[str, int]) -> None:
        self.counts = counts

    def __call__(
        self, compiled: Any, grid: tuple[int, int, int], arguments: list[Any], words: bytes
    ) -> None:
        described = compiled.metadata.args
        written = [
            (position, argument)
            for position, argument in enumerate(described)
            if argument["kind"] == "buffer" and (argument["writes"] or argument["atomic"])
        ]
        if (
            not written
            or any(a["reads"] or a["atomic"] for _, a in written)
            or not all(map(is_bindable, arguments))
            or any(map(is_reversed, arguments))
            or shares_memory(arguments, [position for position, _ in written])
        ):
            # Not this form's: in place, on the host.
            self.counts["host"] = self.counts.get("host", 0) + 1
            host_launch(compiled, grid, arguments, words)
            return
        self.counts["mlx"] = self.counts.get("mlx", 0) + 1
        function = functional.functional(compiled, tuple(a["name"] for _, a in written))
        memories = [kernels_memory(arguments[position]) for position, _ in written]
        specs = [
            ((memory.nbytes // dtype.size,), dtype)
            for memory, (position, _) in zip(memories, written, strict=True)
            for dtype in [mlx_dtype(arguments[position])]
        ]
        values = list(arguments)
        for position, argument in enumerate(described):
            if argument["kind"] == "buffer":
                values[position] = mlx_copy(arguments[position])
        # New memory may hold anything: here, what in place would be left of the array.
        with kernels.uninitialized(
            lambda index, size: memories[index].tobytes().ljust(size, b"\0")
        ):
            results = function(values, specs, grid, words)
        for memory, result in zip(memories, results, strict=True):
            memory[:] = np.frombuffer(kernels._bytes(result), np.uint8)


def host_launch(
    compiled: Any, grid: tuple[int, int, int], arguments: list[Any], words: bytes
) -> None:
    """The launch on the host device, by its text."""
    import json

    library = vars(compiled).get("_host_library")
    if library is None:
        metadata = json.dumps(vars(compiled.metadata))
        library = compiled._host_library = _native.HostLibrary(compiled.asm["metal"], metadata)
    library.launch(grid, arguments, words)


def is_reversed(array: Any) -> bool:
    """Whether elements lie before the first one: no MLX array is like that."""
    strides = getattr(array, "strides", ())
    return isinstance(strides, tuple) and any(stride < 0 for stride in strides)


def shares_memory(arguments: list[Any], written: list[int]) -> bool:
    """Whether an array that is written has memory of another one: no new array has."""
    ranges = [
        (position, buffer.address, buffer.address + buffer.bytes)
        for position, value in enumerate(arguments)
        if _is_array(value)
        for buffer in [buffer_of(value)]
    ]
    return any(
        one < other_end and other < end
        for position, one, end in ranges
        if position in written
        for other_position, other, other_end in ranges
        if other_position != position
    )


def kernels_memory(array: Any) -> np.ndarray:
    """All the bytes that a kernel may reach from an array's first element."""
    import ctypes

    buffer = buffer_of(array)
    memory = (ctypes.c_uint8 * buffer.bytes).from_address(buffer.address)
    return np.frombuffer(memory, np.uint8)


def mlx_dtype(array: Any) -> Any:
    """The MLX dtype of a NumPy array or tensor."""
    import mlx.core as mx

    name = str(array.dtype).removeprefix("torch.")
    return mx.bool_ if name == "bool" else getattr(mx, name)


def mlx_copy(array: Any) -> Any:
    """An MLX array of all that a kernel may reach."""
    return kernels._array(kernels_memory(array), (-1,), mlx_dtype(array))
