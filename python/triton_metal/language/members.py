"""Members of `dtype` and `tensor` that the native module leaves to Python."""

from __future__ import annotations

import functools
from enum import Enum
from typing import Any

from .._native import BinaryOp, UnaryOp, dtype, tensor
from ..constexpr import unwrap
from .building import builder, current_generator, is_builtin, tensor_methods

SINT_TYPES = ["int8", "int16", "int32", "int64"]
UINT_TYPES = ["int1", "uint8", "uint16", "uint32", "uint64"]
STANDARD_FP_TYPES = ["fp16", "bf16", "fp32", "fp64"]
FP_TYPES = ["fp8e4b15", "fp8e4nv", "fp8e4b8", "fp8e5", "fp8e5b16", *STANDARD_FP_TYPES]
OTHER_TYPES = ["void"]

_BIASES = {
    "fp8e4b15": 15,
    "fp8e4nv": 7,
    "fp8e4b8": 8,
    "fp8e5": 15,
    "fp8e5b16": 16,
    "fp16": 15,
    "bf16": 127,
    "fp32": 127,
    "fp64": 1023,
}


class SIGNEDNESS(Enum):
    """Whether integers have a sign."""

    SIGNED = 0
    UNSIGNED = 1


class KIND(Enum):
    """What numbers of a dtype are, in the order of promotion."""

    BOOLEAN = 0
    INTEGRAL = 1
    FLOATING = 2


def _kind(self: dtype) -> KIND:
    """Boolean, integral or floating."""
    if self.is_bool():
        return KIND.BOOLEAN
    if self.is_int():
        return KIND.INTEGRAL
    if not self.is_floating():
        raise TypeError(f"{self} is neither an integer nor a floating-point type")
    return KIND.FLOATING


def _integer(self: dtype) -> None:
    if not self.is_int():
        raise TypeError(f"{self} is not an integer type")


def _get_int_max_value(self: dtype) -> int:
    """The largest integer of the type."""
    _integer(self)
    return (1 << self.int_bitwidth - self.is_int_signed()) - 1


def _get_int_min_value(self: dtype) -> int:
    """The smallest integer of the type."""
    _integer(self)
    return -(1 << self.int_bitwidth - 1) if self.is_int_signed() else 0


def _int_signedness(self: dtype) -> SIGNEDNESS:
    if not self.is_int():
        raise AttributeError(f"{self} has no attribute 'int_signedness': it is no integer type")
    return SIGNEDNESS.SIGNED if self.is_int_signed() else SIGNEDNESS.UNSIGNED


def _exponent_bias(self: dtype) -> int:
    if self.name not in _BIASES:
        raise AttributeError(
            f"{self} has no attribute 'exponent_bias': it is no floating-point type"
        )
    return _BIASES[self.name]


def _codegen_name(self: dtype) -> str:
    """The name of the type in ``triton.language``."""
    for short, long in (("fp", "float"), ("bf", "bfloat")):
        if self.name.startswith(short):
            return long + self.name[2:]
    return self.name


def _is_dtype(name: str) -> bool:
    """Whether this is the name of a scalar type."""
    return name in (*SINT_TYPES, *UINT_TYPES, *FP_TYPES, *OTHER_TYPES)


def _with_element_ty(self: dtype, element: dtype) -> dtype:
    """The type with other elements; for a scalar, the other type."""
    return dtype.block(element, list(self.shape)) if self.is_block() else element


def _get_block_shapes(self: dtype) -> tuple[int, ...]:
    """The shape of a tile's type."""
    return tuple(self.shape)


def _nbytes(self: dtype) -> int:
    return self.numel * (self.scalar.primitive_bitwidth // 8)


def _add_dtype_members() -> None:
    for name in ("SINT_TYPES", "UINT_TYPES", "FP_TYPES", "STANDARD_FP_TYPES", "OTHER_TYPES"):
        setattr(dtype, name, globals()[name])
    members: dict[str, Any] = {
        "SIGNEDNESS": SIGNEDNESS,
        "KIND": KIND,
        "kind": _kind,
        "get_int_max_value": _get_int_max_value,
        "get_int_min_value": _get_int_min_value,
        "codegen_name": _codegen_name,
        "is_dtype": staticmethod(_is_dtype),
        "is_void": lambda self: self.name == "void",
        "with_element_ty": _with_element_ty,
        "get_block_shapes": _get_block_shapes,
        "nbytes": property(_nbytes),
        "int_signedness": property(_int_signedness),
        "exponent_bias": property(_exponent_bias),
        "cache_key_part": property(lambda self: self.name),
        "address_space": "global",
    }
    for name, member in members.items():
        setattr(dtype, name, member)


_BINARY = {
    "add": BinaryOp.add,
    "sub": BinaryOp.sub,
    "mul": BinaryOp.mul,
    "truediv": BinaryOp.truediv,
    "floordiv": BinaryOp.floordiv,
    "mod": BinaryOp.mod,
    "and": BinaryOp.and_,
    "or": BinaryOp.or_,
    "xor": BinaryOp.xor,
    "lshift": BinaryOp.lshift,
    "rshift": BinaryOp.rshift,
    "lt": BinaryOp.lt,
    "le": BinaryOp.le,
    "gt": BinaryOp.gt,
    "ge": BinaryOp.ge,
}
_COMPARISONS = {
    "__eq__": BinaryOp.eq,
    "__ne__": BinaryOp.ne,
    "logical_and": BinaryOp.logical_and,
    "logical_or": BinaryOp.logical_or,
}


def _binary(name: str, op: BinaryOp, reflected: bool) -> Any:
    def method(self: tensor, other: Any, _semantic: Any = None) -> tensor:
        x, y = (unwrap(other), self) if reflected else (self, unwrap(other))
        return builder().binary(op, x, y)

    method.__name__ = method.__qualname__ = name
    return method


def _unary(name: str, op: UnaryOp) -> Any:
    def method(self: tensor, _semantic: Any = None) -> tensor:
        return builder().unary(op, self)

    method.__name__ = method.__qualname__ = name
    return method


def _method(function: Any) -> Any:
    """A function of the language as a method, for functions that are called by the walk."""
    if is_builtin(function):

        @functools.wraps(function)
        def method(self: tensor, *args: Any, **kwargs: Any) -> Any:
            return function(self, *args, **kwargs)

        return method

    def call(self: tensor, *args: Any, _semantic: Any = None, **kwargs: Any) -> Any:
        return current_generator().call_jit(function, (self, *args), kwargs)

    call.__name__ = call.__qualname__ = function.__name__
    call.__doc__ = function.__doc__
    return call


def add_members() -> None:
    """Adds them. Called once, when all methods are known."""
    _add_dtype_members()
    for name, op in _BINARY.items():
        setattr(tensor, f"__{name}__", _binary(f"__{name}__", op, False))
        setattr(tensor, f"__r{name}__", _binary(f"__r{name}__", op, True))
    for name in ("logical_and", "logical_or"):
        setattr(tensor, name, _binary(name, _COMPARISONS[name], False))
    for name, op in (("neg", UnaryOp.neg), ("pos", UnaryOp.pos), ("invert", UnaryOp.invert)):
        setattr(tensor, f"__{name}__", _unary(f"__{name}__", op))
    tensor.__not__ = _unary("__not__", UnaryOp.not_)
    for name, function in tensor_methods.items():
        setattr(tensor, name, _method(function))
    tensor.T = property(lambda self: tensor_methods["permute"](self, 1, 0))
    tensor.handle = property(lambda self: self)
