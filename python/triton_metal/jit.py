"""The decorator @jit, which turns a Python function into a kernel."""

from __future__ import annotations

import functools
import json
import threading
from collections.abc import Callable, Iterable
from typing import Any, overload

from . import knobs
from ._native import configuration_changed, dtype
from .compiler.compiler import ASTSource, CompiledKernel, compile, make_backend
from .constexpr import constexpr
from .descriptors import KernelLauncher
from .functions import KernelFunction
from .host_copies import host_copies
from .interface import KernelInterface
from .launcher import launch_options
from .runtime._async_compile import active_mode
from .runtime.driver import driver
from .specialization import FUNCTIONS, Specialization, decoded, expected_key, mangled, tuples


class _Kernels(dict[str, Any]):
    """The kernels of a function by their specialisation. Without them, launches compile again."""

    def clear(self) -> None:
        super().clear()
        configuration_changed()


class _DeviceCaches(dict[Any, Any]):
    """For each device what ``create_binder`` returns. There is one set of kernels for all."""

    def __init__(self, function: JITFunction) -> None:
        super().__init__()
        self._function = function

    def __missing__(self, device: Any) -> Any:
        self[device] = self._function.create_binder()
        return self[device]

    def clear(self) -> None:
        super().clear()
        self._function.kernels.clear()


class _KernelLauncher(KernelLauncher):
    """Launches a kernel that has hooks."""

    def hooks(self) -> list[Any]:
        return self.function.pre_run_hooks


class JITFunction(KernelFunction, KernelInterface):
    """A kernel, or a function that kernels call."""

    _launcher: KernelLauncher | None = None

    def __init__(
        self,
        fn: Callable[..., Any],
        version: Any = None,
        do_not_specialize: Iterable[int | str] | None = None,
        do_not_specialize_on_alignment: Iterable[int | str] | None = None,
        debug: bool | None = None,
        noinline: bool | None = None,
        repr: Callable[[Any], str] | None = None,
        launch_metadata: Callable[..., dict[str, Any]] | None = None,
    ) -> None:
        super().__init__(fn, do_not_specialize, do_not_specialize_on_alignment, debug, noinline)
        self.version = version
        self.module = fn.__module__
        self._repr = repr
        self.launch_metadata = launch_metadata
        self.kernel = None
        #: The compiled kernels by their specialisation.
        self.kernels = _Kernels()
        self.device_caches = _DeviceCaches(self)
        self._hooks: list[Callable[..., Any]] = []
        FUNCTIONS[f"{self.module}:{self.__qualname__}"] = self

    def __getstate__(self) -> dict[str, Any]:
        # What belongs to this process is made again in another.
        own = ("_launcher", "_lock", "_hash_lock", "_source", "_signature", "_state", "_code")
        state = {name: value for name, value in self.__dict__.items() if name not in own}
        dropped = (
            "kernels",
            "device_caches",
            "_hooks",
            "__wrapped__",
            "__globals__",
            "launch_metadata",
            "_repr",
        )
        for name in dropped:
            state.pop(name, None)
        if self.fn is not None:
            self._read()
        return state | {"_params": self._params}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = self._hash_lock = threading.RLock()
        self._state, self._code, self._repr, self.launch_metadata = (), None, None, None
        self._hooks = []
        self.__globals__ = getattr(self.fn, "__globals__", {})
        self.kernels, self.device_caches = _Kernels(), _DeviceCaches(self)

    @property
    def pre_run_hooks(self) -> list[Callable[..., Any]]:
        """Functions that are called with a launch's arguments, before it."""
        return self._hooks

    @pre_run_hooks.setter
    def pre_run_hooks(self, hooks: Iterable[Callable[..., Any]]) -> None:
        self._hooks[:] = hooks  # the launcher looks at this list

    def add_pre_run_hook(self, hook: Callable[..., Any]) -> None:
        """Has ``hook(*args, **kwargs)`` called with the arguments of each launch, before it."""
        if not callable(hook):
            raise TypeError(f"a hook is a function, not {hook!r}")
        self._hooks.append(hook)

    @property
    def launcher(self) -> Any:
        if self._launcher is None:
            with self._lock:
                if self._launcher is None:
                    self._launcher = _KernelLauncher(self)
        return self._launcher

    def repr(self, specialization: Any) -> str:
        """The kernel's name for a specialisation (``constants`` and ``signature``), as ``jit(repr=)`` gives it."""
        return self.full_name if self._repr is None else self._repr(specialization)

    def symbol(self, specialization: Any) -> str:
        """The kernel's name in its text."""
        if self._repr is None:
            return self.name
        name = self._repr(specialization)
        return "".join(c if c.isalnum() or c == "_" else "_" for c in name)

    def is_gluon(self) -> bool:
        return False

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        """``kernel[grid](...)`` launches the kernel over a grid of programs."""
        return self.launcher.at(grid)

    def run(self, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:
        """Launches the kernel over a grid, or compiles it only. Returns the compiled kernel."""
        if kwargs.get("num_ctas") == 1:
            del kwargs["num_ctas"]
        if warmup:
            return self.warmup(*args, grid=grid, **kwargs)
        return self.launcher.at(grid)(*args, **kwargs)

    def warmup(self, *args: Any, grid: Any = None, **kwargs: Any) -> Any:
        """Compiles for these arguments without a launch. Dtypes may replace arrays."""
        mode = active_mode.get()
        if mode is None:
            return self.launcher.warmup(args, kwargs)
        _, entries, options = self._bind(*args, **kwargs)
        key = expected_key(entries, options, self.debug, self.module)
        known = self.kernels.get(key)
        if known is not None:
            return known

        def drop(future: Any) -> None:
            # Where a kernel was compiled, it has taken the place of its promise.
            if self.kernels.get(key) is future:
                del self.kernels[key]

        future = mode.submit(
            (id(self), key),
            lambda: self.launcher.warmup(args, kwargs),
            lambda kernel: drop(future),
            drop,
        )
        self.kernels.setdefault(key, future)
        return future

    def create_binder(self) -> tuple[dict[str, Any], dict[Any, Any], Any, Any, Callable[..., Any]]:
        """The kernels by their specialisation, a dictionary for callers, the target, its backend, and the binder:
        a function of a launch's arguments that returns them by name, what they are specialised on, and the options.
        """
        target = driver.active.get_current_target()
        self.CompiledKernel, self.compile, self.ASTSource = CompiledKernel, compile, ASTSource
        return self.kernels, {}, target, make_backend(target), self._bind

    def _bind(
        self, *args: Any, **kwargs: Any
    ) -> tuple[dict[str, Any], list[tuple[Any, Any]], dict[str, Any]]:
        names = self.arg_names
        options = {name: value for name, value in kwargs.items() if name not in names}
        given = {name: value for name, value in kwargs.items() if name in names}
        bound = self.signature.bind(*args, **given)
        bound.apply_defaults()
        values = dict(bound.arguments)
        return values, [mangled(param, values[param.name]) for param in self.params], options

    def preload(self, specialization_data: str) -> CompiledKernel | None:
        """Compiles a specialisation that ``jit_cache_hook`` was told of, so that launches find it.

        The hooks of compilations are called as in a warm-up. The result is None if ``jit_cache_hook`` declines the kernel.
        Raises RuntimeError if it is one of another function or for another target.
        """
        data = json.loads(specialization_data)
        if data["name"] != self.full_name:
            raise RuntimeError(
                f"Specialization data is for {data['name']} but trying to preload for {self.full_name}"
            )
        target = driver.active.get_current_target()
        if vars(target) != data["target"]:
            raise RuntimeError(
                f"Specialization data is for {data['target']} but trying to preload for {target}"
            )
        keys, values = map(tuples, data["constant_keys"]), data["constant_vals"]
        constants = {
            path: decoded(value, dtype, constexpr) for path, value in zip(keys, values, strict=True)
        }
        attrs = dict(zip(map(tuples, data["attrs_keys"]), data["attrs_vals"], strict=True))
        signature = {name: tuples(type) for name, type in data["signature"].items()}
        options = {name: tuples(value) for name, value in data["options"].items()}
        chosen = make_backend(target).parse_options(options)
        special = Specialization([], signature, constants, attrs, chosen, known_key=data["key"])
        if special.tell(knobs.runtime.jit_cache_hook, self, target, is_warmup=True):
            return None
        kernel = compile(special.source(self), target=target, options=options)
        self.kernels[special.key] = kernel
        special.tell(knobs.runtime.jit_post_compile_hook, self, target, is_warmup=True)
        return kernel

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            f"Cannot call @triton.jit'd outside of the scope of a kernel: launch it as "
            f"{self.name}[grid](...), or call it from another kernel"
        )

    def __repr__(self) -> str:
        return f"JITFunction({self.module}:{self.__qualname__})"


class InterpretedFunction(JITFunction):
    """A kernel of a program that runs with TRITON_INTERPRET=1: it always runs on the host device, where every access and
    every ``tl.device_assert`` is checked. Tensors of a GPU are copied to the CPU's memory for a launch, and back.
    """

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        return functools.partial(self._interpret, grid)

    def run(self, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:
        if warmup:
            return super().run(*args, grid=grid, warmup=True, **kwargs)
        if kwargs.get("num_ctas") == 1:
            del kwargs["num_ctas"]
        return self._interpret(grid, *args, **kwargs)

    def _interpret(self, grid: Any, /, *args: Any, **kwargs: Any) -> Any:
        for option, value in (("debug", True), ("sanitize_overflow", False)):
            if option not in self.arg_names:
                kwargs.setdefault(option, value)
        with host_copies(args, kwargs) as (moved, named), launch_options(check="bounds"):
            return self.launcher.at(grid)(*moved, **named)


@overload
def jit(fn: Callable[..., Any]) -> JITFunction: ...


@overload
def jit(
    *,
    version: Any = ...,
    repr: Callable[[Any], str] | None = ...,
    launch_metadata: Callable[..., dict[str, Any]] | None = ...,
    do_not_specialize: Iterable[int | str] | None = ...,
    do_not_specialize_on_alignment: Iterable[int | str] | None = ...,
    debug: bool | None = ...,
    noinline: bool | None = ...,
) -> Callable[[Callable[..., Any]], JITFunction]: ...


def jit(fn: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Turns a Python function that is written in triton_metal.language into a kernel.

    ``do_not_specialize`` names parameters (or their positions) that are not specialised on the value 1 and on
    multiples: of 16, and of 8 and 4 for integers that addresses or masks depend on.
    ``do_not_specialize_on_alignment`` only disables the latter. ``debug`` turns assertions on,
    ``noinline`` keeps a function that kernels call apart. ``repr(specialization)`` gives the kernel's name, and
    ``launch_metadata(grid, metadata, arguments)`` what hooks of launches are told besides.

    While ``knobs.runtime.interpret`` is on (TRITON_INTERPRET=1), it makes an `InterpretedFunction`.
    """
    kind = InterpretedFunction if knobs.runtime.interpret else JITFunction
    if fn is None:
        return lambda function: kind(function, **options)
    return kind(fn, **options)
