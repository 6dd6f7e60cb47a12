"""Trains a transformer layer of `mlx.nn` whose norm, attention and loss are Triton kernels, on one Mac or several.

`triton_metal.mlx.custom` joins each kernel with that of its gradient, so that they stand in modules of `mlx.nn` among MLX's
own, and `nn.value_and_grad` and `mx.compile` take the model. With `--form=metal` they are Metal kernels, with
`--form=graph` they are made of MLX's own operations.

The data are scikit-learn's 1,797 digits of 8x8 pixels: a sequence of eight rows each. A fifth is held out.

    python examples/mlx_transformer.py
    mlx.launch -n 2 -- python examples/mlx_transformer.py                          two processes on this machine
    mlx.launch --hostfile macs.json -- python examples/mlx_transformer.py          one on each Mac

Each process computes the gradients of its share of a batch. MLX's ring adds them up; all processes then make the same step.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optim
import numpy as np
import triton_metal as triton
import triton_metal.language as tl
from triton_metal.mlx import call, custom, graph

CLASSES, ROWS, COLUMNS = 10, 8, 8
LAUNCH = {"metal": lambda kernel: partial(call, kernel), "graph": graph}


@triton.jit
def rms_norm_kernel(
    x, weight, y, rstd, n_rows, n_columns, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    """Rows of x, divided by the root of the mean of their squares. The gradient needs rstd, the inverse of that root."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, BLOCK)
    inside = (rows[:, None] < n_rows) & (columns[None, :] < n_columns)
    at = rows[:, None] * n_columns + columns[None, :]
    value = tl.load(x + at, inside, other=0.0).to(tl.float32)
    scale = 1 / tl.sqrt(tl.sum(value * value, 1) / n_columns + eps)
    w = tl.load(weight + columns, columns < n_columns, other=0.0).to(tl.float32)
    tl.store(y + at, (value * scale[:, None] * w[None, :]).to(y.dtype.element_ty), inside)
    tl.store(rstd + rows, scale, rows < n_rows)


@triton.jit
def rms_norm_backward_kernel(
    x, weight, rstd, dy, dx, shares, n_rows, n_columns, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    """The gradient of x, and what each program adds to that of the weight."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, BLOCK)
    inside = (rows[:, None] < n_rows) & (columns[None, :] < n_columns)
    at = rows[:, None] * n_columns + columns[None, :]
    scale = tl.load(rstd + rows, rows < n_rows, other=0.0)[:, None]
    value = tl.load(x + at, inside, other=0.0).to(tl.float32) * scale
    grad = tl.load(dy + at, inside, other=0.0).to(tl.float32)
    tl.store(
        shares + tl.program_id(0) * n_columns + columns,
        tl.sum(grad * value, 0),
        columns < n_columns,
    )
    grad = grad * tl.load(weight + columns, columns < n_columns, other=0.0).to(tl.float32)[None, :]
    slope = (grad - value * (tl.sum(grad * value, 1) / n_columns)[:, None]) * scale
    tl.store(dx + at, slope.to(dx.dtype.element_ty), inside)


class RMSNorm(nn.Module):
    """As `mlx.nn.RMSNorm`."""

    def __init__(self, width: int, form: str, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight = mx.ones((width,))
        self.eps = eps
        backward = LAUNCH[form](rms_norm_backward_kernel)

        def vjp(primals: Any, cotangents: Any, outputs: Any) -> tuple[mx.array, mx.array]:
            x, width = primals.x, primals.n_columns
            programs = triton.cdiv(primals.n_rows, primals.ROWS)
            dx, shares = backward(
                x, primals.weight, outputs.rstd, cotangents.y, primals.n_rows, width, primals.ROWS, primals.BLOCK,
                grid=(programs,), outputs={"dx": x, "shares": ((programs, width), mx.float32)},
            )  # fmt: skip
            return dx, shares.sum(0)

        self.function = custom(rms_norm_kernel, vjp, form=form, saved=["rstd"])

    def __call__(self, x: mx.array) -> mx.array:
        width = x.shape[-1]
        n_rows = x.size // width
        return self.function(
            x, self.weight, n_rows, width, self.eps, ROWS=16, BLOCK=triton.next_power_of_2(width),
            grid=(triton.cdiv(n_rows, 16),), outputs={"y": x, "rstd": ((n_rows,), mx.float32)},
        )  # fmt: skip


@triton.jit
def attention_kernel(q, k, v, out, lse, length, scale, BLOCK: tl.constexpr, HEAD: tl.constexpr):
    """softmax(q kᵀ · scale) v of one head and one block of queries, and the logarithms of the softmax's sums."""
    head = tl.program_id(1)
    columns = tl.arange(0, HEAD)
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = (head * length + rows[:, None]) * HEAD + columns[None, :]
    query = tl.load(q + at, rows[:, None] < length, other=0.0)
    highest = tl.full((BLOCK,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    mixed = tl.zeros((BLOCK, HEAD), tl.float32)
    for start in range(0, length, BLOCK):
        keys = start + tl.arange(0, BLOCK)
        there = (head * length + keys[:, None]) * HEAD + columns[None, :]
        key = tl.load(k + there, keys[:, None] < length, other=0.0)
        value = tl.load(v + there, keys[:, None] < length, other=0.0)
        scores = tl.where(
            keys[None, :] < length, tl.dot(query, tl.trans(key)) * scale, -float("inf")
        )
        higher = tl.maximum(highest, tl.max(scores, 1))
        weights = tl.exp(scores - higher[:, None])
        fade = tl.exp(highest - higher)
        total = total * fade + tl.sum(weights, 1)
        mixed = tl.dot(weights.to(value.dtype), value, mixed * fade[:, None])
        highest = higher
    tl.store(out + at, (mixed / total[:, None]).to(out.dtype.element_ty), rows[:, None] < length)
    tl.store(lse + head * length + rows, highest + tl.log(total), rows < length)


@triton.jit
def attention_backward_kernel(
    q, k, v, out, lse, dout, dq, dk, dv, length, scale, BLOCK: tl.constexpr, HEAD: tl.constexpr
):
    """The gradients of one block of queries, and of the block of keys and values with the same number."""
    head = tl.program_id(1)
    columns = tl.arange(0, HEAD)
    mine = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = (head * length + mine[:, None]) * HEAD + columns[None, :]
    query = tl.load(q + at, mine[:, None] < length, other=0.0)
    key = tl.load(k + at, mine[:, None] < length, other=0.0)
    value = tl.load(v + at, mine[:, None] < length, other=0.0)
    grad = tl.load(dout + at, mine[:, None] < length, other=0.0)
    result = tl.load(out + at, mine[:, None] < length, other=0.0)
    share = tl.sum(grad.to(tl.float32) * result.to(tl.float32), 1)
    sums = tl.load(lse + head * length + mine, mine < length, other=float("inf"))
    of_query = tl.zeros((BLOCK, HEAD), tl.float32)
    of_key = tl.zeros((BLOCK, HEAD), tl.float32)
    of_value = tl.zeros((BLOCK, HEAD), tl.float32)
    for start in range(0, length, BLOCK):
        others = start + tl.arange(0, BLOCK)
        there = (head * length + others[:, None]) * HEAD + columns[None, :]
        inside = others[:, None] < length

        # My queries, and these keys and values. A query outside has an infinite sum, so that its weights are 0.
        other_key = tl.load(k + there, inside, other=0.0)
        other_value = tl.load(v + there, inside, other=0.0)
        scores = tl.dot(query, tl.trans(other_key)) * scale
        weights = tl.where(others[None, :] < length, tl.exp(scores - sums[:, None]), 0.0)
        slope = weights * (tl.dot(grad, tl.trans(other_value)) - share[:, None]) * scale
        of_query = tl.dot(slope.to(other_key.dtype), other_key, of_query)

        # These queries, and my keys and values. Keys outside get numbers that are not stored.
        other_query = tl.load(q + there, inside, other=0.0)
        other_grad = tl.load(dout + there, inside, other=0.0)
        other_result = tl.load(out + there, inside, other=0.0)
        other_share = tl.sum(other_grad.to(tl.float32) * other_result.to(tl.float32), 1)
        other_sums = tl.load(lse + head * length + others, others < length, other=float("inf"))
        scores = tl.dot(other_query, tl.trans(key)) * scale
        weights = tl.exp(scores - other_sums[:, None])
        slope = weights * (tl.dot(other_grad, tl.trans(value)) - other_share[:, None]) * scale
        of_value = tl.dot(tl.trans(weights.to(other_grad.dtype)), other_grad, of_value)
        of_key = tl.dot(tl.trans(slope.to(other_query.dtype)), other_query, of_key)
    tl.store(dq + at, of_query.to(dq.dtype.element_ty), mine[:, None] < length)
    tl.store(dk + at, of_key.to(dk.dtype.element_ty), mine[:, None] < length)
    tl.store(dv + at, of_value.to(dv.dtype.element_ty), mine[:, None] < length)


class Attention(nn.Module):
    """Attention of all positions to all, with several heads."""

    def __init__(self, width: int, heads: int, form: str) -> None:
        super().__init__()
        self.heads = heads
        self.inputs = nn.Linear(width, 3 * width, bias=False)
        self.output = nn.Linear(width, width, bias=False)
        # The parameters of the backward kernel say what they are: lse is what the forward kernel saves.
        self.function = custom(
            attention_kernel, attention_backward_kernel, form=form, saved=["lse"]
        )

    def __call__(self, x: mx.array) -> mx.array:
        batch, length, width = x.shape
        head = width // self.heads
        # (3, batch, heads, length, head)
        split = self.inputs(x).reshape(batch, length, 3, self.heads, head).transpose(2, 0, 3, 1, 4)
        block = 16 if length <= 16 else 32
        out = self.function(
            *split, length, head**-0.5, BLOCK=block, HEAD=head,
            grid=(triton.cdiv(length, block), batch * self.heads),
            outputs={"out": split[0], "lse": ((batch, self.heads, length), mx.float32)},
        )  # fmt: skip
        return self.output(out.transpose(0, 2, 1, 3).reshape(batch, length, width))


@triton.jit
def cross_entropy_kernel(
    logits, labels, loss, lse, n_rows, n_classes, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    """The loss of each row, and the logarithm of the softmax's sum."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    classes = tl.arange(0, BLOCK)
    inside = (rows[:, None] < n_rows) & (classes[None, :] < n_classes)
    value = tl.load(logits + rows[:, None] * n_classes + classes[None, :], inside, other=-1e30)
    highest = tl.max(value, 1)
    total = highest + tl.log(tl.sum(tl.exp(value - highest[:, None]), 1))
    label = tl.load(labels + rows, rows < n_rows, other=0)
    at_label = tl.sum(tl.where(classes[None, :] == label[:, None], value, 0.0), 1)
    tl.store(loss + rows, total - at_label, rows < n_rows)
    tl.store(lse + rows, total, rows < n_rows)


@triton.jit
def cross_entropy_backward_kernel(
    logits, labels, lse, dloss, dlogits, n_rows, n_classes, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    """(softmax - one at the label) times the gradient of the row's loss."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    classes = tl.arange(0, BLOCK)
    inside = (rows[:, None] < n_rows) & (classes[None, :] < n_classes)
    at = rows[:, None] * n_classes + classes[None, :]
    total = tl.load(lse + rows, rows < n_rows, other=0.0)
    share = tl.exp(tl.load(logits + at, inside, other=-1e30) - total[:, None])
    label = tl.load(labels + rows, rows < n_rows, other=0)
    grad = tl.load(dloss + rows, rows < n_rows, other=0.0)
    slope = (share - (classes[None, :] == label[:, None]).to(tl.float32)) * grad[:, None]
    tl.store(dlogits + at, slope, inside)


def cross_entropy(logits: mx.array, labels: mx.array, form: str) -> mx.array:
    """The loss of each row of float32 logits."""
    n_rows, n_classes = logits.shape
    function = custom(cross_entropy_kernel, cross_entropy_backward_kernel, form=form, saved=["lse"])
    per_row = ((n_rows,), mx.float32)
    return function(
        logits, labels, n_rows, n_classes, ROWS=32, BLOCK=triton.next_power_of_2(n_classes),
        grid=(triton.cdiv(n_rows, 32),), outputs={"loss": per_row, "lse": per_row},
    )  # fmt: skip


class Layer(nn.Module):
    """One layer of a transformer: attention and a network of two products, each after a norm and added to its input."""

    def __init__(self, width: int, heads: int, form: str) -> None:
        super().__init__()
        self.norm_1, self.norm_2 = RMSNorm(width, form), RMSNorm(width, form)
        self.attention = Attention(width, heads, form)
        self.network = nn.Sequential(
            nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width)
        )

    def __call__(self, x: mx.array) -> mx.array:
        x = x + self.attention(self.norm_1(x))
        return x + self.network(self.norm_2(x))


class Classifier(nn.Module):
    """Images as sequences of their rows, one layer, and the classes of the mean of all positions."""

    def __init__(self, form: str, width: int = 64, heads: int = 4) -> None:
        super().__init__()
        self.embedding = nn.Linear(COLUMNS, width)
        self.positions = 0.1 * mx.random.normal((ROWS, width))
        self.layer = Layer(width, heads, form)
        self.norm = RMSNorm(width, form)
        self.classes = nn.Linear(width, CLASSES)

    def __call__(self, x: mx.array) -> mx.array:
        x = self.layer(self.embedding(x) + self.positions)
        return self.classes(self.norm(x).mean(1))


def load(seed: int = 0) -> tuple[np.ndarray, ...]:
    """Training images (n, 8, 8) and labels, held-out images and labels; pixels scaled to 0 to 1."""
    try:
        from sklearn.datasets import load_digits
    except ModuleNotFoundError:
        sys.exit(
            "examples/mlx_transformer.py needs scikit-learn for its data: pip install scikit-learn."
        )
    digits = load_digits()
    order = np.random.default_rng(seed).permutation(len(digits.target))
    x = (digits.images[order] / 16).astype(np.float32)
    y = digits.target[order].astype(np.int32)
    held_out = len(y) // 5
    return x[held_out:], y[held_out:], x[:held_out], y[:held_out]


def train(
    form: str = "metal",
    epochs: int = 10,
    batch: int = 32,
    rate: float = 1e-3,
    seed: int = 0,
    on_epoch: Callable[[int, float], None] | None = None,
) -> tuple[Classifier, float]:
    """Trains a classifier; returns it and its accuracy on the held-out fifth. ``batch`` counts a process's own images."""
    world = mx.distributed.init()
    mine, processes = world.rank(), world.size()
    x, y, held_out_x, held_out_y = load(seed)
    rng = np.random.default_rng(seed + 1)
    # The same in every process, so that the models begin, and remain, equal.
    mx.random.seed(seed)
    model = Classifier(form)
    steps = len(y) // (batch * processes)
    optimizer = optim.AdamW(optim.cosine_decay(rate, epochs * steps), weight_decay=0.01)

    def loss(model: Classifier, x: mx.array, labels: mx.array) -> mx.array:
        return cross_entropy(model(x), labels, form).mean()

    @partial(mx.compile, inputs=model.state, outputs=model.state)
    def slopes(x: mx.array, labels: mx.array) -> tuple[mx.array, Any]:
        return nn.value_and_grad(model, loss)(model, x, labels)

    for epoch in range(epochs):
        order = rng.permutation(len(y))[: steps * batch * processes]
        losses = []
        for rows in order.reshape(steps, processes, batch)[:, mine]:
            value, gradients = slopes(mx.array(x[rows]), mx.array(y[rows]))
            # all_sum of a few long arrays, divided by the number of processes.
            optimizer.update(model, nn.average_gradients(gradients))
            losses.append(value)
            mx.eval(model.state, optimizer.state, losses[-1])
        if on_epoch is not None:
            total = mx.distributed.all_sum(mx.stack(losses).mean())
            on_epoch(epoch, total.item() / processes)
    found = model(mx.array(held_out_x)).argmax(1)
    return model, (found == mx.array(held_out_y)).mean().item()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--form", choices=list(LAUNCH), default="metal", help="of the kernels")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=32, help="images of each process in a step")
    options = parser.parse_args()
    first = mx.distributed.init().rank() == 0

    def tell(epoch: int, loss: float) -> None:
        if first:
            print(f"epoch {epoch + 1}: loss {loss:.6f}", flush=True)

    start = time.perf_counter()
    _, accuracy = train(options.form, options.epochs, options.batch, on_epoch=tell)
    if first:
        seconds = time.perf_counter() - start
        print(f"{accuracy:.1%} of the held-out digits are right, after {seconds:.1f} s", flush=True)


if __name__ == "__main__":
    main()
