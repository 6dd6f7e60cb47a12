"""triton_metal.ops.cross_entropy against float64, with its gradient."""

from __future__ import annotations

import numpy as np
import pytest
import triton_metal.ops as ops
from triton_metal.errors import LaunchTypeError, LaunchValueError

from _bounds import FLOAT32, accumulation
from ops_support import FLOATS, FRAMEWORKS, assert_near, gradients, made, rounded


class Exact:
    """The loss in float64, its gradient for dloss, and how far those in float32 may be off."""

    def __init__(self, x, labels, reduction="mean", smoothing=0.0, ignore=-100, dloss=1.0) -> None:
        classes = x.shape[-1]
        top = x.max(-1, keepdims=True)
        log_sum = (top + np.log(np.exp(x - top).sum(-1, keepdims=True)))[..., 0]
        used = labels != ignore
        place = np.where(used, labels, 0)[..., None].astype(np.int64)
        picked = np.take_along_axis(x, place, -1)[..., 0]
        target = (1 - smoothing) * picked + smoothing * x.mean(-1)
        loss = np.where(used, log_sum - target, 0.0)
        share = {"mean": 1 / max(1, used.sum())}.get(reduction, 1.0)
        size = np.abs(x).max(-1)
        error = accumulation(1.0, classes) + FLOAT32 * (20 + 8 * size)
        error = np.where(used, error + smoothing * accumulation(np.abs(x).mean(-1), classes), 0.0)
        if reduction == "none":
            self.loss, self.loss_bound = loss, error
        else:
            self.loss = np.asarray(loss.sum() * share)
            added = accumulation(np.abs(loss).sum(), loss.size) + error.sum()
            self.loss_bound = share * added + 3 * FLOAT32 * np.abs(self.loss)
        wanted = np.zeros_like(x) + smoothing / classes
        np.put_along_axis(wanted, place, smoothing / classes + 1 - smoothing, -1)
        p = np.exp(x - log_sum[..., None])
        each = np.broadcast_to(np.asarray(dloss, np.float64) * share, labels.shape)[..., None]
        self.dx = np.where(used[..., None], (p - wanted) * each, 0.0)
        off = p * (error + FLOAT32 * (8 + 4 * size))[..., None] + 4 * FLOAT32 * (p + wanted)
        self.dx_bound = np.abs(each) * off


def operands(shape: tuple, dtype: str = "float32", ignored: float = 0.2) -> tuple:
    rng = np.random.default_rng(3)
    x = rounded(rng.standard_normal(shape) * 3, dtype)
    labels = rng.integers(0, shape[-1], shape[:-1])
    return x, np.where(rng.random(shape[:-1]) < ignored, -100, labels), rng


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_forward_and_gradient(framework: str, dtype: str, reduction: str, smoothing: float) -> None:
    x, labels, rng = operands((2, 5, 37), dtype)
    dloss = rounded(rng.standard_normal((2, 5) if reduction == "none" else ()), "float32")
    exact = Exact(x, labels, reduction, smoothing, dloss=dloss)
    places = made(framework, labels, "int32" if framework == "mlx" else "int64")
    options = {"reduction": reduction, "label_smoothing": smoothing}
    logits = made(framework, x, dtype)
    found = ops.cross_entropy(logits, places, **options)
    assert_near(found, exact.loss, exact.loss_bound, "float32")
    if framework != "numpy":
        function = lambda a: ops.cross_entropy(a, places, **options)  # noqa: E731
        (dx,) = gradients(framework, function, [logits], dloss)
        assert_near(dx, exact.dx, exact.dx_bound, dtype)


@pytest.mark.parametrize("shape", [(1,), (7, 1), (4, 1024), (3, 20_011), (2000, 3), (0, 4)])
def test_shapes(shape: tuple) -> None:
    x, labels, _ = operands(shape)
    options = {"reduction": "sum", "label_smoothing": 0.25}
    exact = Exact(x, labels, "sum", 0.25)
    found = ops.cross_entropy(x.astype(np.float32), np.asarray(labels), **options)
    assert_near(found, exact.loss, exact.loss_bound, "float32")


@pytest.mark.own_route
@pytest.mark.parametrize("shape", [(3, 2050), (5,), (0, 4)])
def test_gradients_of_long_and_empty_rows(shape: tuple) -> None:
    x, labels, _ = operands(shape, ignored=0)
    exact = Exact(x, labels)
    places = made("torch", labels, "int64")
    (dx,) = gradients(
        "torch",
        lambda a: ops.cross_entropy(a, places),
        [made("torch", x, "float32")],
        np.array(1.0),
    )
    assert_near(dx, exact.dx, exact.dx_bound, "float32")


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "uint8", "uint16", "uint32"])
def test_dtypes_of_labels(dtype: str) -> None:
    x, labels, _ = operands((6, 9), ignored=0)
    exact = Exact(x, labels, ignore=2)
    found = ops.cross_entropy(x.astype(np.float32), labels.astype(dtype), ignore_index=2)
    assert_near(found, exact.loss, exact.loss_bound, "float32")


@pytest.mark.parametrize("length", [40, 20_000])
def test_special_values(length: int) -> None:
    x = np.zeros((5, length), np.float32)
    x[0, 3], x[1, 3], x[2], x[3, 1:], x[4] = np.nan, np.inf, -np.inf, -np.inf, 3e38
    found = ops.cross_entropy(x, np.zeros(5, np.int64), reduction="none")
    assert np.isnan(found[:3]).all()
    assert abs(found[3]) < 2e-6
    # Next to 3e38 no logarithm of the length is left.
    assert found[4] == 0
    assert ops.cross_entropy(x[3:4], np.ones(1, np.int64)) == np.inf
    assert np.isnan(ops.cross_entropy(x[3:], np.full(2, -100)))
    assert ops.cross_entropy(x, np.full(5, -100), reduction="sum") == 0
    assert ops.cross_entropy(np.zeros((2, 0), np.float32), np.full(2, -100), reduction="sum") == 0


def test_smoothed_labels_of_classes_that_cannot_be() -> None:
    """The loss is infinite: no NaN comes of the label's -inf less that of the mean."""
    x = np.array([[0, -np.inf, 1], [0, 1, 2]], np.float32)
    options = {"label_smoothing": 0.1, "reduction": "none"}
    for labels in ([1, 0], [0, 0]):
        found = ops.cross_entropy(x, np.array(labels), **options)
        assert found[0] == np.inf
        assert np.isfinite(found[1])
    hidden, weight = np.array([[3e38], [1]], np.float32), np.array([[0], [-3e38]], np.float32)
    found = ops.linear_cross_entropy(hidden, weight, np.array([1, 0]), **options)
    assert found[0] == np.inf


@pytest.mark.own_route
def test_labels_out_of_range_give_nan_where_the_host_does_not_see_them() -> None:
    mx = pytest.importorskip("mlx.core")
    logits, labels = mx.zeros((3, 4)), mx.array([1, 4, -1])
    losses = np.array(ops.cross_entropy(logits, labels, reduction="none"))
    assert np.isnan(losses).tolist() == [False, True, True]
    gradient = mx.grad(lambda a: ops.cross_entropy(a, labels, reduction="sum"))(logits)
    assert np.isnan(np.array(gradient)).all(1).tolist() == [False, True, True]


@pytest.mark.own_route
def test_torch_compile_keeps_the_operator() -> None:
    torch = pytest.importorskip("torch")
    x, labels, _ = operands((4, 20))
    exact = Exact(x, labels, dloss=2.0)
    places = made("torch", labels, "int64")
    compiled = torch.compile(
        lambda a: ops.cross_entropy(a * 1.0, places) * 2.0, fullgraph=True, backend="aot_eager"
    )
    (dx,) = gradients("torch", compiled, [made("torch", x, "float32")], np.array(1.0))
    assert_near(dx, exact.dx, exact.dx_bound, "float32")


@pytest.mark.own_route
def test_mlx_compile() -> None:
    mx = pytest.importorskip("mlx.core")
    x, labels, _ = operands((4, 20))
    exact = Exact(x, labels)
    step = mx.compile(mx.value_and_grad(ops.cross_entropy))
    loss, dx = step(made("mlx", x, "float32"), made("mlx", labels, "int32"))
    assert_near(loss, exact.loss, exact.loss_bound, "float32")
    assert_near(dx, exact.dx, exact.dx_bound, "float32")


def test_views_are_read_in_their_order() -> None:
    x, _, rng = operands((20, 30))
    x, labels = x.astype(np.float32), rng.integers(0, 15, 60)
    for view in (x.T[:, :15], x[::2, 1::2], x[::-1, :15]):
        places = labels[::-2][: len(view)]
        exact = Exact(view.astype(np.float64), places)
        assert_near(ops.cross_entropy(view, places), exact.loss, exact.loss_bound, "float32")


X, LABELS = np.zeros((2, 3), np.float32), np.zeros(2, np.int32)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ops.cross_entropy(LABELS, LABELS), LaunchValueError, r"\[cross_entropy\] logits must have dtype float16, bfloat16 or float32 but has dtype int32"),
        (lambda: ops.cross_entropy(X, X[:, 0]), LaunchValueError, r"labels must have dtype int8, .* or uint32 but has dtype float32"),
        (lambda: ops.cross_entropy(X, LABELS[:1]), LaunchValueError, r"labels must have shape \(2,\), that of logits without its last axis, but has shape \(1,\)"),
        (lambda: ops.cross_entropy(X, LABELS, reduction="avg"), LaunchValueError, r"reduction must be 'mean', 'sum' or 'none' but is 'avg'"),
        (lambda: ops.cross_entropy(X, LABELS, label_smoothing=1.5), LaunchValueError, r"label_smoothing must be at least 0 and at most 1 but is 1.5"),
        (lambda: ops.cross_entropy(X, LABELS, ignore_index=None), LaunchTypeError, r"ignore_index must be an integer but is None"),
        (lambda: ops.cross_entropy(X, np.array([1, 3])), LaunchValueError, r"\[cross_entropy\] labels must be from 0 to 2, or -100 to be ignored, but is 3 at \(1,\)"),
        (lambda: ops.cross_entropy(X, np.array([-1, 0])), LaunchValueError, r"but is -1 at \(0,\)"),
        (lambda: ops.cross_entropy(X, [0, 1]), LaunchTypeError, r"labels must be an array of NumPy, MLX or PyTorch but is a list"),
        (lambda: ops.cross_entropy(made("torch", X, "float32"), made("torch", [0, 3], "int64")), LaunchValueError, r"but is 3 at \(1,\)"),
    ],
)  # fmt: skip
def test_bad_arguments(call, error, message) -> None:
    with pytest.raises(error, match=message):
        call()
