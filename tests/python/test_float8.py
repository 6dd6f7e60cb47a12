"""Conversions of floats of 8 bits: every code, every half and bfloat, and floats with all ties."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl

from float8_model import FORMATS, Format

BLOCK = 1024
CODES = np.tile(np.arange(256, dtype=np.uint8), 4)


@triton.jit
def widen_kernel(x, out, SMALL: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    code = tl.load(x + i).to(SMALL, bitcast=True)
    tl.store(out + i, code.to(out.dtype.element_ty))


@triton.jit
def narrow_kernel(x, out, SMALL: tl.constexpr, ROUNDING: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    code = tl.load(x + i).to(SMALL, fp_downcast_rounding=ROUNDING)
    tl.store(out + i, code.to(tl.uint8, bitcast=True))


def narrow(x: np.ndarray, name: str, rounding: str | None) -> np.ndarray:
    padded = np.zeros(-(-x.size // BLOCK) * BLOCK, x.dtype)
    padded[: x.size] = x
    out = np.zeros(padded.size, np.uint8)
    small = getattr(tl, name)
    narrow_kernel[(padded.size // BLOCK,)](padded, out, SMALL=small, ROUNDING=rounding, BLOCK=BLOCK)
    return out[: x.size]


def all_floats16(name: str) -> np.ndarray:
    return (
        np.arange(65536, dtype=np.uint32)
        .astype(np.uint16)
        .view(np.float16 if name == "float16" else ml_dtypes.bfloat16)
    )


def floats32(format: Format) -> np.ndarray:
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 1 << 32, 1 << 18, dtype=np.uint32).view(np.float32)
    # Random numbers of the format's own range, where most of the 2^32 floats are not.
    near = rng.normal(size=1 << 18) * np.exp2(rng.integers(-format.bias - 4, 18, 1 << 18))
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1e-45, -1e-45], np.float32)
    return np.concatenate([special, format.ties(), bits, near.astype(np.float32)])


@pytest.mark.parametrize("name", [name for name, format in FORMATS.items() if format.numpy])
def test_model_is_that_of_ml_dtypes(name: str) -> None:
    format = FORMATS[name]
    expected = np.arange(256, dtype=np.uint8).view(format.dtype()).astype(np.float64)
    np.testing.assert_array_equal(format.values(), expected)
    # ml_dtypes does not saturate.
    x = floats32(format)
    x = x[np.abs(x) <= format.values()[format.largest]]
    np.testing.assert_array_equal(format.encode(x), x.astype(format.dtype()).view(np.uint8))


@pytest.mark.parametrize("to", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("name", FORMATS)
def test_each_code_is_widened(name: str, to: str) -> None:
    numpy_type = ml_dtypes.bfloat16 if to == "bfloat16" else np.dtype(to)
    out = np.zeros(BLOCK, numpy_type)
    widen_kernel[(1,)](CODES, out, SMALL=getattr(tl, name), BLOCK=BLOCK)
    expected = FORMATS[name].values()[CODES]
    np.testing.assert_array_equal(out.astype(np.float64), expected)
    np.testing.assert_array_equal(
        np.signbit(out.astype(np.float64))[expected == 0], np.signbit(expected[expected == 0])
    )


@pytest.mark.parametrize("rounding", [None, "rtne", "rtz"])
@pytest.mark.parametrize("source", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", FORMATS)
def test_each_short_float_is_narrowed(name: str, source: str, rounding: str | None) -> None:
    format, x = FORMATS[name], all_floats16(source)
    with np.errstate(invalid="ignore"):
        wide = x.astype(np.float64)
    format.assert_codes(narrow(x, name, rounding), format.encode(wide, rounding or "rtne"), wide)


@pytest.mark.parametrize("rounding", ["rtne", "rtz"])
@pytest.mark.parametrize("name", FORMATS)
def test_floats_are_narrowed(name: str, rounding: str) -> None:
    format, x = FORMATS[name], floats32(FORMATS[name])
    format.assert_codes(narrow(x, name, rounding), format.encode(x, rounding), x)


@pytest.mark.own_route  # MLX has float64 on its CPU alone
@pytest.mark.parametrize("rounding", ["rtne", "rtz"])
@pytest.mark.parametrize("name", FORMATS)
def test_doubles_are_rounded_once(name: str, rounding: str) -> None:
    format = FORMATS[name]
    ties = format.ties().astype(np.float64)
    # What lies beside a tie as a double is the tie itself as a float.
    beside = [np.nextafter(ties, np.inf), np.nextafter(ties, -np.inf)]
    x = np.concatenate([ties, *beside, [np.inf, -np.inf, np.nan, 1e300, -1e300, 1e-300]])
    format.assert_codes(narrow(x, name, rounding), format.encode(x, rounding), x)
    wide = np.zeros(BLOCK)
    widen_kernel[(1,)](CODES, wide, SMALL=getattr(tl, name), BLOCK=BLOCK)
    np.testing.assert_array_equal(wide, format.values()[CODES])


@triton.jit
def between_kernel(x, out, FROM: tl.constexpr, TO: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    code = tl.load(x + i).to(FROM, bitcast=True).to(TO)
    tl.store(out + i, code.to(tl.uint8, bitcast=True))


@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize("name", FORMATS)
def test_each_code_to_each_other_format(name: str, to: str) -> None:
    out = np.zeros(BLOCK, np.uint8)
    between_kernel[(1,)](CODES, out, FROM=getattr(tl, name), TO=getattr(tl, to), BLOCK=BLOCK)
    values = FORMATS[name].values()[CODES]
    if name == to:
        np.testing.assert_array_equal(out, CODES)
    else:
        FORMATS[to].assert_codes(out, FORMATS[to].encode(values), values)


@triton.jit
def cut_kernel(x, out, TO: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i).to(TO, fp_downcast_rounding="rtz"))


@pytest.mark.parametrize("to", ["float16", "bfloat16"])
def test_floats_are_cut_toward_zero(to: str) -> None:
    rng = np.random.default_rng(1)
    element = np.dtype(np.float16 if to == "float16" else ml_dtypes.bfloat16)
    exact = all_floats16(to).astype(np.float32)
    near = rng.normal(size=1 << 17) * np.exp2(rng.integers(-26, 18, 1 << 17))
    with np.errstate(invalid="ignore"):
        neighbours = [np.nextafter(exact, np.float32(end)) for end in (np.inf, 0)]
    x = np.concatenate([
        exact,
        *neighbours,
        rng.integers(0, 1 << 32, 1 << 16, dtype=np.uint32).view(np.float32),
        near.astype(np.float32),
    ])  # fmt: skip
    out = np.zeros(x.size, element)
    cut_kernel[(x.size // BLOCK,)](x, out, TO=getattr(tl, to), BLOCK=BLOCK)
    with np.errstate(over="ignore", invalid="ignore"):
        expected = x.astype(element)
        further = np.abs(expected.astype(np.float64)) > np.abs(x.astype(np.float64))
    expected = np.where(further, expected.view(np.uint16) - 1, expected.view(np.uint16))
    expected = expected.astype(np.uint16).view(element)
    np.testing.assert_array_equal(out.astype(np.float32), expected.astype(np.float32))
