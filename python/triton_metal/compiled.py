"""Compiled kernels, with what programs ask of Triton's."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

from . import _native, knobs
from .backends.compiler import NOMINAL_REGISTERS
from .runtime.driver import driver
from .sources import ASTSource
from .stages import Stages


def _is_heard(hook: Any) -> bool:
    """Whether a hook calls anything: an empty chain does not."""
    return hook is not None and bool(getattr(hook, "calls", True))


class KernelMetadata(SimpleNamespace):
    """The launch contract of a kernel as attributes, and the options and names that Triton's metadata has besides.

    ``vars()`` is the contract, ``_asdict()`` everything.
    """

    __slots__ = ("_others",)

    def __init__(self, contract: dict[str, Any], others: dict[str, Any]) -> None:
        super().__init__(**contract)
        self._others = others

    def __getattr__(self, name: str) -> Any:
        if name != "_others" and name in self._others:
            return self._others[name]
        raise AttributeError(f"the metadata of a kernel has no {name!r}")

    def __reduce__(self) -> Any:
        return type(self), (vars(self), self._others)

    def _asdict(self) -> dict[str, Any]:
        return self._others | vars(self)

    @property
    def _fields(self) -> tuple[str, ...]:
        return tuple(self._asdict())

    def _replace(self, **changes: Any) -> KernelMetadata:
        return type(self)(vars(self) | changes, self._others)


class LazyDict:
    """A dictionary to which functions add entries when it is first read."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data
        self.extras: list[tuple[Callable[..., dict[str, Any]], tuple[Any, ...]]] = []
        #: Of a launch: the kernel, the grid, and the arguments in the kernel's order.
        self.launch: tuple[CompiledKernel, tuple[int, int, int], list[Any]] | None = None

    def get(self) -> dict[str, Any]:
        """The dictionary with all entries."""
        while self.extras:
            function, arguments = self.extras.pop(0)
            self.data = self.data | function(*arguments)
        return self.data

    def add(self, func: Callable[..., dict[str, Any]], args: tuple[Any, ...]) -> None:
        """Has ``get`` add what ``func(*args)`` returns."""
        self.extras.append((func, args))


class CompiledKernel:
    """A kernel for one combination of argument types and constants.

    ``asm`` has its text at each stage ("ttir", "ttm", "msl", "metal"), ``metadata`` its launch contract and options.
    ``kernel[grid](*arguments)`` launches it with all arguments of the Python function, or all but the constants.
    """

    # What belongs to this process is no part of __dict__, which programs copy and pickle.
    __slots__ = ("__dict__", "__weakref__", "_function", "_native", "_run")

    def __init__(
        self,
        *,
        src: Any,
        hash: str,
        asm: Mapping[str, str],
        contract: str,
        metadata: KernelMetadata,
        packed_metadata: tuple[Any, ...],
        signature: dict[str, str],
        constants: dict[str, Any],
        aligned: list[str],
        name: str,
        device: str = "host",
        native: Any = None,
        metadata_group: dict[str, str] | None = None,
    ) -> None:
        """``contract`` is the launch contract as JSON. ``aligned`` has the arguments that are multiples of 16,
        ``device`` is the name of the device that the kernel is for."""
        self.src = src
        self.hash = hash
        self.asm = asm
        self.contract = contract
        self.metadata = metadata
        self.packed_metadata = packed_metadata
        self.signature = signature
        self.constants = constants
        self.aligned = aligned
        self.name = name
        self.device = device
        self.metadata_group = metadata_group or {}
        self.n_regs, self.n_spills = NOMINAL_REGISTERS, 0
        self._is_loaded = False
        self._native = native

    def __repr__(self) -> str:
        types = ", ".join(f"{name}: {type}" for name, type in self.signature.items())
        return f"CompiledKernel({self.name}({types}), num_warps={self.metadata.num_warps})"

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_is_loaded": False}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    @property
    def native(self) -> _native.Kernel:
        """The kernel as the native launcher takes it."""
        found = getattr(self, "_native", None)
        if found is None:
            found = self._native = _native.Kernel(self.asm["metal"], self.contract, self.aligned)
        return found

    @native.setter
    def native(self, kernel: _native.Kernel) -> None:
        self._native = kernel
        self._function = None

    @property
    def kernel(self) -> bytes:
        """What a device loads, as JSON: the Metal text, its launch contract, and the Triton IR."""
        return json.dumps(
            {
                "ttir": self.asm["ttir"],
                "metal": self.asm["metal"],
                "metadata": self.contract,
                "options": self.asm.options if isinstance(self.asm, Stages) else (4, 2, "", ""),
            }
        ).encode()

    @property
    def function(self) -> Any:
        """The loaded kernel, which the driver's launcher takes."""
        found = getattr(self, "_function", None)
        if found is None:
            found = self._function = driver.active.utils.load_binary(
                self.name, self.kernel, self.metadata.shared, driver.active.get_current_device()
            )[1]
        return found

    @property
    def module(self) -> Any:
        """The loaded kernel, or None before it is loaded."""
        return self.function if self.__dict__.get("_is_loaded") else None

    @property
    def n_max_threads(self) -> int:
        """The most threads of a threadgroup."""
        device = driver.active.get_current_device()
        return driver.active.utils.get_device_properties(device)["max_threads_per_block"]

    def _init_handles(self) -> None:
        """Loads the kernel, and tells the hooks."""
        if self.__dict__.get("_is_loaded"):
            return
        runtime = knobs.runtime
        self._tell(runtime.kernel_load_start_hook, None, None)
        self._is_loaded = True
        if _is_heard(runtime.kernel_load_end_hook):
            self._tell(runtime.kernel_load_end_hook, self.function, self.function)

    def _tell(self, hook: Any, module: Any, function: Any) -> None:
        if hook is not None:
            hook(module, function, self.name, self.metadata_group, self.hash)

    def __del__(self) -> None:
        if self.__dict__.get("_is_loaded") and knobs is not None:
            hook = knobs.runtime.kernel_unload_hook
            if _is_heard(hook):
                self._tell(hook, self.function, self.function)
        self._is_loaded = False

    @property
    def run(self) -> Callable[..., None]:
        """The driver's launcher of this kernel: (grid_x, grid_y, grid_z, stream, function, packed_metadata,
        launch_metadata, enter_hook, exit_hook, *arguments).
        """
        found = getattr(self, "_run", None)
        if found is None:
            self._init_handles()
            found = self._run = driver.active.launcher_cls(self.src, self.metadata)
        return found

    def launch_metadata(self, grid: tuple[int, ...], stream: Any, *args: Any) -> LazyDict | None:
        """What hooks are told of a launch; None if there is no hook."""
        hook = knobs.runtime.launch_enter_hook
        if not _is_heard(hook):
            return None
        function = self.src.fn if isinstance(self.src, ASTSource) else None
        names = function.arg_names if function is not None else ()
        return self.described(grid, stream, dict(zip(names, args, strict=False)))

    def described(self, grid: tuple[int, ...], stream: Any, values: dict[str, Any]) -> LazyDict:
        """What hooks are told of a launch with these arguments by name."""
        self._init_handles()
        result = LazyDict({"name": self.name, "function": self.function, "stream": stream})
        own = getattr(getattr(self.src, "fn", None), "launch_metadata", None)
        if own is not None:
            result.add(own, (grid, self.metadata, values))
        return result

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        """``kernel[grid](*arguments)`` launches the kernel."""
        sizes = (*grid, 1, 1)[:3]

        def launch(*args: Any, stream: Any = None) -> None:
            active = driver.active
            if stream is None:
                stream = active.get_current_stream(active.get_current_device())
            self.run(
                *sizes,
                stream,
                self.function,
                self.packed_metadata,
                self.launch_metadata(tuple(grid), stream, *args),
                knobs.runtime.launch_enter_hook,
                knobs.runtime.launch_exit_hook,
                *args,
            )

        return launch
