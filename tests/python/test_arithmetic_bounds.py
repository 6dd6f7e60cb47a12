"""Functions and quotients keep to the bounds of docs/arithmetic.md, in their fast and their precise forms."""

from __future__ import annotations

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl

from arithmetic_bounds import (
    BOUNDS,
    PRECISE,
    SMALLEST,
    Floats,
    computed,
    divide,
    divide_rows,
    outside,
    sample,
    ulp,
    violations,
)

# MLX's on the CPU are infinite early, or have few digits for large numbers.
NOT_AS_GRAPH = ("exp", "sin", "cos", "sin beside cos", "cos beside sin")
NAMES = [
    pytest.param(name, marks=pytest.mark.not_as_graph(f"{name} is MLX's"))
    if name in NOT_AS_GRAPH
    else name
    for name in BOUNDS
]


@pytest.mark.own_check(reason="a portable launch adds what Metal allows to the error of the host")
@pytest.mark.parametrize("name", NAMES)
def test_functions_keep_to_their_bounds(name: str) -> None:
    x = sample()
    y = computed(name, x)
    wrong = violations(BOUNDS[name], x, y)
    assert not wrong.size, [(x[i], y[i]) for i in wrong[:5]]


@pytest.mark.parametrize("name", NAMES)
def test_precise_functions_keep_to_theirs(name: str) -> None:
    x = sample(1)
    y = computed(name, x, precise_math=True)
    wrong = violations(PRECISE[name], x, y)
    assert not wrong.size, [(x[i], y[i]) for i in wrong[:5]]


@pytest.mark.parametrize("seed", [3, 5])
@pytest.mark.parametrize("name", BOUNDS)
def test_functions_keep_to_their_bounds_where_the_device_is_as_bad_as_metal_allows(
    name: str, seed: int
) -> None:
    x = sample(2)[: 64 * 1024]
    with triton.launch_options(check="portable", seed=seed):
        y = computed(name, x)
    wrong = violations(BOUNDS[name], x, y)
    assert not wrong.size, [(x[i], y[i]) for i in wrong[:5]]


def pairs(seed: int) -> tuple[Floats, Floats]:
    """Floats of every exponent in pairs, and all pairs of some special ones."""
    generator = np.random.default_rng(seed)
    x, y = sample(seed), sample(seed + 1)
    generator.shuffle(y)
    some = np.array(
        [0, 1, 3, np.inf, np.nan, SMALLEST, 2.0**126, 2.0**127, 3.4e38, 1e-40, 7e37], np.float32
    )
    some = np.concatenate([some, -some])
    left, right = np.meshgrid(some, some)
    near = generator.uniform(0.5, 2, (2, 65536)).astype(np.float32)
    x, y = np.concatenate([x, left.ravel(), near[0]]), np.concatenate([y, right.ravel(), near[1]])
    size = -(-x.size // 1024) * 1024
    return np.resize(x, size), np.resize(y, size)


def wrong_quotients(x: Floats, y: Floats, q: Floats, ulps: float) -> np.ndarray:
    """The places of quotients that are outside of a bound. Operands that are subnormal may count as 0."""
    wrong = np.ones(x.shape, bool)
    for left in (x, np.where(np.abs(x) < SMALLEST, np.copysign(0, x), x)):
        for right in (y, np.where(np.abs(y) < SMALLEST, np.copysign(0, y), y)):
            with np.errstate(all="ignore"):
                exact = left.astype(np.float64) / right
                wrong &= outside(q, exact, ulps * ulp(exact))
    return np.flatnonzero(wrong)


@pytest.mark.parametrize("precise", [False, True])
@pytest.mark.parametrize("seed", [None, 3, 5])
def test_quotients_keep_to_their_bound(precise: bool, seed: int | None) -> None:
    x, y = pairs(7)
    q = np.empty_like(x)
    options = {} if seed is None else {"check": "portable", "seed": seed}
    with triton.launch_options(**options):
        divide[(x.size // 1024,)](q, x, y, BLOCK=1024, precise_math=precise)
    wrong = wrong_quotients(x, y, q, 0.5 if precise else 2.5)
    assert not wrong.size, [(x[i], y[i], q[i]) for i in wrong[:5]]


def test_rows_are_divided_by_the_reciprocal_of_what_they_share() -> None:
    x, _ = pairs(9)
    x = np.resize(x, (96, 1024))
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, SMALLEST, -SMALLEST, 2.0**126, 1.0, 3.0, 1e-40]
    s = np.concatenate([special, 2.0 ** np.random.default_rng(3).uniform(-126, 126, 85)])
    s = s.astype(np.float32)
    q = np.empty_like(x)
    kernel = divide_rows[(96,)](q, x, s, COLUMNS=1024)
    assert kernel.asm["metal"].count("/") - kernel.asm["metal"].count("//") * 2 <= 1
    divisors = np.repeat(s, 1024)
    wrong = wrong_quotients(x.ravel(), divisors, q.ravel(), 1.5)
    # A quotient of a subnormal divisor may be infinite where it is large.
    wrong = wrong[np.abs(divisors[wrong]) >= SMALLEST]
    assert not wrong.size, [(x.ravel()[i], divisors[i], q.ravel()[i]) for i in wrong[:5]]


@triton.jit
def divide_blocks(q, x, s, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row = tl.arange(0, ROWS)
    i = row[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tl.store(q + i, tl.load(x + i) / tl.load(s + row)[:, None])


@pytest.mark.parametrize("seed", [None, 3, 5])
@pytest.mark.parametrize("together", [False, True])
def test_rows_with_a_huge_divisor_are_right(together: bool, seed: int | None) -> None:
    x, _ = pairs(9)
    x = np.resize(x, (16, 1024))
    s = np.geomspace(2.0**125, 3.4e38, 16).astype(np.float32)
    s[1::2] *= -1
    s[:4] = 2.0**126, 2.0**127, np.finfo(np.float32).max, np.inf
    q = np.empty_like(x)
    options = {} if seed is None else {"check": "portable", "seed": seed}
    with triton.launch_options(**options):
        if together:
            divide_blocks[(1,)](q, x, s, ROWS=16, COLUMNS=1024)
        else:
            divide_rows[(16,)](q, x, s, COLUMNS=1024)
    divisors = np.repeat(s, 1024)
    wrong = wrong_quotients(x.ravel(), divisors, q.ravel(), 1.5)
    assert not wrong.size, [(x.ravel()[i], divisors[i], q.ravel()[i]) for i in wrong[:5]]


@triton.jit
def divide_by_the_greatest_of_another_axis(q, x, SIZE: tl.constexpr):
    row = tl.arange(0, SIZE)
    i = row[:, None] * SIZE + row[None, :]
    y = tl.load(x + i)
    e = tl.exp(y - tl.max(y, axis=0)[:, None])
    tl.store(q + i, e / tl.sum(e, axis=1)[:, None])


@pytest.mark.parametrize("seed", [None, 3])
def test_sums_of_what_is_not_below_its_greatest_are_divided_by_exactly(seed: int | None) -> None:
    x = np.zeros((32, 32), np.float32)
    x[0] = 88.0
    x[:, 0] = 88.0
    x[1:, 1:] = -1.0
    q = np.empty_like(x)
    options = {} if seed is None else {"check": "portable", "seed": seed}
    with triton.launch_options(**options):
        divide_by_the_greatest_of_another_axis[(1,)](q, x, SIZE=32)
    e = np.exp(x.astype(np.float64) - x.max(0)[:, None])
    np.testing.assert_allclose(q, e / e.sum(1, keepdims=True), rtol=2e-4, atol=1e-37)


@triton.jit
def exact_forms(out, x, y, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(out + i, tl.div_rn(a, b))
    tl.store(out + BLOCK + i, tl.sqrt_rn(a))
    tl.store(out + 2 * BLOCK + i, tl.fdiv(a, b, ieee_rounding=True))


@triton.jit
def short_quotients(q, r, x, y, s, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a = tl.load(x + i)
    tl.store(q + i, a / tl.load(y + i))
    tl.store(r + i, a / tl.load(s))


def test_what_names_its_rounding_is_rounded_so() -> None:
    generator = np.random.default_rng(5)
    x, y = generator.uniform(0.1, 9, (2, 1024)).astype(np.float32)
    out = np.empty((3, 1024), np.float32)
    text = exact_forms[(1,)](out, x, y, BLOCK=1024).asm["metal"]
    assert "fast::" not in text
    assert "approximate" not in text
    np.testing.assert_array_equal(out, [x / y, np.sqrt(x), x / y])


def test_quotients_of_halves_are_those_of_floats_rounded_once() -> None:
    generator = np.random.default_rng(6)
    x = generator.integers(0, 1 << 16, 4096, dtype=np.uint16).view(np.float16)
    y = generator.integers(0, 1 << 16, 4096, dtype=np.uint16).view(np.float16)
    x, y = (np.where(np.isnan(v), np.float16(3), v) for v in (x, y))
    s = np.array([7], np.float16)
    q, r = np.empty_like(x), np.empty_like(x)
    short_quotients[(1,)](q, r, x, y, s, BLOCK=4096)
    with np.errstate(all="ignore"):
        for found, divisor in ((q, y), (r, s)):
            exact = x.astype(np.float64) / divisor.astype(np.float64)
            nearest = exact.astype(np.float16)
            unit = np.spacing(np.abs(nearest)).astype(np.float64)
            close = np.abs(found.astype(np.float64) - exact) <= 0.502 * unit
            assert np.all(close | (found == nearest) | (np.isnan(found) & np.isnan(nearest)))
