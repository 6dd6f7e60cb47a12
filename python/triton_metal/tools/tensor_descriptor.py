"""Tensor descriptors as arguments of kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import LaunchTypeError, LaunchValueError

_MAX_RANK = 5


@dataclass
class TensorDescriptor:
    """A tensor in memory that a kernel accesses in blocks of one shape.

    Sizes and strides count elements; the last stride is 1. What a kernel loads outside of the tensor is 0, or NaN with
    ``padding="nan"``. ``round_f32_to_tf32`` rounds what it loads to tf32.
    """

    __triton_parts__ = True  # the launcher takes it apart

    base: Any
    shape: Sequence[int]
    strides: Sequence[int]
    block_shape: Sequence[int]
    padding: str = "zero"
    round_f32_to_tf32: bool = False

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Raises an error if a kernel cannot take the descriptor."""
        shape, strides, block = (
            integers(name, getattr(self, name)) for name in ("shape", "strides", "block_shape")
        )
        rank = len(shape)
        if not 1 <= rank <= _MAX_RANK:
            raise LaunchValueError(
                f"a tensor descriptor has 1 to {_MAX_RANK} dimensions, and its shape has {rank}"
            )
        for name, numbers in (("strides", strides), ("block_shape", block)):
            if len(numbers) != rank:
                raise LaunchValueError(
                    f"{name} of a tensor descriptor has {len(numbers)} numbers, but its shape has {rank}"
                )
        for size in shape:
            if not 0 <= size < 1 << 31:
                raise LaunchValueError(
                    f"a size of a tensor descriptor is from 0 to 2^31 - 1, not {size}"
                )
        for size in block:
            if size <= 0 or size & (size - 1):
                raise LaunchValueError(
                    f"a size of a descriptor's block is a power of 2, not {size}"
                )
        if strides[-1] != 1:
            raise LaunchValueError(
                f"the last stride of a tensor descriptor is {strides[-1]}; its last dimension must be contiguous, so "
                "that its stride is 1"
            )
        name = dtype_name(self.base)
        if self.padding not in ("zero", "nan"):
            raise LaunchValueError(
                f"padding of a tensor descriptor is {self.padding!r}; it can be 'zero' or 'nan'"
            )
        if self.padding == "nan" and "float" not in name:
            raise LaunchValueError(f"padding 'nan' is for floats, and the tensor has {name}")
        if self.round_f32_to_tf32 and name != "float32":
            raise LaunchValueError(f"round_f32_to_tf32 is for float32, and the tensor has {name}")

    @staticmethod
    def from_tensor(
        tensor: Any,
        block_shape: Sequence[int],
        padding: str = "zero",
        round_f32_to_tf32: bool = False,
    ) -> TensorDescriptor:
        """The descriptor of an array with its own shape and strides."""
        shape = list(tensor.shape)
        return TensorDescriptor(
            tensor, shape, strides_of(tensor, shape), list(block_shape), padding, round_f32_to_tf32
        )


def integers(name: str, values: Any) -> list[int]:
    try:
        return [value.__index__() for value in values]
    except (TypeError, AttributeError):
        raise LaunchTypeError(
            f"{name} of a tensor descriptor must be integers, not {values!r}"
        ) from None


def dtype_name(array: Any) -> str:
    """The name of an array's dtype, without its framework."""
    if not hasattr(array, "dtype"):
        raise LaunchTypeError(
            f"the base of a tensor descriptor is {array!r} ({type(array).__name__}); it takes an array"
        )
    return str(array.dtype).rpartition(".")[2]


def strides_of(array: Any, shape: list[int]) -> list[int]:
    """The strides of an array, in elements."""
    # NumPy's arrays without elements have strides of 0.
    if 0 in shape:
        return row_major(shape)
    if callable(getattr(array, "stride", None)):  # torch
        return list(array.stride())
    own = getattr(array, "strides", None)
    if own is not None:  # NumPy counts bytes
        size = array.dtype.itemsize
        if any(stride % size for stride in own):
            raise LaunchValueError("the strides of the array are no multiples of its elements")
        return [stride // size for stride in own]
    return row_major(shape)  # as MLX's arrays reach kernels


def row_major(shape: list[int]) -> list[int]:
    """The strides of rows that follow each other."""
    strides = [1]
    for size in reversed(shape[1:]):
        strides.insert(0, strides[0] * size)
    return strides
