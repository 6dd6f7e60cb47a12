"""Python functions that kernels use: those that they call, and those that run while they are compiled."""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import operator
import textwrap
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import CellType, FunctionType
from typing import Any

from ._native import configuration_changed, dtype
from .constants import is_own
from .constexpr import const, constexpr, unwrap
from .dependencies import key_of
from .errors import CompilationError, SourceLocation
from .source import Source, lines_of, parse, read_source, text_source


class JITCallable:
    """A Python function that kernels may call."""

    __triton_static__ = True  # may be passed to a kernel, as a constant

    def __init__(self, function: Callable[..., Any]) -> None:
        self.fn = function
        name = getattr(function, "__name__", type(function).__name__)
        self._name = self.__name__ = name
        self.__qualname__ = getattr(function, "__qualname__", name)
        self.__module__ = function.__module__
        self.__doc__ = function.__doc__
        self.__wrapped__ = function
        self.__globals__ = getattr(function, "__globals__", {})
        #: The key of the source and of all that it names; None until it is asked for.
        self.hash: str | None = None
        self.used_global_vals: dict[tuple[str, int], tuple[Any, dict[str, Any]]] | None = {}
        self._hash_lock = self._lock = threading.RLock()
        # The text that was imported: the file may change before it is asked for.
        plain = isinstance(function, FunctionType) and not is_own(function)
        self._lines = lines_of(function) if plain else None
        self._code = getattr(function, "__code__", None)
        #: The text that has taken the place of the source, and what a program says of its place.
        self._changed: str | None = None
        self._given: dict[str, Any] = {}

    @property
    def function(self) -> Any:
        """The Python function."""
        return self.fn

    def _own_source(self) -> Source:
        """The source of the function."""
        if self._changed is not None:
            line = self._given.get("def_file_line_number", self.starting_line_number)
            column = self._given.get("def_file_col_number", 1)
            return text_source(self.fn, self._changed, self.file_name, line, column - 1)
        same = self.fn.__code__ is self._code
        return read_source(self.fn, self._lines if same else None)

    @property
    def src(self) -> str:
        """The source from its ``def`` line on, without indentation."""
        return self._own_source().text if self._changed is None else self._changed

    def _unsafe_update_src(self, new_src: str) -> None:
        """Replaces the source. The key of a function that names this one stays until its ``hash`` is set to None."""
        self._changed = new_src
        self.hash = None
        self._source_changed()

    def _source_changed(self) -> None:
        """Has kernels compiled again."""
        configuration_changed()

    def parse(self) -> ast.Module:
        """The source as a syntax tree."""
        return parse(self.src)

    def _give(self, name: str, value: Any) -> None:
        """Notes what a program says of the source: one that makes functions from a template names the template's lines."""
        self._given[name] = value
        self.hash = None
        self._source_changed()

    @property
    def raw_src(self) -> list[str]:
        """The lines of the source, with decorators."""
        if "raw_src" in self._given:
            return list(self._given["raw_src"])
        lines = self._lines or lines_of(self.fn)
        return inspect.getblock(lines[self.starting_line_number - 1 :])

    @raw_src.setter
    def raw_src(self, lines: list[str]) -> None:
        self._give("raw_src", lines)

    @property
    def starting_line_number(self) -> int:
        """The line of its first decorator, or of its ``def``."""
        code = self._code or self.fn.__code__
        return int(self._given.get("starting_line_number", code.co_firstlineno))

    @starting_line_number.setter
    def starting_line_number(self, line: int) -> None:
        self._give("starting_line_number", line)

    @property
    def file_name(self) -> str:
        return str(self._given.get("file_name", self.fn.__code__.co_filename))

    @file_name.setter
    def file_name(self, name: str) -> None:
        self._give("file_name", name)

    @property
    def def_file_line_number(self) -> int:
        """The line of its ``def``."""
        return self._own_source().first_line

    @def_file_line_number.setter
    def def_file_line_number(self, line: int) -> None:
        self._give("def_file_line_number", line)

    @property
    def def_file_col_number(self) -> int:
        """The column of its ``def``, from 1 on."""
        return self._own_source().indent + 1

    @def_file_col_number.setter
    def def_file_col_number(self, column: int) -> None:
        self._give("def_file_col_number", column)

    def get_capture_scope(self) -> dict[str, Any]:
        """The variables outside of the function, by name."""
        return self.__globals__ | inspect.getclosurevars(self.fn).nonlocals

    @property
    def cache_key(self) -> str:
        """A digest of the source, and of those of all functions that it names."""
        with self._hash_lock:
            if self.hash is None:
                self.hash = f"recursion:{self.full_name}"  # where it names itself
                source = self._own_source()
                try:
                    self.hash, self.used_global_vals = key_of(
                        self.fn, source.node, source.text, self.starting_line_number
                    )
                except BaseException:
                    self.hash = None
                    raise
            return self.hash

    @property
    def name(self) -> str:
        return self._name

    @property
    def full_name(self) -> str:
        return f"{self.__module__}.{self.__qualname__}"


class ConstexprFunction(JITCallable):
    """A Python function that runs while compiling, on compile-time values."""

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """As a method, it takes the instance."""
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, _semantic: Any = None, **kwargs: Any) -> Any:
        return self.function(*map(unwrap, args), **{k: unwrap(v) for k, v in kwargs.items()})

    def _source_changed(self) -> None:
        function = self.fn
        names = function.__code__.co_freevars
        space = dict(function.__globals__)
        body = textwrap.indent(textwrap.dedent(self._changed or ""), "    ")
        header = f"def make({', '.join(names)}):\n{body}\n    return {function.__name__}\n"
        exec(compile(header, self.file_name, "exec"), space)
        made = space["make"](*[None] * len(names))
        function.__code__ = made.__code__
        super()._source_changed()


def constexpr_function(function: Callable[..., Any]) -> ConstexprFunction:
    """Lets kernels call a Python function on compile-time values. Raises TypeError for anything else."""
    if not callable(function):
        raise TypeError(f"@constexpr_function takes a function, not {function!r}")
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
    is_variadic: bool = False  # *args

    @property
    def has_default(self) -> bool:
        return self.default is not inspect.Parameter.empty

    @property
    def num(self) -> int:
        """Its position."""
        return self.index

    @property
    def annotation_type(self) -> str:
        """The type that the annotation names, or ""."""
        return self.annotation

    @property
    def do_not_specialize(self) -> bool:
        return not self.specialize

    @property
    def do_not_specialize_on_alignment(self) -> bool:
        return not self.specialize_alignment


_CANONICAL = {
    "int1": "i1",
    "i1": "i1",
    "bool": "i1",
    "u1": "i1",
    "uint1": "i1",
    **{f"int{w}": f"i{w}" for w in (8, 16, 32, 64)},
    **{f"i{w}": f"i{w}" for w in (8, 16, 32, 64)},
    **{f"uint{w}": f"u{w}" for w in (8, 16, 32, 64)},
    **{f"u{w}": f"u{w}" for w in (8, 16, 32, 64)},
    **{
        name: f"fp8{kind}"
        for kind in ("e5", "e4nv", "e5b16", "e4b8", "e4b15")
        for name in (f"float8{kind}", f"fp8{kind}")
    },
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
    if annotation is inspect.Parameter.empty:
        return "", False, False
    if annotation is constexpr:
        return "", True, False
    if annotation is const:
        return "", False, True
    if isinstance(annotation, dtype):
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
    """The signature, with string annotations evaluated if possible."""
    try:
        return inspect.signature(function, eval_str=True)
    except Exception:
        return inspect.signature(function)


class KernelFunction(JITCallable):
    """A function that kernels call. Its source is compiled with theirs."""

    def __init__(
        self,
        function: Callable[..., Any],
        do_not_specialize: Iterable[int | str] | None = None,
        do_not_specialize_on_alignment: Iterable[int | str] | None = None,
        debug: bool | None = None,
        noinline: bool | None = None,
    ) -> None:
        if not isinstance(function, FunctionType):
            raise TypeError(f"@jit takes a function defined with def, not {function!r}")
        super().__init__(function)
        if hasattr(function, "__wrapped__"):
            raise TypeError(
                f"@jit compiles the source of {self.name}, so it would skip the decorator below it: "
                "put @jit below the other decorators"
            )
        self._noinline = bool(noinline)
        self.debug = debug
        self._state: tuple[Any, ...] = ()
        plain = set(do_not_specialize or ())
        unaligned = set(do_not_specialize_on_alignment or ())
        self.do_not_specialize, self.do_not_specialize_on_alignment = list(plain), list(unaligned)
        self._do_not_specialize = plain
        self._unaligned = unaligned
        for parameter in self.signature.parameters.values():
            if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                raise TypeError(f"{self.name}: @jit functions cannot have **{parameter.name}")

    @property
    def noinline(self) -> bool:
        return self._noinline

    @noinline.setter
    def noinline(self, value: bool) -> None:
        self._noinline = bool(value)
        self._source_changed()

    def _read(self) -> None:
        """Reads the function again if its code or defaults have changed."""
        function = self.function
        if function is None:  # taken away, where a program sends the kernel to another process
            return
        keywords = function.__kwdefaults__ or {}
        state = (function.__code__, function.__defaults__, *itertools.chain(*keywords.items()))
        if len(state) == len(self._state) and all(map(operator.is_, state, self._state)):
            return
        with self._lock:
            self._signature = evaluated_signature(function)
            self._params = self._read_params()
            self._source = functools.cache(self._own_source)
            self._state = state

    def _source_changed(self) -> None:
        self._state = ()
        super()._source_changed()

    @property
    def source(self) -> Source:
        self._read()
        return self._source()

    @property
    def signature(self) -> inspect.Signature:
        self._read()
        return self._signature

    @property
    def params(self) -> tuple[Param, ...]:
        """The parameters. Raises CompilationError for one that is a constexpr and not to be specialised on."""
        self._read()
        for param in self._params:
            if param.is_constexpr and not param.specialize_alignment:
                raise self._contradiction(param)
        return self._params

    def _contradiction(self, param: Param) -> CompilationError:
        source, name = self._own_source(), param.name
        option = "do_not_specialize"
        if param.specialize:
            option += "_on_alignment"
        line = source.lines[0] if source.lines else ""
        place = SourceLocation(
            source.file, source.first_line, source.indent + 1, line, 3, self.name, (1, 0)
        )
        return CompilationError(
            f"{name} marked as constexpr and listed in {option}: a kernel is always specialised on a constexpr, so take "
            f"{name} out of {option}",
            place,
            (),
            source.text,
            source.node,
        )

    @property
    def cells(self) -> dict[str, CellType]:
        """The variables of the enclosing functions."""
        function = self.function
        return dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))

    def _read_params(self) -> tuple[Param, ...]:
        result = []
        for index, parameter in enumerate(self._signature.parameters.values()):
            name = parameter.name
            kind, is_constexpr, is_const = annotation_type(parameter.annotation)
            fixed = index in self._do_not_specialize or name in self._do_not_specialize
            unaligned = index in self._unaligned or name in self._unaligned
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
                    parameter.kind is inspect.Parameter.VAR_POSITIONAL,
                )
            )
        return tuple(result)

    @property
    def arg_names(self) -> list[str]:
        return [param.name for param in self.params]

    @property
    def constexprs(self) -> list[int]:
        """The positions of the parameters that are constants."""
        return [param.index for param in self.params if param.is_constexpr]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"{self.name} can only be called from a @triton_metal.jit function")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.full_name})"


def kernel_function(function: Callable[..., Any]) -> KernelFunction:
    """Lets kernels call a Python function that is written in the language. It cannot be launched."""
    return KernelFunction(function)
