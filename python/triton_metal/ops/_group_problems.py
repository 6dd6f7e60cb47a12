"""Small calls by which the table of `_groups` is made: for each kernel and its constants, some of different sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from . import (
    activations,
    cross_entropies,
    matmuls,
    norms,
    reductions,
    scans,
    softmaxes,
    sorts,
)
from ._choices import asked, forced
from ._groups import GROUPS
from ._problems import numpy_dtype

Call = Callable[[np.ndarray], Any]


def _rows(call: Call, *lengths: int, count: int = 64) -> Callable[[str], Iterator[Callable[[], Any]]]:
    """Calls on some rows of each length."""

    def calls(dtype: str) -> Iterator[Callable[[], Any]]:
        for length in lengths:
            x = np.zeros((count, length), numpy_dtype(dtype))
            yield lambda x=x: call(x)

    return calls


def _columns(call: Call, inner: int, *lengths: int) -> Callable[[str], Iterator[Callable[[], Any]]]:
    """Calls on columns of each length."""

    def calls(dtype: str) -> Iterator[Callable[[], Any]]:
        for length in lengths:
            x = np.zeros((16, length, inner), numpy_dtype(dtype))
            yield lambda x=x: call(x)

    return calls


def _vectors(transposed: bool, *sizes: tuple[int, int]) -> Callable[[str], Iterator[Callable[[], Any]]]:
    def calls(dtype: str) -> Iterator[Callable[[], Any]]:
        for n, k in sizes:
            x = np.zeros((1, k), numpy_dtype(dtype))
            w = np.zeros((n, k) if transposed else (k, n), numpy_dtype(dtype))
            yield lambda x=x, w=w: matmuls.matmul(x, w, transpose_b=transposed)

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

#: By the kernel and what its kinds have behind the dtype: calls of a dtype whose launches are of this kind.
PROBLEMS: Mapping[str, Callable[[str], Iterator[Callable[[], Any]]]] = {
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
    "norm_backward_kernel": _rows(_norm_backward, 128, 512, 2048, count=4),
    "row_sums_kernel": _rows(lambda x: cross_entropies.cross_entropy(x, _labels(x)), *_SHORT),
    "long_row_sums_kernel": _rows(
        lambda x: cross_entropies.cross_entropy(x, _labels(x)), *_LONG
    ),
    "cross_entropy_backward_kernel": _rows(_loss_backward, 128, 512, 1024),
    "reduce_kernel rows": _rows(lambda x: reductions.sum(x, 1), 32, 500, 1024, 2000, 8192),
    "reduce_kernel columns": _columns(lambda x: reductions.sum(x, 1), 512, 16, 64, 200),
    "centred_kernel rows": _rows(lambda x: reductions.var(x, 1), 128, 512, 4096),
    "place_kernel rows": _rows(lambda x: scans.argmax(x, 1), 32, 500, 1024, 4096),
    "place_kernel columns": _columns(lambda x: scans.argmax(x, 1), 512, 16, 64),
    "scan_kernel": _rows(lambda x: scans.cumsum(x, 1), 128, 512, 2048, 8192),
    "sort_kernel": _rows(lambda x: sorts.sort(x, 1), 128, 512, 2048),
    "vector_along_rows_kernel": _vectors(True, (64, 256), (64, 1024)),
    "vector_along_columns_kernel": _vectors(False, (512, 256), (512, 1024), (4096, 256)),
}  # fmt: skip


def observed(kind: str) -> Iterator[tuple[tuple[int, ...], int, Any]]:
    """The sizes of a launch of this kind, its SIMD-groups and its work, for calls of several sizes and all SIMD-groups."""
    from ..errors import TritonError
    from ._table_counts import counted

    kernel, dtype, *more = kind.split()
    for call in PROBLEMS[" ".join([kernel, *more])](dtype):
        with forced(GROUPS.name, (0,)), asked() as questions:
            counted(call)
        sizes = next((q[2] for q in questions if q[:2] == (GROUPS.name, kind)), None)
        if sizes is None:
            continue
        for (warps,) in GROUPS.grid(kind, sizes):
            if sizes[1] > 2048 * warps:
                continue  # more than 64 numbers of a thread
            try:
                with forced(GROUPS.name, (warps,)), asked() as questions:
                    works = counted(call)
            except TritonError:
                continue
            names = [q[1] for q in questions if q[0] == GROUPS.name]
            of_kernel = [work for work, _ in works if work.kernel == kernel]
            place = [name for name in names if name.split()[0] == kernel].index(kind)
            yield sizes, warps, of_kernel[place]
