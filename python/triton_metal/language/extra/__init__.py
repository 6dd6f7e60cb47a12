"""Functions beyond Triton's core language."""

from . import libdevice

__all__ = ["libdevice"]
