"""The walk over a kernel's AST: every node becomes a compile-time value or calls of the builder.

Compile-time values are plain Python objects; run-time values are ``tensor``; tuples hold either.
What an operation means is decided in C++ (compiler/language), not here.
"""

from __future__ import annotations

import ast
import builtins
import math as python_math
import operator
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, Any

from . import _native
from ._native import BinaryOp, Builder, UnaryOp, dtype, tensor
from .errors import (
    CompileError,
    SourceLocation,
    StaticAssertionError,
    UnsupportedConstruct,
    node_length,
)
from .language import core
from .reads import MISSING, Reads, contains, is_constant, is_own, unwrapped

if TYPE_CHECKING:
    from .jit import JITFunction


@dataclass(frozen=True)
class CodegenOptions:
    """What the walk itself depends on."""

    debug: bool = False


@dataclass
class BoundMethod:
    """``x.sum``: a function of the language with its tensor."""

    function: Any
    value: Any


@dataclass
class FunctionResult:
    """A finished function: its symbol, and the structure of what it returns."""

    symbol: str
    template: Any


@dataclass
class ModuleState:
    """What the functions of one module share."""

    builder: Builder
    options: CodegenOptions
    reads: Reads
    functions: dict[Any, FunctionResult | None] = field(default_factory=dict)
    symbols: set[str] = field(default_factory=set)
    constants: list[Any] = field(default_factory=list)  # kept alive while keys hold their ids


class RuntimeLeaf:
    """In a template: a run-time value of this type."""

    __slots__ = ("type",)

    def __init__(self, type: dtype) -> None:
        self.type = type


@dataclass(frozen=True)
class Memory:
    """What a launch knows of an array's memory."""

    number: int = 0  # arrays with one number may overlap; 0 overlaps with none
    same_as: str = ""  # an earlier argument that is the very same array


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

_UNARY: dict[type[ast.AST], tuple[UnaryOp, Callable[[Any], Any]]] = {
    ast.USub: (UnaryOp.neg, operator.neg),
    ast.UAdd: (UnaryOp.pos, operator.pos),
    ast.Invert: (UnaryOp.invert, operator.invert),
    ast.Not: (UnaryOp.not_, operator.not_),
}

_REFUSED = {
    ast.Break: "break: leave the loop through its condition (a while loop with a flag)",
    ast.Continue: "continue: put the rest of the body under an if",
    ast.Try: "try: kernels have no exceptions",
    ast.Raise: "raise: kernels have no exceptions; see tl.static_assert and tl.device_assert",
    ast.ClassDef: "class definitions",
    ast.Lambda: "lambda: write a @triton_metal.jit function",
    ast.AsyncFunctionDef: "async functions",
    ast.Yield: "yield",
    ast.YieldFrom: "yield",
    ast.Await: "await",
    ast.Dict: "dictionaries",
    ast.Set: "sets",
    ast.DictComp: "dictionary comprehensions",
    ast.SetComp: "set comprehensions",
    ast.GeneratorExp: "generator expressions",
    ast.Global: "global",
    ast.Nonlocal: "nonlocal",
    ast.Delete: "del",
    ast.Import: "import: import modules outside the kernel",
    ast.ImportFrom: "import: import modules outside the kernel",
    ast.With: "with",
    ast.Match: "match: use if and elif",
    ast.Starred: "* in this place",
}


def is_runtime(value: Any) -> bool:
    """Whether a value, or anything in a tuple, is known only at run time."""
    if isinstance(value, tuple):
        return any(is_runtime(v) for v in value)
    return isinstance(value, tensor)


def flatten(value: Any, into: list[tensor]) -> list[tensor]:
    """The run-time values in a value, in order."""
    if isinstance(value, tuple):
        for element in value:
            flatten(element, into)
    elif isinstance(value, tensor):
        into.append(value)
    return into


def template_of(value: Any) -> Any:
    """A value with its run-time parts replaced by their types."""
    if isinstance(value, tuple):
        return rebuild_tuple(value, [template_of(v) for v in value])
    return RuntimeLeaf(value.type) if isinstance(value, tensor) else value


def rebuild_tuple(like: tuple, values: list[Any]) -> tuple:
    """A tuple, or the same named tuple, of other values."""
    return type(like)(*values) if hasattr(like, "_fields") else tuple(values)


def fill(template: Any, values: Iterable[tensor]) -> Any:
    """The inverse of template_of."""
    values = iter(values)

    def build(part: Any) -> Any:
        if isinstance(part, tuple):
            return rebuild_tuple(part, [build(p) for p in part])
        return next(values) if isinstance(part, RuntimeLeaf) else part

    return build(template)


def describe(value: Any) -> str:
    """A value's type, for messages."""
    if isinstance(value, tensor):
        return str(value)
    if isinstance(value, RuntimeLeaf):
        return str(value.type)
    if isinstance(value, tuple):
        return "(" + ", ".join(describe(v) for v in value) + ")"
    if isinstance(value, (bool, int, float, str)) or value is None:
        return f"constexpr {value!r}"
    return f"{type(value).__name__} {getattr(value, '__name__', value)!s}"


_assigned_cache: dict[int, tuple[ast.AST, frozenset[str]]] = {}


def assigned_names(node: ast.AST) -> frozenset[str]:
    """The names that a statement's body binds."""
    cached = _assigned_cache.get(id(node))
    if cached is not None and cached[0] is node:
        return cached[1]
    names = frozenset(
        child.id
        for child in ast.walk(node)
        if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store)
    )
    _assigned_cache[id(node)] = (node, names)
    return names


def contains_return(node: ast.AST) -> bool:
    return any(isinstance(child, ast.Return) for child in ast.walk(node))


class CodeGenerator:
    """Generates one function of a module."""

    def __init__(self, function: JITFunction, state: ModuleState) -> None:
        self.function = function
        self.state = state
        self.builder = state.builder
        self.options = state.options
        self.scope: dict[str, Any] = {}
        self.lost: dict[str, str] = {}
        self.reads = state.reads
        self.reads.function(function.function)
        # What this package's own functions read changes with its build only.
        self.watched = not is_own(function.function)
        self.returns: list[tuple[Any, Any, ast.AST]] = []
        self.pending: dict[str, Any] = {}
        self.terminated = False
        self.region_depth = 0
        self.default_scope = False
        source = function.source
        self.file = source.file
        self.line_offset = source.first_line - 1
        self.column_offset = source.indent + 1
        self.lines = source.lines

    # --- Places and errors ---------------------------------------------------------------------

    def at(self, node: ast.AST) -> None:
        """Operations that follow come from this node."""
        self.builder.set_location(
            self.file,
            self.line_offset + node.lineno,  # type: ignore[attr-defined]
            self.column_offset + node.col_offset,  # type: ignore[attr-defined]
        )

    def location(self, node: ast.AST) -> SourceLocation:
        line = getattr(node, "lineno", 1)
        text = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        return SourceLocation(
            self.file,
            self.line_offset + line,
            self.column_offset + getattr(node, "col_offset", 0),
            text,
            node_length(node),
        )

    def unsupported(self, node: ast.AST, message: str) -> UnsupportedConstruct:
        return UnsupportedConstruct(message, self.location(node))

    def error(self, node: ast.AST, message: str) -> CompileError:
        return CompileError(message, self.location(node))

    # --- The function -----------------------------------------------------------------------------

    def generate(
        self,
        symbol: str,
        arguments: dict[str, Any],
        is_kernel: bool,
        divisibility: dict[str, int] | None = None,
        memory: dict[str, Memory] | None = None,
    ) -> FunctionResult:
        """Emits the function. ``arguments`` holds templates: types where values come at run time."""
        node = self.function.source.node
        types: list[dtype] = []
        names: list[str] = []

        def collect(name: str, part: Any) -> None:
            if isinstance(part, tuple):
                for index, element in enumerate(part):
                    collect(f"{name}.{index}", element)
            elif isinstance(part, RuntimeLeaf):
                types.append(part.type)
                names.append(name)

        for name, part in arguments.items():
            collect(name, part)
        hints = [(divisibility or {}).get(name, 0) for name in names]
        shared = [(memory or {}).get(name, Memory()) for name in names]
        self.builder.set_location(self.file, self.line_offset + node.lineno, self.column_offset)
        values = iter(
            self.builder.begin_function(
                symbol,
                types,
                names,
                is_kernel,
                self.function.noinline,
                hints,
                [part.number for part in shared],
            )
        )
        for name, part in arguments.items():
            self.scope[name] = fill(part, values)
        for name, part in (memory or {}).items():
            if part.same_as and self.scope[name].type == self.scope[part.same_as].type:
                self.scope[name] = self.scope[part.same_as]
        self.statements(node.body)
        template = self.finish(node, is_kernel)
        return FunctionResult(symbol, template)

    def finish(self, node: ast.FunctionDef, is_kernel: bool) -> Any:
        """Emits the returns, all of one type."""
        builder = self.builder
        if not self.terminated:
            for _, value, place in self.returns:
                if value is not None:
                    raise self.error(
                        place,
                        f"{self.function.name} returns a value here, but its end can be reached "
                        "without a return",
                    )
            self.returns.append((builder.current_block(), None, node))
        template = template_of(self.returns[0][1])
        for _, value, place in self.returns[1:]:
            template = self.common(template, template_of(value), place)
        if is_kernel and template is not None:
            raise self.error(self.returns[0][2], "a kernel cannot return a value: store it")
        results: list[dtype] = []
        for block, value, place in self.returns:
            handles: list[tensor] = []
            builder.set_block(block)
            self.materialize(template, value, handles)
            self.at(place)
            builder.emit_return(block, handles)
            results = [handle.type for handle in handles]
        builder.end_function(results)
        return template

    def common(self, a: Any, b: Any, place: ast.AST) -> Any:
        """The template that two returns share."""
        if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
            return rebuild_tuple(a, [self.common(x, y, place) for x, y in zip(a, b, strict=True)])
        a_type, b_type = self.leaf_type(a), self.leaf_type(b)
        static = not isinstance(a, RuntimeLeaf) and not isinstance(b, RuntimeLeaf)
        if static and self.same_constant(a, b):
            return a
        if a_type is None or b_type is None or a_type != b_type:
            raise self.error(
                place,
                f"{self.function.name} returns {describe(b)} here, but {describe(a)} elsewhere: "
                "all returns must have one type",
            )
        return RuntimeLeaf(a_type)

    def leaf_type(self, value: Any) -> dtype | None:
        if isinstance(value, RuntimeLeaf):
            return value.type
        if isinstance(value, (bool, int, float)):
            return self.builder.type_of(value)
        return None

    def materialize(self, template: Any, value: Any, into: list[tensor]) -> None:
        if isinstance(template, tuple):
            for part, element in zip(template, value, strict=True):
                self.materialize(part, element, into)
        elif isinstance(template, RuntimeLeaf):
            into.append(value if isinstance(value, tensor) else self.builder.to_tensor(value))

    # --- Statements -----------------------------------------------------------------------------

    def statements(self, body: list[ast.stmt]) -> None:
        for statement in body:
            if self.terminated:
                return
            self.visit(statement)

    def visit(self, node: ast.AST) -> Any:
        method = _VISITORS.get(type(node))
        try:
            if method is None:
                what = _REFUSED.get(type(node), f"{type(node).__name__} nodes")
                raise self.unsupported(node, f"kernels do not have {what}")
            return method(self, node)
        except CompileError:
            raise
        except RecursionError:
            raise
        except (TypeError, ValueError) as error:
            raise self.error(node, str(error) or repr(error)) from error
        except Exception as error:  # of Python that runs while compiling
            raise self.error(node, f"{type(error).__name__}: {error}") from error

    def visit_Expr(self, node: ast.Expr) -> None:
        self.visit(node.value)

    def visit_Pass(self, node: ast.Pass) -> None:
        pass

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        raise self.unsupported(
            node,
            "a function cannot be defined inside a kernel: move it to module level and decorate it "
            "with @triton_metal.jit",
        )

    def visit_Return(self, node: ast.Return) -> None:
        if self.region_depth:
            raise self.unsupported(
                node, "return cannot stand inside a for or while loop: use a flag variable"
            )
        value = None if node.value is None else self.visit(node.value)
        self.returns.append((self.builder.current_block(), value, node))
        self.terminated = True

    def visit_Assert(self, node: ast.Assert) -> None:
        test = self.visit(node.test)
        message = "" if node.msg is None else self.visit(node.msg)
        if not is_runtime(test):
            if not self.reads.call(bool, test):
                raise StaticAssertionError(
                    f"assertion failed{': ' + str(message) if message else ''}", self.location(node)
                )
            return
        self.at(node)
        self.call_builtin(node, core.device_assert, (test, message), {})

    def runtime_variable(self, value: Any) -> Any:
        """A number that is assigned to a variable becomes a run-time value, as in Triton."""
        if isinstance(value, tuple):
            return rebuild_tuple(value, [self.runtime_variable(v) for v in value])
        if isinstance(value, (bool, int, float)):
            return self.builder.to_tensor(value)
        return value

    def bind(self, name: str, value: Any) -> None:
        self.scope[name] = value
        self.lost.pop(name, None)
        if isinstance(value, tensor):
            self.builder.set_name(value, name)
        elif isinstance(value, tuple):
            for index, element in enumerate(value):
                if isinstance(element, tensor):
                    self.builder.set_name(element, f"{name}_{index}")

    def assign(self, target: ast.expr, value: Any, node: ast.AST) -> None:
        if isinstance(target, ast.Name):
            if self.pending.pop(target.id, None) is core.constexpr:
                if is_runtime(value):
                    raise self.error(
                        node, f"{target.id} is a constexpr, but its value is {describe(value)}"
                    )
                self.scope[target.id] = value
                return
            self.at(node)
            self.bind(target.id, self.runtime_variable(value))
        elif isinstance(target, (ast.Tuple, ast.List)):
            if not isinstance(value, tuple):
                raise self.error(target, f"cannot unpack {describe(value)}: it is no tuple")
            if any(isinstance(element, ast.Starred) for element in target.elts):
                raise self.unsupported(target, "kernels do not have * in assignment targets")
            if len(value) != len(target.elts):
                raise self.error(
                    target, f"{len(target.elts)} names for a tuple of {len(value)} values"
                )
            for element, part in zip(target.elts, value, strict=True):
                self.assign(element, part, node)
        elif isinstance(target, ast.Subscript):
            raise self.unsupported(
                target, "elements of a tensor cannot be assigned: use tl.where, or tl.store"
            )
        else:
            raise self.unsupported(target, "attributes cannot be assigned in a kernel")

    def visit_Assign(self, node: ast.Assign) -> None:
        value = self.visit(node.value)
        for target in node.targets:
            self.assign(target, value, node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if not isinstance(node.target, ast.Name):
            raise self.unsupported(node, "only a name can be annotated in a kernel")
        annotation = self.visit(node.annotation)
        if node.value is None:
            self.pending[node.target.id] = annotation
            return
        value = self.visit(node.value)
        if annotation is core.constexpr:
            if is_runtime(value):
                raise self.error(
                    node.value,
                    f"{node.target.id} is annotated as constexpr, but its value is "
                    f"{describe(value)}, known only at run time",
                )
            self.scope[node.target.id] = value
            self.lost.pop(node.target.id, None)
            return
        self.assign(node.target, value, node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if not isinstance(node.target, ast.Name):
            raise self.unsupported(node.target, "only a name can be assigned in a kernel")
        left = self.lookup(node.target.id, node.target)
        right = self.visit(node.value)
        self.assign(node.target, self.binary(node, node.op, left, right), node)

    def visit_NamedExpr(self, node: ast.NamedExpr) -> Any:
        self.assign(node.target, self.visit(node.value), node)
        return self.scope[node.target.id]

    # --- if ---------------------------------------------------------------------------------------

    def static_truth(self, node: ast.AST, value: Any) -> bool:
        if value is None or isinstance(value, (bool, int)):
            return self.reads.call(bool, value)
        raise self.error(node, f"a condition is a boolean or an integer, not {describe(value)}")

    def visit_If(self, node: ast.If) -> None:
        test = self.visit(node.test)
        if not isinstance(test, tensor):
            self.statements(node.body if self.static_truth(node.test, test) else node.orelse)
            return
        self.at(node.test)
        test = self.call_native(node.test, self.builder.condition, test)
        self.at(node)
        if contains_return(node):
            if self.region_depth:
                raise self.unsupported(
                    node, "return cannot stand inside a for or while loop: use a flag variable"
                )
            self.branching_if(node, test)
        else:
            self.region_if(node, test)

    def branching_if(self, node: ast.If, test: tensor) -> None:
        """An if with a return in it: branches between blocks."""
        builder = self.builder
        then_block, else_block = builder.create_block(), builder.create_block()
        builder.cond_branch(test, then_block, else_block)
        before = dict(self.scope)
        ends = []
        for block, body in ((then_block, node.body), (else_block, node.orelse)):
            self.scope = dict(before)
            self.terminated = False
            builder.set_block(block)
            self.statements(body)
            if not self.terminated:
                ends.append((builder.current_block(), self.scope))
        self.terminated = not ends
        if not ends:
            self.scope = before
            return
        if len(ends) == 1:
            block, self.scope = ends[0]
            builder.set_block(block)
            return
        names, templates = self.merged_names(node, before, ends[0][1], ends[1][1])
        join = builder.create_block()
        types = [leaf.type for leaf in self.template_leaves(templates)]
        self.at(node)
        for block, scope in ends:
            builder.set_block(block)
            builder.branch(join, flatten(tuple(scope[name] for name in names), []))
        arguments = builder.add_arguments(join, types)
        builder.set_block(join)
        self.take_merged(before, names, templates, arguments)

    def region_if(self, node: ast.If, test: tensor) -> None:
        """An if without a return: scf.if."""
        before = dict(self.scope)
        region = self.builder.begin_if(test)
        self.scope = dict(before)
        self.statements(node.body)
        then_scope = self.scope
        region.begin_else()
        self.scope = dict(before)
        self.statements(node.orelse)
        else_scope = self.scope
        names, templates = self.merged_names(node, before, then_scope, else_scope)
        self.at(node)
        results = region.finish(
            flatten(tuple(then_scope[name] for name in names), []),
            flatten(tuple(else_scope[name] for name in names), []),
        )
        self.take_merged(before, names, templates, results)

    @staticmethod
    def template_leaves(templates: list[Any]) -> list[RuntimeLeaf]:
        leaves: list[RuntimeLeaf] = []

        def collect(part: Any) -> None:
            if isinstance(part, tuple):
                for element in part:
                    collect(element)
            elif isinstance(part, RuntimeLeaf):
                leaves.append(part)

        for template in templates:
            collect(template)
        return leaves

    def merged_names(
        self, node: ast.If, before: dict[str, Any], then: dict[str, Any], other: dict[str, Any]
    ) -> tuple[list[str], list[Any]]:
        """The variables that have a value on both paths, and not the same."""
        names, templates = [], []
        changed = [
            name
            for name in {**then, **other}
            if name not in before
            or not self.same_value(then.get(name), before[name])
            or not self.same_value(other.get(name), before[name])
        ]
        for name in changed:
            if name not in then or name not in other:
                self.lost[name] = "it is assigned on one path of an if only"
                continue
            a, b = then[name], other[name]
            if self.same_value(a, b) and not is_runtime(a):
                before[name] = a
                continue
            a_template, b_template = template_of(a), template_of(b)
            if not self.mergeable(a_template, b_template):
                if name in before:
                    raise self.error(
                        node,
                        f"{name} is {describe(before[name])} before this if, {describe(a)} after "
                        f"its first branch and {describe(b)} after the other: its type must not "
                        "depend on a run-time condition",
                    )
                raise self.error(
                    node,
                    f"{name} is {describe(a)} after the first branch of this if and {describe(b)} "
                    "after the other: both must have one type",
                )
            names.append(name)
            templates.append(a_template)
        return names, templates

    def mergeable(self, a: Any, b: Any) -> bool:
        if isinstance(a, tuple) and isinstance(b, tuple):
            return len(a) == len(b) and all(self.mergeable(x, y) for x, y in zip(a, b, strict=True))
        if isinstance(a, RuntimeLeaf) and isinstance(b, RuntimeLeaf):
            return a.type == b.type
        if isinstance(a, RuntimeLeaf) or isinstance(b, RuntimeLeaf):
            return False
        return self.same_constant(a, b)

    def take_merged(
        self,
        before: dict[str, Any],
        names: list[str],
        templates: list[Any],
        results: list[tensor],
    ) -> None:
        self.scope = before
        values = iter(results)
        for name, template in zip(names, templates, strict=True):
            self.bind(name, fill(template, values))

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        test = self.visit(node.test)
        if not isinstance(test, tensor):
            return self.visit(node.body if self.static_truth(node.test, test) else node.orelse)
        self.at(node.test)
        test = self.call_native(node.test, self.builder.condition, test)
        region = self.builder.begin_if(test)
        self.region_depth += 1
        then = self.to_runtime(node.body, self.visit(node.body))
        region.begin_else()
        other = self.to_runtime(node.orelse, self.visit(node.orelse))
        self.region_depth -= 1
        a, b = template_of(then), template_of(other)
        if not self.mergeable(a, b):
            raise self.error(
                node,
                f"the two sides of this expression are {describe(then)} and {describe(other)}: "
                "under a run-time condition both must have one type",
            )
        self.at(node)
        return fill(a, region.finish(flatten(then, []), flatten(other, [])))

    def to_runtime(self, node: ast.AST, value: Any) -> Any:
        self.at(node)
        return self.runtime_variable(value)

    # --- Loops ------------------------------------------------------------------------------------

    def carried(self, node: ast.AST, extra: Iterable[str] = ()) -> list[str]:
        """The variables from before a loop that its body assigns."""
        assigned = assigned_names(node)
        return [
            name
            for name, value in self.scope.items()
            if name in assigned and name not in extra and is_runtime(value)
        ]

    def check_carried(
        self, node: ast.AST, names: list[str], before: dict[str, Any], target: str | None = None
    ) -> list[tensor]:
        """The values to carry over; every variable keeps its type, compile-time ones their value."""
        for name, old in before.items():
            new = self.scope.get(name)
            if name == target or self.same_value(old, new):
                continue
            if name not in names:
                raise self.error(
                    node,
                    f"{name} is {describe(old)} before this loop and {describe(new)} after its "
                    "body: a compile-time value cannot change in a run-time loop",
                )
            if not self.mergeable(template_of(old), template_of(new)):
                raise self.error(
                    node,
                    f"{name} is {describe(old)} before this loop and {describe(new)} after its "
                    "body: its type must stay the same",
                )
        return flatten(tuple(self.scope[name] for name in names), [])

    def enter_body(self, before: dict[str, Any], names: list[str], arguments: list[tensor]) -> None:
        self.scope = dict(before)
        values = iter(arguments)
        for name in names:
            self.scope[name] = fill(template_of(before[name]), values)
        for name in names:
            value = self.scope[name]
            if isinstance(value, tensor):
                self.builder.set_name(value, name)

    def leave_loop(
        self,
        before: dict[str, Any],
        names: list[str],
        results: list[tensor],
    ) -> None:
        for name in self.scope:
            if name not in before:
                self.lost[name] = "it is assigned inside a loop only: assign it before the loop"
        templates = [template_of(before[name]) for name in names]
        self.take_merged(before, names, templates, results)

    def visit_For(self, node: ast.For) -> None:
        if not isinstance(node.target, ast.Name):
            raise self.unsupported(node.target, "a loop variable is one name")
        if node.orelse:
            raise self.unsupported(node, "kernels do not have else after a loop")
        iterator = self.iterator(node)
        if isinstance(iterator, core.static_range):
            for index in iterator.range:
                if self.terminated:
                    return
                self.scope[node.target.id] = index
                self.statements(node.body)
            return
        name = node.target.id
        before = dict(self.scope)
        before.pop(name, None)
        self.scope.pop(name, None)
        names = self.carried(node, (name,))
        inits = flatten(tuple(before[n] for n in names), [])
        self.at(node)
        loop = self.call_native(
            node.iter,
            self.builder.begin_for,
            iterator.start,
            iterator.end,
            iterator.step,
            inits,
            iterator.num_stages,
            iterator.loop_unroll_factor,
            iterator.disallow_acc_multi_buffer,
            iterator.flatten,
            iterator.warp_specialize,
            iterator.disable_licm,
        )
        self.enter_body(before, names, loop.arguments)
        entry = dict(self.scope)
        self.scope[name] = loop.induction
        self.builder.set_name(loop.induction, name)
        self.region_depth += 1
        self.statements(node.body)
        self.region_depth -= 1
        yields = self.check_carried(node, names, entry, name)
        self.at(node)
        self.leave_loop(before, names, loop.finish(yields))
        self.lost[name] = "it is the variable of a loop, which has ended"

    def iterator(self, node: ast.For) -> core.range | core.static_range:
        call = node.iter
        function = self.visit(call.func) if isinstance(call, ast.Call) else None
        if not any(function is one for one in (builtins.range, core.range, core.static_range)):
            raise self.unsupported(
                node.iter, "a for loop runs over range, tl.range or tl.static_range"
            )
        assert isinstance(call, ast.Call)
        args, kwargs = self.arguments(call)
        if function is builtins.range:
            if kwargs or not 1 <= len(args) <= 3:
                raise self.error(node.iter, "range takes 1 to 3 arguments, and no keywords")
            function = core.range
        for value in args[:3]:
            if not isinstance(value, (int, tensor)) or isinstance(value, bool):
                raise self.error(
                    node.iter, f"the bounds of a loop are integers, not {describe(value)}"
                )
        return function(*args, **kwargs)

    def visit_While(self, node: ast.While) -> None:
        if node.orelse:
            raise self.unsupported(node, "kernels do not have else after a loop")
        before = dict(self.scope)
        names = self.carried(node)
        inits = flatten(tuple(before[n] for n in names), [])
        self.at(node)
        loop = self.builder.begin_while(inits)
        self.region_depth += 1
        self.enter_body(before, names, loop.arguments)
        test = self.visit(node.test)
        if isinstance(test, core.condition):
            test = test.condition
        if not isinstance(test, tensor):
            self.static_truth(node.test, test)
            test = self.to_runtime(node.test, bool(test))
        self.at(node.test)
        test = self.call_native(node.test, self.builder.condition, test)
        self.enter_body(before, names, loop.end_condition(test))
        entry = dict(self.scope)
        self.statements(node.body)
        self.region_depth -= 1
        yields = self.check_carried(node, names, entry)
        self.at(node)
        self.leave_loop(before, names, loop.finish(yields))

    # --- Expressions -------------------------------------------------------------------------------

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
                f"{name} is a global {type(value).__name__}: kernels read globals only when they "
                f"are constexpr. Write {name} = tl.constexpr(...), or pass it as an argument",
            )
        if name in _BUILTINS:
            return _BUILTINS[name]
        raise self.error(node, f"{name} is not defined")

    def free_variable(self, name: str) -> Any:
        """A variable of a function around this one, or a global."""
        cell = self.function.cells.get(name)
        value = MISSING if cell is None else self.reads.cell(cell, self.watched)
        if value is MISSING:
            value = self.reads.name(self.function.function.__globals__, name, self.watched)
        return value

    def same_constant(self, a: Any, b: Any) -> bool:
        """Whether two compile-time values are the same; 0.0 and -0.0, 1 and True are not."""
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
        """What ``*value`` stands for."""
        return value if type(value) is tuple else self.reads.call(tuple, value)

    @staticmethod
    def is_allowed_global(value: Any) -> bool:
        from .jit import JITCallable

        return (
            value is None
            or isinstance(value, (core.constexpr, ModuleType, JITCallable, dtype))
            or core.is_builtin(value)
            or isinstance(value, type)
            or callable(value)
            or isinstance(value, core.PropagateNan)
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
            raise self.unsupported(node, "kernels do not have nested comprehensions")
        comprehension = node.generators[0]
        values = self.visit(comprehension.iter)
        if not isinstance(values, (tuple, builtins.range)):
            raise self.unsupported(node, "a comprehension in a kernel runs over a tuple")
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
                    node, f"an f-string holds compile-time values, not {describe(value)}"
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
            raise self.unsupported(node, f"kernels do not have the operator {type(op).__name__}")
        native, python, symbol = entry
        if isinstance(left, tensor) or isinstance(right, tensor):
            if native is None:
                raise self.error(
                    node,
                    f"{symbol} is for compile-time numbers, not {describe(left)} and {describe(right)}",
                )
            for side in (left, right):
                if not isinstance(side, (tensor, bool, int, float)):
                    raise self.error(
                        node,
                        f"unsupported operands for {symbol}: {describe(left)} and {describe(right)}",
                    )
            self.at(node)
            return self.call_native(node, self.builder.binary, native, left, right)
        return self.reads.call(python, left, right)

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
        """and, or: compile-time operands decide while compiling; the others are all computed."""
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
        if isinstance(value, tensor):
            slices = index if isinstance(index, tuple) else (index,)
            self.at(node)
            return self.call_builtin(node, core.getitem, (value, *slices), {})
        if is_runtime(index):
            raise self.error(
                node.slice, f"a tuple is indexed by a compile-time integer, not {describe(index)}"
            )
        return self.reads.call(operator.getitem, value, index)

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
            raise self.error(node, f"{describe(value)} has no attribute {name!r}")
        if isinstance(value, (bool, int, float)) and not self.reads.call(hasattr, value, name):
            # A run-time integer that is 1 at the launch is a constant here; it answers like a tensor.
            if name in core.tensor_methods:
                self.at(node)
                return BoundMethod(core.tensor_methods[name], self.builder.to_tensor(value))
            if name in ("dtype", "type"):
                return self.builder.type_of(value)
            if name in ("shape", "numel"):
                return () if name == "shape" else 1
        if name == "value" and not self.reads.call(hasattr, value, "value"):
            return value  # what is a constexpr outside is its value here
        try:
            return self.reads.attribute(value, name, self.watched or type(value) is not ModuleType)
        except AttributeError:
            if isinstance(value, ModuleType):
                raise self.error(node, f"{value.__name__} has no {name!r}") from None
            raise self.error(node, f"{describe(value)} has no attribute {name!r}") from None

    # --- Calls --------------------------------------------------------------------------------------

    def arguments(self, node: ast.Call) -> tuple[list[Any], dict[str, Any]]:
        args: list[Any] = []
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                args.extend(self.elements(self.visit(argument.value)))
            else:
                args.append(self.visit(argument))
        kwargs: dict[str, Any] = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                raise self.unsupported(node, "kernels do not have ** in calls")
            kwargs[keyword.arg] = self.visit(keyword.value)
        return args, kwargs

    def visit_Call(self, node: ast.Call) -> Any:
        function = self.visit(node.func)
        if function is core.static_assert:
            return self.static_assert(node)
        args, kwargs = self.arguments(node)
        if isinstance(function, BoundMethod):
            args.insert(0, function.value)
            function = function.function
        return self.call(node, function, args, kwargs)

    def call(self, node: ast.AST, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        from .jit import ConstexprFunction, JITFunction

        if isinstance(function, JITFunction):
            try:
                return self.call_jit(function, tuple(args), kwargs, node)
            except CompileError as error:
                raise error.called_from(self.location(node)) from error.__cause__
        if core.is_builtin(function):
            self.at(node)
            return self.call_builtin(node, function, tuple(args), kwargs)
        if isinstance(function, ConstexprFunction):
            function = function.function
        elif id(function) in _STATIC_FUNCTIONS:
            special = _STATIC_FUNCTIONS[id(function)]
            if special is not None:
                return special(self.reads, *args, **kwargs)
        elif not self.is_static_callable(function):
            name = getattr(function, "__name__", None) or describe(function)
            raise self.error(
                node,
                f"{name} is no function of the language: kernels call tl functions and functions "
                "that are decorated with @triton_metal.jit or @triton_metal.constexpr_function",
            )
        if function is core.condition:
            return self.call_builtin(node, function, tuple(args), kwargs)
        for value in (*args, *kwargs.values()):
            if is_runtime(value):
                name = getattr(function, "__name__", str(function))
                raise self.error(
                    node,
                    f"{name} works on compile-time values, but is given {describe(value)}",
                )
        return self.reads.call(function, *args, **kwargs)

    @staticmethod
    def is_static_callable(function: Any) -> bool:
        """Python that may run while compiling: math, methods of compile-time values, types of ours."""
        if not callable(function):
            return False
        if any(function is one for one in _STATIC_CLASSES):
            return True
        owner = getattr(function, "__self__", None)
        if owner is not None and not isinstance(owner, ModuleType):
            return True
        if getattr(function, "__module__", None) == "math":
            return getattr(python_math, function.__name__, None) is function
        return isinstance(function, type) and issubclass(function, tuple)

    def call_builtin(
        self, node: ast.AST, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        previous = getattr(core._active, "generator", None)
        core._active.generator = self
        try:
            if function is not core.static_print:  # which shows a value, and takes nothing from it
                args = tuple(map(self.reads.settle, args))
                kwargs = {name: self.reads.settle(value) for name, value in kwargs.items()}
            return function(*args, **kwargs)
        except CompileError as error:  # of a function that the operation calls
            raise error.called_from(self.location(node)) from error.__cause__
        except TypeError as error:
            raise self.error(node, self.clean(error, function, args)) from error
        except ValueError as error:
            raise self.error(node, str(error)) from error
        finally:
            core._active.generator = previous

    def call_native(self, node: ast.AST, method: Any, *args: Any) -> Any:
        try:
            return method(*args)
        except TypeError as error:
            raise self.error(node, self.clean(error, method, args)) from error
        except ValueError as error:
            raise self.error(node, str(error)) from error

    @staticmethod
    def clean(error: TypeError, function: Any, args: tuple[Any, ...]) -> str:
        """The binding layer's complaint about argument types, in the language's words."""
        message = str(error)
        if "incompatible function arguments" not in message:
            return message
        name = getattr(function, "__name__", "this operation")
        return f"{name} does not take ({', '.join(describe(arg) for arg in args)})"

    def static_assert(self, node: ast.Call) -> None:
        if not 1 <= len(node.args) <= 2 or node.keywords:
            raise self.error(node, "static_assert takes a condition and, if wanted, a message")
        passed = self.visit(node.args[0])
        if is_runtime(passed):
            raise self.error(
                node.args[0],
                f"static_assert takes a compile-time condition, not {describe(passed)}",
            )
        if self.reads.call(bool, passed):
            return
        message = self.visit(node.args[1]) if len(node.args) == 2 else ""
        raise StaticAssertionError(
            f"static assertion failed{': ' + str(message) if message else ''}", self.location(node)
        )

    def call_jit(
        self,
        function: JITFunction,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        node: ast.AST | None = None,
    ) -> Any:
        """Calls another @jit function; it is generated once for each combination of argument types."""
        from .jit import JITFunction

        if not isinstance(function, JITFunction):
            raise TypeError(f"expected a @triton_metal.jit function, not {describe(function)}")
        try:
            bound = function.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{function.name}: {error}") from None
        bound.apply_defaults()
        values = {name: self.argument(value) for name, value in bound.arguments.items()}
        for parameter in function.params:
            if parameter.is_constexpr and is_runtime(values[parameter.name]):
                raise TypeError(
                    f"{function.name}: the parameter {parameter.name} is a constexpr, but is given "
                    f"{describe(values[parameter.name])}"
                )
        templates = {name: template_of(value) for name, value in values.items()}
        key = (function, tuple(self.key_of(part) for part in templates.values()))
        state = self.state
        if key not in state.functions:
            state.functions[key] = None
            symbol = self.symbol(function, templates)
            callee = CodeGenerator(function, state)
            previous = getattr(core._active, "generator", None)
            try:
                state.functions[key] = callee.generate(symbol, templates, is_kernel=False)
            finally:
                core._active.generator = previous
        result = state.functions[key]
        if result is None:
            raise TypeError(f"{function.name} calls itself: kernels have no recursion")
        if node is not None:
            self.at(node)
        handles = flatten(tuple(values.values()), [])
        return fill(result.template, self.builder.call(result.symbol, handles))

    def argument(self, value: Any) -> Any:
        value = self.reads.unwrap(value)
        if isinstance(value, list):
            value = self.reads.call(tuple, value)
        if isinstance(value, tuple):
            return rebuild_tuple(value, [self.argument(v) for v in value])
        return value

    def key_of(self, part: Any) -> Any:
        if isinstance(part, tuple):
            return tuple(self.key_of(p) for p in part)
        if isinstance(part, RuntimeLeaf):
            return ("t", part.type)
        if type(part) is float:
            return ("f", struct.pack("d", part))
        if type(part) in (bool, int, str) or part is None:
            return (type(part), repr(part))
        if isinstance(part, dtype):
            return ("d", part)
        self.state.constants.append(part)
        return ("o", id(part))

    def symbol(self, function: JITFunction, templates: dict[str, Any]) -> str:
        from .jit import JITCallable

        def mangle(part: Any) -> str:
            if isinstance(part, tuple):
                return "T" + "_".join(mangle(p) for p in part) + "T"
            if isinstance(part, RuntimeLeaf):
                return part.type.mangle()
            if isinstance(part, dtype):
                return "c" + part.mangle()
            if isinstance(part, (bool, int, float, str)) or part is None:
                return f"c{part!r}"
            return "c" + (part.name if isinstance(part, JITCallable) else type(part).__name__)

        text = "_".join(mangle(part) for part in templates.values())
        base = f"{function.full_name}__{text}"
        base = "".join(c if c.isalnum() or c in "._" else "_" for c in base)[:200]
        symbol, count = base, 1
        while symbol in self.state.symbols:
            count += 1
            symbol = f"{base}_{count}"
        self.state.symbols.add(symbol)
        return symbol


# --- Python functions that mean something in a kernel ---------------------------------------------


def static_isinstance(reads: Reads, value: Any, classes: Any) -> bool:
    classes = classes if isinstance(classes, tuple) else (classes,)
    for cls in classes:
        if cls is core.constexpr:
            if not is_runtime(value):
                return True
        elif reads.call(isinstance, value, cls):
            return True
    return False


def static_getattr(reads: Reads, value: Any, name: str, *default: Any) -> Any:
    if isinstance(value, tensor) and name in core.tensor_methods:
        return BoundMethod(core.tensor_methods[name], value)
    return reads.call(getattr, value, name, *default)


def static_hasattr(reads: Reads, value: Any, name: str) -> bool:
    is_method = isinstance(value, tensor) and name in core.tensor_methods
    return is_method or reads.call(hasattr, value, name)


def static_len(reads: Reads, value: Any) -> int:
    return reads.call(len, value)


_BUILTINS: dict[str, Any] = {
    "range": builtins.range,
    "len": len,
    "int": int,
    "float": float,
    "bool": bool,
    "str": str,
    "list": tuple,
    "tuple": tuple,
    "isinstance": isinstance,
    "getattr": getattr,
    "hasattr": hasattr,
    "print": core.device_print,
    "min": core.builtin_min,
    "max": core.builtin_max,
}

# None: they work on compile-time values only.
_STATIC_FUNCTIONS: dict[int, Callable[..., Any] | None] = {
    id(len): static_len,
    id(isinstance): static_isinstance,
    id(getattr): static_getattr,
    id(hasattr): static_hasattr,
    **{id(cls): None for cls in (int, float, bool, str, tuple, builtins.range, dtype)},
}

_STATIC_CLASSES = (
    core.constexpr,
    core.range,
    core.static_range,
    core.condition,
    core.pointer_type,
    core.block_type,
)

_VISITORS: dict[type[ast.AST], Callable[[CodeGenerator, Any], Any]] = {
    getattr(ast, name.removeprefix("visit_")): getattr(CodeGenerator, name)
    for name in dir(CodeGenerator)
    if name.startswith("visit_")
}
_VISITORS[ast.List] = CodeGenerator.visit_Tuple


def generate_module(
    function: JITFunction,
    arguments: dict[str, Any],
    divisibility: dict[str, int],
    options: CodegenOptions,
    memory: dict[str, Memory] | None = None,
    reads: Reads | None = None,
) -> _native.Module:
    """The TTIR of a kernel; ``reads`` is told what it depends on beside its arguments. ``arguments`` holds a dtype for each run-time parameter, wrapped in
    RuntimeLeaf, and the values of the others; ``memory`` those whose arrays overlap."""
    module = _native.Module()
    state = ModuleState(Builder(module), options, reads or Reads())
    state.symbols.add(function.name)
    generator = CodeGenerator(function, state)
    generator.generate(function.name, arguments, True, divisibility, memory)
    module.verify()
    return module
