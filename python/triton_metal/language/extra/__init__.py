"""Functions beyond Triton's core language."""

from typing import Any

from . import libdevice

__all__ = ["libdevice"]

_ABSENT = {
    "cuda": "it holds functions of NVIDIA's GPUs",
    "hip": "it holds functions of AMD's GPUs",
}


def __getattr__(name: str) -> Any:
    if name in _ABSENT:
        raise AttributeError(
            f"triton.language.extra has no {name!r}: {_ABSENT[name]}; use triton.language.extra.libdevice"
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
