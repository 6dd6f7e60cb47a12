"""Rows of shapes and types that are drawn at random, in the families of the table: what the table's own rows do not show."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import count, islice

from against import (
    along_rows,
    attending,
    composing,
    convolving,
    decoding,
    elements,
    matrices,
    quantizing,
    reducing,
    tensor_operations,
    vectors,
)
from against.problem import Case
from mlx_kernels.convolution import Convolution

#: Draws a row of a family.
Draw = Callable[[random.Random], Case]
FLOATS = ("float32", "float16", "bfloat16")


def _sized(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape))


def _length(r: random.Random, least: int, most: int) -> int:
    """A length whose logarithm is uniform: a power of two, a multiple of 64, of 8 or any, each as often."""
    n = round(least * (most / least) ** r.random())
    return max(least, r.choice((1 << max(n.bit_length() - 1, 0), n // 64 * 64, n // 8 * 8, n)))


def _rows(r: random.Random, most: int = 8192) -> tuple[int, int]:
    columns = _length(r, 80, most)
    return max(32, min(512, (1 << 19) // columns)), columns


def _softmax(r: random.Random) -> Case:
    name, make = r.choice((("softmax", along_rows._softmax), ("logsumexp", along_rows._logsumexp)))
    shape, t = _rows(r, 16384), r.choice(FLOATS)
    return Case(name, _sized(shape), t, lambda: make(shape, t))


def _norm(r: random.Random) -> Case:
    kind, shape, t = r.choice(("layer norm", "RMS norm")), _rows(r), r.choice(FLOATS)
    return Case(kind, _sized(shape), t, lambda: along_rows._norm(kind, shape, t), source=True)


def _place(r: random.Random) -> Case:
    name, shape, t = r.choice(("argmax", "argmin")), _rows(r), r.choice(FLOATS[:2])
    return Case(name, _sized(shape), t, lambda: along_rows._place(name, shape, t), source=True)


def _scan(r: random.Random) -> Case:
    name, axis, t = r.choice(("cumsum", "cumprod", "cummax")), r.choice((1, 1, 0)), r.choice(FLOATS)
    if name == "cumprod":
        t = "float32"
    shape = _rows(r)
    shape = shape if axis else (shape[1], max(64, shape[0]))
    kind = f"{name} of {'rows' if axis else 'columns'}"
    return Case(kind, _sized(shape), t, lambda: along_rows._scan(name, shape, axis, t))


def _sort(r: random.Random) -> Case:
    name = r.choice(("sort", "argsort", "topk, 16"))
    columns, t = _length(r, 64, 6000), r.choice(FLOATS[:2])
    shape = (max(8, min(64, (1 << 16) // columns)), columns)
    return Case(name, _sized(shape), t, lambda: along_rows._sort(name, shape, t))


def _reduction(r: random.Random) -> Case:
    name, t = r.choice(list(reducing.REDUCTIONS)), r.choice(FLOATS)
    where = r.choice(("rows", "columns", "all"))
    if name == "prod":
        t = "float32"
    shown = "int32" if name in ("all", "any") else t
    if where == "all":
        size = _length(r, 1 << 12, 1 << 20)
        return Case(f"{name} of all", str(size), shown, lambda: reducing._all(name, size, t))
    shape = _rows(r)
    make = reducing._rows
    if where == "columns":
        shape, make = (shape[0], max(shape[1], 128)), reducing._columns
    return Case(f"{name} of {where}", _sized(shape), shown, lambda: make(name, shape, t))


def _gemv(r: random.Random) -> Case:
    length, terms, t = _length(r, 128, 4096), _length(r, 128, 4096), r.choice(FLOATS)
    turned = r.choice((False, True))
    kind = "GEMV transposed" if turned else "GEMV"
    return Case(kind, f"{length}×{terms}", t, lambda: vectors._gemv(length, terms, t, turned))


def _rope(r: random.Random) -> Case:
    heads, length, size = r.choice((4, 8, 12)), _length(r, 16, 512), r.choice((64, 80, 96, 128))
    t, traditional = r.choice(FLOATS), r.choice((False, True))
    kind = f"rope, {'neighbours' if traditional else 'halves'}"
    make = lambda: vectors._rope(heads, length, size, t, traditional)  # noqa: E731
    return Case(kind, f"{heads}×{length}×{size}", t, make, source=True)


def _gemm(r: random.Random) -> Case:
    m, n, k = _length(r, 128, 768), _length(r, 128, 768), _length(r, 64, 512)
    t, way, batch = r.choice(FLOATS), r.choice(("nn", "nt", "tn", "tt")), r.choice((0, 0, 0, 3))
    if batch:
        m, n = m // 2, n // 2
    kind = "GEMM batched " + way if batch else "GEMM " + way
    shape = _sized((batch, m, n, k) if batch else (m, n, k))
    return Case(kind, shape, t, lambda: matrices._product(m, n, k, t, way, batch))


def _tensor_gemm(r: random.Random) -> Case:
    m, n, k = _length(r, 256, 768), _length(r, 256, 768), _length(r, 128, 768)
    t, way = r.choice(FLOATS), r.choice(("nn", "nt", "tn", "tt"))
    make = lambda: tensor_operations._product(m, n, k, t, way)  # noqa: E731
    return Case(f"GEMM {way} on tensor operations", _sized((m, n, k)), t, make)


def _quantized(r: random.Random) -> Case:
    transpose, bits, t = r.choice((True, True, False)), r.choice((4, 8)), r.choice(FLOATS)
    m = r.choice((1, 1, _length(r, 64, 512)))
    n, k = _length(r, 256, 1024) // 64 * 64, _length(r, 256, 1024) // 64 * 64
    of = "vector" if m == 1 else "matrix"
    kind = f"quantised {bits} bits, {of}" + ("" if transpose else ", not transposed")
    make = lambda: quantizing._product(m, n, k, bits, t, transpose)  # noqa: E731
    return Case(kind, _sized((m, n, k)), t, make)


def _attention(r: random.Random) -> Case:
    heads, length, width = 2, _length(r, 128, 768), r.choice((64, 80, 128))
    causal, t, tensor = (
        r.choice((True, False)),
        r.choice(FLOATS[1:]),
        r.choice((False, False, True)),
    )
    if tensor:
        width = r.choice((64, 128))
    module = tensor_operations._attention if tensor else attending._tiled
    kind = ("attention causal" if causal else "attention") + " on tensor operations" * tensor
    make = lambda: module(heads, length, width, causal, t)  # noqa: E731
    return Case(kind, _sized((heads, length, width)), t, make)


def _decode(r: random.Random) -> Case:
    heads = r.choice((2, 4, 8))
    queries, keys = heads * r.choice((1, 2, 4)), _length(r, 128, 4096)
    width, t = r.choice((64, 96, 128)), r.choice(FLOATS)
    make = lambda: decoding._decode(queries, heads, keys, width, t)  # noqa: E731
    return Case(f"decode, {queries} : {heads} heads", _sized((keys, width)), t, make)


def _convolution(r: random.Random) -> Case:
    batch, size, t = r.choice((1, 2)), _length(r, 12, 40), r.choice(FLOATS)
    channels, outputs = (r.choice((16, 32, 48, 64, 96, 128)) for _ in range(2))
    taps, stride = r.choice((1, 3, 5)), r.choice((1, 2))
    pad = taps // 2
    c = Convolution(
        *(batch, channels, outputs, (size, size), (taps, taps), (stride, stride), (pad, pad)), t=t
    )
    shape = f"{_sized((batch, size, size, channels))} by {_sized((outputs, taps, taps))}, stride {stride}"
    return Case("convolution", shape, t, lambda: convolving._convolution(c))


def _composed(r: random.Random) -> Case:
    shape, t = _rows(r), r.choice(FLOATS[:2])
    name, make = r.choice(
        (
            ("log-softmax", composing._log_softmax),
            ("variance of rows", lambda *a: composing._variance("variance", *a)),
            ("length of rows", composing._norm),
            ("cross entropy", composing._cross_entropy),
        )
    )
    return Case(name, _sized(shape), t, lambda: make(shape, t))


def _element(r: random.Random) -> Case:
    name, t = r.choice(("sigmoid", "tanh", "silu", "gelu")), r.choice(FLOATS[:2])
    size = _length(r, 1 << 14, 1 << 20)
    return Case(name, str(size), t, lambda: elements._activation(name, size, t))


#: Families, in turn.
DRAWS: tuple[Draw, ...] = (
    _softmax, _norm, _place, _scan, _sort, _reduction, _gemv, _rope, _gemm, _quantized, _attention, _decode, _convolution,
    _gemm, _tensor_gemm, _composed, _reduction, _element,
)  # fmt: skip


def cases(number: int, seed: int) -> list[Case]:
    """So many rows, of the families in turn; the same for one seed."""

    def every() -> Iterator[Case]:
        for place in count():
            yield DRAWS[place % len(DRAWS)](random.Random(f"{seed}:{place}"))

    return list(islice(every(), number))
