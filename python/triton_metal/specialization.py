"""What a kernel is specialised on: the types of a launch's arguments, their constants, and what is known of them."""

from __future__ import annotations

import json
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from . import knobs
from ._utils import canonicalize_dtype, is_iterable
from .arguments import is_descriptor
from .backends.metal.options import OTHERS, MetalOptions, read_options
from .config import kernel_config
from .constants import plain
from .constexpr import constexpr
from .functions import JITCallable, KernelFunction, Param
from .generation import symbol_of
from .language.blocks import decode, descriptor_parts
from .sources import ASTSource
from .tuples import rebuild_tuple

#: What a specialisation knows of a multiple, as its key and Triton's hooks have it. Stock Triton has 16 alone.
DIVISORS = {"D": 16, "8": 8, "4": 4}


def known_divisor(multiple: int) -> str:
    """What is known of a number or an address that is a multiple of 16, 8 or 4, or of none of them (0)."""
    return next((known for known, divisor in DIVISORS.items() if multiple == divisor), "")


@dataclass
class JitFunctionInfo:
    """The function that a hook is about."""

    module: ModuleType | str
    name: str
    jit_function: Any


def shown(value: Any) -> Any:
    """A constant for the key of a specialisation: a function stands for its source."""
    if isinstance(value, JITCallable):
        return value.cache_key
    if isinstance(value, tuple):
        parts = [shown(part) for part in value]
        return rebuild_tuple(type(value), parts)
    return [shown(part) for part in value] if isinstance(value, list) else value


@dataclass(frozen=True)
class _Leaf:
    """A parameter of a launch: its type, and its value or what is known of it."""

    type: str
    known: Any


@dataclass
class Specialization:
    """A specialisation of a function. ``entries`` has a type and what is known for each parameter of a launch."""

    entries: list[tuple[str, Any]]
    signature: dict[str, Any]
    constants: dict[tuple[int, ...], Any]
    attrs: dict[tuple[int, ...], list[list[Any]]]
    options: MetalOptions
    sharing: str = ""
    given: str = ""  # the launch's own options, as it wrote them
    known_key: str = ""  # of one that was serialised

    @classmethod
    def of(
        cls,
        params: Sequence[Param],
        arguments: Sequence[tuple[str, Any, int]],
        values: Mapping[str, Any],
        divisibility: Mapping[str, int],
        gathered: Callable[[dict[str, Any]], dict[str, Any]],
        options: MetalOptions,
        memory: Mapping[str, Any],
        given: Mapping[str, Any] | None = None,
    ) -> Specialization:
        """From what the native launcher found out about the arguments.

        ``divisibility`` has the largest of DIVISORS for each parameter where it is known. ``gathered`` makes the values
        of the function's parameters from those of the launch.
        """
        leaves: dict[str, _Leaf] = {}
        for param, (kind, payload, _) in zip(params, arguments, strict=True):
            if kind == "constexpr":
                leaves[param.name] = _Leaf("constexpr", values[param.name])
            else:
                pointer = ("*k" if param.is_const else "*") if kind == "array" else ""
                type = pointer + canonicalize_dtype(payload)
                leaves[param.name] = _Leaf(type, known_divisor(divisibility.get(param.name, 0)))
        result = cls([], {}, {}, {}, options, repr(memory) if memory else "", as_given(given))
        for index, (name, part) in enumerate(gathered(dict(leaves)).items()):
            result.signature[name] = result._add(part, (index,))
        result.entries = [(leaf.type, leaf.known) for leaf in leaves.values()]
        return result

    def _add(self, part: Any, path: tuple[int, ...]) -> Any:
        """The type of a part of the arguments, whose constants and attributes are noted."""
        if isinstance(part, descriptor_parts):
            block = decode(part.layout.known.partition("/")[0])
            return f"tensordesc<{part.base.type.lstrip('*')}{block}>"
        if isinstance(part, tuple):
            parts = [self._add(element, (*path, index)) for index, element in enumerate(part)]
            return rebuild_tuple(type(part), parts)
        if part.type == "constexpr":
            self.constants[path] = part.known
        else:
            divisor = DIVISORS.get(part.known)
            self.attrs[path] = [["tt.divisibility", divisor]] if divisor else []
        return part.type

    @property
    def key(self) -> str:
        """What distinguishes it from the others of its function."""
        return self.known_key or f"{shown(self.entries)}{self.options}{self.sharing}{self.given}"

    def symbol(self, function: KernelFunction) -> str:
        """The kernel's name in its text."""
        return symbol_of(function, self.signature, self.constants)

    def source(self, function: KernelFunction) -> ASTSource:
        """What is compiled."""
        return ASTSource(function, self.signature, self.constants, self.attrs)

    def tell(self, hook: Any, function: Any, target: Any, is_warmup: bool) -> Any:
        """Calls a hook of the just-in-time compilation, if there is one. Returns what it returns."""
        if not hook:
            return None
        options = self.options
        types = ", ".join(f"{name}: {type}" for name, type in self.signature.items())
        shown_options = ", ".join(
            f"{name}={getattr(options, name)}"
            for name in ("num_warps", "num_ctas", "num_stages", "enable_fp_fusion", "launch_cooperative_grid")
        )  # fmt: skip
        data = {
            "key": self.key,
            "signature": self.signature,
            "device": 0,
            "constants": self.constants,
            "num_warps": options.num_warps,
            "num_ctas": options.num_ctas,
            "num_stages": options.num_stages,
            "enable_fp_fusion": options.enable_fp_fusion,
            "launch_cooperative_grid": options.launch_cooperative_grid,
            "extern_libs": options.extern_libs,
            "configs": [self.attrs],
            "specialization_data": serialize_specialization_data(
                function.full_name, self.signature, self.constants, self.attrs, options, self.key, target
            ),
            "is_warmup": is_warmup,
        }  # fmt: skip
        return hook(
            key=self.key,
            repr=f"{function.__qualname__}[{shown_options}]({types})",
            fn=JitFunctionInfo(function.__module__, function.__qualname__, function),
            compile=data,
            is_manual_warmup=is_warmup,
            already_compiled=False,
        )


def as_given(options: Mapping[str, Any] | None) -> str:
    """Options of other backends as a part of a key: a launch that names one is another specialisation."""
    return repr(sorted(options.items())) if options else ""


#: The @jit functions by module and name, for constants of a serialised specialisation.
FUNCTIONS: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()


def _encoded(value: Any) -> Any:
    kind = type(value).__name__
    if isinstance(value, JITCallable):
        return {"jit_function": f"{value.__module__}:{value.__qualname__}"}
    if kind == "constexpr":
        return {"constexpr": value.value}
    # In Triton's own data a dtype is a string, which a constant of that text would be read as.
    return {"dtype": str(value)} if kind == "dtype" else value


def serialize_specialization_data(
    name: str,
    signature: dict[str, Any],
    constants: dict[tuple[int, ...], Any],
    attrs: dict[tuple[int, ...], Any],
    options: MetalOptions,
    key: str,
    target: Any,
) -> str:
    """A specialisation as JSON, which ``JITFunction.preload`` takes."""
    return json.dumps(
        {
            "name": name,
            "signature": signature,
            "constant_keys": [list(path) for path in constants],
            "constant_vals": [_encoded(value) for value in constants.values()],
            "attrs_keys": [list(path) for path in attrs],
            "attrs_vals": list(attrs.values()),
            "options": vars(options),
            "key": key,
            "target": vars(target),
        },
        default=repr,
    )


def tuples(value: Any) -> Any:
    """What was read from JSON, with tuples for its lists."""
    return tuple(map(tuples, value)) if is_iterable(value) else value


def decoded(value: Any, dtype: Any, constexpr: Any) -> Any:
    """A constant of a serialised specialisation."""
    if isinstance(value, dict) and "constexpr" in value:
        return constexpr(tuples(value["constexpr"]))
    if isinstance(value, dict) and "jit_function" in value:
        name = value["jit_function"]
        if name not in FUNCTIONS:
            raise RuntimeError(
                f"Unable to resolve JITFunction {name} for preload: it is not imported"
            )
        return FUNCTIONS[name]
    if isinstance(value, dict) and "dtype" in value:
        return dtype(value["dtype"])
    return tuples(value)


def mangled(param: Param, value: Any) -> tuple[Any, Any]:
    """The type of a parameter for a value, and what is known of it: one of DIVISORS, or a constant's value."""
    if param.is_constexpr:
        return "constexpr", plain(value)
    return specialized(
        value,
        param.is_const,
        param.specialize,
        param.specialize_alignment,
        param.annotation,
        least=4,
    )


def specialized(
    value: Any,
    is_const: bool,
    specialize: bool,
    align: bool,
    annotation: str = "",
    least: int = 16,
) -> tuple[Any, Any]:
    """What a launch specialises a kernel on for a value: its type, and what is known of it.

    Integers are told apart by the largest of DIVISORS that divides them, if it is at least ``least``.
    """
    if value is None or isinstance(value, (constexpr, JITCallable)):
        return "constexpr", plain(value)
    if is_descriptor(value):
        block = list(map(int, value.block_shape))
        return f"tensordesc<{canonicalize_dtype(value.base.dtype)}{block}>", ""
    if isinstance(value, tuple):
        pairs = [specialized(part, False, True, True, least=least) for part in value]
        types, known = ([pair[i] for pair in pairs] for i in (0, 1))
        return rebuild_tuple(type(value), types), rebuild_tuple(type(value), known)
    if isinstance(value, bool):
        return canonicalize_dtype(annotation or "i1"), ""
    is_array = hasattr(value, "data_ptr") or hasattr(value, "ctypes")
    if isinstance(value, int) or (hasattr(value, "__index__") and not is_array):
        number = value.__index__()
        if annotation:
            type_name = canonicalize_dtype(annotation)
        elif specialize and number == 1:
            return "constexpr", 1
        else:
            small = -(1 << 31) <= number < 1 << 31
            type_name = "i32" if small else "u64" if number >= 1 << 63 else "i64"
        is_integer = type_name[0] in "iu" and type_name != "u1"
        if not (align and is_integer):
            return type_name, ""
        divisors = (d for d in DIVISORS.values() if d >= least and number % d == 0)
        return type_name, known_divisor(next(divisors, 0))
    if isinstance(value, float):
        return canonicalize_dtype(annotation or "fp32"), ""
    element = getattr(value, "dtype", value)
    try:
        short = canonicalize_dtype(element)
    except KeyError:
        raise TypeError(f"a kernel cannot be specialised on {value!r}") from None
    address = value.data_ptr() if hasattr(value, "data_ptr") else 0
    interface = getattr(value, "__array_interface__", None)
    if interface is not None:
        address = interface["data"][0]
    return ("*k" if is_const else "*") + short, "D" if align and address % 16 == 0 else ""


def expected_key(entries: Any, options: dict[str, Any], debug: bool | None, module: str) -> str:
    """The key that a launch with these arguments will have, unless it takes some of them apart."""
    config = kernel_config()
    given = dict(options)
    given["debug"] = bool(given.get("debug") or debug or knobs.runtime.debug)
    given |= config.threads(given.get("num_warps"), given.get("num_stages"), module)
    others = {name: value for name, value in options.items() if name in OTHERS}
    return f"{shown(entries)}{read_options(given, 'host')}{as_given(others)}"
