"""Statements: names, branches and loops."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable
from typing import Any

from .._native import tensor
from ..errors import CompileTimeAssertionFailure
from ..language import core
from ..language.aggregates import is_aggregate
from ..tuples import rebuild_tuple
from .after import carrying, is_read_after
from .jumps import Jumps
from .values import (
    LocalFunction,
    RuntimeLeaf,
    assigned_names,
    contains_jump,
    describe,
    fill,
    flatten,
    is_runtime,
    template_of,
)


def is_scalar(value: Any) -> bool:
    """Whether a value is an integer, at run time or when compiling."""
    return type(value) is int or (isinstance(value, tensor) and not value.shape)


class Statements(Jumps):
    """The part of the walk that handles statements."""

    def visit_Expr(self, node: ast.Expr) -> None:
        self.unused = node.value
        self.visit(node.value)

    def visit_Pass(self, node: ast.Pass) -> None:
        pass

    def local_function(self, node: ast.FunctionDef | ast.Lambda) -> LocalFunction:
        """A function of the kernel's variables, and of those of the lambda that it is in."""
        if any(isinstance(one.node, ast.FunctionDef) for one in self.inlining):
            raise self.unsupported(
                node,
                "a function cannot be defined in a function that is itself defined in a kernel: move it to module level",
            )
        parameters = node.args
        if parameters.kwarg is not None:
            raise self.unsupported(node, f"functions cannot have **{parameters.kwarg.arg}")
        defaults = tuple(map(self.visit, parameters.defaults))
        pairs = zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True)
        keywords = {one.arg: self.visit(value) for one, value in pairs if value is not None}
        own = dict(self.scope) if self.inlining else {}
        return LocalFunction(node, self, own, defaults, keywords)

    def visit_Lambda(self, node: ast.Lambda) -> LocalFunction:
        return self.local_function(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.decorator_list:
            raise self.unsupported(
                node,
                "a function with decorators cannot be defined inside a kernel: move it to module level",
            )
        self.scope[node.name] = self.local_function(node)
        self.lost.pop(node.name, None)

    def visit_Return(self, node: ast.Return) -> None:
        value = None if node.value is None else self.visit(node.value)
        self.returns.append((self.builder.current_block(), value, node))
        self.terminated = True

    def visit_Assert(self, node: ast.Assert) -> None:
        test = self.visit(node.test)
        message = "" if node.msg is None else self.visit(node.msg)
        if not is_runtime(test):
            if not self.reads.call(bool, test):
                raise self.error(
                    node,
                    f"assertion failed{': ' + str(message) if message else ''}",
                    CompileTimeAssertionFailure,
                )
            test = True
        self.at(node)
        self.call_builtin(node, core.device_assert, (test, message), {})

    def runtime_variable(self, value: Any) -> Any:
        """Turns a number that is assigned to a variable into a run-time value, as Triton does."""
        if is_aggregate(value):
            return value
        if isinstance(value, tuple):
            return rebuild_tuple(type(value), [self.runtime_variable(v) for v in value])
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
            if not isinstance(value, core.tuple):
                raise self.error(target, f"cannot unpack {describe(value)}: it is not a tuple")
            if any(isinstance(element, ast.Starred) for element in target.elts):
                raise self.unsupported(target, "kernels do not support * in assignment targets")
            if len(value) != len(target.elts):
                raise self.error(
                    target, f"{len(target.elts)} names for a tuple of {len(value)} values"
                )
            for element, part in zip(target.elts, value, strict=True):
                self.assign(element, part, node)
        elif isinstance(target, ast.Subscript):
            raise self.unsupported(target, self.element_advice(target))
        else:
            raise self.unsupported(target, "attributes cannot be assigned in a kernel")

    def element_advice(self, target: ast.Subscript) -> str:
        """What to write in the place of ``x[i] = value``."""
        name, owner = ast.unparse(target.value), self.visit(target.value)
        if isinstance(owner, tensor) and owner.dtype.is_ptr():
            is_slice = isinstance(target.slice, (ast.Slice, ast.Tuple))
            place = "tl.arange(...)" if is_slice else ast.unparse(target.slice)
            return (
                f"elements of a pointer cannot be assigned: use tl.store({name} + {place}, value)"
            )
        return "elements of a tensor cannot be assigned: use tl.where, or tl.store"

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
        # As in Triton, the annotation says nothing of a value that is only known at run time.
        if annotation is core.constexpr and not is_runtime(value):
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
        raise self.error(
            node, f"a condition must be a boolean or an integer, not {describe(value)}"
        )

    def visit_If(self, node: ast.If) -> None:
        test = self.visit(node.test)
        if not isinstance(test, tensor):
            self.statements(node.body if self.static_truth(node.test, test) else node.orelse)
            return
        self.at(node.test)
        test = self.call_native(node.test, self.builder.condition, test)
        self.at(node)
        self.branches += 1
        if contains_jump(node):
            self.branching_if(node, test)
        else:
            self.region_if(node, test)
        self.branches -= 1

    def branching_if(self, node: ast.If, test: tensor) -> None:
        """An if that contains a return, break or continue: branches between blocks."""
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
        """An if without any of them: scf.if."""
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
        """The variables that have different values on the two paths."""
        names, templates = [], []
        both = {**then, **other}
        # Triton's order: the variables that are there before, then the new ones by name.
        ordered = [*(n for n in both if n in before), *sorted(n for n in both if n not in before)]
        changed = [
            name
            for name in ordered
            if name not in before
            or not self.same_value(then.get(name), before[name])
            or not self.same_value(other.get(name), before[name])
        ]
        for name in changed:
            if name not in then or name not in other:
                self.lost[name] = "only one path of an if assigns it; assign it before the if"
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
                    f"Mismatched type for {name}: {describe(a)} after the first branch of this if, "
                    f"and {describe(b)} after the other",
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
        then = self.to_runtime(node.body, self.visit(node.body))
        region.begin_else()
        other = self.to_runtime(node.orelse, self.visit(node.orelse))
        a, b = template_of(then), template_of(other)
        if not self.mergeable(a, b):
            raise self.error(
                node,
                "Ternary expression with dynamic condition has inconsistent types: its two sides are "
                f"{describe(then)} and {describe(other)}",
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
        """The values to carry. Every variable keeps its type, and a compile-time variable keeps its value."""
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
                    f"body: its type must stay the same{self.first_type(name, old, new)}",
                )
        return flatten(tuple(self.scope[name] for name in names), [])

    @staticmethod
    def first_type(name: str, old: Any, new: Any) -> str:
        """How a variable gets its type before the loop that changes it."""
        if not isinstance(old, tensor) or not isinstance(new, tensor):
            return ""
        if tuple(old.shape) != tuple(new.shape):
            if old.shape:
                return f". Give it the shape {list(new.shape)} before the loop, or reshape it in the body"
            kind = describe(new).partition("[")[0]
            return f". Begin with a tile: {name} = tl.zeros({list(new.shape)}, tl.{kind})"
        if old.dtype.is_int() and new.dtype.is_floating():
            return f". Begin with a float: {name} = 0.0"
        if old.dtype.is_ptr() or new.dtype.is_ptr():
            return ""
        return f". Convert it in the body: .to(tl.{describe(old).partition('[')[0]})"

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
                self.lost[name] = "only a loop assigns it: assign it before the loop"
        templates = [template_of(before[name]) for name in names]
        self.take_merged(before, names, templates, results)

    def visit_For(self, node: ast.For) -> None:
        if node.orelse:
            raise self.unsupported(node, "kernels do not support else after a loop")
        iterator = self.iterator(node)
        if not isinstance(iterator, core.range):
            values = iterator.range if isinstance(iterator, core.static_range) else iterator
            self.static_loop(node, values)
            return
        if not isinstance(node.target, ast.Name):
            raise self.unsupported(
                node.target, "the variable of a loop over a range must be one name"
            )
        if is_read_after(self.function.source.node, node) and self.begins(node, iterator):
            node = carrying(node)
        if contains_jump(node):
            self.jumping_for(node, iterator)
            return
        assert isinstance(node.target, ast.Name)
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
        self.statements(node.body)
        yields = self.check_carried(node, names, entry, name)
        self.at(node)
        self.leave_loop(before, names, loop.finish(yields))
        self.lost[name] = "it is the variable of a loop that has ended"

    def begins(self, node: ast.For, iterator: core.range) -> bool:
        """Gives the variable of a loop a value for the case that the loop does not run, if it can have one.

        The loop carries it from there on. A variable of another type from before the loop ends with it.
        """
        name = node.target.id  # type: ignore[attr-defined]
        self.at(node)
        bounds = [
            self.call_native(node.iter, self.builder.to_tensor, bound)
            for bound in (iterator.start, iterator.end, iterator.step)
        ]
        if any(len(bound.shape) or not bound.dtype.is_int() for bound in bounds):
            return False  # which the loop refuses
        kind = bounds[0].dtype
        for bound in bounds[1:]:
            kind = self.builder.computation_type(kind, False, bound.dtype, False, False)
        old = self.scope.get(name)
        if type(old) is int:  # of a loop that ran while compiling, or of a constexpr
            old = self.builder.to_tensor(old)
            self.scope[name] = old
        if old is not None:
            return isinstance(old, tensor) and old.type == kind
        self.scope[name] = self.builder.cast(bounds[0], kind, "")
        return True

    def iterator(self, node: ast.For) -> core.range | core.static_range | tuple:
        call = node.iter
        function = self.visit(call.func) if isinstance(call, ast.Call) else None
        if not any(function is one for one in (builtins.range, core.range, core.static_range)):
            value = self.visit(call)
            if isinstance(value, core.tuple):
                return value
            raise self.unsupported(
                node.iter,
                "a for loop must iterate over range, tl.range, tl.static_range or a tuple, not "
                f"{describe(value)}{': use range(...)' if is_scalar(value) else ''}",
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
                    node.iter, f"the bounds of a loop must be integers, not {describe(value)}"
                )
        return function(*args, **kwargs)

    def visit_While(self, node: ast.While) -> None:
        if node.orelse:
            raise self.unsupported(node, "kernels do not support else after a loop")
        if contains_jump(node):
            self.jumping_while(node)
            return
        before = dict(self.scope)
        names = self.carried(node)
        inits = flatten(tuple(before[n] for n in names), [])
        self.at(node)
        loop = self.builder.begin_while(inits)
        self.enter_body(before, names, loop.arguments)
        test = self.visit(node.test)
        if isinstance(test, core.condition):
            if test.disable_licm:
                loop.disable_licm()
            test = test.condition
        if not isinstance(test, tensor):
            self.static_truth(node.test, test)
            test = self.to_runtime(node.test, bool(test))
        self.at(node.test)
        test = self.call_native(node.test, self.builder.condition, test)
        self.enter_body(before, names, loop.end_condition(test))
        entry = dict(self.scope)
        self.statements(node.body)
        yields = self.check_carried(node, names, entry)
        self.at(node)
        self.leave_loop(before, names, loop.finish(yields))
