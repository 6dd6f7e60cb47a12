"""Axes and dtypes of reductions, scans and sorts."""

from __future__ import annotations

from collections.abc import Sequence

from ._arrays import Array, contiguous, dtype_name, is_torch, size_of


def limits(dtype: str) -> tuple[float, float]:
    """The least and the largest number of a dtype."""
    if dtype.startswith(("float", "bfloat")):
        return -float("inf"), float("inf")
    bits = int(dtype.removeprefix("u").removeprefix("int"))
    if dtype.startswith("u"):
        return 0, 2**bits - 1
    return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1


def accumulator(dtype: str) -> str:
    """The dtype in which numbers of this one are compared, or floats are added."""
    if dtype.startswith(("float", "bfloat")):
        return "float32"
    if dtype in ("int64", "uint64", "uint32"):
        return dtype
    return "int32"


def total_dtype(x: Array) -> str:
    """The dtype of a sum: floats keep theirs; that of integers and bools is the widest, as in NumPy."""
    name = dtype_name(x)
    if name.startswith(("float", "bfloat")):
        return name
    return "uint64" if name.startswith("uint") and not is_torch(x) else "int64"


def item_size(dtype: str) -> int:
    """The bytes of an element."""
    bits = "".join(each for each in dtype if each.isdigit())
    return int(bits or 8) // 8


def is_wide(sizes: Sequence[int]) -> bool:
    """Whether an offset may need 64 bits, also that of a masked lane."""
    return size_of(tuple(sizes)) >= 2**31 - 2**24


def as_rows(x: Array, axes: Sequence[int]) -> tuple[Array, tuple[int, int, int], list[int]]:
    """`x` with the reduced axes side by side and contiguous, its (outer, length, inner), and the order of its axes."""
    shape = tuple(x.shape)
    order = list(range(len(shape)))
    length = size_of(tuple(shape[axis] for axis in axes))
    wide = [axis for axis in order if shape[axis] != 1]
    reduced = [axis for axis in wide if axis in axes]
    if not reduced:
        return contiguous(x), (size_of(shape), 1, 1), order
    first, last = reduced[0], reduced[-1]
    if wide.index(last) - wide.index(first) + 1 == len(reduced):
        return contiguous(x), (size_of(shape[:first]), length, size_of(shape[last + 1 :])), order
    kept = [axis for axis in order if axis not in axes]
    order = kept + [axis for axis in order if axis in axes]
    outer = size_of(tuple(shape[axis] for axis in kept))
    return contiguous(permuted(x, order)), (outer, length, 1), order


def permuted(x: Array, order: Sequence[int]) -> Array:
    """`x` with its axes in another order."""
    return x.permute(*order) if is_torch(x) else x.transpose(*order)


def unpermuted(x: Array, order: Sequence[int]) -> Array:
    """The array of which `permuted(…, order)` is `x`."""
    back = sorted(range(len(order)), key=lambda place: order[place])
    return x if back == list(order) == list(range(len(order))) else contiguous(permuted(x, back))
