"""Names of Python as names of C, C++ and Objective-C."""

from __future__ import annotations

import re
from collections.abc import Iterable

#: Words of C, C++ and Objective-C, macros of their headers, and names in the functions of the headers that are written here.
_TAKEN = frozenset(
    [
        "alignas",
        "alignof",
        "and",
        "and_eq",
        "asm",
        "auto",
        "bitand",
        "bitor",
        "bool",
        "break",
        "case",
        "catch",
        "char",
        "class",
        "compl",
        "concept",
        "const",
        "const_cast",
        "consteval",
        "constexpr",
        "constinit",
        "continue",
        "co_await",
        "co_return",
        "co_yield",
        "decltype",
        "default",
        "delete",
        "do",
        "double",
        "dynamic_cast",
        "else",
        "enum",
        "explicit",
        "export",
        "extern",
        "false",
        "float",
        "for",
        "friend",
        "goto",
        "if",
        "inline",
        "int",
        "long",
        "mutable",
        "namespace",
        "new",
        "noexcept",
        "not",
        "not_eq",
        "nullptr",
        "operator",
        "or",
        "or_eq",
        "private",
        "protected",
        "public",
        "register",
        "reinterpret_cast",
        "requires",
        "restrict",
        "return",
        "short",
        "signed",
        "sizeof",
        "static",
        "static_assert",
        "static_cast",
        "struct",
        "switch",
        "template",
        "this",
        "thread_local",
        "throw",
        "true",
        "try",
        "typedef",
        "typeid",
        "typename",
        "typeof",
        "typeof_unqual",
        "union",
        "unsigned",
        "using",
        "virtual",
        "void",
        "volatile",
        "while",
        "xor",
        "xor_eq",
        "id",
        "self",
        "super",
        "in",
        "out",
        "inout",
        "bycopy",
        "byref",
        "oneway",
        "nil",
        "Nil",
        "YES",
        "NO",
        "TRUE",
        "FALSE",
        "BOOL",
        "SEL",
        "IMP",
        "Class",
        "Protocol",
        "instancetype",
        "NULL",
        "memcpy",
        "memset",
        "main",
        "errno",
        "assert",
        "unix",
        "linux",
        "i386",
        "algorithm",
        "encoder",
        "grid",
        "numbers",
        "packed",
        "pipeline",
        "pipelines",
        "valid",
        "variant",
    ]
)
#: Types of C's library, and macros of <stdint.h>.
_LIBRARY = re.compile(r"\w+_t|U?INT\w*_(C|MIN|MAX|WIDTH)|SIZE_MAX")


def is_identifier(name: str) -> bool:
    """Whether a name is an identifier of C.

    >>> is_identifier("scale_2"), is_identifier("2 scales")
    (True, False)
    """
    return re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) is not None


def identifiers(names: Iterable[str]) -> dict[str, str]:
    """Names, each with an identifier that no other has; ``NAME_offset`` is free for each, too.

    >>> identifiers(["x.shape.0", "int", "int_", "x", "x_offset"])
    {'x.shape.0': 'x_shape_0', 'int': 'int_', 'int_': 'int__', 'x': 'x', 'x_offset': 'x_offset_'}
    """
    found: dict[str, str] = {}
    used: set[str] = set()
    for name in names:
        own = re.sub(r"\W", "_", name, flags=re.ASCII)
        if re.match("_[A-Z_]", own):  # kept for compilers
            own = f"n{own}"
        while own in _TAKEN or _LIBRARY.fullmatch(own) or {own, f"{own}_offset"} & used:
            own += "_"
        used |= {own, f"{own}_offset"}
        found[name] = own
    return found
