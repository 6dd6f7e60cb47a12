"""Small calls by which the table of `_groups` is made: for each kernel and its constants, some of different sizes."""

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
    indexing,
    linear_cross_entropies,
    matmuls,
    norms,
    quantized,
    reductions,
    scans,
    softmaxes,
    sorts,
)
from ._choices import forced
from ._convolving import FILTER_GRADIENT
from ._further_problems import DEEP, FLAT, FURTHER, SIDES
from ._groups import SORTED
from ._problems import Calls, zeros

Call = Callable[[np.ndarray], Any]


def _rows(call: Call, *lengths: int, count: int = 64) -> Calls:
    """Calls on some rows of each length."""

    def calls(dtype: str) -> Iterator[Callable[[], Any]]:
        for length in lengths:
            x = zeros(dtype, count, length)
            yield lambda x=x: call(x)

    return calls


def _elements(call: Call) -> Calls:
    """Calls on many numbers, and on so few that one program has them all."""

    def calls(dtype: str) -> Iterator[Callable[[], Any]]:
        yield from _rows(call, 1024)(dtype)
        yield from _rows(call, 301, 601, count=1)(dtype)

    return calls


def _columns(call: Call, *sizes: tuple[int, int, int]) -> Calls:
    """Calls on columns: arrays of them, how many side by side, and their length."""

    def calls(dtype: str) -> Iterator[Callable[[], Any]]:
        for outer, inner, length in sizes:
            x = zeros(dtype, outer, length, inner)
            yield lambda x=x: call(x)

    return calls


def _vectors(transposed: bool, *sizes: tuple[int, int]) -> Calls:
    def calls(dtype: str) -> Iterator[Callable[[], Any]]:
        for n, k in sizes:
            x, w = zeros(dtype, 1, k), zeros(dtype, *((n, k) if transposed else (k, n)))
            yield lambda x=x, w=w: matmuls.matmul(x, w, transpose_b=transposed)

    return calls


#: By the bits of a code and the numbers of K in a block: numbers of K for which products of a few rows take it, whole and cut.
_BLOCKS_OF_WORDS = {
    4: {
        512: ((512, 1024, 2048), (480, 992, 1504)),
        256: ((256, 768, 1280), (224, 736, 1248)),
        128: ((128, 384, 640), ()),
        64: ((64, 320, 576), (32, 96, 160)),
    },
    8: {
        256: ((256, 512, 1024), (224, 480, 992)),
        128: ((128, 384, 640), ()),
        64: ((64, 320, 576), (32, 96, 160)),
    },
}


def _few_rows(mode: str, bits: int, sizes: tuple[int, ...]) -> Calls:
    def calls(dtype: str) -> Iterator[Callable[[], Any]]:
        group = 32
        for k in sizes:
            w = np.zeros((64, k * bits // 32), np.uint32)
            scales = zeros(dtype if mode == "affine" else "uint8", 64, k // group)
            biases = scales if mode == "affine" else None
            how = {"transpose": True, "bits": bits, "group_size": group, "mode": mode}
            x = zeros(dtype, 1, k)
            yield lambda x=x, w=w, s=scales, b=biases, how=how: quantized.quantized_matmul(
                x, w, s, b, **how
            )

    return calls


def _rows_of_words(kernel: str, mode: str, bits: int) -> dict[str, Calls]:
    made = {}
    for block, (whole, cut) in _BLOCKS_OF_WORDS[bits].items():
        kind = f"{kernel} {mode}{bits} {block}"
        made[kind] = _few_rows(mode, bits, whole)
        if cut:
            made[f"{kind} cut"] = _few_rows(mode, bits, cut)
    return made


def _merges(keys: str) -> Calls:
    """Rows that are sorted in blocks of 2048 and of 4096, whatever the dtype of the question."""

    def calls(_: str) -> Iterator[Callable[[], Any]]:
        for x in (zeros(keys, 16, length) for length in (5000, 8192)):
            yield lambda x=x: sorts.sort(x, 1)

    return calls


def _convolutions(sizes: Sequence[tuple[int, int]], groups: int = 1) -> Calls:
    """Inputs and taps on a side."""

    def calls(dtype: str) -> Iterator[Callable[[], Any]]:
        for outputs, side in ((outputs, side) for outputs in (16, 32, 64) for side in SIDES):
            for n, taps in sizes:
                x = zeros(dtype, 1, side, side, groups * n)
                w = zeros(dtype, groups * outputs, taps, taps, n)
                yield lambda x=x, w=w: convolutions.conv2d(x, w, groups=groups)

    return calls


def _filter_gradients(inputs: tuple[int, ...]) -> Calls:
    """Steps go over pixels, of few and of many."""

    def calls(dtype: str) -> Iterator[Callable[[], Any]]:
        for outputs, side in ((outputs, side) for outputs in (16, 32, 64) for side in (8, 24)):
            for n, taps in ((n, taps) for n in inputs for taps in (1, 3)):
                x, dy = zeros(dtype, 1, side, side, n), zeros(dtype, 1, side, side, outputs)
                how = ([1, 1], [taps // 2] * 2, [1, 1], 1, False, True)
                shape = [outputs, taps, taps, n]
                yield lambda x=x, dy=dy, shape=shape, how=how: FILTER_GRADIENT(x, dy, shape, *how)

    return calls


def _attention(width: int) -> Calls:
    def calls(dtype: str) -> Iterator[Callable[[], Any]]:
        for keys in (33, 64, 256):
            q, k = zeros(dtype, 1, 1, 64, width), zeros(dtype, 1, 1, keys, width)
            yield lambda q=q, k=k: attentions.attention(q, k, k)

    return calls


def _parts(width: int) -> Calls:
    def calls(_: str) -> Iterator[Callable[[], Any]]:
        for parts in (4, 32, 32768 // width // 2):
            q, k = zeros("float32", 1, 1, 1, width), zeros("float32", 1, 1, parts, width)

            def call(q: np.ndarray = q, k: np.ndarray = k, parts: int = parts) -> None:
                with forced("decode", (parts, 1)):
                    attentions.attention_decode(q, k, k)

            yield call

    return calls


def _linear_losses(*widths: int) -> Calls:
    def calls(dtype: str) -> Iterator[Callable[[], Any]]:
        for width in widths:
            x, w, labels = zeros(dtype, 64, width), zeros(dtype, 64, width), np.zeros(64, np.int32)  # fmt: skip
            yield lambda x=x, w=w, labels=labels: linear_cross_entropies.linear_cross_entropy(
                x, w, labels
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


def _either(name: str, call: Call, even: tuple[int, ...], ragged: tuple[int, ...], count: int = 64) -> dict[str, Calls]:  # fmt: skip
    """The problems of a kernel of rows that begin at multiples of 16 numbers, and of those that begin anywhere."""
    return {
        name: _rows(call, *even, count=count),
        f"{name} ragged": _rows(call, *ragged, count=count),
    }


#: Lengths that fill their powers of two, and that do not. Ragged ones are no multiples of 4, which a launch tells the kernel.
_SHORT, _SHORT_RAGGED = (48, 128, 400, 512, 1104, 2048, 6000, 8192), (53, 121, 402, 1023, 1105, 4001, 8190)  # fmt: skip
#: Of which a power of two is little more than all.
_FULL, _FULL_RAGGED = (48, 128, 256, 464, 512, 912, 1024, 1808, 2048, 4000, 8192, 16_384), (53, 121, 255, 461, 901, 1023, 1999, 4001, 8190, 15_999)  # fmt: skip
_LONG, _LONG_RAGGED = (24_576, 40_000, 65_536), (24_577, 40_001, 65_535)
_UNEVEN, _UNEVEN_RAGGED = (304, 656, 1104, 2560, 4800, 9056), (301, 657, 1101, 2501, 4801, 9001)

_LEAST, _LEAST_RAGGED = (16, 32, 48, 64), (5, 21, 53, 63)
#: Rows that are walked over in blocks of 512 numbers, and the longest that are not.
_BLOCKS = (1104, 2560, 4096, 9056), (1101, 2501, 4801, 9001)
_WITHIN, _WITHIN_RAGGED = (80, 96, 176, 256, 304, 656, 1024), (77, 95, 179, 255, 301, 657, 1001)
_PIECES, _PIECES_RAGGED = (80, 176, *_UNEVEN, 16_384), (77, 179, *_UNEVEN_RAGGED, 16_001)


def _short_rows(name: str, call: Call, whole: int) -> dict[str, Calls]:
    """Rows that fill a power of two, or a part of it."""
    even = sorted({max(16, whole * share // 4 // 16 * 16) for share in (3, 4)})
    ragged = (whole // 2 + 1, whole * 5 // 8 + 1, whole * 3 // 4 + 1, whole - 1)
    return _either(name, call, tuple(even), ragged, count=256)


def _least_rows(name: str, call: Call, count: int) -> dict[str, Calls]:
    """So few short rows that one program has them all."""
    return _either(name, call, _LEAST, _LEAST_RAGGED, count)


def _reduced_rows(call: Call) -> dict[str, Calls]:
    """Few long rows in parts; short ones, of which a program has several; and those in pieces, which a program has alone or four of."""
    name, row = "reduce_kernel rows", "reduce_row_kernel"
    return {
        **_either(name, call, (4096, 10_240, 40_960), (4093, 10_235, 40_001), count=8),
        **_least_rows(f"{name} 2", call, 2),
        **_least_rows(f"{name} 4", call, 4),
        **_short_rows(f"{name} 8", call, 64),
        **_short_rows(f"{name} 16", call, 32),
        f"{name} many": _rows(call, 16, count=256),
        f"{name} many ragged": _rows(call, 3, 5, 6, 11, 13, count=256),
        **_either(f"{row} one", call, _WITHIN, _WITHIN_RAGGED, 8),
        **_either(f"{row} four", call, _WITHIN, _WITHIN_RAGGED, 256),
        **_either(f"{row} blocks", call, *_BLOCKS),
    }


def _reductions(name: str, call: Call, whole: int, block: int) -> dict[str, Calls]:
    """Rows that one program has alone, of several blocks; rows of which it has a few; and those of which it has many."""
    b = block
    return {
        f"{name} rows": _both(
            _rows(call, b, 4 * b, 10 * b), _rows(call, b - 16, 2 * b - 48, 5 * b + 16, count=32)
        ),
        f"{name} rows ragged": _rows(call, b - 13, 2 * b - 47, 5 * b + 3, 10 * b + 1, count=32),
        f"{name} rows 2": _rows(call, b - 16, b, 2 * b - 48, 4 * b - 16, count=128),
        f"{name} rows 2 ragged": _rows(call, b - 13, b - 1, 2 * b - 47, 4 * b - 15, count=128),
        f"{name} rows 4": _both(
            _rows(call, whole // 2 + 16, whole - 16, whole),
            _rows(call, b - 16, 2 * b - 48, 4 * b - 16, count=256),
        ),
        f"{name} rows 4 ragged": _both(
            _rows(call, whole // 2 + 3, whole - 21, whole - 5),
            _rows(call, b - 13, 2 * b - 47, 4 * b - 15, count=256),
        ),
        **_short_rows(f"{name} rows 8", call, whole // 2),
        **_short_rows(f"{name} rows 16", call, whole // 4),
        **({f"{name} rows many": _rows(call, 16, count=256)} if block > 256 else {}),
        f"{name} rows many ragged": _rows(call, 3, 5, 6, 11, 13, count=256),
    }


def _centred_rows(end: str, call: Call) -> dict[str, Calls]:
    """Short rows, which are held several together, longer ones in pieces, and those of which a variance is taken in blocks."""
    whole = (_PIECES, _PIECES_RAGGED) if end == "log" else (_WITHIN, _WITHIN_RAGGED)
    name = f"centred_kernel {end}"
    return {
        **_least_rows(f"{name} rows", call, 1),
        **_least_rows(f"{name} rows 2", call, 2),
        **_least_rows(f"{name} rows 4", call, 4),
        **_short_rows(f"{name} rows 8", call, 64),
        **_short_rows(f"{name} rows 16", call, 32),
        f"{name} rows many": _rows(call, 16),
        f"{name} rows many ragged": _rows(call, 3, 5, 6, 11, 13),
        **_either(f"centred_row_kernel {end}", call, *whole),
        **(_either("variance_row_kernel", call, *_BLOCKS) if end == "var" else {}),
    }


def _totals(ragged: bool) -> Calls:
    """Few long rows, which are scanned in parts."""
    lengths = (9001, 20_001, 50_001) if ragged else (9008, 20_000, 50_000)
    return _rows(lambda x: scans.cumsum(x, 1), *lengths, count=2)


def _column_reductions(name: str, call: Call, blocks: Sequence[int], join: str = "") -> dict[str, Calls]:  # fmt: skip
    """Columns of which so many numbers are reduced at once, in one step or, where a tile has no more, in several."""
    found = {}
    for block in blocks:
        lengths = sorted(
            {block, max(1, block - 1), *((3 * block, 6 * block - 1) if block >= 4 else ())}
        )
        for ragged, odd in (("", 0), (" ragged", 3)):
            # Few columns are shared by more programs.
            many = [(64, inner) for inner in (32, 48, 80, 144, 176)]
            few = [(8, inner) for inner in (96, 176, 272)]
            sizes = [
                (outer, inner - odd, length) for outer, inner in many + few for length in lengths
            ]
            found[f"{name} columns {block}{join}{ragged}"] = _columns(call, *sizes)
    return found


def _sum(x: np.ndarray) -> Any:
    return reductions.sum(x, 1)


def _argmax(x: np.ndarray) -> Any:
    return scans.argmax(x, 1)


def _cumsum(x: np.ndarray) -> Any:
    return scans.cumsum(x, 1)


#: By the kernel and its kind without the dtype: calls of a dtype whose launches are of this kind.
PROBLEMS: Mapping[str, Calls] = {
    "activation_kernel": _elements(activations.gelu),
    "activation_backward_kernel": _elements(
        lambda x: activations._ACTIVATION_BACKWARD(x, x, "gelu")
    ),
    "gated_kernel": _elements(lambda x: activations.silu_mul(x, x)),
    **_either("softmax_kernel False", softmaxes.softmax, _FULL, _FULL_RAGGED),
    **_either("softmax_kernel True", softmaxes.log_softmax, _LEAST, _LEAST_RAGGED),
    **_either(
        "uneven_softmax_kernel False",
        softmaxes.softmax,
        (80, 176, *_UNEVEN),
        (77, 179, *_UNEVEN_RAGGED),
    ),
    **_either("uneven_softmax_kernel True", softmaxes.log_softmax, _PIECES, _PIECES_RAGGED),
    **_either("long_row_softmax_kernel", softmaxes.softmax, _LONG, _LONG_RAGGED),
    **_either(
        "softmax_backward_kernel",
        lambda x: softmaxes._SOFTMAX_BACKWARD(x, x, 1, False),
        _SHORT,
        _SHORT_RAGGED,
    ),
    **_either("norm_kernel True", norms.layer_norm, _LEAST, _LEAST_RAGGED),
    **_either("norm_kernel False", norms.rms_norm, _LEAST, _LEAST_RAGGED),
    **_either("norm_row_kernel True", norms.layer_norm, _PIECES, _PIECES_RAGGED),
    **_either("norm_row_kernel False", norms.rms_norm, _PIECES, _PIECES_RAGGED),
    **_either("long_norm_kernel", norms.layer_norm, _LONG, _LONG_RAGGED),
    "norm_backward_kernel": _gradients_of_norms((1, 64), (128, 272, 512, 1536, 2048, 4096)),
    "norm_backward_kernel ragged": _gradients_of_norms((1, 64), (121, 339, 511, 1533, 2047, 4001)),
    "column_sums_kernel": _gradients_of_norms((1, 2, 4, 20, 64, 100, 1024), (128,)),
    **_either("row_sums_kernel", _losses, (48, *_PIECES), (53, *_PIECES_RAGGED)),
    **_either("long_row_sums_kernel", _losses, _LONG, _LONG_RAGGED),
    **_either(
        "cross_entropy_backward_kernel",
        _loss_backward,
        (128, 400, 512, 1024, 1552),
        (121, 401, 1023, 1551),
    ),
    "tiles_kernel": _linear_losses(64, 112, 272, 624),
    "tiles_kernel ragged": _linear_losses(61, 121, 270, 450),
    **_reduced_rows(_sum),
    **_column_reductions("reduce_kernel", _sum, (2, 4, 8, 16)),
    **_column_reductions("reduce_kernel", lambda x: reductions.max(x, 1), (2, 4, 8, 16), " max"),
    **_centred_rows("var", lambda x: reductions.var(x, 1)),
    **_centred_rows("log", lambda x: reductions.logsumexp(x, 1)),
    **_reductions("place_kernel", _argmax, 64, 256),
    **_column_reductions("place_kernel", _argmax, (2, 4, 8)),
    # Of many long rows a SIMD-group has one alone.
    **_either(
        "scan_kernel one",
        _cumsum,
        (272, 512, 1104, 2048, 3552, 4096),
        (301, 511, 1101, 2047, 2501, 4030),
        count=32,
    ),
    **_either("scan_kernel one 2", _cumsum, (144, 192, 256), (137, 190, 251)),
    **_either("scan_kernel one 4", _cumsum, (80, 96, 128), (69, 90, 127)),
    **_short_rows("scan_kernel one 8", _cumsum, 64),
    **_short_rows("scan_kernel one 16", _cumsum, 32),
    **_either("scan_kernel one many", _cumsum, (16,), (3, 5, 6, 11, 13)),
    **_either("scan_kernel walk", _cumsum, (4112, 8192, 12_000), (4101, 8190, 12_001), 32),
    "scan_kernel totals": _totals(False),
    "scan_kernel totals ragged": _totals(True),
    # Programs have some short rows each, and one or a few where there are no more.
    **{
        f"sort_kernel {placed}{block}": _both(
            *(
                _rows(lambda x, sort=sort: sort(x, 1), block, count=rows)
                for rows in ((64, 4, 1) if block < 512 else (64,))
            )
        )
        for placed, sort in (("", sorts.sort), ("placed ", sorts.argsort))
        for block in SORTED
    },
    "merge_kernel uint16": _merges("float16"),
    "merge_kernel uint32": _merges("float32"),
    # A part of a row is kept, of an eighth of it at most.
    **{
        f"sort_kernel some {block}": _both(
            *(
                _rows(lambda x, kept=kept: sorts.topk(x, kept, axis=1), block, count=64)
                for kept in sorted({block // 8, max(1, min(8, block // 16))})
            )
        )
        for block in SORTED
    },
    "take_kernel False even": _rows(_take, 16, 48, 128, 512, 1024),
    "take_kernel False ragged": _rows(_take, 6, 25, 101, 301, 1001),
    **{
        f"vector_along_rows_kernel {form} {block}": _vectors(True, *((64, k) for k in sizes))
        for form, block, sizes in (
            ("even", 16, (16, 32, 48)),
            ("even", 32, (56, 64)),
            ("even", 64, (80, 128, 256)),
            ("even", 128, (384, 640, 896)),
            ("even", 256, (512, 1024, 2048)),
            ("ragged", 16, (15, 31, 47)),
            ("ragged", 32, (53, 63)),
            ("ragged", 64, (79, 127, 255)),
            ("ragged", 128, (383, 511, 1023)),
        )
    },
    "vector_along_columns_kernel even 16": _vectors(False, (512, 256), (512, 1024), (1024, 256)),
    "vector_along_columns_kernel ragged 16": _vectors(False, (511, 256), (511, 1024), (1023, 256)),
    "vector_along_columns_kernel even 128": _vectors(False, (2048, 64), (2048, 512), (4096, 256)),
    "vector_along_columns_kernel ragged 128": _vectors(False, (2049, 64), (2051, 512), (4095, 256)),
    **_rows_of_words("word_vector_kernel", "affine", 4),
    **_rows_of_words("word_vector_kernel", "mxfp4", 4),
    **_rows_of_words("byte_vector_kernel", "affine", 8),
    **_rows_of_words("byte_vector_kernel", "mxfp8", 8),
    **{
        f"convolution_kernel tile{deep}{side}": _convolutions(
            [*itertools.product(inputs, (1, 3))], groups
        )
        for deep, inputs in DEEP.items()
        for side, groups in (("", 1), (" grouped", 2))
    },
    **{f"convolution_kernel flat{deep}": _convolutions(FLAT) for deep in DEEP},
    "filter_gradient_kernel tile": _filter_gradients((16, 32, 64)),
    "filter_gradient_kernel flat": _filter_gradients((3,)),
    "attention_kernel 32": _attention(32),
    "attention_kernel 64": _attention(64),
    "attention_kernel 64+": _attention(96),
    "attention_kernel 128": _attention(128),
    "attention_kernel 256": _attention(256),
    **{f"join_kernel {width}": _parts(width) for width in (16, 32, 64, 128, 256)},
    **FURTHER,
}
