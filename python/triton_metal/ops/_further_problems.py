"""Small calls by which the table of SIMD-groups of further kernels is made (see `_group_problems`)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from . import (
    activations,
    attentions,
    convolutions,
    cross_entropies,
    dropouts,
    embeddings,
    histograms,
    indexing,
    linear_cross_entropies,
    norms,
    optimisers,
    quantized,
    rotary,
    scans,
    softmaxes,
    sorts,
)
from ._convolving import FILTER_GRADIENT
from ._further_launches import GRADIENTS, MOST_WIDE_ROWS
from ._launches import BY_SIDES
from ._problems import Calls, zeros
from ._reducing import _REDUCTION_GRADIENT

Make = Callable[..., Callable[[], Any]]


def _each(make: Make, *sizes: Any) -> Calls:
    """Calls that are made of a dtype and of each of these sizes."""

    def calls(dtype: str) -> Iterator[Callable[[], Any]]:
        for size in sizes:
            yield make(dtype, *size) if isinstance(size, tuple) else make(dtype, size)

    return calls


def _few_numbers(call: Callable[..., Any], arrays: int = 1, tile: int = 1024) -> Calls:
    """Calls on whole tiles, and on so few numbers that a part of one is there."""

    def make(dtype: str, count: int) -> Callable[[], Any]:
        given = [zeros(dtype, count) for _ in range(arrays)]
        return lambda: call(*given)

    return _each(make, 64 * tile, tile * 3 // 10, tile * 6 // 10)


def _turned(traditional: bool, table: bool, sizes: tuple[int, ...]) -> Calls:
    """Rows of these sizes, few and many of a position."""

    def make(dtype: str, heads: int, size: int) -> Callable[[], Any]:
        x, angles = zeros(dtype, heads, 16, size), zeros("float32", 16, size // 2)
        given = (angles, angles) if table else ()
        return lambda: rotary.rotary_embedding(x, *given, traditional=traditional)

    return _each(make, *((heads, size) for size in sizes for heads in (1, 3, 8)))


def _rotary(cut: bool) -> dict[str, Calls]:
    # Rows whose pairs are no multiple of 8 are cut.
    sizes = (100, 132, 180) if cut else (32, 64, 80, 96, 128, 256)
    return {
        f"rotary_kernel {'neighbours' if traditional else 'halves'} {'table' if table else 'angles'}{' cut' * cut}": _turned(
            traditional, table, sizes
        )
        for traditional in (False, True)
        for table in (False, True)
    }


def _indices(count: int, n: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, n, count, dtype=np.int32)


def _embedding(dtype: str, width: int) -> Callable[[], Any]:
    weight, i = zeros(dtype, 64, width), _indices(16, 64)
    return lambda: embeddings.embedding(weight, i)


def _embedding_gradient(dtype: str, count: int, n: int, width: int) -> Callable[[], Any]:
    dy, i = zeros(dtype, count, width), np.arange(count, dtype=np.int32) % n
    return lambda: embeddings._BACKWARD(dy, i, n)


def _embedding_gradients(*widths: int) -> Calls:
    sizes = ((16, 64), (512, 64), (2048, 64), (512, 512))
    return _each(_embedding_gradient, *((*size, width) for size in sizes for width in widths))


def _added_at(dtype: str, count: int, n: int, width: int) -> Callable[[], Any]:
    x, updates = zeros(dtype, n, width), zeros(dtype, count, width)
    i = np.arange(count, dtype=np.int32) % n
    return lambda: indexing.index_add(x, i, updates)


def _sums_at_indices() -> dict[str, Calls]:
    """Of rows of each power of two up to 128 side by side.

    Indices and rows are so few that one program sorts them, and one finds where they begin: programs that are not counted do not
    run, and leave undefined what they are to find.
    """

    def calls(*widths: int) -> Calls:
        counts = ((16, 127), (127, 127), (254, 127))
        return _each(_added_at, *((*each, width) for width in widths for each in counts))

    made = {}
    for bit in range(8):
        block = 128 >> bit
        whole, ragged = (256, 192, 128) if bit == 0 else (block,), (block - 1, block * 3 // 4 - 1)
        made[f"sums_at_indices_kernel {bit}"] = calls(*whole)
        if 1 << bit <= MOST_WIDE_ROWS:
            more = (150, 251) if bit == 0 else ()
            made[f"sums_at_indices_kernel {bit} ragged"] = calls(*ragged, *more)
    return made


def _losses(reduction: str) -> Calls:
    def make(dtype: str, rows: int) -> Callable[[], Any]:
        x, labels = zeros(dtype, rows, 64), np.arange(rows, dtype=np.int32) % 64
        return lambda: cross_entropies.cross_entropy(x, labels, reduction=reduction)

    return _each(make, 256, 100, 512)


def _plain_indices(dtype: str) -> Calls:
    """Indices of a dtype, whatever that of the question."""

    def make(_: str, count: int) -> Callable[[], Any]:
        x, i = zeros("float32", 16, 1), np.zeros(count, dtype)
        return lambda: indexing.index_add(x, i, zeros("float32", count, 1))

    return _each(make, 1024, 300, 600)


def _columns(dtype: str, length: int, inner: int) -> Callable[[], Any]:
    x = zeros(dtype, length, inner)
    return lambda: scans.cumsum(x, 0)


def _step(call: Callable[..., Any], states: int) -> Calls:
    """Steps of an optimiser with so many states, which are float32."""

    def make(dtype: str, count: int) -> Callable[[], Any]:
        given = [zeros(dtype, count), zeros(dtype, count)]
        given += [zeros("float32", count) for _ in range(states)]
        return lambda: call(*given)

    return _each(make, 65_536, 300, 600)


def _adamw(later: bool) -> Calls:
    def call(*arrays: np.ndarray) -> Any:
        states = {"means": arrays[2:3], "squares": arrays[3:4]} if later else {}
        return optimisers.adamw_step(arrays[:1], arrays[1:2], step=1, **states)

    return _step(call, 2 * later)


def _sgd(later: bool) -> Calls:
    def call(*arrays: np.ndarray) -> Any:
        states = {"buffers": arrays[2:3]} if later else {}
        return optimisers.sgd_step(arrays[:1], arrays[1:2], lr=0.1, momentum=0.9, **states)

    return _step(call, later)


def _histogram(high: float) -> Calls:
    def make(_: str, count: int, bins: int) -> Callable[[], Any]:
        x = zeros("float32", count)
        return lambda: histograms.histogram(x, bins, range=(high - 1.0, high))

    return _each(make, *((count, bins) for count in (1024, 8192) for bins in (10, 64, 256, 1000)))


def _bincount(_: str, count: int, bins: int) -> Callable[[], Any]:
    x = np.zeros(count, np.int32)
    return lambda: histograms.bincount(x, bins)


def _quantized(bits: int, group: int, mode: str) -> Calls:
    def make(dtype: str, groups: int) -> Callable[[], Any]:
        w = zeros(dtype, groups, group)
        return lambda: quantized.quantize(w, group, bits, mode)

    whole = 2048 // group
    return _each(make, 4 * whole, whole * 3 // 10, whole * 6 // 10)


def _dequantized(bits: int, mode: str) -> Calls:
    group = 64 if mode == "affine" else 32

    def make(dtype: str, rows: int) -> Callable[[], Any]:
        scales = zeros(dtype if mode == "affine" else "uint8", rows, 128 // group)
        parts = (
            np.zeros((rows, 4 * bits), np.uint32),
            scales,
            scales if mode == "affine" else None,
        )
        return lambda: quantized.dequantize(*parts, group, bits, mode)

    return _each(make, 64, 5, 10)


def _long_norms(counts: tuple[int, ...], *lengths: int) -> Calls:
    def make(dtype: str, count: int, length: int) -> Callable[[], Any]:
        x, weight = zeros(dtype, count, length), zeros(dtype, length)
        return lambda: norms._BACKWARD(x, None, x, weight, 1e-5, True, dtype, dtype)

    return _each(make, *((count, length) for count in counts for length in lengths))


def _linear_losses(*widths: int) -> Calls:
    def make(dtype: str, count: int, width: int) -> Callable[[], Any]:
        x, w, labels = zeros(dtype, count, width), zeros(dtype, count, width), np.zeros(count, np.int32)  # fmt: skip
        one, log_sums = np.ones((1,), np.float32), np.zeros(count, np.float32)
        given = (one.reshape(()), one, x, w, labels, log_sums, -100, 0.0, "mean", True, True)
        return lambda: linear_cross_entropies._BACKWARD(*given)

    return _each(make, *((width, width) for width in widths), (64, widths[0]), (64, widths[-1]))


def _attention_gradients(width: int) -> Calls:
    def make(dtype: str, keys: int) -> Callable[[], Any]:
        q, k, rows = zeros(dtype, 1, 1, keys, width), zeros(dtype, 1, 1, keys, width), np.zeros((1, 1, keys), np.float32)  # fmt: skip
        given = (None, None, None, -1, -1, 0.125, False)
        return lambda: attentions._BACKWARD(q, q, k, k, q, rows, rows, *given)

    return _each(make, 64, 192)


def _depthwise(dtype: str, length: int, channels: int, taps: int) -> Callable[[], Any]:
    x, w = zeros(dtype, 1, length, channels), zeros(dtype, channels, taps, 1)
    return lambda: convolutions.conv1d(x, w, padding=taps - 1, groups=channels)


def _depthwise_gradient(dtype: str, length: int, channels: int, taps: int) -> Callable[[], Any]:
    x, dy = zeros(dtype, 1, length, channels), zeros(dtype, 1, length, channels)
    how = ([1], [taps // 2], [1], channels, False, True)
    return lambda: FILTER_GRADIENT(x, dy, [channels, taps, 1], *how)


#: Images of few programs and of many, whose tiles are larger.
SIDES = (10, 24, 72)
#: By the inputs of a step: inputs that are read so many at once.
DEEP = {8: (8,), 16: (16, 48), 32: (32, 64)}
#: Few inputs and taps on a side, in one step or in several.
FLAT = ((1, 3), (3, 1), (2, 2), (4, 2), (3, 3), (3, 5), (3, 7))


def _transposed(sizes: Sequence[tuple[int, int]]) -> Calls:
    """Transposed convolutions of so many inputs and taps on a side, of stride 1, as gradients are, and 2."""

    def make(dtype: str, outputs: int, side: int, n: int, taps: int, stride: int) -> Callable[[], Any]:  # fmt: skip
        x, w = zeros(dtype, 1, side, side, n), zeros(dtype, outputs, taps, taps, n)
        return lambda: convolutions.conv_transpose2d(x, w, stride=stride)

    return _each(
        make,
        *(
            (outputs, side, n, taps, stride)
            for outputs in (16, 32, 64)
            for side in SIDES
            for n, taps in sizes
            for stride in (1, 2)
        ),
    )


def _softmax_of_columns(log: bool) -> dict[str, Calls]:
    """Columns of which so many are side by side, and their gradients."""

    def forward(dtype: str, length: int, inner: int) -> Callable[[], Any]:
        x = zeros(dtype, length, inner)
        return lambda: (softmaxes.log_softmax if log else softmaxes.softmax)(x, 0)

    def backward(dtype: str, length: int, inner: int) -> Callable[[], Any]:
        x = zeros(dtype, length, inner)
        return lambda: softmaxes._SOFTMAX_BACKWARD(x, x, 0, log)

    found = {}
    for sides in BY_SIDES:
        _, side, *blocks = sides.split()
        most = int(blocks[0]) if blocks else 4096 // int(side)
        lengths = {most, max(most // 2 + 1, most * 3 // 4)}
        for ragged, inner in (("", 64), (" ragged", 61)):
            sizes = [(length, inner) for length in lengths]
            found[f"softmax_kernel {log} {sides}{ragged}"] = _each(forward, *sizes)
            if not log:
                found[f"softmax_backward_kernel {sides}{ragged}"] = _each(backward, *sizes)
    return found


def _depthwise_sizes(*channels: int) -> tuple[tuple[int, int, int], ...]:
    """Lengths, channels and taps."""
    return tuple((length, n, taps) for length in (64, 640) for n in channels for taps in (3, 7))


_DEPTHWISE, _DEPTHWISE_RAGGED = _depthwise_sizes(16, 64), _depthwise_sizes(21, 75, 245)
_DEPTHWISE_FOURS = _depthwise_sizes(20, 76, 244)


def _reduction_gradient(kind: str, length: int) -> Calls:
    def make(dtype: str, count: int) -> Callable[[], Any]:
        x, row = zeros(dtype, count, length), zeros(dtype, count)
        name = "max" if kind == "extreme" else kind
        return lambda: _REDUCTION_GRADIENT(x, row, row, name, [1], 0.0)

    return _each(make, 64, 5, 10)


def _put(dtype: str, count: int) -> Callable[[], Any]:
    dy, places = zeros(dtype, count, 16), np.zeros((count, 16), np.int64) + np.arange(16)
    return lambda: sorts._PUT(dy, places, 1, 64)


#: By the kernel and its kind without the dtype: calls of a dtype whose launches are of this kind.
FURTHER: Mapping[str, Calls] = {
    "gated_backward_kernel": _few_numbers(
        lambda gate, value, dy: activations._GATED_BACKWARD(gate, value, dy, "silu"), 3
    ),
    "dropout_kernel": _few_numbers(lambda x: dropouts.dropout(x, 0.1, 7)),
    **{
        f"reduction_gradient_kernel {kind}{form}": _reduction_gradient(kind, length)
        for kind in GRADIENTS
        for form, length in (("", 64), (" ragged", 61))
    },
    "put_kernel": _each(_put, 256, 20, 40),
    "plain_indices_kernel int32": _plain_indices("int32"),
    "plain_indices_kernel int64": _plain_indices("int64"),
    **_rotary(False),
    **_rotary(True),
    "embedding_kernel": _each(_embedding, 16, 32, 64, 128, 512, 1024, 1536),
    "embedding_kernel ragged": _each(_embedding, 14, 31, 70, 131, 501, 1001, 1501),
    "embedding_backward_kernel": _embedding_gradients(16, 32, 64, 128, 256),
    "embedding_backward_kernel ragged": _embedding_gradients(15, 31, 61, 122, 250),
    **_sums_at_indices(),
    "losses_kernel sum": _losses("mean"),
    "losses_kernel each": _losses("none"),
    "column_scan_kernel walk": _each(_columns, (64, 256), (256, 256), (250, 1001)),
    "column_scan_kernel totals": _each(_columns, (512, 64), (2048, 64), (2048, 100)),
    "adamw_kernel first": _adamw(False),
    "adamw_kernel later": _adamw(True),
    "sgd_kernel first": _sgd(False),
    "sgd_kernel later": _sgd(True),
    "histogram_kernel near": _histogram(1.0),
    "histogram_kernel search": _histogram(1e6),
    "histogram_kernel plain": _each(
        _bincount, *((count, bins) for count in (1024, 8192) for bins in (10, 64, 256, 1000))
    ),
    **{
        f"quantize_kernel {bits} {group}": _quantized(bits, group, "affine")
        for bits in (4, 8)
        for group in (32, 64, 128)
    },
    "mx_quantize_kernel 4 32": _quantized(4, 32, "mxfp4"),
    "mx_quantize_kernel 8 32": _quantized(8, 32, "mxfp8"),
    "dequantize_kernel 4": _dequantized(4, "affine"),
    "dequantize_kernel 8": _dequantized(8, "affine"),
    "dequantize_kernel uint8 4": _dequantized(4, "mxfp4"),
    "dequantize_kernel uint8 8": _dequantized(8, "mxfp8"),
    "weight_gradients_kernel": _long_norms((1, 16, 200), 4112, 5120),
    "weight_gradients_kernel ragged": _long_norms((1, 16, 200), 4101, 5121),
    "long_norm_backward_kernel": _long_norms((4,), 8208, 12_288, 16_384),
    "long_norm_backward_kernel ragged": _long_norms((4,), 8201, 12_301, 16_381),
    "chunk_kernel": _linear_losses(64, 112, 272, 624),
    "chunk_kernel ragged": _linear_losses(61, 121, 270, 450),
    "product_kernel rows": _linear_losses(64, 112, 272),
    "product_kernel rows ragged": _linear_losses(61, 121, 270),
    "product_kernel columns": _linear_losses(64, 112, 272),
    "product_kernel columns ragged": _linear_losses(61, 121, 270),
    **_softmax_of_columns(False),
    **_softmax_of_columns(True),
    **{
        f"convolution_kernel tile{deep} transposed": _transposed(
            [*itertools.product(inputs, (2, 3))]
        )
        for deep, inputs in DEEP.items()
    },
    **{f"convolution_kernel flat{deep} transposed": _transposed(FLAT) for deep in DEEP},
    "convolution_kernel narrow": _each(_depthwise, *_DEPTHWISE),
    "convolution_kernel narrow ragged": _each(_depthwise, *_DEPTHWISE_RAGGED),
    "convolution_kernel narrow fours": _each(_depthwise, *_DEPTHWISE_FOURS),
    "filter_gradient_kernel narrow": _each(_depthwise_gradient, *_DEPTHWISE),
    "filter_gradient_kernel narrow ragged": _each(_depthwise_gradient, *_DEPTHWISE_RAGGED),
    "filter_gradient_kernel narrow fours": _each(_depthwise_gradient, *_DEPTHWISE_FOURS),
    **{
        f"{kernel} {words}": _attention_gradients(width)
        for kernel in ("attention_dq_kernel", "attention_dkv_kernel")
        for words, width in (("32", 32), ("64", 64), ("64+", 96), ("128", 128), ("256", 256))
    },
}
