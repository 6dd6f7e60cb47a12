"""What Triton's interpreter is here: kernels on the host device, with every access checked.

Where Triton runs the Python of a kernel on NumPy's arrays, triton_metal compiles it as ever, and the host device runs the
Metal text. So no handles of single tensors are there, and Python that kernels cannot hold stays refused.
"""

from __future__ import annotations

from typing import Any

from ..jit import InterpretedFunction
from .errors import InterpreterError


class TensorHandle:
    """A tensor of Triton's interpreter. There are none, so that nothing is an instance of this class."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise InterpreterError(_REASON)


_REASON = (
    "triton_metal does not run the operations of a kernel one by one: with TRITON_INTERPRET=1 the host device runs the "
    "whole kernel, and checks every access"
)
_ABSENT = ("GridExecutor", "InterpreterBuilder", "InterpreterOptions", "interpreter_builder")


def __getattr__(name: str) -> Any:
    if name in _ABSENT:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}: {_REASON}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["InterpretedFunction", "InterpreterError", "TensorHandle"]
