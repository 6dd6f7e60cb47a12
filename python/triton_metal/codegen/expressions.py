"""Expressions: their compile-time values, and the operations that they emit."""

from __future__ import annotations

import ast
import builtins
import inspect
import operator
from collections.abc import Callable, Iterable
from types import FunctionType, ModuleType
from typing import Any

from .. import knobs
from .._native import BinaryOp, UnaryOp, dtype, tensor
from ..constants import MISSING, contains, is_constant, unwrapped
from ..constexpr import base_type
from ..functions import JITCallable
from ..language import core
from ..language.aggregates import is_aggregate, is_aggregate_class
from ..language.blocks import BLOCKS
from ..language.overflow import checked_binary
from ..language.values import type_of
from .advice import absent, no_attribute, operator_advice, undefined
from .functions import BUILTINS
from .values import BoundMethod, PythonFunction, describe, is_runtime
from .walk import Walk

_BINARY: dict[type[ast.AST], tuple[BinaryOp | None, Callable[[Any, Any], Any], str]] = {
    ast.Add: (BinaryOp.add, operator.add, "+"),
    ast.Sub: (BinaryOp.sub, operator.sub, "-"),
    ast.Mult: (BinaryOp.mul, operator.mul, "*"),
    ast.Div: (BinaryOp.truediv, operator.truediv, "/"),
    ast.FloorDiv: (BinaryOp.floordiv, operator.floordiv, "//"),
    ast.Mod: (BinaryOp.mod, operator.mod, "%"),
    ast.Pow: (None, operator.pow, "**"),
    ast.LShift: (BinaryOp.lshift, operator.lshift, "<<"),
    ast.RShift: (BinaryOp.rshift, operator.rshift, ">>"),
    ast.BitAnd: (BinaryOp.and_, operator.and_, "&"),
    ast.BitOr: (BinaryOp.or_, operator.or_, "|"),
    ast.BitXor: (BinaryOp.xor, operator.xor, "^"),
    ast.Eq: (BinaryOp.eq, operator.eq, "=="),
    ast.NotEq: (BinaryOp.ne, operator.ne, "!="),
    ast.Lt: (BinaryOp.lt, operator.lt, "<"),
    ast.LtE: (BinaryOp.le, operator.le, "<="),
    ast.Gt: (BinaryOp.gt, operator.gt, ">"),
    ast.GtE: (BinaryOp.ge, operator.ge, ">="),
}

#: The methods of an operator, and those of the right operand.
METHODS = {
    **{
        node: (f"__{name}__", f"__r{name}__")
        for node, name in {
            ast.Add: "add",
            ast.Sub: "sub",
            ast.Mult: "mul",
            ast.Div: "truediv",
            ast.FloorDiv: "floordiv",
            ast.Mod: "mod",
            ast.Pow: "pow",
            ast.LShift: "lshift",
            ast.RShift: "rshift",
            ast.BitAnd: "and",
            ast.BitOr: "or",
            ast.BitXor: "xor",
        }.items()
    },
    ast.Eq: ("__eq__", "__eq__"),
    ast.NotEq: ("__ne__", "__ne__"),
    ast.Lt: ("__lt__", "__gt__"),
    ast.LtE: ("__le__", "__ge__"),
    ast.Gt: ("__gt__", "__lt__"),
    ast.GtE: ("__ge__", "__le__"),
}

_UNARY: dict[type[ast.AST], tuple[UnaryOp, Callable[[Any], Any]]] = {
    ast.USub: (UnaryOp.neg, operator.neg),
    ast.UAdd: (UnaryOp.pos, operator.pos),
    ast.Invert: (UnaryOp.invert, operator.invert),
    ast.Not: (UnaryOp.not_, operator.not_),
}


class Expressions(Walk):
    """The part of the walk that handles expressions."""

    def visit_Constant(self, node: ast.Constant) -> Any:
        return node.value

    def visit_Name(self, node: ast.Name) -> Any:
        return self.lookup(node.id, node)

    def lookup(self, name: str, node: ast.AST) -> Any:
        if name in self.scope:
            return self.scope[name]
        if name in self.lost:
            raise self.error(node, f"{name} has no value here: {self.lost[name]}")
        value = self.free_variable(name)
        if value is not MISSING:
            if self.is_allowed_global(value):
                return unwrapped(value)
            raise self.error(
                node,
                f"Cannot access global variable {name}, a global {type(value).__name__}: kernels read globals "
                f"only when they are constexpr. Write {name} = tl.constexpr(...), or pass it as an argument",
            )
        if name in BUILTINS:
            return BUILTINS[name]
        raise self.error(node, undefined(name, [*self.scope, *self.function.function.__globals__]))

    def free_variable(self, name: str) -> Any:
        """A variable of an enclosing function, or a global."""
        cell = self.function.cells.get(name)
        value = MISSING if cell is None else self.reads.cell(cell, self.watched)
        if value is MISSING:
            value = self.reads.name(self.function.function.__globals__, name, self.watched)
        return value

    def same_constant(self, a: Any, b: Any) -> bool:
        """Whether two compile-time values are the same. 0.0 and -0.0 differ, and so do 1 and True."""
        if a is b:
            return True
        if type(a) is not type(b):
            return False
        if isinstance(a, tuple):
            return len(a) == len(b) and all(map(self.same_constant, a, b))
        if isinstance(a, float):
            return repr(a) == repr(b)
        try:
            return bool(self.reads.call(operator.eq, a, b))
        except Exception:
            return False

    def same_value(self, a: Any, b: Any) -> bool:
        """Whether two values are the same, at run time too."""
        if isinstance(a, tuple) and isinstance(b, tuple):
            return len(a) == len(b) and all(map(self.same_value, a, b))
        if isinstance(a, tensor) and isinstance(b, tensor):
            return a._same(b) and a.type == b.type
        if isinstance(a, tensor) or isinstance(b, tensor):
            return False
        return self.same_constant(a, b)

    def elements(self, value: Any) -> tuple:
        """The elements that ``*value`` stands for."""
        return value if type(value) is tuple else self.reads.call(tuple, value)

    def is_allowed_global(self, value: Any) -> bool:
        return (
            value is None
            or isinstance(value, (core.constexpr, ModuleType, JITCallable, dtype))
            or core.is_builtin(value)
            or isinstance(value, type)
            or callable(value)
            or isinstance(value, (core.PropagateNan, base_type))
            or is_aggregate(value)
            or knobs.compilation.allow_non_constexpr_globals
        )

    def visit_Tuple(self, node: ast.Tuple | ast.List) -> tuple:
        values: list[Any] = []
        for element in node.elts:
            if isinstance(element, ast.Starred):
                values.extend(self.elements(self.visit(element.value)))
            else:
                values.append(self.visit(element))
        return tuple(values)

    def visit_ListComp(self, node: ast.ListComp) -> tuple:
        if len(node.generators) != 1:
            raise self.unsupported(node, "kernels do not support nested comprehensions")
        comprehension = node.generators[0]
        values = self.visit(comprehension.iter)
        if not isinstance(values, (core.tuple, builtins.range)):
            raise self.unsupported(node, "a comprehension in a kernel iterates over a tuple")
        saved = dict(self.scope)
        results = []
        for value in values:
            if isinstance(comprehension.target, ast.Name):
                self.scope[comprehension.target.id] = value
            else:
                self.assign(comprehension.target, value, node)
            if all(self.static_truth(test, self.visit(test)) for test in comprehension.ifs):
                results.append(self.visit(node.elt))
        self.scope = saved
        return tuple(results)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> str:
        parts = []
        for part in node.values:
            if isinstance(part, ast.Constant):
                parts.append(str(part.value))
                continue
            assert isinstance(part, ast.FormattedValue)
            value = self.visit(part.value)
            if is_runtime(value):
                raise self.error(
                    node,
                    f"an f-string can only hold compile-time values, not {describe(value)}. To print it, make it an "
                    'argument of its own: print("x =", x)',
                )
            conversion = {115: str, 114: repr, 97: ascii}.get(part.conversion)
            if conversion is not None:
                value = self.reads.call(conversion, value)
            spec = "" if part.format_spec is None else self.visit(part.format_spec)
            parts.append(self.reads.call(format, value, spec))
        return "".join(parts)

    def binary(self, node: ast.AST, op: ast.AST, left: Any, right: Any) -> Any:
        entry = _BINARY.get(type(op))
        if entry is None:
            raise self.unsupported(
                node,
                f"kernels do not support the operator {type(op).__name__}{operator_advice(op)}",
            )
        native, python, symbol = entry
        if is_aggregate(left) or is_aggregate(right):
            return self.aggregate_operator(node, op, symbol, left, right)
        if isinstance(left, tensor) or isinstance(right, tensor):
            if native is None:
                raise self.error(
                    node,
                    f"{symbol} requires compile-time numbers, not {describe(left)} and {describe(right)}"
                    f"{operator_advice(op)}",
                )
            for side in (left, right):
                if not isinstance(side, (tensor, bool, int, float)):
                    raise self.error(
                        node,
                        f"unsupported operands for {symbol}: {describe(left)} and {describe(right)}"
                        f"{self.of_none(node, left, right)}",
                    )
            self.at(node)
            if self.may_overflow and self.options.debug:
                return self.call_native(
                    node, checked_binary, self.builder, self.options, native, left, right
                )
            return self.call_native(node, self.builder.binary, native, left, right)
        return self.reads.call(python, left, right)

    @staticmethod
    def of_none(node: ast.AST, left: Any, right: Any) -> str:
        """What to do with an operand that is None."""
        if left is not None and right is not None:
            return ""
        part = getattr(node, "left" if left is None else "right", None)
        name = part.id if isinstance(part, ast.Name) else "the argument"
        return f". Pass an array or a number for {name}, or test it with: if {name} is not None"

    def aggregate_operator(
        self, node: ast.AST, op: ast.AST, symbol: str, left: Any, right: Any
    ) -> Any:
        """An operator that an aggregate defines."""
        own, reflected = METHODS[type(op)]
        for owner, name, other in ((left, own, right), (right, reflected, left)):
            if is_aggregate(owner) and inspect.getattr_static(type(owner), name, None) is not (
                inspect.getattr_static(tuple, name, None)
            ):
                method = self.member(node, owner, name)
                return self.call(node, method.function, [method.value, other], {})  # type: ignore[attr-defined]
        raise self.error(
            node, f"unsupported operands for {symbol}: {describe(left)} and {describe(right)}"
        )

    def member(self, node: ast.AST, value: Any, name: str) -> Any:
        """A field or a method of an aggregate."""
        kind = type(value)
        if name in kind._fields:
            return tuple.__getitem__(value, kind._fields.index(name))
        if name == "type":
            return type_of(value)
        found = inspect.getattr_static(kind, name, None)
        if found is None or (
            name.startswith("_")
            and hasattr(tuple, name)
            and found is inspect.getattr_static(tuple, name)
        ):
            raise self.error(node, f"{kind.__name__} has no attribute {name!r}")
        self.reads.attribute(kind, name, self.watched)
        if isinstance(found, staticmethod):
            return self.python_function(found.__func__)
        if isinstance(found, classmethod):
            return BoundMethod(self.python_function(found.__func__), kind)
        if isinstance(found, property):
            return self.call(node, self.python_function(found.fget), [value], {})
        return BoundMethod(self.python_function(found), value)

    @staticmethod
    def python_function(function: Any) -> Any:
        """A function of an aggregate, which may be plain Python."""
        return (
            PythonFunction(function)
            if isinstance(function, FunctionType) and not core.is_builtin(function)
            else function
        )

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        return self.binary(node, node.op, self.visit(node.left), self.visit(node.right))

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        operand = self.visit(node.operand)
        native, python = _UNARY[type(node.op)]
        if isinstance(operand, tensor):
            self.at(node)
            return self.builder.unary(native, operand)
        return self.reads.call(python, operand)

    def visit_Compare(self, node: ast.Compare) -> Any:
        def comparisons():
            left = self.visit(node.left)
            for op, comparator in zip(node.ops, node.comparators, strict=True):
                right = self.visit(comparator)
                if isinstance(op, (ast.Is, ast.IsNot)):
                    same = (
                        self.same_constant(left, right)
                        if is_constant(left) and is_constant(right)
                        else left is right
                        if is_runtime((left, right))
                        else self.reads.call(operator.is_, left, right)
                    )
                    yield same if isinstance(op, ast.Is) else not same
                elif isinstance(op, (ast.In, ast.NotIn)) and not is_runtime((left, right)):
                    yield self.reads.call(contains, right, left) == isinstance(op, ast.In)
                elif isinstance(op, (ast.Eq, ast.NotEq)) and isinstance(left, base_type):
                    yield (left == right) == isinstance(op, ast.Eq)
                elif isinstance(op, (ast.Eq, ast.NotEq)) and (left is None or right is None):
                    yield (left is right) == isinstance(op, ast.Eq)
                else:
                    yield self.binary(node, op, left, right)
                left = right

        values = comparisons()
        if len(node.ops) == 1:
            return next(values)
        return self.logical(node, BinaryOp.logical_and, values)

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        op = BinaryOp.logical_and if isinstance(node.op, ast.And) else BinaryOp.logical_or
        return self.logical(node, op, (self.visit(value) for value in node.values))

    def logical(self, node: ast.AST, op: BinaryOp, values: Iterable[Any]) -> Any:
        """Evaluates ``and`` and ``or``. Compile-time operands short-circuit; all run-time operands are computed."""
        runtime: list[tensor] = []
        value: Any = None
        for value in values:
            if isinstance(value, tensor):
                runtime.append(value)
            elif self.reads.call(bool, value) == (op == BinaryOp.logical_or):
                return value
        if not runtime:
            return value
        self.at(node)
        result = runtime[-1]
        for operand in reversed(runtime[:-1]):
            result = self.call_native(node, self.builder.binary, op, operand, result)
        return result

    def visit_Slice(self, node: ast.Slice) -> slice:
        def bound(part: ast.expr | None) -> Any:
            return None if part is None else self.visit(part)

        return slice(bound(node.lower), bound(node.upper), bound(node.step))

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        value = self.visit(node.value)
        index = self.visit(node.slice)
        if is_aggregate(value):
            method = self.member(node, value, "__getitem__")
            return self.call(node, method.function, [method.value, index], {})
        if isinstance(value, tensor):
            slices = index if isinstance(index, tuple) else (index,)
            self.at(node)
            return self.call_builtin(node, core.getitem, (value, *slices), {})
        if is_runtime(index):
            raise self.error(
                node.slice, f"a tuple index must be a compile-time integer, not {describe(index)}"
            )
        try:
            return self.reads.call(operator.getitem, value, index)
        except IndexError:
            raise self.error(node, self.out_of_range(node, value, index)) from None

    def out_of_range(self, node: ast.Subscript, value: Any, index: Any) -> str:
        """The message for an index that a tuple does not have."""
        text = ast.unparse(node.value)
        message = f"{text} has {len(value)} elements, so that there is no {text}[{index}]"
        part = node.value
        if isinstance(part, ast.Attribute) and part.attr == "shape" and not value:
            owner = ast.unparse(part.value)
            return (
                f"{text} is (), for {owner} is a scalar here: a kernel does not know the shape of the array that a pointer "
                "points to, so pass the sizes that it needs as arguments"
            )
        return message

    def part(self, node: ast.AST, value: Any, name: str) -> Any:
        """An attribute or a method of a block pointer or a tensor descriptor."""
        try:
            member = value.member(name)
        except AttributeError:
            kind = type(value).__name__
            raise self.error(node, f"a {kind} has no attribute {name!r}") from None
        return BoundMethod(member, value) if core.is_builtin(member) else member

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        value = self.visit(node.value)
        name = node.attr
        if isinstance(value, tensor):
            if name == "T":
                self.at(node)
                return self.call_builtin(node, core.permute, (value, 1, 0), {})
            if name in core.tensor_methods:
                return BoundMethod(core.tensor_methods[name], value)
            if name in ("shape", "dtype", "type", "numel"):
                return getattr(value, name)
            raise self.error(node, no_attribute(value, describe(value), name))
        if is_aggregate(value):
            return self.member(node, value, name)
        if isinstance(value, BLOCKS):
            return self.part(node, value, name)
        if name == "type" and (
            value is None or isinstance(value, (bool, int, float, str, core.tuple))
        ):
            return type_of(value)
        if isinstance(value, (bool, int, float)) and not self.reads.call(hasattr, value, name):
            # A run-time integer that is 1 at the launch is a constant here; it answers like a tensor.
            if name in core.tensor_methods:
                self.at(node)
                return BoundMethod(core.tensor_methods[name], self.builder.to_tensor(value))
            if name == "dtype":
                return self.builder.type_of(value)
            if name in ("shape", "numel"):
                return () if name == "shape" else 1
        if name == "value" and not self.reads.call(hasattr, value, "value"):
            return value  # what is a constexpr outside is its value here
        if is_aggregate_class(value):
            return self.python_function(self.reads.attribute(value, name, self.watched))
        try:
            return self.reads.attribute(value, name, self.watched or type(value) is not ModuleType)
        except AttributeError as error:
            if isinstance(value, ModuleType):
                # A module that answers by itself says why it has none.
                own = str(error) if hasattr(value, "__getattr__") else ""
                raise self.error(node, own or absent(value, name)) from None
            raise self.error(node, no_attribute(value, describe(value), name)) from None
