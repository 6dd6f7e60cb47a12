"""triton_metal.ops.linear_cross_entropy against float64, with its gradients."""

from __future__ import annotations

import numpy as np
import pytest
import triton_metal.ops as ops
from triton_metal.errors import LaunchValueError
from triton_metal.ops import linear_cross_entropies

from _bounds import FLOAT32, UNIT_ROUNDOFF, accumulation
from ops_support import FLOATS, FRAMEWORKS, assert_near, gradients, made, numbers, rounded


class Exact:
    """The loss in float64, its gradients for dloss, and how far those in float32 may be off."""

    def __init__(
        self, hidden, weight, labels, reduction, dtype, smoothing=0.0, ignore=-100, dloss=1.0
    ) -> None:
        (n_rows, width), classes = hidden.shape, len(weight)
        x = hidden @ weight.T
        top = x.max(1, keepdims=True)
        log_sum = top + np.log(np.exp(x - top).sum(1, keepdims=True))
        used = labels != ignore
        wanted = np.full(x.shape, smoothing / classes)
        wanted[np.arange(n_rows), np.where(used, labels, 0)] += 1 - smoothing
        loss = np.where(used, log_sum[:, 0] - (wanted * x).sum(1), 0.0)
        share = {"mean": 1 / max(1, used.sum())}.get(reduction, 1.0)
        size = np.abs(x).max(1, initial=0, keepdims=True)
        logit = accumulation(np.abs(hidden) @ np.abs(weight).T, width).max(1, keepdims=True)
        error = 2 * logit + accumulation(1.0, classes) + FLOAT32 * (20 + 8 * size)
        error += smoothing * accumulation(size, classes)
        row_error = np.where(used, error[:, 0], 0.0)
        if reduction == "none":
            self.loss, self.loss_bound = loss, row_error
        else:
            self.loss = np.asarray(loss.sum() * share)
            added = accumulation(np.abs(loss).sum(), n_rows) + row_error.sum()
            self.loss_bound = share * added + 3 * FLOAT32 * np.abs(self.loss)
        p = np.exp(x - log_sum)
        each = np.broadcast_to(np.asarray(dloss, np.float64) * share, labels.shape)[:, None]
        d = np.where(used[:, None], (p - wanted) * each, 0.0)
        off = p * (error + logit) + 4 * FLOAT32 * (p + wanted)
        # Stored in the dtype; numbers below its normal ones have an error of their own, before the share.
        tiny = {"float16": 2.0**-25}.get(dtype, 0.0)
        off = np.abs(each) * off + UNIT_ROUNDOFF[dtype] * np.abs(d)
        off += tiny * (share if reduction != "none" else 1.0)
        self.dhidden, self.dweight = d @ weight, d.T @ hidden
        a, h, w = np.abs(d), np.abs(hidden), np.abs(weight)
        self.dhidden_bound = off @ w + accumulation(a @ w, classes + 4)
        self.dweight_bound = off.T @ h + accumulation(a.T @ h, n_rows + 4)


def operands(n_rows: int, width: int, classes: int, dtype: str = "float32", ignored=0.2) -> tuple:
    rng = np.random.default_rng(5)
    hidden, weight = (rounded(rng.standard_normal((n, width)), dtype) for n in (n_rows, classes))
    labels = rng.integers(0, classes, n_rows)
    return hidden, weight, np.where(rng.random(n_rows) < ignored, -100, labels), rng


@pytest.mark.parametrize(("reduction", "smoothing"), [("mean", 0.0), ("none", 0.1), ("sum", 0.1)])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_forward_and_gradients(
    framework: str, dtype: str, reduction: str, smoothing: float
) -> None:
    hidden, weight, labels, rng = operands(9, 20, 70, dtype)
    dloss = rounded(rng.standard_normal(9 if reduction == "none" else ()), "float32")
    exact = Exact(hidden, weight, labels, reduction, dtype, smoothing, dloss=dloss)
    places = made(framework, labels, "int32")
    options = {"reduction": reduction, "label_smoothing": smoothing}
    arrays = [made(framework, each, dtype) for each in (hidden, weight)]
    found = ops.linear_cross_entropy(*arrays, places, **options)
    assert_near(found, exact.loss, exact.loss_bound, "float32")
    if framework != "numpy":
        function = lambda *a: ops.linear_cross_entropy(*a, places, **options)  # noqa: E731
        dhidden, dweight = gradients(framework, function, arrays, dloss)
        assert_near(dhidden, exact.dhidden, exact.dhidden_bound, dtype)
        assert_near(dweight, exact.dweight, exact.dweight_bound, dtype)


SIZES = [(1, 1, 1), (70, 33, 2), (3, 65, 130), (0, 4, 5), (4, 0, 5), (2, 5, 700)]


@pytest.mark.parametrize("sizes", SIZES)
def test_sizes(sizes: tuple) -> None:
    hidden, weight, labels, _ = operands(*sizes)
    exact = Exact(hidden, weight, labels, "sum", "float32", 0.2)
    options = {"reduction": "sum", "label_smoothing": 0.2}
    arrays = [made("numpy", each, "float32") for each in (hidden, weight)]
    found = ops.linear_cross_entropy(*arrays, labels, **options)
    assert_near(found, exact.loss, exact.loss_bound, "float32")


@pytest.mark.own_route
@pytest.mark.parametrize("sizes", SIZES)
def test_gradients_of_sizes(sizes: tuple) -> None:
    hidden, weight, labels, _ = operands(*sizes)
    exact = Exact(hidden, weight, labels, "sum", "float32")
    places = made("torch", labels, "int64")
    function = lambda *a: ops.linear_cross_entropy(*a, places, reduction="sum")  # noqa: E731
    arrays = [made("torch", each, "float32") for each in (hidden, weight)]
    dhidden, dweight = gradients("torch", function, arrays, np.array(1.0))
    assert_near(dhidden, exact.dhidden, exact.dhidden_bound, "float32")
    assert_near(dweight, exact.dweight, exact.dweight_bound, "float32")


@pytest.mark.own_route
@pytest.mark.parametrize("framework", ["mlx", "torch"])
def test_classes_are_taken_in_chunks(framework: str, monkeypatch) -> None:
    shapes = []
    launch = linear_cross_entropies.launch

    def watched(kernel, grid, outputs, **arguments):
        shapes.extend(shape for shape, _ in outputs.values())
        return launch(kernel, grid, outputs, **arguments)

    monkeypatch.setattr(linear_cross_entropies, "launch", watched)
    monkeypatch.setattr(linear_cross_entropies, "CHUNK", 70 * 64)
    monkeypatch.setattr(linear_cross_entropies, "LEAST", 64)
    hidden, weight, labels, _ = operands(70, 12, 200)
    exact = Exact(hidden, weight, labels, "mean", "float32")
    places = made(framework, labels, "int32")
    arrays = [made(framework, each, "float32") for each in (hidden, weight)]
    function = lambda *a: ops.linear_cross_entropy(*a, places)  # noqa: E731
    dhidden, dweight = gradients(framework, function, arrays, np.array(1.0))
    assert_near(dhidden, exact.dhidden, exact.dhidden_bound, "float32")
    assert_near(dweight, exact.dweight, exact.dweight_bound, "float32")
    assert shapes.count((70, 64)) == 3
    assert max(np.prod(shape) for shape in shapes) == 70 * 64


@pytest.mark.own_route
@pytest.mark.parametrize("which", ["hidden", "weight"])
def test_one_gradient_alone(which: str) -> None:
    torch = pytest.importorskip("torch")
    hidden, weight, labels, _ = operands(5, 6, 7)
    exact = Exact(hidden, weight, labels, "mean", "float32")
    arrays = {
        "hidden": made("torch", hidden, "float32"),
        "weight": made("torch", weight, "float32"),
    }
    arrays[which].requires_grad_(True)
    loss = ops.linear_cross_entropy(**arrays, labels=made("torch", labels, "int64"))
    (found,) = torch.autograd.grad(loss, arrays[which])
    assert_near(found, getattr(exact, f"d{which}"), getattr(exact, f"d{which}_bound"), "float32")


@pytest.mark.own_route
def test_torch_compile_and_mlx_compile() -> None:
    torch, mx = pytest.importorskip("torch"), pytest.importorskip("mlx.core")
    hidden, weight, labels, _ = operands(5, 6, 7)
    exact = Exact(hidden, weight, labels, "mean", "float32")
    places = made("torch", labels, "int64")
    compiled = torch.compile(
        lambda *a: ops.linear_cross_entropy(*a, places), fullgraph=True, backend="aot_eager"
    )
    arrays = [made("torch", each, "float32") for each in (hidden, weight)]
    found = gradients("torch", compiled, arrays, np.array(1.0))
    step = mx.compile(mx.grad(ops.linear_cross_entropy, argnums=(0, 1)))
    arrays = [made("mlx", each, "float32") for each in (hidden, weight)]
    for dhidden, dweight in (found, step(*arrays, made("mlx", labels, "int32"))):
        assert_near(dhidden, exact.dhidden, exact.dhidden_bound, "float32")
        assert_near(dweight, exact.dweight, exact.dweight_bound, "float32")


@pytest.mark.own_route
def test_special_values_and_labels_out_of_range() -> None:
    mx = pytest.importorskip("mlx.core")
    weight = mx.array(np.eye(4, 3, dtype=np.float32))
    hidden = np.zeros((5, 3), np.float32)
    hidden[1, 1], hidden[2, 2] = np.nan, 1e30
    labels = mx.array([0, 0, 2, 4, -1])
    losses = ops.linear_cross_entropy(mx.array(hidden), weight, labels, reduction="none")
    assert np.isnan(numbers(losses)).tolist() == [False, True, False, True, True]
    assert numbers(losses)[2] == 0
    views = (hidden[:3, ::-1][::2], np.asfortranarray(np.eye(4, 3, dtype=np.float32))[::-1])
    found = ops.linear_cross_entropy(*views, np.array([3, 1]), reduction="none")
    exact = Exact(*(v.astype(np.float64) for v in views), np.array([3, 1]), "none", "float32")
    assert_near(found, exact.loss, exact.loss_bound + 1e-6 * np.abs(exact.loss), "float32")


@pytest.mark.own_route
@pytest.mark.parametrize("dtype", FLOATS)
def test_gradients_of_losses_far_apart(dtype: str) -> None:
    """No number that is stored on the way overflows in 16 bits or falls below what they have, where the result does not."""
    hidden, weight, labels, rng = operands(9, 20, 70, dtype, ignored=0.0)
    hidden, weight = (rounded(each * 2.0**-7, dtype) for each in (hidden, weight))
    places = made("torch", labels, "int64")
    function = lambda *a: ops.linear_cross_entropy(*a, places, reduction="none")  # noqa: E731
    arrays = [made("torch", each, dtype) for each in (hidden, weight)]
    for scale in (2.0**19, 2.0**-20 if dtype == "float16" else 2.0**-60):
        if scale < 1:
            hidden, weight = (each * 2.0**13 for each in (hidden, weight))
            arrays = [made("torch", each, dtype) for each in (hidden, weight)]
            labels = np.argmin(hidden @ weight.T, 1)  # whose probabilities are nearly 0
            places = made("torch", labels, "int64")
        dloss = rounded(rng.standard_normal(9) * scale, "float32")
        exact = Exact(hidden, weight, labels, "none", dtype, dloss=dloss)
        small = {"float16": 2.0**-24}.get(dtype, 0.0) * abs(dloss).max()
        dhidden, dweight = gradients("torch", function, arrays, dloss)
        assert_near(
            dhidden, exact.dhidden, exact.dhidden_bound + small * np.abs(weight).sum(0), dtype
        )
        assert_near(
            dweight, exact.dweight, exact.dweight_bound + small * np.abs(hidden).sum(0), dtype
        )


@pytest.mark.parametrize("rows", [0, 3])
@pytest.mark.parametrize("framework", [each for each in FRAMEWORKS if each != "numpy"])
def test_the_mean_of_no_losses_has_gradients_of_zero(framework: str, rows: int) -> None:
    """The mean is NaN, and its labels are all ignored (or there are none), whose gradients are 0."""
    hidden, weight, _, _ = operands(rows, 20, 70)
    places = made(framework, np.full(rows, -100), "int32")
    arrays = [made(framework, each, "float32") for each in (hidden, weight)]
    function = lambda *a: ops.linear_cross_entropy(*a, places)  # noqa: E731
    assert np.isnan(numbers(function(*arrays)))
    for found in gradients(framework, function, arrays, np.ones(())):
        assert not numbers(found).any()


@pytest.mark.own_route
def test_gradients_that_are_not_finite() -> None:
    """A loss whose gradient is NaN or infinite spoils its row of the hidden states' gradient, and no other."""
    hidden, weight, _, _ = operands(4, 5, 6)
    places = made("torch", np.arange(4), "int64")
    function = lambda *a: ops.linear_cross_entropy(*a, places, reduction="none")  # noqa: E731
    arrays = [made("torch", each, "float32") for each in (hidden, weight)]
    dloss = np.array([1.0, np.nan, 0.0, np.inf])
    dhidden, dweight = gradients("torch", function, arrays, dloss)
    assert np.isfinite(numbers(dhidden)).all(1).tolist() == [True, False, True, False]
    assert not numbers(dhidden)[2].any()
    assert not np.isfinite(numbers(dweight)).any()


H, W, LABELS = np.zeros((2, 3), np.float32), np.zeros((4, 3), np.float32), np.zeros(2, np.int32)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ops.linear_cross_entropy(H, W[:, :2], LABELS), r"\[linear_cross_entropy\] weight must have shape \(4, 3\) \(classes, width\), the width that of hidden, but has shape \(4, 2\)"),
        (lambda: ops.linear_cross_entropy(H, W.astype(np.float16), LABELS), r"weight must have the dtype of hidden, float32, but has dtype float16"),
        (lambda: ops.linear_cross_entropy(H[None], W, LABELS), r"hidden must have 2 dimensions but has 3"),
        (lambda: ops.linear_cross_entropy(H, W[:0], LABELS), r"weight must have at least one class but has shape \(0, 3\)"),
        (lambda: ops.linear_cross_entropy(H, W, LABELS[:1]), r"labels must have shape \(2,\), one label for each row of hidden, but has shape \(1,\)"),
        (lambda: ops.linear_cross_entropy(H, W, LABELS + 4), r"labels must be from 0 to 3, or -100 to be ignored, but is 4 at \(0,\)"),
        (lambda: ops.linear_cross_entropy(H, W, LABELS, reduction=None), r"reduction must be 'mean', 'sum' or 'none' but is None"),
    ],
)  # fmt: skip
def test_bad_arguments(call, message) -> None:
    with pytest.raises(LaunchValueError, match=message):
        call()
