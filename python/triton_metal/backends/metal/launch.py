"""Loads compiled kernels and launches them on torch's tensors."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

from ... import _native, cache, messages, mps, profiling
from ...array_memory import check_sign
from ...errors import CacheError, LaunchTypeError, LaunchValueError, compile_error
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
        try:
            loaded = json.loads(binary)
            options = tuple(loaded["options"])
            texts = [str(loaded[name]) for name in ("ttir", "metal", "metadata")]
        except (ValueError, KeyError, TypeError):
            raise CacheError(
                "the binary of a kernel in Triton's cache is damaged: remove the folder that TRITON_CACHE_DIR names, or "
                "~/.triton/cache"
            ) from None
        return cls(*texts, options)

    def for_memory(self, regions: list[Region]) -> MetalFunction:
        """The kernel for arguments whose buffers lie in these regions, in the order of ``buffers``.

        The compiler takes two pointers for pointers to different memory. Where regions overlap and the kernel writes
        to one of them, it compiles the kernel again with that knowledge.
        """
        if len(regions) < 2 or not self.written:
            return self
        groups = overlapping(regions)
        if not groups:
            return self
        numbers = [0] * (len(self.metadata.args) - len(self.hidden))
        for number, group in enumerate(groups, start=1):
            sharing = [self.buffers[place] for place in group]
            if not self.written.isdisjoint(sharing):
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


#: Where memory begins and ends that a kernel may access: in bytes of this process, or of a device.
Region = tuple[int, int]
#: An object that does not tell its size may reach anywhere behind its address.
UNKNOWN_BYTES = 1 << 40


def overlapping(regions: list[Region]) -> list[list[int]]:
    """The places of regions that overlap, directly or through others, group by group.

    >>> overlapping([(0, 4), (16, 20), (2, 8), (7, 9), (5, 5)])
    [[0, 2, 3]]
    """
    groups: list[list[int]] = []
    end = 0
    for begin, own_end, place in sorted((*region, i) for i, region in enumerate(regions)):
        if begin == own_end:
            continue
        if groups and begin < end:
            groups[-1].append(place)
            end = max(end, own_end)
        else:
            groups.append([place])
            end = own_end
    return [sorted(group) for group in groups if len(group) > 1]


#: Types of one bit: an integer gives its lowest, as on Triton's other backends.
BITS = ("i1", "u1")


#: The least and the greatest number of each type of integers.
INTEGERS = {
    f"{sign}{bits}": (-(1 << bits - 1), (1 << bits - 1) - 1)
    if sign == "i"
    else (0, (1 << bits) - 1)
    for sign in "iu"
    for bits in (8, 16, 32, 64)
}


class MetalLauncher:
    """Launches a kernel with the arguments of its Python function."""

    def __init__(self, src: Any, metadata: Any) -> None:
        signature = src.signature
        self.signature = tuple(signature.values() if isinstance(signature, dict) else signature)
        names = signature if isinstance(signature, dict) else range(len(self.signature))
        self.params = [(str(name), type) for name, type in zip(names, self.signature, strict=True)]
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
        params = self.params_of(function.name, arguments)
        if self.is_flat:
            return list(arguments)
        return list(flatten([type for _, type in params], arguments))

    def params_of(self, kernel: str, arguments: tuple[Any, ...]) -> list[tuple[str, Any]]:
        """The names and types of these arguments, whose integers fit. A compiled kernel may be launched without its constants."""
        params = self.params
        if len(arguments) != len(params):
            params = [param for param in params if param[1] != "constexpr"]
        if len(arguments) != len(params):
            known = ", ".join(name for name, _ in params)
            raise LaunchTypeError(
                f"{kernel} takes {len(params)} arguments without its constants ({known}), but {len(arguments)} were given"
            )
        for (name, type), value in zip(params, arguments, strict=True):
            if isinstance(value, int) and type in INTEGERS:
                low, high = INTEGERS[type]
                if not low <= value <= high:
                    raise LaunchValueError(
                        f"{kernel}: argument {name} is {value}, which does not fit its type {type}"
                    )
        return params

    def _launch(
        self, function: MetalFunction, grid: tuple[int, int, int], values: list[Any]
    ) -> None:
        on_mps = False
        regions = []
        given = list(values)  # keeps the memory
        for index in function.buffers:
            name = function.metadata.args[index]["name"]
            check_sign(function.name, name, given[index])
            values[index], region = memory_of(function.name, name, given[index])
            regions.append(region)
            on_mps = on_mps or getattr(values[index], "is_mps", False)
        function = function.for_memory(regions)
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


def memory_of(kernel: str, name: str, value: Any) -> tuple[Any, Region]:
    """What a launch is given for a pointer argument, and where the memory lies that the kernel may access.

    Of a tensor, that is its storage: a kernel may go beyond a view, as its pointer is an address in the whole storage.
    """
    torch = sys.modules.get("torch")  # without torch there are no tensors, only addresses
    tensor = value
    if torch is not None and not isinstance(value, torch.Tensor):
        tensor = getattr(value, "base", value)  # triton.reinterpret's result
    if torch is not None and isinstance(tensor, torch.Tensor):
        return memory_of_tensor(kernel, name, tensor)
    if isinstance(value, int):
        return memory_at(value, UNKNOWN_BYTES)
    if hasattr(value, "__array_interface__"):
        return value, region_of(value.__array_interface__)
    if not hasattr(value, "data_ptr"):
        raise LaunchTypeError(
            f"a pointer argument is {value!r} ({type(value).__name__}); it takes a tensor, a NumPy array, or an object with data_ptr()"
        )
    size = getattr(value, "nbytes", None)
    return memory_at(value.data_ptr(), size if isinstance(size, int) else UNKNOWN_BYTES)


def memory_of_tensor(kernel: str, name: str, tensor: Any) -> tuple[Any, Region]:
    """The bytes of a tensor from its first element to the end of its storage, and the storage's region."""
    device = tensor.device.type
    if device not in ("cpu", "mps"):
        raise LaunchValueError(
            f"a tensor on {tensor.device} is not one that the backend metal can read: it takes tensors on the CPU "
            "and on mps"
        )
    storage = tensor.untyped_storage()
    begin, size = storage.data_ptr(), storage.nbytes()
    if tensor.numel() and not size:
        raise LaunchValueError(f"{kernel}: argument {name} is a tensor without storage")
    offset = tensor.storage_offset() * tensor.element_size()
    rest = max(size - offset, 0)
    if device == "cpu" and not mps.is_stand_in(tensor):
        # Not by PyTorch's operations: modes of PyTorch see these.
        return Memory(begin + offset, rest), (begin, begin + size)
    import torch

    memory = torch.empty(0, dtype=torch.uint8, device=tensor.device)
    # The number stands for a buffer of the GPU, and is no address of bytes.
    region = (begin, begin + 1) if device == "mps" else (begin, begin + size)
    return memory.set_(storage, offset, (rest,), (1,)), region


def region_of(interface: dict[str, Any]) -> Region:
    """From the lowest element of an array to its highest, by its ``__array_interface__``."""
    begin = interface["data"][0]
    size = int(interface["typestr"][2:])
    shape = interface["shape"]
    if 0 in shape:
        return begin, begin
    strides = interface.get("strides")
    if strides is None:
        return begin, begin + size * math.prod(shape)
    moves = [stride * (extent - 1) for stride, extent in zip(strides, shape, strict=True)]
    return begin + sum(min(move, 0) for move in moves), begin + size + sum(
        max(move, 0) for move in moves
    )


class Memory:
    """Bytes at an address of this process, as the native launcher reads them."""

    __slots__ = ("address", "nbytes")
    dtype = "uint8"

    def __init__(self, address: int, nbytes: int) -> None:
        self.address, self.nbytes = address, nbytes

    def data_ptr(self) -> int:
        return self.address


def memory_at(address: int, size: int) -> tuple[Memory, Region]:
    """Memory at an address. Nothing may access what lies at the address 0."""
    size = size if address else 0
    return Memory(address, size), (address, address + size)


class OwnLauncher(MetalLauncher):
    """Launches a kernel of triton_metal's front end with the arguments of its Python function."""

    def __init__(self, src: Any, metadata: Any) -> None:
        super().__init__(src, metadata)
        arguments = [entry["name"] for entry in metadata.args if "messages" not in entry]
        # A text of Triton IR has no other names than the kernel's own.
        names = list(getattr(src, "arg_names", arguments))
        self.params = list(zip(names, self.signature, strict=False))
        plain = {
            name: index
            for index, (name, type) in enumerate(self.params)
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
        values = self._values_of(function.name, arguments)
        # Programs may read numbers as others of the same width, but not as wider or narrower ones.
        for place, width, type in self.widths:
            dtype = getattr(values[place], "dtype", None)
            if getattr(dtype, "itemsize", width) != width:
                raise LaunchTypeError(
                    f"{function.name}: argument {self.arguments[place]} is an array of {dtype}, but the kernel was compiled "
                    f"for {type}, whose elements have {width} bytes"
                )
        return values

    def _values_of(self, kernel: str, arguments: tuple[Any, ...]) -> list[Any]:
        params = self.params_of(kernel, arguments)
        if self.places is not None and not self.bits and params is self.params:
            return [arguments[place] for place in self.places]
        found: dict[str, Any] = {}
        for (name, type), value in zip(params, arguments, strict=True):
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
