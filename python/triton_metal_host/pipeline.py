"""Pipelines, and how they are launched: at once, or in order on a queue."""

from __future__ import annotations

import contextlib
import functools
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from . import _engine
from .arguments import convert
from .buffer import Buffer
from .library import Function
from .reflection import FunctionInfo
from .run import Run
from .trace import positions_of

# A grid or a group: one to three extents.
Extent = int | tuple[int, ...] | list[int]

_SIMD_WIDTH = 32


class Queue:
    """Runs what is submitted to it one after the other, on a thread of its own."""

    __slots__ = ("__weakref__", "_handle")

    def __init__(self) -> None:
        self._handle = _engine.queue()

    def command_buffer(self) -> CommandBuffer:
        return CommandBuffer(self)

    def wait(self) -> None:
        """Waits until everything that was submitted has run. CTRL-C ends the wait."""
        while not _engine.wait_idle(self._handle, 0.02):
            pass


class CommandBuffer:
    """Dispatches that run one after the other; if one fails, those after it do not run.

    >>> commands = device.command_buffer()                              # doctest: +SKIP
    >>> commands.dispatch(scale, x, 2.0, threads=x.size)                # doctest: +SKIP
    >>> commands.dispatch(add, x, y, out, threads=x.size)               # doctest: +SKIP
    >>> commands.commit().wait()                                        # doctest: +SKIP
    """

    __slots__ = ("_committed", "_counts", "_handle")

    def __init__(self, queue: Queue) -> None:
        self._handle = _engine.commands(queue._handle)
        self._committed = False
        self._counts = False

    def dispatch(self, pipeline: Pipeline, *arguments: Any, **options: Any) -> None:
        """Adds a launch. It takes what calling the pipeline takes, and reads its arguments now."""
        if not isinstance(pipeline, Pipeline):
            raise TypeError(
                f"dispatch takes a Pipeline, which device.pipeline makes, not {pipeline!r}"
            )
        if self._committed:
            raise RuntimeError("the command buffer has been committed; make another one")
        _engine.add(self._handle, *pipeline._launch(arguments, **options))
        self._counts |= pipeline.counters

    def commit(self, on_completed: Callable[[Run], object] | None = None) -> Run:
        """Submits the dispatches. ``on_completed(run)`` is called on the queue's thread when they have run or failed."""
        if on_completed is not None and not callable(on_completed):
            raise TypeError(f"on_completed takes a function of a Run, not {on_completed!r}")
        if self._committed:
            raise RuntimeError("the command buffer has been committed already")
        self._committed = True
        run = Run._submitted(self._handle, self._counts)
        _engine.commit(
            self._handle, None if on_completed is None else functools.partial(on_completed, run)
        )
        return run


class Pipeline:
    """A function that is compiled and ready to run, like an MTLComputePipelineState.

    Calling it launches it and waits; `submit` returns at once. Both take the kernel's buffers in the order of their
    declaration, or by name:

    - for ``device T *`` and ``constant T *`` a contiguous NumPy array, a CPU tensor (DLPack) or a bytes-like object,
      used in place. Its dtype must be the one that Metal's type has: float32 for ``float`` and ``float4``, uint16 or
      ml_dtypes.bfloat16 for ``bfloat``, a structured dtype of the same size for a structure. Memory that the kernel
      writes must be writable. A `Buffer` is bound whatever it holds.
    - for ``constant T &`` also a number, or a tuple for a vector, packed as T.
    - None for a parameter that a function constant removes.

    and these options:

    threads, threadgroups : the grid, one to three numbers, either in threads (groups at its edges are cut) or in
        threadgroups.
    threads_per_threadgroup : one to three numbers, at most `max_total_threads_per_threadgroup` in all. If it is not
        given, a threadgroup is one SIMD-group of 32 threads, or the grid if that is smaller.
    threadgroup_memory : the bytes of each ``threadgroup`` argument, by index or name.
    seed : draws the order of threadgroups and SIMD-groups, to look for races, or the choices of a portable pipeline.
    arguments : buffers by name or index, for kernels whose parameters are named like an option.
    resources : `Buffer`s that the kernel reaches by addresses in its buffers (`Buffer.gpu_address`), like useResource.
        Checks allow no other memory; without checks, the kernel may not need them.

    A launch raises TypeError or ValueError for wrong arguments and `LaunchError` for what the device refuses or a check
    finds. CTRL-C ends it.
    """

    def __init__(
        self,
        function: Function,
        queue: Queue,
        checks: str,
        max_steps: int,
        whole_buffers: int,
        portable: bool,
        counters: bool,
    ) -> None:
        info: FunctionInfo = function.info
        self.function = function
        self.counters = counters
        self._queue = queue
        self._buffers = info.buffers
        self._all_exist = all(parameter.exists for parameter in info.buffers)
        self._handle, self._static_memory, self._written = _engine.pipeline(
            function._handle,
            checks,
            max_steps,
            whole_buffers,
            portable,
            counters,
            info.buffers,
            functools.partial(convert, info.name),
        )

    @property
    def name(self) -> str:
        return self.function.name

    @property
    def thread_execution_width(self) -> int:
        """The threads of a SIMD-group."""
        return _SIMD_WIDTH

    @property
    def max_total_threads_per_threadgroup(self) -> int:
        """The most threads that a threadgroup can have."""
        return self.function.info.max_total_threads_per_threadgroup

    @property
    def static_threadgroup_memory_length(self) -> int:
        """The bytes of threadgroup memory that the kernel's own variables take."""
        return self._static_memory

    @property
    def written_buffers(self) -> tuple[int, ...]:
        """The indices of the buffers that the kernel may write."""
        declared = {parameter.index for parameter in self._buffers}
        return tuple(index for index in sorted(declared) if self._written >> index & 1)

    def __call__(
        self,
        *arguments: Any,
        trace: Iterable[Extent] | None = None,
        trace_executions: int = 8,
        **options: Any,
    ) -> Run:
        """Runs the kernel to its end.

        ``trace`` has positions of threadgroups whose accesses to device memory `Run.trace` keeps: the first
        ``trace_executions`` of each place in the text and SIMD-group. The pipeline must count.
        """
        launched = self._launch(arguments, **options)
        traced = () if trace is None else positions_of(self.name, trace, trace_executions)
        return Run._completed(
            *_engine.launch(self._queue_of(options.get("queue"))._handle, *launched, *traced)
        )

    def submit(
        self,
        *arguments: Any,
        on_completed: Callable[[Run], object] | None = None,
        queue: Queue | None = None,
        **options: Any,
    ) -> Run:
        """Launches the kernel on the queue and returns. The arrays' memory is the kernel's until the run has ended."""
        commands = self._queue_of(queue).command_buffer()
        commands.dispatch(self, *arguments, **options)
        return commands.commit(on_completed)

    def _launch(
        self,
        given: tuple[Any, ...],
        *,
        threads: Extent | None = None,
        threadgroups: Extent | None = None,
        threads_per_threadgroup: Extent | None = None,
        threadgroup_memory: Mapping[int | str, int] | None = None,
        seed: int | None = None,
        arguments: Mapping[int | str, Any] | None = None,
        resources: Iterable[Buffer] = (),
        queue: Queue | None = None,
        **named: Any,
    ) -> tuple[Any, ...]:
        """What the engine takes of a launch, after its queue or command buffer."""
        if arguments is not None and not isinstance(arguments, Mapping):
            raise TypeError(
                f"{self.name}: arguments takes buffers by name or index, like {{'x': x}}, not {type(arguments).__name__}"
            )
        if named or arguments or len(given) != len(self._buffers):
            given = self._arrange(given, {**named, **(arguments or {})})
        if isinstance(resources, Buffer) or not isinstance(resources, Iterable):
            raise TypeError(
                f"{self.name}: resources takes a list of metal.Buffers, not {resources!r}"
            )
        if resources:
            given = (*given, *(self._resource(resource) for resource in resources))
        in_threads = threads is not None
        if in_threads == (threadgroups is not None):
            raise TypeError(f"{self.name}: give the grid as threads=... or as threadgroups=...")
        grid = threads if in_threads else threadgroups
        if threads_per_threadgroup is None:
            threads_per_threadgroup = _SIMD_WIDTH
            if in_threads:
                first = threads[0] if isinstance(threads, (tuple, list)) and threads else threads
                with contextlib.suppress(TypeError):  # the engine says what is wrong with it
                    threads_per_threadgroup = max(1, min(_SIMD_WIDTH, operator.index(first)))
        lengths = None if threadgroup_memory is None else self._lengths(threadgroup_memory)
        return (self._handle, given, grid, in_threads, threads_per_threadgroup, lengths, seed)

    def _queue_of(self, queue: Queue | None) -> Queue:
        if queue is None:
            return self._queue
        if not isinstance(queue, Queue):
            raise TypeError(f"{self.name}: queue takes what device.queue() returns, not {queue!r}")
        return queue

    def _resource(self, resource: Buffer) -> tuple[int, int, bool, Buffer]:
        if not isinstance(resource, Buffer):
            raise TypeError(
                f"{self.name}: resources takes metal.Buffers, not {type(resource).__name__}"
            )
        return resource.address, resource.nbytes, resource.writable, resource

    def _arrange(self, given: tuple[Any, ...], named: dict[Any, Any]) -> tuple[Any, ...]:
        """One argument for each buffer, of those given by position, name and index."""
        buffers = self._buffers
        if len(given) > len(buffers):
            raise TypeError(
                f"{self.name} takes {len(buffers)} buffers, but {len(given)} are given: {self.function.info}"
            )
        result: list[Any] = list(given) + [None] * (len(buffers) - len(given))
        for key, value in named.items():
            position = next(
                (
                    i
                    for i, p in enumerate(buffers)
                    if key == (p.name if isinstance(key, str) else p.index)
                ),
                None,
            )
            if position is None:
                raise TypeError(f"{self.name} has no buffer {key!r}: {self.function.info}")
            if position < len(given) or result[position] is not None:
                raise TypeError(f"{self.name}: '{buffers[position].name}' is given twice")
            result[position] = value
        missing = [
            p.name for p, value in zip(buffers, result, strict=True) if value is None and p.exists
        ]
        if missing:
            names = ", ".join(f"'{name}'" for name in missing)
            raise TypeError(
                f"{self.name}: {names} {'is' if len(missing) == 1 else 'are'} missing: {self.function.info}"
            )
        return tuple(result)

    def _lengths(self, memory: Mapping[int | str, int]) -> list[int | None]:
        if not isinstance(memory, Mapping):
            raise TypeError(
                f"{self.name}: threadgroup_memory takes lengths by index or name, like {{0: 1024}}, not {memory!r}"
            )
        known = {
            key: p.index
            for p in self.function.info.threadgroup_arguments
            for key in (p.name, p.index)
        }
        lengths: dict[int, int] = {}
        for key, length in memory.items():
            if key not in known:
                raise ValueError(
                    f"{self.name} has no threadgroup argument {key!r}: {self.function.info}"
                )
            try:
                lengths[known[key]] = operator.index(length)
            except TypeError:
                raise TypeError(
                    f"{self.name}: the length of threadgroup argument {key!r} is a number of bytes, not {length!r}"
                ) from None
            if not 0 <= length <= 2**31:
                raise ValueError(
                    f"{self.name}: the length of threadgroup argument {key!r} is {length} bytes; 0 to 32,768 are allowed"
                )
        return [lengths.get(index) for index in range(max(lengths, default=-1) + 1)]

    def __repr__(self) -> str:
        return f"<Pipeline {self.function.info}>"
