"""Shapes of calls of `triton_metal.ops`, drawn at random: what `benchmarks.ops_defaults` compares."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from triton_metal import ops
from triton_metal.ops import attentions, cross_entropies, norms, softmaxes
from triton_metal.ops._convolving import FILTER_GRADIENT

from .ops_shape import FLOATS, MOST, Draw, Shape, of_numbers, of_rows, size, zeros
from .ops_shapes_more import FURTHER

# --- Products ----------------------------------------------------------------------------------------


def matmul(rng: random.Random) -> Shape:
    m, n, k = (size(rng, least, 4096) for least in (8, 8, 48))
    dtype = rng.choice((*FLOATS, "float16", "float32", "int8"))
    batch = rng.choice((1, 1, 1, 3, 16))
    ways = rng.choice(("nn", "nn", "nt", "tn", "tt"))
    if batch * m * n > MOST:
        batch = 1
    a = zeros(batch, *((m, k) if ways[0] == "n" else (k, m)), dtype=dtype)
    b = zeros(batch, *((k, n) if ways[1] == "n" else (n, k)), dtype=dtype)
    turned = {"transpose_a": ways[0] == "t", "transpose_b": ways[1] == "t"}
    text = f"{batch}×{m}×{n}×{k} {dtype} {ways}"
    return Shape("matmul", text, lambda: ops.matmul(a, b, **turned))


def vector(rng: random.Random) -> Shape:
    n, k = size(rng, 64, 8192), size(rng, 64, 8192)
    dtype, transposed = rng.choice(FLOATS), rng.random() < 0.6
    a, b = zeros(1, k, dtype=dtype), zeros(*((n, k) if transposed else (k, n)), dtype=dtype)
    text = f"1×{n}×{k} {dtype}{' transposed' if transposed else ''}"
    return Shape("matmul, a vector", text, lambda: ops.matmul(a, b, transpose_b=transposed))


def _quantized(rng: random.Random, name: str, m: int) -> Shape:
    n, k = 64 * round(4096 ** rng.random()), 64 * round(64 ** rng.random())
    n = min(n, 8192)
    dtype, transpose = rng.choice(FLOATS), rng.random() < 0.7
    mode, bits = rng.choice((("affine", 4), ("affine", 8), ("mxfp4", 4), ("mxfp8", 8)))
    group = 64 if mode == "affine" else 32
    rows, columns = (n, k) if transpose else (k, n)
    scales = zeros(rows, columns // group, dtype=dtype if mode == "affine" else "uint8")
    parts = (zeros(rows, columns * bits // 32, dtype="uint32"), scales)
    parts += (scales,) if mode == "affine" else ()
    x = zeros(m, k, dtype=dtype)
    text = f"{m}×{n}×{k} {dtype} {mode} {bits}{' transposed' if transpose else ''}"
    how = {"group_size": group, "bits": bits, "mode": mode, "transpose": transpose}
    return Shape(name, text, lambda: ops.quantized_matmul(x, *parts, **how))


def quantized(rng: random.Random) -> Shape:
    return _quantized(rng, "quantized_matmul", size(rng, 7, 2048, 0.5))


def quantized_vector(rng: random.Random) -> Shape:
    return _quantized(rng, "quantized_matmul, few rows", rng.randint(1, 6))


def scaled(rng: random.Random) -> Shape:
    m, n, k = size(rng, 8, 2048), size(rng, 32, 4096), 64 * round(64 ** rng.random())
    kind = rng.choice(("mxfp4", "mxfp8", "float16 mxfp4", "e4m3"))
    if kind == "e4m3":
        a, b = zeros(m, k, dtype="uint8"), zeros(n, k, dtype="uint8")
        call = lambda: ops.scaled_matmul(a, b, 1.0, 1.0, a_format="e4m3", b_format="e4m3")  # noqa: E731
    else:
        form = kind.split()[-1]
        each = 2 if form == "mxfp4" else 1
        w, ws = zeros(n, k // each, dtype="uint8"), zeros(n, k // 32, dtype="uint8")
        if " " in kind:
            x = zeros(m, k, dtype="float16")
            call = lambda: ops.scaled_matmul(x, w, None, ws, b_format=form)  # noqa: E731
        else:
            x, xs = zeros(m, k // each, dtype="uint8"), zeros(m, k // 32, dtype="uint8")
            call = lambda: ops.scaled_matmul(x, w, xs, ws, a_format=form, b_format=form)  # noqa: E731
    return Shape("scaled_matmul", f"{m}×{n}×{k} {kind}", call)


# --- Attention ---------------------------------------------------------------------------------------


def _operands(rng: random.Random, queries: int, keys: int) -> tuple[list[np.ndarray], str, bool]:
    batch, width = rng.choice((1, 1, 2, 4)), rng.choice((32, 64, 64, 80, 96, 128, 128, 256))
    kv_heads = rng.choice((1, 2, 4, 8))
    heads = kv_heads * rng.choice((1, 1, 2, 4))
    dtype, causal = rng.choice(FLOATS), rng.random() < 0.5
    q = zeros(batch, heads, queries, width, dtype=dtype)
    k, v = (zeros(batch, kv_heads, keys, width, dtype=dtype) for _ in range(2))
    text = f"{batch}×{heads}:{kv_heads}×{queries}×{keys}×{width} {dtype}{' causal' if causal else ''}"  # fmt: skip
    return [q, k, v], text, causal


def attention(rng: random.Random) -> Shape:
    queries = size(rng, 9, 2048)
    keys = queries if rng.random() < 0.7 else max(queries, size(rng, 16, 2048))
    (q, k, v), text, causal = _operands(rng, max(queries, 33), max(keys, 33))
    return Shape("attention", text, lambda: ops.attention(q, k, v, causal=causal))


def attention_backward(rng: random.Random) -> Shape:
    queries = size(rng, 33, 1024)
    (q, k, v), text, causal = _operands(rng, queries, queries)
    rows, right = zeros(*q.shape[:3]), 0 if causal else -1
    given = (None, None, None, -1, right, 0.125, False)
    call = lambda: attentions._BACKWARD(q, q, k, v, q, rows, rows, *given)  # noqa: E731
    return Shape("attention, gradients", text, call)


def decode(rng: random.Random) -> Shape:
    (q, k, v), text, causal = _operands(rng, rng.choice((1, 1, 1, 4)), size(rng, 64, 8192))
    return Shape("attention_decode", text, lambda: ops.attention_decode(q, k, v, causal=causal))


# --- Rows --------------------------------------------------------------------------------------------


def _norm_backward(x: np.ndarray) -> Any:
    weight = np.ones(x.shape[1], x.dtype)
    return norms._BACKWARD(x, None, x, weight, 1e-5, True, str(x.dtype), str(x.dtype))


def _cross_entropy(x: np.ndarray) -> Any:
    return ops.cross_entropy(x, np.zeros(x.shape[0], np.int32))


def _cross_entropy_backward(x: np.ndarray) -> Any:
    labels, one = np.zeros(x.shape[0], np.int32), np.ones((), np.float32)
    log_sums = np.zeros(x.shape[0], np.float32)
    return cross_entropies._BACKWARD(one, one.reshape(1), x, labels, log_sums, -100, 0.0, "mean")


def linear_cross_entropy(rng: random.Random) -> Shape:
    count, classes, width = size(rng, 16, 1024), size(rng, 100, 20000), size(rng, 64, 1024)
    dtype = rng.choice(FLOATS)
    hidden, weight = zeros(count, width, dtype=dtype), zeros(classes, width, dtype=dtype)
    labels = np.zeros(count, np.int32)
    text = f"{count}×{classes}×{width} {dtype}"
    call = lambda: ops.linear_cross_entropy(hidden, weight, labels)  # noqa: E731
    return Shape("linear_cross_entropy", text, call)


def columns(rng: random.Random) -> Shape:
    length, inner = size(rng, 8, 8192), size(rng, 32, 4096)
    length = min(length, MOST // inner)
    dtype = rng.choice(FLOATS)
    x = zeros(length, inner, dtype=dtype)
    name = rng.choice(("sum", "max", "mean"))
    call = lambda: getattr(ops, name)(x, axis=0)  # noqa: E731
    return Shape("reductions of columns", f"{name} {length}×{inner} {dtype}", call)


# --- Others ------------------------------------------------------------------------------------------


def convolution(rng: random.Random) -> Shape:
    batch, side = rng.choice((1, 1, 2, 8)), size(rng, 7, 64, 1.0)
    inputs, outputs = (rng.choice((3, 8, 16, 32, 48, 64, 96, 128, 256)) for _ in range(2))
    taps, stride, dtype = rng.choice((1, 3, 3, 5)), rng.choice((1, 1, 2)), rng.choice(FLOATS)
    x, w = zeros(batch, side, side, inputs, dtype=dtype), zeros(outputs, taps, taps, inputs, dtype=dtype)  # fmt: skip
    text = f"{batch}×{side}×{side}×{inputs} by {outputs}×{taps}×{taps} /{stride} {dtype}"
    call = lambda: ops.conv2d(x, w, stride=stride, padding=taps // 2)  # noqa: E731
    return Shape("conv2d", text, call)


def filter_gradient(rng: random.Random) -> Shape:
    batch, side = rng.choice((1, 1, 2, 8)), size(rng, 7, 48, 1.0)
    inputs, outputs = (rng.choice((3, 16, 32, 48, 64, 96, 128)) for _ in range(2))
    taps, dtype = rng.choice((1, 3, 3)), rng.choice(FLOATS)
    x, dy = (zeros(batch, side, side, n, dtype=dtype) for n in (inputs, outputs))
    text = f"{batch}×{side}×{side}×{inputs} by {outputs}×{taps}×{taps} {dtype}"
    shape = [outputs, taps, taps, inputs]
    how = ([1, 1], [taps // 2, taps // 2], [1, 1], 1, False, True)
    call = lambda: FILTER_GRADIENT(x, dy, shape, *how)  # noqa: E731
    return Shape("conv2d, gradient of filters", text, call)


def take(rng: random.Random) -> Shape:
    n, width, count = size(rng, 16, 4096), size(rng, 1, 2048), size(rng, 16, 4096)
    dtype = rng.choice(FLOATS)
    x, i = zeros(n, width, dtype=dtype), np.zeros(count, np.int32)
    return Shape("take", f"{count} of {n}×{width} {dtype}", lambda: ops.take(x, i, 0))


#: What is drawn, as often as its weight says.
FUNCTIONS: dict[str, tuple[int, Draw]] = {
    "matmul": (6, matmul),
    "matmul, a vector": (2, vector),
    "quantized_matmul": (3, quantized),
    "quantized_matmul, few rows": (2, quantized_vector),
    "scaled_matmul": (2, scaled),
    "attention": (3, attention),
    "attention, gradients": (2, attention_backward),
    "attention_decode": (2, decode),
    "conv2d": (3, convolution),
    "conv2d, gradient of filters": (1, filter_gradient),
    "softmax": (2, of_rows("softmax", ops.softmax)),
    "log_softmax": (1, of_rows("log_softmax", ops.log_softmax)),
    "softmax, gradient": (
        1,
        of_rows("softmax, gradient", lambda x: softmaxes._SOFTMAX_BACKWARD(x, x, 1, False), 16384),
    ),
    "rms_norm": (1, of_rows("rms_norm", ops.rms_norm)),
    "layer_norm": (2, of_rows("layer_norm", ops.layer_norm)),
    "layer_norm, gradients": (1, of_rows("layer_norm, gradients", _norm_backward, 8192)),
    "cross_entropy": (1, of_rows("cross_entropy", _cross_entropy)),
    "cross_entropy, gradient": (1, of_rows("cross_entropy, gradient", _cross_entropy_backward)),
    "linear_cross_entropy": (1, linear_cross_entropy),
    "sum": (2, of_rows("sum", lambda x: ops.sum(x, axis=1))),
    "var": (1, of_rows("var", lambda x: ops.var(x, axis=1))),
    "logsumexp": (1, of_rows("logsumexp", lambda x: ops.logsumexp(x, axis=1))),
    "argmax": (1, of_rows("argmax", lambda x: ops.argmax(x, axis=1))),
    "reductions of columns": (1, columns),
    "cumsum": (1, of_rows("cumsum", lambda x: ops.cumsum(x, axis=1))),
    "sort": (1, of_rows("sort", lambda x: ops.sort(x, axis=1), 8192)),
    "topk": (1, of_rows("topk", lambda x: ops.topk(x, 8, axis=1), 8192)),
    "take": (1, take),
    "gelu": (1, of_numbers("gelu", ops.gelu)),
    "silu_mul": (1, of_numbers("silu_mul", lambda x: ops.silu_mul(x, x))),
    **FURTHER,
}


def shapes(count: int, seed: int, only: str = "") -> list[Shape]:
    """Shapes of the functions whose names contain ``only``. The first ones are the same for every count."""
    rng = random.Random(seed)
    names = [name for name in FUNCTIONS if only in name]
    weights = [FUNCTIONS[name][0] for name in names]
    return [FUNCTIONS[rng.choices(names, weights)[0]][1](rng) for _ in range(count)]
