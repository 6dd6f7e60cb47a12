"""Kernels of `triton_metal.ops` for benchmarks/thread_choice.py, of kinds that no other table has: written when the model stood.

Each is launched by its own function, which names neither SIMD-groups nor stages. No constant of the model may be taken from
what comes out here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import triton_metal as triton
from benchmarks.thread_choice_kernels import Case, Launch, normal
from triton_metal import ops
from triton_metal.ops._choices import forced
from triton_metal.ops._groups import GROUPS


def called(function: Callable[[], Any]) -> Launch:
    """A launch by a function that passes no options on: those of a launch that names none are set around it.

    It has few programs, for which a function would take more SIMD-groups than the compiler does; the model is for many.
    """

    def launch(num_warps: int | None = None, num_stages: int | None = None) -> None:
        triton.set_kernel_config(num_warps=num_warps, num_stages=num_stages)
        try:
            with forced(GROUPS.name, (0,)):
                function()
        finally:
            triton.set_kernel_config(num_warps=None, num_stages=None)

    return launch


def losses() -> Iterator[Case]:
    hidden, weight = normal(192, 256, dtype="float16"), normal(640, 256, dtype="float16")
    labels = np.arange(192, dtype=np.int32) * 3
    run = called(lambda: ops.linear_cross_entropy(hidden, weight, labels))
    yield Case("ops.linear_cross_entropy 192x640x256 float16", run, "tiles_kernel")
    yield Case("ops.linear_cross_entropy, joined tiles", run, "joined_tiles_kernel")
    logits, classes = normal(4, 20000, dtype="float16"), np.arange(4, dtype=np.int32)
    run = called(lambda: ops.cross_entropy(logits, classes, label_smoothing=0.1))
    yield Case("ops.cross_entropy 20000 float16, smoothed", run, "long_row_sums_kernel")


def orders() -> Iterator[Case]:
    x, rows = normal(4, 900), normal(24, 100, dtype="float16")
    yield Case("ops.topk 900 float32", called(lambda: ops.topk(x, 8)), "sort_kernel")
    yield Case("ops.sort rows of 100 float16", called(lambda: ops.sort(rows)), "sort_kernel")
    # Longer than a block, and of keys whose threads the function does not name.
    long = normal(5000, dtype="float16")
    yield Case("ops.sort 5000 float16, merging", called(lambda: ops.sort(long)), "merge_kernel")
    values = normal(6, 5000)
    yield Case("ops.cumsum 5000", called(lambda: ops.cumsum(values)), "scan_kernel")
    yield Case("ops.argmax 5000", called(lambda: ops.argmax(values, axis=1)), "place_kernel")


def places() -> Iterator[Case]:
    x, updates = normal(64, 96), normal(200, 96)
    indices = (np.arange(200) * 7 % 64).astype(np.int32)
    run = called(lambda: ops.index_add(x, indices, updates))
    yield Case("ops.index_add 200 rows of 96", run, "sums_at_indices_kernel")
    yield Case("ops.take 200 rows of 96", called(lambda: ops.take(x, indices)), "take_kernel")


def products() -> Iterator[Case]:
    image, filters = normal(2, 20, 20, 48, dtype="float16"), normal(80, 3, 3, 48, dtype="float16")
    run = called(lambda: ops.conv2d(image, filters, padding=1))
    yield Case("ops.conv2d 20x20x48 by 80x3x3 float16", run, "convolution_kernel")
    deep, each = normal(2, 20, 20, 96), normal(96, 3, 3, 1)
    run = called(lambda: ops.conv2d(deep, each, padding=1, groups=96))
    yield Case("ops.conv2d 20x20x96, each channel alone", run, "convolution_kernel")
    weight = normal(96, 512, dtype="float16")
    run = called(lambda: ops.quantize(weight, group_size=64, bits=4))
    yield Case("ops.quantize 96x512 to 4 bits", run, "quantize_kernel")
    q, k, v = (normal(1, 8, n, 96, dtype="float16") for n in (1, 300, 300))
    run = called(lambda: ops.attention(q, k, v))
    yield Case("ops.attention, one query, heads of 96", run, "decode_kernel")


def cases() -> Iterator[Case]:
    """Every case."""
    for family in (losses, orders, places, products):
        yield from family()
