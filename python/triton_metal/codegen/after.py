"""The variable of a loop after the loop: whether the kernel reads it there, and the loop that then carries it."""

from __future__ import annotations

import ast

#: The results, by the loop's node. The nodes are kept, so that no id comes to mean another one.
_known: dict[int, tuple[ast.For, bool]] = {}


def is_read_after(function: ast.AST, loop: ast.For) -> bool:
    """Whether a variable of a loop may be read outside of it, and of other loops over the same name."""
    known = _known.get(id(loop))
    if known is None or known[0] is not loop:
        assert isinstance(loop.target, ast.Name)
        known = _known[id(loop)] = loop, _reads(function, loop.target.id)
    return known[1]


def _reads(node: ast.AST, name: str) -> bool:
    """Whether a name is read outside of loops over it."""
    if isinstance(node, ast.For) and isinstance(node.target, ast.Name) and node.target.id == name:
        return _reads(node.iter, name) or any(_reads(part, name) for part in node.orelse)
    if isinstance(node, ast.Name):
        return node.id == name and isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        return node.target.id == name or _reads(node.value, name)
    return any(_reads(child, name) for child in ast.iter_child_nodes(node))


_rewritten: dict[int, tuple[ast.For, ast.For]] = {}


def carrying(loop: ast.For) -> ast.For:
    """The same loop over another name, which assigns the variable at the begin of its body."""
    known = _rewritten.get(id(loop))
    if known is None or known[0] is not loop:
        assert isinstance(loop.target, ast.Name)
        name = loop.target.id
        target = ast.Name(f"{name} of the loop", ast.Store())
        value = ast.Name(target.id, ast.Load())
        assign = ast.Assign([ast.Name(name, ast.Store())], value)
        result = ast.For(target, loop.iter, [assign, *loop.body], [])
        for node in (target, value, assign, assign.targets[0]):
            ast.copy_location(node, loop.target)
        ast.copy_location(result, loop)
        known = _rewritten[id(loop)] = loop, result
    return known[1]
