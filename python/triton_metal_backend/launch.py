"""Loads compiled kernels and launches them on torch's tensors."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any


class MetalFunction:
    """A loaded kernel: the Metal text, its launch contract, and what the devices made of it."""

    def __init__(self, binary: bytes) -> None:
        from triton_metal import _native, cache
        from triton_metal.stages import Stages

        loaded = json.loads(binary)
        contract = loaded["contract"]
        cache.configure_host_device()
        self.name: str = contract["name"]
        self.metadata = SimpleNamespace(**contract)
        self.asm = Stages("", loaded["metal"], (contract["num_warps"], 1, ""))
        self.native = _native.Kernel(loaded["metal"], json.dumps(contract), [])
        self.buffers = [argument["kind"] == "buffer" for argument in contract["args"]]
        self.registers = int(contract.get("registers", 0))


class MetalLauncher:
    """Launches a kernel with the arguments of its Python function."""

    def __init__(self, src: Any, metadata: Any) -> None:
        signature = src.signature
        self.signature = tuple(signature.values() if isinstance(signature, dict) else signature)
        self.is_flat = all(
            isinstance(type, str) and type != "constexpr" and not type.startswith("tensordesc")
            for type in self.signature
        )

    def __call__(
        self,
        grid_x: int,
        grid_y: int,
        grid_z: int,
        stream: Any,
        function: MetalFunction,
        kernel_metadata: Any,
        launch_metadata: Any,
        enter_hook: Callable[[Any], None] | None,
        exit_hook: Callable[[Any], None] | None,
        *arguments: Any,
    ) -> None:
        if enter_hook is not None:
            enter_hook(launch_metadata)
        # A grid without programs is a launch that does nothing.
        if grid_x and grid_y and grid_z:
            values = list(arguments) if self.is_flat else list(flatten(self.signature, arguments))
            self._launch(function, (grid_x, grid_y, grid_z), values)
        if exit_hook is not None:
            exit_hook(launch_metadata)

    def _launch(
        self, function: MetalFunction, grid: tuple[int, int, int], values: list[Any]
    ) -> None:
        on_mps = False
        for index, is_buffer in enumerate(function.buffers):
            if is_buffer:
                values[index] = tensor = memory_of(values[index])
                on_mps = on_mps or getattr(tensor, "is_mps", False)
        grid = function.native.grid(grid)
        words = function.native.pack(values)
        if on_mps:
            from triton_metal import mps

            mps.launch(function, grid, values, words)
        else:
            function.native.launch(grid, values, words, function)


def flatten(signature: Iterable[Any], arguments: Iterable[Any]) -> Iterable[Any]:
    """The arguments that the compiled kernel has: no constants, the parts of tuples and of tensor descriptors."""
    for type, value in zip(signature, arguments, strict=True):
        if isinstance(type, tuple):
            yield from flatten(type, value)
        elif type.startswith("tensordesc"):
            # Triton's front end gives a descriptor's shape and strides to the kernel once for its own operations, and
            # once for the kernel's use.
            yield value.base
            yield from value.shape
            yield from value.strides
            yield value.padding == "nan"
            if hasattr(value, "round_f32_to_tf32"):
                yield value.round_f32_to_tf32
            yield from value.shape
            yield from value.strides
        elif type != "constexpr":
            yield value


def memory_of(value: Any) -> Any:
    """The memory behind a pointer argument, as a tensor of bytes from its first element to the end of its storage.

    A kernel may go beyond a view, as its pointer is an address in the whole storage.
    """
    import torch

    tensor = getattr(value, "base", value) if not isinstance(value, torch.Tensor) else value
    if isinstance(tensor, torch.Tensor):
        if tensor.device.type not in ("cpu", "mps"):
            from triton_metal.errors import LaunchValueError

            raise LaunchValueError(
                f"a tensor on {tensor.device} is not one that the backend metal can read: it takes tensors on the CPU "
                "and on mps"
            )
        storage = tensor.untyped_storage()
        offset = tensor.storage_offset() * tensor.element_size()
        size = max(storage.nbytes() - offset, 0)
        return torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(
            storage, offset, (size,), (1,)
        )
    address = value if isinstance(value, int) else value.data_ptr()
    return memory_at(address)


def memory_at(address: int) -> Any:
    """Memory of unknown size at an address of this process."""
    import ctypes

    if address == 0:
        return bytearray()
    return (ctypes.c_uint8 * (1 << 40)).from_address(address)
