"""What to write instead of Python that kernels do not hold, for messages."""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Iterable
from types import ModuleType
from typing import Any

from .._native import tensor
from ..language import core

#: Functions of Python, and those of the language that compute the same of tensors.
_PYTHON = {
    "abs": "tl.abs",
    "all": "tl.min of the condition",
    "any": "tl.max of the condition",
    "breakpoint": 'print("x", x), which shows values of each program',
    "max": "tl.max for the largest element of a tensor",
    "min": "tl.min for the smallest element of a tensor",
    "pow": "a product, or tl.exp2(y * tl.log2(x))",
    "round": "tl.floor(x + 0.5)",
    "sorted": "tl.sort",
    "sum": "tl.sum",
}

#: Functions of other libraries that have another name in the language.
_NAMES = {
    "absolute": "tl.abs",
    "amax": "tl.max",
    "amin": "tl.min",
    "array": "tl.full(shape, value, dtype)",
    "concatenate": "tl.cat",
    "empty": "tl.zeros(shape, dtype)",
    "fabs": "tl.abs",
    "matmul": "tl.dot",
    "mm": "tl.dot",
    "ones": "tl.full(shape, 1, dtype)",
    "pow": "a product, or tl.exp2(y * tl.log2(x))",
    "power": "a product, or tl.exp2(y * tl.log2(x))",
    "relu": "tl.maximum(x, 0)",
    "tanh": "triton.language.extra.libdevice.tanh",
    "tensor": "tl.full(shape, value, dtype)",
}

_CONVERSIONS = {int: "tl.int32", float: "tl.float32", bool: "tl.int1"}

#: Methods of arrays that tensors of kernels do not have.
_METHODS = {
    "append": "a tensor has one size; use tl.cat or tl.join",
    "mean": "use tl.sum(x, axis) / size",
    "numpy": "values stay in the kernel; print(x) shows them, tl.store writes them",
    "size": "use shape or numel",
    "tolist": "values stay in the kernel; print(x) shows them, tl.store writes them",
}

_OPERATORS = {
    ast.Pow: "; use a product such as x * x, or tl.exp2(y * tl.log2(x))",
    ast.MatMult: "; use tl.dot(a, b)",
}


def operator_advice(op: ast.AST) -> str:
    """What to use in the place of an operator."""
    return _OPERATORS.get(type(op), "")


def close_name(name: str, names: Iterable[str]) -> str:
    """ ": did you mean NAME?" for the name that looks most like this one, or ""."""
    import difflib  # which takes its time, and is for errors only

    known = [one for one in names if not one.startswith("_")]
    found = difflib.get_close_matches(name, known, 1, cutoff=0.75)
    return f": did you mean {found[0]}?" if found else ""


def undefined(name: str, known: Iterable[str]) -> str:
    """The message for a name that means nothing in a kernel."""
    if callable(getattr(builtins, name, None)):
        instead = f": use {_PYTHON[name]}" if name in _PYTHON else ""
        return f"{name} is not defined in kernels, where Python's function has no meaning{instead}"
    if name == "tl":
        return "tl is not defined: write import triton.language as tl"
    return f"{name} is not defined{close_name(name, known)}"


def absent(module: ModuleType, name: str) -> str:
    """The message for a name that a module does not have."""
    return f"{module.__name__} has no {name!r}{close_name(name, vars(module))}"


def _same_of_language(name: str) -> str:
    """The function of the language that has a name, or has it as another name."""
    language = sys.modules[core.__name__.rpartition(".")[0]]
    return _NAMES.get(name) or (f"tl.{name}" if hasattr(language, name) else "")


def _library_of(function: Any) -> str:
    name = getattr(function, "__module__", None) or type(function).__module__
    return name.partition(".")[0].lstrip("_")


def is_of_array_library(function: Any) -> bool:
    """Whether a function belongs to a library of arrays."""
    return _library_of(function) in ("numpy", "torch", "jax", "mlx", "scipy", "cupy")


def not_of_the_language(function: Any, name: str) -> str:
    """The message for a call of a Python function that a kernel cannot call."""
    if is_of_array_library(function):
        library = _library_of(function)
        own = _same_of_language(name)
        if isinstance(function, type):
            return f"{name} is a type of {library}: in a kernel, convert with .to({own or 'dtype'})"
        return f"{name} is a function of {library}, which a kernel cannot call" + (
            f": use {own}" if own else ": a kernel can call tl functions and @triton.jit functions"
        )
    return (
        f"{name} is not a function of the language: a kernel can call tl functions and functions "
        "that are decorated with @triton_metal.jit or @triton_metal.constexpr_function"
    )


def static_only(function: Any, name: str, given: str) -> str:
    """The message for a Python function that is given a run-time value."""
    advice = ""
    if isinstance(function, type) and function in _CONVERSIONS:
        advice = f": convert it with .to({_CONVERSIONS[function]})"
    elif not isinstance(function, type) and (own := _same_of_language(name)):
        advice = f": use {own}"
    elif function is range:
        advice = (
            ": outside of a for statement a range is a compile-time value, so its bounds must be "
            "constexpr"
        )
    return f"{name} works on compile-time values, but is given {given}{advice}"


def no_attribute(value: Any, described: str, name: str) -> str:
    """The message for an attribute that a value does not have."""
    message = f"{described} has no attribute {name!r}"
    if isinstance(value, tensor) and name in _METHODS:
        return f"{message}: {_METHODS[name]}"
    if isinstance(value, tensor):
        return message + close_name(name, [*core.tensor_methods, "shape", "dtype", "type", "T"])
    if isinstance(value, tuple) and name in ("append", "extend", "insert", "pop"):
        return f"{message}: a list is a tuple in kernels, which does not change; use x = x + (y,)"
    return message


def parameters_to_annotate(node: ast.Call, scope: dict[str, Any], parameters: Iterable[str]) -> str:
    """The parameters in a call that hold run-time values where it wants compile-time values, as advice."""
    names = {
        child.id
        for argument in (*node.args, *(keyword.value for keyword in node.keywords))
        for child in ast.walk(argument)
        if isinstance(child, ast.Name)
    }
    wanted = [
        name
        for name in parameters
        if name in names and isinstance(scope.get(name), tensor) and _is_integer(scope[name])
    ]
    if not wanted:
        return ""
    return f". Write {', '.join(f'{name}: tl.constexpr' for name in wanted)} in the parameters"


def _is_integer(value: tensor) -> bool:
    return not value.shape and value.dtype.is_int()
