"""The Triton IR of a source."""

from __future__ import annotations

from typing import Any

from .. import _native
from ..codegen import CodegenOptions, RuntimeLeaf, generate_module
from ..frames import with_short_traceback
from ..language.blocks import descriptor_parts, encode
from ..reads import Reads
from ..signatures import type_of
from ..sources import ASTSource
from ..specialization import plain, symbol_of
from ..tuples import element_name, rebuild_tuple


class _Arguments:
    """The arguments of a source as the walk takes them: types in place of what is known at run time only."""

    def __init__(self, source: ASTSource) -> None:
        self.source = source
        self.divisibility: dict[str, int] = {}
        self.types: dict[str, str] = {}
        self.constants: dict[str, Any] = {}

    def values(self) -> dict[str, Any]:
        result = {}
        for param in self.source.fn.params:
            path, type = (param.index,), self.source.signature.get(param.name)
            if type is None and path not in self.source.constants:
                if not param.has_default:
                    raise TypeError(
                        f"{self.source.name}: the parameter {param.name} has neither a type in the signature nor a value"
                    )
                result[param.name] = self.constants[param.name] = plain(param.default)
            elif type == "constexpr" and path not in self.source.constants and param.has_default:
                result[param.name] = self.constants[param.name] = plain(param.default)
            else:
                result[param.name] = self._part(param.name, path, type)
        return result

    def _part(self, name: str, path: tuple[int, ...], type: Any) -> Any:
        constants = self.source.constants
        if path in constants:
            self.constants[name] = plain(constants[path])
            return self.constants[name]
        if isinstance(type, tuple):
            kind = type.__class__
            parts = [
                self._part(element_name(name, kind, i), (*path, i), part)
                for i, part in enumerate(type)
            ]
            return rebuild_tuple(kind, parts)
        if type == "constexpr":
            raise TypeError(f"{self.source.name}: the constant {name} has no value")
        if type.startswith("tensordesc"):
            return self._descriptor(name, type)
        self.types[name] = type
        for attribute in self.source.attrs.get(path, ()):
            if attribute[0] == "tt.divisibility":
                self.divisibility[name] = attribute[1]
        return RuntimeLeaf(type_of(type))

    def _descriptor(self, name: str, type: str) -> Any:
        element, _, block = type.partition("<")[2].rstrip(">").partition("[")
        sizes = [int(size) for size in block.rstrip("]").split(",")]
        self.types[name] = f"*{element}"
        integer, long = RuntimeLeaf(type_of("i32")), RuntimeLeaf(type_of("i64"))
        base = RuntimeLeaf(type_of(f"*{element}"))
        self.divisibility[name] = 16
        rank = len(sizes)
        return descriptor_parts(
            base, (integer,) * rank, (long,) * (rank - 1), encode(sizes, "zero")
        )


def module_of(
    source: ASTSource, options: Any, name: str | None = None
) -> tuple[_native.Module, _Arguments, str]:
    """The Triton IR of a source, what its arguments are, and the kernel's name, which may be given."""
    arguments = _Arguments(source)
    values = arguments.values()
    symbol = name or symbol_of(source.fn, source.signature, source.constants)
    module = with_short_traceback(
        generate_module,
        source.fn,
        values,
        arguments.divisibility,
        CodegenOptions(debug=options.debug, sanitize_overflow=options.sanitize_overflow),
        None,
        Reads(),
        symbol,
    )
    return module, arguments, symbol
