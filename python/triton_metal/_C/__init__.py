"""The compiled part, as programs name it that read Triton IR."""

from . import libtriton

__all__ = ["libtriton"]
