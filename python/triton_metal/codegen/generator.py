"""The walk over a kernel's AST. Every node becomes a compile-time value or calls of the builder.

Compile-time values are plain Python objects, run-time values are ``tensor``, and tuples hold either. The C++ code in
compiler/language defines the meaning of operations.
"""

from __future__ import annotations

import ast
from typing import Any

from .. import _native
from .._native import Builder, dtype, tensor
from ..errors import compile_error
from ..functions import KernelFunction
from ..language.blocks import descriptor_parts, tensor_descriptor
from ..reads import Reads
from ..tuples import element_name, rebuild_tuple
from .calls import Calls
from .expressions import Expressions
from .statements import Statements
from .values import (
    CodegenOptions,
    FunctionResult,
    Memory,
    ModuleState,
    RuntimeLeaf,
    describe,
    fill,
    template_of,
)

#: What a function returns where it ends without a return.
MISSING = object()


class CodeGenerator(Statements, Expressions, Calls):
    """Generates one function of a module."""

    def generate(
        self,
        symbol: str,
        arguments: dict[str, Any],
        is_kernel: bool,
        divisibility: dict[str, int] | None = None,
        memory: dict[str, Memory] | None = None,
        local: ast.FunctionDef | None = None,
    ) -> FunctionResult:
        """Emits the function. ``arguments`` holds templates, with types in place of run-time values.

        ``local`` is a function that is defined in it, and is emitted in its place.
        """
        node = local or self.function.source.node
        types: list[dtype] = []
        names: list[str] = []
        flags: list[dict[str, bool]] = []

        def collect(name: str, part: Any) -> None:
            if isinstance(part, (tensor_descriptor, descriptor_parts)):
                collect(name, part[0])
                collect(f"{name}.shape", part.sizes)
                collect(f"{name}.stride", part.steps)
            elif isinstance(part, tuple):
                for index, element in enumerate(part):
                    collect(element_name(name, type(part), index), element)
            elif isinstance(part, RuntimeLeaf):
                types.append(part.type)
                names.append(name)
                flags.append(part.flags)

        for name, part in arguments.items():
            collect(name, part)
        hints = [(divisibility or {}).get(name, 0) for name in names]
        shared = [(memory or {}).get(name, Memory()) for name in names]
        self.builder.set_location(self.file, self.line_offset + node.lineno, self.column_offset)
        parameters = self.builder.begin_function(
            symbol,
            types,
            names,
            is_kernel,
            self.function.noinline,
            hints,
            [part.number for part in shared],
        )
        for parameter, known in zip(parameters, flags, strict=True):
            for flag, value in known.items():
                self.builder.set_argument_flag(parameter, flag, value)
        named = dict(zip(names, parameters, strict=True))
        for name, part in (memory or {}).items():
            own, other = named.get(name), named.get(part.same_as)
            # Descriptors of one array may have sizes, strides and padding of their own.
            if (
                own is not None
                and other is not None
                and own.type == other.type
                and own.type.is_ptr()
            ):
                named[name] = other
        leaves = iter(named.values())
        for name, part in arguments.items():
            self.scope[name] = self.with_descriptors(fill(part, leaves))
        self.statements(node.body)
        template = self.finish(node, is_kernel)
        return FunctionResult(symbol, template)

    def with_descriptors(self, value: Any) -> Any:
        """An argument, with the descriptors that are made from parts of the launch."""
        if isinstance(value, descriptor_parts):
            return value.made(self.builder)
        if isinstance(value, tuple) and not isinstance(value, tensor_descriptor):
            return rebuild_tuple(type(value), map(self.with_descriptors, value))
        return value

    def finish(self, node: ast.FunctionDef, is_kernel: bool) -> Any:
        """Emits the returns, all of one type."""
        builder = self.builder
        values = [value for _, value, _ in self.returns]
        if not self.terminated:
            # As in Triton, what a function returns where it has no return is undefined if it returns a value elsewhere.
            has_value = any(value is not None for value in values)
            self.returns.append((builder.current_block(), MISSING if has_value else None, node))
        template = template_of(self.returns[0][1])
        for _, value, place in self.returns[1:]:
            if value is not MISSING:
                template = self.common(node.name, template, template_of(value), place)
        if is_kernel and template is not None:
            raise self.error(self.returns[0][2], "a kernel cannot return a value: store it")
        results: list[dtype] = []
        for block, value, place in self.returns:
            handles: list[tensor] = []
            builder.set_block(block)
            if value is MISSING:
                self.undefined(template, handles)
            else:
                self.materialize(template, value, handles)
            self.at(place)
            builder.emit_return(block, handles)
            results = [handle.type for handle in handles]
        builder.end_function(results)
        return template

    def common(self, name: str, a: Any, b: Any, place: ast.AST) -> Any:
        """The template that two returns of a function share."""
        if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b):
            return rebuild_tuple(
                type(a), [self.common(name, x, y, place) for x, y in zip(a, b, strict=True)]
            )
        a_type, b_type = self.leaf_type(a), self.leaf_type(b)
        static = not isinstance(a, RuntimeLeaf) and not isinstance(b, RuntimeLeaf)
        if static and self.same_constant(a, b):
            return a
        if a_type is None or b_type is None or a_type != b_type:
            raise self.error(
                place,
                f"Return type mismatch: {name} returns {describe(b)} here, but {describe(a)} elsewhere",
            )
        return RuntimeLeaf(a_type)

    def leaf_type(self, value: Any) -> dtype | None:
        if isinstance(value, RuntimeLeaf):
            return value.type
        if isinstance(value, (bool, int, float)):
            return self.builder.type_of(value)
        return None

    def materialize(self, template: Any, value: Any, into: list[tensor]) -> None:
        if isinstance(template, tuple):
            for part, element in zip(template, value, strict=True):
                self.materialize(part, element, into)
        elif isinstance(template, RuntimeLeaf):
            into.append(value if isinstance(value, tensor) else self.builder.to_tensor(value))

    def undefined(self, template: Any, into: list[tensor]) -> None:
        """Values of a template's types that nobody may read."""
        if isinstance(template, tuple):
            for part in template:
                self.undefined(part, into)
        elif isinstance(template, RuntimeLeaf):
            into.append(self.builder.poison(template.type))


CodeGenerator.visitors = {
    getattr(ast, name.removeprefix("visit_")): getattr(CodeGenerator, name)
    for name in dir(CodeGenerator)
    if name.startswith("visit_")
}
CodeGenerator.visitors[ast.List] = CodeGenerator.visit_Tuple


def generate_module(
    function: KernelFunction,
    arguments: dict[str, Any],
    divisibility: dict[str, int],
    options: CodegenOptions,
    memory: dict[str, Memory] | None = None,
    reads: Reads | None = None,
    symbol: str | None = None,
) -> _native.Module:
    """The TTIR of a kernel. ``reads`` records what it depends on besides its arguments, ``symbol`` is its name.

    ``arguments`` holds a dtype, wrapped in RuntimeLeaf, for each run-time parameter, and the values of the others.
    ``memory`` holds the parameters whose arrays overlap.
    """
    module = _native.Module()
    state = ModuleState(Builder(module), options, reads or Reads())
    symbol = symbol or function.name
    state.symbols.add(symbol)
    generator = CodeGenerator(function, state)
    generator.generate(symbol, arguments, True, divisibility, memory)
    try:
        module.verify()
    except ValueError as error:
        raise compile_error(str(error)) from None
    return module
