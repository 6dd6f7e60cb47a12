"""float64 in software: bits and values against NumPy, through every kind of operation on tiles."""

import math

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl
from triton_metal import devices

import float64_check
from kernel_support import assert_same
from test_msl_constructs import constructs, documented

# MLX has float64 on its CPU alone, and PyTorch has none on "mps".
pytestmark = pytest.mark.own_route


def test_special_operands() -> None:
    x, y = float64_check.special_pairs()
    float64_check.check(x, y, np.roll(x, 7))


@pytest.mark.parametrize("seed", range(3))
def test_random_operands(seed: int) -> None:
    float64_check.check(*float64_check.operands(np.random.default_rng(seed), 8192))


def test_a_wrong_bit_is_seen() -> None:
    x = np.array([1.0, 2.0])
    with pytest.raises(float64_check.Mismatch, match=r"add\(0x1.0+p\+1\)"):
        float64_check.same("add", x, np.nextafter(x, [1.0, 3.0]), x)


def normal(shape: object, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


@triton.jit
def masked(x, out, n, scale, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n, other=-0.5)
    tl.store(out + i, value * scale + 1.0, mask=i < n + 3)


@pytest.mark.parametrize("n", [1, 31, 500, 1020])
@pytest.mark.parametrize("offset", [0, 1])
def test_masks_and_scalars(n: int, offset: int) -> None:
    x, out = normal(1100)[offset:], np.zeros(1100)[offset:]
    masked[(2,)](x, out, n, 0.1, 512)
    expected = np.zeros(1100)[offset:]
    # A Python float is a float32, as in Triton.
    expected[:n] = x[:n] * np.float64(np.float32(0.1)) + 1
    expected[n : n + 3] = -0.5 * np.float64(np.float32(0.1)) + 1
    assert_same(out, expected)


@triton.jit
def numbers(x, out):
    i = tl.arange(0, 32)
    a = tl.load(x + i)
    tl.store(out + i, tl.load(x + i, mask=i < 16, other=0.1))
    tl.store(out + 32 + i, 0.1)
    tl.store(out + 64 + i, a + 0.1)
    tl.store(out + 96 + i, tl.full((32,), 0.1, tl.float64))
    tl.store(out + 128 + i, tl.where(i < 16, a, 0.1))
    tl.store(out + 160 + i, 1e300)


def test_python_numbers() -> None:
    """As in stock Triton: a float32 by themselves, a float64 beside one."""
    x, out = normal(32), np.zeros(192)
    numbers[(1,)](x, out)
    single, first = float(np.float32(0.1)), np.arange(32) < 16
    alone = [np.where(first, x, single), np.full(32, single)]
    beside = [x + 0.1, np.full(32, 0.1), np.where(first, x, 0.1), np.full(32, 1e300)]
    assert_same(out, np.concatenate(alone + beside))


@triton.jit
def typed(out, s: tl.float64):
    tl.store(out, s)
    tl.store(out + 1, s * 3)


def test_scalar_argument() -> None:
    out = np.zeros(2)
    typed[(1,)](out, 0.1)
    assert_same(out, np.array([0.1, 0.1 * 3]))


@triton.jit
def promote(x, y, out):
    i = tl.arange(0, 64)
    a = tl.load(x + i)
    b = tl.load(y + i)
    tl.store(out + i, a + b)
    tl.store(out + 64 + i, b * 2)
    tl.static_assert((a + b).dtype == tl.float64)
    tl.static_assert((b * 2).dtype == tl.float64)
    tl.static_assert((b + 1.5).dtype == tl.float64)


@pytest.mark.parametrize("name", ["float16", "float32", "int32", "uint64", "int8"])
def test_promotion(name: str) -> None:
    x, y, out = (normal(64) * 50).clip(0).astype(name), normal(64, 1), np.zeros(128)
    promote[(1,)](x, y, out)
    assert_same(out, np.concatenate([x.astype(np.float64) + y, y * 2]))


@triton.jit
def pick(a, i, b, j):
    better = (a > b) | ((a == b) & (i < j))
    return tl.where(better, a, b), tl.where(better, i, j)


@triton.jit
def reduce_tile(x, out, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr):
    tile = tl.load(x + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    K: tl.constexpr = N if AXIS == 0 else M
    i = tl.arange(0, K)
    tl.store(out + i, tl.sum(tile, AXIS))
    tl.store(out + K + i, tl.max(tile, AXIS))
    tl.store(out + 2 * K + i, tl.min(tile, AXIS))
    tl.store(out + 3 * K + i, tl.argmax(tile, AXIS).to(tl.float64))
    index = tl.broadcast_to(tl.arange(0, N)[None, :], (M, N))
    best, _ = tl.reduce((tile, index), AXIS, pick)
    tl.store(out + 4 * K + i, best)


@pytest.mark.parametrize("warps", [1, 4])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", [(1, 32), (16, 64), (128, 16), (4, 512)])
def test_reductions(shape: tuple[int, int], axis: int, warps: int) -> None:
    # Integers, so that every order of the sum gives the same number.
    x = np.random.default_rng(3).integers(-(2**40), 2**40, shape).astype(np.float64)
    kept = shape[1 - axis]
    out = np.zeros((5, kept))
    reduce_tile[(1,)](x, out, *shape, axis, num_warps=warps)
    expected = [x.sum(axis), x.max(axis), x.min(axis), x.argmax(axis).astype(float), x.max(axis)]
    assert_same(out, np.array(expected))


@triton.jit
def scan_tile(
    x, out, n, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, REVERSE: tl.constexpr
):
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + i, tl.cumsum(tl.load(x + i), AXIS, reverse=REVERSE))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
def test_scans(axis: int, reverse: bool) -> None:
    x = np.random.default_rng(4).integers(-(2**40), 2**40, (32, 64)).astype(np.float64)
    out = np.zeros_like(x)
    scan_tile[(1,)](x, out, 0, 32, 64, axis, reverse)
    expected = np.flip(np.flip(x, axis).cumsum(axis), axis) if reverse else x.cumsum(axis)
    assert_same(out, expected)


@triton.jit
def products(x, y, z, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m = tl.arange(0, M)[:, None]
    n = tl.arange(0, N)[None, :]
    a = tl.load(x + m * K + tl.arange(0, K)[None, :])
    b = tl.load(y + tl.arange(0, K)[:, None] * N + n)
    tl.store(out + m * N + n, tl.dot(a, b, acc=tl.load(z + m * N + n), out_dtype=tl.float64))


@pytest.mark.parametrize("shape", [(16, 16, 16), (32, 16, 64), (64, 64, 16)])
def test_dots(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    x, y, z, out = normal((m, k)), normal((k, n), 1), normal((m, n), 2), np.zeros((m, n))
    products[(1,)](x, y, z, out, m, n, k)
    exact = x.astype(np.longdouble) @ y.astype(np.longdouble) + z
    bound = 2.0**-52 * (k + 2) * (np.abs(x) @ np.abs(y) + np.abs(z))
    assert np.all(np.abs(out - exact) <= bound)
    if np.finfo(np.longdouble).nmant > 52:
        # More than float32 would give, by far.
        assert np.abs(out - exact).max() < 1e-13


@triton.jit
def move(x, index, out):
    i = tl.arange(0, 128)
    a = tl.load(x + i)
    tl.store(out + i, tl.gather(a, tl.load(index + i), 0))
    joined = tl.join(a, a * 2)
    tl.store(out + 128 + i[:, None] * 2 + tl.arange(0, 2)[None, :], joined)
    first, second = tl.split(joined)
    tl.store(out + 384 + i, first - second)
    tl.store(out + 512 + i, tl.trans(tl.reshape(a, (8, 16))).reshape(128))
    tl.store(out + 640 + i, a.to(tl.int64, bitcast=True).to(tl.float64, bitcast=True))


def test_shapes() -> None:
    x, index = normal(128), np.random.default_rng(5).permutation(128).astype(np.int32)
    out = np.zeros(768)
    move[(1,)](x, index, out)
    expected = [x[index], np.stack([x, x * 2], 1).ravel(), -x, x.reshape(8, 16).T.ravel(), x]
    assert_same(out, np.concatenate(expected))


@triton.jit
def iterate(x, out, steps, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a = tl.load(x + i)
    total = tl.zeros((BLOCK,), tl.float64)
    last = 0.0
    last = last.to(tl.float64)
    for k in range(steps):
        total += a * k
        last = tl.sum(total, 0)
        if last > 1e300:
            total = -total
    tl.store(out + i, total)
    tl.store(out + BLOCK, last)


def test_loops_and_branches() -> None:
    x, out = np.random.default_rng(6).integers(0, 100, 256).astype(float), np.zeros(257)
    iterate[(1,)](x, out, 9, 256)
    assert_same(out, np.append(x * 36, (x * 36).sum()))


@triton.jit
def limits(x, out):
    i = tl.arange(0, 64)
    a = tl.load(x + i)
    tl.store(out + i, tl.clamp(a, -0.5, 0.5))
    tl.store(out + 64 + i, tl.clamp(a, -0.5, 0.5, propagate_nan=tl.PropagateNan.ALL))


def test_clamp() -> None:
    x, out = normal(64), np.zeros(128)
    x[::5] = np.nan
    limits[(1,)](x, out)
    plain = np.where(np.isnan(x), -0.5, x.clip(-0.5, 0.5))
    assert_same(out, np.concatenate([plain, x.clip(-0.5, 0.5)]))


@triton.jit
def transcendental(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.exp(tl.load(x + i)))


# The name in Triton IR, the function on longdouble, and an interval.
FUNCTIONS = {
    "exp": (np.exp, -750, 720),
    "exp2": (np.exp2, -1080, 1030),
    "expm1": (np.expm1, -40, 720),
    "log": (np.log, 0, 4),
    "log2": (np.log2, 0, 4),
    "log10": (np.log10, 0, 4),
    "log1p": (np.log1p, -1, 4),
    "sin": (np.sin, -40, 40),
    "cos": (np.cos, -40, 40),
    "tan": (np.tan, -40, 40),
    "sinh": (np.sinh, -715, 715),
    "cosh": (np.cosh, -715, 715),
    "tanh": (np.tanh, -25, 25),
    "erf": (None, -7, 7),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 0, 4),
}


def function_operands(low: float, high: float) -> np.ndarray:
    rng = np.random.default_rng(7)
    near_one = 1 + rng.standard_normal(1024) * 2.0 ** -rng.integers(0, 50, 1024)
    small = rng.standard_normal(1024) * 2.0 ** -rng.integers(0, 1060, 1024)
    large = rng.standard_normal(1024) * 2.0 ** rng.integers(0, 1020, 1024)
    inside = rng.uniform(low, high, 4096)
    # Near multiples of pi / 2, where the sine's or the cosine's digits cancel.
    turns = np.arange(1, 513) * (np.pi / 2)
    hard = np.array([6381956970095103.0 * 2.0**797, 2.0**-28, 2.0**-29, -745.2, 709.79, 0.5, -0.5])
    x = [float64_check.SPECIAL, near_one, small, large, inside, turns, -turns, hard]
    x = np.concatenate(x)
    return np.resize(x, -(-len(x) // 256) * 256)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    function, low, high = FUNCTIONS[name]
    x = function_operands(low, high)
    out, n = np.zeros_like(x), len(x)
    kernel = transcendental.warmup(x, out, n, 256, grid=(1,))
    ttir = kernel.asm["ttir"].replace("math.exp ", f"math.{name} ")
    made, device = triton.compile_ttir(ttir), devices.get("host")
    library = device.compile(made.asm["metal"], made.metadata)
    device.launch(library, (n // 256,), [x, out, n])
    with np.errstate(all="ignore"):
        if function is None:
            exact = np.array([math.erf(v) for v in x], np.longdouble)
        else:
            exact = function(x.astype(np.longdouble))
        wanted = exact.astype(np.float64)
        finite = np.isfinite(wanted)
        ulp = np.spacing(np.maximum(np.abs(wanted[finite]), 2.0**-1022))
        error = np.abs(out[finite].astype(np.longdouble) - exact[finite]) / ulp
    np.testing.assert_array_equal(out[~finite], wanted[~finite])
    np.testing.assert_array_equal(np.signbit(out[wanted == 0]), np.signbit(wanted[wanted == 0]))
    # Where longdouble has no more digits, and for erf, the reference is off by up to a unit itself.
    off = 0 if function and np.finfo(np.longdouble).nmant > 60 else 1
    assert error.max() <= (1.5 if name == "rsqrt" else 0.6) + off, float(
        x[finite][error.argmax()]
    ).hex()


@triton.jit
def everything(x, y, out, whole, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a = tl.load(x + i)
    b = tl.load(y + i)
    c = tl.fma(a + b, a - b, a * b) / tl.sqrt(a) % b
    c += tl.exp(a) + tl.exp2(b) + tl.log(a) + tl.sin(b) + tl.cos(c) + tl.erf(a) + tl.rsqrt(b)
    c = tl.maximum(tl.floor(c), tl.ceil(a)) + tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)
    narrow = c.to(tl.float32) + c.to(tl.float16) + c.to(tl.bfloat16)
    tl.store(out + i, tl.where((a < b) | (a == b) | (c >= a), c, narrow.to(tl.float64)))
    tl.store(whole + i, c.to(tl.int64) + b.to(tl.uint64).to(tl.float64).to(tl.int32))


def test_text_is_small_and_keeps_to_documented_constructs() -> None:
    x, out, whole = np.abs(normal(4096)), np.zeros(4096), np.zeros(4096, np.int64)
    text = everything[(1,)](x, x, out, whole, 4096).asm["metal"]
    assert "double" not in text
    assert len(text) < 60_000
    assert constructs(text) <= documented()
    # A function is defined once, and only where it is called.
    assert text.count(" float64_add(ulong a, ulong b)") == 1
    assert "float64_rint" not in text
