"""Functions from outside of the language: those of libraries, by symbol, and assembly of other vendors' GPUs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._native import dtype, tensor
from ..constexpr import unwrap
from ..libdevice import functions
from .building import broadcast_all, builder, builtin, read_static, read_tensor
from .values import plain


def _known_symbols() -> frozenset[str]:
    return frozenset(form.symbol for forms in functions().values() for form in forms)


@builtin
def extern_elementwise(lib_name, lib_path, args, arg_type_symbol_dict, is_pure):
    """A function of a library on each element. The library is libdevice; ``arg_type_symbol_dict`` has, for the dtypes of
    the arguments, the symbol and the dtype of the result.
    """
    values = [read_tensor("an argument of extern_elementwise", unwrap(arg)) for arg in args]
    given = tuple(value.dtype for value in values)
    forms = {tuple(map(unwrap, kinds)): form for kinds, form in arg_type_symbol_dict.items()}
    if not forms:
        raise ValueError("arg_type_symbol_dict is empty")
    if given not in forms:
        known = ", ".join(f"({', '.join(map(str, kinds))})" for kinds in forms)
        raise TypeError(
            f"extern_elementwise takes {known}, not ({', '.join(map(str, given))}): convert with .to()"
        )
    symbol, result = (unwrap(part) for part in forms[given][:2])
    if symbol not in _known_symbols():
        raise ValueError(
            f"there is no function {symbol!r} for Metal: extern_elementwise knows libdevice's functions (__nv_...); see "
            "triton.language.extra.libdevice"
        )
    return builder().extern_elementwise(symbol, broadcast_all(values), result)


def dispatch(
    func: Callable[..., Any],
    lib_name: str,
    lib_path: str,
    args: Sequence[Any],
    arg_type_symbol_dict: dict[Any, Any],
    ret_type: dtype,
    is_pure: bool,
    _semantic: Any = None,
) -> tensor:
    """A function of a library, as `extern_elementwise`; ``func`` is not used."""
    return extern_elementwise(lib_name, lib_path, list(args), arg_type_symbol_dict, is_pure)


def extern(fn: Any) -> Any:
    """Marks a function as a builtin, as `builtin`."""
    return builtin(fn)


@builtin
def inline_asm_elementwise(asm, constraints, args, dtype, is_pure, pack):
    """Assembly on each element. It is always refused: Metal has no inline assembly."""
    text = " ".join(str(read_static("asm", asm)).split())
    if len(text) > 60:
        text = f"{text[:57]}..."
    raise ValueError(
        f"inline_asm_elementwise: {text!r} is assembly of another vendor's GPU, and Metal has no inline assembly: write "
        "the computation with functions of the language or of triton.language.extra.libdevice, and keep the assembly "
        "behind a constexpr condition on triton.language.target_info.current_target()"
    )


def binary_op_type_legalization(lhs: Any, rhs: Any, semantic: Any) -> Any:
    """Both operands in their common type and shape."""
    return semantic.binary_op_type_checking_impl(plain(lhs), plain(rhs))
