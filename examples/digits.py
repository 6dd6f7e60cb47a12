"""Trains a classifier of handwritten digits, with every step of the training in Triton kernels.

The data are scikit-learn's 1,797 digits of 8x8 pixels; a fifth is held out. The network has one hidden layer:
ReLU(x W1 + b1) W2 + b2, and the loss is softmax cross-entropy. What `triton_metal.ops` has comes from there: the matrix
products with bias and ReLU, the losses, sums, Adam's update and the prediction. Arrays of NumPy record no gradients
(those of PyTorch and MLX do, through the same functions), so the two slopes have kernels of their own here.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
import triton_metal as triton
import triton_metal.language as tl
import triton_metal.ops as ops

CLASSES, PIXELS = 10, 64


@triton.jit
def loss_slope_kernel(
    logits_ptr, label_ptr, grad_ptr, n_rows, n_classes, BLOCK: tl.constexpr, CLASSES: tl.constexpr
):
    """The gradient of the mean loss: (softmax - one at the label) / n_rows."""
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    classes = tl.arange(0, CLASSES)
    mask = (rows[:, None] < n_rows) & (classes[None, :] < n_classes)
    offsets = rows[:, None] * n_classes + classes[None, :]
    logits = tl.load(logits_ptr + offsets, mask=mask, other=-1e30)
    label = tl.load(label_ptr + rows, mask=rows < n_rows, other=0)
    exponentials = tl.exp(logits - tl.max(logits, axis=1)[:, None])
    share = exponentials / tl.sum(exponentials, axis=1)[:, None]
    grad = (share - tl.where(classes[None, :] == label[:, None], 1.0, 0.0)) / n_rows
    tl.store(grad_ptr + offsets, grad, mask=mask)


@triton.jit
def relu_slope_kernel(grad_ptr, activation_ptr, n, BLOCK: tl.constexpr):
    """The gradient before a ReLU, in the place of the one behind it."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    grad = tl.load(grad_ptr + offsets, mask=mask)
    activation = tl.load(activation_ptr + offsets, mask=mask)
    tl.store(grad_ptr + offsets, tl.where(activation > 0, grad, 0.0), mask=mask)


class Classifier:
    """A 64 - hidden - 10 network. ``parameters`` are W1 (64, hidden), b1, W2 (hidden, 10) and b2, all float32, and
    ``gradients`` those of the latest step.
    """

    def __init__(self, hidden: int = 128, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        shapes = ((PIXELS, hidden), (hidden,), (hidden, CLASSES), (CLASSES,))
        self.parameters = [np.zeros(shape, np.float32) for shape in shapes]
        for weight in self.parameters[::2]:
            weight[:] = rng.standard_normal(weight.shape) * (2 / weight.shape[0]) ** 0.5
        self.gradients: list[np.ndarray] = []
        self.steps = 0
        self._means = self._squares = None

    def forward(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The hidden activations (rows, hidden) and the logits (rows, 10) of the images x (rows, 64), float32."""
        w1, b1, w2, b2 = self.parameters
        activation = ops.matmul(x, w1, b1, "relu")
        return activation, ops.matmul(activation, w2, b2)

    def backward(
        self, x: np.ndarray, activation: np.ndarray, logits: np.ndarray, labels: np.ndarray
    ) -> list[np.ndarray]:
        """The gradients of the mean loss by the parameters."""
        rows = x.shape[0]
        of_logits = np.empty_like(logits)
        loss_slope_kernel[(triton.cdiv(rows, 32),)](
            logits, labels, of_logits, rows, CLASSES, BLOCK=32, CLASSES=16
        )
        of_hidden = ops.matmul(of_logits, self.parameters[2], transpose_b=True)
        relu_slope_kernel[(triton.cdiv(of_hidden.size, 1024),)](
            of_hidden, activation, of_hidden.size, BLOCK=1024
        )
        return [
            ops.matmul(x, of_hidden, transpose_a=True),
            ops.sum(of_hidden, axis=0),
            ops.matmul(activation, of_logits, transpose_a=True),
            ops.sum(of_logits, axis=0),
        ]

    def train_step(self, x: np.ndarray, labels: np.ndarray, rate: float) -> np.ndarray:
        """One update from the images x (rows, 64), float32, and their labels, int32; returns the row's losses."""
        activation, logits = self.forward(x)
        losses = ops.cross_entropy(logits, labels, reduction="none")
        self.gradients = self.backward(x, activation, logits, labels)
        self.steps += 1
        # AdamW without decay is Adam.
        self.parameters, self._means, self._squares = ops.adamw_step(
            self.parameters, self.gradients, self._means, self._squares,
            step=self.steps, lr=rate, weight_decay=0.0,
        )  # fmt: skip
        return losses

    def predict(self, x: np.ndarray) -> np.ndarray:
        """The most likely digit of every image."""
        return ops.argmax(self.forward(x)[1], axis=1)


def load(seed: int = 0) -> tuple[np.ndarray, ...]:
    """Training images and labels, held-out images and labels; pixels scaled to 0 to 1."""
    try:
        from sklearn.datasets import load_digits
    except ModuleNotFoundError:
        sys.exit("examples/digits.py needs scikit-learn for its data: pip install scikit-learn.")
    digits = load_digits()
    order = np.random.default_rng(seed).permutation(len(digits.target))
    x, y = (digits.data[order] / 16).astype(np.float32), digits.target[order].astype(np.int32)
    held_out = len(y) // 5
    return x[held_out:], y[held_out:], x[:held_out], y[:held_out]


def train(
    epochs: int = 40,
    batch: int = 128,
    rate: float = 3e-3,
    seed: int = 0,
    on_epoch: Callable[[int, float], None] | None = None,
) -> tuple[Classifier, float]:
    """Trains a classifier; returns it and its accuracy on the held-out fifth."""
    x, y, held_out_x, held_out_y = load(seed)
    rng = np.random.default_rng(seed + 1)
    classifier = Classifier(seed=seed)
    for epoch in range(epochs):
        order = rng.permutation(len(y))
        losses = []
        for start in range(0, len(y), batch):
            rows = order[start : start + batch]
            losses.append(classifier.train_step(x[rows], y[rows], rate * (1 - epoch / epochs)))
        if on_epoch is not None:
            on_epoch(epoch, float(np.concatenate(losses).mean()))
    return classifier, float((classifier.predict(held_out_x) == held_out_y).mean())


def train_with_progress(epochs: int = 40) -> tuple[float, float]:
    """Trains under a progress bar; returns the held-out accuracy and the seconds."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("digits"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("loss {task.fields[loss]}"),
    )
    start = time.perf_counter()
    with Progress(*columns) as progress:
        task = progress.add_task("digits", total=epochs, loss="-")
        _, accuracy = train(
            epochs, on_epoch=lambda _, loss: progress.update(task, advance=1, loss=f"{loss:.4f}")
        )
    return accuracy, time.perf_counter() - start


def main() -> None:
    accuracy, seconds = train_with_progress()
    print(f"{accuracy:.1%} of the held-out digits are right, after {seconds:.1f} s")
    if accuracy < 0.96:
        sys.exit("That is less than the 96 % that the example promises.")


if __name__ == "__main__":
    main()
