"""Texts of TTIR in a form in which equal modules are equal: values and functions numbered by where they first stand."""

from __future__ import annotations

import re
from collections.abc import Callable

_VALUE = re.compile(r"%[A-Za-z0-9_.$-]+(?:#\d+)?")
_SYMBOL = re.compile(r'@(?:[A-Za-z0-9_.$-]+|"(?:[^"\\]|\\.)*")')
_BLOCK = re.compile(r"\^bb\d+")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')

#: Operations that order nothing: they read and write no memory.
_IMPURE = re.compile(
    r"\b(tt\.(load|store|atomic\w*|descriptor_\w+|call|print|assert|return|elementwise_inline_asm|extern_elementwise"
    r"|reduce\.return|scan\.return|map_elementwise\.return)|scf\.\w+|cf\.\w+|llvm\.\w+|ttg\.barrier|gpu\.barrier)\b"
)


def canonical(text: str) -> list[str]:
    """The lines of a module with numbers in place of the names of values and functions."""
    names: dict[str, str] = {}

    def number(prefix: str) -> Callable[[re.Match[str]], str]:
        def replace(match: re.Match[str]) -> str:
            whole = match[0]
            base, mark, part = whole.partition("#") if prefix == "%" else (whole, "", "")
            key = prefix + base
            if key not in names:
                names[key] = f"{prefix}{sum(name.startswith(prefix) for name in names)}"
            return names[key] + mark + part

        return replace

    lines = []
    for raw in text.splitlines():
        line = raw.rstrip()
        if not line or line.startswith(("#loc", "//")) or line.lstrip().startswith("//"):
            continue
        line = re.sub(r"\s+// .*$", "", line)
        line = re.sub(r"\s*loc\(.*\)$", "", line)
        if line.lstrip().startswith("tt.func"):
            names = {name: new for name, new in names.items() if name.startswith("@")}
        line = _outside_strings(line, _VALUE, number("%"))
        line = _SYMBOL.sub(number("@"), line)
        lines.append(line)
    return lines


def _outside_strings(line: str, pattern: re.Pattern[str], replace: Callable) -> str:
    parts, last = [], 0
    for match in _STRING.finditer(line):
        parts += [pattern.sub(replace, line[last : match.start()]), match[0]]
        last = match.end()
    return "".join([*parts, pattern.sub(replace, line[last:])])


_CONSTANT = re.compile(r"\s*(%\d+) = (arith\.constant .*)$")


def without_constants(lines: list[str]) -> list[str]:
    """A canonical text with constants written where they are used: what differs is seldom only their order."""
    contents: dict[str, str] = {}
    kept = []
    for line in lines:
        if found := _CONSTANT.match(line):
            contents[found[1]] = "{" + found[2].removeprefix("arith.constant ") + "}"
        else:
            kept.append(re.sub(r"%\d+", lambda match: contents.get(match[0], match[0]), line))
    return canonical("\n".join(kept))


def operation(line: str) -> str:
    """The name of the operation that a line begins with, or the line's own text."""
    found = re.match(r"\s*(?:%\S+(?:, %\S+)* = |%\S+:\d+ = )?\"?([a-z_]+\.[a-z_.0-9]+)", line)
    return found[1] if found else line.strip()[:40]


def first_difference(a: list[str], b: list[str]) -> tuple[str, str]:
    """The first lines in which two canonical texts differ; "(end)" behind the last."""
    for left, right in zip(a, b, strict=False):
        if left != right:
            return left.strip(), right.strip()
    short = min(len(a), len(b))
    return (a[short].strip() if short < len(a) else "(end)"), (
        b[short].strip() if short < len(b) else "(end)"
    )


def same_but_for_order(a: list[str], b: list[str]) -> bool:
    """Whether two canonical texts differ in the order of operations without effects only."""
    return len(a) == len(b) and _as_graph(a) == _as_graph(b)


def _as_graph(lines: list[str]) -> list[str]:
    """The operations with effects in their order, each with the expressions of its operands."""
    expressions: dict[str, str] = {}
    effects: list[str] = []
    arguments = 0
    for line in lines:
        found = re.match(r"\s*((?:%\d+(?:, )?)+|%\d+:\d+) = (.*)$", line)
        body = found[2] if found else line.strip()

        def expand(match: re.Match[str]) -> str:
            nonlocal arguments
            base, mark, part = match[0].partition("#")
            if base not in expressions:
                expressions[base] = f"${arguments}"
                arguments += 1
            return expressions[base] + mark + part

        has_region = body.endswith("{") or body.endswith("({")
        pure = found is not None and not _IMPURE.search(body) and not has_region
        expanded = _outside_strings(body, re.compile(r"%\d+(?:#\d+)?"), expand)
        if pure:
            expressions[found[1]] = str(hash(expanded))  # type: ignore[index]
            effects_key = expressions[found[1]]  # type: ignore[index]
            expressions[found[1]] = f"<{effects_key}>"  # type: ignore[index]
            continue
        effects.append(expanded)
        if found:
            for name in re.findall(r"%\d+", found[1]):
                expressions[name] = f"!{len(effects)}{name if ',' in found[1] else ''}"
    return effects
