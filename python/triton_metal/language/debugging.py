"""What a program tells the compiler or its user: hints, prints and assertions."""

from __future__ import annotations

import builtins
from typing import Any

from .._native import Hint
from ..constexpr import unwrap
from .building import (
    builder,
    builtin,
    current_generator,
    describe,
    read_int,
    read_optional,
    read_static,
    read_tensor,
)


def _hint(name: str, kind: Hint, doc: str) -> Any:
    def hint(input, values):
        values = unwrap(values)
        several = values if isinstance(values, (builtins.tuple, list)) else (values,)
        numbers = [read_int("values", v) for v in several]
        if any(number < 1 for number in numbers):
            raise ValueError(f"values must be positive integers, not {values!r}")
        builder().hint(kind, input, numbers)
        return input

    hint.__name__ = hint.__qualname__ = name
    hint.__doc__ = doc
    return builtin(hint)


multiple_of = _hint(
    "multiple_of",
    Hint.divisibility,
    "Asserts that the first value of each contiguous run is a multiple of a number.",
)
max_contiguous = _hint(
    "max_contiguous", Hint.contiguity, "Asserts that values form contiguous runs of a length."
)
max_constancy = _hint(
    "max_constancy", Hint.constancy, "Asserts that values form constant runs of a length."
)


@builtin
def assume(cond):
    """Asserts to the compiler that a scalar condition is true."""
    builder().assume(unwrap(cond))


@builtin
def debug_barrier():
    """Waits until all threads of the program reach this point."""
    builder().debug_barrier()


@builtin
def device_print(prefix, *args, hex=False):
    """Prints values at run time."""
    prefix = read_static("prefix", prefix)
    if not isinstance(prefix, str):
        raise TypeError(
            f"the first argument of device_print must be a string, not {describe(prefix)}"
        )
    values = [read_tensor("device_print's argument", unwrap(a)) for a in args]
    builder().device_print(prefix, values, bool(read_static("hex", hex)))


@builtin
def device_assert(cond, msg="", mask=None):
    """Stops with a message if a condition is false at run time. Needs ``debug=True``."""
    if current_generator().options.debug:
        builder().device_assert(unwrap(cond), str(read_static("msg", msg)), read_optional(mask))


@builtin
def static_print(*values, sep=" ", end="\n", file=None, flush=False):
    """Prints compile-time values while compiling."""
    print(*(unwrap(value) for value in values), sep=sep, end=end, file=file, flush=flush)


@builtin
def static_assert(cond, msg=""):
    """Fails the compilation if a compile-time condition is false."""
    raise RuntimeError("static_assert works only inside @triton_metal.jit functions")
