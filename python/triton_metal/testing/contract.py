"""Contract devices: the routes to an Apple GPU, ending at the host Metal device."""

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
from .as_graph import AsGraph
from .buffers import is_array, is_bindable, is_reversed, kernels_memory, shares_memory
from .in_place import InPlace
from .mlx_arrays import bytes_of, copy_of, dtype_of

CONTRACT_DEVICES = ("mps", "mlx", "mlx-in-place", "mlx-graph")


@contextlib.contextmanager
def contract_device(name: str, *, launches: dict[str, int] | None = None) -> Iterator[None]:
    """In this block and thread, launches use a framework's route on a Mac, and run on the host Metal device.

    "mps": NumPy arrays and CPU tensors stand in for tensors on mps, and a stand-in replaces
    `torch.mps.compile_shader`. "mlx": a stand-in replaces `mx.fast.metal_kernel` for `triton_metal.mlx.call`.
    In-place launches on NumPy arrays and CPU tensors also use it if its form allows that; the others run in place on
    the host. "mlx-in-place": launches on NumPy arrays and CPU tensors run in place on MLX arrays with the same
    elements. "mlx-graph": they run as MLX's own operations.

    `launches` counts the launches by route: "mps", "mlx", "mlx-graph", "refused" or "host". Launches under
    `launch_options` stay on the host device, because no framework counts or checks.
    """
    if name not in CONTRACT_DEVICES:
        *some, last = CONTRACT_DEVICES
        raise ValueError(
            f"there is no contract device {name!r}: the contract devices are {', '.join(some)} and {last}"
        )
    counts = launches if launches is not None else {}
    with contextlib.ExitStack() as stack:
        if name == "mps":

            def launch(compiled: Any, grid: Any, arguments: list[Any], words: bytes) -> None:
                way = "mps" if all(map(is_bindable, arguments)) else "host"
                counts[way] = counts.get(way, 0) + 1
                if way == "mps":
                    mps.launch(compiled, grid, arguments, words)
                else:
                    compiled.native.launch(grid, arguments, words)

            stack.enter_context(_replaced(mps, "_compile_shader", shaders.compile_shader))
            stack.enter_context(_replaced(mps, "_is_stand_in", is_array))
            stack.callback(_native.set_route, "mps", _native.set_route("mps", launch))
        elif name == "mlx-graph":
            in_place.native()
            route = AsGraph(counts)
            stack.callback(_native.set_route, name, _native.set_route(name, route))
        elif name == "mlx-in-place":
            in_place.native()
            stack.callback(_native.set_route, "mlx", _native.set_route("mlx", InPlace(counts)))
        else:
            stack.enter_context(_replaced(functional, "_metal_kernel", kernels.metal_kernel))
            # Its module takes the route when it is loaded.
            with contextlib.suppress(DeviceError):
                in_place.native()
            functions = _Functional(counts)
            stack.callback(_native.set_route, "mlx", _native.set_route("mlx", functions))
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


class _Functional:
    """An in-place launch through `mx.fast.metal_kernel`, for kernels that write arrays without reading them."""

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
            or not all(
                functional.is_element(dtype_of(value))
                for value, a in zip(arguments, described, strict=True)
                if a["kind"] == "buffer"
            )
            or shares_memory(arguments, [position for position, _ in written])
        ):
            # Not this form's: in place, on the host.
            self.counts["host"] = self.counts.get("host", 0) + 1
            if any(type(value).__module__ == "mlx.core" for value in arguments):
                in_place.launch(compiled, grid, arguments, words)
            else:
                compiled.native.launch(grid, arguments, words)
            return
        self.counts["mlx"] = self.counts.get("mlx", 0) + 1
        function = functional.functional(compiled, tuple(a["name"] for _, a in written))
        memories = [kernels_memory(arguments[position]) for position, _ in written]
        specs = [
            ((memory.nbytes // dtype.size,), dtype)
            for memory, (position, _) in zip(memories, written, strict=True)
            for dtype in [dtype_of(arguments[position])]
        ]
        values = list(arguments)
        for position, argument in enumerate(described):
            if argument["kind"] == "buffer":
                values[position] = copy_of(arguments[position])
        # New memory may hold anything: here, what in place would be left of the array.
        with kernels.uninitialized(
            lambda index, size: memories[index].tobytes().ljust(size, b"\0")
        ):
            results = function(values, specs, grid, words)
        for memory, result in zip(memories, results, strict=True):
            memory[:] = np.frombuffer(bytes_of(result), np.uint8)
