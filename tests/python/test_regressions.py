"""Kernels that once gave wrong results, each as small as it still failed."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import triton_metal_host as metal

from host_processors import compiled_for, host_processors
from kernel_support import assert_same, integers, normal, tl, triton


@triton.jit
def two_masks_kernel(flags_ptr, x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    flags = tl.load(flags_ptr + offsets, mask=offsets < n, other=0)
    x = tl.load(x_ptr + offsets, mask=flags, other=-1)
    tl.store(out_ptr + offsets, x)


@pytest.mark.parametrize("n", [64, 60])
def test_a_loaded_mask_beside_a_uniform_one(n: int) -> None:
    rng = np.random.default_rng(0)
    flags, x = rng.integers(0, 2, 64).astype(bool), integers(rng, 64, "int32")
    out = np.empty_like(x)
    two_masks_kernel[(1,)](flags, x, out, n, BLOCK=64, num_warps=1)
    assert_same(out, np.where(flags & (np.arange(64) < n), x, np.int32(-1)))


@triton.jit
def column_argmax_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    rows, cols = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(x_ptr + rows[:, None] * N + cols[None, :])
    tl.store(out_ptr + cols, tl.argmax(x, 0))


@pytest.mark.parametrize("num_warps", [1, 4, 16])
def test_argmax_of_columns_that_are_spread_anew(num_warps: int) -> None:
    x = np.random.default_rng(0).integers(-3, 4, (8, 512)).astype(np.float16)
    out = np.empty(512, np.int32)
    column_argmax_kernel[(1,)](x, out, M=8, N=512, num_warps=num_warps)
    assert_same(out, x.argmax(axis=0).astype(np.int32))


@triton.jit
def clear_and_scatter_kernel(places_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, 0)
    places = tl.load(places_ptr + offsets)
    tl.store(out_ptr + places, offsets + 1, mask=offsets % 2 == 0)


@triton.jit
def overlapping_steps_kernel(out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    for step in range(n):
        tl.store(out_ptr + step + offsets, offsets * 100 + step)


@pytest.mark.parametrize("schedule", [None, 1, 2])
@pytest.mark.parametrize("num_warps", [1, 4, 8])
def test_later_stores_win(num_warps: int, schedule: int | None) -> None:
    places = np.random.default_rng(0).permutation(256).astype(np.int32)
    scattered, steps = np.full(256, -1, np.int32), np.zeros(262, np.int32)
    with triton.launch_options(schedule=schedule):
        clear_and_scatter_kernel[(1,)](places, scattered, BLOCK=256, num_warps=num_warps)
        overlapping_steps_kernel[(1,)](steps, 7, BLOCK=256, num_warps=num_warps)
    expected = np.zeros(256, np.int32)
    expected[places[::2]] = np.arange(0, 256, 2) + 1
    assert_same(scattered, expected)
    expected = np.zeros(262, np.int32)
    for step in range(7):
        expected[step : step + 256] = np.arange(256) * 100 + step
    assert_same(steps, expected)


@triton.jit
def chosen_bfloats_kernel(x_ptr, out_ptr, stride, n, BLOCK: tl.constexpr):
    rows, cols = tl.arange(0, BLOCK)[:, None], tl.arange(0, BLOCK)[None, :]
    kept = rows < n
    x = tl.load(x_ptr + rows * stride + cols, mask=kept)
    tl.store(out_ptr + rows * BLOCK + cols, tl.where(kept, x, tl.full((), 1, tl.bfloat16)))


@pytest.mark.parametrize("stride", [32, 33])
@pytest.mark.parametrize("n", [3, 32])
def test_a_choice_between_a_bfloat_in_memory_and_a_constant(stride: int, n: int) -> None:
    x = normal(np.random.default_rng(0), 33 * 32, "bfloat16")
    out = np.zeros((32, 32), x.dtype)
    chosen_bfloats_kernel[(1,)](x, out, stride, n, BLOCK=32)
    rows, cols = np.arange(32)[:, None], np.arange(32)
    assert_same(out, np.where(rows < n, x[rows * stride + cols], np.ones((), x.dtype)))


SMALL_TILES = """import triton_metal as triton
import triton_metal.language as tl


@triton.jit
def stores(p, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(p + (N - 1) - i)
    tl.store(p + (i ^ 1), v + 1)
    tl.store(p + (N - 1) - i, v + 1)


@triton.jit
def exchanges(p, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(p + (N - 1) - i)
    tl.store(p + (i ^ 1), v)
    tl.atomic_cas(p + (N - 1) - i, i ^ 1, v + 100)
"""


# Excluded lanes once came back after a barrier, on processors with AVX-512 only.
@pytest.mark.parametrize("processor", host_processors())
@pytest.mark.parametrize("num_warps", [1, 2, 4, 8])
def test_small_tiles_end_where_they_end(
    processor: str | None, num_warps: int, tmp_path: Path
) -> None:
    # A module of its own: a kernel that is compiled already stays what it is.
    name = f"small_tiles_{num_warps}_{(processor or 'host').replace('-', '_')}"
    path = tmp_path / f"{name}.py"
    path.write_text(SMALL_TILES)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for n in (2, 4, 8, 16, 32):
        p, numbers = np.arange(256, dtype=np.int32), np.arange(256, dtype=np.int32)
        q = p.copy()
        with compiled_for(processor):
            module.stores[(1,)](p, N=n, num_warps=num_warps)
            module.exchanges[(1,)](q, N=n, num_warps=num_warps)
        i = np.arange(n)
        assert_same(p, np.concatenate([numbers[:n] + 1, numbers[n:]]))
        wanted = numbers.copy()
        wanted[i ^ 1] = n - 1 - i
        compared = wanted[n - 1 - i] == (i ^ 1)
        wanted[n - 1 - i] = np.where(compared, n - 1 - i + 100, wanted[n - 1 - i])
        assert_same(q, wanted)


HIGH_PRODUCTS = """
#include <metal_stdlib>
using namespace metal;
kernel void products(device const uint *x, device const uint *y, device uint *out, device ushort *shorts,
                     ushort lane [[thread_index_in_simdgroup]]) {
  uint a = lane < 8 ? x[lane] : 1, b = y[lane];
  out[lane] = mulhi(a, b);
  out[lane + 32] = uint(ulong(a) * ulong(b) >> 32);
  out[lane + 64] = uint(ulong(b) * (lane < 16 ? 1ul : 3ul) >> 32);
  ushort c = lane < 16 ? ushort(y[lane] >> 16) : ushort(1);
  shorts[lane] = mulhi(c, ushort(y[lane]));
}
"""


# Products whose factor is 1 in all lanes of a register once gave what the register had held before.
@pytest.mark.parametrize("processor", host_processors())
@pytest.mark.parametrize("effort", ["quick", "full"])
def test_high_halves_of_products(
    processor: str | None, effort: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITON_METAL_HOST_EFFORT", effort)
    rng = np.random.default_rng(0)
    x, y = (rng.integers(2**31, 2**32, 32, dtype=np.uint32) for _ in range(2))
    out, shorts = np.zeros(96, np.uint32), np.zeros(32, np.uint16)
    with compiled_for(processor):
        device = metal.Device()
        # A text of its own for each: a library that is compiled already stays what it is.
        text = HIGH_PRODUCTS + f"// {processor} {effort}"
        kernel = device.pipeline(device.library(text).function("products"))
        kernel(x, y, out, shorts, threads=32, threads_per_threadgroup=32)
    lanes = np.arange(32)
    wide = y.astype(np.uint64)
    high = np.where(lanes < 8, x, 1).astype(np.uint64) * wide >> np.uint64(32)
    threes = wide * np.where(lanes < 16, 1, 3).astype(np.uint64) >> np.uint64(32)
    assert_same(out, np.concatenate([high, high, threes]).astype(np.uint32))
    short = np.where(lanes < 16, y >> 16, 1).astype(np.uint32) * (y & 0xFFFF) >> 16
    assert_same(shorts, short.astype(np.uint16))


@triton.jit
def last_odd(a, b):
    return tl.where((b & 1) == 1, b, a)


@triton.jit
def branch_on_reduction_kernel(x_ptr, out_ptr, N: tl.constexpr):
    a = tl.reduce(tl.load(x_ptr + tl.arange(0, N)), 0, last_odd)
    if a > 3:
        a += tl.sum(tl.load(x_ptr + tl.arange(0, 64)), 0)
    for _ in range(a & 3):
        a += tl.max(tl.load(x_ptr + tl.arange(0, 32)), 0)
    tl.store(out_ptr, a)


@pytest.mark.parametrize("num_warps", [1, 2, 8])
@pytest.mark.parametrize("n", [2, 8, 64])
def test_a_branch_on_a_reduction_in_order(n: int, num_warps: int) -> None:
    # All lanes have the result, by choices that depend on the lane: they were taken for lanes that part ways.
    x, out = np.arange(64, dtype=np.int32), np.zeros(1, np.int32)
    branch_on_reduction_kernel[(1,)](x, out, N=n, num_warps=num_warps)
    total = n - 1
    if total > 3:
        total += int(x.sum())
    total += (total & 3) * 31
    assert out[0] == total


@triton.jit
def store_by_first_lane_kernel(p, n, start):
    v = tl.load(p + tl.arange(0, 32))
    total = tl.sum(v, 0)
    i = 0
    while i < n:
        for _ in range(start, 4, 3):
            tl.store(p, total)
        i += 1


@pytest.mark.parametrize("dtype", ["int64", "int32", "float32"])
def test_simdgroups_without_an_active_lane_read_no_lane(dtype: str) -> None:
    # The number of the lane that stores was computed, and its element read, where no lane stores.
    x = np.arange(32).astype(dtype)
    expected = x.copy()
    expected[0] = x.sum()
    store_by_first_lane_kernel[(1,)](x, 1, -2, num_warps=2)
    assert_same(x, expected)


@pytest.mark.parametrize("effort", ["quick", "full"])
@pytest.mark.parametrize("kind", ["ulong", "long"])
@pytest.mark.parametrize("operation", ["/", "%"])
def test_lanes_that_take_no_part_do_not_divide(
    effort: str, kind: str, operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They have no divisor, of which LLVM assumed that it is not 0, as it is that of the other lanes."""
    metal = pytest.importorskip("triton_metal_host")
    monkeypatch.setenv("TRITON_METAL_HOST_EFFORT", effort)
    text = f"""#include <metal_stdlib>
        using namespace metal;
        kernel void k(device const {kind} *a, device const {kind} *b, device {kind} *o,
                      uint i [[thread_position_in_grid]]) {{
          if (i % 3 == 0) return;
          {kind} y;
          if (a[i] > 1000) {{
            y = max(b[i], {kind}(1));
            o[i + 64] = y;
          }} else {{
            y = max(a[i], {kind}(1));
            o[i + 128] = y;
          }}
          o[i] = b[i] {operation} y;
        }} // {effort}"""
    dtype = np.uint64 if kind == "ulong" else np.int64
    device = metal.Device()
    function = device.library(text).function("k")
    i = np.arange(64, dtype=dtype)
    y = np.maximum(i, 1).astype(dtype)
    expected = np.where(i % 3 == 0, 0, i // y if operation == "/" else i % y)
    for checks in ((), "bounds", True):
        out = np.zeros(192, dtype)
        arguments = [metal.Buffer(array) for array in (np.full(64, 5000, dtype), i, out)]
        device.pipeline(function, checks=checks)(*arguments, threads=64)
        assert out[:64].tolist() == expected.tolist()
