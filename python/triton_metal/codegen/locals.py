"""Functions that are defined in a kernel: what they read, and whether they return in their middle."""

from __future__ import annotations

import ast
from typing import Any

from .values import LocalFunction


def returns_early(node: ast.Lambda | ast.FunctionDef) -> bool:
    """Whether a return stands elsewhere than at the end of a function."""
    if isinstance(node, ast.Lambda):
        return False
    end = node.body[-1]
    return any(
        isinstance(child, ast.Return)
        for statement in node.body
        if not (statement is end and isinstance(end, ast.Return))
        for child in ast.walk(statement)
    )


def names_read(node: ast.Lambda | ast.FunctionDef, seen: dict[str, Any]) -> list[str]:
    """The variables of ``seen`` that a function reads, and the functions that it calls do, in the order of ``seen``."""
    names: set[str] = set()
    todo = [node]
    while todo:
        for child in ast.walk(todo.pop()):
            if isinstance(child, ast.Name) and child.id in seen and child.id not in names:
                names.add(child.id)
                value = seen[child.id]
                if isinstance(value, LocalFunction):
                    todo.append(value.node)
    return [name for name in seen if name in names]
