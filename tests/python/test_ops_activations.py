"""Activations and gated activations of triton_metal.ops against float64, with their gradients."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
import triton_metal.ops as ops
from triton_metal.errors import LaunchTypeError, LaunchValueError

from _bounds import FLOAT32
from ops_support import FLOATS, FRAMEWORKS, assert_near, gradients, made, numbers, rounded

erf = np.vectorize(math.erf, otypes=[np.float64])
gelu_tanh = functools.partial(ops.gelu, approximate="tanh")
gelu_tanh_mul = functools.partial(ops.gelu_mul, approximate="tanh")
FUNCTIONS = {
    "relu": ops.relu, "sigmoid": ops.sigmoid, "tanh": ops.tanh, "silu": ops.silu, "gelu": ops.gelu,
    "gelu_tanh": gelu_tanh,
}  # fmt: skip
GATED = {"silu": ops.silu_mul, "gelu": ops.gelu_mul, "gelu_tanh": gelu_tanh_mul}


@np.errstate(all="ignore")
def exact(name: str, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The function in float64 and its slope."""
    if name == "relu":
        return np.maximum(x, 0), (x > 0) * 1.0
    if name == "tanh":
        return np.tanh(x), 1 / np.cosh(x) ** 2
    s = 1 / (1 + np.exp(-x))
    if name == "sigmoid":
        return s, np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x))) ** 2
    if name == "silu":
        return x * s, s + x * s * (1 - s)
    if name == "gelu":
        below = (1 + erf(x / 2**0.5)) / 2
        return x * below, below + x * np.exp(-x * x / 2) / (2 * np.pi) ** 0.5
    root = (2 / np.pi) ** 0.5
    t = np.tanh(root * (x + 0.044715 * x**3))
    rise = (1 - t * t) * root * (1 + 3 * 0.044715 * x * x)
    return x * (1 + t) / 2, (1 + t + x * rise) / 2


def bounds(name: str, x: np.ndarray, y: np.ndarray, slope: np.ndarray) -> tuple:
    """gelu has 1 + erf and 1 + tanh, whose error is that of a number near 1; the others keep their digits."""
    tiny = 2.0**-126 * (1 + np.abs(x))  # what is smaller may be taken for 0
    if name.startswith("gelu"):
        return 10 * FLOAT32 * np.abs(x) + tiny, 24 * FLOAT32
    off = 16 * FLOAT32 * np.abs(slope) + (24 * FLOAT32 if name == "silu" else 0)
    # exp(x) is off by some |x| roundings of itself, and so is what is close to it.
    finite = np.where(np.isfinite(x), np.abs(x), 0)
    below = np.where(x < 0, finite, 0) if name in ("sigmoid", "silu") else 0
    off = off + 8 * FLOAT32 * finite * np.abs(slope)
    return (16 + 4 * below) * FLOAT32 * np.abs(y) + tiny, off + tiny


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_forward_and_gradient(name: str, framework: str, dtype: str) -> None:
    rng = np.random.default_rng(1)
    x, dy = (rounded(rng.standard_normal((3, 41)) * 4, dtype) for _ in range(2))
    y, slope = exact(name, x)
    y_bound, slope_bound = bounds(name, x, y, slope)
    assert_near(FUNCTIONS[name](made(framework, x, dtype)), y, y_bound, dtype)
    if framework != "numpy":
        (dx,) = gradients(framework, FUNCTIONS[name], [made(framework, x, dtype)], dy)
        assert_near(dx, dy * slope, np.abs(dy) * (slope_bound + 2 * FLOAT32 * abs(slope)), dtype)


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_small_results_of_large_negative_numbers(name: str, framework: str) -> None:
    x = rounded(np.linspace(-86, 0, 3001), "float32")
    y, slope = exact(name, x)
    y_bound, slope_bound = bounds(name, x, y, slope)
    if name.startswith("gelu"):
        slope_bound = slope_bound + 8 * FLOAT32 * np.abs(x * slope)
    assert_near(FUNCTIONS[name](made(framework, x, "float32")), y, y_bound, "float32")
    if framework != "numpy":
        given = [made(framework, x, "float32")]
        (dx,) = gradients(framework, FUNCTIONS[name], given, np.ones_like(x))
        assert_near(dx, slope, slope_bound, "float32")


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("name", GATED)
def test_gated_forward_and_gradients(name: str, framework: str, dtype: str) -> None:
    rng = np.random.default_rng(2)
    gate, value, dy = (rounded(rng.standard_normal((2, 5, 7)) * 2, dtype) for _ in range(3))
    y, slope = exact(name, gate)
    y_bound, slope_bound = bounds(name, gate, y, slope)
    arrays = [made(framework, each, dtype) for each in (gate, value)]
    off = y_bound + 3 * FLOAT32 * np.abs(y)
    assert_near(GATED[name](*arrays), y * value, np.abs(value) * off, dtype)
    if framework != "numpy":
        dgate, dvalue = gradients(framework, GATED[name], arrays, dy)
        slope_bound = slope_bound + 4 * FLOAT32 * np.abs(slope)
        assert_near(dgate, dy * value * slope, np.abs(dy * value) * slope_bound, dtype)
        assert_near(dvalue, dy * y, np.abs(dy) * off, dtype)


@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 0), (1024,), (1025,), (2, 3, 5, 7)])
def test_shapes(shape: tuple) -> None:
    x = np.random.default_rng(3).standard_normal(shape)
    x = np.asarray(x, np.float32)
    y, slope = exact("silu", x.astype(np.float64))
    off, _ = bounds("silu", x, y, slope)
    assert_near(ops.silu(x), y, off, "float32")
    assert_near(ops.silu_mul(x, x), y * x, np.abs(x) * off * 1.5, "float32")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_and_extreme_values(name: str) -> None:
    x = [
        np.nan,
        np.inf,
        -np.inf,
        0.0,
        -0.0,
        1e-30,
        88.0,
        -88.0,
        -95.0,
        200.0,
        -200.0,
        1e20,
        -1e20,
        3e38,
        -12.5,
    ]
    x = np.array(x, np.float32)
    y, slope = exact(name, x.astype(np.float64))
    off, _ = bounds(name, x.astype(np.float64), y, slope)
    off = np.where(
        np.isfinite(off), off, 16 * FLOAT32 * np.abs(np.nan_to_num(y, posinf=0, neginf=0))
    )
    with np.errstate(invalid="ignore"):
        assert_near(FUNCTIONS[name](x), y, off, "float32")


@pytest.mark.own_route
@pytest.mark.parametrize("name", FUNCTIONS)
def test_slopes_of_extreme_values_are_those_of_the_limits(name: str) -> None:
    x = np.array([np.inf, -np.inf, 1e20, -1e20, 200.0, -200.0, 60.0, -60.0])
    above = 0.0 if name in ("tanh", "sigmoid") else 1.0
    slope = np.array([above, 0.0] * 4)
    (dx,) = gradients("torch", FUNCTIONS[name], [made("torch", x, "float32")], np.ones(8))
    # silu's is a quotient of which the numbers are 1, but the quotient may be one place off.
    off = 4 * FLOAT32 * slope if name == "silu" else 0
    assert_near(dx, slope, 1e-24 + off, "float32")
    (of_nan,) = gradients(
        "torch", FUNCTIONS[name], [made("torch", [np.nan], "float32")], np.ones(1)
    )
    # PyTorch's relu passes a gradient on to NaN, as that of ops.matmul does.
    assert numbers(of_nan)[0] == 1 if name == "relu" else np.isnan(numbers(of_nan)).all()


@pytest.mark.own_route
def test_compiled_by_torch_and_mlx() -> None:
    torch, mx = pytest.importorskip("torch"), pytest.importorskip("mlx.core")
    rng = np.random.default_rng(4)
    gate, value, dy = (rng.standard_normal((4, 6)).astype(np.float32) for _ in range(3))
    y, slope = exact("silu", gate.astype(np.float64))
    wanted = dy * value * slope + 2 * dy * exact("gelu", gate.astype(np.float64))[1]
    both = lambda gate, value: ops.silu_mul(gate, value) + ops.gelu(gate) * 2.0  # noqa: E731
    compiled = torch.compile(both, fullgraph=True, backend="aot_eager")
    arrays = [made("torch", each, "float32") for each in (gate, value)]
    found = gradients("torch", compiled, arrays, dy)
    step = mx.compile(mx.grad(lambda *a: (both(*a) * mx.array(dy)).sum(), argnums=(0, 1)))
    for dgate, dvalue in (found, step(mx.array(gate), mx.array(value))):
        assert_near(dgate, wanted, 1e-5, "float32")
        assert_near(dvalue, dy * y, 1e-6, "float32")


def test_views_are_read_in_their_order() -> None:
    x = np.random.default_rng(5).standard_normal((20, 30)).astype(np.float32)
    for view in (x.T, x[::2, 1::3], x[::-1]):
        assert np.array_equal(ops.gelu(view), ops.gelu(view.copy()))
        assert np.array_equal(ops.silu_mul(view, view * 2), ops.silu_mul(view.copy(), view * 2))


X = np.zeros((2, 3), np.float32)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ops.relu(X.astype(np.int8)), LaunchValueError, r"\[relu\] x must have dtype float16, bfloat16 or float32 but has dtype int8"),
        (lambda: ops.sigmoid(1.0), LaunchTypeError, r"\[sigmoid\] x must be an array of NumPy, MLX or PyTorch but is a float"),
        (lambda: ops.gelu(X, "fast"), LaunchValueError, r"\[gelu\] approximate must be 'none' or 'tanh' but is 'fast'"),
        (lambda: ops.gelu_mul(X, X[:1]), LaunchValueError, r"\[gelu_mul\] value must have shape \(2, 3\), that of gate, but has shape \(1, 3\)"),
        (lambda: ops.silu_mul(X, X.astype(np.float16)), LaunchValueError, r"\[silu_mul\] value must have the dtype of gate, float32, but has dtype float16"),
    ],
)  # fmt: skip
def test_bad_arguments(call, error, message) -> None:
    with pytest.raises(error, match=message):
        call()
