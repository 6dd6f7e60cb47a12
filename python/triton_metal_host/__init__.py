"""The host Metal device: Metal text, compiled by the clang that is in here and run on the CPU.

`triton_metal` finds this package by itself when a kernel is launched on NumPy arrays or CPU tensors; there is nothing
here to call.
"""

from ._engine import find_quirks, quirk_rows, scanner_version, table

__version__ = "0.1.0"
__all__ = ["find_quirks", "quirk_rows", "scanner_version", "table"]
