"""Shapes of further functions of `triton_metal.ops`, for `benchmarks.ops_shapes`: rotary embedding, dropout, indices, optimisers and others."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from triton_metal import ops
from triton_metal.ops import _reducing, activations, embeddings, linear_cross_entropies, norms
from triton_metal.ops._arrays import dtype_name

from .ops_shape import FLOATS, MOST, Draw, Shape, of_numbers, of_rows, rows, size, zeros


def _indices(rng: random.Random, count: int | tuple[int, ...], n: int) -> np.ndarray:
    """Indices below n, evenly drawn: what is added up at few places is slower."""
    return np.random.default_rng(rng.getrandbits(32)).integers(0, n, count, dtype=np.int32)


def rotary(rng: random.Random) -> Shape:
    heads, length = rng.choice((1, 4, 8, 12, 32)), size(rng, 1, 2048, 0.6)
    width, dtype = rng.choice((32, 64, 80, 96, 128, 128, 256)), rng.choice(FLOATS)
    length = min(length, MOST // (heads * width))
    x, traditional = zeros(1, heads, length, width, dtype=dtype), rng.random() < 0.3
    text = f"{heads}×{length}×{width} {dtype}{' traditional' if traditional else ''}"
    call = lambda: ops.rotary_embedding(x, traditional=traditional)  # noqa: E731
    return Shape("rotary_embedding", text, call)


def embedding(rng: random.Random) -> Shape:
    n, width, count = size(rng, 100, 4096), size(rng, 16, 4096), size(rng, 1, 4096, 1.0)
    dtype = rng.choice(FLOATS)
    weight, i = zeros(n, width, dtype=dtype), _indices(rng, count, n)
    text = f"{count} of {n}×{width} {dtype}"
    return Shape("embedding", text, lambda: ops.embedding(weight, i))


def embedding_backward(rng: random.Random) -> Shape:
    n, width, count = size(rng, 100, 4096), size(rng, 16, 1024), size(rng, 16, 2048, 1.0)
    dtype = rng.choice(FLOATS)
    dy, i = zeros(count, width, dtype=dtype), _indices(rng, count, n)
    text = f"{count} of {n}×{width} {dtype}"
    return Shape("embedding, gradient", text, lambda: embeddings._BACKWARD(dy, i, n))


def take_along_axis(rng: random.Random) -> Shape:
    x, text = rows(rng, 4096)
    count = size(rng, 1, 1024, 1.0)
    i = _indices(rng, (x.shape[0], count), x.shape[1])
    return Shape("take_along_axis", f"{count} of {text}", lambda: ops.take_along_axis(x, i, 1))


def index_add(rng: random.Random) -> Shape:
    # One program sorts so few: programs that are not counted do not run, and leave what they sort undefined.
    n, width, count = size(rng, 16, 2048), size(rng, 1, 512, 0.5), size(rng, 16, 1024, 1.0)
    dtype = rng.choice(FLOATS)
    x, updates = zeros(n, width, dtype=dtype), zeros(count, width, dtype=dtype)
    i = _indices(rng, count, n)
    text = f"{count} to {n}×{width} {dtype}"
    return Shape("index_add", text, lambda: ops.index_add(x, i, updates))


def _of_columns(name: str, call: Callable[[np.ndarray], Any], longest: int) -> Draw:
    """Shapes of a function of columns."""

    def make(rng: random.Random) -> Shape:
        length, inner, dtype = size(rng, 16, longest), size(rng, 16, 2048), rng.choice(FLOATS)
        x = zeros(length, inner, dtype=dtype)
        return Shape(name, f"{length}×{inner} {dtype}", lambda: call(x))

    return make


def _optimiser(name: str, step: Callable[..., Any]) -> Draw:
    def make(rng: random.Random) -> Shape:
        count, dtype = size(rng, 100, MOST // 4), rng.choice(FLOATS)
        given = [zeros(count, dtype=dtype), zeros(count, dtype=dtype), zeros(count), zeros(count)]
        return Shape(name, f"{count} {dtype}", lambda: step(*([each] for each in given)))

    return make


def _quantized_layout(back: bool) -> Draw:
    def make(rng: random.Random) -> Shape:
        count, length = size(rng, 1, 2048, 1.0), 64 * round(64 ** rng.random())
        mode, dtype = rng.choice(("affine", "mxfp4", "mxfp8")), rng.choice(FLOATS)
        w = zeros(count, length, dtype=dtype)
        text = f"{count}×{length} {dtype} {mode}"
        if not back:
            return Shape("quantize", text, lambda: ops.quantize(w, mode=mode))
        parts = ops.quantize(w, mode=mode)
        call = lambda: ops.dequantize(*parts, mode=mode, dtype=dtype)  # noqa: E731
        return Shape("dequantize", text, call)

    return make


def depthwise(rng: random.Random) -> Shape:
    batch, length, channels = rng.choice((1, 2, 8)), size(rng, 16, 2048), size(rng, 16, 1024)
    taps, dtype = rng.choice((3, 4, 7)), rng.choice(FLOATS)
    x, w = zeros(batch, length, channels, dtype=dtype), zeros(channels, taps, 1, dtype=dtype)
    text = f"{batch}×{length}×{channels} by {taps} {dtype}"
    call = lambda: ops.conv1d(x, w, padding=taps - 1, groups=channels)  # noqa: E731
    return Shape("conv1d, depthwise", text, call)


def grouped(rng: random.Random) -> Shape:
    side, groups = size(rng, 7, 48, 1.0), rng.choice((2, 4, 8))
    inputs, outputs = (groups * rng.choice((8, 16, 32, 64)) for _ in range(2))
    dtype = rng.choice(FLOATS)
    x, w = zeros(1, side, side, inputs, dtype=dtype), zeros(outputs, 3, 3, inputs // groups, dtype=dtype)  # fmt: skip
    text = f"{side}×{side}×{inputs} by {outputs}×3×3 /{groups} groups {dtype}"
    call = lambda: ops.conv2d(x, w, padding=1, groups=groups)  # noqa: E731
    return Shape("conv2d, groups", text, call)


def transposed(rng: random.Random) -> Shape:
    side, taps = size(rng, 7, 40, 1.0), rng.choice((2, 3, 4))
    inputs, outputs = (rng.choice((3, 16, 32, 64, 128)) for _ in range(2))
    dtype = rng.choice(FLOATS)
    x, w = zeros(1, side, side, inputs, dtype=dtype), zeros(outputs, taps, taps, inputs, dtype=dtype)  # fmt: skip
    text = f"{side}×{side}×{inputs} to {outputs}×{taps}×{taps} {dtype}"
    call = lambda: ops.conv_transpose2d(x, w, stride=2, padding=taps // 2)  # noqa: E731
    return Shape("conv_transpose2d", text, call)


def linear_cross_entropy_backward(rng: random.Random) -> Shape:
    count, classes, width = size(rng, 16, 512), size(rng, 100, 4096), size(rng, 64, 512)
    dtype = rng.choice(FLOATS)
    hidden, weight = zeros(count, width, dtype=dtype), zeros(classes, width, dtype=dtype)
    labels, log_sums, one = np.zeros(count, np.int32), zeros(count), np.ones(1, np.float32)
    given = (one.reshape(()), one, hidden, weight, labels, log_sums, -100, 0.0, "mean", True, True)
    text = f"{count}×{classes}×{width} {dtype}"
    call = lambda: linear_cross_entropies._BACKWARD(*given)  # noqa: E731
    return Shape("linear_cross_entropy, gradients", text, call)


def reduction_gradient(rng: random.Random) -> Shape:
    x, text = rows(rng)
    kind, row = rng.choice(("sum", "mean", "max", "var", "logsumexp")), zeros(x.shape[0], dtype=text.split()[-1])  # fmt: skip
    call = lambda: _reducing._REDUCTION_GRADIENT(x, row, row, kind, [1], 0.0)  # noqa: E731
    return Shape("reductions, gradients", f"{kind} {text}", call)


def _norm_backward(x: np.ndarray) -> Any:
    """Without the gradient of a bias."""
    dtype = dtype_name(x)
    return norms._BACKWARD(x, None, x, np.ones(x.shape[1], x.dtype), 1e-5, False, dtype, "")


#: What is drawn, as often as its weight says.
FURTHER: Mapping[str, tuple[int, Draw]] = {
    "rotary_embedding": (2, rotary),
    "dropout": (1, of_numbers("dropout", lambda x: ops.dropout(x, 0.1, 7))),
    "gelu, gradient": (
        1,
        of_numbers("gelu, gradient", lambda x, dy: activations._ACTIVATION_BACKWARD(x, dy, "gelu"), 2),
    ),
    "silu_mul, gradients": (
        1,
        of_numbers("silu_mul, gradients", lambda a, b, dy: activations._GATED_BACKWARD(a, b, dy, "silu"), 3),
    ),
    "rms_norm, gradients": (1, of_rows("rms_norm, gradients", _norm_backward, 16_384)),
    "linear_cross_entropy, gradients": (1, linear_cross_entropy_backward),
    "reductions, gradients": (1, reduction_gradient),
    "embedding": (1, embedding),
    "embedding, gradient": (1, embedding_backward),
    "take_along_axis": (1, take_along_axis),
    "index_add": (1, index_add),
    "cumsum of columns": (1, _of_columns("cumsum of columns", lambda x: ops.cumsum(x, 0), 4096)),
    "softmax of columns": (1, _of_columns("softmax of columns", lambda x: ops.softmax(x, 0), 2048)),
    "adamw_step": (
        1,
        _optimiser("adamw_step", lambda p, g, m, s: ops.adamw_step(p, g, m, s, step=1)),
    ),
    "sgd_step": (1, _optimiser("sgd_step", lambda p, g, m, _: ops.sgd_step(p, g, m, lr=0.1, momentum=0.9))),
    "histogram": (1, of_numbers("histogram", lambda x: ops.histogram(x, 64, range=(0.0, 1.0)))),
    "quantize": (1, _quantized_layout(False)),
    "dequantize": (1, _quantized_layout(True)),
    "conv1d, depthwise": (1, depthwise),
    "conv2d, groups": (1, grouped),
    "conv_transpose2d": (1, transposed),
}  # fmt: skip
