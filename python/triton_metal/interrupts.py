"""Signals that wait for the end of a block."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType


@contextlib.contextmanager
def deferred() -> Iterator[None]:
    """In this block the functions that a program has set for signals, as Ctrl-C's is, are not called; they are at its end.

    Python looks for signals between making a module of a library and running it. If it raises there, the library is freed
    half-made, which nanobind's do not survive.
    """
    waiting: list[tuple[int, FrameType | None]] = []
    handlers = {}
    try:
        for number in signal.valid_signals():
            handler = signal.getsignal(number)
            if callable(handler):
                signal.signal(number, lambda *told: waiting.append(told))
                handlers[number] = handler
    except ValueError:  # not the main thread, in which alone these functions run
        pass
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number, frame in waiting:
            handlers[number](number, frame)
