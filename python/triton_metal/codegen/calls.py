"""Calls of language functions, of other kernels' functions, and of Python functions."""

from __future__ import annotations

import ast
import inspect
import math as python_math
import struct
import sys
from dataclasses import replace
from types import FunctionType, ModuleType
from typing import Any

from .._native import dtype
from ..constants import is_own, is_plain_tuple
from ..errors import CompilationError, CompileTimeAssertionFailure
from ..functions import ConstexprFunction, JITCallable, KernelFunction
from ..language import core
from ..language.aggregates import is_aggregate, is_aggregate_class
from ..language.building import walk_parameters
from ..language.semantic import TritonSemantic
from ..language.values import plain, wrapped
from ..purity import functions_of, record_reads
from ..tuples import rebuild_tuple
from .advice import (
    is_of_array_library,
    not_of_the_language,
    parameters_to_annotate,
    static_only,
)
from .functions import ITERATORS, STATIC_CLASSES, STATIC_FUNCTIONS
from .locals import names_read, returns_early
from .values import (
    BoundMethod,
    LocalFunction,
    PythonFunction,
    RuntimeLeaf,
    describe,
    fill,
    flatten,
    is_runtime,
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
        wanted = getattr(function, "_must_use_result", False)
        if wanted and node is self.unused:
            reason = f" {wanted}" if isinstance(wanted, str) else ""
            raise self.error(
                node, f"The result of {ast.unparse(node.func)} is not being used.{reason}"
            )
        return self.call(node, function, args, kwargs)

    def call(self, node: ast.AST, function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if isinstance(function, KernelFunction):
            try:
                return self.call_jit(function, tuple(args), kwargs, node)
            except CompilationError as error:
                raise self.called_from(error, node) from error.__cause__
        if core.is_builtin(function):
            self.at(node)
            wants = getattr(function, "__triton_wants__", None)
            if wants is None and not is_own(function):
                # The program has set the mark itself.
                wants = walk_parameters(function)
            if wants:
                return self.call_python(node, function, args, kwargs, wants)
            return self.call_builtin(node, function, tuple(args), kwargs)
        if isinstance(function, LocalFunction):
            return self.call_local(node, function, args, kwargs)
        if isinstance(function, PythonFunction):
            self.at(node)
            wants = walk_parameters(function.function)
            return self.call_python(node, function.function, args, kwargs, wants)
        if is_aggregate_class(function):
            self.at(node)
            return self.make_aggregate(node, function, args, kwargs)
        if function is core.tuple:
            return self.as_tuple(node, args, kwargs)
        if function in ITERATORS:
            return self.iterate(node, function, args, kwargs)
        if function is core.aggregate_replace:
            return self.call_builtin(node, function, tuple(args), kwargs)
        if isinstance(function, ConstexprFunction):
            if any(map(is_aggregate, args)):
                return self.call_python(node, function, args, kwargs, ())
            function = function.function
        elif id(function) in STATIC_FUNCTIONS:
            special = STATIC_FUNCTIONS[id(function)]
            if special is not None:
                return special(self.reads, *args, **kwargs)
        elif not (self.is_static_callable(function) or self.is_constexpr_global(node, function)):
            name = getattr(function, "__name__", None) or describe(function)
            raise self.error(node, not_of_the_language(function, name))
        if function is core.condition:
            return self.call_builtin(node, function, tuple(args), kwargs)
        if (
            isinstance(function, type)
            and issubclass(function, tuple)
            and is_runtime((*args, *kwargs.values()))
        ):
            value = function(*args, **kwargs)
            if hasattr(function, "_fields") and is_plain_tuple(value):
                return value
        for value in (*args, *kwargs.values()):
            if is_runtime(value):
                name = getattr(function, "__name__", str(function))
                raise self.error(node, static_only(function, name, describe(value)))
        return self.reads.call(function, *args, **kwargs)

    def as_tuple(self, node: ast.AST, args: list[Any], kwargs: dict[str, Any]) -> tuple:
        """``tl.tuple(values)``."""
        if len(args) != 1 or kwargs:
            raise self.error(node, "tl.tuple takes one tuple or list")
        return self.elements(args[0])

    def iterate(
        self, node: ast.AST, function: Any, args: list[Any], kwargs: dict[str, Any]
    ) -> tuple:
        """``zip``, ``enumerate`` and ``reversed`` of tuples, and of ranges that are known when compiling."""
        for value in args[:1] if function is enumerate else args:
            if not isinstance(value, (tuple, range)):
                raise self.error(
                    node, f"{function.__name__} takes tuples in a kernel, not {describe(value)}"
                )
        if is_runtime((*args[1:], *kwargs.values())) and function is not zip:
            raise self.error(node, f"{function.__name__} takes a compile-time start")
        return tuple(function(*args, **kwargs))

    def make_aggregate(
        self, node: ast.AST, kind: Any, args: list[Any], kwargs: dict[str, Any]
    ) -> Any:
        """An instance of an aggregate."""
        if kind._initialize is None:
            return self.call_builtin(node, kind, tuple(args), kwargs)
        return self.call_python(node, kind, args, kwargs, ("_semantic", "_generator"))

    def call_python(
        self,
        node: ast.AST,
        function: Any,
        args: list[Any],
        kwargs: dict[str, Any],
        wants: tuple[str, ...],
    ) -> Any:
        """Calls a program's own function of values of kernels. It receives compile-time values as constexpr."""
        code = getattr(function, "_initialize", None) or getattr(function, "function", function)
        used = [inspect.unwrap(code)]
        for value in (*args, *kwargs.values()):
            if is_aggregate(value):
                used.extend(functions_of(type(value)))
        for one in used:
            one = getattr(one, "function", one)
            if not (isinstance(one, FunctionType) and record_reads(one, self.reads)):
                self.reads.volatile = True  # what it reads is unknown
        given = {name: wrapped(value) for name, value in kwargs.items()}
        for name in wants:
            given[name] = self if name == "_generator" else self.semantic
        return plain(self.call_builtin(node, function, tuple(map(wrapped, args)), given, False))

    @property
    def semantic(self) -> TritonSemantic:
        """What programs' own builtins receive."""
        if self._semantic is None:
            self._semantic = TritonSemantic(self)
        return self._semantic

    def call_local(
        self, node: ast.AST, function: LocalFunction, args: Any, kwargs: dict[str, Any]
    ) -> Any:
        """Inlines a lambda, or a function that is defined in this kernel."""
        if function.walk is not self:
            raise self.error(
                node,
                f"{function.name} is defined in another function: it can be called only there. Move it to module level and "
                "decorate it with @triton.jit",
            )
        if any(one.node is function.node for one in self.inlining):
            raise self.error(node, f"{function.name} calls itself: kernels have no recursion")
        values = self.bind_local(node, function, list(args), kwargs)
        # As in Python, the function sees the variables of the kernel as they are now.
        kept = self.scope, self.lost
        outer = self.outer_scopes[0] if self.outer_scopes else self.scope
        seen = {**outer, **function.scope, **values}
        if returns_early(function.node):
            try:
                return self.call_apart(node, function, seen)
            except CompilationError as error:
                raise self.called_from(error, node) from error.__cause__
        self.outer_scopes.append(self.scope)
        self.scope, self.lost = seen, dict(self.lost)
        self.inlining.append(function)
        try:
            return self.inline(function)
        except CompilationError as error:
            raise self.called_from(error, node) from error.__cause__
        finally:
            self.inlining.pop()
            self.outer_scopes.pop()
            self.scope, self.lost = kept

    def call_apart(self, node: ast.AST, function: LocalFunction, seen: dict[str, Any]) -> Any:
        """Calls a local function that returns in its middle: a function of the module, of all that it reads.

        ``seen`` are the variables that it sees.
        """
        assert isinstance(function.node, ast.FunctionDef)
        callee = type(self)(self.function, self.state)
        callee.lost = dict(self.lost)
        callee.inlining = [*self.inlining, function]
        values: dict[str, Any] = {}
        for name in names_read(function.node, seen):
            value = self.argument(seen[name])
            if isinstance(value, LocalFunction):
                value = replace(value, walk=callee)
            values[name] = value
        templates = {name: template_of(value) for name, value in values.items()}
        symbol = self.symbol(function, templates)
        previous = getattr(core.active, "generator", None)
        try:
            made = callee.generate(symbol, templates, is_kernel=False, local=function.node)
        finally:
            core.active.generator = previous
        self.at(node)
        handles = flatten(tuple(values.values()), [])
        return fill(made.template, self.builder.call(made.symbol, handles))

    def bind_local(
        self, node: ast.AST, function: LocalFunction, args: list[Any], kwargs: dict[str, Any]
    ) -> dict[str, Any]:
        """The values of a local function's parameters."""
        parameters = function.node.args
        names = [one.arg for one in (*parameters.posonlyargs, *parameters.args)]
        values = dict(
            zip(names[len(names) - len(function.defaults) :], function.defaults, strict=True)
        )
        values.update(function.keyword_defaults)
        values.update(zip(names, args, strict=False))
        rest = args[len(names) :]
        if parameters.vararg is not None:
            values[parameters.vararg.arg] = tuple(rest)
        elif rest:
            raise self.error(
                node, f"{function.name} takes {len(names)} arguments, but {len(args)} are given"
            )
        keywords = [*names, *(one.arg for one in parameters.kwonlyargs)]
        for name, value in kwargs.items():
            if name not in keywords:
                raise self.error(node, f"{function.name} has no parameter {name}")
            values[name] = value
        for name in keywords:
            if name not in values:
                raise self.error(node, f"{function.name}: argument {name} is missing")
        return values

    def inline(self, function: LocalFunction) -> Any:
        """The value of the body, in a scope that holds the arguments."""
        if isinstance(function.node, ast.Lambda):
            return self.visit(function.node.body)
        body = function.node.body
        last = body[-1] if isinstance(body[-1], ast.Return) else None
        self.statements(body if last is None else body[:-1])
        return None if last is None or last.value is None else self.visit(last.value)

    def is_constexpr_global(self, node: ast.AST, function: Any) -> bool:
        """Whether a call is of a global ``f = tl.constexpr(function)``, which is also what ``@tl.constexpr`` makes."""
        called = node.func if isinstance(node, ast.Call) else None
        if not isinstance(called, ast.Name) or not isinstance(function, FunctionType):
            return False
        value = self.function.function.__globals__.get(called.id)
        return isinstance(value, core.constexpr) and core.unwrap(value) is function

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
        if isinstance(function, type) and function.__name__ in ("finfo", "iinfo"):
            # The limits of a dtype, as torch and NumPy have them.
            return is_of_array_library(function)
        return isinstance(function, type) and issubclass(function, tuple)

    def call_builtin(
        self,
        node: ast.AST,
        function: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        settles: bool = True,
    ) -> Any:
        previous = getattr(core.active, "generator", None)
        core.active.generator = self
        try:
            if (
                settles and function is not core.static_print
            ):  # which shows a value, and takes nothing from it
                args = tuple(map(self.reads.settle, args))
                kwargs = {name: self.reads.settle(value) for name, value in kwargs.items()}
            return function(*args, **kwargs)
        except CompilationError as error:  # of a function that the operation calls
            raise self.called_from(error, node) from error.__cause__
        except TypeError as error:
            message = self.clean(error, function, args, kwargs)
            if "constexpr" in message and isinstance(node, ast.Call):
                message += parameters_to_annotate(node, self.scope, self.function.arg_names)
            raise self.error(node, message) from error
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
    def clean(
        error: TypeError, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None
    ) -> str:
        """A message for the binding layer's error about argument types, and for Python's about their number."""
        message = str(error)
        name = getattr(function, "__name__", "this operation")
        if message.startswith(f"{name}() ") and core.is_builtin(function):
            parameters = str(inspect.signature(inspect.unwrap(function)))
            return f"{message}: it is tl.{name}{parameters}"
        if "incompatible function arguments" not in message:
            return message
        given = [describe(arg) for arg in args]
        given += [f"{key}={describe(value)}" for key, value in (kwargs or {}).items()]
        return f"{name} does not take ({', '.join(given)})"

    def static_assert(self, node: ast.Call) -> None:
        if not 1 <= len(node.args) <= 2 or node.keywords:
            raise self.error(node, "static_assert takes a condition and an optional message")
        passed = self.visit(node.args[0])
        if is_runtime(passed):
            raise self.error(
                node.args[0],
                f"static_assert takes a compile-time condition, not {describe(passed)}: use tl.device_assert",
            )
        if self.reads.call(bool, passed):
            return
        message = self.visit(node.args[1]) if len(node.args) == 2 else ""
        raise self.error(
            node,
            f"static assertion failed{': ' + str(message) if message else ''}",
            CompileTimeAssertionFailure,
        )

    def call_jit(
        self,
        function: KernelFunction,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        node: ast.AST | None = None,
    ) -> Any:
        """Calls another @jit function; it is generated once for each combination of argument types."""
        if isinstance(function, LocalFunction):
            return self.call_local(node or function.node, function, args, kwargs)
        if not isinstance(function, KernelFunction):
            raise TypeError(f"expected a @triton_metal.jit function, not {describe(function)}")
        try:
            bound = function.signature.bind(*args, **kwargs)
        except TypeError as error:
            names = ", ".join(function.arg_names)
            raise TypeError(
                f"{function.name}: {error}; its parameters are {names or 'none'}"
            ) from None
        bound.apply_defaults()
        values = {name: self.argument(value) for name, value in bound.arguments.items()}
        # A constexpr among the parameters of a function that a kernel calls says nothing: a value of run time may go there.
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
            except RecursionError:
                raise TypeError(
                    f"{function.name} is called too deep for Python's recursion limit of {sys.getrecursionlimit()}: loop with "
                    "tl.static_range, or raise the limit with sys.setrecursionlimit"
                ) from None
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
            return rebuild_tuple(type(value), [self.argument(v) for v in value])
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

    def symbol(self, function: KernelFunction | LocalFunction, templates: dict[str, Any]) -> str:
        def mangle(part: Any) -> str:
            if is_aggregate(part):
                fields = ", ".join(mangle(p) for p in part)
                return f"{type(part).__module__}.{type(part).__name__}<{fields}>"
            if isinstance(part, tuple):
                return "T" + "_".join(mangle(p) for p in part) + "T"
            if isinstance(part, RuntimeLeaf):
                return part.type.mangle()
            if isinstance(part, dtype):
                return "c" + part.mangle()
            if isinstance(part, (bool, int, float, str)) or part is None:
                return f"c{part!r}"
            if isinstance(part, JITCallable):
                return f"c{type(part).__name__}({part.__module__}:{part.__qualname__})"
            return f"c{type(part).__name__}"

        text = "_".join(mangle(part) for part in templates.values())
        if isinstance(function, LocalFunction):
            name = f"{self.function.full_name}.{function.name}"
        else:
            name = function.full_name
        base = f"{name}__{text}"[:200]
        symbol, count = base, 1
        while symbol in self.state.symbols:
            count += 1
            symbol = f"{base}_{count}"
        self.state.symbols.add(symbol)
        return symbol
