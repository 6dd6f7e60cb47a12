"""Small calls by which the table of `_groups` is made: for each kernel and its constants, some of different sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from . import (
    activations,
    attentions,
    convolutions,
    cross_entropies,
    indexing,
    linear_cross_entropies,
    matmuls,
    norms,
    quantized,
    reductions,
    scaled_matmuls,
    scans,
    softmaxes,
    sorts,
)
from ._choices import forced
from ._convolving import FILTER_GRADIENT
from ._problems import numpy_dtype

Call = Callable[[np.ndarray], Any]


Calls = Callable[[str], Iterator[Callable[[], Any]]]


def _zeros(dtype: str, *shape: int) -> np.ndarray:
    return np.zeros(shape, numpy_dtype(dtype))


def _rows(call: Call, *lengths: int, count: int = 64) -> Calls:
    """Calls on some rows of each length."""

    def calls(dtype: str) -> Iterator[Callable[[], Any]]:
        for length in lengths:
            x = _zeros(dtype, count, length)
            yield lambda x=x: call(x)

    return calls


def _columns(call: Call, *sizes: tuple[int, int]) -> Calls:
    """Calls on columns: how many side by side, and their length."""

    def calls(dtype: str) -> Iterator[Callable[[], Any]]:
        for inner, length in sizes:
            x = _zeros(dtype, 16, length, inner)
            yield lambda x=x: call(x)

    return calls


def _vectors(transposed: bool, *sizes: tuple[int, int]) -> Calls:
    def calls(dtype: str) -> Iterator[Callable[[], Any]]:
        for n, k in sizes:
            x, w = _zeros(dtype, 1, k), _zeros(dtype, *((n, k) if transposed else (k, n)))
            yield lambda x=x, w=w: matmuls.matmul(x, w, transpose_b=transposed)

    return calls


def _few_rows(mode: str, bits: int, transposed: bool) -> Calls:
    def calls(dtype: str) -> Iterator[Callable[[], Any]]:
        group = 64 if mode == "affine" else 32
        for k in (256, 1024):
            rows, columns = (64, k) if transposed else (k, 64)
            w = np.zeros((rows, columns * bits // 32), np.uint32)
            scales = _zeros(dtype if mode == "affine" else "uint8", rows, columns // group)
            biases = scales if mode == "affine" else None
            how = {"transpose": transposed, "bits": bits, "group_size": group, "mode": mode}
            x = _zeros(dtype, 1, k)
            yield lambda x=x, w=w, s=scales, b=biases, how=how: quantized.quantized_matmul(
                x, w, s, b, **how
            )

    return calls


def _convolutions(inputs: tuple[int, ...], filters: bool) -> Calls:
    def calls(dtype: str) -> Iterator[Callable[[], Any]]:
        for outputs in (32, 64):
            for n, taps in ((n, taps) for n in inputs for taps in (1, 3)):
                x, w = _zeros(dtype, 1, 24, 24, n), _zeros(dtype, outputs, taps, taps, n)
                if filters:
                    dy = _zeros(dtype, 1, 24, 24, outputs)
                    how = ([1, 1], [taps // 2] * 2, [1, 1], 1, False, True)
                    shape = [outputs, taps, taps, n]
                    yield lambda x=x, dy=dy, shape=shape, how=how: FILTER_GRADIENT(
                        x, dy, shape, *how
                    )
                else:
                    yield lambda x=x, w=w: convolutions.conv2d(x, w)

    return calls


def _attention(width: int) -> Calls:
    def calls(dtype: str) -> Iterator[Callable[[], Any]]:
        for keys in (64, 256):
            q, k = _zeros(dtype, 1, 1, 64, width), _zeros(dtype, 1, 1, keys, width)
            yield lambda q=q, k=k: attentions.attention(q, k, k)

    return calls


def _parts(width: int) -> Calls:
    def calls(_: str) -> Iterator[Callable[[], Any]]:
        for parts in (4, 32, 32768 // width // 2):
            q, k = _zeros("float32", 1, 1, 1, width), _zeros("float32", 1, 1, parts, width)

            def call(q: np.ndarray = q, k: np.ndarray = k, parts: int = parts) -> None:
                with forced("decode", (parts, 1)):
                    attentions.attention_decode(q, k, k)

            yield call

    return calls


def _linear_losses(dtype: str) -> Iterator[Callable[[], Any]]:
    for width in (64, 256):
        x, w, labels = _zeros(dtype, 64, width), _zeros(dtype, 64, width), np.zeros(64, np.int32)
        yield lambda x=x, w=w, labels=labels: linear_cross_entropies.linear_cross_entropy(
            x, w, labels
        )


def _scaled(a_format: str, b_format: str) -> Calls:
    def calls(_: str) -> Iterator[Callable[[], Any]]:
        for m in (16, 64):
            for k in (128, 512):
                operands, scales = [], []
                for rows, form in ((m, a_format), (64, b_format)):
                    each = 2 if form == "mxfp4" else 1
                    is_float = form == "float16"
                    operands.append(_zeros(form if is_float else "uint8", rows, k // each))
                    scales.append(None if is_float else _zeros("uint8", rows, k // 32))
                forms = {"b_format": b_format}
                if a_format != "float16":
                    forms["a_format"] = a_format
                yield lambda o=operands, s=scales, f=forms: scaled_matmuls.scaled_matmul(
                    *o, *s, **f
                )

    return calls


def _norm_backward(x: np.ndarray) -> Any:
    weight = np.ones(x.shape[1], x.dtype)
    return norms._BACKWARD(x, None, x, weight, 1e-5, True, str(x.dtype), str(x.dtype))


def _labels(x: np.ndarray) -> np.ndarray:
    return np.zeros(x.shape[0], np.int32)


def _loss_backward(x: np.ndarray) -> Any:
    one, log_sums = np.ones((), np.float32), np.zeros(x.shape[0], np.float32)
    labels = _labels(x)
    return cross_entropies._BACKWARD(one, one.reshape(1), x, labels, log_sums, -100, 0.0, "mean")


_SHORT, _LONG = (128, 512, 2048, 8192), (24_576, 65_536)

_SHORT, _LONG = (128, 512, 2048, 8192), (24_576, 65_536)


def _both(*calls: Calls) -> Calls:
    """The calls of several."""

    def joined(dtype: str) -> Iterator[Callable[[], Any]]:
        for each in calls:
            yield from each(dtype)

    return joined


def _gradients_of_norms(counts: tuple[int, ...], lengths: tuple[int, ...]) -> Calls:
    return _both(*(_rows(_norm_backward, *lengths, count=count) for count in counts))


def _take(x: np.ndarray) -> Any:
    return indexing.take(x, np.zeros(64, np.int32), 0)


def _losses(x: np.ndarray) -> Any:
    return cross_entropies.cross_entropy(x, _labels(x))


#: By the kernel and its kind without the dtype: calls of a dtype whose launches are of this kind.
PROBLEMS: Mapping[str, Calls] = {
    "activation_kernel": _rows(activations.gelu, 1024),
    "activation_backward_kernel": _rows(
        lambda x: activations._ACTIVATION_BACKWARD(x, x, "gelu"), 1024
    ),
    "gated_kernel": _rows(lambda x: activations.silu_mul(x, x), 1024),
    "softmax_kernel False": _rows(softmaxes.softmax, *_SHORT),
    "softmax_kernel True": _rows(softmaxes.log_softmax, *_SHORT),
    "uneven_softmax_kernel False": _rows(softmaxes.softmax, 300, 1100, 4800),
    "uneven_softmax_kernel True": _rows(softmaxes.log_softmax, 300, 1100, 4800),
    "long_softmax_kernel": _rows(softmaxes.softmax, *_LONG),
    "softmax_backward_kernel": _rows(
        lambda x: softmaxes._SOFTMAX_BACKWARD(x, x, 1, False), *_SHORT
    ),
    "norm_kernel True": _rows(norms.layer_norm, *_SHORT),
    "norm_kernel False": _rows(norms.rms_norm, *_SHORT),
    "long_norm_kernel": _rows(norms.layer_norm, *_LONG),
    "norm_backward_kernel": _gradients_of_norms((1, 64), (128, 512, 2048, 4096)),
    "column_sums_kernel": _gradients_of_norms((64, 1024), (128, 512)),
    "column_sums_kernel few": _gradients_of_norms((1, 4, 20), (128,)),
    "row_sums_kernel": _rows(_losses, *_SHORT),
    "long_row_sums_kernel": _rows(_losses, *_LONG),
    "cross_entropy_backward_kernel": _rows(_loss_backward, 128, 512, 1024),
    "tiles_kernel": _linear_losses,
    "reduce_kernel rows": _rows(lambda x: reductions.sum(x, 1), 500, 1024, 2000, 8192),
    "reduce_kernel rows several": _both(
        _rows(lambda x: reductions.sum(x, 1), 120),
        _rows(lambda x: reductions.sum(x, 1), 500, 900, 2100, count=256),
    ),
    "reduce_kernel rows many": _rows(lambda x: reductions.sum(x, 1), 20, 32, 64),
    "reduce_kernel columns": _columns(
        lambda x: reductions.sum(x, 1), (512, 16), (512, 64), (512, 200), (150, 32), (64, 100)
    ),
    "centred_kernel rows": _rows(lambda x: reductions.var(x, 1), 512, 2048, 4096),
    "centred_kernel rows several": _both(
        _rows(lambda x: reductions.var(x, 1), 128, 256),
        _rows(lambda x: reductions.logsumexp(x, 1), 128, 256),
    ),
    "centred_kernel rows many": _both(
        _rows(lambda x: reductions.var(x, 1), 32, 64),
        _rows(lambda x: reductions.logsumexp(x, 1), 32, 64),
    ),
    "place_kernel rows": _rows(lambda x: scans.argmax(x, 1), 500, 1024, 4096),
    "place_kernel rows several": _both(
        _rows(lambda x: scans.argmax(x, 1), 64),
        _rows(lambda x: scans.argmax(x, 1), 500, 900, count=256),
    ),
    "place_kernel rows many": _rows(lambda x: scans.argmax(x, 1), 16, 32),
    "place_kernel columns": _columns(lambda x: scans.argmax(x, 1), (512, 16), (512, 64), (64, 100)),
    "scan_kernel": _rows(lambda x: scans.cumsum(x, 1), 128, 512, 2048, 8192),
    "sort_kernel": _rows(lambda x: sorts.sort(x, 1), 32, 128, 512, 2048),
    "sort_kernel some": _both(
        _rows(lambda x: sorts.topk(x, 8, axis=1), 64, 512, 2048),
        _rows(lambda x: sorts.topk(x, 32, axis=1), 512),
    ),
    "take_kernel False even": _rows(_take, 16, 48, 128, 512, 1024),
    "take_kernel False ragged": _rows(_take, 6, 25, 100, 300, 1000),
    "vector_along_rows_kernel even": _vectors(True, (64, 256), (64, 1024)),
    "vector_along_rows_kernel ragged": _vectors(True, (64, 255), (64, 1023)),
    "vector_along_columns_kernel even": _vectors(False, (512, 256), (512, 1024), (4096, 256)),
    "vector_along_columns_kernel ragged": _vectors(False, (511, 256), (511, 1024), (4095, 256)),
    "word_vector_kernel affine4": _few_rows("affine", 4, True),
    "word_vector_kernel mxfp44": _few_rows("mxfp4", 4, True),
    "byte_vector_kernel affine8": _few_rows("affine", 8, True),
    "byte_vector_kernel mxfp88": _few_rows("mxfp8", 8, True),
    "convolution_kernel tile8": _convolutions((8,), False),
    "convolution_kernel tile16": _convolutions((16, 48), False),
    "convolution_kernel tile32": _convolutions((32, 64), False),
    "convolution_kernel flat": _convolutions((3,), False),
    "filter_gradient_kernel tile": _convolutions((32, 64), True),
    "filter_gradient_kernel flat": _convolutions((3,), True),
    "attention_kernel 32": _attention(32),
    "attention_kernel 64": _attention(64),
    "attention_kernel 64+": _attention(96),
    "attention_kernel 128": _attention(128),
    "attention_kernel 256": _attention(256),
    **{f"join_kernel {width}": _parts(width) for width in (16, 32, 64, 128, 256)},
    "scaled_matmul_kernel e2m1:e2m1": _scaled("mxfp4", "mxfp4"),
    "scaled_matmul_kernel e4m3:e4m3": _scaled("mxfp8", "mxfp8"),
    "scaled_matmul_kernel fp16:e2m1": _scaled("float16", "mxfp4"),
}
