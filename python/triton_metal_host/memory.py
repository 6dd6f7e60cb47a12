"""The memory of arrays, tensors and bytes-like objects, without copying it."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from . import _engine

# The type letters of the buffer protocol, without those that depend on the size.
_LETTERS = {"?": "bool", "e": "float16", "f": "float32", "d": "float64"}
_DLPACK_CPU = (1, 3, 11)  # the CPU's own memory, also as CUDA and ROCm register it
_DLPACK_NAMES = {2: "CUDA", 4: "OpenCL", 7: "Vulkan", 8: "Metal", 10: "ROCm", 14: "oneAPI"}


class Memory(NamedTuple):
    """Where an object's memory is and what it holds.

    ``dtype`` is a name such as "float32", None for bytes without a type, or "structure".
    """

    address: int
    nbytes: int
    readonly: bool
    dtype: str | None
    itemsize: int
    ndim: int
    contiguous: bool
    holder: Any


def memory_of(value: Any) -> Memory | None:
    """The memory of a NumPy array, of an exporter of DLPack on the CPU, or of a bytes-like object.

    None for anything else. A tensor on another device is a ValueError.
    """
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)):
        return _of_numpy(numpy, value)
    if hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__"):
        return _of_dlpack(value)
    try:
        address, nbytes, readonly, letters, itemsize, ndim, contiguous, holder = _engine.view(value)
    except (TypeError, BufferError, ValueError):
        return None
    dtype = _dtype_of(letters, itemsize)
    return Memory(address, nbytes, readonly, dtype, itemsize, ndim, contiguous, holder)


def _of_numpy(numpy: Any, value: Any) -> Memory:
    array = numpy.asarray(value)
    dtype = array.dtype
    name: str = "structure" if dtype.fields is not None or dtype.kind == "V" else dtype.name
    if name == "structure" and dtype.fields is None and dtype.name not in ("void", ""):
        name = dtype.name  # one of ml_dtypes' types
    if dtype.fields is None and not dtype.isnative:
        name = f"byte-swapped {name}"
    return Memory(
        array.__array_interface__["data"][0],
        array.nbytes,
        not array.flags.writeable or isinstance(value, numpy.generic),
        name,
        dtype.itemsize,
        array.ndim,
        array.flags.c_contiguous,
        array,
    )


def _of_dlpack(value: Any) -> Memory:
    kind = int(value.__dlpack_device__()[0])
    if kind not in _DLPACK_CPU:
        name = _DLPACK_NAMES.get(kind, f"DLPack device {kind}")
        raise ValueError(
            f"is an array on {name}; this device runs kernels on the CPU's memory: move it there first"
        )
    try:
        capsule = value.__dlpack__(max_version=(1, 0))
    except TypeError:
        capsule = value.__dlpack__()
    address, nbytes, readonly, dtype, itemsize, ndim, contiguous, holder = _engine.dlpack_view(
        capsule
    )
    if dtype == "bool8":
        dtype = "bool"
    return Memory(
        address, nbytes, readonly, dtype, itemsize, ndim, contiguous, (value, capsule, holder)
    )


def _dtype_of(letters: str, itemsize: int) -> str | None:
    swapped = letters[:1] in (">", "!") and itemsize > 1 and sys.byteorder == "little"
    plain = letters.lstrip("@=<>!")
    if plain in ("B", "c", "1s", ""):
        return None
    if plain in _LETTERS:
        name = _LETTERS[plain]
    elif plain in tuple("bhilqn"):
        name = f"int{8 * itemsize}"
    elif plain in tuple("HILQNP"):
        name = f"uint{8 * itemsize}"
    else:
        return "structure"
    return f"byte-swapped {name}" if swapped else name
