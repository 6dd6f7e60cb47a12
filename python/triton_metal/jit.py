"""@jit: from a Python function to a kernel that runs."""

from __future__ import annotations
import __future__

import ast
import dis
import functools
import inspect
import itertools
import linecache
import operator
import re
import textwrap
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import CellType, CodeType, FunctionType
from typing import Any, overload

from .constexpr import constexpr, unwrap
from .reads import is_own


@dataclass(frozen=True)
class Source:
    """The text of a function, from its def line on."""

    file: str
    first_line: int
    indent: int
    text: str
    node: ast.FunctionDef
    lines: tuple[str, ...]


def read_source(function: FunctionType, lines: list[str] | None = None) -> Source:
    """Parses a function's text, which is in the lines of its file."""
    code = function.__code__
    name = function.__qualname__
    first = code.co_firstlineno
    lines = lines or lines_of(function)
    if not lines[first - 1 :]:
        raise ValueError(
            f"the source of {name} cannot be read: @jit functions must stand in a file"
        )
    try:
        raw = inspect.getblock(lines[first - 1 :])
        start = next(
            (i for i, line in enumerate(raw) if line.lstrip().startswith(("def ", "async def "))),
            None,
        )
        if start is None:
            raise ValueError(f"{name} is no function that is made with def")
        raw = raw[start:]
        indent = len(raw[0]) - len(raw[0].lstrip())
        text = textwrap.dedent("".join(raw))
        node = ast.parse(text).body[0]
    except SyntaxError as error:
        raise changed_source(function) from error
    if isinstance(node, ast.AsyncFunctionDef):
        raise ValueError(f"{name} is no plain function")
    if not isinstance(node, ast.FunctionDef) or not is_text_of(node, code):
        raise changed_source(function)
    kept = tuple(line.rstrip("\n") for line in raw)
    return Source(code.co_filename, first + start, indent, text, node, kept)


def lines_of(function: FunctionType) -> list[str]:
    """The lines of a function's file, as they are now."""
    file = function.__code__.co_filename
    linecache.checkcache(file)
    return linecache.getlines(file, function.__globals__)


def changed_source(function: FunctionType) -> ValueError:
    code = function.__code__
    return ValueError(
        f"{code.co_filename}:{code.co_firstlineno} is not the source of {function.__qualname__}: the file has changed "
        "since it was imported, or the function was made otherwise. Import it again"
    )


def is_text_of(node: ast.FunctionDef, code: CodeType) -> bool:
    """Whether Python makes this code of a text: the same names, constants and operators."""
    if node.name != code.co_name:
        return False
    if any(isinstance(child, ast.Assert) for child in ast.walk(node)):
        return True  # pytest puts its own code in the place of assert
    plain = ast.FunctionDef(**{name: getattr(node, name) for name in node._fields})
    plain.decorator_list = []
    ast.copy_location(plain, node)
    module = ast.Module([plain], [])
    compiled = compile(module, "<source>", "exec", code.co_flags & _FUTURES, dont_inherit=True)
    found = next((c for c in compiled.co_consts if isinstance(c, CodeType)), None)
    return found is not None and summary(found) == summary(code)


_FUTURES = functools.reduce(
    operator.or_, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
)


def summary(code: CodeType) -> tuple[Any, ...]:
    """What tells the code of one function from another's, wherever it was compiled."""
    names = {*code.co_names, *code.co_varnames, *code.co_freevars, *code.co_cellvars}
    names = {
        re.sub(r"^_[A-Za-z0-9]\w*?(?=__)", "", name) for name in names
    }  # private names of classes
    constants = [
        summary(constant) if isinstance(constant, CodeType) else (type(constant), repr(constant))
        for constant in code.co_consts
        if not isinstance(constant, str) or constant != code.co_qualname
    ]
    operators = [
        (instruction.opname, instruction.argrepr)
        for instruction in dis.get_instructions(code)
        if instruction.opname.startswith(("BINARY", "COMPARE", "CONTAINS", "IS_", "UNARY"))
    ]
    return code.co_argcount, code.co_kwonlyargcount, names, constants, operators


class JITCallable:
    """A Python function that kernels may call."""

    __triton_static__ = True  # may be passed to a kernel, as a constant

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        name = getattr(function, "__name__", type(function).__name__)
        self._name = self.__name__ = name
        self.__qualname__ = getattr(function, "__qualname__", name)
        self.__module__ = function.__module__
        self.__doc__ = function.__doc__
        self.__wrapped__ = function
        self._lock = threading.RLock()

    @property
    def function(self) -> Any:
        """The Python function."""
        return self._function

    @property
    def name(self) -> str:
        return self._name

    @property
    def full_name(self) -> str:
        return f"{self.__module__}.{self.__qualname__}"


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
        if not isinstance(function, FunctionType):
            raise TypeError(f"@jit takes a function that is made with def, not {function!r}")
        if hasattr(function, "__wrapped__"):
            raise TypeError(
                f"@jit compiles the source of {self.name}, so it would skip the decorator that stands under it: "
                "put @jit under the other decorators"
            )
        self._noinline = noinline
        self._debug = debug
        # The text that was imported: the file may change before the first launch.
        self._lines = None if is_own(function) else lines_of(function)
        self._code = function.__code__
        self._state: tuple[Any, ...] = ()
        plain = set(do_not_specialize)
        unaligned = set(do_not_specialize_on_alignment)
        self._do_not_specialize = plain
        self._unaligned = unaligned
        for parameter in self.signature.parameters.values():
            if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                raise TypeError(f"{self.name}: @jit functions have no **{parameter.name}")
        self._launcher: Any = None

    @property
    def noinline(self) -> bool:
        return self._noinline

    @property
    def debug(self) -> bool:
        return self._debug

    def _read(self) -> None:
        """Reads the function again where it has got other code or defaults."""
        function = self.function
        keywords = function.__kwdefaults__ or {}
        state = (function.__code__, function.__defaults__, *itertools.chain(*keywords.items()))
        if len(state) == len(self._state) and all(map(operator.is_, state, self._state)):
            return
        with self._lock:
            lines = self._lines if function.__code__ is self._code else None
            self._signature = evaluated_signature(function)
            self._params = self._read_params()
            self._source = functools.cache(lambda: read_source(function, lines))
            self._state = state

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
        self._read()
        return self._params

    @property
    def cells(self) -> dict[str, CellType]:
        """The variables of the functions around this one."""
        function = self.function
        return dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))

    def _read_params(self) -> tuple[Param, ...]:
        result = []
        for index, parameter in enumerate(self._signature.parameters.values()):
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
