"""@jit: from a Python function to a kernel that runs."""

from __future__ import annotations

import ast
import hashlib
import inspect
import textwrap
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any, overload

from .constexpr import constexpr, unwrap


@dataclass(frozen=True)
class Source:
    """The text of a function, from its def line on."""

    file: str
    first_line: int
    indent: int
    text: str
    node: ast.FunctionDef
    lines: tuple[str, ...]


def read_source(function: Callable[..., Any]) -> Source:
    """Reads and parses a function's text."""
    try:
        raw, first = inspect.getsourcelines(function)
    except (OSError, TypeError) as error:
        raise ValueError(
            f"the source of {function.__qualname__} cannot be read: @jit functions must stand in a file"
        ) from error
    start = next(
        (i for i, line in enumerate(raw) if line.lstrip().startswith(("def ", "async def "))), None
    )
    if start is None:
        raise ValueError(f"{function.__qualname__} is no function that is made with def")
    raw = raw[start:]
    indent = len(raw[0]) - len(raw[0].lstrip())
    text = textwrap.dedent("".join(raw))
    tree = ast.parse(text)
    node = tree.body[0]
    if not isinstance(node, ast.FunctionDef):
        raise ValueError(f"{function.__qualname__} is no plain function")
    code = function.__code__
    return Source(code.co_filename, first + start, indent, text, node, tuple(raw_lines(raw)))


def raw_lines(lines: list[str]) -> list[str]:
    return [line.rstrip("\n") for line in lines]


class JITCallable:
    """A Python function that kernels may call."""

    __triton_static__ = True  # may be passed to a kernel, as a constant

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.name = function.__name__
        self.__name__ = function.__name__
        self.__qualname__ = function.__qualname__
        self.__module__ = function.__module__
        self.__doc__ = function.__doc__
        self.__wrapped__ = function
        self._lock = threading.RLock()
        self._dependencies: Dependencies | None = None

    @property
    def full_name(self) -> str:
        return f"{self.__module__}.{self.__qualname__}"

    @cached_property
    def source(self) -> Source:
        return read_source(self.function)

    def capture_scope(self) -> dict[str, Any]:
        """The globals that the function sees, and the variables of the functions around it."""
        function = self.function
        if function.__closure__ is None:
            return function.__globals__
        scope = dict(function.__globals__)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__, strict=True):
            try:
                scope[name] = cell.cell_contents
            except ValueError:  # not yet assigned
                continue
        return scope

    def defaults(self) -> dict[str, Any]:
        """The default values of the parameters."""
        return {
            name: parameter.default
            for name, parameter in inspect.signature(self.function).parameters.items()
            if parameter.default is not inspect.Parameter.empty
        }

    @property
    def dependencies(self) -> Dependencies:
        with self._lock:
            if self._dependencies is None:
                self._dependencies = find_dependencies(self)
            return self._dependencies

    @property
    def cache_key(self) -> str:
        """A digest of the source, of what it calls, and of the constexpr globals that it reads."""
        return self.dependencies.digest

    def forget_dependencies(self) -> None:
        """A global has changed: look again."""
        with self._lock:
            self._dependencies = None


@dataclass
class Dependencies:
    """What a function's compiled code depends on, beside its arguments."""

    digest: str
    globals: list[tuple[dict[str, Any], str, Any]]  # where, name, and what it held


def find_dependencies(function: JITCallable) -> Dependencies:
    """Walks over a function and those that it calls."""
    seen: dict[int, JITCallable] = {}
    parts: list[str] = []
    used: dict[tuple[int, str], tuple[dict[str, Any], str, Any]] = {}

    def visit(callee: JITCallable) -> None:
        if id(callee) in seen:
            return
        seen[id(callee)] = callee
        source = callee.source
        parts.append(f"{callee.full_name}\0{source.file}\0{source.first_line}\0{source.text}")
        scope = callee.capture_scope()
        globals = callee.function.__globals__
        for node in ast.walk(source.node):
            value = resolve(node, scope)
            if not isinstance(value, (JITCallable, constexpr)):
                continue
            if isinstance(node, ast.Name) and globals.get(node.id) is value:
                used[(id(globals), node.id)] = (globals, node.id, value)
            inner = value.value if isinstance(value, constexpr) else value
            if isinstance(inner, JITCallable):
                visit(inner)
            else:
                parts.append(f"{ast.unparse(node)}={inner!r}")
        for name, default in callee.defaults().items():
            inner = default.value if isinstance(default, constexpr) else default
            if isinstance(inner, JITCallable):
                visit(inner)
            else:
                parts.append(f"{name}:{inner!r}")

    visit(function)
    digest = hashlib.sha256("\1".join(parts).encode()).hexdigest()
    return Dependencies(digest, list(used.values()))


def resolve(node: ast.AST, scope: dict[str, Any]) -> Any:
    """What a global name, or an attribute of a module, stands for."""
    if isinstance(node, ast.Name):
        return scope.get(node.id)
    if isinstance(node, ast.Attribute):
        owner = resolve(node.value, scope)
        if isinstance(owner, ModuleType):
            return getattr(owner, node.attr, None)
    return None


class ConstexprFunction(JITCallable):
    """A Python function that runs while compiling, on compile-time values."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*map(unwrap, args), **{k: unwrap(v) for k, v in kwargs.items()})


def constexpr_function(function: Callable[..., Any]) -> ConstexprFunction:
    """Lets kernels call a Python function on compile-time values."""
    return ConstexprFunction(function)


@dataclass(frozen=True)
class Param:
    """A parameter of a @jit function."""

    index: int
    name: str
    default: Any
    is_constexpr: bool
    is_const: bool
    annotation: str  # a Triton type such as "i64" or "*fp32", or ""
    specialize: bool
    specialize_alignment: bool

    @property
    def has_default(self) -> bool:
        return self.default is not inspect.Parameter.empty


_CANONICAL = {
    "int1": "i1",
    "i1": "i1",
    "bool": "i1",
    "u1": "i1",
    **{f"int{w}": f"i{w}" for w in (8, 16, 32, 64)},
    **{f"i{w}": f"i{w}" for w in (8, 16, 32, 64)},
    **{f"uint{w}": f"u{w}" for w in (8, 16, 32, 64)},
    **{f"u{w}": f"u{w}" for w in (8, 16, 32, 64)},
    "float16": "fp16",
    "fp16": "fp16",
    "bfloat16": "bf16",
    "bf16": "bf16",
    "float32": "fp32",
    "fp32": "fp32",
    "float": "fp32",
    "float64": "fp64",
    "fp64": "fp64",
    "int": "",
}


def annotation_type(annotation: Any) -> tuple[str, bool, bool]:
    """(canonical type or "", is constexpr, is const) of a parameter's annotation."""
    from .language import core

    if annotation is inspect.Parameter.empty:
        return "", False, False
    if annotation is constexpr:
        return "", True, False
    if annotation is core.const:
        return "", False, True
    if isinstance(annotation, core.dtype):
        if annotation.is_ptr():
            return (
                "*" + _CANONICAL.get(annotation.element_ty.name, ""),
                False,
                annotation.is_const(),
            )
        return _CANONICAL.get(annotation.name, ""), False, False
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    text = text.strip(" \"'")
    if "constexpr" in text:
        return "", True, False
    is_const = text.startswith(("const ", "*k")) or text in ("const", "tl.const")
    text = text.removeprefix("const ").strip().removeprefix("tl.")
    pointer = text.startswith("*") or text.endswith("*")
    element = _CANONICAL.get(text.strip("*").removeprefix("k"), "")
    return ("*" + element if pointer and element else "" if pointer else element), False, is_const


def evaluated_signature(function: Callable[..., Any]) -> inspect.Signature:
    """The signature, with annotations that are strings evaluated where that works."""
    try:
        return inspect.signature(function, eval_str=True)
    except Exception:
        return inspect.signature(function)


class JITFunction(JITCallable):
    """A kernel, or a function that kernels call."""

    def __init__(
        self,
        function: Callable[..., Any],
        do_not_specialize: Iterable[int | str] = (),
        do_not_specialize_on_alignment: Iterable[int | str] = (),
        debug: bool = False,
        noinline: bool = False,
    ) -> None:
        super().__init__(function)
        self.signature = evaluated_signature(function)
        self.noinline = noinline
        self.debug = debug
        plain = set(do_not_specialize)
        unaligned = set(do_not_specialize_on_alignment)
        self._do_not_specialize = plain
        self._unaligned = unaligned
        for parameter in self.signature.parameters.values():
            if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                raise TypeError(f"{self.name}: @jit functions have no **{parameter.name}")
        self._launcher: Any = None

    @cached_property
    def params(self) -> tuple[Param, ...]:
        result = []
        for index, parameter in enumerate(self.signature.parameters.values()):
            name = parameter.name
            kind, is_constexpr, is_const = annotation_type(parameter.annotation)
            fixed = index in self._do_not_specialize or name in self._do_not_specialize
            unaligned = index in self._unaligned or name in self._unaligned
            if is_constexpr and (fixed or unaligned):
                raise TypeError(
                    f"{self.name}: the parameter {name} is a constexpr and in do_not_specialize: "
                    "a constexpr is always specialised on"
                )
            result.append(
                Param(
                    index,
                    name,
                    parameter.default,
                    is_constexpr,
                    is_const,
                    kind,
                    not fixed,
                    not fixed and not unaligned,
                )
            )
        return tuple(result)

    @property
    def arg_names(self) -> list[str]:
        return [param.name for param in self.params]

    @property
    def launcher(self) -> Any:
        if self._launcher is None:
            from .launcher import Launcher

            with self._lock:
                if self._launcher is None:
                    self._launcher = Launcher(self)
        return self._launcher

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        """``kernel[grid](...)`` launches the kernel over a grid of programs."""
        return self.launcher.at(grid)

    def warmup(self, *args: Any, grid: Any = None, **kwargs: Any) -> Any:
        """Compiles for these arguments, which may be dtypes in place of arrays; nothing runs."""
        return self.launcher.warmup(args, kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            f"{self.name} is a @triton_metal.jit function: launch it as {self.name}[grid](...), or "
            "call it from another kernel"
        )

    def __repr__(self) -> str:
        return f"JITFunction({self.full_name})"


@overload
def jit(function: Callable[..., Any]) -> JITFunction: ...


@overload
def jit(
    *,
    do_not_specialize: Iterable[int | str] = ...,
    do_not_specialize_on_alignment: Iterable[int | str] = ...,
    debug: bool = ...,
    noinline: bool = ...,
) -> Callable[[Callable[..., Any]], JITFunction]: ...


def jit(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Makes a kernel of a Python function that is written in triton_metal.language.

    ``do_not_specialize`` names parameters (or their positions) that get no specialised code for the
    value 1 and for multiples of 16; ``do_not_specialize_on_alignment`` leaves out the latter only.
    """
    if function is None:
        return lambda f: JITFunction(f, **options)
    return JITFunction(function, **options)
