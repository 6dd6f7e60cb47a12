"""Names and paths of types and arguments, as tools around Triton use them."""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

#: The most elements of a tile.
TRITON_MAX_TENSOR_NUMEL = 1 << 20


def is_iterable(value: Any) -> bool:
    """Whether a value is a list or a tuple, of Python or of the language."""
    return isinstance(value, (list, tuple)) or getattr(value, "__triton_tuple__", False)


def get_iterable_path(iterable: Any, path: Iterable[int]) -> Any:
    """The element at a path of indices."""
    return functools.reduce(lambda part, index: part[index], path, iterable)


def set_iterable_path(iterable: Any, path: tuple[int, ...], val: Any) -> None:
    """Replaces the element at a path of indices in nested lists."""
    get_iterable_path(iterable, path[:-1])[path[-1]] = val


def _leaves(value: Any, path: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Any]]:
    if not is_iterable(value):
        yield path, value
        return
    for index, part in enumerate(value):
        yield from _leaves(part, (*path, index))


def apply_with_path(value: Any, fn: Callable[[tuple[int, ...], Any], None]) -> None:
    """Calls ``fn(path, leaf)`` for all that is in nested lists and tuples."""
    for path, leaf in _leaves(value):
        fn(path, leaf)


def find_paths_if(
    iterable: Any, pred: Callable[[tuple[int, ...], Any], bool]
) -> list[tuple[int, ...]]:
    """The paths of the leaves of which ``pred(path, leaf)`` is true, in their order."""
    return [path for path, leaf in _leaves(iterable) if pred(path, leaf)]


def is_power_of_two(x: int) -> bool:
    return x > 0 and x & (x - 1) == 0


def validate_block_shape(shape: Iterable[int]) -> int:
    """The number of elements of a tile. Raises TypeError or ValueError for a shape that no tile can have."""
    count = 1
    for index, size in enumerate(shape):
        if not isinstance(size, int):
            raise TypeError(
                f"element {index} of a tile's shape is {size!r}; it must be an integer that is known when compiling"
            )
        if not is_power_of_two(size):
            raise ValueError(f"Shape element {index} must be a power of 2, not {size}")
        count *= size
    if count > TRITON_MAX_TENSOR_NUMEL:
        raise ValueError(
            f"numel ({count}) exceeds triton maximum tensor numel ({TRITON_MAX_TENSOR_NUMEL})"
        )
    return count


_FLOATS = {
    "fp8e4nv": ("float8e4nv", "float8_e4m3fn"),
    "fp8e5": ("float8e5", "float8_e5m2"),
    "fp8e4b15": ("float8e4b15",),
    "fp8e4b8": ("float8e4b8", "float8_e4m3fnuz"),
    "fp8e5b16": ("float8e5b16", "float8_e5m2fnuz"),
    "fp16": ("half", "float16"),
    "bf16": ("bfloat16",),
    "fp32": ("float", "float32"),
    "fp64": ("double", "float64"),
}
_INTEGERS = {f"{sign}{width}": (f"{name}{width}",)
             for (sign, name), width in itertools.product((("i", "int"), ("u", "uint")), (8, 16, 32, 64))}  # fmt: skip

#: The short name of each name of a dtype.
type_canonicalisation_dict: dict[str, str] = {
    other: short
    for short, others in ({"u1": ("bool", "int1", "uint1", "i1")} | _FLOATS | _INTEGERS | {"void": ()}).items()
    for other in (*others, short)
} | {"int": "i32"}  # fmt: skip


def canonicalize_dtype(dtype: Any) -> str:
    """The short name of a dtype of torch, NumPy or the language, such as "fp32"."""
    return type_canonicalisation_dict[str(dtype).rsplit(".", maxsplit=1)[-1]]


def canonicalize_ptr_dtype(dtype: Any, is_const: bool) -> str:
    """The short name of a pointer to a dtype, such as "*fp32", or "*kfp32" for a constant one."""
    return ("*k" if is_const else "*") + canonicalize_dtype(dtype)


def _bits(short: str) -> int:
    if short.startswith("fp8"):
        return 8
    return int(short.lstrip("bfipu") or 0) if short != "void" else 0


#: The bits of each dtype, by any of its names.
BITWIDTH_DICT: dict[str, int] = {
    name: _bits(short) for name, short in type_canonicalisation_dict.items()
} | {"i1": 1}


def get_primitive_bitwidth(dtype: str) -> int:
    """The bits of a dtype."""
    return BITWIDTH_DICT[dtype]


def is_namedtuple(val: Any) -> bool:
    """Whether this is a class of named tuples."""
    return isinstance(val, type) and issubclass(val, tuple) and hasattr(val, "_fields")


def _tuple_create(arg: Any, contents: Iterable[Any]) -> Any:
    """A tuple of the class of ``arg``, which may be a named one."""
    return type(arg)(*contents) if hasattr(arg, "_fields") else type(arg)(contents)


FP_FUSION_DEFAULT_WARNING = (
    "TRITON_DEFAULT_FP_FUSION is not set: multiplications and additions may be fused, as in Triton 3.9. "
    "Set it to 1 or 0 to choose"
)
CAT_CAN_REORDER_WARNING = "tl.cat(can_reorder=True) is deprecated: leave can_reorder out"
RESHAPE_CAN_REORDER_WARNING = "tl.reshape(can_reorder=True) is deprecated: leave can_reorder out"


@functools.cache
def warn_once(message: str) -> None:
    """Gives a UserWarning with this text, once in a process."""
    warnings.warn(message, UserWarning, stacklevel=2)


def prewarm_deprecation_warnings() -> None:
    """Takes the warnings about what will change in Triton as given."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for message in (
            FP_FUSION_DEFAULT_WARNING,
            CAT_CAN_REORDER_WARNING,
            RESHAPE_CAN_REORDER_WARNING,
        ):
            warn_once(message)
