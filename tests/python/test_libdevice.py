"""The functions of libdevice against SciPy in float64, Python's exact fractions and NumPy's integers."""

from __future__ import annotations

import functools
import math
from fractions import Fraction

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl
from triton_metal.libdevice import functions

special = pytest.importorskip("scipy.special")

SUBNORMALS = pytest.mark.own_check(reason="it wants subnormal numbers, which a device may flush")
LARGEST = float(np.finfo(np.float32).max)
SPECIAL = np.array(
    [0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 0.5, -0.5, 2, -2, 3, -3.5, 1e-45, -1e-45, 1e-38, LARGEST, -LARGEST],
    np.float32,
)  # fmt: skip


def sinpi(x):
    """sin(pi * x); the distance from the nearest half is exact."""
    halves = np.rint(2 * x)
    rest = np.pi * (x - halves / 2)
    quadrant = np.mod(halves, 4)
    sine = np.where(quadrant % 2 == 1, np.cos(rest), np.sin(rest))
    return np.where(quadrant >= 2, -sine, sine)


def cospi(x):
    """cos(pi * x)."""
    return sinpi(0.5 - np.abs(x)) if np.max(np.abs(x)) < 1e6 else np.cos(np.pi * x)


def kernel_of(name: str, count: int):
    """A kernel that applies a function to the elements of ``count`` arrays."""
    function = getattr(tl.extra.libdevice, name)

    @triton.jit
    def one(x, out, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + i, function(tl.load(x + i, i < n)), i < n)

    @triton.jit
    def two(x, y, out, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + i, function(tl.load(x + i, i < n), tl.load(y + i, i < n)), i < n)

    @triton.jit
    def three(x, y, z, out, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        a, b = tl.load(x + i, i < n), tl.load(y + i, i < n)
        tl.store(out + i, function(a, b, tl.load(z + i, i < n)), i < n)

    @triton.jit
    def four(x, y, z, w, out, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        a, b = tl.load(x + i, i < n), tl.load(y + i, i < n)
        c, d = tl.load(z + i, i < n), tl.load(w + i, i < n)
        tl.store(out + i, function(a, b, c, d), i < n)

    return (one, two, three, four)[count - 1]


@functools.cache
def cached_kernel(name: str, count: int):
    return kernel_of(name, count)


def apply(name: str, *arrays, dtype=np.float32):
    out = np.empty(arrays[0].shape, dtype)
    blocks = triton.cdiv(out.size, 1024)
    cached_kernel(name, len(arrays))[(blocks,)](*arrays, out, out.size, BLOCK=1024)
    return out


def uniform(low, high, count=4096, seed=0):
    return np.random.default_rng(seed).uniform(low, high, count).astype(np.float32)


def all_exponents(high=128, count=4096, seed=0):
    """Numbers of both signs whose exponents are uniform from that of the least subnormal on."""
    random = np.random.default_rng(seed)
    powers = np.exp2(random.uniform(-149, high, count))
    return (random.choice([-1, 1], count) * np.minimum(powers, LARGEST)).astype(np.float32)


def errors(got, want):
    """The distance in units of the last place of the result; 0 where both are the same special value."""
    with np.errstate(all="ignore"):
        rounded = want.astype(np.float32)
        unit = np.spacing(np.where(np.isfinite(rounded), np.abs(rounded), np.float32(LARGEST)))
        distance = np.abs(got.astype(np.float64) - want) / np.maximum(unit, 2.0**-149)
    same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    return np.where(same & ~np.isfinite(rounded), 0, np.nan_to_num(distance, nan=np.inf))


# CUDA's documentation gives these bounds, but for erf, whose bound here is 3.
CASES = {
    "erfc": (special.erfc, 4, [uniform(-5, 10.5), all_exponents(4)]),
    "erfcx": (special.erfcx, 4, [uniform(-9.3, 30), np.abs(all_exponents())]),
    "erfinv": (special.erfinv, 3, [uniform(-1, 1), all_exponents(0)]),
    "erfcinv": (special.erfcinv, 5, [uniform(0, 2), np.abs(all_exponents(0))]),
    "normcdf": (special.ndtr, 5, [uniform(-14.5, 6), all_exponents(3)]),
    "normcdfinv": (special.ndtri, 5, [uniform(0, 1), np.abs(all_exponents(0))]),
    "lgamma": (special.gammaln, 6, [uniform(0, 50), uniform(0.4, 3), uniform(-2.2, 0), uniform(-200, -11.1), np.abs(all_exponents())]),
    "tgamma": (special.gamma, 5, [uniform(0, 35), uniform(-41, 0), all_exponents(0)]),
    "cyl_bessel_i0": (special.i0, 6, [uniform(-91, 91), uniform(-8, 8), all_exponents(0)]),
    "cyl_bessel_i1": (special.i1, 6, [uniform(-91, 91), uniform(-8, 8), all_exponents(0)]),
    "j0": (special.j0, 9, [uniform(-8, 8), all_exponents(0)]),
    "j1": (special.j1, 9, [uniform(-8, 8), all_exponents(0)]),
    "y0": (special.y0, 9, [uniform(0, 8), np.abs(all_exponents(0))]),
    "y1": (special.y1, 9, [uniform(0, 8), np.abs(all_exponents(0))]),
    "cbrt": (np.cbrt, 1, [all_exponents()]),
    "rcbrt": (lambda x: 1 / np.cbrt(x), 1, [all_exponents()]),
    "exp10": (lambda x: 10**x, 2, [uniform(-45, 38.5), all_exponents(2)]),
    "sinpi": (lambda x: np.where(np.abs(x) == 0, x, sinpi(x)), 2, [uniform(-100, 100), all_exponents(0)]),
    "cospi": (cospi, 2, [uniform(-100, 100), all_exponents(0)]),
    "rsqrt_rn": (lambda x: 1 / np.sqrt(x), 0.501, [np.abs(all_exponents())]),
    "erf": (special.erf, 3, [uniform(-5, 5)]),
    "expm1": (np.expm1, 4, [uniform(-20, 80), all_exponents(3)]),
    "log1p": (np.log1p, 4, [uniform(-0.99, 100), np.abs(all_exponents(100))]),
}  # fmt: skip


@SUBNORMALS
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.not_as_graph("MLX's erf has few digits next to 0"))
        if name == "erf"
        else name
        for name in CASES
    ],
)
def test_errors(name):
    function, bound, inputs = CASES[name]
    for x in inputs:
        with np.errstate(all="ignore"):
            want = function(x.astype(np.float64))
        error = errors(apply(name, x), want)
        worst = int(np.argmax(error))
        assert error[worst] <= bound, (x[worst], want[worst])


@pytest.mark.parametrize("name", ["j0", "j1", "y0", "y1"])
def test_far_bessel_functions(name):
    x = uniform(8, 1000)
    got = apply(name, x).astype(np.float64)
    assert np.max(np.abs(got - getattr(special, name)(x.astype(np.float64)))) < 2e-7


@pytest.mark.parametrize("order", [0, 1, 2, 5, 20, 128])
def test_bessel_functions_of_an_order(order):
    x = uniform(0.6 * order + 0.1, 150)
    orders = np.full(x.shape, order, np.int32)
    wide = x.astype(np.float64)
    assert np.max(np.abs(apply("jn", orders, x) - special.jv(order, wide))) < 2.2e-6
    want = special.yv(order, wide)
    assert np.max(np.abs(apply("yn", orders, x) - want) / np.maximum(1, np.abs(want))) < 5e-6


SPECIAL_RESULTS = {
    "erfc": (special.erfc, None),
    "erfcx": (special.erfcx, None),
    "erfinv": (lambda x: np.copysign(special.erfinv(x), x), None),
    "erfcinv": (special.erfcinv, None),
    "normcdf": (special.ndtr, None),
    "normcdfinv": (special.ndtri, None),
    "cyl_bessel_i0": (lambda x: np.where(np.isinf(x), np.inf, special.i0(x)), None),
    "cyl_bessel_i1": (lambda x: np.where(np.isinf(x) | (x == 0), x, special.i1(x)), None),
    "cbrt": (np.cbrt, None),
    "rcbrt": (lambda x: 1 / np.cbrt(x), None),
    "sinpi": (None, [0, -0.0, 0, -0.0, np.nan, np.nan, np.nan, 1, -1, 0, -0.0, 0, 1]),
    "cospi": (None, [1, 1, -1, -1, np.nan, np.nan, np.nan, 0, 0, 1, 1, -1, 0]),
    "lgamma": (None, [np.inf, np.inf, 0, np.inf, np.inf, np.inf, np.nan]),
    "tgamma": (None, [np.inf, -np.inf, 1, np.nan, np.inf, np.nan, np.nan]),
    "j0": (None, [1, 1, 0.76519769, 0.76519769, 0, 0, np.nan]),
    "y0": (None, [-np.inf, -np.inf, 0.08825696, np.nan, 0, np.nan, np.nan]),
}  # fmt: skip


@SUBNORMALS
@pytest.mark.parametrize("name", SPECIAL_RESULTS)
def test_special_values(name):
    function, expected = SPECIAL_RESULTS[name]
    got = apply(name, SPECIAL)
    with np.errstate(all="ignore"):
        want = np.array(expected if function is None else function(SPECIAL.astype(np.float64)))
    got = got[: want.size]
    special_wanted = ~np.isfinite(want) | (want == 0)
    np.testing.assert_array_equal(got[special_wanted], want[special_wanted].astype(np.float32))
    zero = want == 0
    if name not in ("erfcx", "erfc", "j0", "y0", "cospi", "lgamma", "erfcinv", "normcdfinv"):
        np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(want[zero]))
    np.testing.assert_allclose(got, want.astype(np.float32), rtol=1e-6, atol=2e-45)


@SUBNORMALS
@pytest.mark.parametrize("name", ["hypot", "norm3d", "norm4d"])
def test_norms(name):
    count = {"hypot": 2, "norm3d": 3, "norm4d": 4}[name]
    near = uniform(-1e3, 1e3, seed=9)
    for arrays in (
        [all_exponents(126, seed=k) for k in range(count)],
        [near * uniform(-2, 2, seed=k) for k in range(count)],
    ):
        squares = sum(np.longdouble(array) ** 2 for array in arrays)
        assert np.max(errors(apply(name, *arrays), np.float64(np.sqrt(squares)))) <= 1
        assert np.max(errors(apply("r" + name, *arrays), np.float64(1 / np.sqrt(squares)))) <= 2
    infinite = [SPECIAL, *[np.roll(SPECIAL, k) for k in range(1, count)]]
    got = apply(name, *infinite)
    some = np.any(np.isinf(infinite), axis=0)
    assert np.all(np.isinf(got[some]))
    none = np.any(np.isnan(infinite), axis=0) & ~some
    assert np.all(np.isnan(got[none]))


# --- Rounding -----------------------------------------------------------------------------------------


def rounded(value: Fraction, mode: str) -> float:
    """A fraction, rounded to a float in a direction."""
    if mode == "rz":
        mode = "rd" if value >= 0 else "ru"
    nearest = (
        np.float32(float(value))
        if abs(value) < 2**200
        else np.float32(math.copysign(np.inf, value))
    )
    if np.isinf(nearest):
        inward = np.float32(math.copysign(LARGEST, nearest))
        outward = (nearest > 0) == (mode == "ru")
        return float(nearest if outward and abs(value) > LARGEST else inward)
    exact = Fraction(float(nearest))
    if mode == "rd" and exact > value:
        nearest = np.nextafter(nearest, np.float32(-np.inf))
    if mode == "ru" and exact < value:
        nearest = np.nextafter(nearest, np.float32(np.inf))
    return float(nearest)


OPERATIONS = {
    "add": (2, lambda a, b: a + b),
    "sub": (2, lambda a, b: a - b),
    "mul": (2, lambda a, b: a * b),
    "div": (2, lambda a, b: a / b),
    "fma": (3, lambda a, b, c: a * b + c),
    "rcp": (1, lambda a: 1 / a),
}


@SUBNORMALS
@pytest.mark.parametrize("mode", ["rz", "rd", "ru"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_directed_rounding(name, mode):
    count, function = OPERATIONS[name]
    near = uniform(-2, 2, 600)
    wide = [all_exponents(128, 600, seed=k) for k in range(count)]
    tight = [near, *[uniform(-2, 2, 600, seed=k) for k in range(1, count)]]
    if name in ("add", "sub", "fma"):
        # What nearly cancels.
        tight[-1] = -function(*map(np.float64, tight[:-1]), 0).astype(np.float32)
    for arrays in (wide, tight):
        arrays = [np.ascontiguousarray(array) for array in arrays]
        got = apply(f"{name}_{mode}", *arrays)
        for index in range(got.size):
            values = [Fraction(float(array[index])) for array in arrays]
            if values[-1] == 0 and name in ("div", "rcp"):
                continue
            want = rounded(function(*values), mode)
            assert got[index] == want, [array[index] for array in arrays]


def test_signs_of_exact_zeros():
    x = np.array([1, -1, 0, -0.0, 0, 1.5], np.float32)
    y = np.array([-1, 1, -0.0, 0, 0, -1.5], np.float32)
    assert np.signbit(apply("add_rd", x, y)).tolist() == [True, True, True, True, False, True]
    assert not np.any(np.signbit(apply("add_ru", x, y)))


@SUBNORMALS
@pytest.mark.parametrize("mode", ["rz", "rd", "ru"])
def test_square_roots(mode):
    x = np.abs(all_exponents(128, 600))
    got = apply(f"sqrt_{mode}", x)
    for value, root in zip(x, got, strict=True):
        below, above = root, np.nextafter(root, np.float32(np.inf))
        if mode == "ru":
            below, above = np.nextafter(root, np.float32(-np.inf)), root
            assert (
                Fraction(float(below)) ** 2 < Fraction(float(value)) <= Fraction(float(above)) ** 2
            )
        else:
            assert (
                Fraction(float(below)) ** 2 <= Fraction(float(value)) < Fraction(float(above)) ** 2
            )


CONVERSIONS = {"int": np.int32, "uint": np.uint32, "ll": np.int64, "ull": np.uint64}


@pytest.mark.parametrize("mode", ["rn", "rz", "rd", "ru"])
@pytest.mark.parametrize("source", CONVERSIONS)
def test_conversions_to_floats(source, mode):
    dtype = CONVERSIONS[source]
    info = np.iinfo(dtype)
    random = np.random.default_rng(3)
    x = random.integers(info.min, info.max, 500, dtype, endpoint=True)
    x = np.concatenate([x, x >> dtype(info.bits // 2), np.array([0, 1, info.min, info.max], dtype)])
    got = apply(f"{source}2float_{mode}", x)
    if mode == "rn":
        np.testing.assert_array_equal(got, x.astype(np.float32))
    else:
        assert got.tolist() == [rounded(Fraction(int(value)), mode) for value in x]


@pytest.mark.parametrize("target", CONVERSIONS)
def test_conversions_from_floats(target):
    dtype = CONVERSIONS[target]
    signed = {"uint": np.int32, "ull": np.int64}.get(target, dtype)
    x = np.concatenate([uniform(0 if target[0] == "u" else -1e6, 1e6), np.arange(0, 8, 0.5)])
    x = x.astype(np.float32)
    for mode, function in {"rn": np.rint, "rz": np.trunc, "rd": np.floor, "ru": np.ceil}.items():
        got = apply(f"float2{target}_{mode}", x, dtype=signed)
        np.testing.assert_array_equal(got.view(dtype), function(x).astype(dtype), mode)


# --- Integers and bits --------------------------------------------------------------------------------


def integers(dtype, seed=0):
    info = np.iinfo(dtype)
    random = np.random.default_rng(seed)
    edges = np.array([0, 1, info.max, info.min, info.max - 1, 2, 5], dtype)
    whole = random.integers(info.min, info.max, 300, dtype, endpoint=True)
    return random.permutation(
        np.concatenate([whole, whole >> dtype(info.bits // 2), np.resize(edges, 100)])
    )


def bits_of(value: int, width: int) -> str:
    return format(value % (1 << width), f"0{width}b")


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_bits(dtype):
    x, width = integers(dtype), np.iinfo(dtype).bits
    texts = [bits_of(int(value), width) for value in x]
    assert apply("popc", x, dtype=np.int32).tolist() == [text.count("1") for text in texts]
    leading = [len(text) - len(text.lstrip("0")) for text in texts]
    assert apply("clz", x, dtype=np.int32).tolist() == leading
    first = [0 if "1" not in text else text[::-1].index("1") + 1 for text in texts]
    assert apply("ffs", x, dtype=np.int32).tolist() == first
    reversed_bits = np.array([int(text[::-1], 2) for text in texts], np.uint64)
    got = apply("brev", x, dtype=dtype).view(f"u{width // 8}")
    np.testing.assert_array_equal(got, reversed_bits.astype(got.dtype))


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, np.uint64])
def test_integer_arithmetic(dtype):
    x, y = integers(dtype), integers(dtype, 1)
    width = np.iinfo(dtype).bits
    pairs = [(int(a), int(b)) for a, b in zip(x, y, strict=True)]
    high = np.array([(a * b >> width) % (1 << width) for a, b in pairs], f"u{width // 8}")
    np.testing.assert_array_equal(apply("mulhi", x, y, dtype=dtype), high.view(dtype))
    if width == 64:
        return
    assert apply("hadd", x, y, dtype=dtype).tolist() == [a + b >> 1 for a, b in pairs]
    assert apply("rhadd", x, y, dtype=dtype).tolist() == [a + b + 1 >> 1 for a, b in pairs]
    z = integers(np.uint32, 2)
    sums = [(abs(a - b) + int(c)) % 2**32 for (a, b), c in zip(pairs, z, strict=True)]
    assert apply("sad", x, y, z, dtype=dtype).view(np.uint32).tolist() == sums
    low = [
        ((a + (1 << 23)) % (1 << 24) - (1 << 23)) if dtype == np.int32 else a % (1 << 24)
        for a, _ in pairs
    ]
    other = [
        ((b + (1 << 23)) % (1 << 24) - (1 << 23)) if dtype == np.int32 else b % (1 << 24)
        for _, b in pairs
    ]
    products = [a * b % 2**32 for a, b in zip(low, other, strict=True)]
    assert apply("mul24", x, y, dtype=dtype).view(np.uint32).tolist() == products


def test_byte_perm():
    x, y, s = (integers(np.int32, seed) for seed in range(3))
    expected = []
    for a, b, selector in zip(x.view(np.uint32), y.view(np.uint32), s.view(np.uint32), strict=True):
        data = [*int(a).to_bytes(4, "little"), *int(b).to_bytes(4, "little")]
        result = 0
        for k in range(4):
            result |= data[int(selector) >> 4 * k & 7] << 8 * k  # bit 3 has no meaning
        expected.append(result)
    assert apply("byte_perm", x, y, s, dtype=np.int32).view(np.uint32).tolist() == expected


# --- Floats and their parts ---------------------------------------------------------------------------


@SUBNORMALS
def test_parts_of_floats():
    x = np.concatenate([all_exponents(), SPECIAL])
    y = np.roll(x[::-1], 7)
    n = np.random.default_rng(5).integers(-300, 300, x.size).astype(np.int32)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(apply("nextafter", x, y), np.nextafter(x, y))
        for name in ("ldexp", "scalbn"):
            np.testing.assert_array_equal(apply(name, x, n), np.ldexp(x, n))
        np.testing.assert_array_equal(apply("copysign", x, y), np.copysign(x, y))
        want = [
            math.remainder(a, b) if math.isfinite(a) and b != 0 and b == b else np.nan
            for a, b in zip(x.tolist(), y.tolist(), strict=True)
        ]
        np.testing.assert_array_equal(apply("remainder", x, y), np.array(want, np.float32))
        np.testing.assert_array_equal(apply("fmod", x, y), np.fmod(x, y))
        want = np.where(np.isnan(x) | np.isnan(y), np.nan, np.maximum(np.where(x > y, x - y, 0), 0))
        np.testing.assert_array_equal(apply("fdim", x, y), want.astype(np.float32))
        exponent = np.floor(np.log2(np.abs(x.astype(np.float64))))
    np.testing.assert_array_equal(apply("logb", x), exponent.astype(np.float32))
    finite = np.isfinite(x) & (x != 0)
    got = apply("ilogb", x, dtype=np.int32)
    np.testing.assert_array_equal(got[finite], exponent[finite].astype(np.int32))
    for name, function in {
        "isnan": np.isnan,
        "isinf": np.isinf,
        "finitef": np.isfinite,
        "signbit": np.signbit,
    }.items():
        np.testing.assert_array_equal(apply(name, x, dtype=np.int32) != 0, function(x), name)
    want = np.where(np.isnan(x), 0, np.clip(x, 0, 1))
    np.testing.assert_array_equal(apply("saturatef", x), want.astype(np.float32))
    np.testing.assert_array_equal(apply("float_as_int", x, dtype=np.int32), x.view(np.int32))
    for name, function in {
        "rint": np.rint,
        "nearbyint": np.rint,
        "trunc": np.trunc,
        "floor": np.floor,
    }.items():
        np.testing.assert_array_equal(apply(name, x), function(x), name)


def test_powers_of_integers():
    x, n = uniform(-3, 3), np.random.default_rng(6).integers(-20, 20, 4096).astype(np.int32)
    want = x.astype(np.float64) ** n
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(apply("pow", x, n), want.astype(np.float32), rtol=2e-6)


# --- Types and refusals -------------------------------------------------------------------------------


def test_shapes_and_types():
    @triton.jit
    def kernel(x, out, ROWS: tl.constexpr):
        i, j = tl.arange(0, ROWS)[:, None], tl.arange(0, 8)[None, :]
        row = tl.load(x + tl.arange(0, 8))[None, :]
        tl.store(
            out + i * 8 + j,
            tl.extra.libdevice.hypot(row, i.to(tl.float32)) + tl.extra.libdevice.cbrt(8.0),
        )

    x = np.arange(8, dtype=np.float32)
    out = np.zeros((4, 8), np.float32)
    kernel[(1,)](x, out, ROWS=4)
    np.testing.assert_allclose(out, np.hypot(x[None, :], np.arange(4)[:, None]) + 2, rtol=1e-6)


def test_wrong_types_are_refused():
    with pytest.raises(triton.CompileError, match=r"erfinv takes \(fp32\), \(fp64\), not \(fp16\)"):
        apply("erfinv", np.zeros(4, np.float16))


def test_the_table_names_all_functions():
    assert len(functions()) >= 197
    assert all(hasattr(tl.extra.libdevice, name) for name in functions())


@triton.jit
def finite_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    bad = tl.extra.libdevice.isnan(x) | tl.extra.libdevice.isinf(x)
    tl.static_assert(bad.dtype == tl.int1)
    tl.static_assert(tl.extra.libdevice.finitef(x).dtype == tl.int1)
    tl.static_assert(tl.extra.libdevice.isfinited(x.to(tl.float64)).dtype == tl.int1)
    tl.static_assert(tl.extra.libdevice.signbit(x).dtype == tl.int32)
    tl.store(
        out_ptr + i,
        tl.where(~bad & tl.extra.libdevice.finitef(x), x, 0.0),
        mask=not tl.extra.libdevice.isnan(x),
    )


def test_tests_are_truth_values():
    x = np.array([1, np.nan, -np.inf, np.inf, -0.0, 5, np.nan, -3], np.float32)
    out = np.full(8, 9, np.float32)
    finite_kernel[(1,)](x, out, BLOCK=8)
    assert out.tolist() == [1, 9, 0, 0, 0, 5, 9, -3]
