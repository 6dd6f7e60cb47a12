"""Specialisation, compilation and options: everything between a @jit function and the device."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from . import _native, cache, devices, knobs, traced
from ._native import dtype
from .backends.compiler import target_of
from .backends.metal.options import OTHERS, read_options
from .codegen import CodegenOptions, Memory, RuntimeLeaf, generate_module
from .compilation import Job, build, compile_module, key_of
from .compiled import CompiledKernel
from .config import kernel_config
from .errors import CompilationError, LaunchTypeError, LaunchValueError
from .frames import with_short_traceback
from .functions import KernelFunction, Param
from .reads import Reads
from .signatures import type_of
from .specialization import Specialization, plain
from .tuples import rebuild_tuple


@dataclass
class LaunchRecord:
    """The counters of one launch; none of one that was not counted."""

    kernel: CompiledKernel
    counters: dict[str, int]


@dataclass
class LaunchLog:
    """The launches under one ``launch_options(count=True)``."""

    launches: list[LaunchRecord] = field(default_factory=list)

    @property
    def counters(self) -> dict[str, int]:
        """The counters of the latest launch."""
        return self.launches[-1].counters if self.launches else {}


# A NaN may be meant, and so may two stores of one value. Which buffers are outputs is not known of a launch.
_ALL_CHECKS = tuple(
    name for name in _native.check_names if name not in ("nans", "outputs", "same-values")
)


_BOUNDS = 1 << _native.check_names.index("bounds")


def _check_bits(check: bool | str | Sequence[str] | None) -> tuple[int, bool]:
    """The bits of the checks, and whether the launch is portable."""
    if check is None or check is False:
        return 0, False
    if check is True:
        check = "all"
    if not isinstance(check, Iterable) or isinstance(check, Mapping):
        raise LaunchTypeError(f"check takes True, a name or several names of checks, not {check!r}")
    names = [check] if isinstance(check, str) else list(check)
    names = [
        part for name in names for part in (name.split(",") if isinstance(name, str) else [name])
    ]
    if names == ["portable"]:
        return 0, True
    bits = 0
    for name in names:
        if name == "portable":
            raise LaunchValueError('check="portable" cannot be combined with other checks')
        if name != "all" and name not in _native.check_names:
            known = ", ".join((*_native.check_names, "all", "portable"))
            raise LaunchValueError(f"there is no check {name!r}; the checks are {known}")
        if name == "outputs":
            raise LaunchValueError(
                'check="outputs" needs the names of the outputs, which a launch does not have: '
                "pipelines of triton_metal_host take them, and so does metal-run --whole"
            )
        for one in _ALL_CHECKS if name == "all" else (name,):
            bits |= 1 << _native.check_names.index(one)
    return bits, False


def _seed(name: str, value: int | None) -> None:
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise LaunchTypeError(f"{name} must be an integer seed, not {value!r}")
    if value is not None and not 0 <= value < 1 << 64:
        raise LaunchValueError(f"{name} must be a seed from 0 to 2^64 - 1, not {value}")


@dataclass
class _Block:
    """A block with options. One that is ``apart`` hides its launches from the blocks around it. A ``lenient`` one counts what can be
    counted.
    """

    log: LaunchLog
    counts: bool
    apart: bool
    checks: int
    max_steps: int
    lenient: bool


class _Blocks(threading.local):
    """The blocks that this thread is in, the outermost first."""

    def __init__(self) -> None:
        self.open: list[_Block] = []

    def reached(self) -> Iterator[_Block]:
        """The blocks that a launch belongs to, the innermost first."""
        for block in reversed(self.open):
            yield block
            if block.apart:
                return


_blocks = _Blocks()


@contextmanager
def launch_options(
    check: bool | str | Sequence[str] | None = None,
    count: bool = False,
    schedule: int | None = None,
    seed: int | None = None,
    max_steps: int | None = None,
) -> Iterator[LaunchLog]:
    """Launches in this block run with checks, with counters, or in a shuffled order.

    ``check="bounds"`` stops at the first out-of-bounds access. Further checks are ``"races"``, ``"initialized"``,
    ``"divergence"``, ``"arithmetic"``, ``"nans"`` and ``"steps"`` (``max_steps`` iterations of loops for a SIMD-group);
    several are given as a list, or as ``"all"`` or True, which leave out NaNs. ``"same-values"`` is ``"races"``
    that also reports two threads that store the same value to one place. A launch that fails a check leaves its arrays
    as they were. ``check="portable"`` checks bounds, too, answers what Metal
    does not promise with the worst that it allows, and reports results that depend on it; ``seed`` draws its choices.
    ``count`` fills the log that the block receives, with the launches of blocks inside of it, too, whatever options these have. ``schedule`` is the
    seed of an order of threads and threadgroups.
    """
    bits, is_portable = _check_bits(check)
    _seed("schedule", schedule)
    _seed("seed", seed)
    if max_steps is not None and (isinstance(max_steps, bool) or not isinstance(max_steps, int)):
        raise LaunchTypeError(f"max_steps must be an integer, not {max_steps!r}")
    if max_steps is not None and not (
        0 < max_steps < 1 << 64 and bits >> _native.check_names.index("steps") & 1
    ):
        raise LaunchValueError('max_steps is a positive number for check="steps" or check="all"')
    if seed is not None and not is_portable:
        raise LaunchValueError(
            'seed draws the choices of check="portable"; add that, or use schedule'
        )
    portable = (seed or 0) if is_portable else None
    with _in_block(bits, max_steps or 0, portable, schedule, bool(count)) as log:
        yield log


def has_checks() -> bool:
    """Whether launches in this thread are checked."""
    return bool(_blocks.open) and bool(_blocks.open[-1].checks)


@contextmanager
def counted(apart: bool = False, checked: bool = True) -> Iterator[LaunchLog]:
    """Counts launches, with the checks of the block around this one unless ``checked`` is false.

    Those that are ``apart`` are no launches of the program's: no block around this one has them in its log. The arithmetic of checks is
    in the optimised counts.
    """
    around = _blocks.open[-1] if _blocks.open and checked else None
    checks, max_steps = (around.checks, around.max_steps) if around else (0, 0)
    with _in_block(checks, max_steps, None, None, True, apart, lenient=True) as log:
        yield log


@contextmanager
def _in_block(
    checks: int,
    max_steps: int,
    portable: int | None,
    schedule: int | None,
    counts: bool,
    apart: bool = False,
    lenient: bool = False,
) -> Iterator[LaunchLog]:
    # A portable launch checks bounds.
    held = checks if portable is None else _BOUNDS
    block = _Block(LaunchLog(), counts, apart, held, max_steps, lenient)

    def record(kernel: CompiledKernel, counters: dict[str, int]) -> None:
        launch = LaunchRecord(kernel, counters)
        for reached in _blocks.reached():
            if reached.counts:
                reached.log.launches.append(launch)

    _blocks.open.append(block)
    counted = any(reached.counts for reached in _blocks.reached())
    _native.push_launch_options(checks, max_steps, portable, counted, schedule, record)
    try:
        yield block.log
    finally:
        _native.pop_launch_options()
        _blocks.open.pop()


def leaves_out(kernel: CompiledKernel) -> bool:
    """Whether a launch in a function that MLX traces may go without the options of its blocks: there are no values to count with.

    The log of lenient blocks has it without counters.
    """
    if not all(block.lenient and not block.checks for block in _blocks.open):
        return False
    for block in _blocks.reached():
        block.log.launches.append(LaunchRecord(kernel, {}))
    return True


traced.askers.append(leaves_out)


class Searches(threading.local):
    """How many searches for configurations this thread is in. Their launches are no launches of the program's."""

    depth = 0


searches = Searches()


class CompileClock(threading.local):
    """The seconds that this thread has spent on compiling kernels."""

    seconds = 0.0


compile_clock = CompileClock()


def clocked(function: Callable[..., CompiledKernel]) -> Callable[..., CompiledKernel]:
    """Adds what a function takes to the clock."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> CompiledKernel:
        start = time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            compile_clock.seconds += time.perf_counter() - start

    return call


def mock(value: Any) -> Any:
    """Turns a dtype (of this language, NumPy, torch or MLX) into a stand-in for an array; returns anything else
    unchanged.
    """
    if isinstance(value, dtype):
        return _native.MockArray(value.name)
    if isinstance(value, tuple):
        return rebuild_tuple(type(value), map(mock, value))
    module = type(value).__module__.partition(".")[0]
    if module in ("torch", "numpy", "mlx") and "dtype" in type(value).__name__.lower():
        name = str(value).removeprefix("torch.").removeprefix("mlx.core.")
        return _native.MockArray({"bool": "int1"}.get(name) or dtype(name).name)
    return value


class Launcher:
    """Compiles a @jit function for its arguments, and launches it."""

    def __init__(self, function: KernelFunction) -> None:
        self.function = function
        self._lock = threading.RLock()
        self._kernels: dict[str, tuple[dict[str, str], _native.Kernel]] = {}
        #: Functions that are called with the arguments of a launch, before it.
        self.before = self.hooks()
        self.native = _native.Launcher(function.name, self, function.function)
        self.at = self.native.at

    def hooks(self) -> list[Any]:
        """The functions that are called before launches."""
        return []

    def forget(self) -> None:
        """Has all kernels compiled again when they are needed."""
        _native.configuration_changed()

    def parameters(self) -> list[tuple[Any, ...]]:
        """The parameters for the native launcher, which asks again when the function changes."""
        return [
            (
                param.name,
                param.has_default,
                param.default if param.has_default else None,
                param.is_constexpr,
                param.is_const,
                param.specialize,
                param.specialize_alignment,
                param.annotation,
                param.is_variadic,
            )
            for param in self.params()
        ]

    def params(self) -> Sequence[Param]:
        """The parameters of a launch."""
        return self.function.params

    def gathered(self, values: dict[str, Any]) -> dict[str, Any]:
        """The values of a launch by the function's parameters, where one takes several."""
        return values

    def grouped(self, values: dict[str, Any]) -> dict[str, Any]:
        """What the function's parameters are in the kernel, from the values of a launch."""
        return values

    def takes_option(self, name: str, value: Any) -> bool:
        """Whether this keyword of a launch is an option of Triton's. The native launcher asks."""
        return name in OTHERS

    def shows_frames_of(self, error: BaseException) -> bool:
        """Whether the traceback of an error of `compile` shows this package's frames. The native launcher asks."""
        hidden = isinstance(error, CompilationError)
        return not hidden or bool(knobs.compilation.front_end_debugging)

    def call_before(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Calls the functions that come before a launch. The native launcher does, if there are any."""
        for hook in list(self.before):
            hook(*args, **kwargs)

    def enter_launch(
        self, kernel: CompiledKernel, grid: tuple[int, int, int], values: list[Any]
    ) -> Any:
        """Tells the hooks of a launch. The native launcher calls it, if there are any."""
        names = [param.name for param in self.params()]
        given = self.gathered(dict(zip(names, values, strict=True)))
        told = kernel.described(grid, 0, given)
        by_name = dict(zip(names, values, strict=True))
        told.launch = kernel, grid, [by_name[name] for name in kernel.signature]
        if knobs.runtime.launch_enter_hook is not None:
            knobs.runtime.launch_enter_hook(told)
        return told

    def exit_launch(self, told: Any) -> None:
        """Tells the hooks that the launch has been made."""
        if knobs.runtime.launch_exit_hook is not None:
            knobs.runtime.launch_exit_hook(told)

    def warmup(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> CompiledKernel:
        names = [param.name for param in self.function.params if param.is_constexpr]
        positions = {param.index for param in self.function.params if param.is_constexpr}
        mocked = [value if index in positions else mock(value) for index, value in enumerate(args)]
        keywords = {name: value if name in names else mock(value) for name, value in kwargs.items()}
        return self.native.warmup(*mocked, **keywords)

    @clocked
    def compile(
        self,
        arguments: list[tuple[str, Any, int]],
        num_warps: int,  # 0 where the launch names none
        num_stages: int,
        device: str = "host",
        sharing: Sequence[tuple[int, int]] = (),
        objects: Sequence[Any] = (),
        read: list[Any] | None = None,
        debug: bool | None = None,
        sanitize_overflow: bool | None = None,
        others: Mapping[str, Any] | None = None,
        is_warmup: bool = False,
    ) -> CompiledKernel | None:
        """The kernel for these arguments. The native launcher calls it if it has none.

        ``sharing`` has a pair for each parameter if arrays overlap: a number that overlapping arrays have in common,
        and the position of an earlier parameter that is the same array, or -1. ``objects`` are the constants, and
        parts of constants, that the native launcher's key does not distinguish. ``read`` receives what the kernel
        depends on besides the key. ``debug`` and ``sanitize_overflow`` are the launch's, or None. ``others`` are other
        options of Triton's. The result is None if ``knobs.runtime.jit_cache_hook`` declines the kernel.
        """
        function, params = self.function, self.params()
        config = kernel_config()
        options = read_options(
            {
                **(others or {}),
                **config.threads(num_warps, num_stages, function.module),
                "debug": bool(function.debug if debug is None else debug),
                "sanitize_overflow": sanitize_overflow is not False,
            },
            device if device in ("host", "mlx") else "apple",
        )
        spec = devices.target_spec(device)
        values: dict[str, Any] = {}
        signature: dict[str, str] = {}
        constants: dict[str, Any] = {}
        divisibility: dict[str, int] = {}
        for param, (kind, payload, multiple) in zip(params, arguments, strict=True):
            name = param.name
            if kind == "constexpr":
                values[name] = constants[name] = plain(payload)
                continue
            type = type_of(payload)
            if kind == "array":
                type = dtype.pointer(type, const=param.is_const)
                wanted = param.annotation.removeprefix("*")
                if wanted and type.element_ty != type_of(wanted):
                    raise LaunchTypeError(
                        f"{function.name}: argument {name} is an array of "
                        f"{type.element_ty.name}, but is annotated as {param.annotation}"
                    )
            values[name] = RuntimeLeaf(type)
            signature[name] = type.name
            if multiple:
                divisibility[name] = multiple
        memory = {
            param.name: Memory(number, params[same].name if same >= 0 else "")
            for param, (number, same) in zip(params, sharing, strict=False)
            if number
        }
        cache.configure_host_device()
        walk = CodegenOptions(debug=options.debug, sanitize_overflow=options.sanitize_overflow)
        reads = Reads(objects)

        def specialization() -> Specialization:
            return Specialization.of(
                params, arguments, values, divisibility, self.gathered, options, memory, others
            )

        special = specialization()
        with self._lock:
            module = with_short_traceback(
                generate_module,
                function,
                self.grouped(values),
                divisibility,
                walk,
                memory,
                reads,
                special.symbol(function),
            )
        # Stock Triton tells multiples of 16 alone, so that fewer kernels are compiled. Where only the values of
        # numbers matter, so does this.
        idle = module.drop_idle_divisibility(16)
        if idle:
            divisibility = {name: known for name, known in divisibility.items() if name not in idle}
            special = specialization()
        job = Job(
            src=special.source(function),
            name=special.symbol(function),
            options=options,
            spec=spec,
            target=target_of(options.arch or "host"),
            signature=signature,
            constants=constants,
            aligned=[name for name, multiple in divisibility.items() if multiple > 0],
            device=device,
        )
        if read is not None:
            read.extend(reads.finished())
        key = key_of(job, inspected(module.str()))
        kernels = kernels_of(function)
        held = kernels.get(special.key)
        is_new = not isinstance(held, CompiledKernel) or held.hash != key
        if is_new and special.tell(knobs.runtime.jit_cache_hook, function, job.target, is_warmup):
            return None
        kernel = build(
            job, key, functools.partial(compile_module, module), known=self._kernels.get(key)
        )
        self._kernels[key] = (
            {name: kernel.asm[name] for name in ("ttir", "metal")} | {"metadata": kernel.contract},
            kernel.native,
        )
        kernels[special.key] = kernel
        if is_new:
            special.tell(knobs.runtime.jit_post_compile_hook, function, job.target, is_warmup)
        return kernel


def inspected(text: str) -> str:
    """The text of a module, with what the hook that inspects stages wants in the key."""
    hook = knobs.runtime.add_stages_inspection_hook
    return text if hook is None else f"{text}{hook()[0]}"


def kernels_of(function: KernelFunction) -> dict[str, Any]:
    """The kernels of a function by their specialisation."""
    return getattr(function, "kernels", {})
