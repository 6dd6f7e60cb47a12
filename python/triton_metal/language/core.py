"""The operations of the compiler. Their rules are in C++ (compiler/language)."""

from __future__ import annotations

import builtins
import functools
import warnings
from collections.abc import Callable
from typing import Any

from .. import knobs
from .._native import BinaryOp, MathOp, UnaryOp, dtype, tensor
from ..constexpr import const as const
from ..constexpr import constexpr as constexpr
from ..constexpr import unwrap as unwrap
from ..functions import constexpr_function
from .aggregates import _aggregate as _aggregate
from .aggregates import aggregate_replace as aggregate_replace
from .blocks import (
    advance as advance,
)
from .blocks import (
    load_tensor_descriptor as load_tensor_descriptor,
)
from .blocks import (
    make_block_ptr as make_block_ptr,
)
from .blocks import (
    make_tensor_descriptor as make_tensor_descriptor,
)
from .blocks import (
    store_tensor_descriptor as store_tensor_descriptor,
)
from .blocks import (
    tensor_descriptor as tensor_descriptor,
)
from .building import (
    PropagateNan,
    builder,
    builtin,
    current_generator,
    describe,
    read_dtype,
    read_int,
    read_nan,
    read_shape,
    read_static,
    read_tensor,
    spread,
    tensor_method,
    wrap_axis,
)
from .building import (
    active as active,
)
from .building import (
    is_builtin as is_builtin,
)
from .building import (
    tensor_methods as tensor_methods,
)
from .debugging import (
    assume as assume,
)
from .debugging import (
    debug_barrier as debug_barrier,
)
from .debugging import (
    device_assert as device_assert,
)
from .debugging import (
    device_print as device_print,
)
from .debugging import (
    max_constancy as max_constancy,
)
from .debugging import (
    max_contiguous as max_contiguous,
)
from .debugging import (
    multiple_of as multiple_of,
)
from .debugging import (
    static_assert as static_assert,
)
from .debugging import (
    static_print as static_print,
)
from .externs import (
    binary_op_type_legalization as binary_op_type_legalization,
)
from .externs import (
    dispatch as dispatch,
)
from .externs import (
    extern as extern,
)
from .externs import (
    extern_elementwise as extern_elementwise,
)
from .externs import (
    inline_asm_elementwise as inline_asm_elementwise,
)
from .loops import condition as condition
from .loops import range as range
from .loops import static_range as static_range
from .memory import (
    atomic_add as atomic_add,
)
from .memory import (
    atomic_and as atomic_and,
)
from .memory import (
    atomic_cas as atomic_cas,
)
from .memory import (
    atomic_load as atomic_load,
)
from .memory import (
    atomic_max as atomic_max,
)
from .memory import (
    atomic_min as atomic_min,
)
from .memory import (
    atomic_or as atomic_or,
)
from .memory import (
    atomic_poll as atomic_poll,
)
from .memory import (
    atomic_store as atomic_store,
)
from .memory import (
    atomic_xchg as atomic_xchg,
)
from .memory import (
    atomic_xor as atomic_xor,
)
from .memory import (
    load as load,
)
from .memory import (
    store as store,
)
from .overflow import checked_binary
from .types import (
    bfloat16 as bfloat16,
)
from .types import (
    block_type as block_type,
)
from .types import (
    float8e4b8 as float8e4b8,
)
from .types import (
    float8e4b15 as float8e4b15,
)
from .types import (
    float8e4nv as float8e4nv,
)
from .types import (
    float8e5 as float8e5,
)
from .types import (
    float8e5b16 as float8e5b16,
)
from .types import (
    float16 as float16,
)
from .types import (
    float32 as float32,
)
from .types import (
    float64 as float64,
)
from .types import (
    int1 as int1,
)
from .types import (
    int8 as int8,
)
from .types import (
    int16 as int16,
)
from .types import (
    int32 as int32,
)
from .types import (
    int64 as int64,
)
from .types import (
    pi32_t as pi32_t,
)
from .types import (
    pointer_type as pointer_type,
)
from .types import (
    uint8 as uint8,
)
from .types import (
    uint16 as uint16,
)
from .types import (
    uint32 as uint32,
)
from .types import (
    uint64 as uint64,
)
from .types import (
    void as void,
)
from .values import (
    base_type as base_type,
)
from .values import (
    base_value as base_value,
)
from .values import (
    constexpr_type as constexpr_type,
)
from .values import plain
from .values import (
    slice as slice,
)
from .values import (
    slice_type as slice_type,
)
from .values import (
    tensor_descriptor_base_type as tensor_descriptor_base_type,
)
from .values import (
    tensor_descriptor_type as tensor_descriptor_type,
)
from .values import (
    tuple as tuple,
)
from .values import (
    tuple_type as tuple_type,
)

TRITON_MAX_TENSOR_NUMEL = 1 << 20
TRITON_BUILTIN = "__triton_builtin__"

tensor_descriptor_base = tensor_descriptor


def must_use_result(x: Any, s: Any = True) -> Any:
    """A decorator: a kernel that calls the function and does not use its result is refused, with this reason."""
    if isinstance(x, str):
        return lambda fn: must_use_result(fn, x)
    x._must_use_result = s
    return x


def _unwrap_if_constexpr(o: Any) -> Any:
    """The plain value of a constexpr, in lists and tuples, too."""
    if isinstance(o, list):
        return [_unwrap_if_constexpr(x) for x in o]
    return plain(o)


# --- Programs and tiles -----------------------------------------------------------------------------


@builtin
def program_id(axis):
    """The index of this program in the grid along axis 0, 1 or 2."""
    return builder().program_id(read_int("axis", axis))


@builtin
def num_programs(axis):
    """The length of the grid along axis 0, 1 or 2."""
    return builder().num_programs(read_int("axis", axis))


@builtin
def to_tensor(x):
    """A number as a tensor of its default dtype; a tensor unchanged."""
    return read_tensor("x", x)


@builtin
def arange(start, end):
    """The int32 tile ``start, start + 1, ..., end - 1``. Its length must be a power of 2."""
    return builder().arange(read_int("start", start), read_int("end", end))


@builtin
def full(shape, value, dtype):
    """A tile filled with one value."""
    return builder().full(read_shape(shape), unwrap(value), read_dtype("dtype", dtype))


@builtin
def broadcast(input, other):
    """Both operands, broadcast to their common shape."""
    return builtins.tuple(
        builder().broadcast(read_tensor("input", input), read_tensor("other", other))
    )


@tensor_method
@builtin
def broadcast_to(input, *shape):
    """The tile, broadcast to a shape by repeating dimensions of size 1."""
    return builder().broadcast_to(read_tensor("input", input), read_shape(spread(shape)))


@tensor_method
@builtin
def permute(input, *dims):
    """The tile with permuted dimensions."""
    return builder().permute(input, [read_int("dims", d) for d in spread(dims)])


@tensor_method
@builtin
def trans(input, *dims):
    """The transpose: the last two dimensions swapped, or the given order of dimensions."""
    order = list(spread(dims))
    if not order:
        rank = len(input.shape)
        if rank < 2:
            raise ValueError(f"trans takes a tile of at least 2 dimensions, not {input.type}")
        order = [*builtins.range(rank - 2), rank - 1, rank - 2]
    return permute(input, *order)


@tensor_method
@builtin
def reshape(input, *shape, can_reorder=False):
    """The same elements, in row-major order, with another shape."""
    reorder = bool(read_static("can_reorder", can_reorder))
    return builder().reshape(read_tensor("input", input), read_shape(spread(shape)), reorder)


@tensor_method
@builtin
def view(input, *shape):
    """Like reshape, but the order of the elements is unspecified."""
    return builder().reshape(read_tensor("input", input), read_shape(spread(shape)), True)


@tensor_method
@builtin
def item(input):
    """The scalar in a tile of one element."""
    return builder().unsplat(input)


@tensor_method
@builtin
def expand_dims(input, axis):
    """The tile with a new dimension of size 1 at each of the given axes."""
    input = read_tensor("input", input)
    axis = unwrap(axis)
    axes = list(axis) if isinstance(axis, (builtins.tuple, list)) else [axis]
    rank = len(input.shape) + len(axes)
    axes = sorted(wrap_axis(read_int("axis", a), rank) for a in axes)
    if len(set(axes)) != len(axes):
        raise ValueError(f"expand_dims names an axis twice: {axes}")
    for a in axes:
        input = builder().expand_dims(input, a)
    return input


@builtin
def cat(input, other, can_reorder=False, dim=0):
    """Two tiles of the same shape, concatenated along a dimension."""
    if read_static("can_reorder", can_reorder):
        return builder().cat(input, other)
    rank = len(input.shape)
    if input.shape != other.shape:
        raise ValueError(f"cat takes tiles of one shape, not {input.type} and {other.type}")
    dim = wrap_axis(read_int("dim", dim), rank)
    order = list(builtins.range(rank))
    order.insert(dim, rank)
    shape = list(input.shape)
    shape[dim] *= 2
    return builder().reshape(builder().permute(builder().join(input, other), order), shape, False)


@builtin
def join(a, b):
    """Two tiles, joined along a new last dimension of size 2."""
    return builder().join(read_tensor("a", a), read_tensor("b", b))


@tensor_method
@builtin
def split(a):
    """The two halves of a tile whose last dimension has size 2."""
    return builtins.tuple(builder().split(a))


@tensor_method
@builtin
def cast(input, dtype, fp_downcast_rounding=None, bitcast=False):
    """The value converted to another dtype; with ``bitcast``, its bits reinterpreted."""
    target = read_dtype("dtype", dtype)
    if read_static("bitcast", bitcast):
        return builder().bitcast(read_tensor("input", input), target)
    rounding = read_static("fp_downcast_rounding", fp_downcast_rounding)
    return builder().cast(read_tensor("input", input), target, rounding or "")


@builtin
def _to(input, dtype, fp_downcast_rounding=None, bitcast=False):
    return cast(input, dtype, fp_downcast_rounding, bitcast)


tensor_methods["to"] = _to


@builtin
def _logical_and(input, other):
    """Whether both are true, element by element."""
    return builder().binary(BinaryOp.logical_and, input, other)


@builtin
def _logical_or(input, other):
    """Whether one is true, element by element."""
    return builder().binary(BinaryOp.logical_or, input, other)


tensor_methods["logical_and"] = _logical_and
tensor_methods["logical_or"] = _logical_or


def _index_advice(input: tensor, index: Any) -> str:
    """What to write in the place of ``x[index]``."""
    if input.dtype.is_ptr() and not input.shape:
        offset = "index" if isinstance(index, (tensor, builtins.slice)) else repr(index)
        return f"a pointer has no elements to index: use tl.load(pointer + {offset})"
    return (
        f"a tensor index can only contain ':' and None, not {describe(index)}; "
        "use pointers, tl.gather or reductions to read elements"
    )


@builtin
def getitem(input, *slices):
    """``x[:, None]``: inserts a new dimension at each None."""
    result = input
    for dim, index in enumerate(slices):
        if index is None:
            result = builder().expand_dims(result, dim)
        # As in Triton, a ":" for a dimension that is not there changes nothing: kernels index scalars and rows alike.
        elif not (isinstance(index, builtins.slice) and index == builtins.slice(None)):
            raise ValueError(_index_advice(input, index))
    return result


# --- Arithmetic ------------------------------------------------------------------------------------


def _checked(op, x, y, sanitize_overflow):
    x, y = unwrap(x), unwrap(y)
    if read_static("sanitize_overflow", sanitize_overflow):
        return checked_binary(builder(), current_generator().options, op, x, y)
    return builder().binary(op, x, y)


@builtin
def add(x, y, sanitize_overflow=True):
    """x + y."""
    return _checked(BinaryOp.add, x, y, sanitize_overflow)


@builtin
def sub(x, y, sanitize_overflow=True):
    """x - y."""
    return _checked(BinaryOp.sub, x, y, sanitize_overflow)


@builtin
def mul(x, y, sanitize_overflow=True):
    """x * y."""
    return _checked(BinaryOp.mul, x, y, sanitize_overflow)


@builtin
def where(condition, x, y):
    """x if the condition is true, y elsewhere."""
    condition = unwrap(condition)
    if isinstance(condition, tensor) and not condition.dtype.is_bool():
        warnings.warn(
            f"where takes a boolean condition, not {condition.dtype}: write `condition != 0`",
            stacklevel=2,
        )
    return builder().where(condition, unwrap(x), unwrap(y))


@builtin
def expect_zero(x, mask):
    """x, which is 0 wherever the mask is true; with ``debug=True`` that is checked."""
    x, mask = unwrap(x), unwrap(mask)
    build = builder()
    if current_generator().options.debug:
        is_zero = build.binary(BinaryOp.eq, x, 0)
        outside = build.unary(UnaryOp.not_, read_tensor("mask", mask))
        ok = build.binary(BinaryOp.or_, is_zero, outside)
        device_assert(ok, "expect_zero expected x == 0 where mask is true")
    return x


@builtin
def minimum(x, y, propagate_nan=PropagateNan.NONE):
    """The smaller of two values. A NaN is ignored unless ``propagate_nan`` is ALL."""
    return builder().minimum(unwrap(x), unwrap(y), read_nan(propagate_nan))


@builtin
def maximum(x, y, propagate_nan=PropagateNan.NONE):
    """The larger of two values. A NaN is ignored unless ``propagate_nan`` is ALL."""
    return builder().maximum(unwrap(x), unwrap(y), read_nan(propagate_nan))


@builtin
def clamp(x, min, max, propagate_nan=PropagateNan.NONE):
    """x, limited to the range from min to max."""
    return builder().clamp(unwrap(x), unwrap(min), unwrap(max), read_nan(propagate_nan))


def _fold(name: str, pick: Callable[..., Any], combine: Any) -> Any:
    def fold(*args):
        args = builtins.tuple(unwrap(arg) for arg in args)
        if not any(isinstance(arg, tensor) for arg in args):
            values = args[0] if len(args) == 1 else args
            for value in values:
                if isinstance(value, float) and (value != value or str(value) == "-0.0"):
                    raise ValueError(
                        f"{name} of compile-time values does not take {value}: its result would depend on their order"
                    )
            return pick(*args)
        if len(args) < 2:
            raise TypeError(
                f"{name} requires at least two run-time values: use tl.{name} to reduce a tensor"
            )
        return functools.reduce(combine, args)

    fold.__name__ = name
    return builtin(fold)


builtin_min = _fold("min", builtins.min, minimum)
builtin_max = _fold("max", builtins.max, maximum)


@builtin
def dot(
    input,
    other,
    acc=None,
    input_precision=None,
    allow_tf32=None,
    max_num_imprecise_acc=None,
    out_dtype=None,
):
    """The matrix product of two tiles, added to ``acc``. It accumulates in float32 or int32.

    Without ``input_precision``, ``knobs.language.fp32_default`` says how float32 is multiplied, or else ``allow_tf32``.
    """
    if input_precision is not None and allow_tf32 is not None:
        raise ValueError("dot takes input_precision or allow_tf32, not both")
    precision = read_static("input_precision", input_precision)
    if precision is None:
        tf32 = read_static("allow_tf32", allow_tf32)
        precision = knobs.language.fp32_default or ("tf32" if tf32 or tf32 is None else "ieee")
    out = unwrap(out_dtype)
    acc = unwrap(acc)
    lhs, rhs = _pointer_free("dot", input), _pointer_free("dot", other)
    imprecise = read_int("max_num_imprecise_acc", max_num_imprecise_acc or 0)
    if lhs.shape and lhs.dtype.is_fp8() and imprecise > lhs.shape[-1]:
        raise ValueError(f"max_num_imprecise_acc ({imprecise}) must be <= K ({lhs.shape[-1]})")
    return builder().dot(
        lhs,
        rhs,
        None if acc is None else read_tensor("acc", acc),
        precision,
        None if out is None else read_dtype("out_dtype", out),
        imprecise,
    )


@builtin
def dot_scaled(
    lhs,
    lhs_scale,
    lhs_format,
    rhs,
    rhs_scale,
    rhs_format,
    acc=None,
    fast_math=False,
    lhs_k_pack=True,
    rhs_k_pack=True,
    out_dtype=float32,
):
    """The product of two tiles of small floats, whose blocks of 16 or 32 along K have scales of their own.

    The formats are "e2m1" (two in a uint8, the first in the lower bits), "e4m3", "e5m2", "bf16" and "fp16"; a side without
    scales has ``None``. Scales are uint8 exponents (of 2, plus 127; 255 is NaN) or float8 numbers, in
    tiles of M (or N) rows.
    """

    def side(name: str, value: Any, scale: Any, form: Any) -> tuple[Any, ...]:
        scale = unwrap(scale)
        return (
            _pointer_free("dot_scaled", value),
            None if scale is None else read_tensor(f"{name}_scale", scale),
            read_static(f"{name}_format", form),
        )

    acc = unwrap(acc)
    return builder().dot_scaled(
        *side("lhs", lhs, lhs_scale, lhs_format),
        *side("rhs", rhs, rhs_scale, rhs_format),
        None if acc is None else read_tensor("acc", acc),
        bool(unwrap(fast_math)),
        bool(unwrap(lhs_k_pack)),
        bool(unwrap(rhs_k_pack)),
        read_dtype("out_dtype", unwrap(out_dtype)),
    )


def _pointer_free(name: str, value: Any) -> tensor:
    if not isinstance(value, tensor):
        raise TypeError(f"{name} takes tiles, not {describe(value)}")
    return value


@tensor_method
@builtin
def gather(src, index, axis):
    """The elements of a tile that a tile of indices selects along an axis."""
    return builder().gather(src, index, read_int("axis", axis))


@tensor_method
@builtin
def histogram(input, num_bins, mask=None):
    """The number of elements of an integer tile with each of the values 0 to num_bins - 1."""
    mask = None if mask is None else read_tensor("mask", unwrap(mask))
    return builder().histogram(input, read_int("num_bins", num_bins), mask)


# --- Reductions and scans -----------------------------------------------------------------------------


def _inputs(name: str, input: Any) -> tuple[list[tensor], bool]:
    single = isinstance(input, tensor)
    values = [input] if single else list(input)
    for value in values:
        if not isinstance(value, tensor):
            raise TypeError(f"{name} takes tiles, not {describe(value)}")
    return values, single


def _combine(region: Any, combine_fn: Any) -> list[tensor]:
    result = current_generator().call_jit(combine_fn, builtins.tuple(region.arguments), {})
    results = result if isinstance(result, builtins.tuple) else (result,)
    return region.finish([read_tensor("the result of the combine function", r) for r in results])


@tensor_method
@builtin
def reduce(input, axis, combine_fn, keep_dims=False):
    """Combines the elements of a tile, or of several tiles together, along an axis (None: all elements)."""
    values, single = _inputs("reduce", input)
    rank = len(values[0].shape)
    axis = read_static("axis", axis)
    keep = bool(read_static("keep_dims", keep_dims))
    if axis is None:
        flat = [builder().reshape(v, [v.numel], True) for v in values]
        results = _combine(builder().begin_reduce(flat, 0), combine_fn)
    else:
        axis = read_int("axis", axis)
        results = _combine(builder().begin_reduce(values, axis), combine_fn)
        axis %= rank
    if keep:
        axes = builtins.tuple(builtins.range(rank)) if axis is None else axis
        results = [expand_dims(r, axes) for r in results]
    return results[0] if single else builtins.tuple(results)


@builtin
def _reduce_with_indices(input, axis, combine_fn, keep_dims=False):
    axis = read_static("axis", axis)
    rank = len(input.shape)
    if axis is None:
        input = builder().reshape(input, [input.numel], False)
        flat = True
        axis = 0
    else:
        flat = False
        axis = wrap_axis(read_int("axis", axis), rank)
    index = builder().arange(0, input.shape[axis])
    if len(input.shape) > 1:
        index = expand_dims(index, builtins.tuple(d for d in builtins.range(rank) if d != axis))
        index = builder().broadcast_to(index, list(input.shape))
    result = reduce((input, index), axis, combine_fn, keep_dims=keep_dims and not flat)
    if keep_dims and flat:
        result = builtins.tuple(
            expand_dims(r, builtins.tuple(builtins.range(rank))) for r in result
        )
    return result


@tensor_method
@builtin
def associative_scan(input, axis, combine_fn, reverse=False):
    """Combines every element with the ones before it along an axis (with ``reverse``: after it)."""
    values, single = _inputs("associative_scan", input)
    region = builder().begin_scan(
        values, read_int("axis", axis), bool(read_static("reverse", reverse))
    )
    results = _combine(region, combine_fn)
    return results[0] if single else builtins.tuple(results)


@builtin
def map_elementwise(scalar_fn, *args, pack=1):
    """What a function of scalars returns for each element of the tiles, or for each ``pack`` neighbours.

    The function may branch and loop for each element by itself. It takes ``pack`` elements of the first tile, then of the
    next, and returns ``pack`` values for each result.
    """
    tiles = [read_tensor("an operand of map_elementwise", value) for value in args]
    if not tiles:
        raise TypeError("map_elementwise needs at least one tile")
    shape = functools.reduce(lambda a, b: builder().broadcast(a, b)[0], tiles).shape
    tiles = [builder().broadcast_to(tile, list(shape)) for tile in tiles]
    results = _combine(builder().begin_map(tiles, read_int("pack", pack)), scalar_fn)
    return results[0] if len(results) == 1 else builtins.tuple(results)


# --- Functions of one operand -------------------------------------------------------------------------


def math_function(name: str, op: MathOp, doc: str) -> Any:
    def function(x):
        return builder().math(op, unwrap(x))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return tensor_method(builtin(function))


def _logical(name: str, op: BinaryOp, word: str) -> Any:
    def method(x, y):
        return builder().binary(op, x, unwrap(y))

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"``x {word} y`` of booleans, of every element."
    return tensor_method(builtin(method))


_logical("logical_and", BinaryOp.logical_and, "and")
_logical("logical_or", BinaryOp.logical_or, "or")

#: Defaults of parameters: programs copy them from Triton's own functions.
CONSTEXPR_0 = constexpr(0)
CONSTEXPR_NONE = constexpr(None)


@constexpr_function
def get_int_dtype(bitwidth: int, signed: bool) -> dtype:
    """The integer dtype of a width."""
    return dtype.integer(read_int("bitwidth", bitwidth), bool(read_static("signed", signed)))
