"""The device."""

from __future__ import annotations

import atexit
import json
import operator
import os
import re
import signal
import sys
import tempfile
import warnings
import weakref
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from . import _engine
from .buffer import Buffer
from .library import Function, Library
from .pipeline import CommandBuffer, Pipeline, Queue

_queues: weakref.WeakSet[Queue] = weakref.WeakSet()


class Device:
    """The Metal device that runs on this machine's CPU.

    ``checks``, ``portable`` and ``counters`` are what pipelines of this device get if they do not ask for something
    else: see `pipeline`.
    """

    name = "host Metal device"
    max_threads_per_threadgroup = 1024
    max_threadgroup_memory_length = 32768
    max_buffers = 31

    def __init__(
        self,
        *,
        checks: bool | str | Iterable[str] = (),
        portable: bool = False,
        counters: bool = False,
    ) -> None:
        self._checks = _read_checks(checks)
        _check_flag("portable", portable)
        _check_flag("counters", counters)
        self._portable = portable
        self._counters = counters
        self._queue = self.queue()
        _configure_once()

    def library(
        self,
        source: str | os.PathLike[str],
        *,
        file_name: str | None = None,
        macros: Mapping[str, Any] | None = None,
        include: Iterable[str | os.PathLike[str]] = (),
        language_version: str | None = None,
    ) -> Library:
        """Compiles Metal text, or the file that a path names.

        ``macros`` are defined as -DNAME=VALUE does, ``include`` are folders for #include (the folder of a file comes first),
        and ``file_name`` is the text's name in messages. ``language_version`` ("2.4" to "4.0") is what the text sees as
        `__METAL_VERSION__`; without it that is 3.2. Raises `CompileError` with clang's diagnostics.
        """
        if language_version is not None:
            macros = {"__METAL_VERSION__": _version_number(language_version), **(macros or {})}
        if isinstance(source, os.PathLike):
            path = Path(source)
            text = path.read_text(encoding="utf-8")
            file_name = file_name or str(path)
            if _engine.includes_beside(text):
                include = [path.resolve().parent, *include]
        elif isinstance(source, str):
            text = source
            if re.fullmatch(r"\S+\.metal", text):
                raise ValueError(
                    f"library takes Metal text, not the path {text!r}: pass pathlib.Path({text!r}) to compile a file"
                )
        else:
            raise TypeError(
                f"library takes Metal text as a str, or a pathlib.Path, not {type(source).__name__}"
            )
        if macros is not None and not isinstance(macros, Mapping):
            raise TypeError(f"macros takes values by name, like {{'SIZE': 4}}, not {macros!r}")
        if isinstance(include, (str, os.PathLike)):
            raise TypeError(f"include takes a list of folders, not {include!r}")
        flat = [
            part for name, value in (macros or {}).items() for part in (name, _macro(name, value))
        ]
        folders = [os.fspath(folder) for folder in include]
        handle, names = _engine.library(text, file_name or "kernel.metal", flat, folders)
        return Library(handle, text, json.loads(names))

    def pipeline(
        self,
        function: Function,
        *,
        checks: bool | str | Iterable[str] | None = None,
        portable: bool | None = None,
        counters: bool | None = None,
        max_steps: int = _engine.default_max_steps,
        outputs: str | Iterable[str] = (),
    ) -> Pipeline:
        """Compiles a function.

        checks : what launches are checked for: one name or several of "bounds", "races", "initialized", "divergence",
            "arithmetic", "nans", "outputs", "steps" and "same-values" (docs/checks.md). True or "all" means all but
            "nans" and "same-values". A launch that fails a check raises `LaunchError` with the kernel's line and leaves all buffers as they were.
        max_steps : with the check "steps", how many iterations of loops a SIMD-group may run.
        outputs : the names of buffers of which a launch must write each byte. They turn the check "outputs" on.
        portable : answers what Metal does not promise with the worst that it allows, and reports a result that depends
            on it. Checks accesses, too.
        counters : counts what launches do, for `Run.counters`.
        """
        if not isinstance(function, Function):
            raise TypeError(f"pipeline takes a Function, not {function!r}")
        try:
            max_steps = operator.index(max_steps)
        except TypeError:
            raise TypeError(f"max_steps must be an integer, not {max_steps!r}") from None
        if not 0 < max_steps < 1 << 64:
            raise ValueError(f"max_steps must be from 1 to 2^64 - 1, not {max_steps}")
        wanted = self._checks if checks is None else _read_checks(checks)
        for name, value in (("portable", portable), ("counters", counters)):
            _check_flag(name, value)
        if not isinstance(outputs, Iterable):
            raise TypeError(f"outputs takes names of buffers, not {outputs!r}")
        outputs = (outputs,) if isinstance(outputs, str) else tuple(outputs)
        if checks is not None and "outputs" in wanted and not outputs:
            raise ValueError(
                'the check "outputs" needs `outputs`, the names of buffers that are written wholly'
            )
        if outputs and "all" not in wanted:
            wanted |= {"outputs"}
        _watch_interrupts()
        return Pipeline(
            function,
            self._queue,
            ",".join(sorted(wanted)),
            max_steps,
            _bits_of(function, outputs),
            self._portable if portable is None else portable,
            self._counters if counters is None else counters,
        )

    def buffer(self, source: int | Any) -> Buffer:
        """A buffer of this many zero bytes, or the memory of an array itself: see `Buffer`."""
        return Buffer(source)

    def queue(self) -> Queue:
        """A queue besides the one that all pipelines of this device use. Queues do not wait for each other."""
        queue = Queue()
        _queues.add(queue)
        return queue

    def command_buffer(self) -> CommandBuffer:
        """A command buffer of the device's own queue."""
        return self._queue.command_buffer()

    def wait(self) -> None:
        """Waits until everything that was submitted to the device's own queue has run."""
        self._queue.wait()

    def __repr__(self) -> str:
        return f"<Device {self.name}>"


def configure(*, cache_directory: str | os.PathLike[str] | None, threads: int = 0) -> None:
    """Sets where compiled kernels are kept (None: only in memory), and how many threads run kernels (0: one a core).

    It is for the whole process and holds for libraries that are made from then on. Without it, kernels are kept in
    $TRITON_METAL_CACHE_DIR, or in the user's cache directory.
    """
    global _configured
    if isinstance(threads, bool) or not isinstance(threads, int):
        raise TypeError(f"threads must be an integer, not {threads!r}")
    if not 0 <= threads <= _MOST_THREADS:
        raise ValueError(f"threads must be from 0 to {_MOST_THREADS}, not {threads}")
    _configured = True
    _engine.configure("" if cache_directory is None else os.fspath(cache_directory), threads)


_configured = False
_MOST_THREADS = 4096


def _configure_once() -> None:
    if _configured:
        return
    # A program may have set the directory of triton_metal, which tells the device only when it launches a kernel itself.
    compiler = sys.modules.get("triton_metal.cache")
    configure(cache_directory=compiler.device_dir() or None if compiler else _cache_directory())


def _cache_directory() -> Path | None:
    named = os.environ.get("TRITON_METAL_CACHE_DIR")
    if named:
        base = Path(named).absolute()
    elif sys.platform == "darwin":
        base = Path("~/Library/Caches/triton-metal").expanduser()
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "triton-metal"
    directory = base / "device"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=directory).close()
    except OSError as error:
        if named:
            warnings.warn(
                f"TRITON_METAL_CACHE_DIR is {named!r}, where no kernel can be kept: {error.strerror or error}",
                RuntimeWarning,
                stacklevel=2,
            )
        return None
    return directory if directory.is_absolute() else None


def _watch_interrupts() -> None:
    # A handler of the program's own decides what an interrupt does.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        _engine.stop_on_interrupt()


def _check_flag(name: str, value: object) -> None:
    if value is not None and type(value).__name__ not in ("bool", "bool_"):
        raise TypeError(f"{name} takes True or False, not {value!r}")


def _read_checks(checks: bool | str | Iterable[str]) -> frozenset[str]:
    if isinstance(checks, bool):
        checks = ("all",) if checks else ()
    if not isinstance(checks, Iterable) or isinstance(checks, Mapping):
        raise TypeError(f"checks takes True, a name or several names, not {checks!r}")
    names = [checks] if isinstance(checks, str) else list(checks)
    for name in names:
        if name not in (*_engine.check_names, "all"):
            known = ", ".join(_engine.check_names)
            raise ValueError(f"there is no check {name!r}; the checks are {known}")
    return frozenset(names)


def _bits_of(function: Function, outputs: Iterable[str]) -> int:
    """A bit for the index of each of these buffers."""
    bits = 0
    for name in outputs:
        index = next((p.index for p in function.info.buffers if p.name == name), None)
        if index is None:
            raise ValueError(f"{function.name} has no buffer {name!r}")
        bits |= 1 << index
    return bits


def _macro(name: Any, value: Any) -> str:
    """A macro's value as text."""
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_]\w*(\([\w\s,.]*\))?", name):
        raise ValueError(f"macros: {name!r} is no name of a macro")
    if isinstance(value, bool):
        return "1" if value else "0"
    if not isinstance(value, (str, int, float)) or "\n" in str(value):
        raise TypeError(f"macros: {name!r} takes a number or one line of text, not {value!r}")
    return str(value)


def _version_number(version: str) -> int:
    """320 for "3.2"."""
    if version not in _engine.language_versions:
        known = ", ".join(_engine.language_versions)
        raise ValueError(f"language_version is one of {known}, not {version!r}")
    return int(version.replace(".", "")) * 10


@atexit.register
def _finish() -> None:
    # What was submitted runs before the interpreter ends, as its handlers and arrays need that.
    for queue in list(_queues):
        queue.wait()
