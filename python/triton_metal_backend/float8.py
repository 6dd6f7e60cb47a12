"""Conversions of fp8e4b15, for which Triton's IR has no type: it has the codes, as integers of 8 bits."""

from __future__ import annotations

import struct
from typing import Any

# A sign, 4 bits of an exponent with the bias 15, 3 of a mantissa: the upper bits of a half, whose exponent
# has a bit more. The largest number that a conversion makes is 1.75. There is no infinity and no NaN.
LARGEST = struct.unpack("<i", struct.pack("<f", 1.75))[0]
LEAST_NORMAL = (127 - 14) << 23
SUBNORMALS = 1 << 17  # units in 1


def convert_custom_types(
    value: Any, to: Any, fp_downcast_rounding: Any = None, _semantic: Any = None
) -> Any:
    """A conversion from or to fp8e4b15, which other backends write in assembler."""
    from triton import language as tl

    if value.type.scalar.is_fp8e4b15():
        return _semantic.cast(_to_half(value, _semantic), to.scalar)
    rounding = getattr(fp_downcast_rounding, "name", fp_downcast_rounding)
    toward_zero = rounding is not None and str(rounding).lower() == "rtz"
    if value.type.scalar.is_fp64():
        value = _to_odd(value, _semantic)
    return _of_float(_semantic.cast(value, tl.float32), toward_zero, _semantic)


def _like(value: Any, element: Any) -> Any:
    """The type of the value with another element type."""
    from triton import language as tl

    if not value.type.is_block():
        return element
    return tl.block_type(element, value.type.get_block_shapes())


class _Bits:
    """Arithmetic on the bits of values of one shape."""

    def __init__(self, value: Any, semantic: Any) -> None:
        self.value, self.builder = value, semantic.builder

    def type(self, element: Any) -> Any:
        return _like(self.value, element).to_ir(self.builder)

    def constant(self, number: float, element: Any) -> Any:
        make = {"int16": "get_int16", "int32": "get_int32", "fp32": "get_fp32"}[element.name]
        scalar = getattr(self.builder, make)(number)
        if not self.value.type.is_block():
            return scalar
        return self.builder.create_splat(self.type(element), scalar)


def _to_half(value: Any, semantic: Any) -> Any:
    """Exact. The sign lands in bit 15, and a copy of it in bit 14."""
    from triton import language as tl

    bits, builder = _Bits(value, semantic), semantic.builder
    wide = builder.create_int_cast(value.handle, bits.type(tl.int16), True)
    wide = builder.create_shl(wide, bits.constant(7, tl.int16))
    wide = builder.create_and(wide, bits.constant(-0x4001, tl.int16))
    half = builder.create_bitcast(wide, bits.type(tl.float16))
    return tl.tensor(half, _like(value, tl.float16))


def _to_odd(value: Any, semantic: Any) -> Any:
    """The float32 toward zero, with an odd code where it is not exact: rounded again, it is what the float64 is."""
    from triton import language as tl

    bits, builder = _Bits(value, semantic), semantic.builder
    cut = semantic.cast(value, tl.float32, "rtz")
    differs = semantic.not_equal(semantic.cast(cut, tl.float64), value)
    code = builder.create_bitcast(cut.handle, bits.type(tl.int32))
    odd = builder.create_or(code, bits.constant(1, tl.int32))
    code = builder.create_select(differs.handle, odd, code)
    return tl.tensor(builder.create_bitcast(code, bits.type(tl.float32)), _like(value, tl.float32))


def _of_float(value: Any, toward_zero: bool, semantic: Any) -> Any:
    from triton import language as tl

    bits, builder = _Bits(value, semantic), semantic.builder
    i32, f32 = tl.int32, tl.float32
    word = builder.create_bitcast(value.handle, bits.type(i32))
    magnitude = builder.create_and(word, bits.constant(0x7FFFFFFF, i32))
    bounded = builder.create_minui(magnitude, bits.constant(LARGEST, i32))
    number = builder.create_bitcast(bounded, bits.type(f32))
    rebias = (127 - 15) << 23
    if toward_zero:
        normal = builder.create_sub(bounded, bits.constant(rebias, i32))
        units = builder.create_fmul(number, bits.constant(float(SUBNORMALS), f32))
        subnormal = builder.create_fp_to_ui(units, bits.type(i32))
    else:
        odd = builder.create_and(
            builder.create_lshr(bounded, bits.constant(20, i32)), bits.constant(1, i32)
        )
        half = builder.create_add(odd, bits.constant((1 << 19) - 1 - rebias, i32))
        normal = builder.create_add(bounded, half)
        # In the sum, the last digit of a float is that of the subnormals: the addition rounds.
        base = float((1 << 23) // SUBNORMALS)
        code = struct.unpack("<i", struct.pack("<f", base))[0]
        total = builder.create_fadd(number, bits.constant(base, f32))
        subnormal = builder.create_sub(
            builder.create_bitcast(total, bits.type(i32)), bits.constant(code, i32)
        )
    normal = builder.create_lshr(normal, bits.constant(20, i32))
    is_small = builder.create_icmpULT(bounded, bits.constant(LEAST_NORMAL, i32))
    code = builder.create_select(is_small, subnormal, normal)
    sign = builder.create_and(
        builder.create_lshr(word, bits.constant(24, i32)), bits.constant(0x80, i32)
    )
    code = builder.create_int_cast(builder.create_or(code, sign), bits.type(tl.int8), False)
    return tl.tensor(code, _like(value, tl.float8e4b15))
