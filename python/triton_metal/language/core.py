"""Types, values and the operations that the compiler knows; the rules themselves are in C++."""

from __future__ import annotations

import builtins
import functools
import threading
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, TypeVar

from .. import _native
from .._native import AtomicOp, Hint, MathOp, dtype, tensor
from ..constexpr import constexpr as constexpr
from ..constexpr import unwrap as unwrap

F = TypeVar("F", bound=Callable[..., Any])

TRITON_MAX_TENSOR_NUMEL = 1 << 20


class PropagateNan(Enum):
    """Whether minimum, maximum and clamp return NaN when an operand is NaN."""

    NONE = 0
    ALL = 0xFFFF


# --- dtypes -------------------------------------------------------------------------------------

void = dtype("void")
int1 = dtype("int1")
int8 = dtype("int8")
int16 = dtype("int16")
int32 = dtype("int32")
int64 = dtype("int64")
uint8 = dtype("uint8")
uint16 = dtype("uint16")
uint32 = dtype("uint32")
uint64 = dtype("uint64")
float16 = dtype("float16")
bfloat16 = dtype("bfloat16")
float32 = dtype("float32")
float64 = dtype("float64")


class _PointerMeta(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, dtype) and instance.is_ptr()


class pointer_type(metaclass=_PointerMeta):
    """``pointer_type(float32)`` is the dtype of pointers to float32."""

    def __new__(cls, element_ty: dtype, const: bool = False) -> dtype:  # type: ignore[misc]
        return dtype.pointer(unwrap(element_ty), const=builtins.bool(unwrap(const)))


class _BlockMeta(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, dtype) and instance.is_block()


class block_type(metaclass=_BlockMeta):
    """``block_type(float32, [16, 32])`` is the type of tiles of that shape."""

    def __new__(cls, element_ty: dtype, shape: Sequence[int]) -> dtype:  # type: ignore[misc]
        return dtype.block(unwrap(element_ty), [unwrap(size) for size in shape])


pi32_t = pointer_type(int32)


class const:
    """Annotation of pointers that a kernel only reads."""


# --- The compilation in progress ------------------------------------------------------------------

_active = threading.local()


def current_generator() -> Any:
    """The AST walk that runs in this thread."""
    generator = getattr(_active, "generator", None)
    if generator is None:
        raise RuntimeError(
            "operations of triton_metal.language work only inside a function that is decorated "
            "with @triton_metal.jit and launched as a kernel"
        )
    return generator


def _b() -> _native.Builder:
    return current_generator().builder


def builtin(fn: F) -> F:
    """Marks a function that the AST walk calls with tensors and compile-time values."""
    fn.__triton_builtin__ = True  # type: ignore[attr-defined]
    return fn


def is_builtin(fn: object) -> bool:
    return getattr(fn, "__triton_builtin__", False) is True


tensor_methods: dict[str, Any] = {}
"""Functions that are methods of tensors, too."""


def tensor_method(fn: Any) -> Any:
    """Makes a function a method of tensors; its first parameter is the tensor."""
    tensor_methods[fn.__name__] = fn
    return fn


def _shape(shape: Any) -> list[int]:
    """A shape as written: ``16, 32`` or ``(16, 32)``."""
    shape = unwrap(shape)
    if isinstance(shape, int) and not isinstance(shape, bool):
        shape = (shape,)
    if not isinstance(shape, (tuple, list)):
        raise TypeError(f"a shape is a tuple of constexpr integers, not {_describe(shape)}")
    sizes = []
    for index, size in enumerate(shape):
        size = unwrap(size)
        if isinstance(size, bool) or not isinstance(size, int):
            raise TypeError(
                f"shape element {index} must be a constexpr integer, not {_describe(size)}. "
                "Annotate the variable that holds it with tl.constexpr"
            )
        sizes.append(size)
    return sizes


def _spread(values: Sequence[Any]) -> Sequence[Any]:
    """``f((a, b))`` means ``f(a, b)``."""
    if len(values) == 1 and isinstance(values[0], (tuple, list)):
        return values[0]
    return values


def _describe(value: Any) -> str:
    if isinstance(value, tensor):
        return f"the run-time value {value.type}"
    return f"{value!r} ({type(value).__name__})"


def _int(name: str, value: Any) -> int:
    value = unwrap(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be a constexpr integer, not {_describe(value)}")
    return value


def _dtype(name: str, value: Any) -> dtype:
    value = unwrap(value)
    if not isinstance(value, dtype):
        raise TypeError(f"{name} must be a dtype such as tl.float32, not {_describe(value)}")
    return value


def _static(name: str, value: Any) -> Any:
    value = unwrap(value)
    if isinstance(value, tensor):
        raise TypeError(f"{name} must be constexpr, not {_describe(value)}")
    return value


def _tensor(name: str, value: Any) -> tensor:
    if isinstance(value, tensor):
        return value
    if isinstance(value, (bool, int, float)):
        return _b().to_tensor(value)
    raise TypeError(f"{name} must be a tensor or a number, not {_describe(value)}")


def _nan(value: Any) -> bool:
    value = _static("propagate_nan", value)
    if not isinstance(value, PropagateNan):
        raise TypeError(f"propagate_nan must be a tl.PropagateNan, not {_describe(value)}")
    return value is PropagateNan.ALL


def _wrap_axis(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise ValueError(f"axis {axis} is not in {-rank} to {rank - 1}")
    return axis % rank


# --- Programs and tiles -----------------------------------------------------------------------------


@builtin
def program_id(axis):
    """The place of this program in the grid along axis 0, 1 or 2."""
    return _b().program_id(_int("axis", axis))


@builtin
def num_programs(axis):
    """The length of the grid along axis 0, 1 or 2."""
    return _b().num_programs(_int("axis", axis))


@builtin
def to_tensor(x):
    """A number as a tensor of its default dtype; a tensor as it is."""
    return _tensor("x", x)


@builtin
def arange(start, end):
    """The int32 tile ``start, start + 1, ..., end - 1``; its length is a power of 2."""
    return _b().arange(_int("start", start), _int("end", end))


@builtin
def full(shape, value, dtype):
    """A tile filled with one value."""
    return _b().full(_shape(shape), unwrap(value), _dtype("dtype", dtype))


@builtin
def broadcast(input, other):
    """Both operands in their common shape."""
    return tuple(_b().broadcast(_tensor("input", input), _tensor("other", other)))


@tensor_method
@builtin
def broadcast_to(input, *shape):
    """The tile repeated along dimensions of size 1 to a shape."""
    return _b().broadcast_to(_tensor("input", input), _shape(_spread(shape)))


@tensor_method
@builtin
def permute(input, *dims):
    """The tile with its dimensions in another order."""
    return _b().permute(input, [_int("dims", d) for d in _spread(dims)])


@tensor_method
@builtin
def trans(input, *dims):
    """The transpose: the last two dimensions exchanged, or the dimensions as given."""
    order = list(_spread(dims))
    if not order:
        rank = len(input.shape)
        if rank < 2:
            raise ValueError(f"trans takes a tile of at least 2 dimensions, not {input.type}")
        order = [*range_(rank - 2), rank - 1, rank - 2]
    return permute(input, *order)


@tensor_method
@builtin
def reshape(input, *shape, can_reorder=False):
    """The same elements, in row-major order, in another shape."""
    reorder = bool(_static("can_reorder", can_reorder))
    return _b().reshape(_tensor("input", input), _shape(_spread(shape)), reorder)


@tensor_method
@builtin
def view(input, *shape):
    """reshape, with the order of the elements left open."""
    return _b().reshape(_tensor("input", input), _shape(_spread(shape)), True)


@tensor_method
@builtin
def item(input):
    """The scalar in a tile of one element."""
    return _b().unsplat(input)


@tensor_method
@builtin
def expand_dims(input, axis):
    """The tile with new dimensions of size 1 at one axis or at several."""
    input = _tensor("input", input)
    axis = unwrap(axis)
    axes = list(axis) if isinstance(axis, (tuple, list)) else [axis]
    rank = len(input.shape) + len(axes)
    axes = sorted(_wrap_axis(_int("axis", a), rank) for a in axes)
    if len(set(axes)) != len(axes):
        raise ValueError(f"expand_dims names an axis twice: {axes}")
    for a in axes:
        input = _b().expand_dims(input, a)
    return input


@builtin
def cat(input, other, can_reorder=False, dim=0):
    """Two tiles of one shape after one another along a dimension."""
    if _static("can_reorder", can_reorder):
        return _b().cat(input, other)
    rank = len(input.shape)
    if input.shape != other.shape:
        raise ValueError(f"cat takes tiles of one shape, not {input.type} and {other.type}")
    dim = _wrap_axis(_int("dim", dim), rank)
    order = list(range_(rank))
    order.insert(dim, rank)
    shape = list(input.shape)
    shape[dim] *= 2
    return _b().reshape(_b().permute(_b().join(input, other), order), shape, False)


@builtin
def join(a, b):
    """Two tiles side by side in a new last dimension of size 2."""
    return _b().join(_tensor("a", a), _tensor("b", b))


@tensor_method
@builtin
def split(a):
    """The two halves of a tile whose last dimension has size 2."""
    return tuple(_b().split(a))


@tensor_method
@builtin
def cast(input, dtype, fp_downcast_rounding=None, bitcast=False):
    """The value as another dtype; with ``bitcast`` its bits."""
    target = _dtype("dtype", dtype)
    if _static("bitcast", bitcast):
        return _b().bitcast(_tensor("input", input), target)
    rounding = _static("fp_downcast_rounding", fp_downcast_rounding)
    return _b().cast(_tensor("input", input), target, rounding or "")


@builtin
def _to(input, dtype, fp_downcast_rounding=None, bitcast=False):
    return cast(input, dtype, fp_downcast_rounding, bitcast)


tensor_methods["to"] = _to


@builtin
def getitem(input, *slices):
    """``x[:, None]``: new dimensions where None stands."""
    result, taken = input, 0
    for dim, index in enumerate(slices):
        if index is None:
            result = _b().expand_dims(result, dim)
        elif isinstance(index, builtins.slice) and index == builtins.slice(None):
            taken += 1
            if taken > len(input.shape):
                raise ValueError(f"too many indices for {input.type}")
        else:
            raise ValueError(
                f"a tensor is indexed with ':' and None only, not {_describe(index)}; "
                "elements are reached through pointers, tl.gather or reductions"
            )
    return result


# --- Memory --------------------------------------------------------------------------------------


def _optional(value: Any) -> Any:
    return None if value is None else unwrap(value)


def _pointer(name: str, value: Any) -> tensor:
    if not isinstance(value, tensor):
        raise TypeError(f"{name} takes a pointer or a tile of pointers, not {_describe(value)}")
    return value


@builtin
def load(pointer, mask=None, other=None, *, cache_modifier="", eviction_policy="", volatile=False):
    """Reads through a pointer or a tile of pointers, where the mask is true, and ``other`` elsewhere."""
    return _b().load(
        _pointer("load", pointer),
        _optional(mask),
        _optional(other),
        _static("cache_modifier", cache_modifier) or "",
        _static("eviction_policy", eviction_policy) or "",
        bool(_static("volatile", volatile)),
    )


@tensor_method
@builtin
def store(pointer, value, mask=None, *, cache_modifier="", eviction_policy=""):
    """Writes through a pointer or a tile of pointers, where the mask is true."""
    _b().store(
        _pointer("store", pointer),
        unwrap(value),
        _optional(mask),
        _static("cache_modifier", cache_modifier) or "",
        _static("eviction_policy", eviction_policy) or "",
    )


def _atomic(name: str, op: AtomicOp, doc: str) -> Any:
    def atomic(pointer, val, mask=None, sem=None, scope=None):
        return _b().atomic_rmw(
            op,
            _pointer(name, pointer),
            unwrap(val),
            _optional(mask),
            _static("sem", sem) or "",
            _static("scope", scope) or "",
        )

    atomic.__name__ = atomic.__qualname__ = name
    atomic.__doc__ = f"{doc} in memory, atomically; returns what was there."
    return tensor_method(builtin(atomic))


atomic_add = _atomic("atomic_add", AtomicOp.add, "Adds")
atomic_and = _atomic("atomic_and", AtomicOp.and_, "Bitwise and")
atomic_or = _atomic("atomic_or", AtomicOp.or_, "Bitwise or")
atomic_xor = _atomic("atomic_xor", AtomicOp.xor, "Bitwise exclusive or")
atomic_max = _atomic("atomic_max", AtomicOp.max, "The larger value")
atomic_min = _atomic("atomic_min", AtomicOp.min, "The smaller value")
atomic_xchg = _atomic("atomic_xchg", AtomicOp.xchg, "Exchanges")


@tensor_method
@builtin
def atomic_cas(pointer, cmp, val, sem=None, scope=None):
    """Puts ``val`` where ``cmp`` is found, atomically; returns what was there."""
    return _b().atomic_cas(
        _pointer("atomic_cas", pointer),
        unwrap(cmp),
        unwrap(val),
        _static("sem", sem) or "",
        _static("scope", scope) or "",
    )


# --- Arithmetic ------------------------------------------------------------------------------------


@builtin
def add(x, y, sanitize_overflow=True):
    """x + y."""
    return _b().binary(_native.BinaryOp.add, unwrap(x), unwrap(y))


@builtin
def sub(x, y, sanitize_overflow=True):
    """x - y."""
    return _b().binary(_native.BinaryOp.sub, unwrap(x), unwrap(y))


@builtin
def mul(x, y, sanitize_overflow=True):
    """x * y."""
    return _b().binary(_native.BinaryOp.mul, unwrap(x), unwrap(y))


@builtin
def where(condition, x, y):
    """x where the condition is true, y elsewhere."""
    return _b().where(unwrap(condition), unwrap(x), unwrap(y))


@builtin
def minimum(x, y, propagate_nan=PropagateNan.NONE):
    """The smaller of two values; a NaN loses, unless ``propagate_nan`` is ALL."""
    return _b().minimum(unwrap(x), unwrap(y), _nan(propagate_nan))


@builtin
def maximum(x, y, propagate_nan=PropagateNan.NONE):
    """The larger of two values; a NaN loses, unless ``propagate_nan`` is ALL."""
    return _b().maximum(unwrap(x), unwrap(y), _nan(propagate_nan))


@builtin
def clamp(x, min, max, propagate_nan=PropagateNan.NONE):
    """x, held between min and max."""
    return _b().clamp(unwrap(x), unwrap(min), unwrap(max), _nan(propagate_nan))


def _fold(name: str, pick: Callable[..., Any], combine: Any) -> Any:
    def fold(*args):
        args = tuple(unwrap(arg) for arg in args)
        if not any(isinstance(arg, tensor) for arg in args):
            return pick(*args)
        if len(args) < 2:
            raise TypeError(f"{name} of run-time values takes at least two of them")
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
    """The matrix product of two tiles, added to ``acc``. Sums are float32 or int32."""
    if input_precision is not None and allow_tf32 is not None:
        raise ValueError("dot takes input_precision or allow_tf32, not both")
    precision = _static("input_precision", input_precision) or ""
    if _static("allow_tf32", allow_tf32):
        precision = "tf32"
    out = unwrap(out_dtype)
    acc = unwrap(acc)
    return _b().dot(
        _pointer_free("dot", input),
        _pointer_free("dot", other),
        None if acc is None else _tensor("acc", acc),
        precision,
        None if out is None else _dtype("out_dtype", out),
        _int("max_num_imprecise_acc", max_num_imprecise_acc or 0),
    )


def _pointer_free(name: str, value: Any) -> tensor:
    if not isinstance(value, tensor):
        raise TypeError(f"{name} takes tiles, not {_describe(value)}")
    return value


@tensor_method
@builtin
def gather(src, index, axis):
    """Elements of a tile, chosen along an axis by a tile of indices."""
    return _b().gather(src, index, _int("axis", axis))


@tensor_method
@builtin
def histogram(input, num_bins, mask=None):
    """How many elements of an integer tile have each of the values 0 to num_bins - 1."""
    mask = None if mask is None else _tensor("mask", unwrap(mask))
    return _b().histogram(input, _int("num_bins", num_bins), mask)


# --- Reductions and scans -----------------------------------------------------------------------------


def _inputs(name: str, input: Any) -> tuple[list[tensor], bool]:
    single = isinstance(input, tensor)
    values = [input] if single else list(input)
    for value in values:
        if not isinstance(value, tensor):
            raise TypeError(f"{name} takes tiles, not {_describe(value)}")
    return values, single


def _combine(region: Any, combine_fn: Any) -> list[tensor]:
    result = current_generator().call_jit(combine_fn, tuple(region.arguments), {})
    results = result if isinstance(result, tuple) else (result,)
    return region.finish([_tensor("the result of the combine function", r) for r in results])


@tensor_method
@builtin
def reduce(input, axis, combine_fn, keep_dims=False):
    """Combines the elements of one tile, or of several together, along an axis (None: all of them)."""
    values, single = _inputs("reduce", input)
    rank = len(values[0].shape)
    axis = _static("axis", axis)
    keep = bool(_static("keep_dims", keep_dims))
    if axis is None:
        flat = [_b().reshape(v, [v.numel], True) if rank > 1 else v for v in values]
        results = _combine(_b().begin_reduce(flat, 0), combine_fn)
    else:
        axis = _int("axis", axis)
        results = _combine(_b().begin_reduce(values, axis), combine_fn)
        axis %= rank
    if keep:
        axes = tuple(range_(rank)) if axis is None else axis
        results = [expand_dims(r, axes) for r in results]
    return results[0] if single else tuple(results)


@builtin
def _reduce_with_indices(input, axis, combine_fn, keep_dims=False):
    axis = _static("axis", axis)
    rank = len(input.shape)
    if axis is None:
        input = _b().reshape(input, [input.numel], False)
        flat = True
        axis = 0
    else:
        flat = False
        axis = _wrap_axis(_int("axis", axis), rank)
    index = _b().arange(0, input.shape[axis])
    if len(input.shape) > 1:
        index = expand_dims(index, tuple(d for d in range_(rank) if d != axis))
        index = _b().broadcast_to(index, list(input.shape))
    result = reduce((input, index), axis, combine_fn, keep_dims=keep_dims and not flat)
    if keep_dims and flat:
        result = tuple(expand_dims(r, tuple(range_(rank))) for r in result)
    return result


@tensor_method
@builtin
def associative_scan(input, axis, combine_fn, reverse=False):
    """Every element combined with those before it along an axis (with ``reverse``: after it)."""
    values, single = _inputs("associative_scan", input)
    region = _b().begin_scan(values, _int("axis", axis), bool(_static("reverse", reverse)))
    results = _combine(region, combine_fn)
    return results[0] if single else tuple(results)


# --- Hints and debugging -----------------------------------------------------------------------------


def _hint(name: str, kind: Hint, doc: str) -> Any:
    def hint(input, values):
        values = unwrap(values)
        several = values if isinstance(values, (tuple, list)) else (values,)
        numbers = [_int("values", v) for v in several]
        if any(number < 1 for number in numbers):
            raise ValueError(f"values must be positive integers, not {values!r}")
        _b().hint(kind, input, numbers)
        return input

    hint.__name__ = hint.__qualname__ = name
    hint.__doc__ = doc
    return builtin(hint)


multiple_of = _hint(
    "multiple_of", Hint.divisibility, "Promises that the first of each run of values is a multiple."
)
max_contiguous = _hint(
    "max_contiguous", Hint.contiguity, "Promises that values come in runs of consecutive numbers."
)
max_constancy = _hint(
    "max_constancy", Hint.constancy, "Promises that values come in runs of equal numbers."
)


@builtin
def assume(cond):
    """Promises that a scalar condition is true."""
    _b().assume(unwrap(cond))


@builtin
def debug_barrier():
    """All threads of the program wait for one another."""
    _b().debug_barrier()


@builtin
def device_print(prefix, *args, hex=False):
    """Prints values at run time."""
    prefix = _static("prefix", prefix)
    if not isinstance(prefix, str):
        raise TypeError(f"device_print takes a string first, not {_describe(prefix)}")
    values = [_tensor("device_print's argument", unwrap(a)) for a in args]
    _b().device_print(prefix, values, bool(_static("hex", hex)))


@builtin
def device_assert(cond, msg="", mask=None):
    """Stops with a message when a condition is false at run time; for debugging (``debug=True``)."""
    if current_generator().options.debug:
        _b().device_assert(unwrap(cond), str(_static("msg", msg)), _optional(mask))


@builtin
def static_print(*values, sep=" ", end="\n", file=None, flush=False):
    """Prints compile-time values while compiling."""
    print(*(unwrap(value) for value in values), sep=sep, end=end, file=file, flush=flush)


@builtin
def static_assert(cond, msg=""):
    """Refuses to compile unless a compile-time condition is true."""
    raise RuntimeError("static_assert works only inside @triton_metal.jit functions")


# --- Iterators -------------------------------------------------------------------------------------

range_ = builtins.range


class static_range:
    """A loop that is unrolled while compiling; its bounds are constexpr."""

    def __init__(self, arg1: Any, arg2: Any = None, step: Any = 1) -> None:
        start, end = (0, arg1) if arg2 is None else (arg1, arg2)
        self.range = range_(
            _int("the start of static_range", start),
            _int("the end of static_range", end),
            _int("the step of static_range", step),
        )


class range:
    """A loop like Python's, with hints: how many stages to pipeline it in, how far to unroll it."""

    def __init__(
        self,
        arg1: Any,
        arg2: Any = None,
        step: Any = 1,
        num_stages: int | None = None,
        loop_unroll_factor: int | None = None,
        disallow_acc_multi_buffer: bool = False,
        flatten: bool = False,
        warp_specialize: bool = False,
        disable_licm: bool = False,
    ) -> None:
        self.start, self.end = (0, arg1) if arg2 is None else (arg1, arg2)
        self.step = 1 if step is None else step
        self.num_stages = _static("num_stages", num_stages)
        self.loop_unroll_factor = _static("loop_unroll_factor", loop_unroll_factor)
        self.disallow_acc_multi_buffer = bool(_static("", disallow_acc_multi_buffer))
        self.flatten = bool(_static("flatten", flatten))
        self.warp_specialize = bool(_static("warp_specialize", warp_specialize))
        self.disable_licm = bool(_static("disable_licm", disable_licm))


class condition:
    """The condition of a while loop, with hints: ``while tl.condition(more, disable_licm=True)``."""

    def __init__(self, arg1: Any, disable_licm: bool = False) -> None:
        self.condition = unwrap(arg1)
        self.disable_licm = bool(_static("disable_licm", disable_licm))


# --- Functions of one operand -------------------------------------------------------------------------


def _math_function(name: str, op: MathOp, doc: str) -> Any:
    def function(x):
        return _b().math(op, unwrap(x))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return tensor_method(builtin(function))


def get_int_dtype(bitwidth: int, signed: bool) -> dtype:
    """The integer dtype of a width."""
    return dtype.integer(bitwidth, signed)
