"""Errors of the runtime."""

from __future__ import annotations

from ..errors import AutotunerError, OutOfResources, TritonError


class _TextError(TritonError):
    """An error with a text that may be missing."""

    _format = "{}"

    def __init__(self, error_message: str | None = None) -> None:
        self.error_message = error_message
        super().__init__(error_message)

    def __str__(self) -> str:
        return self._format.format(self.error_message or "")


class InterpreterError(_TextError):
    """An error of Triton's interpreter: `triton_metal.runtime.interpreter` says what there is in its place."""


class PTXASError(_TextError):
    """An error of NVIDIA's assembler, which nothing here calls."""

    _format = "PTXAS error: {}"


__all__ = ["AutotunerError", "InterpreterError", "OutOfResources", "PTXASError"]
