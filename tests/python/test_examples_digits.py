"""examples/digits.py: its kernels against NumPy, and that it learns."""

from __future__ import annotations

import numpy as np
import pytest

from kernel_support import normal

pytest.importorskip("sklearn")
pytest.importorskip("triton_metal.ops", reason="stock Triton has no such functions")
from digits import CLASSES, Classifier, load, train  # isort: skip


def numpy_step(
    classifier: Classifier, x: np.ndarray, labels: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The losses and the gradient of all parameters in float64."""
    w1, b1, w2, b2 = (p.astype(np.float64) for p in classifier.parameters)
    x = x.astype(np.float64)
    before = x @ w1 + b1
    hidden = np.maximum(before, 0)
    logits = hidden @ w2 + b2
    logits -= logits.max(axis=1, keepdims=True)
    log_p = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    one_hot = np.eye(CLASSES)[labels]
    grad_logits = (np.exp(log_p) - one_hot) / len(labels)
    grad_hidden = grad_logits @ w2.T * (before > 0)
    parts = (x.T @ grad_hidden, grad_hidden.sum(0), hidden.T @ grad_logits, grad_logits.sum(0))
    return -(log_p * one_hot).sum(axis=1), np.concatenate([p.ravel() for p in parts])


def flat(arrays: list[np.ndarray]) -> np.ndarray:
    return np.concatenate([array.ravel() for array in arrays]).astype(np.float64)


@pytest.mark.parametrize("rows", [1, 33, 128])
def test_one_step(rows: int) -> None:
    rng = np.random.default_rng(rows)
    classifier = Classifier(seed=3)
    x, labels = np.abs(normal(rng, (rows, 64))), rng.integers(0, CLASSES, rows).astype(np.int32)
    losses, gradient = numpy_step(classifier, x, labels)
    before = flat(classifier.parameters)
    np.testing.assert_allclose(classifier.train_step(x, labels, 1e-3), losses, rtol=1e-5, atol=1e-5)
    g = flat(classifier.gradients)
    np.testing.assert_allclose(g, gradient, rtol=1e-4, atol=2e-6)
    # Adam's first step is the sign of the gradient, as long as that is not small against 1e-8.
    np.testing.assert_allclose(
        flat(classifier.parameters), before - 1e-3 * g / (np.abs(g) + 1e-8), rtol=1e-5, atol=1e-6
    )


def test_predict() -> None:
    classifier = Classifier(seed=5)
    x = load()[2][:100]
    w1, b1, w2, b2 = classifier.parameters
    hidden = np.maximum(x @ w1 + b1, 0)
    np.testing.assert_array_equal(classifier.predict(x), (hidden @ w2 + b2).argmax(axis=1))


def test_it_learns() -> None:
    losses: list[float] = []
    _, accuracy = train(on_epoch=lambda _, loss: losses.append(loss))
    assert accuracy >= 0.96
    assert losses[-1] < losses[0] / 10
