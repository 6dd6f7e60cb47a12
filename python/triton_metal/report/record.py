"""What launches do, access by access: each runs once more on the host device, on copies of its arrays."""

from __future__ import annotations

import contextlib
import io
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .. import cache, knobs, messages
from ..array_copies import ArrayCopies, address_of, extent_of, may_change
from ..cost.measure import work_of
from ..cost.model import Work
from ..errors import DeviceAssertionError
from ..launcher import searches
from ..traced import call_listeners

if TYPE_CHECKING:
    from triton_metal_host import Trace

#: The executions of an access that are kept for each SIMD-group of a program that is traced.
EXECUTIONS = 8


@dataclass(frozen=True)
class BoundArray:
    """An array of a launch: its buffer, its name in the kernel, and its size in bytes."""

    slot: int
    name: str
    dtype: str
    nbytes: int
    reads: bool
    writes: bool


@dataclass(frozen=True)
class Recorded:
    """A launch with everything that it did.

    ``lines`` has the counters of each line of the Metal text, from 1 on, and ``shares`` the part (0 to 1) of a simple
    model's time. ``work`` is what the cost model takes.
    """

    kernel: Any
    grid: tuple[int, int, int]
    arrays: tuple[BoundArray, ...]
    counters: dict[str, int]
    lines: dict[int, dict[str, int]]
    shares: dict[int, float]
    trace: Trace
    work: Work


@dataclass
class Recording:
    """The launches of a block, one for each compiled kernel; complete when the block has ended.

    ``launches`` counts the launches of each kernel, in the order of ``recorded``. ``left_out`` launches were in functions that MLX
    traces, without values, and ``elsewhere`` launches in other threads.
    """

    recorded: list[Recorded] = field(default_factory=list)
    launches: list[int] = field(default_factory=list)
    left_out: int = 0
    elsewhere: int = 0
    empty: int = 0
    last: str = ""


@contextmanager
def recording() -> Iterator[Recording]:
    """Records the first launch of each compiled kernel in this thread. Launches of a search for configurations are left out."""
    result = Recording()
    places: dict[str, int] = {}
    thread = threading.get_ident()

    def hook(told: Any) -> None:
        if told.launch is not None:
            add(*told.launch)

    def add(kernel: Any, grid: tuple[int, int, int], arguments: Sequence[Any]) -> None:
        if threading.get_ident() != thread:
            result.elsewhere += 1
            return
        if searches.depth:
            return
        from ..mlx.in_place import is_traced

        if is_traced(arguments):
            result.left_out += 1
            return
        if _is_refused(kernel, arguments):
            return
        result.last = kernel.name
        if 0 in grid:
            result.empty += 1
            return
        if kernel.hash in places:
            result.launches[places[kernel.hash]] += 1
            return
        places[kernel.hash] = len(result.recorded)
        result.recorded.append(record(kernel, grid, arguments))
        result.launches.append(1)

    enter = knobs.runtime.launch_enter_hook
    chain = enter if isinstance(enter, knobs.HookChain) else knobs.HookChain()
    if chain is not enter:
        if enter is not None:
            chain.add(enter)
        knobs.runtime.launch_enter_hook = chain
    chain.add(hook)
    call_listeners.append(add)
    try:
        yield result
    finally:
        call_listeners.remove(add)
        chain.remove(hook)
        if chain is not enter:
            knobs.runtime.launch_enter_hook = enter


def _is_refused(kernel: Any, arguments: Sequence[Any]) -> bool:
    """Whether the launch raises, as the kernel writes an array that is read-only."""
    return any(
        entry["kind"] == "buffer" and (entry["writes"] or entry["atomic"]) and not may_change(value)
        for entry, value in zip(kernel.metadata.args, arguments, strict=False)
    )


def traced_programs(grid: tuple[int, int, int]) -> list[tuple[int, int, int]]:
    """The programs whose accesses are kept: the first one, one in the middle, and those at the ends of the grid."""
    x, y, z = grid
    wanted = [(0, 0, 0), (x // 2, y // 2, z // 2), (x - 1, 0, 0), (x - 1, y - 1, z - 1)]
    return list(dict.fromkeys(wanted))


def record(kernel: Any, grid: tuple[int, int, int], arguments: Sequence[Any]) -> Recorded:
    """Runs a launch on copies of its arrays, counts it, and keeps the addresses of some programs.

    ``arguments`` are those of the compiled kernel's text, in its order.
    """
    copies = ArrayCopies(arguments)
    copied = [copies.of(value) for value in arguments]
    words = kernel.native.pack([*copied, *[0] * len(messages.roles(kernel))])
    runs: list[tuple[Any, list[Any]]] = []

    def run(compiled: Any, sizes: Any, given: list[Any], packed: bytes) -> None:
        runs.append((_run(compiled, sizes, given, packed), given))

    if messages.sites_of(kernel):
        # The launch itself prints and reports what fails.
        with (
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.suppress(DeviceAssertionError),
        ):
            messages.launch(run, kernel, grid, copied, words)
    else:
        run(kernel, grid, copied, words)
    done, given = runs[0]
    arrays = tuple(_arrays(kernel, given))
    profile = done.profile
    lines = [line for line in profile.lines if line.line and line.file == _FILE]
    return Recorded(
        kernel,
        grid,
        arrays,
        done.counters,
        {line.line: line.counters for line in lines},
        {line.line: line.modelled_share for line in lines},
        done.trace,
        work_of(
            kernel,
            done.counters,
            grid,
            read_bytes=sum(array.nbytes for array in arrays if array.reads),
            written_bytes=sum(array.nbytes for array in arrays if array.writes),
        ),
    )


_FILE = "kernel.metal"


def _run(kernel: Any, grid: tuple[int, int, int], arguments: list[Any], words: bytes) -> Any:
    """Runs a packed launch with counters and a trace."""
    import numpy as np
    import triton_metal_host as metal

    cache.configure_host_device()
    library = metal.Device().library(kernel.asm["metal"], file_name=_FILE)
    pipeline = metal.Device().pipeline(library.function(kernel.metadata.name), counters=True)
    bound: dict[int | str, Any] = {}
    for argument, value in zip(kernel.metadata.args, arguments, strict=True):
        if argument["kind"] == "buffer":
            bound[argument["slot"]] = _buffer(value)
    if kernel.metadata.scalar_buffer >= 0:
        bound[kernel.metadata.scalar_buffer] = metal.Buffer(
            np.frombuffer(bytearray(words or bytes(4)), np.uint8)
        )
    declared = {parameter.index for parameter in pipeline.function.info.buffers}
    try:
        return pipeline(
            threadgroups=grid,
            threads_per_threadgroup=kernel.metadata.threads,
            arguments={slot: buffer for slot, buffer in bound.items() if slot in declared},
            trace=traced_programs(grid),
            trace_executions=EXECUTIONS,
        )
    except metal.LaunchError:
        # A launch of Triton's kind names the line in Python.
        kernel.native.launch(grid, arguments, words)
        raise


def _buffer(value: Any) -> Any:
    """The memory of an array from its first element on."""
    import ctypes

    import numpy as np
    import triton_metal_host as metal

    if isinstance(value, (bytearray, memoryview)):
        return metal.Buffer(value)
    extent = extent_of(value)
    if extent is None:
        return metal.Buffer(16)  # None stands for no array
    size = extent.end - address_of(value)
    if size <= 0:
        return metal.Buffer(16)
    memory = (ctypes.c_uint8 * size).from_address(address_of(value))
    memory._array = value  # type: ignore[attr-defined]  # keeps it
    return metal.Buffer(np.frombuffer(memory, np.uint8))


def _arrays(kernel: Any, arguments: list[Any]) -> Iterator[BoundArray]:
    for argument, value in zip(kernel.metadata.args, arguments, strict=True):
        if argument["kind"] != "buffer" or "messages" in argument:
            continue
        nbytes = getattr(value, "nbytes", None)
        yield BoundArray(
            argument["slot"],
            argument["name"],
            argument["type"].lstrip("*"),
            int(nbytes if nbytes is not None else len(value or b"")),
            bool(argument["reads"]),
            bool(argument["writes"]),
        )
