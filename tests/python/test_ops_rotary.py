"""triton_metal.ops.rotary_embedding against float64, with its gradient."""

from __future__ import annotations

import math

import numpy as np
import pytest
import triton_metal.ops as ops
from triton_metal.errors import LaunchTypeError, LaunchValueError

from _bounds import FLOAT32
from ops_support import FLOATS, FRAMEWORKS, assert_near, gradients, made, rounded


def exact(
    x, *, base=10000.0, offset=0, scale=1.0, dims=None, traditional=False, axis=-2, tables=None,
    inverse=False,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """The result in float64 and how far one in float32 may be off."""
    axis %= x.ndim
    dims = x.shape[-1] if dims is None else dims
    half, length = dims // 2, x.shape[axis]
    pair = np.arange(half)
    if tables is None:
        position = scale * (offset + np.arange(length))[:, None]
        angle = position * base ** (-2.0 * pair / max(dims, 1))
        cos, sin = np.cos(angle), np.sin(angle)
        # The exponent is rounded, and so are exp2, the position and the product; exp2 is off by four for each unit of its exponent.
        off = (
            np.abs(angle) * FLOAT32 * (8 + 6 * pair * abs(math.log2(base)) / max(half, 1))
            + 4 * FLOAT32
        )
    else:
        cos, sin = (table[offset : offset + length] for table in tables)
        off = np.zeros_like(cos)
    if inverse:
        sin = -sin
    shape = [1] * x.ndim
    shape[axis], shape[-1] = length, half
    cos, sin, off = (each.reshape(shape) for each in (cos, sin, off))
    first = np.s_[..., 0:dims:2] if traditional else np.s_[..., :half]
    second = np.s_[..., 1:dims:2] if traditional else np.s_[..., half:dims]
    y, bound = x.copy(), np.zeros_like(x)
    a, b = x[first], x[second]
    y[first], y[second] = a * cos - b * sin, a * sin + b * cos
    size = (np.abs(a) + np.abs(b)) * (off + 3 * FLOAT32)
    bound[first], bound[second] = size, size
    return y, bound


@pytest.mark.parametrize("traditional", [False, True], ids=["halves", "neighbours"])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_forward_and_gradient(framework: str, dtype: str, traditional: bool) -> None:
    rng = np.random.default_rng(1)
    x, dy = (rounded(rng.standard_normal((2, 3, 5, 12)), dtype) for _ in range(2))
    options = {"offset": 7, "traditional": traditional, "dims": 10}
    y, bound = exact(x, **options)
    function = lambda a: ops.rotary_embedding(a, **options)  # noqa: E731
    assert_near(function(made(framework, x, dtype)), y, bound, dtype)
    if framework != "numpy":
        (dx,) = gradients(framework, function, [made(framework, x, dtype)], dy)
        assert_near(dx, *exact(dy, **options, inverse=True), dtype)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_given_cosines_and_sines(framework: str, dtype: str) -> None:
    rng = np.random.default_rng(2)
    x, dy = (rounded(rng.standard_normal((2, 5, 3, 8)), dtype) for _ in range(2))
    angle = rng.standard_normal((9, 4))
    tables = [rounded(np.cos(angle), dtype), rounded(np.sin(angle), "float32")]
    given = [made(framework, tables[0], dtype), made(framework, tables[1], "float32")]
    y, bound = exact(x, offset=2, axis=1, tables=tables)
    function = lambda a: ops.rotary_embedding(a, *given, offset=2, axis=1)  # noqa: E731
    assert_near(function(made(framework, x, dtype)), y, bound, dtype)
    if framework != "numpy":
        (dx,) = gradients(framework, function, [made(framework, x, dtype)], dy)
        assert_near(dx, *exact(dy, offset=2, axis=1, tables=tables, inverse=True), dtype)


@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((1, 2), {}),
        ((5, 64), {"base": 500_000.0, "offset": 100_000, "scale": 0.25}),
        ((3, 7, 6), {"dims": 0}),
        ((3, 7, 6), {"dims": 2, "traditional": True}),
        ((4, 3, 2, 130), {"axis": 0, "base": 0.5}),
        ((7, 5, 6), {"axis": 0, "traditional": True}),
        ((0, 3, 4), {}),
        ((3, 0, 4), {}),
        ((3, 4, 0), {}),
        # Rows of several positions are turned together, in pieces of powers of two.
        ((2, 8, 80), {}),
        ((3, 4, 96), {"traditional": True}),
        ((2, 12, 112), {"offset": 7}),
        ((2, 2, 96), {}),
        ((1, 6, 80), {}),
        ((3, 5, 80), {"traditional": True}),
        ((2, 8, 100), {"dims": 80}),
        ((2, 8, 100), {"dims": 48, "traditional": True}),
        ((2, 16, 16), {}),
        ((9, 8, 2, 96), {"axis": 1}),
        ((2, 4, 192), {}),
    ],
)
def test_shapes_and_options(shape: tuple, options: dict) -> None:
    x = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
    y, bound = exact(x.astype(np.float64), **options)
    assert_near(ops.rotary_embedding(x, **options), y, bound, "float32")


def test_special_values_and_views() -> None:
    x = np.random.default_rng(4).standard_normal((6, 8)).astype(np.float32)
    x[1, 2], x[2, 3] = np.nan, np.inf
    with np.errstate(invalid="ignore"):
        for view in (x, x[::-1], np.asfortranarray(x)):
            y, bound = exact(view.astype(np.float64))
            found = ops.rotary_embedding(view)
            usual = np.isfinite(y)
            assert np.array_equal(np.isfinite(found), usual)
            assert (np.abs(found - y)[usual] <= bound[usual] + 1e-6).all()


@pytest.mark.own_route
def test_compiled_by_torch_for_changing_offsets() -> None:
    torch = pytest.importorskip("torch")
    x = rounded(np.random.default_rng(5).standard_normal((2, 3, 8)), "float32")
    compiled = torch.compile(
        lambda a, n: ops.rotary_embedding(a, offset=n) * 1.0, fullgraph=True, backend="aot_eager"
    )
    for offset in (3, 4, 9, 12):
        function = lambda a: compiled(a, offset)  # noqa: E731
        arrays = [made("torch", x, "float32")]
        assert_near(function(*arrays), *exact(x, offset=offset), "float32")
        (dx,) = gradients("torch", function, arrays, x)
        assert_near(dx, *exact(x, offset=offset, inverse=True), "float32")


@pytest.mark.own_route
def test_compiled_by_mlx() -> None:
    mx = pytest.importorskip("mlx.core")
    x = rounded(np.random.default_rng(6).standard_normal((2, 3, 8)), "float32")
    a = made("mlx", x, "float32")
    assert_near(mx.compile(ops.rotary_embedding)(a), *exact(x), "float32")
    weights = made("mlx", x, "float32")
    dx = mx.compile(mx.grad(lambda x: (ops.rotary_embedding(x) * weights).sum()))(a)
    assert_near(dx, *exact(x, inverse=True), "float32")


@pytest.mark.own_route
def test_gradient_of_the_gradient() -> None:
    torch = pytest.importorskip("torch")
    x = torch.randn(3, 6, generator=torch.Generator().manual_seed(1)).double().float()
    v, w = x.clone().requires_grad_(True), x.clone().requires_grad_(True)
    (dx,) = torch.autograd.grad(ops.rotary_embedding(v), v, w, create_graph=True)
    (dw,) = torch.autograd.grad(dx, w, x)
    assert_near(dw, *exact(x.double().numpy()), "float32")


X = np.zeros((2, 3, 4), np.float32)
TABLE = np.zeros((3, 2), np.float32)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ops.rotary_embedding(X.astype(np.int32)), LaunchValueError, r"\[rotary_embedding\] x must have dtype"),
        (lambda: ops.rotary_embedding(X[0, 0]), LaunchValueError, r"x must have 2 to"),
        (lambda: ops.rotary_embedding(X, dims=3), LaunchValueError, r"dims must be even and at most 4, the last axis of x, but is 3"),
        (lambda: ops.rotary_embedding(X, dims=6), LaunchValueError, r"dims must be even and at most 4"),
        (lambda: ops.rotary_embedding(X[..., :3]), LaunchValueError, r"dims must be even and at most 3, the last axis of x, but is 3"),
        (lambda: ops.rotary_embedding(X, axis=2), LaunchValueError, r"axis must not be the last one"),
        (lambda: ops.rotary_embedding(X, axis=3), LaunchValueError, r"axis must be from -3 to 2"),
        (lambda: ops.rotary_embedding(X, offset=-1), LaunchValueError, r"offset must be from 0 to 2\*\*31 - 1 but is -1"),
        (lambda: ops.rotary_embedding(X, offset=0.5), LaunchTypeError, r"offset must be an integer but is 0.5"),
        (lambda: ops.rotary_embedding(X, base=0), LaunchValueError, r"base must be more than 0 but is 0"),
        (lambda: ops.rotary_embedding(X, base=1e-39), LaunchValueError, r"\[rotary_embedding\] base must be a normal number of float32, at least 1.17549435e-38, but is 1e-39"),
        (lambda: ops.rotary_embedding(X, base=1e39), LaunchValueError, r"base must be a finite number of at most 3.4028235e\+38 but is 1e\+39"),
        (lambda: ops.rotary_embedding(X, base=float("nan")), LaunchValueError, r"base must be more than 0 but is nan"),
        (lambda: ops.rotary_embedding(X, TABLE), LaunchValueError, r"cos and sin must both be given or both be None"),
        (lambda: ops.rotary_embedding(X, TABLE, TABLE[:2]), LaunchValueError, r"sin must have shape \(3, 2\) \(at least offset \+ length rows, dims / 2 columns\) but has shape \(2, 2\)"),
        (lambda: ops.rotary_embedding(X, TABLE, TABLE, offset=1), LaunchValueError, r"cos must have shape \(4, 2\)"),
        (lambda: ops.rotary_embedding(made("torch", X, "float32"), *[made("torch", TABLE, "float32", True)] * 2), LaunchValueError, r"cos must not require a gradient, as none is computed for it"),
        (lambda: ops.rotary_embedding(X, TABLE, TABLE, dims=2), LaunchValueError, r"cos must have shape \(3, 1\)"),
    ],
)  # fmt: skip
def test_bad_arguments(call, error, message) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.own_route  # MLX's own sine of 2^120 radians is no number
@pytest.mark.parametrize("base", [2.0**-126, 1.0, 3.4028234663852886e38])
def test_any_base_of_float32_gives_numbers(base: float) -> None:
    assert np.isfinite(ops.rotary_embedding(X, base=base)).all()


def test_tables_that_require_a_gradient_are_taken_where_none_is_computed() -> None:
    torch = pytest.importorskip("torch")
    x, cos, sin = torch.ones(1, 1, 4, 8), torch.ones(4, 4), torch.zeros(4, 4)
    cos.requires_grad_()
    with pytest.raises(LaunchValueError, match="cos must not require a gradient"):
        ops.rotary_embedding(x, cos=cos, sin=sin)
    with torch.no_grad():
        assert torch.equal(ops.rotary_embedding(x, cos=cos, sin=sin), x)
