"""What is compiled: a kernel's function with the types of its arguments, or a text of Triton IR."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import _native
from .backends.compiler import Language
from .functions import KernelFunction
from .generation import module_of


class ASTSource:
    """A @jit function with the types and constants of its arguments.

    ``signature`` has a type for each parameter: "*fp32", "i32", "constexpr", a tuple of types, or a tensor descriptor's
    "tensordesc<fp16[64, 32]>". ``constexprs`` has the values of the constants, by name or by path: ``(2,)`` is the third
    parameter, ``(2, 0)`` the first element of its tuple. ``attrs`` has for each path what is known of an argument:
    ``{(0,): [["tt.divisibility", 16]]}``.
    """

    ext = "ttir"
    language = Language.TRITON

    def __init__(
        self,
        fn: KernelFunction,
        signature: Mapping[str, Any],
        constexprs: Mapping[Any, Any] | None = None,
        attrs: Mapping[tuple[int, ...], Any] | None = None,
    ) -> None:
        self.fn = fn
        self.name = fn.__name__
        for name in signature:
            if not isinstance(name, str):
                raise TypeError(
                    f"Signature keys must be string: {fn.__name__} has {name!r} in its signature"
                )
        self.signature = dict(signature)
        self.constants: dict[tuple[int, ...], Any] = {}
        names = fn.arg_names
        for key, value in (constexprs or {}).items():
            path = (names.index(key),) if isinstance(key, str) else key
            if not isinstance(path, tuple):
                raise TypeError(f"a constant of {fn.__name__} has {key!r} for its name or path")
            self.constants[path] = value
        self.attrs = dict(attrs or {})

    @property
    def arg_names(self) -> list[str]:
        """The names of the function's parameters that are in the signature, in the signature's order."""
        return list(self.signature)

    def hash(self) -> str:
        constants = "-".join(
            str(getattr(value, "cache_key", value))
            for _, value in sorted(self.constants.items(), key=lambda item: item[0])
        )
        types = [self.signature[name] for name in sorted(self.signature)]
        text = f"{self.fn.cache_key}-{self.attrs}-{types}-{constants}"
        return hashlib.sha256(text.encode()).hexdigest()

    def make_ir(
        self,
        target: Any,
        options: Any,
        codegen_fns: Any = None,
        module_map: Any = None,
        context: Any = None,
    ) -> _native.Module:
        """The Triton IR, as a module that can be read: `triton_metal._C.libtriton.ir` says with what.

        A parameter that is a tensor descriptor is one descriptor, its sizes and its strides, as in stock Triton's IR.
        ``options`` has ``debug`` and ``sanitize_overflow``; the rest is there because Triton's method has it.
        """
        return module_of(self, options, as_descriptors=True)[0]

    def parse_options(self) -> dict[str, Any]:
        """The options that the source has itself: none."""
        return {}


_ARGUMENT = re.compile(r"%[\w.$-]+: (?P<type>[^,{()]+(?:<[^>]*>)?)(?P<attributes> \{[^}]*\})?")


class IRSource:
    """A file of Triton IR (``.ttir``)."""

    language = Language.TRITON

    def __init__(self, path: str | Path, context: Any = None, backend: Any = None) -> None:
        self.path = str(path)
        self.ext = Path(path).suffix[1:]
        if self.ext != "ttir":
            raise ValueError(
                f"{path} is no Triton IR: a file of the stage ttir can be compiled, and its name ends in .ttir"
            )
        self.src = Path(path).read_text(encoding="utf-8")
        found = re.search(r"tt\.func\s+(?:public\s+)?@([\w$.-]+)\s*\((.*)", self.src)
        if found is None:
            raise ValueError(f"{path} has no function tt.func public @NAME")
        self.name = "@" + found[1]
        self.signature = {
            index: _short(match["type"].strip())
            for index, match in enumerate(_ARGUMENT.finditer(found[2].partition(") ")[0]))
        }

    def hash(self) -> str:
        return hashlib.sha256(f"{self.ext}-{self.src}".encode()).hexdigest()

    def parse_options(self) -> dict[str, Any]:
        """The options that the text has itself: none."""
        return {}


def _short(type: str) -> str:
    """Triton's name of a type of Triton IR."""
    if found := re.match(r"!tt\.ptr<([^,>]+)", type):
        return "*" + _short(found[1])
    return {"f16": "fp16", "f32": "fp32", "f64": "fp64", "i1": "u1"}.get(type, type)
