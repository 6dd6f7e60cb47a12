"""Calls of language functions, of other kernels' functions, and of Python functions."""

from __future__ import annotations

import ast
import math as python_math
import struct
from types import ModuleType
from typing import Any

from .._native import dtype
from ..errors import CompilationError, CompileTimeAssertionFailure
from ..functions import ConstexprFunction, JITCallable, KernelFunction
from ..language import core
from .functions import STATIC_CLASSES, STATIC_FUNCTIONS
from .values import (
    BoundMethod,
    RuntimeLeaf,
    describe,
    fill,
    flatten,
    is_runtime,
    rebuild_tuple,
    template_of,
)
from .walk import Walk


class Calls(Walk):
    """The part of the walk that handles calls."""

    def arguments(self, node: ast.Call) -> tuple[list[Any], dict[str, Any]]:
        # Keywords come first, as in Triton: the order of evaluation is that of the operations.
        kwargs: dict[str, Any] = {}
        for keyword in node.keywords:
            if keyword.arg is None:
                raise self.unsupported(node, "kernels do not support ** in calls")
            kwargs[keyword.arg] = self.visit(keyword.value)
        args: list[Any] = []
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                args.extend(self.elements(self.visit(argument.value)))
            else:
                args.append(self.visit(argument))
        return args, kwargs

    def visit_Call(self, node: ast.Call) -> Any:
        function = self.visit(node.func)
        if function is core.static_assert:
            return self.static_assert(node)
        args, kwargs = self.arguments(node)
        if isinstance(function, BoundMethod):
            args.insert(0, function.value)
            function = function.function
        return self.call(node, function, args, kwargs)

    def call(self, node: ast.AST, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if isinstance(function, KernelFunction):
            try:
                return self.call_jit(function, tuple(args), kwargs, node)
            except CompilationError as error:
                raise error.called_from(self.location(node)) from error.__cause__
        if core.is_builtin(function):
            self.at(node)
            return self.call_builtin(node, function, tuple(args), kwargs)
        if isinstance(function, ConstexprFunction):
            function = function.function
        elif id(function) in STATIC_FUNCTIONS:
            special = STATIC_FUNCTIONS[id(function)]
            if special is not None:
                return special(self.reads, *args, **kwargs)
        elif not self.is_static_callable(function):
            name = getattr(function, "__name__", None) or describe(function)
            raise self.error(
                node,
                f"{name} is not a function of the language: a kernel can call tl functions and functions "
                "that are decorated with @triton_metal.jit or @triton_metal.constexpr_function",
            )
        if function is core.condition:
            return self.call_builtin(node, function, tuple(args), kwargs)
        for value in (*args, *kwargs.values()):
            if is_runtime(value):
                name = getattr(function, "__name__", str(function))
                raise self.error(
                    node,
                    f"{name} works on compile-time values, but is given {describe(value)}",
                )
        return self.reads.call(function, *args, **kwargs)

    @staticmethod
    def is_static_callable(function: Any) -> bool:
        """Whether Python code may run while compiling: math, methods of compile-time values, types of this package."""
        if not callable(function):
            return False
        if any(function is one for one in STATIC_CLASSES):
            return True
        owner = getattr(function, "__self__", None)
        if owner is not None and not isinstance(owner, ModuleType):
            return True
        if getattr(function, "__module__", None) == "math":
            return getattr(python_math, function.__name__, None) is function
        return isinstance(function, type) and issubclass(function, tuple)

    def call_builtin(
        self, node: ast.AST, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        previous = getattr(core.active, "generator", None)
        core.active.generator = self
        try:
            if function is not core.static_print:  # which shows a value, and takes nothing from it
                args = tuple(map(self.reads.settle, args))
                kwargs = {name: self.reads.settle(value) for name, value in kwargs.items()}
            return function(*args, **kwargs)
        except CompilationError as error:  # of a function that the operation calls
            raise error.called_from(self.location(node)) from error.__cause__
        except TypeError as error:
            raise self.error(node, self.clean(error, function, args)) from error
        except ValueError as error:
            raise self.error(node, str(error)) from error
        finally:
            core.active.generator = previous

    def call_native(self, node: ast.AST, method: Any, *args: Any) -> Any:
        try:
            return method(*args)
        except TypeError as error:
            raise self.error(node, self.clean(error, method, args)) from error
        except ValueError as error:
            raise self.error(node, str(error)) from error

    @staticmethod
    def clean(error: TypeError, function: Any, args: tuple[Any, ...]) -> str:
        """A message for the binding layer's error about argument types."""
        message = str(error)
        if "incompatible function arguments" not in message:
            return message
        name = getattr(function, "__name__", "this operation")
        return f"{name} does not take ({', '.join(describe(arg) for arg in args)})"

    def static_assert(self, node: ast.Call) -> None:
        if not 1 <= len(node.args) <= 2 or node.keywords:
            raise self.error(node, "static_assert takes a condition and an optional message")
        passed = self.visit(node.args[0])
        if is_runtime(passed):
            raise self.error(
                node.args[0],
                f"static_assert takes a compile-time condition, not {describe(passed)}",
            )
        if self.reads.call(bool, passed):
            return
        message = self.visit(node.args[1]) if len(node.args) == 2 else ""
        raise CompileTimeAssertionFailure(
            f"static assertion failed{': ' + str(message) if message else ''}", self.location(node)
        )

    def call_jit(
        self,
        function: KernelFunction,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        node: ast.AST | None = None,
    ) -> Any:
        """Calls another @jit function; it is generated once for each combination of argument types."""
        if not isinstance(function, KernelFunction):
            raise TypeError(f"expected a @triton_metal.jit function, not {describe(function)}")
        try:
            bound = function.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{function.name}: {error}") from None
        bound.apply_defaults()
        values = {name: self.argument(value) for name, value in bound.arguments.items()}
        for parameter in function.params:
            if parameter.is_constexpr and is_runtime(values[parameter.name]):
                raise TypeError(
                    f"{function.name}: the parameter {parameter.name} is a constexpr, but is given "
                    f"{describe(values[parameter.name])}"
                )
        templates = {name: template_of(value) for name, value in values.items()}
        key = (function, tuple(self.key_of(part) for part in templates.values()))
        state = self.state
        if key not in state.functions:
            state.functions[key] = None
            symbol = self.symbol(function, templates)
            callee = type(self)(function, state)
            previous = getattr(core.active, "generator", None)
            try:
                state.functions[key] = callee.generate(symbol, templates, is_kernel=False)
            finally:
                core.active.generator = previous
        result = state.functions[key]
        if result is None:
            raise TypeError(f"{function.name} calls itself: kernels have no recursion")
        if node is not None:
            self.at(node)
        handles = flatten(tuple(values.values()), [])
        return fill(result.template, self.builder.call(result.symbol, handles))

    def argument(self, value: Any) -> Any:
        value = self.reads.unwrap(value)
        if isinstance(value, list):
            value = self.reads.call(tuple, value)
        if isinstance(value, tuple):
            return rebuild_tuple(value, [self.argument(v) for v in value])
        return value

    def key_of(self, part: Any) -> Any:
        if isinstance(part, tuple):
            return tuple(self.key_of(p) for p in part)
        if isinstance(part, RuntimeLeaf):
            return ("t", part.type)
        if type(part) is float:
            return ("f", struct.pack("d", part))
        if type(part) in (bool, int, str) or part is None:
            return (type(part), repr(part))
        if isinstance(part, dtype):
            return ("d", part)
        self.state.constants.append(part)
        return ("o", id(part))

    def symbol(self, function: KernelFunction, templates: dict[str, Any]) -> str:
        def mangle(part: Any) -> str:
            if isinstance(part, tuple):
                return "T" + "_".join(mangle(p) for p in part) + "T"
            if isinstance(part, RuntimeLeaf):
                return part.type.mangle()
            if isinstance(part, dtype):
                return "c" + part.mangle()
            if isinstance(part, (bool, int, float, str)) or part is None:
                return f"c{part!r}"
            return "c" + (part.name if isinstance(part, JITCallable) else type(part).__name__)

        text = "_".join(mangle(part) for part in templates.values())
        base = f"{function.full_name}__{text}"
        base = "".join(c if c.isalnum() or c in "._" else "_" for c in base)[:200]
        symbol, count = base, 1
        while symbol in self.state.symbols:
            count += 1
            symbol = f"{base}_{count}"
        self.state.symbols.add(symbol)
        return symbol
