"""What a product for Apple10 costs beside MLX's kernel for the same matrix units, in the host device's exact counts."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

pytest.importorskip("mlx")

from triton_metal.devices.target import APPLE10

import test_mlx_runs_gemm as of_mlx
from host_target import host_target
from kernel_support import needs_counters
from mlx_kernels import running

from _counts import counting  # isort: skip
from matmul import matmul, numpy_dtype  # isort: skip

TILE = (64, 64, 256, 2, 2)
COUNTED = (
    "device_bytes_read",
    "device_bytes_written",
    "device_lines_read",
    "device_lines_written",
    "simdgroup_matrix_multiplies",
    "threadgroup_barriers",
    "threadgroup_bytes_read",
    "threadgroup_bytes_written",
)


def counts_of_mlx(
    a: np.ndarray, b: np.ndarray, t: str, form: str, size: tuple[int, int, int]
) -> Mapping[str, int]:
    """What MLX's fused kernel for tensor operations counts with blocks of 64x64 in four SIMD-groups."""
    m, n, k = size
    left, right = of_mlx.TRANSPOSITIONS[form]
    bm, bn, bk, wm, wn = TILE
    constants = {10: False, 100: False, 110: False, 200: m % bm == 0, 201: n % bn == 0}
    constants[202] = k % bk == 0
    kernel = running._instantiated(
        "steel_gemm_fused_nax",
        ("gemm", running.metal(t), *TILE, left, right, "float"),
        tuple(constants.items()),
    )
    function = running._library(kernel.text, kernel.folder).function(kernel.name, constants)
    pipeline = running._device().pipeline(function, counters=True)
    params = of_mlx.gemm_params(m, n, k, m if left else k, k if right else n, TILE)
    memory = running._bound(pipeline, {0: a, 1: b, 3: running.blank((m, n), t), 4: params})
    run = pipeline(
        arguments={index: running.metal_api.Buffer(array) for index, array in memory.items()},
        threadgroups=(of_mlx.tiles(n, bn), of_mlx.tiles(m, bm), 1),
        threads_per_threadgroup=(32, wn, wm),
    )
    return run.counters


@needs_counters
@pytest.mark.own_target
@pytest.mark.parametrize(
    ("t", "form", "size"),
    [
        ("float16", "nn", (128, 128, 256)),
        ("float16", "nt", (128, 128, 256)),
        ("bfloat16", "tn", (128, 64, 256)),
        ("float16", "tt", (64, 128, 256)),
        ("float16", "nn", (130, 72, 200)),
    ],
)
def test_no_count_is_above_mlx(t: str, form: str, size: tuple[int, int, int]) -> None:
    m, n, k = size
    a, b, *_ = of_mlx.operands(m, n, k, t, form)
    theirs = counts_of_mlx(a, b, t, form, size)
    left, right = of_mlx.TRANSPOSITIONS[form]
    a, b = (np.asarray(x).view(numpy_dtype(t)) for x in (a, b))
    with host_target(APPLE10), counting() as ours:
        matmul(a.T if left else a, b.T if right else b, tile=(64, 64, 32), num_warps=4)
    assert ours.counters["simdgroup_matrix_multiplies"] > 0
    above = {
        name: (ours.counters.get(name, 0), theirs.get(name, 0))
        for name in COUNTED
        if ours.counters.get(name, 0) > theirs.get(name, 0)
    }
    assert not above


@needs_counters
@pytest.mark.own_target
def test_what_the_host_does_for_a_product_is_counted_apart() -> None:
    m = n = k = 128
    a, b, *_ = of_mlx.operands(m, n, k, "float16", "nn")
    a, b = (np.asarray(x).view(np.float16) for x in (a, b))
    with host_target(APPLE10), counting() as own:
        matmul(a, b, tile=(64, 64, 32), num_warps=4)
    counted = own.counters
    kinds = ("optimized_f32_add", "optimized_f32_mul", "optimized_f32_fma", "optimized_f32_other")
    floats = sum(counted[kind] for kind in kinds) - counted["optimized_function_float"]
    integers = counted["optimized_int_add"] + counted["optimized_int_other"]
    # An instruction has 16 products of 8x8x8, and at least as many numbers of a lane to convert.
    products = counted["simdgroup_matrix_multiplies"] * 32
    assert counted["optimized_function_float"] >= products
    # The text converts each number of the result once, and its addresses are few.
    assert floats <= m * n
    assert integers - counted["optimized_function_int"] < products
