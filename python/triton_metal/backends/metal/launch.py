"""Loads compiled kernels and launches them on torch's tensors."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

from ... import _native, cache, messages, mps, profiling
from ...array_memory import check_sign
from ...errors import LaunchTypeError, LaunchValueError, compile_error
from ...stages import Stages
from ...tuples import element_name


class MetalFunction:
    """A loaded kernel: the Metal text, its launch contract, and what the devices made of it."""

    def __init__(
        self,
        ttir: str,
        metal: str,
        metadata: str,
        options: tuple[int, int, str, str],
        native: Any = None,
    ) -> None:
        """``metadata`` is the launch contract as JSON; ``options`` are those of `Stages`."""
        cache.configure_host_device()
        contract = json.loads(metadata)
        self.name: str = contract["name"]
        self.metadata = SimpleNamespace(**contract)
        self.options = options
        self.asm = Stages(ttir, metal, options)
        self.native = native or _native.Kernel(metal, metadata, [])
        self._variants: dict[tuple[int, ...], MetalFunction] = {}
        arguments = contract["args"]
        self.buffers = [
            index
            for index, argument in enumerate(arguments)
            if argument["kind"] == "buffer" and "messages" not in argument
        ]
        self.hidden = [0 for argument in arguments if "messages" in argument]
        self.written = {
            index
            for index in self.buffers
            if arguments[index]["writes"] or arguments[index]["atomic"]
        }

    @classmethod
    def load(cls, binary: bytes) -> MetalFunction:
        """The kernel of the stage ``binary``."""
        loaded = json.loads(binary)
        return cls(loaded["ttir"], loaded["metal"], loaded["metadata"], tuple(loaded["options"]))

    def for_memory(self, owners: list[Any]) -> MetalFunction:
        """The kernel for arguments whose buffers belong to these storages, in the order of ``buffers``.

        The compiler takes two pointers for pointers to different memory. Where a storage is that of several arguments
        and the kernel writes one of them, it compiles the kernel again with that knowledge.
        """
        if len(set(owners)) == len(owners):
            return self
        numbers = [0] * (len(self.metadata.args) - len(self.hidden))
        for number, owner in enumerate(dict.fromkeys(owners), start=1):
            sharing = [
                index
                for index, other in zip(self.buffers, owners, strict=True)
                if other == owner or UNKNOWN in (other, owner)
            ]
            if len(sharing) > 1 and not self.written.isdisjoint(sharing):
                for index in sharing:
                    numbers[index] = number
        key = tuple(numbers)
        if not any(key):
            return self
        if key not in self._variants:
            self._variants[key] = self._variant(key)
        return self._variants[key]

    def _variant(self, memory: tuple[int, ...]) -> MetalFunction:
        key = cache.key_of(self.asm["ttir"], repr((self.options, memory)), self.options[2])
        entry = cache.load(key)
        if entry is None:
            try:
                made = _native.compile_text(
                    self.asm["ttir"], "<ttir>", *self.options, memory=list(memory)
                )
            except ValueError as error:
                raise compile_error(str(error)) from None
            entry = {"ttir": made.ttir, "metal": made.metal, "metadata": made.metadata}
            cache.store(key, entry)
        return MetalFunction(**entry, options=self.options)


#: The owner of memory of which only the address is known.
UNKNOWN = object()


#: Types of one bit: an integer gives its lowest, as on Triton's other backends.
BITS = ("i1", "u1")


class MetalLauncher:
    """Launches a kernel with the arguments of its Python function."""

    def __init__(self, src: Any, metadata: Any) -> None:
        signature = src.signature
        self.signature = tuple(signature.values() if isinstance(signature, dict) else signature)
        self.is_flat = all(
            isinstance(type, str)
            and type not in ("constexpr", *BITS)
            and not type.startswith("tensordesc")
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
            values = self.values_of(function, arguments)
            with profiling.recorded(function, (grid_x, grid_y, grid_z), values):
                self._launch(function, (grid_x, grid_y, grid_z), values)
        if exit_hook is not None:
            exit_hook(launch_metadata)

    def values_of(self, function: MetalFunction, arguments: tuple[Any, ...]) -> list[Any]:
        """The arguments of the compiled kernel, from those of its Python function."""
        return list(arguments) if self.is_flat else list(flatten(self.signature, arguments))

    def _launch(
        self, function: MetalFunction, grid: tuple[int, int, int], values: list[Any]
    ) -> None:
        on_mps = False
        owners = []
        for index in function.buffers:
            check_sign(function.name, function.metadata.args[index]["name"], values[index])
            values[index], owner = memory_of(values[index])
            owners.append(owner)
            on_mps = on_mps or getattr(values[index], "is_mps", False)
        function = function.for_memory(owners)
        grid = function.native.grid(grid)
        words = function.native.pack(values + function.hidden)
        if on_mps or (function.buffers and mps.is_stand_in(values[function.buffers[0]])):
            run = mps.launch
        else:
            run = run_on_host
        if function.hidden:
            # Stock Triton's kernels print a scalar once for each thread.
            threads = function.options[0] * 32
            messages.launch(run, function, grid, values, words, scalar_copies=threads)
        else:
            run(function, grid, values, words)


def run_on_host(
    function: MetalFunction, grid: tuple[int, int, int], values: list[Any], words: bytes
) -> None:
    """Runs a packed launch on the host device."""
    function.native.launch(grid, values, words, function)


def flatten(signature: Iterable[Any], arguments: Iterable[Any]) -> Iterable[Any]:
    """The arguments that the compiled kernel has: no constants, the parts of tuples and of tensor descriptors."""
    signature, arguments = tuple(signature), tuple(arguments)
    if len(arguments) < len(signature):
        # A compiled kernel may be launched without its constants.
        signature = tuple(type for type in signature if type != "constexpr")
    for type, value in zip(signature, arguments, strict=True):
        if isinstance(type, tuple):
            yield from flatten(type, value)
        elif type.startswith("tensordesc"):
            # The parts of the compiler's descriptor, and then what Triton's front end gives to the kernel's own use.
            check_alignment(value)
            yield value.base
            yield from value.shape
            yield from value.strides
            yield value.padding == "nan"
            yield getattr(value, "round_f32_to_tf32", False)
            yield from value.shape
            yield from value.strides
        elif type in BITS and isinstance(value, int):
            yield value & 1
        elif type != "constexpr":
            yield value


def check_alignment(descriptor: Any) -> None:
    """Checks what the compiler relies on. TensorDescriptor does so, too, but its fields may have changed since."""
    base, strides = descriptor.base, list(descriptor.strides)
    if base.data_ptr() % 16:
        raise LaunchValueError("the base of a tensor descriptor must be aligned to 16 bytes")
    for stride in strides[:-1]:
        if stride * base.dtype.itemsize % 16:
            raise LaunchValueError(
                f"a stride of a tensor descriptor is {stride} elements of {base.dtype.itemsize} bytes; it must be a "
                "multiple of 16 bytes"
            )
    if strides[-1] != 1:
        raise LaunchValueError(f"the last stride of a tensor descriptor is {strides[-1]}, not 1")


def memory_of(value: Any) -> tuple[Any, Any]:
    """The memory behind a pointer argument, as a tensor of bytes from its first element to the end of its storage, and
    what stands for the storage.

    A kernel may go beyond a view, as its pointer is an address in the whole storage.
    """
    torch = sys.modules.get("torch")  # without torch there are no tensors, only addresses
    tensor = value
    if torch is not None and not isinstance(value, torch.Tensor):
        tensor = getattr(value, "base", value)  # triton.reinterpret's result
    if torch is not None and isinstance(tensor, torch.Tensor):
        if tensor.device.type not in ("cpu", "mps"):
            raise LaunchValueError(
                f"a tensor on {tensor.device} is not one that the backend metal can read: it takes tensors on the CPU "
                "and on mps"
            )
        storage = tensor.untyped_storage()
        offset = tensor.storage_offset() * tensor.element_size()
        size = max(storage.nbytes() - offset, 0)
        memory = torch.empty(0, dtype=torch.uint8, device=tensor.device)
        return memory.set_(storage, offset, (size,), (1,)), storage._cdata
    if isinstance(value, int):
        return memory_at(value), UNKNOWN
    if hasattr(value, "__array_interface__"):
        owner = value
        while hasattr(getattr(owner, "base", None), "__array_interface__"):
            owner = owner.base
        return value, id(owner)
    if not hasattr(value, "data_ptr"):
        raise LaunchTypeError(
            f"a pointer argument is {value!r} ({type(value).__name__}); it takes a tensor, a NumPy array, or an object with data_ptr()"
        )
    return memory_at(value.data_ptr()), UNKNOWN


def memory_at(address: int) -> Any:
    """Memory of unknown size at an address of this process."""
    import ctypes

    if address == 0:
        return bytearray()
    return (ctypes.c_uint8 * (1 << 40)).from_address(address)


class OwnLauncher(MetalLauncher):
    """Launches a kernel of triton_metal's front end with the arguments of its Python function."""

    def __init__(self, src: Any, metadata: Any) -> None:
        super().__init__(src, metadata)
        arguments = [entry["name"] for entry in metadata.args if "messages" not in entry]
        # A text of Triton IR has no other names than the kernel's own.
        names = list(getattr(src, "arg_names", arguments))
        self.names = names
        plain = {
            name: index
            for index, (name, type) in enumerate(zip(names, self.signature, strict=False))
            if isinstance(type, str) and not type.startswith("tensordesc")
        }
        self.places = (
            [plain[name] for name in arguments]
            if all(name in plain for name in arguments)
            else None
        )
        self.arguments = arguments
        #: The bytes of the elements behind each pointer, by the arguments' places.
        self.widths = [
            (place, (int(entry["type"].lstrip("*bfi")) + 7) // 8, entry["type"])
            for place, entry in enumerate(metadata.args)
            if "messages" not in entry and entry["type"].startswith("*")
        ]
        self.bits = any(type in BITS for type in self.signature if isinstance(type, str))

    def values_of(self, function: MetalFunction, arguments: tuple[Any, ...]) -> list[Any]:
        values = self._values_of(arguments)
        # Programs may read numbers as others of the same width, but not as wider or narrower ones.
        for place, width, type in self.widths:
            dtype = getattr(values[place], "dtype", None)
            if getattr(dtype, "itemsize", width) != width:
                raise LaunchTypeError(
                    f"{function.name}: argument {self.arguments[place]} is an array of {dtype}, but the kernel was compiled "
                    f"for {type}, whose elements have {width} bytes"
                )
        return values

    def _values_of(self, arguments: tuple[Any, ...]) -> list[Any]:
        if self.places is not None and not self.bits and len(arguments) == len(self.names):
            return [arguments[place] for place in self.places]
        signature, names = self.signature, self.names
        if len(arguments) < len(signature):  # without the constants
            kept = [i for i, type in enumerate(signature) if type != "constexpr"]
            signature, names = (
                tuple(signature[i] for i in kept if i < len(names)),
                [names[i] for i in kept],
            )
        found: dict[str, Any] = {}
        for name, type, value in zip(names, signature, arguments, strict=True):
            found.update(_named_parts(name, type, value))
        return [found[name] for name in self.arguments]


def _named_parts(name: str, type: Any, value: Any) -> Iterable[tuple[str, Any]]:
    """The parts of an argument, under the names of the compiled kernel's arguments."""
    if isinstance(type, tuple):
        for index, (part, element) in enumerate(zip(type, value, strict=True)):
            yield from _named_parts(element_name(name, type.__class__, index), part, element)
    elif type.startswith("tensordesc"):
        yield name, value.base
        for index, size in enumerate(value.shape):
            yield f"{name}.shape.{index}", size
        for index, stride in enumerate(value.strides[:-1]):
            yield f"{name}.stride.{index}", stride
    elif type in BITS and isinstance(value, int):
        yield name, value & 1
    else:
        yield name, value
