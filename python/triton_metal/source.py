"""The text of a Python function, and whether the function's code was compiled from it."""

from __future__ import annotations
import __future__

import ast
import dis
import functools
import inspect
import linecache
import operator
import os
import re
import textwrap
import threading
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any


@dataclass(frozen=True)
class Source:
    """The text of a function, from its def line on."""

    file: str
    first_line: int
    indent: int
    text: str
    node: ast.FunctionDef
    lines: tuple[str, ...]


def read_source(function: FunctionType, lines: list[str] | None = None) -> Source:
    """Parses the text of a function from the lines of its file."""
    code = function.__code__
    name = function.__qualname__
    first = code.co_firstlineno
    lines = lines or lines_of(function)
    if not lines[first - 1 :]:
        raise ValueError(
            f"the source of {name} cannot be read: @jit functions must be defined in a file"
        )
    try:
        raw = inspect.getblock(lines[first - 1 :])
        start = next(
            (i for i, line in enumerate(raw) if line.lstrip().startswith(("def ", "async def "))),
            None,
        )
        if start is None:
            raise ValueError(f"{name} is not a function defined with def")
        raw = raw[start:]
        indent = len(raw[0]) - len(raw[0].lstrip())
        text = textwrap.dedent("".join(raw))
        node = parsed(text) if text[:1].strip() else parsed_in_block(raw, indent)
    except SyntaxError as error:
        raise changed_source(function) from error
    if isinstance(node, ast.AsyncFunctionDef):
        raise ValueError(f"{name} is not a plain function")
    if not isinstance(node, ast.FunctionDef) or not is_text_of(node, text, code):
        raise changed_source(function)
    kept = tuple(line.rstrip("\n") for line in raw)
    return Source(code.co_filename, first + start, indent, text, node, kept)


#: CPython 3.11 and 3.12 count the depth of nodes for all threads together, and give up where a thread parses while another
#: one does, as they may take turns when the garbage collector runs.
_parser = threading.RLock()


def _renew_parser() -> None:
    """A thread that held the lock is not in a forked child."""
    global _parser
    _parser = threading.RLock()


os.register_at_fork(after_in_child=_renew_parser)


def parse(text: str) -> ast.Module:
    """The syntax tree of a text."""
    with _parser:
        return ast.parse(text)


def parsed(text: str) -> ast.stmt:
    """The first statement of a text."""
    return parse(text).body[0]


def parsed_in_block(lines: list[str], indent: int) -> ast.stmt:
    """A function that is indented, some of whose lines begin further to the left: comments, strings, continued lines.

    Its nodes have the places that they would have without the indent.
    """
    block = parsed("if 1:\n" + "".join(lines))
    assert isinstance(block, ast.If)
    node = block.body[0]
    for part in ast.walk(node):
        if isinstance(part, (ast.stmt, ast.expr, ast.arg, ast.keyword, ast.alias)):
            part.lineno -= 1
            part.col_offset = max(0, part.col_offset - indent)
            if part.end_lineno is not None and part.end_col_offset is not None:
                part.end_lineno -= 1
                part.end_col_offset = max(0, part.end_col_offset - indent)
    return node


def text_source(
    function: FunctionType, text: str, file: str, first_line: int, indent: int
) -> Source:
    """A text that takes the place of a function's source, and where errors place its ``def``."""
    node = parsed(text)
    if not isinstance(node, ast.FunctionDef):
        raise ValueError(f"the new source of {function.__qualname__} is not a function")
    return Source(file, first_line, indent, text, node, tuple(text.splitlines()))


def lines_of(function: FunctionType) -> list[str]:
    """The current lines of a function's file."""
    file = function.__code__.co_filename
    linecache.checkcache(file)
    return linecache.getlines(file, function.__globals__)


def changed_source(function: FunctionType) -> ValueError:
    code = function.__code__
    return ValueError(
        f"{code.co_filename}:{code.co_firstlineno} is not the source of {function.__qualname__}: the file has changed "
        "since it was imported, or the function was created in another way. Import it again"
    )


def is_text_of(node: ast.FunctionDef, text: str, code: CodeType) -> bool:
    """Whether the code was compiled from this text: it has the same names, constants and operators."""
    if node.name != code.co_name:
        return False
    if "assert" in text and any(isinstance(child, ast.Assert) for child in ast.walk(node)):
        return True  # pytest puts its own code in the place of assert
    plain = ast.FunctionDef(**{name: getattr(node, name) for name in node._fields})
    plain.decorator_list = []
    ast.copy_location(plain, node)
    module = ast.Module([plain], [])
    with _parser:
        compiled = compile(module, "<source>", "exec", code.co_flags & _FUTURES, dont_inherit=True)
    found = next((c for c in compiled.co_consts if isinstance(c, CodeType)), None)
    return found is not None and is_same_code(found, code)


_FUTURES = functools.reduce(
    operator.or_, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
)


def is_same_code(one: CodeType, other: CodeType) -> bool:
    """Whether two functions have the same names, constants and operators, wherever they were compiled."""
    constants, others = constants_of(one), constants_of(other)
    return (
        (one.co_argcount, one.co_kwonlyargcount) == (other.co_argcount, other.co_kwonlyargcount)
        and parameters_of(one) == parameters_of(other)
        and names_of(one) == names_of(other)
        and len(constants) == len(others)
        and all(is_same_constant(*pair) for pair in zip(constants, others, strict=True))
        and operators_of(one) == operators_of(other)
    )


def as_written(name: str) -> str:
    """A name without what makes it private to a class."""
    return re.sub(r"^_[A-Za-z0-9]\w*?(?=__)", "", name)


def parameters_of(code: CodeType) -> list[str]:
    return [
        as_written(name) for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    ]


def names_of(code: CodeType) -> set[str]:
    """The names that a function uses."""
    names = {*code.co_names, *code.co_varnames, *code.co_freevars, *code.co_cellvars}
    return {as_written(name) for name in names}


def constants_of(code: CodeType) -> list[Any]:
    """The constants of a function, without its name."""
    return [one for one in code.co_consts if not isinstance(one, str) or one != code.co_qualname]


def is_same_constant(one: Any, other: Any) -> bool:
    if isinstance(one, CodeType) and isinstance(other, CodeType):
        return is_same_code(one, other)
    return type(one) is type(other) and repr(without_indents(one)) == repr(without_indents(other))


def _operations(*prefixes: str) -> frozenset[int]:
    return frozenset(code for name, code in dis.opmap.items() if name.startswith(prefixes))


_OPERATORS = _operations("BINARY", "COMPARE", "CONTAINS", "IS_", "UNARY")
#: Their names say on what they jump; where to, does not matter.
_JUMPS = _operations("POP_JUMP", "JUMP_IF")


def operators_of(code: CodeType) -> list[tuple[int, int]]:
    """The operators and conditions of a function. Its other instructions also depend on what its module imports."""
    numbers = code.co_code  # an operation and its argument alternate
    return [
        (operation, 0 if operation in _JUMPS else argument)
        for operation, argument in zip(numbers[::2], numbers[1::2], strict=True)
        if operation in _OPERATORS or operation in _JUMPS
    ]


def without_indents(constant: Any) -> Any:
    """A constant of a function's code, as it is wherever the function stands.

    The text of a nested function has lost its indent, and with it the lines of its strings, as those of a docstring.
    """
    return re.sub(r"\n[ \t]+", "\n", constant) if isinstance(constant, str) else constant
