"""What a program launched, compiled and moved: ``with triton_metal.profile() as p``."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from . import _native, files
from .errors import LaunchTypeError, LaunchValueError
from .words import number_of

#: Profiles that are being made, the outermost first. They share the native log.
_active: list[profile] = []
_lock = threading.RLock()

#: Devices whose launches have ended when they return.
_SYNCHRONOUS = ("host",)


@dataclass(frozen=True)
class Launch:
    """One launch. Times are in seconds, ``begin`` from the profile's start on.

    ``seconds`` is the time until the launch returned, and ``device_seconds`` that of its work on the device, None where
    the device does not say: launches on MLX's and PyTorch's streams return before their work has ended, and the first one on the host
    device compiles. ``bytes_read``
    and ``bytes_written`` are the sizes of the arrays that the kernel reads and writes. ``first`` says that the kernel was
    not launched before; the host device compiles its Metal text then.
    """

    kernel: str
    device: str
    grid: tuple[int, int, int]
    begin: float
    seconds: float
    device_seconds: float | None
    bytes_read: int
    bytes_written: int
    thread: int
    first: bool
    compiled: Any = field(repr=False, compare=False)


@dataclass(frozen=True)
class Compilation:
    """One kernel that was compiled, or found in the cache on disk (``cached``).

    ``walking`` is the walk over the kernel's Python, ``lowering`` Triton IR to Metal text, ``storing`` the cache on disk. Times
    are in seconds.
    """

    kernel: str
    begin: float
    walking: float
    lowering: float
    storing: float
    cached: bool
    thread: int

    @property
    def seconds(self) -> float:
        """All of it."""
        return self.walking + self.lowering + self.storing


class profile:
    """Records launches, compilations and hits of the cache, in all threads.

    >>> import numpy as np, triton_metal, triton_metal.language as tl
    >>> @triton_metal.jit
    ... def double(x, n, BLOCK: tl.constexpr):
    ...     i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ...     tl.store(x + i, 2 * tl.load(x + i, i < n), i < n)
    >>> x = np.ones(1000, np.float32)
    >>> with triton_metal.profile() as p:
    ...     for _ in range(3):
    ...         _ = double[(4,)](x, 1000, BLOCK=256)
    >>> len(p.launches), p.launches[0].kernel, p.launches[0].bytes_read
    (3, 'double', 4000)
    >>> len(p.compilations), p.memory_hits
    (1, 2)

    ``print(p)`` shows a table by kernel, and ``p.save("trace.json")`` writes Chrome's trace format, which chrome://tracing and
    https://ui.perfetto.dev show. In the block, a profile has what has happened so far. Profiles may be nested: each one has all that
    happened in its block. A recorded launch takes under a microsecond more than one that is not.

    ``max_launches`` limits the memory that a profile takes (some 200 bytes a launch); ``dropped`` counts the launches beyond.

    Raises LaunchTypeError or LaunchValueError for a limit that is no positive integer.
    """

    def __init__(self, *, max_launches: int = 1_000_000) -> None:
        if isinstance(max_launches, bool) or not isinstance(max_launches, int):
            raise LaunchTypeError(
                f"[profile] max_launches must be an integer but is {max_launches!r}."
            )
        if max_launches < 1:
            raise LaunchValueError(
                f"[profile] max_launches must be at least 1 but is {max_launches}."
            )
        self.max_launches = max_launches
        self._launches: list[Launch] = []
        self.compilations: list[Compilation] = []
        self._dropped = 0
        self._seconds = 0.0
        self._start = 0

    def __enter__(self) -> profile:
        with _lock:
            if self in _active:
                raise LaunchValueError("[profile] this profile is being made already.")
            self._launches, self.compilations, self._dropped = [], [], 0
            _take([*_active, self])
            _active.append(self)
            self._start = _native.profile_clock()
        return self

    def __exit__(self, *exception: object) -> None:
        with _lock:
            if self not in _active:
                raise LaunchValueError("[profile] this profile is not being made.")
            self._seconds = (_native.profile_clock() - self._start) / 1e9
            rest = [each for each in _active if each is not self]
            _take(rest)
            _active.remove(self)

    @property
    def launches(self) -> list[Launch]:
        """The launches of the block, in their order."""
        self._update()
        return self._launches

    @property
    def dropped(self) -> int:
        """The launches beyond ``max_launches``."""
        self._update()
        return self._dropped

    @property
    def seconds(self) -> float:
        """The time that the block took, or has taken so far."""
        return (
            self._seconds if self not in _active else (_native.profile_clock() - self._start) / 1e9
        )

    def _update(self) -> None:
        with _lock:
            if self in _active:
                _take(_active)

    @property
    def memory_hits(self) -> int:
        """The launches whose kernel was in this process already."""
        return sum(not launch.first for launch in self.launches)

    @property
    def disk_hits(self) -> int:
        """The kernels that came from the cache on disk."""
        return sum(each.cached for each in self.compilations)

    def clock_of(self, launch: Launch) -> int:
        """When one of the profile's launches began, in nanoseconds of the clock of all profiles."""
        return self._start + round(launch.begin * 1e9)

    def _add(self, records: Sequence[tuple[Any, ...]]) -> None:
        room = self.max_launches - len(self._launches)
        self._dropped += max(0, len(records) - room)
        for compiled, device, grid, begin, end, read, written, thread, first in records[:room]:
            seconds = (end - begin) / 1e9
            self._launches.append(
                Launch(
                    kernel=_name_of(compiled),
                    device=device,
                    grid=grid,
                    begin=(begin - self._start) / 1e9,
                    seconds=seconds,
                    device_seconds=seconds if device in _SYNCHRONOUS and not first else None,
                    bytes_read=read,
                    bytes_written=written,
                    thread=thread,
                    first=first,
                    compiled=compiled,
                )
            )

    def table(self) -> str:
        """A table by kernel and device: launches, compilations, time, and bytes a second of the launches after the first."""
        rows: dict[tuple[str, str], list[Launch]] = {}
        for launch in self.launches:
            rows.setdefault((launch.kernel, launch.device), []).append(launch)
        made: dict[str, list[Compilation]] = {}
        for each in self.compilations:
            made.setdefault(each.kernel, []).append(each)
        head = (
            "kernel",
            "device",
            "launches",
            "compiled",
            "from disk",
            "total",
            "median",
            "bytes",
            "GB/s",
        )
        lines = [head]
        order = sorted(rows.items(), key=lambda row: -sum(each.seconds for each in row[1]))
        for (kernel, device), launches in order:
            times = sorted(each.seconds for each in launches)
            of_kernel = made.pop(kernel, [])
            later = [each for each in launches if not each.first and each.device_seconds]
            moved = sum(each.bytes_read + each.bytes_written for each in later)
            busy = sum(each.device_seconds or 0.0 for each in later)
            bytes_ = sum(each.bytes_read + each.bytes_written for each in launches)
            lines.append(
                (
                    kernel,
                    device,
                    f"{len(launches):,}",
                    str(sum(not each.cached for each in of_kernel)),
                    str(sum(each.cached for each in of_kernel)),
                    _time(sum(times)),
                    _time(times[len(times) // 2]),
                    _bytes(bytes_),
                    f"{moved / busy / 1e9:.2f}" if busy else "",
                )
            )
        for kernel, of_kernel in made.items():
            cached = sum(each.cached for each in of_kernel)
            lines.append(
                (kernel, "", "0", str(len(of_kernel) - cached), str(cached), "", "", "", "")
            )
        widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
        texts = [
            "  ".join(
                text.ljust(width) if i < 2 else text.rjust(width)
                for i, (text, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        ]
        compiling = sum(each.seconds for each in self.compilations)
        end = (
            f"{number_of(len(self.launches), 'launch', 'launches')} in {_time(self.seconds)}; "
            f"{number_of(len(self.compilations) - self.disk_hits, 'kernel')} compiled, {self.disk_hits} from the cache on disk, "
            f"in {_time(compiling)}"
        )
        if self.dropped:
            are = "is" if self.dropped == 1 else "are"
            end += f"; {number_of(self.dropped, 'launch', 'launches')} beyond max_launches={self.max_launches:,} {are} not in it"
        return "\n".join([*texts, end])

    __str__ = table

    def trace(self) -> dict[str, Any]:
        """The profile in Chrome's trace format, as a dictionary for JSON: times in microseconds."""
        process = os.getpid()
        events: list[dict[str, Any]] = [_named(process, 0, "process_name", "triton_metal")]
        threads = dict.fromkeys(each.thread for each in [*self.launches, *self.compilations])
        for number, thread in enumerate(threads, start=1):
            events.append(_named(process, thread, "thread_name", f"thread {number}"))
        for compilation in self.compilations:
            events.append(
                _event(process, compilation, f"compile {compilation.kernel}", "compilation")
                | {
                    "args": {
                        "walking_us": compilation.walking * 1e6,
                        "lowering_us": compilation.lowering * 1e6,
                        "storing_us": compilation.storing * 1e6,
                        "cached": compilation.cached,
                    }
                }
            )
        for launch in self.launches:
            args: dict[str, Any] = {
                "device": launch.device,
                "grid": list(launch.grid),
                "bytes_read": launch.bytes_read,
                "bytes_written": launch.bytes_written,
                "first": launch.first,
            }
            if launch.device_seconds is not None:
                args["device_us"] = launch.device_seconds * 1e6
            events.append(_event(process, launch, launch.kernel, "launch") | {"args": args})
        return {"traceEvents": events, "displayTimeUnit": "ms"}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes `trace` to a file; LaunchValueError if it cannot be written, and nothing is left of it then."""
        target = files.named(path, "profile", "trace.json")
        files.save(target, json.dumps(self.trace()).encode(), "profile")


def _take(remain: Sequence[profile]) -> None:
    """Gives the log's launches to the active profiles; launches are recorded on if any remain."""
    room = [each.max_launches - len(each._launches) for each in remain]
    records, dropped = _native.take_profile(max(room, default=0))
    for each in _active:
        each._add(records)
        each._dropped += dropped


def is_active() -> bool:
    """Whether a profile is being made."""
    return bool(_active)


def add_compilation(
    kernel: str, walking: float, lowering: float, storing: float, cached: bool
) -> None:
    """Tells the profiles of a kernel that has just been compiled or found."""
    with _lock:
        now = _native.profile_clock()
        for each in _active:
            begin = (now - each._start) / 1e9 - walking - lowering - storing
            thread = threading.get_ident()
            each.compilations.append(
                Compilation(kernel, begin, walking, lowering, storing, cached, thread)
            )


_NOTHING = nullcontext()


def recorded(
    compiled: Any, grid: Sequence[int], values: Sequence[Any], device: str | None = None
) -> Any:
    """A context in which a launch is recorded, if a profile is being made. ``values`` are in the order of the contract."""
    if not _native.is_profiling():
        return _NOTHING
    return _recorded(compiled, grid, values, device)


@contextmanager
def _recorded(
    compiled: Any, grid: Sequence[int], values: Sequence[Any], device: str | None
) -> Iterator[None]:
    described = [each for each in compiled.metadata.args if "messages" not in each]
    read = written = 0
    for entry, value in zip(described, values, strict=False):
        size = getattr(value, "nbytes", 0) if entry["kind"] == "buffer" else 0
        read += size if entry["reads"] or entry["atomic"] else 0
        written += size if entry["writes"] or entry["atomic"] else 0
    if device is None:
        device = "mps" if any(getattr(value, "is_mps", False) for value in values) else "host"
    state = vars(compiled)
    first = not state.get("_was_launched")
    begin = _native.profile_clock()
    yield
    state["_was_launched"] = True
    _native.record_launch(compiled, device, list(grid), begin, read, written, first)


def _name_of(compiled: Any) -> str:
    return str(getattr(compiled, "name", compiled))


def _named(process: int, thread: int, kind: str, name: str) -> dict[str, Any]:
    return {"ph": "M", "pid": process, "tid": thread, "name": kind, "args": {"name": name}}


def _event(
    process: int, timed: Launch | Compilation, name: str, category: str
) -> Mapping[str, Any]:
    return {
        "name": name,
        "cat": category,
        "ph": "X",
        "ts": timed.begin * 1e6,
        "dur": timed.seconds * 1e6,
        "pid": process,
        "tid": timed.thread,
    }


def _time(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= scale:
            return (
                f"{seconds / scale:.3g} {unit}" if seconds < 1000 * scale else f"{seconds:,.0f} s"
            )
    return f"{seconds * 1e6:.3g} µs"


def _bytes(count: int) -> str:
    size = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            return f"{size:.3g} {unit}" if unit != "B" else f"{count} B"
        size /= 1000
    raise AssertionError(size)
