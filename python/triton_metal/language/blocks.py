"""Block pointers and tensor descriptors: tuples of run-time values and of what is known when compiling.

Control flow carries them like other tuples. A descriptor holds the compiler's descriptor, beside the sizes and strides
that kernels may ask for; a block pointer holds its parts, of which each access makes the compiler's block pointer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .. import _native
from .._native import AtomicOp, tensor
from ..constexpr import unwrap
from .building import (
    builder,
    builtin,
    describe,
    read_shape,
    read_static,
    read_tensor,
    tensor_method,
)

#: What a launch knows of a descriptor and the compiler does not: attributes of an argument.
PADS_WITH_NAN = "tt.pads_with_nan"
ROUNDS_TO_TF32 = "tt.rounds_to_tf32"
NON_OVERLAPPING = "tt.non_overlapping"
#: The next arguments are its sizes and strides.
SHAPE_FOLLOWS = "tt.shape_follows"


def encode(*parts: Any) -> str:
    """Compile-time parts as a string, which control flow carries unchanged."""
    return "/".join(
        ",".join(map(str, p)) if isinstance(p, (list, tuple)) else str(p) for p in parts
    )


def decode(numbers: str) -> list[int]:
    return [int(number) for number in numbers.split(",")]


def read_numbers(name: str, values: Any) -> tuple[Any, ...]:
    """A tuple of scalar tensors and numbers."""
    values = unwrap(values)
    if not isinstance(values, (tuple, list)):
        raise TypeError(f"{name} must be a tuple or a list of integers, not {describe(values)}")
    numbers = tuple(map(unwrap, values))
    for number in numbers:
        if isinstance(number, (bool, float)) or not isinstance(number, (int, tensor)):
            raise TypeError(f"{name} must hold integers, not {describe(number)}")
    return numbers


def read_base(name: str, base: Any) -> tensor:
    if not isinstance(base, tensor):
        raise TypeError(f"{name}: the base must be a pointer, not {describe(base)}")
    return base


class block_pointer(NamedTuple):
    """What ``make_block_ptr`` makes."""

    base: tensor
    sizes: tuple
    steps: tuple
    offsets: tuple
    layout: str

    @property
    def block_shape(self) -> list[int]:
        return decode(self.layout)

    @property
    def contents(self) -> str:
        """What it points to, for messages."""
        return self.base.type.name

    def in_memory(self, padding: str = "") -> tuple[Any, ...]:
        """As the native module takes it."""
        return self.base, list(self.sizes), list(self.steps), self.block_shape, padding

    def member(self, name: str) -> Any:
        """An attribute, in a kernel."""
        if name in ("dtype", "type"):
            return self.base.dtype
        if name == "advance":
            return advance
        raise AttributeError(name)


class tensor_descriptor(NamedTuple):
    """What ``make_tensor_descriptor`` makes, and what a host descriptor is in a kernel."""

    handle: tensor
    sizes: tuple
    steps: tuple

    @property
    def block_shape(self) -> list[int]:
        return list(self.handle.type.shape)

    @property
    def contents(self) -> str:
        """What it describes, for messages."""
        return self.handle.type.element_ty.name

    def member(self, name: str) -> Any:
        """An attribute, in a kernel. A function of the language is a method."""
        if name in METHODS:
            return METHODS[name]
        if name == "shape":
            return self.sizes
        if name == "strides":
            return self.steps
        if name == "block_shape":
            return tuple(self.block_shape)
        if name == "dtype":
            return self.handle.type.element_ty
        raise AttributeError(name)


class descriptor_parts(NamedTuple):
    """A parameter that is no descriptor of the compiler's yet: the kernel makes one of its parts."""

    base: Any
    sizes: tuple
    steps: tuple  # the last stride is 1, and not among them
    layout: str

    def made(self, build: _native.Builder) -> tensor_descriptor:
        """The descriptor, made where the builder stands."""
        block, padding, known = read_layout(self.layout)
        tensor = self.base, list(self.sizes), [*self.steps, 1], block, padding
        handle, sizes, steps = _native.make_descriptor(build, tensor, ROUNDS_TO_TF32 in known)
        return tensor_descriptor(handle, tuple(sizes), tuple(steps))


def read_layout(layout: str) -> tuple[list[int], str, list[str]]:
    """The shape of a block, the padding, and which attributes of the descriptor are true."""
    block, padding, *known = layout.split("/")
    return decode(block), padding, known


BLOCKS = (block_pointer, tensor_descriptor)


# --- Block pointers ---------------------------------------------------------------------------------


@builtin
def make_block_ptr(base, shape, strides, offsets, block_shape, order):
    """A pointer to a block of a tensor: the tensor's base, shape and strides, and the block's offsets and shape.

    ``order`` lists the dimensions from the fastest one.
    """
    block = read_shape(block_shape)
    places = read_numbers("offsets", offsets)
    pointer = block_pointer(
        read_base("make_block_ptr", base),
        read_numbers("shape", shape),
        read_numbers("strides", strides),
        tuple(_native.block_offset(builder(), offset) for offset in places),
        encode(block),
    )
    _native.check_block_pointer(pointer.in_memory(), len(places), read_shape(order))
    return pointer


@tensor_method
@builtin
def advance(base, offsets):
    """The block pointer, moved by an offset in each dimension."""
    if not isinstance(base, block_pointer):
        raise TypeError(f"advance takes a block pointer, not {describe(base)}")
    moves = read_numbers("offsets", offsets)
    if len(moves) != len(base.offsets):
        raise ValueError(
            f"advance: {len(moves)} offsets are given for a block of {len(base.offsets)} dimensions"
        )
    add = _native.BinaryOp.add
    moved = [
        builder().binary(add, offset, _native.block_offset(builder(), by))
        for offset, by in zip(base.offsets, moves, strict=True)
    ]
    return base._replace(offsets=tuple(moved))


def _checked(name: str, pointer: block_pointer, mask: Any, boundary_check: Any) -> list[int]:
    """The dimensions whose bounds are checked."""
    if mask is not None:
        raise ValueError(f"{name}: a block pointer has no mask; use boundary_check")
    dims = unwrap(boundary_check)
    rank = len(pointer.sizes)
    return [
        dim + rank if -rank <= dim < 0 else dim for dim in read_shape(() if dims is None else dims)
    ]


def load_block(
    pointer: block_pointer,
    mask: Any,
    other: Any,
    boundary_check: Any,
    padding_option: Any,
    hints: tuple[str, str, bool],
) -> tensor:
    checked = _checked("load", pointer, mask, boundary_check)
    if other is not None:
        raise ValueError("load: a block pointer has no `other`; use padding_option")
    padding = read_static("padding_option", padding_option) or ""
    return _native.load_block(
        builder(), pointer.in_memory(str(padding)), list(pointer.offsets), checked, *hints
    )


def store_block(
    pointer: block_pointer, value: Any, mask: Any, boundary_check: Any, hints: tuple[str, str]
) -> None:
    checked = _checked("store", pointer, mask, boundary_check)
    _native.store_block(
        builder(), pointer.in_memory(), list(pointer.offsets), checked, unwrap(value), *hints
    )


# --- Tensor descriptors -----------------------------------------------------------------------------


@builtin
def make_tensor_descriptor(base, shape, strides, block_shape, padding_option="zero"):
    """A descriptor of a tensor in memory, which is accessed in blocks. Nothing outside of it is read or written."""
    padding = read_static("padding_option", padding_option)
    steps = read_numbers("strides", strides)
    if steps and not isinstance(steps[-1], int):
        raise ValueError(
            "make_tensor_descriptor: the last stride is known only at run time; a descriptor's last dimension is "
            "contiguous: write 1"
        )
    whole = (
        read_base("make_tensor_descriptor", base),
        list(read_numbers("shape", shape)),
        list(steps),
        read_shape(block_shape),
        str(padding),
    )
    handle, sizes, strides = _native.make_descriptor(builder(), whole, False)
    return tensor_descriptor(handle, tuple(sizes), tuple(strides))


def _descriptor(name: str, value: Any) -> tensor_descriptor:
    if not isinstance(value, tensor_descriptor):
        raise TypeError(f"{name} takes a tensor descriptor, not {describe(value)}")
    return value


def _offsets(offsets: Any) -> list[Any]:
    return list(read_numbers("offsets", offsets))


@builtin
def load_tensor_descriptor(desc, offsets):
    """The block of a tensor descriptor at these offsets."""
    desc = _descriptor("load_tensor_descriptor", desc)
    return _native.load_descriptor(builder(), desc.handle, _offsets(offsets))


@builtin
def store_tensor_descriptor(desc, offsets, value):
    """Writes a block of a tensor descriptor at these offsets."""
    desc = _descriptor("store_tensor_descriptor", desc)
    _native.store_descriptor(builder(), desc.handle, _offsets(offsets), unwrap(value))


def _gather(desc: Any, x_offsets: Any, y_offset: Any) -> tensor:
    """The parts of these rows that begin at a column."""
    rows = read_tensor("x_offsets", unwrap(x_offsets))
    return _native.gather_rows(builder(), desc.handle, rows, unwrap(y_offset))


def _scatter(desc: Any, value: Any, x_offsets: Any, y_offset: Any) -> None:
    """Writes the parts of these rows that begin at a column."""
    rows = read_tensor("x_offsets", unwrap(x_offsets))
    _native.scatter_rows(builder(), desc.handle, rows, unwrap(y_offset), unwrap(value))


#: The dtypes of a descriptor's updates: not the integers of less than 32 bits, as in stock Triton.
_INTEGERS = ("int32", "uint32", "int64", "uint64")
_FLOATS = ("fp16", "bf16", "fp32")
_UPDATED = {
    **{f"atomic_{name}": (*_INTEGERS, *_FLOATS) for name in ("add", "min", "max")},
    **{f"atomic_{name}": _INTEGERS for name in ("and", "or", "xor")},
}


def _update(name: str, op: AtomicOp) -> Callable[..., None]:
    def update(desc: Any, offsets: Any, value: Any) -> None:
        element = _descriptor(name, desc).handle.type.element_ty.name
        if element not in _UPDATED[name]:
            raise TypeError(
                f"{name} on a tensor descriptor takes {', '.join(_UPDATED[name])}, not {element}: use tl.{name}"
            )
        places: Sequence[Any] = _offsets(offsets)
        _native.reduce_descriptor(builder(), op, desc.handle, places, unwrap(value))

    update.__name__ = update.__qualname__ = name
    return builtin(update)


METHODS: dict[str, Any] = {
    "load": load_tensor_descriptor,
    "store": store_tensor_descriptor,
    "gather": builtin(_gather),
    "scatter": builtin(_scatter),
    "atomic_add": _update("atomic_add", AtomicOp.add),
    "atomic_min": _update("atomic_min", AtomicOp.min),
    "atomic_max": _update("atomic_max", AtomicOp.max),
    "atomic_and": _update("atomic_and", AtomicOp.and_),
    "atomic_or": _update("atomic_or", AtomicOp.or_),
    "atomic_xor": _update("atomic_xor", AtomicOp.xor),
}
"""The methods of a tensor descriptor."""
