"""Tracebacks of kernels that cannot be compiled: the program's frames, without those of this package."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from . import knobs
from .errors import CompilationError

T = TypeVar("T")

_PACKAGE = Path(__file__).parent


def with_short_traceback(function: Callable[..., T], *args: Any) -> T:
    """Calls a function that walks over a kernel. An error of the kernel says where it is, so its traceback leaves the
    walk's frames out, unless ``knobs.compilation.front_end_debugging`` asks for them.
    """
    try:
        return function(*args)
    except CompilationError as error:
        if knobs.compilation.front_end_debugging:
            raise
        raise error.with_traceback(None) from _shown(error, error.__cause__)


def _shown(error: CompilationError, cause: BaseException | None) -> BaseException | None:
    """The cause of an error, as Triton's errors have one.

    In a function that the kernel calls: the error at its place, without the calls. In a call: what that raised. Else, and
    there, the cause if it says more than the error: where the program's own Python failed, or other words.
    """
    if cause is not None:
        frames = _of_program(cause.__traceback__)
        cause = cause.with_traceback(frames)
        is_in_call = not error.callers and isinstance(error.node, ast.Call)
        if frames is None and str(cause) in error.error_message and not is_in_call:
            cause = None
    if not error.callers:
        return cause
    root = type(error)(error.error_message, error.location, (), error.src, error.node)
    root.__cause__ = cause
    return root


def _of_program(frames: TracebackType | None) -> TracebackType | None:
    """The frames from the first one on that is not in this package."""
    while frames is not None and Path(frames.tb_frame.f_code.co_filename).is_relative_to(_PACKAGE):
        frames = frames.tb_next
    return frames
