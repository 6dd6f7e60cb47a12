"""From a source to Triton IR: what a kernel's parameters are where only their types are known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from . import _native
from ._native import dtype
from .codegen import CodegenOptions, RuntimeLeaf, generate_module
from .constants import plain
from .frames import with_short_traceback
from .functions import KernelFunction
from .language.blocks import descriptor_parts, encode, tensor_descriptor
from .reads import Reads
from .signatures import type_of
from .tuples import element_name, rebuild_tuple


class SpecializationProxy(NamedTuple):
    """What ``jit(repr=)`` gets to name a kernel: the constants and the types of the parameters, by name."""

    constants: dict[str, Any]
    signature: dict[str, Any]


def symbol_of(
    function: Any, signature: dict[str, Any], constants: dict[tuple[int, ...], Any]
) -> str:
    """The name of a kernel in its text."""
    named = getattr(function, "symbol", None)
    if named is None:
        return function.name
    names = function.arg_names
    by_name = {names[path[0]]: value for path, value in constants.items() if len(path) == 1}
    return named(SpecializationProxy(by_name, signature))


class Source(Protocol):
    """A function with the types and constants of its arguments: `ASTSource` says what its attributes hold."""

    fn: KernelFunction
    name: str
    signature: dict[str, Any]
    constants: dict[tuple[int, ...], Any]
    attrs: Mapping[tuple[int, ...], Any]


class SourceArguments:
    """The arguments of a source as the walk takes them: types in place of what is known at run time only.

    A launch passes the parts of a descriptor. With ``as_descriptors``, a parameter is the compiler's descriptor with
    the sizes and strides behind it, as in stock Triton's IR.
    """

    def __init__(self, source: Source, as_descriptors: bool = False) -> None:
        self.source = source
        self.as_descriptors = as_descriptors
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
        rank = len(sizes)
        if self.as_descriptors:
            kind = dtype.descriptor(type_of(element), sizes, False)
            return tensor_descriptor(RuntimeLeaf(kind), (integer,) * rank, (long,) * rank)
        self.divisibility[name] = 16
        return descriptor_parts(
            base, (integer,) * rank, (long,) * (rank - 1), encode(sizes, "zero")
        )


def module_of(
    source: Source, options: Any, as_descriptors: bool = False, name: str | None = None
) -> tuple[_native.Module, SourceArguments, str]:
    """The Triton IR of a source, what its arguments are, and the kernel's name, which may be given."""
    arguments = SourceArguments(source, as_descriptors)
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
