"""Grids of kernels that are compiled ahead of time, as they are written on a command line."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from .signature import split

Size = tuple
"""A size as a tree: ("number", n), ("name", text), ("u64", text), or an operator or function and its operands."""

_OPERATORS = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "/",
    ast.Mod: "%",
}
#: The functions that a header has for what C's operators leave undefined.
_CHECKED = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide", "%": "remainder"}
_FUNCTIONS = ("cdiv", "min", "max")
_LIMIT = 1 << 63


def read_grid(text: str, scalars: Mapping[str, str], constants: Mapping[str, Any]) -> list[Size]:
    """The three sizes of a grid, from a text such as ``"(n + BLOCK - 1) / BLOCK, 1, 1"``.

    They may name integer parameters (``scalars`` has their types) and constants, and call ``cdiv``, ``min`` and ``max``; all
    divisions are of integers. Raises ValueError for everything else, for numbers beyond 64 bits and for a divisor of 0.
    """
    parts = split(text)
    if not 1 <= len(parts) <= 3:
        raise ValueError(f"the grid {text!r} has {len(parts)} sizes; it has 1 to 3")

    def number(value: int) -> Size:
        if not -_LIMIT < value < _LIMIT:
            raise ValueError(f"the grid {text!r} holds {value}, which exceeds 64 bits")
        return ("number", value)

    def read(node: ast.AST) -> Size:
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return number(node.value)
        if isinstance(node, ast.Name) and node.id in scalars:
            return ("u64" if scalars[node.id] == "u64" else "name", node.id)
        if isinstance(node, ast.Name) and type(constants.get(node.id)) is int:
            return number(constants[node.id])
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            return divisible((_OPERATORS[type(node.op)], read(node.left), read(node.right)))
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in _FUNCTIONS
            and len(node.args) == 2
            and not node.keywords
        ):
            return divisible((node.func.id, *map(read, node.args)))
        known = ", ".join([*scalars, *constants]) or "none"
        raise ValueError(
            f"the grid {text!r} holds {ast.unparse(node)!r}: its sizes are integers, parameters ({known}), + - * / %, "
            "cdiv, min and max"
        )

    def divisible(size: Size) -> Size:
        if size[0] in ("/", "%", "cdiv") and size[2] == ("number", 0):
            raise ValueError(f"the grid {text!r} divides by 0")
        return size

    sizes = []
    for part in parts:
        try:
            sizes.append(read(ast.parse(part, mode="eval").body))
        except SyntaxError:
            raise ValueError(f"the grid {text!r} holds {part!r}, which is no expression") from None
    return [*sizes, *[("number", 1)] * (3 - len(sizes))]


def plain(size: Size, names: Mapping[str, str]) -> str:
    """A size as an expression of C that says what it is; it may overflow, or divide by 0."""
    kind = size[0]
    if kind == "number":
        return f"INT64_C({size[1]})"
    if kind in ("name", "u64"):
        return f"(int64_t){names[size[1]]}"
    a, b = (plain(operand, names) for operand in size[1:])
    if kind == "cdiv":
        return f"(({a} + {b} - 1) / {b})"
    if kind in ("min", "max"):
        return f"({a} {'<' if kind == 'min' else '>'} {b} ? {a} : {b})"
    return f"({a} {kind} {b})"


def checked(size: Size, names: Mapping[str, str]) -> str:
    """A size as an expression of C with the functions of `CHECKS`, which clear ``*valid`` where it has no value of 64 bits."""
    kind = size[0]
    if kind == "number":
        return f"INT64_C({size[1]})"
    if kind == "name":
        return f"(int64_t){names[size[1]]}"
    if kind == "u64":
        return f"triton_metal_signed({names[size[1]]}, &valid)"
    a, b = (checked(operand, names) for operand in size[1:])
    return f"triton_metal_{_CHECKED.get(kind, kind)}({a}, {b}, &valid)"


#: The functions that `checked` calls. Several headers may be included in one file.
CHECKS = """\
#ifndef TRITON_METAL_GRID
#define TRITON_METAL_GRID
static inline int64_t triton_metal_signed(uint64_t a, bool *valid) {
  *valid = *valid && a <= INT64_MAX;
  return *valid ? (int64_t)a : 0;
}
static inline int64_t triton_metal_add(int64_t a, int64_t b, bool *valid) {
  int64_t sum = 0;
  *valid = !__builtin_add_overflow(a, b, &sum) && *valid;
  return sum;
}
static inline int64_t triton_metal_subtract(int64_t a, int64_t b, bool *valid) {
  int64_t difference = 0;
  *valid = !__builtin_sub_overflow(a, b, &difference) && *valid;
  return difference;
}
static inline int64_t triton_metal_multiply(int64_t a, int64_t b, bool *valid) {
  int64_t product = 0;
  *valid = !__builtin_mul_overflow(a, b, &product) && *valid;
  return product;
}
static inline int64_t triton_metal_divide(int64_t a, int64_t b, bool *valid) {
  *valid = *valid && b != 0 && !(a == INT64_MIN && b == -1);
  return *valid ? a / b : 0;
}
static inline int64_t triton_metal_remainder(int64_t a, int64_t b, bool *valid) {
  *valid = *valid && b != 0 && !(a == INT64_MIN && b == -1);
  return *valid ? a % b : 0;
}
static inline int64_t triton_metal_cdiv(int64_t a, int64_t b, bool *valid) {
  return triton_metal_divide(triton_metal_add(a, triton_metal_subtract(b, 1, valid), valid), b, valid);
}
static inline int64_t triton_metal_min(int64_t a, int64_t b, bool *valid) {
  (void)valid;
  return a < b ? a : b;
}
static inline int64_t triton_metal_max(int64_t a, int64_t b, bool *valid) {
  (void)valid;
  return a > b ? a : b;
}
static inline uint32_t triton_metal_size(int64_t a, bool *valid) {
  *valid = *valid && a >= 0 && a <= INT32_MAX;
  return *valid ? (uint32_t)a : 0;
}
#endif
"""
