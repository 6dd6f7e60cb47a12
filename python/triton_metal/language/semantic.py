"""The operations of the language by name, for functions that programs write with `triton.language.core.builtin`.

Such a function receives a `TritonSemantic` as ``_semantic``. The functions of this package do not use it: the rules are
in C++ (compiler/language).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _native
from .._native import AtomicOp, BinaryOp, Hint, UnaryOp, dtype, tensor
from ..constexpr import unwrap
from . import blocks, core
from .building import broadcast_all, describe, read_nan
from .values import plain


class IncompatibleTypeErrorImpl(TypeError):
    """Two types that do not go together."""

    def __init__(self, type_a: Any, type_b: Any) -> None:
        self.type_a, self.type_b = type_a, type_b
        self.message = f"invalid operands of type {type_a!r} and {type_b!r}"
        super().__init__(self.message)


class SemanticBuilder:
    """The builder of a walk, as ``_semantic.builder``: its options. It makes no operations of Triton IR by itself."""

    def __init__(self, builder: _native.Builder, options: Any) -> None:
        self.native = builder
        self.options = options
        self.codegen_fns: dict[str, Any] = {}
        self.module_map: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"_semantic.builder has no {name!r}: triton-metal builds no operations of Triton IR one by one. Use the "
            "methods of _semantic, or functions of triton.language with _semantic=_semantic"
        )


def _binary(op: BinaryOp, doc: str) -> Any:
    def method(self: TritonSemantic, input: Any, other: Any, *sanitize_overflow: Any) -> tensor:
        return self._native.binary(op, unwrap(input), unwrap(other))

    method.__doc__ = doc
    return method


def _unary(op: UnaryOp, doc: str) -> Any:
    def method(self: TritonSemantic, input: Any) -> tensor:
        return self._native.unary(op, self.to_tensor(input))

    method.__doc__ = doc
    return method


def _atomic(op: AtomicOp) -> Any:
    def method(self: Any, ptr: Any, val: Any, mask: Any, sem: Any, scope: Any) -> tensor:
        sem, scope = (unwrap(part) or "" for part in (sem, scope))
        return self._native.atomic_rmw(op, ptr, unwrap(val), unwrap(mask), sem, scope)

    method.__doc__ = "Updates memory atomically; returns the old value."
    return method


def _update(name: str) -> Any:
    def method(self: Any, desc: Any, value: Any, offsets: Any) -> None:
        return blocks.METHODS[name](desc, plain(offsets), value)

    method.__doc__ = f"{name} on a block of a tensor descriptor."
    return method


def _hint(kind: Hint) -> Any:
    def method(self: Any, x: tensor, values: Any) -> tensor:
        self._native.hint(kind, x, [unwrap(value) for value in unwrap(values)])
        return x

    method.__doc__ = "Asserts a property of values to the compiler; returns them."
    return method


class TritonSemantic:
    """The operations of the language on tensors, numbers and constexpr."""

    tensor = tensor
    lang = core

    def __init__(self, generator: Any) -> None:
        self._generator = generator
        self._native: _native.Builder = generator.builder
        self.builder = SemanticBuilder(generator.builder, generator.options)

    # --- Values ---------------------------------------------------------------------------------------

    def to_tensor(self, x: Any, check_type: bool = True) -> Any:
        """A number as a tensor of its default dtype; a tensor unchanged."""
        x = unwrap(x)
        if isinstance(x, tensor):
            return x
        if isinstance(x, (bool, int, float)):
            return self._native.to_tensor(x)
        if check_type:
            raise TypeError(f"cannot convert {describe(x)} to a tensor")
        return x

    def to_tensor_type(self, x: Any) -> dtype:
        """The type that a constexpr's type has as a tensor."""
        value = unwrap(getattr(x, "value", x))
        return x if isinstance(x, dtype) else self._native.type_of(value)

    def make_tensor(self, handle: tensor, type: dtype) -> tensor:
        """A tensor from its value, which here is the tensor itself."""
        if handle.type != type:
            raise TypeError(f"a value of type {handle.type} cannot become one of type {type}")
        return handle

    def scalar_constant(self, value: Any, dtype: dtype) -> tensor:
        """A number as a scalar of a dtype."""
        return self._native.full([], unwrap(value), dtype)

    def make_scalar(self, value: Any, dtype: dtype) -> tensor:
        """A number or a scalar, in a dtype."""
        value = unwrap(value)
        if isinstance(value, tensor):
            return self.cast(value, dtype)
        return self.scalar_constant(value, dtype)

    def full(self, shape: Any, value: Any, dtype: dtype) -> tensor:
        """A tile filled with one value."""
        return core.full(plain(shape), value, dtype)

    def arange(self, start: Any, end: Any, *, ret_ty: Any = None) -> tensor:
        """The tile start, start + 1, ..., end - 1."""
        return core.arange(start, end)

    def program_id(self, axis: Any) -> tensor:
        """The index of this program along an axis."""
        return core.program_id(axis)

    def num_programs(self, axis: Any) -> tensor:
        """The length of the grid along an axis."""
        return core.num_programs(axis)

    # --- Types ----------------------------------------------------------------------------------------

    def integer_promote_impl(self, a_ty: dtype, b_ty: dtype) -> dtype:
        """The integer type of an operation on two integer types."""
        return self.computation_type_impl(a_ty, False, b_ty, False, False)

    def computation_type_impl(
        self, a_ty: dtype, a_is_scalar: bool, b_ty: dtype, b_is_scalar: bool, div_or_mod: bool
    ) -> dtype:
        """The type in which an operation on two types computes."""
        return self._native.computation_type(a_ty, a_is_scalar, b_ty, b_is_scalar, div_or_mod)

    def binary_op_type_checking_impl(
        self,
        lhs: Any,
        rhs: Any,
        allow_lhs_ptr: bool = False,
        allow_rhs_ptr: bool = False,
        arithmetic_check: bool = True,
        div_or_mod: bool = False,
    ) -> tuple[tensor, tensor]:
        """Both operands in one type and shape."""
        lhs, rhs = unwrap(lhs), unwrap(rhs)
        numbers = [not isinstance(value, tensor) for value in (lhs, rhs)]
        left, right = self.to_tensor(lhs), self.to_tensor(rhs)
        if (left.dtype.is_ptr() and not allow_lhs_ptr) or (
            right.dtype.is_ptr() and not allow_rhs_ptr
        ):
            raise IncompatibleTypeErrorImpl(left.dtype, right.dtype)
        if arithmetic_check and not (left.dtype.is_ptr() or right.dtype.is_ptr()):
            common = self.computation_type_impl(
                left.dtype, numbers[0], right.dtype, numbers[1], div_or_mod
            )
            left = self.scalar_constant(lhs, common) if numbers[0] else self.cast(left, common)
            right = self.scalar_constant(rhs, common) if numbers[1] else self.cast(right, common)
        return tuple(self._native.broadcast(left, right))

    def bitwise_op_type_checking_impl(self, input: Any, other: Any) -> tuple[tensor, tensor]:
        """Two integers in one type and shape."""
        left, right = self.binary_op_type_checking_impl(input, other)
        if not left.dtype.is_int():
            raise IncompatibleTypeErrorImpl(left.dtype, right.dtype)
        return left, right

    def ternary_op_type_checking_impl(
        self, a: Any, b: Any, c: Any
    ) -> tuple[tensor, tensor, tensor]:
        """Three operands in one type and shape."""
        left, middle = self.binary_op_type_checking_impl(a, b)
        left, right = self.binary_op_type_checking_impl(left, c)
        middle, right = self.binary_op_type_checking_impl(middle, right)
        left, right = self.binary_op_type_checking_impl(left, right)
        return left, middle, right

    def check_ptr_type_impl(self, type_a: dtype, type_b: dtype, allow_ptr_a: bool) -> None:
        """Refuses a pointer where none is allowed, and one with a floating-point number."""
        if type_a.is_ptr() and (not allow_ptr_a or type_b.is_floating() or type_a == type_b):
            raise IncompatibleTypeErrorImpl(type_a, type_b)

    # --- Arithmetic -----------------------------------------------------------------------------------

    add = _binary(BinaryOp.add, "x + y.")
    sub = _binary(BinaryOp.sub, "x - y.")
    mul = _binary(BinaryOp.mul, "x * y.")
    truediv = _binary(BinaryOp.truediv, "x / y.")
    floordiv = _binary(BinaryOp.floordiv, "x // y.")
    mod = _binary(BinaryOp.mod, "x % y.")
    and_ = _binary(BinaryOp.and_, "x & y.")
    or_ = _binary(BinaryOp.or_, "x | y.")
    xor_ = _binary(BinaryOp.xor, "x ^ y.")
    logical_and = _binary(BinaryOp.logical_and, "x and y.")
    logical_or = _binary(BinaryOp.logical_or, "x or y.")
    shl = _binary(BinaryOp.lshift, "x << y.")
    greater_than = _binary(BinaryOp.gt, "x > y.")
    greater_equal = _binary(BinaryOp.ge, "x >= y.")
    less_than = _binary(BinaryOp.lt, "x < y.")
    less_equal = _binary(BinaryOp.le, "x <= y.")
    equal = _binary(BinaryOp.eq, "x == y.")
    not_equal = _binary(BinaryOp.ne, "x != y.")
    not_ = _unary(UnaryOp.not_, "not x.")
    plus = _unary(UnaryOp.pos, "+x.")
    minus = _unary(UnaryOp.neg, "-x.")
    invert = _unary(UnaryOp.invert, "~x.")

    def _shift(self, input: Any, other: Any, signed: bool) -> tensor:
        value = self.to_tensor(input)
        kind = core.get_int_dtype(value.dtype.int_bitwidth, signed)
        shifted = self._native.binary(BinaryOp.rshift, self.bitcast(value, kind), unwrap(other))
        return self.bitcast(shifted, value.dtype)

    def ashr(self, input: Any, other: Any) -> tensor:
        """x >> y with copies of the sign."""
        return self._shift(input, other, True)

    def lshr(self, input: Any, other: Any) -> tensor:
        """x >> y with zeros."""
        return self._shift(input, other, False)

    def fdiv(self, input: Any, other: Any, ieee_rounding: Any) -> tensor:
        """x / y of floating-point numbers."""
        return self._native.fdiv(unwrap(input), unwrap(other), bool(unwrap(ieee_rounding)))

    def minimum(self, x: Any, y: Any, propagate_nan: Any) -> tensor:
        """The smaller of two values."""
        return self._native.minimum(unwrap(x), unwrap(y), read_nan(propagate_nan))

    def maximum(self, x: Any, y: Any, propagate_nan: Any) -> tensor:
        """The larger of two values."""
        return self._native.maximum(unwrap(x), unwrap(y), read_nan(propagate_nan))

    def clamp(self, x: Any, min: Any, max: Any, propagate_nan: Any) -> tensor:
        """x, limited to the range from min to max."""
        return self._native.clamp(unwrap(x), unwrap(min), unwrap(max), read_nan(propagate_nan))

    def where(self, condition: Any, x: Any, y: Any) -> tensor:
        """x where the condition is true, y elsewhere."""
        return self._native.where(unwrap(condition), unwrap(x), unwrap(y))

    # --- Shapes and dtypes ----------------------------------------------------------------------------

    def splat(self, value: tensor, shape: Any) -> tensor:
        """A scalar as a tile."""
        return self._native.splat(value, list(plain(shape)))

    def unsplat(self, value: tensor) -> tensor:
        """The scalar in a tile of one element."""
        return self._native.unsplat(value)

    def reshape(self, input: tensor, dst_shape: Any, can_reorder: Any) -> tensor:
        """The same elements in another shape."""
        return self._native.reshape(input, list(plain(dst_shape)), bool(unwrap(can_reorder)))

    def expand_dims(self, input: tensor, axis: Any) -> tensor:
        """The tile with another dimension of size 1."""
        return self._native.expand_dims(input, unwrap(axis))

    def cat(self, lhs: tensor, rhs: tensor, can_reorder: Any) -> tensor:
        """Two tiles behind each other."""
        return core.cat(lhs, rhs, can_reorder)

    def join(self, a: tensor, b: tensor) -> tensor:
        """Two tiles along a new last dimension."""
        return self._native.join(a, b)

    def split(self, a: tensor) -> tuple[tensor, tensor]:
        """The two halves of a tile whose last dimension has size 2."""
        return tuple(self._native.split(a))

    def permute(self, input: tensor, dims: Any) -> tensor:
        """The tile with permuted dimensions."""
        return self._native.permute(input, list(plain(dims)))

    def broadcast_impl_shape(self, input: tensor, shape: Any) -> tensor:
        """The tile, broadcast to a shape."""
        return self._native.broadcast_to(input, list(plain(shape)))

    def broadcast_impl_value(self, lhs: tensor, rhs: tensor) -> tuple[tensor, tensor]:
        """Two tiles in their common shape."""
        return tuple(self._native.broadcast(lhs, rhs))

    def broadcast_tensors(self, *inputs: tensor) -> Sequence[tensor]:
        """Tiles in their common shape."""
        return broadcast_all(inputs, self._native)

    def bitcast(self, input: tensor, dst_ty: dtype) -> tensor:
        """The bits as another dtype."""
        return self._native.bitcast(input, dst_ty.scalar)

    def cast(self, input: tensor, dst_ty: dtype, fp_downcast_rounding: Any = None) -> tensor:
        """The value in another dtype."""
        return self._native.cast(input, dst_ty.scalar, unwrap(fp_downcast_rounding) or "")

    # --- Memory ---------------------------------------------------------------------------------------

    def load(self, ptr: tensor, mask: Any, other: Any, *hints: Any) -> tensor:
        """Reads through a pointer. ``hints`` are the cache modifier, the eviction policy and whether it is volatile."""
        cache, eviction, volatile = (*map(unwrap, hints), *(None, None, None)[len(hints) :])
        return core.load(
            ptr,
            mask,
            other,
            cache_modifier=cache or "",
            eviction_policy=eviction or "",
            volatile=bool(volatile),
        )

    def store(self, ptr: tensor, val: Any, mask: Any, *hints: Any) -> None:
        """Writes through a pointer. ``hints`` are the cache modifier and the eviction policy."""
        cache, eviction = (*map(unwrap, hints), *(None, None)[len(hints) :])
        core.store(ptr, val, mask, cache_modifier=cache or "", eviction_policy=eviction or "")

    def descriptor_load(self, desc: Any, offsets: Any, *hints: Any) -> tensor:
        """The block of a tensor descriptor at these offsets."""
        return blocks.load_tensor_descriptor(desc, plain(offsets))

    def descriptor_store(self, desc: Any, value: tensor, offsets: Any) -> None:
        """Writes a block of a tensor descriptor."""
        blocks.store_tensor_descriptor(desc, plain(offsets), value)

    def descriptor_gather(self, desc: Any, x_offsets: Any, y_offset: Any, *hints: Any) -> tensor:
        """The parts of these rows that begin at a column."""
        return blocks.METHODS["gather"](desc, x_offsets, y_offset)

    def descriptor_scatter(self, desc: Any, value: tensor, x_offsets: Any, y_offset: Any) -> None:
        """Writes the parts of these rows that begin at a column."""
        blocks.METHODS["scatter"](desc, value, x_offsets, y_offset)

    descriptor_atomic_add = _update("atomic_add")
    descriptor_atomic_min = _update("atomic_min")
    descriptor_atomic_max = _update("atomic_max")
    descriptor_atomic_and = _update("atomic_and")
    descriptor_atomic_or = _update("atomic_or")
    descriptor_atomic_xor = _update("atomic_xor")

    def make_tensor_descriptor(
        self, base: tensor, shape: Any, strides: Any, block_shape: Any, padding_option: Any = "zero"
    ) -> Any:
        """A descriptor of a tensor in memory."""
        return blocks.make_tensor_descriptor(
            base, plain(shape), plain(strides), plain(block_shape), unwrap(padding_option)
        )

    atomic_add = _atomic(AtomicOp.add)
    atomic_and = _atomic(AtomicOp.and_)
    atomic_or = _atomic(AtomicOp.or_)
    atomic_xor = _atomic(AtomicOp.xor)
    atomic_max = _atomic(AtomicOp.max)
    atomic_min = _atomic(AtomicOp.min)
    atomic_xchg = _atomic(AtomicOp.xchg)

    def atomic_load(self, ptr: tensor, mask: Any, sem: Any, scope: Any) -> tensor:
        """Loads atomically."""
        return core.atomic_load(ptr, mask, sem, scope)

    def atomic_store(self, ptr: tensor, val: Any, mask: Any, sem: Any, scope: Any) -> None:
        """Stores atomically."""
        core.atomic_store(ptr, val, mask, sem, scope)

    def atomic_cas(self, ptr: tensor, cmp: Any, val: Any, sem: Any, scope: Any) -> tensor:
        """Compares and swaps atomically."""
        return core.atomic_cas(ptr, cmp, val, sem, scope)

    def atomic_poll(
        self, ptr: tensor, expected: Any, sem: Any, scope: Any, timeout_ns: Any = None
    ) -> tensor:
        """Whether memory holds a value."""
        return core.atomic_poll(ptr, expected, sem, scope, timeout_ns)

    # --- Tiles ----------------------------------------------------------------------------------------

    def dot(
        self,
        lhs: tensor,
        rhs: tensor,
        acc: Any,
        input_precision: Any,
        max_num_imprecise_acc: Any,
        out_dtype: Any,
    ) -> tensor:
        """The matrix product of two tiles."""
        return core.dot(
            lhs,
            rhs,
            acc,
            input_precision=unwrap(input_precision),
            max_num_imprecise_acc=unwrap(max_num_imprecise_acc),
            out_dtype=unwrap(out_dtype),
        )

    def dot_scaled(self, *args: Any) -> tensor:
        """The matrix product of two tiles with scales."""
        return core.dot_scaled(*map(unwrap, args))

    def gather(self, src: tensor, index: tensor, axis: Any) -> tensor:
        """The elements that a tile of indices selects."""
        return core.gather(src, index, axis)

    def histogram(self, input: tensor, num_bins: Any, mask: Any = None) -> tensor:
        """How often each value occurs."""
        return core.histogram(input, num_bins, mask)

    # --- Hints and debugging --------------------------------------------------------------------------

    multiple_of = _hint(Hint.divisibility)
    max_contiguous = _hint(Hint.contiguity)
    max_constancy = _hint(Hint.constancy)

    def assume(self, cond: Any) -> None:
        """Asserts a scalar condition to the compiler."""
        self._native.assume(unwrap(cond))

    def debug_barrier(self) -> None:
        """Waits for all threads of the program."""
        self._native.debug_barrier()

    def device_print(self, prefix: Any, args: Sequence[Any], hex: Any = False) -> None:
        """Prints values at run time."""
        core.device_print(unwrap(prefix), *args, hex=hex)

    def device_assert(self, cond: Any, msg: Any, mask: Any = None) -> None:
        """Checks a condition at run time, with ``debug=True``."""
        core.device_assert(cond, msg, mask)

    def reduction(self, inputs: Sequence[tensor], axis: Any, region_builder_fn: Any) -> Any:
        """Not available: a region is made by `triton.language.reduce`."""
        raise NotImplementedError(
            "_semantic.reduction builds a region of Triton IR by hand: use triton.language.reduce"
        )

    def associative_scan(
        self, inputs: Sequence[tensor], axis: Any, region_builder_fn: Any, reverse: bool
    ) -> Any:
        """Not available: a region is made by `triton.language.associative_scan`."""
        raise NotImplementedError(
            "_semantic.associative_scan builds a region of Triton IR by hand: use triton.language.associative_scan"
        )
