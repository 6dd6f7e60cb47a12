"""triton_metal.ops.layer_norm and rms_norm against float64, with their gradients."""

from __future__ import annotations

import numpy as np
import pytest
import triton_metal.ops as ops
from triton_metal.errors import LaunchTypeError, LaunchValueError

from _bounds import FLOAT32, FUNCTION_ULPS, SMALLEST, UNIT_ROUNDOFF, accumulation
from ops_support import FLOATS, FRAMEWORKS, assert_near, gradients, made, numbers, rounded

EPS = 1e-5
NORMS = {"layer_norm": True, "rms_norm": False}
SHAPES = ((3, 37), (5,), (2, 3, 64), (2, 1), (1, 1025), (0, 4), (3, 0), (9, 2, 5), (2, 16_500))


class Exact:
    """A norm in float64, its gradients for dy, and how far those in float32 may be off."""

    def __init__(self, x, weight, bias, dy, centre: bool, dtype="float32") -> None:
        n, eps = max(x.shape[-1], 1), EPS
        mean = lambda v: v.sum(-1, keepdims=True) / n  # noqa: E731
        centred = x - mean(x) if centre else x
        variance = mean(centred**2)
        scale = 1 / np.sqrt(variance + eps)
        normalised = centred * scale
        w = np.ones(x.shape[-1]) if weight is None else weight
        b = np.zeros(x.shape[-1]) if bias is None else bias
        self.y = normalised * w + b
        off = accumulation(mean(np.abs(x)), n + 1) if centre else 0.0
        relative = accumulation(1.0, n + 5 + FUNCTION_ULPS)
        relative = relative + off * (2 * np.sqrt(variance) + off) / (variance + eps)
        width = np.abs(normalised)
        wrong = width * (relative + 4 * FLOAT32) + scale * off * (1 + relative)
        # Of the normalised row, the product and the sum, each in the dtype of the weights.
        steps = FLOAT32 if weight is None else UNIT_ROUNDOFF[dtype]
        steps *= 2 * np.abs(normalised * w) + np.abs(self.y)
        self.y_bound = np.abs(w) * wrong + 1.01 * steps + 3 * FLOAT32 * np.abs(b)
        if weight is not None:
            self.y_bound += SMALLEST[dtype] * (1 + np.abs(w))
        rows = tuple(range(x.ndim - 1))
        count = max(1, x.size // n)
        g = dy * w
        self.dx = (g - (mean(g) if centre else 0) - normalised * mean(g * normalised)) * scale
        part, product = mean(np.abs(g)) if centre else 0.0, mean(np.abs(g) * width)
        inner = 6 * FLOAT32 * np.abs(g) + accumulation(part, n + 3)
        inner = inner + width * (accumulation(product, n + 3) + mean(np.abs(g) * wrong))
        inner = inner + 2 * wrong * product
        total = np.abs(g) + part + width * product
        self.dx_bound = scale * (inner + total * (relative + 6 * FLOAT32))
        self.dweight, self.dbias = (dy * normalised).sum(rows), dy.sum(rows)
        magnitude = np.abs(dy)
        self.dweight_bound = (magnitude * wrong).sum(rows)
        self.dweight_bound += accumulation((magnitude * width).sum(rows), count + 1)
        self.dbias_bound = accumulation(magnitude.sum(rows), count)


def operands(shape: tuple, dtype: str, seed: int = 7) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    shapes = (shape, shape[-1:], shape[-1:], shape)
    return [rounded(rng.standard_normal(each) + 0.5, dtype) for each in shapes]


@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("shape", [(3, 37), (2, 3, 64), (0, 4), (3, 0)])
def test_forward_and_gradients(shape: tuple, framework: str, dtype: str, name: str) -> None:
    x, weight, bias, dy = operands(shape, dtype)
    exact = Exact(x, weight, bias, dy, NORMS[name], dtype)
    function = getattr(ops, name)
    arrays = [made(framework, each, dtype) for each in (x, weight, bias)]
    assert_near(function(*arrays), exact.y, exact.y_bound, dtype)
    if framework == "numpy":
        return
    dx, dweight, dbias = gradients(framework, function, arrays, dy)
    assert_near(dx, exact.dx, exact.dx_bound, dtype)
    assert_near(dweight, exact.dweight, exact.dweight_bound, dtype)
    assert_near(dbias, exact.dbias, exact.dbias_bound, dtype)


@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(shape: tuple, name: str) -> None:
    x, weight, _, dy = operands(shape, "float32")
    exact = Exact(x, weight, None, dy, NORMS[name])
    found = getattr(ops, name)(*(made("numpy", each, "float32") for each in (x, weight)))
    assert_near(found, exact.y, exact.y_bound, "float32")


@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("columns", [65, 80, 128, 133, 311, 768, 1021, 2514, 5000, 16_383])
def test_rows_in_pieces(columns: int, dtype: str, name: str) -> None:
    """Rows of every number of units, with a residual and without."""
    x, weight, bias, dy = operands((3, columns), dtype)
    exact = Exact(x, weight, bias, dy, NORMS[name], dtype)
    arrays = [made("numpy", each, dtype) for each in (x, weight, bias)]
    assert_near(getattr(ops, name)(*arrays), exact.y, exact.y_bound, dtype)
    check_residual((3, columns), "numpy", dtype, name)


@pytest.mark.own_route
@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize("shape", [(2, 16_500), (3, 9_001), (34, 5_000), (1300, 3), (1, 1), (5,)])
def test_gradients_of_long_and_of_many_rows(shape: tuple, name: str) -> None:
    x, weight, bias, dy = operands(shape, "float32")
    exact = Exact(x, weight, bias, dy, NORMS[name])
    arrays = [made("torch", each, "float32") for each in (x, weight, bias)]
    dx, dweight, dbias = gradients("torch", getattr(ops, name), arrays, dy)
    assert_near(dx, exact.dx, exact.dx_bound, "float32")
    assert_near(dweight, exact.dweight, exact.dweight_bound, "float32")
    assert_near(dbias, exact.dbias, exact.dbias_bound, "float32")


@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_residual_is_added_first(framework: str, dtype: str, name: str) -> None:
    check_residual((4, 33), framework, dtype, name)


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("columns", [5000, 9001, 16_400])
def test_residual_of_long_rows(columns: int, framework: str) -> None:
    check_residual((2, columns), framework, "float16", "layer_norm")


def check_residual(shape: tuple, framework: str, dtype: str, name: str) -> None:
    x, weight, _, dy = operands(shape, dtype)
    residual, _, _, dtotal = operands(shape, dtype, seed=8)
    total = rounded(x + residual, dtype)
    exact = Exact(total, weight, None, dy, NORMS[name], dtype)
    function = getattr(ops, name)
    arrays = [made(framework, each, dtype) for each in (x, residual, weight)]
    y, found = function(arrays[0], arrays[2], residual=arrays[1])
    assert np.array_equal(numbers(found), total)
    assert_near(y, exact.y, exact.y_bound, dtype)
    if framework == "numpy":
        return

    def of_both(x, residual, weight):
        y, total = function(x, weight, residual=residual)
        return y * made(framework, dy, dtype) + total * made(framework, dtotal, dtype)

    dx, dresidual, dweight = gradients(framework, of_both, arrays, np.ones_like(x))
    for each in (dx, dresidual):
        assert_near(each, exact.dx + dtotal, exact.dx_bound + 2 * FLOAT32 * np.abs(dtotal), dtype)
    assert_near(dweight, exact.dweight, exact.dweight_bound, dtype)
    # One result alone.
    for which, wanted, bound in ((0, exact.dx, exact.dx_bound), (1, dtotal, 0.0)):
        weights = (dy, dtotal)[which]
        alone = lambda *a: function(a[0], a[2], residual=a[1])[which]  # noqa: E731
        if framework == "torch":
            arrays = [each.detach() for each in arrays]
            arrays[0].requires_grad_(True)
            (dx,) = __import__("torch").autograd.grad(
                alone(*arrays), arrays[:1], made("torch", weights, dtype)
            )
        else:
            dx = gradients(framework, alone, arrays, weights)[0]
        assert_near(dx, wanted, bound, dtype)


@pytest.mark.own_route
def test_weights_of_another_dtype() -> None:
    x, weight, bias, dy = operands((5, 12), "float16")
    exact = Exact(x, weight, bias, dy, True)
    for framework in ("mlx", "torch"):
        arrays = [made(framework, x, "float16")]
        arrays += [made(framework, each, "float32") for each in (weight, bias)]
        assert_near(ops.layer_norm(*arrays), exact.y, exact.y_bound, "float16")
        dx, dweight, dbias = gradients(framework, ops.layer_norm, arrays, dy)
        assert_near(dx, exact.dx, exact.dx_bound, "float16")
        assert_near(dweight, exact.dweight, exact.dweight_bound, "float32")
        assert_near(dbias, exact.dbias, exact.dbias_bound, "float32")


@pytest.mark.own_route
def test_gradients_are_the_same_every_time() -> None:
    x, weight, bias, dy = operands((300, 40), "float32")
    found = []
    for _ in range(2):
        arrays = [made("torch", each, "float32") for each in (x, weight, bias)]
        found.append([numbers(g) for g in gradients("torch", ops.layer_norm, arrays, dy)])
    assert all(np.array_equal(a, b) for a, b in zip(*found, strict=True))


@pytest.mark.own_route
def test_torch_compile_keeps_the_operators() -> None:
    torch = pytest.importorskip("torch")
    x, weight, bias, dy = operands((4, 20), "float32")
    exact = Exact(x, weight, bias, dy, True)

    def block(x, weight, bias):
        y, total = ops.layer_norm(x * 1.0, weight, bias, residual=torch.zeros_like(x))
        return ops.rms_norm(y, weight) * 0.0 + y + 0.0 * total

    compiled = torch.compile(block, fullgraph=True, backend="aot_eager")
    arrays = [made("torch", each, "float32") for each in (x, weight, bias)]
    found = gradients("torch", compiled, arrays, dy)
    assert_near(found[0], exact.dx, 1.1 * exact.dx_bound + 1e-7, "float32")
    assert_near(found[1], exact.dweight, 1.1 * exact.dweight_bound + 1e-7, "float32")


@pytest.mark.own_route
def test_mlx_compile_and_vectors_of_gradients() -> None:
    mx = pytest.importorskip("mlx.core")
    x, weight, bias, dy = operands((4, 20), "float32")
    exact = Exact(x, weight, bias, dy, False)
    arrays = [made("mlx", each, "float32") for each in (x, weight, bias)]
    assert_near(mx.compile(ops.rms_norm)(*arrays), exact.y, exact.y_bound, "float32")
    step = mx.compile(
        mx.grad(lambda *a: (ops.rms_norm(*a) * made("mlx", dy, "float32")).sum(), argnums=(0, 1, 2))
    )
    dx, dweight, dbias = step(*arrays)
    assert_near(dx, exact.dx, exact.dx_bound, "float32")
    assert_near(dweight, exact.dweight, exact.dweight_bound, "float32")
    assert_near(dbias, exact.dbias, exact.dbias_bound, "float32")


@pytest.mark.parametrize("name", NORMS)
def test_special_values(name: str) -> None:
    x = np.ones((4, 40), np.float32)
    x[0, 3], x[1, 3], x[2] = np.nan, np.inf, 0.0
    with np.errstate(invalid="ignore"):
        y = Exact(x.astype(np.float64), None, None, np.zeros((4, 40)), NORMS[name]).y
    assert_near(getattr(ops, name)(x), y, 1e-6, "float32")
    if name == "layer_norm":
        assert np.array_equal(ops.layer_norm(x, eps=0.0)[2:], np.full((2, 40), np.nan), True)


def test_views_are_read_in_their_order() -> None:
    x = np.random.default_rng(2).standard_normal((20, 30)).astype(np.float32)
    weight = np.arange(60, dtype=np.float32)
    for view in (x.T, x[::2, 1::3], x[::-1]):
        w = weight[::-1][: view.shape[1]]
        wide = view.astype(np.float64)
        exact = Exact(wide, w.astype(np.float64), None, np.zeros(view.shape), True)
        assert_near(ops.layer_norm(view, w), exact.y, exact.y_bound, "float32")


X = np.zeros((2, 3), np.float32)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ops.layer_norm(X.astype(np.int32)), LaunchValueError, r"\[layer_norm\] x must have dtype float16, bfloat16 or float32 but has dtype int32"),
        (lambda: ops.rms_norm(X, np.zeros(2, np.float32)), LaunchValueError, r"\[rms_norm\] weight must have shape \(3,\), the last axis of x, but has shape \(2,\)"),
        (lambda: ops.layer_norm(X, None, np.zeros((1, 3), np.float32)), LaunchValueError, r"\[layer_norm\] bias must have shape \(3,\)"),
        (lambda: ops.layer_norm(X, residual=X[:1]), LaunchValueError, r"residual must have shape \(2, 3\), that of x, but has shape \(1, 3\)"),
        (lambda: ops.rms_norm(X, residual=X.astype(np.float16)), LaunchValueError, r"residual must have the dtype of x, float32, but has dtype float16"),
        (lambda: ops.rms_norm(X, eps=-1.0), LaunchValueError, r"eps must be at least 0 but is -1"),
        (lambda: ops.rms_norm(X, eps="1"), LaunchTypeError, r"eps must be a number"),
        (lambda: ops.rms_norm(X, [1.0, 1.0, 1.0]), LaunchTypeError, r"weight must be an array of NumPy, MLX or PyTorch but is a list"),
        (lambda: ops.rms_norm(np.zeros((), np.float32)), LaunchValueError, r"x must have 1 to"),
        (lambda: ops.layer_norm(X, made("torch", [1, 1, 1], "float32")), LaunchTypeError, r"weight must be a NumPy array, as x is, but is a PyTorch tensor"),
    ],
)  # fmt: skip
def test_bad_arguments(call, error, message) -> None:
    with pytest.raises(error, match=message):
        call()
