"""Launches that run or have run."""

from __future__ import annotations

from typing import Any

from . import _engine
from .profile import Profile
from .trace import Trace

_COMPLETED, _FAILED = 3, 4


class Run:
    """A launch, or the launches of a command buffer."""

    __slots__ = ("__weakref__", "_counters", "_counts", "_handle", "_profile", "_seconds", "_trace")

    _handle: Any
    _seconds: float
    _counters: tuple[int, ...] | None

    @classmethod
    def _completed(
        cls, seconds: float, counters: tuple[int, ...] | None, profile: Any, trace: str | None
    ) -> Run:
        run = object.__new__(cls)
        run._handle = None
        run._seconds = seconds
        run._counters = counters
        run._profile = profile
        run._trace = trace
        return run

    @classmethod
    def _submitted(cls, handle: Any, counts: bool) -> Run:
        run = object.__new__(cls)
        run._handle = handle
        run._counts = counts
        return run

    @property
    def done(self) -> bool:
        """Whether it has ended, well or not."""
        return self._handle is None or _engine.result(self._handle)[0] >= _COMPLETED

    @property
    def error(self) -> _engine.LaunchError | None:
        """What went wrong; None if nothing did, or if it has not ended."""
        text = None if self._handle is None else _engine.result(self._handle)[3]
        return None if text is None else _engine.LaunchError(text)

    def wait(self, timeout: float | None = None) -> Run:
        """Waits for its end and returns the run itself.

        Raises `LaunchError` if a launch failed, and TimeoutError if it has not ended after this many seconds. CTRL-C
        ends launches and raises KeyboardInterrupt.
        """
        if self._handle is None:
            return self
        if timeout is not None and not timeout >= 0:
            raise ValueError(f"timeout takes seconds from 0 on, not {timeout!r}")
        if not _engine.wait(self._handle, float("inf") if timeout is None else timeout):
            raise TimeoutError(f"the run has not ended after {timeout} seconds")
        text = _engine.result(self._handle)[3]
        if text is not None:
            _engine.raise_error(text)
        return self

    @property
    def seconds(self) -> float:
        """The time from the start of the first kernel to the end of the last one."""
        if self._handle is None:
            return self._seconds
        return self.gpu_end_time - self.gpu_start_time

    @property
    def gpu_start_time(self) -> float:
        """When the first kernel began, in seconds of a steady clock; only of submitted runs."""
        return self._ended()[1]

    @property
    def gpu_end_time(self) -> float:
        """When the last kernel ended, on the same clock."""
        return self._ended()[2]

    @property
    def counters(self) -> dict[str, int]:
        """What the launches did, by the names that docs/host-device.md explains.

        Raises ValueError for pipelines that do not count.
        """
        if self._handle is None:
            values = self._counters
        else:
            values = self._ended()[4] if self._counts else None
        if values is None:
            raise ValueError("the pipeline does not count: make it with counters=True")
        return dict(zip(_NAMES, values, strict=True))

    @property
    def profile(self) -> Profile:
        """The counters of each line of the text, for pipelines with counters=True."""
        _ = self.counters  # raises for others, and before the end
        return Profile(self._profile if self._handle is None else _engine.profile(self._handle))

    @property
    def trace(self) -> Trace:
        """The addresses that the threadgroups of ``trace=`` accessed. Raises ValueError for launches without it."""
        text = self._trace if self._handle is None else None
        if text is None:
            raise ValueError("the launch was not traced: call the pipeline with trace=[(0, 0, 0)]")
        return Trace.read(text)

    def _ended(self) -> tuple[int, float, float, str | None, tuple[int, ...]]:
        if self._handle is None:
            raise ValueError("a launch that was waited for only has seconds; use submit for times")
        result = _engine.result(self._handle)
        if result[0] < _COMPLETED:
            raise RuntimeError("the run has not ended: wait() for it")
        return result

    def __repr__(self) -> str:
        if not self.done:
            return "<Run that has not ended>"
        if self.error is not None:
            return "<Run that failed>"
        return f"<Run of {self.seconds * 1e3:.3f} ms>"


_NAMES = _engine.counter_names()
