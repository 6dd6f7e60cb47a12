"""A specialisation of stock Triton's in the form in which triton_metal generates a module."""

from __future__ import annotations

import re
from typing import Any

import triton
from translate import Translator, Untranslatable
from triton_metal import _native
from triton_metal.codegen import CodegenOptions, RuntimeLeaf, generate_module
from triton_metal.functions import KernelFunction
from triton_metal.language import dtype
from triton_metal.language.blocks import tensor_descriptor
from triton_metal.signatures import type_of
from triton_metal.tuples import element_name, rebuild_tuple


def _descriptor(kind: str) -> tensor_descriptor:
    """The parameter that a signature writes as "tensordesc<fp16[64, 32]>"."""
    found = re.fullmatch(r"tensordesc<(\w+)\[([\d, ]+)\].*>", kind)
    if found is None:
        raise Untranslatable(f"a parameter of type {kind}")
    block = [int(size) for size in found[2].split(",")]
    handle = RuntimeLeaf(dtype.descriptor(type_of(found[1]), block, False))
    return tensor_descriptor(
        handle,
        tuple(RuntimeLeaf(dtype("int32")) for _ in block),
        tuple(RuntimeLeaf(dtype("int64")) for _ in block),
    )


def _leaf(kind: Any, path: tuple[int, ...], constants: dict[tuple[int, ...], Any]) -> Any:
    if path in constants:
        return constants[path]
    if isinstance(kind, tuple):
        parts = [_leaf(part, (*path, index), constants) for index, part in enumerate(kind)]
        return rebuild_tuple(type(kind), parts)
    if not isinstance(kind, str):
        raise Untranslatable(f"a parameter of type {kind!r}")
    if kind.startswith("tensordesc"):
        return _descriptor(kind)
    if kind == "constexpr":
        return None
    return RuntimeLeaf(type_of(kind))


def generate(source: Any, options: Any, translator: Translator | None = None) -> _native.Module:
    """The module that triton_metal generates for an ``ASTSource``: for one of stock's with a translator."""

    def value(given: Any) -> Any:
        return given if translator is None else translator.value(given)

    if translator is not None:
        translator.next_round()
    kernel: KernelFunction = value(source.fn)
    names = source.fn.arg_names
    constants = {path: value(constant) for path, constant in source.constants.items()}
    arguments = {
        name: _leaf(source.signature.get(name, "constexpr"), (index,), constants)
        for index, name in enumerate(names)
    }
    divisibility: dict[str, int] = {}
    for path, attributes in source.attrs.items():
        name, kind = names[path[0]], source.signature[names[path[0]]]
        for index in path[1:]:
            name, kind = element_name(name, type(kind), index), kind[index]
        for attribute, number in attributes:
            if attribute == "tt.divisibility":
                divisibility[name] = number
    choices = CodegenOptions(
        debug=bool(options.debug or (translator and triton.knobs.runtime.debug)),
        sanitize_overflow=bool(options.sanitize_overflow),
    )
    return generate_module(kernel, arguments, divisibility, choices)
