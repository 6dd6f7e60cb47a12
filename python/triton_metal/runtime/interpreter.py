"""Triton's interpreter, which triton_metal does not have: the host device runs kernels on the CPU.

`triton_metal.launch_options` checks launches there: bounds, races and results that Metal does not promise.
"""

from __future__ import annotations

from typing import Any

from ..interface import KernelInterface
from .errors import InterpreterError


class InterpretedFunction(KernelInterface):
    """The kernel of an interpreter. There are none, so that nothing is an instance of this class."""

    def __init__(self, fn: Any, **kwargs: Any) -> None:
        raise InterpreterError(
            "triton_metal has no interpreter: it runs kernels on CPU tensors through the host device, and "
            'triton_metal.launch_options(check="bounds") checks their accesses'
        )
