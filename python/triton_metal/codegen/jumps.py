"""Loops with break, continue or return in them: branches between blocks, which the compiler makes structured again."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

from .._native import tensor
from ..language import core, standard
from .values import describe, flatten
from .walk import Walk


@dataclass
class Loop:
    """A loop that is being generated."""

    node: ast.AST
    #: The variables that the loop carries, and the scope at the begin of its body.
    names: list[str]
    entry: dict[str, Any]
    target: str | None
    #: Where break and continue stand: their blocks, and what the loop carries there.
    breaks: list[tuple[Any, list[tensor]]] = field(default_factory=list)
    continues: list[tuple[Any, list[tensor]]] = field(default_factory=list)


@dataclass
class StaticLoop:
    """A loop that runs while compiling. `branches` is how many run-time branches are around it."""

    branches: int
    stopped: bool = False


class Jumps(Walk):
    """The part of the walk that handles break and continue."""

    def visit_Break(self, node: ast.Break) -> None:
        self.jump(node, "break")

    def visit_Continue(self, node: ast.Continue) -> None:
        self.jump(node, "continue")

    def jump(self, node: ast.stmt, word: str) -> None:
        loop = self.loops[-1]
        if isinstance(loop, StaticLoop):
            if loop.branches != self.branches:
                raise self.unsupported(
                    node,
                    f"{word} depends on a run-time condition here, but the loop over tl.static_range runs while "
                    "compiling: use tl.range",
                )
            loop.stopped = word == "break"
        else:
            values = self.check_carried(loop.node, loop.names, loop.entry, loop.target)
            edges = loop.breaks if word == "break" else loop.continues
            edges.append((self.builder.current_block(), values))
        self.terminated = True

    def static_loop(self, node: ast.For, indices: Any) -> None:
        loop = StaticLoop(self.branches)
        self.loops.append(loop)
        returns = len(self.returns)
        for index in indices:
            self.bind_static(node.target, index)
            self.statements(node.body)
            if self.terminated and len(self.returns) > returns:
                break
            # A break or continue ends this step only.
            self.terminated = False
            if loop.stopped:
                break
        self.loops.pop()

    def bind_static(self, target: ast.expr, value: Any) -> None:
        """Gives a name of a loop that runs while compiling its value, which stays a compile-time value."""
        if isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, tuple):
            if len(value) != len(target.elts):
                raise self.error(
                    target, f"{len(target.elts)} names for a tuple of {len(value)} values"
                )
            for element, part in zip(target.elts, value, strict=True):
                self.bind_static(element, part)
        elif isinstance(target, ast.Name):
            self.scope[target.id] = value
            self.lost.pop(target.id, None)
        else:
            raise self.error(target, f"cannot unpack {describe(value)} here")

    def jumping_for(self, node: ast.For, iterator: core.range) -> None:
        builder, name = self.builder, node.target.id  # type: ignore[attr-defined]
        before = dict(self.scope)
        before.pop(name, None)
        self.scope.pop(name, None)
        names = self.carried(node, (name,))
        if iterator.step == 0 and not isinstance(iterator.step, tensor):
            raise self.error(node.iter, "the step of a loop must not be 0")
        self.at(node)
        bounds = [builder.to_tensor(v) for v in (iterator.start, iterator.end, iterator.step)]
        for value in bounds:
            if len(value.shape) or not value.dtype.is_int():
                raise self.error(
                    node.iter, f"the bounds of a loop must be integers, not {describe(value)}"
                )
        index, left, step = self.call_jit(standard.count_steps, tuple(bounds), {})
        inits = flatten(tuple(before[n] for n in names), [])
        header, body, done = (builder.create_block() for _ in range(3))
        builder.branch(header, [left, index, *inits])
        types = [value.type for value in inits]
        left, index, *arguments = builder.add_arguments(header, [left.type, index.type, *types])
        builder.set_block(header)
        builder.cond_branch(builder.condition(left), body, done)

        builder.set_block(body)
        self.enter_body(before, names, arguments)
        loop = Loop(node, names, dict(self.scope), name, breaks=[(done, arguments)])
        self.scope[name] = index
        builder.set_name(index, name)
        self.body(loop, node.body)
        if loop.continues:
            following = self.meet(loop.continues, types)
            self.at(node)
            fewer, later = self.call_jit(standard.next_step, (left, index, step), {})
            builder.branch(header, [fewer, later, *following])
        self.leave(loop, before, names, types)
        self.lost[name] = "it is the variable of a loop that has ended"

    def jumping_while(self, node: ast.While) -> None:
        builder = self.builder
        before = dict(self.scope)
        names = self.carried(node)
        inits = flatten(tuple(before[n] for n in names), [])
        types = [value.type for value in inits]
        self.at(node)
        header, body = builder.create_block(), builder.create_block()
        builder.branch(header, inits)
        arguments = builder.add_arguments(header, types)
        builder.set_block(header)
        self.enter_body(before, names, arguments)
        loop = Loop(node, names, dict(self.scope), None)
        test = self.visit(node.test)
        if isinstance(test, core.condition):
            test = test.condition
        if isinstance(test, tensor):
            self.at(node.test)
            test = self.call_native(node.test, builder.condition, test)
            done = builder.create_block()
            carried = self.check_carried(node, names, loop.entry)
            builder.cond_branch(test, body, done)
            loop.breaks.append((done, carried))
        elif self.static_truth(node.test, test):
            builder.branch(body, [])
        else:
            raise self.error(node, "the condition of this loop is False: remove the loop")
        builder.set_block(body)
        self.body(loop, node.body)
        for block, values in loop.continues:
            builder.set_block(block)
            builder.branch(header, values)
        self.leave(loop, before, names, types)

    def body(self, loop: Loop, statements: list[ast.stmt]) -> None:
        self.loops.append(loop)
        self.statements(statements)
        self.loops.pop()
        if not self.terminated:
            values = self.check_carried(loop.node, loop.names, loop.entry, loop.target)
            loop.continues.append((self.builder.current_block(), values))
        self.terminated = False

    def meet(self, edges: list[tuple[Any, list[tensor]]], types: list[Any]) -> list[tensor]:
        """A block at which all of them arrive."""
        block = self.builder.create_block()
        arguments = self.builder.add_arguments(block, types)
        for source, values in edges:
            self.builder.set_block(source)
            self.builder.branch(block, values)
        self.builder.set_block(block)
        return arguments

    def leave(self, loop: Loop, before: dict[str, Any], names: list[str], types: list[Any]) -> None:
        """What comes after the loop."""
        if not loop.breaks:
            # Only returns leave it.
            self.scope = before
            self.terminated = True
            return
        arguments = self.meet(loop.breaks, types)
        self.at(loop.node)
        self.leave_loop(before, names, arguments)
