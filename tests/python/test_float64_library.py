"""libdevice's functions of float64: values against mpmath, exact ones against fractions, NumPy and the C library."""

from __future__ import annotations

import ctypes
import ctypes.util
import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from float64_check import SPECIAL, operands
from test_libdevice import apply

# MLX has float64 on its CPU alone, and PyTorch has none on "mps".
pytestmark = pytest.mark.own_route

mp = mpmath.mp.clone()
mp.prec = 160
mpf = mp.mpf

MODES = ("rz", "rd", "ru")
long_functions = pytest.mark.own_check("the functions take minutes to compile with that check")


def uniform(low: float, high: float, count: int = 96, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).uniform(low, high, count)


def exponents(
    low: float, high: float, count: int = 96, signed: bool = True, seed: int = 2
) -> np.ndarray:
    """Numbers whose exponents are uniform, of both signs."""
    rng = np.random.default_rng(seed)
    x = np.exp2(rng.uniform(low, high, count)) * rng.uniform(1, 1.5, count)
    return x * rng.choice([-1, 1], count) if signed else x


def f64(name: str, *arrays: np.ndarray) -> np.ndarray:
    return apply(name, *arrays, dtype=np.float64)


# --- Functions that are not exact ---------------------------------------------------------------------


def power(x: Any, y: Any) -> Any:
    log = mp.log(abs(x), 2) * y
    value = mp.inf if log > 1025 else mpf(0) if log < -1200 else mp.power(abs(x), y)
    return -value if x < 0 and int(y) % 2 else value


def erfcx(x: Any) -> Any:
    if x < 40:
        return mp.exp(x * x) * mp.erfc(x)
    terms, term = mpf(0), mpf(1)
    for k in range(1, 12):
        terms, term = terms + term, -term * (2 * k - 1) / (2 * x * x)
    return terms / (x * mp.sqrt(mp.pi))


def inverse_erfc(x: Any) -> Any:
    if x > 1:
        return -inverse_erfc(2 - x)
    if x > 0.5:
        return mp.erfinv(1 - x)
    # Newton's steps, of third order.
    w = -mp.log(x * (2 - x))
    y = mp.sqrt(w - mp.log(mp.pi * w) / 2) if w > 3 else mp.erfinv(1 - x)
    for _ in range(8):
        step = (mp.erfc(y) - x) / (2 / mp.sqrt(mp.pi) * mp.exp(-y * y))
        y += step / (1 + y * step)
    return y


def inverse_erf(x: Any) -> Any:
    return mp.sign(x) * inverse_erfc(1 - abs(x)) if abs(x) > 0.5 else mp.erfinv(x)


def log_gamma(x: Any) -> Any:
    return mp.loggamma(x) if x > 0 else mp.log(abs(mp.gamma(x)))


def norm(*values: Any) -> Any:
    return mp.sqrt(sum(value * value for value in values))


NEAR_ONE = 1 + exponents(-52, -2)
BELOW_ONE = 1 - exponents(-52, -1, signed=False)
WIDE = exponents(-1074, 1023)
INSIDE = np.concatenate([uniform(-1, 1), exponents(-1074, -1), BELOW_ONE, -BELOW_ONE])
SCALE = exponents(-1060, 1018)


def beside(x: float) -> np.ndarray:
    """Numbers around a zero of a function."""
    return x + np.spacing(x) * np.arange(-6, 7)


# Each: the function, the largest error in units of the last place, and arguments.
CASES: dict[str, tuple[Callable[..., Any], float, Sequence[np.ndarray]]] = {
    "asin": (mp.asin, 0.55, [INSIDE]),
    "acos": (mp.acos, 0.55, [INSIDE]),
    "atan": (mp.atan, 0.55, [np.concatenate([WIDE, uniform(-9, 9)])]),
    "atan2": (mp.atan2, 0.55, [SCALE, SCALE * exponents(-60, 3, seed=3)]),
    "asinh": (mp.asinh, 0.55, [np.concatenate([WIDE, uniform(-9, 9)])]),
    "acosh": (mp.acosh, 0.55, [np.concatenate([uniform(1, 9), exponents(0, 1023, signed=False), abs(NEAR_ONE - 1) + 1])]),
    "atanh": (mp.atanh, 0.55, [INSIDE]),
    "cbrt": (lambda x: mp.sign(x) * mp.cbrt(abs(x)), 0.55, [WIDE]),
    "rcbrt": (lambda x: mp.sign(x) / mp.cbrt(abs(x)), 0.55, [WIDE]),
    "exp10": (lambda x: mp.power(10, x), 0.55, [np.concatenate([uniform(-324, 309), exponents(-60, 2)])]),
    "sinpi": (mp.sinpi, 0.55, [np.concatenate([exponents(-1060, 50), uniform(-4, 4)])]),
    "cospi": (mp.cospi, 0.55, [np.concatenate([exponents(-1060, 50), uniform(-4, 4)])]),
    "hypot": (norm, 0.55, [SCALE, SCALE * exponents(-4, 3, seed=3)]),
    "rhypot": (lambda *x: 1 / norm(*x), 0.55, [SCALE, SCALE * exponents(-4, 3, seed=3)]),
    "norm3d": (norm, 0.55, [SCALE * exponents(-4, 3, seed=k) for k in range(3)]),
    "norm4d": (norm, 0.55, [SCALE * exponents(-4, 3, seed=k) for k in range(4)]),
    "rnorm3d": (lambda *x: 1 / norm(*x), 0.55, [SCALE * exponents(-4, 3, seed=k) for k in range(3)]),
    "rnorm4d": (lambda *x: 1 / norm(*x), 0.55, [SCALE * exponents(-4, 3, seed=k) for k in range(4)]),
    "erfc": (mp.erfc, 0.6, [np.concatenate([uniform(-6, 28, 400), exponents(-1074, 0)])]),
    "erfcx": (erfcx, 0.6, [np.concatenate([uniform(-26.6, 30, 400), exponents(-1074, 0), exponents(5, 1020, signed=False)])]),
    "erfinv": (inverse_erf, 0.6, [INSIDE]),
    "erfcinv": (inverse_erfc, 0.6, [np.concatenate([uniform(0, 2), exponents(-1074, -1, signed=False), NEAR_ONE])]),
    "normcdf": (lambda x: mp.erfc(-x / mp.sqrt(2)) / 2, 0.6, [np.concatenate([uniform(-38.4, 8, 400), exponents(-1074, 0)])]),
    "normcdfinv": (
        lambda p: -mp.sqrt(2) * inverse_erfc(2 * p), 0.6,
        [np.concatenate([uniform(0, 1), exponents(-1074, -1, signed=False), BELOW_ONE])],
    ),
    "tgamma": (mp.gamma, 0.6, [np.concatenate([uniform(-182, 171.6, 400), uniform(-6, 6, 200), exponents(-1023, 2)])]),
    "lgamma": (log_gamma, 0.6, [np.concatenate([uniform(0, 200), uniform(0, 3), uniform(-2.2, 0), exponents(-1074, 1014, signed=False), NEAR_ONE, NEAR_ONE + 1])]),
    "cyl_bessel_i0": (lambda x: mp.besseli(0, x), 0.6, [np.concatenate([uniform(-20, 20), uniform(-713, 713), exponents(-1074, 3)])]),
    "cyl_bessel_i1": (lambda x: mp.besseli(1, x), 0.6, [np.concatenate([uniform(-20, 20), uniform(-713, 713), exponents(-1074, 3)])]),
    "j0": (lambda x: mp.besselj(0, x), 0.7, [np.concatenate([uniform(-8, 8), exponents(-1022, 2), beside(2.404825557695773), beside(5.520078110286311)])]),
    "j1": (lambda x: mp.besselj(1, x), 0.7, [np.concatenate([uniform(-8, 8), exponents(-1022, 2), beside(3.8317059702075125), beside(7.015586669815619)])]),
    "y0": (lambda x: mp.bessely(0, x), 0.7, [np.concatenate([uniform(0, 8), exponents(-1022, 2, signed=False), beside(0.8935769662791676), beside(3.957678419314858)])]),
    "y1": (lambda x: mp.bessely(1, x), 0.7, [np.concatenate([uniform(0, 8), exponents(-1022, 2, signed=False), beside(2.197141326031017), beside(5.429681040794135)])]),
}  # fmt: skip


def errors(got: np.ndarray, exact: Sequence[Any]) -> list[float]:
    """Units in the last place of the exact numbers."""
    result = []
    for value, want in zip(got.tolist(), exact, strict=True):
        if mp.isinf(want) or abs(want) >= mpf(2) ** 1024 - mpf(2) ** 970:
            result.append(0.0 if math.isinf(value) and (value > 0) == (want > 0) else math.inf)
        elif not math.isfinite(value):
            result.append(math.inf)
        else:
            exponent = math.frexp(float(want))[1] - 1 if want else -1022
            result.append(float(abs(mpf(value) - want) / mpf(2) ** (max(exponent, -1022) - 52)))
    return result


def check(name: str, function: Callable[..., Any], bound: float, *arrays: np.ndarray) -> None:
    got = f64(name, *arrays)
    exact = [
        function(*(mpf(v) if isinstance(v, float) else v for v in values))
        for values in zip(*(array.tolist() for array in arrays), strict=True)
    ]
    error = errors(got, exact)
    worst = int(np.argmax(error))
    assert error[worst] <= bound, [float(array[worst]).hex() for array in arrays]


@long_functions
@pytest.mark.parametrize("name", CASES)
def test_errors(name: str) -> None:
    function, bound, arrays = CASES[name]
    check(name, function, bound, *arrays)


def test_a_wrong_unit_is_seen() -> None:
    exact = [mp.sin(1), mp.exp(1)]
    got = np.array([math.sin(1), math.exp(1)])
    assert max(errors(got, exact)) < 1
    assert max(errors(np.nextafter(got, 9), exact)) > 0.6
    assert errors(np.array([math.inf, math.nan]), exact) == [math.inf, math.inf]


@long_functions
def test_powers() -> None:
    x = np.abs(exponents(-1074, 1023, 400))
    check("pow", power, 0.55, x, uniform(-1074, 1024, 400) / np.log2(x))
    near = NEAR_ONE
    check("pow", power, 0.55, near, uniform(-1074, 1024) / np.log2(near))
    check("pow", power, 0.55, uniform(-9, 9), np.round(uniform(-99, 99)))
    check("pow", power, 0.55, exponents(-3, 3), np.round(uniform(-300, 300)).astype(np.int32))


@long_functions
@pytest.mark.parametrize("name", ["j0", "j1", "y0", "y1"])
def test_far_bessel_functions(name: str) -> None:
    x = np.concatenate([uniform(8, 1000), exponents(3, 60, signed=False)])
    function, order = (mp.besselj if name[0] == "j" else mp.bessely), int(name[1])
    exact = [function(order, mpf(v)) for v in x.tolist()]
    got = f64(name, x)
    assert max(abs(mpf(g) - v) for g, v in zip(got.tolist(), exact, strict=True)) < 5e-17


@long_functions
@pytest.mark.parametrize("name", ["jn", "yn"])
def test_bessel_functions_of_an_order(name: str) -> None:
    orders = np.random.default_rng(5).integers(0, 140, 200).astype(np.int32)
    x = uniform(0.1, 200, 200)
    got = f64(name, orders, x)
    for order, value, result in zip(orders.tolist(), x.tolist(), got.tolist(), strict=True):
        exact = (mp.besselj if name == "jn" else mp.bessely)(order, mpf(value))
        if abs(exact) < mpf(2) ** 1000:
            assert abs(result - exact) <= 2e-16 * max(1, abs(exact)), (order, value)
        else:
            assert abs(result / exact - 1) < 1e-15 or math.isinf(result), (order, value)


# --- Special values -----------------------------------------------------------------------------------


def c_function(name: str) -> Callable[..., float]:
    function = getattr(ctypes.CDLL(ctypes.util.find_library("m")), name)
    function.restype = ctypes.c_double
    return function


# C libraries differ for NaNs that signal.
SIGNALS = np.isnan(SPECIAL) & (SPECIAL.view(np.uint64) >> np.uint64(51) & np.uint64(1) == 0)
QUIET = SPECIAL[~SIGNALS]
X, Y = (array.ravel() for array in np.meshgrid(QUIET, QUIET))
ONE = "asin acos atan asinh acosh atanh cbrt erfc tgamma lgamma j0 j1 y0 y1 logb exp10".split()
TWO = "pow atan2 hypot fdim nextafter remainder".split()


@long_functions
@pytest.mark.parametrize("name", [*ONE, *TWO])
def test_special_operands(name: str) -> None:
    """Infinities, NaNs, zeros with their signs, and all others nearly, as the C library has them."""
    arrays = [QUIET] if name in ONE else [X, Y]
    function = c_function(name)
    want = np.array(
        [function(*map(ctypes.c_double, v)) for v in zip(*(a.tolist() for a in arrays), strict=True)]
    )  # fmt: skip
    if name in ("y0", "y1"):
        # Of negative numbers, where C libraries differ.
        want = np.where(QUIET < 0, np.nan, want)
    if name == "tgamma":
        want = np.where(QUIET == -np.inf, np.nan, want)
    got = f64(name, *arrays)
    finite = np.isfinite(want)
    np.testing.assert_array_equal(got[~finite], want[~finite])
    if name != "remainder":
        np.testing.assert_array_equal(np.signbit(got[want == 0]), np.signbit(want[want == 0]))
    if name in ("fdim", "nextafter", "remainder", "logb"):
        np.testing.assert_array_equal(got, want)
    else:
        large = finite & ((np.abs(QUIET) < 1e8) if name[0] in "jy" else finite)
        np.testing.assert_allclose(got[large], want[large], rtol=4e-15, atol=1e-322)


LIMITS = {
    "rcbrt": ([0.0, -0.0, np.inf, -np.inf, np.nan, 8.0], [np.inf, -np.inf, 0.0, -0.0, np.nan, 0.5]),
    "sinpi": ([-0.0, 3.0, -2.0, 1e300, np.inf, 0.5, -1.5], [-0.0, 0.0, -0.0, 0.0, np.nan, 1, 1]),
    "cospi": ([0.0, 3.0, 0.5, -1.5, 1e300, -np.inf], [1, -1, 0.0, 0.0, 1, np.nan]),
    "erfcx": ([np.inf, -np.inf, np.nan, 0.0, -30.0, 1e308], [0.0, np.inf, np.nan, 1, np.inf, 5.641895835477563e-309]),
    "erfinv": ([0.0, -0.0, 1, -1, 1.5, np.nan], [0.0, -0.0, np.inf, -np.inf, np.nan, np.nan]),
    "erfcinv": ([0.0, 2, 1, -1, 3, np.nan], [np.inf, -np.inf, 0.0, np.nan, np.nan, np.nan]),
    "normcdf": ([-np.inf, np.inf, 0.0, np.nan, -40.0], [0.0, 1, 0.5, np.nan, 0.0]),
    "normcdfinv": ([0.0, 1, 0.5, -1, 2, np.nan], [-np.inf, np.inf, 0.0, np.nan, np.nan, np.nan]),
    "cyl_bessel_i0": ([0.0, np.inf, -np.inf, np.nan, 800.0], [1, np.inf, np.inf, np.nan, np.inf]),
    "cyl_bessel_i1": ([-0.0, np.inf, -np.inf, np.nan, -800.0], [-0.0, np.inf, -np.inf, np.nan, -np.inf]),
    "rcp64h": ([3.0, 0.0, -np.inf, 5e-324, np.nan], [float.fromhex("0x1.55555p-2"), np.inf, -0.0, np.inf, np.nan]),
}  # fmt: skip


@long_functions
@pytest.mark.parametrize("name", LIMITS)
def test_limits(name: str) -> None:
    x, want = (np.array(values, np.float64) for values in LIMITS[name])
    got = f64(name, x)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got[want == 0]), np.signbit(want[want == 0]))


@long_functions
@pytest.mark.parametrize("name", ["norm3d", "norm4d", "rhypot", "rnorm3d", "rnorm4d"])
def test_infinite_norms(name: str) -> None:
    count = 2 if name == "rhypot" else int(name[-2])
    arrays = [np.roll(SPECIAL, 5 * k) for k in range(count)]
    got, zero = f64(name, *arrays), name[0] == "r"
    infinite = np.any(np.isinf(arrays), axis=0)
    assert np.all(got[infinite] == (0 if zero else np.inf))
    assert np.all(np.isnan(got[np.any(np.isnan(arrays), axis=0) & ~infinite]))
    zeros = np.zeros(8)
    assert np.all(f64(name, *[zeros] * count) == (np.inf if zero else 0))


@long_functions
def test_orders_out_of_range() -> None:
    orders = np.array([-1, 3, 3, 3, 2, 3, 0, 5], np.int32)
    x = np.array([1, 0.0, -0.0, np.inf, np.nan, -np.inf, 0.0, -1.0])
    want = [np.nan, 0.0, -0.0, 0.0, np.nan, -0.0, 1.0]
    got = f64("jn", orders, x)
    np.testing.assert_array_equal(got[:7], want)
    np.testing.assert_array_equal(np.signbit(got[[1, 2, 3, 5]]), [False, True, False, True])
    assert got[7] < 0
    want = [np.nan, -np.inf, -np.inf, 0.0, np.nan, np.nan, -np.inf, np.nan]
    np.testing.assert_array_equal(f64("yn", orders, x), want)


# --- Exact functions ----------------------------------------------------------------------------------


def rounded(value: Fraction, mode: str, dtype: Any = np.float64) -> Any:
    """A fraction, rounded in a direction."""
    info = np.finfo(dtype)
    if mode == "rz":
        mode = "rd" if value >= 0 else "ru"
    magnitude = abs(value)
    # The unit in the last place, and the number of them, rounded down.
    power = max(magnitude.numerator.bit_length() - magnitude.denominator.bit_length() - 1, -1100)
    if magnitude and Fraction(2) ** (power + 1) <= magnitude:
        power += 1
    unit = Fraction(2) ** (max(power, int(info.minexp)) - info.nmant)
    steps = magnitude // unit
    if steps * unit != magnitude and (mode == "ru") == (value > 0):
        steps += 1
    magnitude = steps * unit
    if magnitude > Fraction(float(info.max)):
        magnitude = math.inf if (mode == "ru") == (value > 0) else Fraction(float(info.max))
    return math.copysign(float(magnitude), -1 if value < 0 else 1)


OPERATIONS: dict[str, tuple[int, Callable[..., Fraction]]] = {
    "add": (2, lambda a, b: a + b),
    "sub": (2, lambda a, b: a - b),
    "mul": (2, lambda a, b: a * b),
    "div": (2, lambda a, b: a / b),
    "fma": (3, lambda a, b, c: a * b + c),
    "rcp": (1, lambda a: 1 / a),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", OPERATIONS)
def test_directed_rounding(name: str, mode: str) -> None:
    count, function = OPERATIONS[name]
    arrays = list(operands(np.random.default_rng(8), 1024)[:count])
    finite = np.all(np.isfinite(arrays), axis=0)
    if name in ("div", "rcp"):
        finite &= arrays[-1] != 0
    arrays = [array[finite] for array in arrays]
    got = f64(f"{name}_{mode}", *arrays).tolist()
    for result, *values in zip(got, *(array.tolist() for array in arrays), strict=True):
        exact = function(*map(Fraction, values))
        assert result == rounded(exact, mode), [value.hex() for value in values]


@pytest.mark.parametrize("mode", MODES)
def test_special_operands_of_directed_rounding(mode: str) -> None:
    with np.errstate(all="ignore"):
        for name, want in {"add": X + Y, "sub": X - Y, "mul": X * Y, "div": X / Y}.items():
            got = f64(f"{name}_{mode}", X, Y)
            # Where the result is exact, an infinity of the operands, or a NaN.
            same = ~np.isfinite(X) | ~np.isfinite(Y) | ((X == 0) & (Y != 0) & (name == "mul"))
            np.testing.assert_array_equal(got[same], want[same], name)
        cancels = (X == -Y) & np.isfinite(X) & (np.signbit(X) != np.signbit(Y))
        zeros = f64(f"add_{mode}", X, Y)[cancels]
        assert np.all(zeros == 0)
        assert np.all(np.signbit(zeros) == (mode == "rd"))
        got = f64(f"sqrt_{mode}", SPECIAL)
        np.testing.assert_array_equal(np.isnan(got), np.isnan(np.sqrt(SPECIAL)))


@pytest.mark.parametrize("mode", MODES)
def test_square_roots(mode: str) -> None:
    x = np.abs(exponents(-1074, 1023, 600))
    x[:100] = np.round(x[:100] % 1000) ** 2
    for value, root in zip(x.tolist(), f64(f"sqrt_{mode}", x).tolist(), strict=True):
        other = math.nextafter(root, -math.inf if mode == "ru" else math.inf)
        low, high = sorted([Fraction(max(other, 0.0)), Fraction(root)])
        if Fraction(root) ** 2 != Fraction(value):
            assert low**2 < Fraction(value) < high**2
    with np.errstate(all="ignore"):
        assert f64("rcp_rn", x).tolist() == (1 / x).tolist()


# A 32-bit integer is exact in float64, so that its conversion has no mode.
@pytest.mark.parametrize(
    ("source", "mode"),
    [*itertools.product(["ll", "ull"], ["rn", *MODES]), ("int", "rn"), ("uint", "rn")],
)
def test_conversions_from_integers(source: str, mode: str) -> None:
    dtype = {"ll": np.int64, "ull": np.uint64, "int": np.int32, "uint": np.uint32}[source]
    info = np.iinfo(dtype)
    x = np.random.default_rng(3).integers(info.min, info.max, 500, dtype, endpoint=True)
    x = np.concatenate([x, x >> dtype(7), np.array([0, 1, info.min, info.max], dtype)])
    got = f64(f"{source}2double_{mode}", x)
    if mode == "rn":
        np.testing.assert_array_equal(got, x.astype(np.float64))
    else:
        assert got.tolist() == [rounded(Fraction(int(value)), mode) for value in x]


@pytest.mark.parametrize("mode", MODES)
def test_conversions_to_floats(mode: str) -> None:
    x = np.concatenate([exponents(-160, 140, 600), exponents(-30, 30).astype(np.float32), SPECIAL])
    x = x[np.isfinite(x)].astype(np.float64)
    got = apply(f"double2float_{mode}", x)
    want = [rounded(Fraction(v), mode, np.float32) for v in x.tolist()]
    np.testing.assert_array_equal(got, np.array(want, np.float32))
    np.testing.assert_array_equal(np.signbit(got), np.signbit(x))
    limits = np.array([np.inf, -np.inf, np.nan])
    np.testing.assert_array_equal(apply(f"double2float_{mode}", limits), limits.astype(np.float32))


@pytest.mark.parametrize("target", ["int", "uint", "ll", "ull"])
def test_conversions_to_integers(target: str) -> None:
    dtype = {"ll": np.int64, "ull": np.uint64, "int": np.int32, "uint": np.uint32}[target]
    signed = {"uint": np.int32, "ull": np.int64}.get(target, dtype)
    x = np.concatenate([uniform(0 if target[0] == "u" else -1e9, 1e9), np.arange(0, 8, 0.5)])
    for mode, function in {"rn": np.rint, "rz": np.trunc, "rd": np.floor, "ru": np.ceil}.items():
        got = apply(f"double2{target}_{mode}", x, dtype=signed)
        np.testing.assert_array_equal(got.view(dtype), function(x).astype(dtype), mode)


def test_parts_and_bits() -> None:
    bits = SPECIAL.view(np.int64)
    high = apply("double2hiint", SPECIAL, dtype=np.int32)
    low = apply("double2loint", SPECIAL, dtype=np.int32)
    np.testing.assert_array_equal(high, (bits >> 32).astype(np.int32))
    np.testing.assert_array_equal(low, bits.astype(np.int32))
    np.testing.assert_array_equal(f64("hiloint2double", high, low).view(np.int64), bits)
    got = apply("double_as_longlong", SPECIAL, dtype=np.int64)
    np.testing.assert_array_equal(got, bits)
    np.testing.assert_array_equal(f64("longlong_as_double", bits).view(np.int64), bits)
    sign = apply("signbit", SPECIAL, dtype=np.int32)
    np.testing.assert_array_equal(sign != 0, np.signbit(SPECIAL))


def test_exponents() -> None:
    x = np.concatenate([WIDE, SPECIAL])
    finite = np.isfinite(x) & (x != 0)
    want = np.frexp(x[finite])[1] - 1
    got = apply("ilogb", x, dtype=np.int32)
    np.testing.assert_array_equal(got[finite], want)
    np.testing.assert_array_equal(got[np.isinf(x)], 2**31 - 1)
    np.testing.assert_array_equal(got[np.isnan(x) | (x == 0)], -(2**31))
    x = np.concatenate([WIDE, SPECIAL, SPECIAL])
    rng = np.random.default_rng(9)
    n = np.where(
        rng.integers(0, 2, x.size) == 0,
        rng.integers(-2200, 2200, x.size),
        rng.integers(-60, 60, x.size),
    )
    n[:2] = [2**31 - 1, -(2**31)]
    with np.errstate(all="ignore"):
        want = np.ldexp(x, n.astype(np.int32))
    for name in ("ldexp", "scalbn"):
        np.testing.assert_array_equal(f64(name, x, n.astype(np.int32)), want)


def test_random_remainders_and_neighbours() -> None:
    x, y, _ = operands(np.random.default_rng(10), 2048)
    for name in ("remainder", "fmod", "nextafter", "fdim"):
        function = c_function(name)
        want = [function(ctypes.c_double(a), ctypes.c_double(b)) for a, b in zip(x, y, strict=True)]
        got = f64(name, x, y)
        np.testing.assert_array_equal(got, want, name)
        # A remainder of 0 has the sign of x, which not every C library gives it.
        sign = np.signbit(x if name in ("remainder", "fmod") else np.array(want))
        np.testing.assert_array_equal(np.signbit(got[got == 0]), sign[got == 0], name)
