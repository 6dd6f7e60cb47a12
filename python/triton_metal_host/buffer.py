"""Memory that kernels read and write as it is, whatever it holds."""

from __future__ import annotations

import ctypes
import mmap
import operator
from typing import TYPE_CHECKING, Any

from .memory import Memory, memory_of

if TYPE_CHECKING:
    import numpy as np


class Buffer:
    """Bytes that are bound to a kernel without regard to a dtype, like an MTLBuffer.

    ``Buffer(1024)`` allocates 1024 zero bytes that begin at a page. ``Buffer(array)`` is the memory of a contiguous
    array, tensor or bytes-like object itself, not a copy; kernels may write it if the object is writable.
    ``buffer[64:]`` and ``buffer[64:128]`` are the same memory from an offset on, in bytes.
    """

    __slots__ = ("_memory",)

    def __init__(self, source: int | Any) -> None:
        length = _length_of(source)
        if length is None:
            memory = None if _is_number(source) else memory_of(source)
            if memory is None:
                raise TypeError(
                    f"Buffer takes a length in bytes, an array, a CPU tensor or a bytes-like object, not {type(source).__name__}"
                )
            if memory.dtype == "object":
                raise TypeError("Buffer takes an array of numbers, not one of Python objects")
            if not memory.contiguous:
                raise ValueError("Buffer takes contiguous memory: pass numpy.ascontiguousarray(a)")
            self._memory = memory
            return
        if length < 1:
            raise ValueError(f"a buffer needs a length of at least 1 byte, not {length}")
        try:
            allocated = mmap.mmap(-1, length)
        except (OSError, OverflowError, ValueError) as error:
            raise MemoryError(f"there is no memory for a buffer of {length:,} bytes") from error
        found = memory_of(allocated)
        assert found is not None
        self._memory = found

    @property
    def nbytes(self) -> int:
        """Its length in bytes."""
        return self._memory.nbytes

    @property
    def writable(self) -> bool:
        """Whether kernels may write it."""
        return not self._memory.readonly

    @property
    def address(self) -> int:
        """Where its first byte is in this process."""
        return self._memory.address

    @property
    def gpu_address(self) -> int:
        """Where its first byte is for kernels, to be written into structures with pointers: the same as `address`.

        Launches that follow such a pointer name the buffer in ``resources``.
        """
        return self._memory.address

    def contents(self, dtype: Any = "uint8", shape: Any = -1) -> np.ndarray:
        """The memory as a NumPy array of this dtype and shape; writes to it change the buffer."""
        import numpy as np

        size = self.nbytes
        memory = (ctypes.c_uint8 * size).from_address(self.address)
        # The array's base keeps the memory.
        memory._buffer = self
        array = np.frombuffer(memory, np.uint8)
        array.flags.writeable = self.writable
        element = np.dtype(dtype)
        if element.hasobject or not element.itemsize:
            raise ValueError(f"a buffer holds numbers, and no {element}")
        if size % element.itemsize:
            raise ValueError(f"{size} bytes are no whole number of {element.name}s")
        return array.view(element).reshape(shape)

    def __len__(self) -> int:
        return self.nbytes

    def __getitem__(self, part: slice) -> Buffer:
        if not isinstance(part, slice) or part.step not in (None, 1):
            raise TypeError("a buffer is divided by a range of bytes: buffer[64:128]")
        for end in (part.start, part.stop):
            if end is not None and not -self.nbytes <= end <= self.nbytes:
                raise IndexError(f"byte {end} is outside of a buffer of {self.nbytes} bytes")
        start, stop, _ = part.indices(self.nbytes)
        result = object.__new__(Buffer)
        whole = self._memory
        result._memory = Memory(
            whole.address + start,
            max(0, stop - start),
            whole.readonly,
            None,
            1,
            1,
            True,
            whole.holder,
        )
        return result

    def __repr__(self) -> str:
        kind = "" if self.writable else ", read-only"
        return f"<Buffer of {self.nbytes} bytes{kind}>"


def _is_number(source: Any) -> bool:
    """Whether it is a number of Python's or NumPy's, and no array."""
    return isinstance(source, (bool, int, float)) or (
        type(source).__module__ == "numpy" and not hasattr(source, "__setitem__")
    )


def _length_of(source: Any) -> int | None:
    if not _is_number(source) or type(source).__name__ in ("bool", "bool_"):
        return None
    try:
        return operator.index(source)
    except TypeError:
        return None
