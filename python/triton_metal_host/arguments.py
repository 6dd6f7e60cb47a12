"""Arguments of kernels that need a closer look: what can be bound is bound, and anything else is explained."""

from __future__ import annotations

import ctypes
import operator
import struct
from typing import Any

from .buffer import Buffer
from .memory import Memory, memory_of
from .reflection import Parameter

# struct's letters of Metal's numbers; bfloat is the upper half of a float.
_LETTERS = {
    "bool": "?",
    "char": "b",
    "uchar": "B",
    "short": "h",
    "ushort": "H",
    "int": "i",
    "uint": "I",
    "long": "q",
    "ulong": "Q",
    "half": "e",
    "float": "f",
}

Bound = tuple[int, int, bool, Any]


def convert(function: str, value: Any, parameter: Parameter, written: bool) -> Bound | None:
    """(address, bytes, writable, what holds the memory) of an argument; None where nothing needs to be bound.

    Raises TypeError or ValueError with the argument, its value and what is allowed.
    """
    try:
        return _convert(value, parameter, written)
    except (TypeError, ValueError, BufferError, OverflowError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(
            f"{function}: argument '{parameter.name}' ({parameter.declaration}, buffer {parameter.index}) {error}"
        ) from None


def _convert(value: Any, parameter: Parameter, written: bool) -> Bound | None:
    if not parameter.exists:
        return None
    if value is None:
        raise TypeError(f"is missing; it takes {_wanted(parameter)}")
    if isinstance(value, Buffer):
        memory = value._memory
        if memory.nbytes < parameter.size:
            raise ValueError(
                f"needs at least {parameter.size} bytes, but the buffer has {memory.nbytes}"
            )
        return _bind(memory, parameter, written)
    if isinstance(value, (bool, int, float, tuple, list)) or _is_numpy_scalar(value):
        return _pack(value, parameter)
    memory = memory_of(value)
    if memory is None:
        raise TypeError(f"takes {_wanted(parameter)}, not {_shown(value)}")
    _check_type(memory, parameter)
    if not memory.contiguous:
        raise ValueError(
            "is not contiguous (C order): pass a contiguous copy, as numpy.ascontiguousarray makes"
        )
    unit = max(1, parameter.size)
    if parameter.reference and memory.nbytes != parameter.size:
        raise ValueError(
            f"takes one value of {parameter.size} bytes, but {_shown(value)} has {memory.nbytes}"
        )
    if memory.nbytes % unit:
        raise ValueError(
            f"takes values of {unit} bytes each, and {_shown(value)} has {memory.nbytes} bytes, which is no multiple"
        )
    if parameter.reference and parameter.const and memory.address % parameter.alignment:
        # One value that the kernel only reads. NumPy aligns to 16 bytes, and a ulong4 needs 32.
        return _aligned_copy(ctypes.string_at(memory.address, memory.nbytes), parameter)
    return _bind(memory, parameter, written)


def _bind(memory: Memory, parameter: Parameter, written: bool) -> Bound:
    if written and memory.readonly:
        raise ValueError("is written by the kernel, but its memory is read-only")
    if memory.address % parameter.alignment and memory.nbytes:
        raise ValueError(
            f"begins at address {memory.address:#x}, but '{parameter.type}' needs a multiple of {parameter.alignment}"
        )
    return memory.address, memory.nbytes, not memory.readonly, memory.holder


def _check_type(memory: Memory, parameter: Parameter) -> None:
    dtype = memory.dtype
    if dtype == "object" and parameter.type == "void":
        raise TypeError("takes an array of numbers, not one of Python objects")
    if dtype is None or parameter.type == "void" or dtype == parameter.dtype:
        return
    if parameter.dtype is None:
        if dtype in ("structure", "uint8", "int8"):
            if dtype == "structure" and memory.itemsize != parameter.size:
                raise TypeError(
                    f"has values of {parameter.size} bytes, but those of the array have {memory.itemsize}"
                )
            return
        raise TypeError(
            f"takes {_wanted(parameter)}, not an array of {dtype}; metal.Buffer(array) binds its bytes as they are"
        )
    if parameter.dtype == "bfloat16" and dtype == "uint16":
        return  # its bits, as NumPy itself has no bfloat16
    raise TypeError(
        f"takes {_wanted(parameter)}, not one of {dtype}: convert it with astype, or bind its bytes as they are with metal.Buffer(array)"
    )


def _wanted(parameter: Parameter) -> str:
    if parameter.dtype is None:
        if parameter.type == "void":
            return "an array or bytes"
        return f"bytes, a structured array, or a metal.Buffer with values of {max(1, parameter.size)} bytes"
    if parameter.reference and parameter.const:
        count = _components(parameter)
        return f"a number of type {parameter.scalar}" if count == 1 else f"{count} numbers"
    return f"an array of {parameter.dtype}"


def _shown(value: Any) -> str:
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape == () and _is_numpy_scalar(value):
        return f"{dtype} {value.item()!r}"
    if shape is not None and dtype is not None:
        return f"an array of {dtype} of shape {tuple(shape)}"
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) < 40 else text[:37] + '...'}"


def _is_numpy_scalar(value: Any) -> bool:
    return (
        getattr(value, "shape", None) == ()
        and hasattr(value, "dtype")
        and hasattr(value, "item")
        and type(value).__module__ == "numpy"
        and type(value).__name__ not in ("ndarray", "void")
    )


def _components(parameter: Parameter) -> int:
    if parameter.components > 1 or parameter.scalar is None:
        return parameter.components
    return max(1, parameter.size // _bytes_of(parameter.scalar))


def _bytes_of(scalar: str) -> int:
    return 2 if scalar == "bfloat" else struct.calcsize("<" + _LETTERS[scalar])


def _pack(value: Any, parameter: Parameter) -> Bound:
    """A number, or the numbers of a vector, as the parameter's type lays them out."""
    if not parameter.reference or not parameter.const or parameter.scalar is None:
        raise TypeError(f"takes {_wanted(parameter)}, not {_shown(value)}")
    count = _components(parameter)
    numbers = list(value) if isinstance(value, (tuple, list)) else [value]
    if len(numbers) != count:
        raise ValueError(
            f"takes {count} number{'s' if count > 1 else ''}, but {_shown(value)} has {len(numbers)}"
        )
    data = b"".join(pack_number(number, parameter.scalar) for number in numbers)
    return _aligned_copy(data, parameter)


def _aligned_copy(data: bytes, parameter: Parameter) -> Bound:
    memory = ctypes.create_string_buffer(len(data) + parameter.size + 256)
    address = -(-ctypes.addressof(memory) // 256) * 256
    ctypes.memmove(address, data, len(data))
    return address, max(parameter.size, len(data)), False, memory


def pack_number(value: Any, scalar: str) -> bytes:
    """The bytes of a number of one of Metal's types, rounded to nearest even.

    Raises TypeError for a number of another kind and ValueError for one that is out of range.
    """
    if scalar in ("half", "float", "bfloat"):
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError):
            raise TypeError(f"takes a number of type {scalar}, not {_shown(value)}") from None
        try:
            if scalar != "bfloat":
                return struct.pack("<" + _LETTERS[scalar], number)
            return _pack_bfloat(number)
        except OverflowError:
            raise ValueError(f"takes a number of type {scalar}, which {value!r} exceeds") from None
    if scalar == "bool" and type(value).__name__ in ("bool", "bool_"):
        return bytes([bool(value)])
    try:
        whole = operator.index(value)
    except TypeError:
        raise TypeError(f"takes a whole number of type {scalar}, not {_shown(value)}") from None
    if scalar == "bool" and whole not in (0, 1):
        raise ValueError(f"takes True or False, not {value!r}")
    try:
        return struct.pack("<" + _LETTERS[scalar], whole)
    except struct.error:
        bits = 8 * _bytes_of(scalar)
        low, high = (
            (0, 2**bits - 1) if scalar[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        )
        raise ValueError(
            f"takes a number of type {scalar}, {low} to {high}, not {value!r}"
        ) from None


def _pack_bfloat(number: float) -> bytes:
    if number != number:
        return b"\xc0\x7f"
    # Through float32 by truncation to odd, so that rounding happens once.
    try:
        near = struct.unpack("<f", struct.pack("<f", number))[0]
    except OverflowError:
        raise
    bits = struct.unpack("<I", struct.pack("<f", near))[0]
    if near != number and abs(near) > abs(number):
        bits -= 1
    if near != number:
        bits |= 1
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    if rounded & 0x7FFF == 0x7F80 and abs(number) != float("inf"):
        raise OverflowError
    return struct.pack("<H", rounded & 0xFFFF)
