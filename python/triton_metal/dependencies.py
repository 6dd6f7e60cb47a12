"""What a function that is compiled refers to: the key of its source, with those of all functions that it names."""

from __future__ import annotations

import ast
import hashlib
import inspect
from types import ModuleType
from typing import Any

from .constants import is_own
from .constexpr import constexpr


class _Names(ast.NodeVisitor):
    """The names and attributes that a function reads from outside, in the order of the source."""

    def __init__(self, parameters: set[str]) -> None:
        self.local = set(parameters)
        self.found: list[tuple[str, ...]] = []

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Store):
            self.local.add(node.id)
        elif node.id not in self.local:
            self.found.append((node.id,))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        path = [node.attr]
        value: ast.AST = node.value
        while isinstance(value, ast.Attribute):
            path.append(value.attr)
            value = value.value
        if not isinstance(value, ast.Name):
            self.visit(value)
        elif value.id not in self.local:
            self.found.append((value.id, *reversed(path)))

    def _assigned(self, node: Any) -> None:
        # The value is read before its name is bound.
        if node.value is not None:
            self.visit(node.value)
        for target in getattr(node, "targets", None) or [node.target]:
            self.visit(target)

    visit_Assign = visit_AnnAssign = visit_AugAssign = _assigned


def names_in(node: ast.FunctionDef) -> list[tuple[str, ...]]:
    """The names outside of a function that its body reads, each with the attributes behind it."""
    arguments = node.args
    given = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    given += [argument for argument in (arguments.vararg, arguments.kwarg) if argument is not None]
    names = _Names({argument.arg for argument in given})
    for statement in node.body:
        names.visit(statement)
    return names.found


def key_of(
    function: Any, node: ast.FunctionDef, text: str, first_line: int
) -> tuple[str, dict[tuple[str, int], tuple[Any, dict[str, Any]]]]:
    """The key of a function, and the constants outside that it reads: (name, id of the namespace) -> (value, namespace).

    Functions of this package have no part in it: the build's identity stands for them.
    """
    cells = inspect.getclosurevars(function).nonlocals
    hasher = hashlib.sha256(text.encode())
    used: dict[tuple[str, int], tuple[Any, dict[str, Any]]] = {}
    for name, *attributes in names_in(node):
        space = cells if name in cells else function.__globals__
        value = space.get(name)
        for attribute in attributes:
            value = getattr(value, attribute, None)
        if value is None or isinstance(value, ModuleType) or is_own(getattr(value, "fn", value)):
            continue
        key = getattr(value, "cache_key", None)
        if isinstance(key, str):
            used |= getattr(value, "used_global_vals", None) or {}
            hasher.update(f"{key}{getattr(value, 'noinline', False)}".encode())
        elif callable(value) and not isinstance(value, constexpr):
            module, own = getattr(value, "__module__", ""), getattr(value, "__qualname__", "")
            hasher.update(f"{module}.{own}".encode())
        elif not attributes:
            used[name, id(space)] = (value, space)
    constants = sorted(f"{name}={value!r}" for (name, _), (value, _) in used.items())
    hasher.update(f"{first_line}{constants}".encode())
    return hasher.hexdigest(), dict(sorted(used.items()))
