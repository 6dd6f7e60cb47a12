"""triton_metal.ops' reductions against NumPy in float64, and their gradients against PyTorch's in float64."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import triton_metal.ops as ops
from triton_metal.errors import LaunchTypeError, LaunchValueError
from triton_metal.ops import _reducing
from triton_metal.ops._launch import turned_grids

from ops_support import FLOATS, FRAMEWORKS, assert_near, made, numbers, on_frameworks, rounded

EPS = 2.0**-24
KINDS = ("sum", "mean", "prod", "max", "min", "var", "std", "logsumexp", "norm", "norm1", "norminf")
SHAPES = (
    ((3, 5, 7), (0, 2), True), ((4, 33), 1, False), ((2, 3, 4), None, False), ((70, 20), 0, False), ((1, 1), 0, True),
    ((2, 3, 4, 5), (1, -2), False), ((5,), -1, True), ((2, 5000), 1, False), ((20_001, 3), 0, True), ((100_003,), 0, False),
)  # fmt: skip


def call(kind: str, x: Any, axis: Any, keepdims: bool) -> Any:
    if kind.startswith("norm"):
        return ops.norm(x, axis, keepdims, {"norm": 2, "norm1": 1}.get(kind, math.inf))
    return getattr(ops, kind)(x, axis, keepdims)


def exact(kind: str, x: np.ndarray, axis: Any, keepdims: bool) -> np.ndarray:
    how = {"axis": axis, "keepdims": keepdims}
    if kind == "logsumexp":
        top = x.max(axis=axis, keepdims=True)
        y = np.log(np.exp(x - top).sum(**how))
        return y + x.max(**how)
    if kind == "norminf":
        return np.abs(x).max(**how)
    if kind == "norm1":
        return np.abs(x).sum(**how)
    if kind == "norm":
        return np.sqrt((x * x).sum(**how))
    return np.asarray(getattr(np, kind)(x, **how))


def bound(kind: str, x: np.ndarray, axis: Any, keepdims: bool) -> np.ndarray:
    """Sums of n numbers in blocks of some 4,096 and then in pairs: some n / 4,096 + 2 log n roundings, at most n."""
    how = {"axis": axis, "keepdims": keepdims}
    y = np.abs(exact(kind, x, axis, keepdims))
    n = x.size / max(1, y.size)
    steps = (min(n, n / 64 + 32) + 4) * EPS
    total = np.abs(x).sum(**how)
    if kind in ("max", "min", "norminf"):
        return 0 * y
    if kind == "logsumexp":
        return steps + 8 * EPS * (y + np.abs(x).max(**how)) + 16 * EPS
    if kind == "prod":
        return (n + 2) * EPS * y
    if kind in ("var", "std"):
        square = y * y if kind == "std" else y
        error = 3 * steps * square + (steps * total / n) ** 2
        return error if kind == "var" else np.minimum(error / np.maximum(y, 1e-30), np.sqrt(error))
    return steps * (total if kind in ("sum", "norm1") else total / n if kind == "mean" else y)


@pytest.mark.parametrize("kind", ["var", "std"])
@pytest.mark.parametrize(("count", "number"), [(31, 1.7e15), (1025, -1e17), (5000, 3.3e12)])
def test_large_equal_numbers_vary_by_the_error_of_their_mean(
    kind: str, count: int, number: float
) -> None:
    x = np.full((2, count), number, np.float32)
    found = np.asarray(call(kind, x, 1, False), np.float64)
    assert (found <= bound(kind, x.astype(np.float64), 1, False)).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("shape", "axis", "keepdims"), SHAPES)
def test_shapes_and_axes(kind: str, shape: tuple, axis: Any, keepdims: bool) -> None:
    rng = np.random.default_rng(1)
    x = rounded(rng.standard_normal(shape), "float32")
    if kind == "prod":
        x = rounded(np.exp(x / 64), "float32")
    y = exact(kind, x, axis, keepdims)
    found = call(kind, made("numpy", x, "float32"), axis, keepdims)
    assert_near(np.asarray(found), y, bound(kind, x, axis, keepdims), "float32")


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("kind", KINDS)
def test_dtypes_and_gradients(kind: str, framework: str, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    shape, axis = (3, 5, 7), (0, 2)
    rng = np.random.default_rng(2)
    x = rounded(rng.standard_normal(shape) + (2 if kind == "prod" else 0), dtype)
    x[0, 0, 0] = x[1, 0, 3] = 4  # the largest of a row, twice
    if kind == "prod":
        x[0, 1, 0] = x[0, 2, 0] = x[1, 2, 2] = 0  # one zero in one row, two in another
        x[:, 4] = np.sign(x[:, 4])
        x = rounded(x / 2, dtype) if dtype == "float16" else x
    y = exact(kind, x, axis, False)
    own = made(framework, x, dtype)
    assert_near(call(kind, own, axis, False), y, bound(kind, x, axis, False), dtype)
    if framework == "numpy":
        return
    wide = torch.tensor(x, requires_grad=True)
    functions = {
        "max": torch.amax, "min": torch.amin, "logsumexp": torch.logsumexp,
        "prod": lambda t, a: t.permute(1, 0, 2).reshape(5, 21).prod(1),
        "var": lambda t, a: torch.var(t, a, correction=0), "std": lambda t, a: torch.std(t, a, correction=0),
        "norm": torch.linalg.vector_norm, "norm1": lambda t, a: torch.linalg.vector_norm(t, 1, a),
        "norminf": lambda t, a: torch.linalg.vector_norm(t, math.inf, a),
    }  # fmt: skip
    function = functions.get(kind, getattr(torch, kind, None))
    if kind == "norm":
        right = torch.linalg.vector_norm(wide, 2, axis)
    else:
        right = function(wide, axis)
    weights = rounded(rng.standard_normal(5), dtype)
    (dx,) = torch.autograd.grad(right, wide, torch.tensor(weights))
    if framework == "torch":
        own.requires_grad_(True)
        result = call(kind, own, axis, False)
        (found,) = torch.autograd.grad(result, own, torch.tensor(weights).to(result.dtype))
    else:
        import mlx.core as mx

        _, [found] = mx.vjp(
            lambda a: [call(kind, a, axis, False)], [own], [made("mlx", weights, dtype)]
        )
    # What is kept is rounded to the dtype, and of the logarithm that error is absolute.
    u = {"float32": EPS, "float16": 2.0**-11, "bfloat16": 2.0**-8}[dtype]
    size = np.abs(dx.numpy()) + 0.01
    assert_near(
        found, dx.numpy(), (8 * u * (1 + np.abs(y)) + 64 * EPS)[None, :, None] * size, dtype
    )


@pytest.mark.parametrize(
    ("framework", "dtype"),
    on_frameworks(
        ["bool", "int8", "int16", "int32", "int64", "uint8", "uint32", "uint64"],
        ["uint32", "uint64"],
    ),
)
def test_integers_and_bools(framework: str, dtype: str) -> None:
    rng = np.random.default_rng(3)
    info = None if dtype == "bool" else np.iinfo(dtype)
    x = (
        rng.integers(0, 2, (3, 40))
        if info is None
        else rng.integers(info.min, info.max, (3, 40), dtype)
    )
    x = x.astype(dtype)
    own = made(framework, x, dtype)
    total = "uint64" if dtype.startswith("u") and framework != "torch" else "int64"
    for kind in ("sum", "prod"):
        found = getattr(ops, kind)(own, 1)
        assert str(found.dtype).endswith(total)
        np.testing.assert_array_equal(np.asarray(found), getattr(np, kind)(x, 1).astype(total))
    for kind in ("max", "min", "all", "any"):
        found = getattr(ops, kind)(own, 1)
        assert str(found.dtype).endswith("bool" if kind in ("all", "any") else dtype)
        np.testing.assert_array_equal(np.asarray(found), getattr(np, kind)(x, 1))
    if dtype not in ("int64", "uint64"):
        mean = ops.mean(own, 1)
        assert_near(
            mean,
            x.astype(np.float64).mean(1),
            64 * EPS * np.abs(x.astype(np.float64)).mean(1),
            "float32",
        )


def test_special_values() -> None:
    x = np.ones((6, 300), np.float32)
    x[0, 7] = np.nan
    x[1, 7] = np.inf
    x[2, 7] = -np.inf
    x[3] = -np.inf
    x[4, 3], x[4, 9] = np.inf, -np.inf
    x[5] = 3e38
    with np.errstate(all="ignore"):
        for kind in ("sum", "mean", "prod", "max", "min", "norm1", "norminf"):
            right = exact(kind, x, 1, False)
            np.testing.assert_array_equal(call(kind, x, 1, False), right.astype(np.float32))
        np.testing.assert_array_equal(np.isnan(ops.var(x, 1)), [True] * 5 + [False])
        found = ops.logsumexp(x, 1)
        np.testing.assert_array_equal(found[:5], [np.nan, np.inf, found[2], -np.inf, np.inf])
        np.testing.assert_allclose(found[[2, 5]], [1 + math.log(299), 3e38], rtol=1e-6)
        assert ops.all(x).item()
        assert ops.any(x[:1] * 0).item()  # NaN is not 0
        many = np.repeat(x, 40, 1)  # rows that are walked over in parts
        for kind in ("max", "min", "sum", "logsumexp"):
            near = call(kind, many, 1, False)
            np.testing.assert_array_equal(np.isnan(near), np.isnan(call(kind, x, 1, False)))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", [65, 128, 311, 1000, 1025, 16_383])
def test_rows_in_pieces(kind: str, dtype: str, length: int) -> None:
    """Rows of every number of units, alone and four at once, of which the last program's begin early; with NaN and infinities."""
    rng = np.random.default_rng(length)
    for rows in (2, 67):
        x = rounded(rng.standard_normal((rows, length)), dtype)
        if kind == "prod":
            x = rounded(np.exp(x / 64), dtype)
        y, error = exact(kind, x, 1, False), bound(kind, x, 1, False)
        assert_near(call(kind, made("numpy", x, dtype), 1, False), y, error, dtype)
    places = rng.integers(0, length, rows)
    x[np.arange(rows), places] = np.nan
    x[::3] = rounded(rng.standard_normal((len(x[::3]), length)), dtype)
    found = numbers(call(kind, made("numpy", x, dtype), 1, False))
    assert np.array_equal(np.isnan(found), np.arange(rows) % 3 != 0)
    if kind in ("max", "min", "logsumexp"):
        x = np.full((4, length), -np.inf if kind != "min" else np.inf)
        x[1, length // 2], x[2, -1] = 3.0, -x[2, -1]
        found = numbers(call(kind, made("numpy", x, dtype), 1, False))
        assert np.array_equal(found, [x[0, 0], 3.0, x[2, -1], x[0, 0]])


@pytest.mark.parametrize("dtype", ["bool", "int8", "int32", "uint32", "int64", "float32"])
@pytest.mark.parametrize("length", [80, 133, 1024, 2000])
def test_integers_and_bools_of_rows_in_pieces(dtype: str, length: int) -> None:
    rng = np.random.default_rng(length)
    x = rng.integers(0, 100, (70, length)).astype(dtype)
    x[np.arange(70), rng.integers(0, length, 70)] = 0
    x[1::3] = np.zeros_like(x[1::3])
    x[2::3] = np.ones_like(x[2::3])
    x[4, length - 1] = 1
    assert np.array_equal(ops.all(x, 1), np.all(x, 1))
    assert np.array_equal(ops.any(x, 1), np.any(x, 1))
    for kind in ("sum", "max", "min"):
        assert np.array_equal(call(kind, x, 1, False), exact(kind, x, 1, False)), kind


@pytest.mark.own_route
def test_the_gradient_of_logsumexp_is_the_softmax_of_infinite_numbers_too() -> None:
    torch = pytest.importorskip("torch")
    x = torch.zeros((4, 300))
    x[0] = -math.inf
    x[1, 7] = -math.inf
    x[2, 7] = math.inf
    x[3, 7] = math.nan
    x.requires_grad_(True)
    (dx,) = torch.autograd.grad(ops.logsumexp(x, 1).sum(), x)
    (right,) = torch.autograd.grad(torch.logsumexp(x, 1).sum(), x)
    torch.testing.assert_close(dx, right, equal_nan=True)
    assert dx.isnan().sum(1).tolist() == [300, 0, 1, 300]


@pytest.mark.own_route
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(("value", "count"), [(1000.0, 1000), (60000.0, 3), (12.1, 30)])
def test_the_gradient_of_logsumexp_is_that_of_the_result_before_it_is_rounded(
    value: float, count: int, dtype: str
) -> None:
    torch = pytest.importorskip("torch")
    x = torch.full((2, count), value, dtype=getattr(torch, dtype), requires_grad=True)
    ops.logsumexp(x, 1).sum().backward()
    torch.testing.assert_close(x.grad.float(), torch.full((2, count), 1 / count), rtol=8e-3, atol=0)


@pytest.mark.own_route
@pytest.mark.parametrize("value", [6e4, 6e-8, 3.0])
def test_the_gradient_of_a_length_that_is_no_half(value: float) -> None:
    torch = pytest.importorskip("torch")
    x = torch.full((2, 2), value, dtype=torch.float16, requires_grad=True)
    ops.norm(x, 1).sum().backward()
    torch.testing.assert_close(x.grad.float(), torch.full((2, 2), 0.5**0.5), rtol=1e-3, atol=0)


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_empty_arrays(framework: str) -> None:
    for shape, axis in (((2, 0, 3), 1), ((0, 3), 1), ((0,), None), ((0, 3), 0)):
        x = made(framework, np.zeros(shape), "float32")
        for kind in ("sum", "prod", "all", "any", "mean", "logsumexp", "var"):
            with np.errstate(all="ignore"):
                right = {
                    "mean": np.full_like(np.zeros(shape).sum(axis), np.nan),
                    "var": np.full_like(np.zeros(shape).sum(axis), np.nan),
                    "logsumexp": np.log(np.zeros(shape).sum(axis)),
                }.get(kind)
            right = getattr(np, kind)(np.zeros(shape), axis) if right is None else right
            np.testing.assert_array_equal(numbers(getattr(ops, kind)(x, axis)), right)
    assert tuple(ops.max(made(framework, np.zeros((0, 3)), "float32"), 1).shape) == (0,)


def test_scalars_views_and_no_axes() -> None:
    assert ops.sum(np.array(3.0, np.float32)).item() == 3
    x = np.arange(60, dtype=np.float32).reshape(5, 12)
    np.testing.assert_array_equal(ops.sum(x[::-2, ::3].T, 1), x[::-2, ::3].T.sum(1))
    np.testing.assert_array_equal(ops.max(x, ()), x)


@pytest.mark.own_route
def test_compiled() -> None:
    torch = pytest.importorskip("torch")
    mx = pytest.importorskip("mlx.core")
    x = torch.randn(4, 6, requires_grad=True)

    def loss(x: Any) -> Any:
        return (ops.max(x, 1) * ops.logsumexp(x, 1) + ops.std(x, 1)).sum()

    y = torch.compile(loss, fullgraph=True, backend="aot_eager")(x)
    assert torch.equal(y, loss(x))
    assert torch.equal(torch.autograd.grad(y, x)[0], torch.autograd.grad(loss(x), x)[0])
    own = mx.array(x.detach().numpy())
    compiled = mx.compile(lambda a: ops.var(a, 0))
    assert mx.array_equal(compiled(own), ops.var(own, 0))


X = np.zeros((2, 3), np.float32)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ops.sum(X, 2), LaunchValueError, r"\[sum\] axis must be from -2 to 1 for 2 dimensions but is 2"),
        (lambda: ops.sum(X, (0, -2)), LaunchValueError, r"\[sum\] axis must name each axis once but is \(0, -2\)"),
        (lambda: ops.mean(X, "0"), LaunchTypeError, r"\[mean\] axis must be an integer, several or None but is '0'"),
        (lambda: ops.var(X.astype(np.int32)), LaunchValueError, r"\[var\] x must have dtype float16, bfloat16 or float32 but has dtype int32"),
        (lambda: ops.sum(X.astype(np.float64)), LaunchValueError, r"\[sum\] x must have dtype bool, .* but has dtype float64"),
        (lambda: ops.max(X[:0]), LaunchValueError, r"\[max\] x must have a number along axis None but has none: its shape is \(0, 3\)"),
        (lambda: ops.max(X[:0, :0], axis=1), LaunchValueError, r"a number along axis 1 but has none: its shape is \(0, 0\)"),
        (lambda: ops.norm(X, ord=3), LaunchValueError, r"\[norm\] ord must be 1, 2 or inf but is 3"),
        (lambda: ops.var(X, ddof=-1), LaunchValueError, r"\[var\] ddof must be at least 0 but is -1"),
        (lambda: ops.any([True]), LaunchTypeError, r"\[any\] x must be an array"),
    ],
)  # fmt: skip
def test_bad_arguments(call, error, message) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.own_route
@pytest.mark.parametrize(
    "kind", ["sum", "max", "var", "std", "logsumexp", "norm", "argmax", "argmin"]
)
def test_rows_across_2_to_the_31_elements(kind: str) -> None:
    """The first program's rows alone; no memory is taken for what it leaves out."""
    x = np.zeros((33, 2**26), np.float16)
    x[:, :4] = np.random.default_rng(1).standard_normal((33, 4))
    function = getattr(ops, kind)
    expected = function(x[:, :4], 0)
    with turned_grids(lambda kernel, grid: (1, 1)):
        found = function(x, 0)[:4]
    np.testing.assert_allclose(found, expected, rtol=2e-3)


@pytest.mark.own_route
def test_gradient_across_2_to_the_32_elements() -> None:
    """As many numbers of a row of rows as are 64 in 32 bits."""
    x = np.zeros((64, 2**26 + 1), np.float16)
    y, dy = (np.zeros(x.shape[1], np.float16) for _ in range(2))
    dy[:1024] = np.random.default_rng(1).standard_normal(1024)
    with turned_grids(lambda kernel, grid: (1,)):
        (dx,) = _reducing._gradient(x, y, dy, "sum", [0], 0.0)
    assert np.array_equal(dx[0, :1024], dy[:1024])


@pytest.mark.own_route  # MLX adds up in another order
@pytest.mark.parametrize("length", [1025, 4099, 16_384])
@pytest.mark.parametrize("rows", [2, 80])
@pytest.mark.parametrize("kind", ["far", "first", "growing", "equal"])
def test_variance_of_long_rows_whatever_their_numbers(kind: str, rows: int, length: int) -> None:
    """Distances are counted from a mean of each thread's first numbers, which may be unlike the others."""
    x = np.random.default_rng(length).normal(size=(rows, length))
    place = np.arange(length)
    if kind == "far":
        x += 1e4
    elif kind == "first":
        x = np.where(place < 512, 1e3 + x, x)
    elif kind == "growing":
        x += place
    else:
        x[:] = 3.3
    x = x.astype(np.float32)
    exact = x.astype(np.float64).var(1)
    np.testing.assert_allclose(np.asarray(ops.var(x, 1)), exact, rtol=1e-5, atol=1e-12)
    np.testing.assert_allclose(np.asarray(ops.std(x, 1)), np.sqrt(exact), rtol=1e-5, atol=1e-6)


@pytest.mark.own_check(reason="it wants the variance of equal numbers to be 0")
@pytest.mark.own_route  # MLX's graph has another order
@pytest.mark.parametrize("rows", [2, 80])
def test_variance_of_long_rows_whose_squares_overflow(rows: int) -> None:
    """It is infinite, as docstrings say, and NaN where a number is not finite."""
    x = np.random.default_rng(0).normal(size=(rows, 3000)).astype(np.float32)
    x *= np.float32(1e21)
    assert np.isposinf(np.asarray(ops.var(x, 1))).all()
    for number in (np.inf, -np.inf, np.nan):
        for place in (0, 700, 2999):
            x = np.ones((rows, 3000), np.float32)
            x[1, place] = number
            found = np.asarray(ops.var(x, 1))
            assert np.isnan(found[1])
            assert found[0] == 0
