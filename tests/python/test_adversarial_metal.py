"""Metal text that is hard on the host device's compiler: loops that ask to be unrolled, and long chains."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from metal_run import run

HEAD = """#include <metal_stdlib>
using namespace metal;
kernel void k(device const float *x [[buffer(0)]], device float *out [[buffer(1)]],
              uint t [[thread_position_in_grid]]) {
  float a = x[t];
"""


def unrolled(loops: int, trips: int, inner: int) -> str:
    """Loops that all ask to be unrolled."""
    text = HEAD
    for loop in range(loops):
        text += f"  #pragma unroll\n  for (int i = 0; i < {trips}; ++i)\n"
        text += f"    #pragma unroll\n    for (int j = 0; j < {inner}; ++j)\n"
        text += f"      a = fma(a, 0.5f, x[(t * {loop + 3} + i * 5 + j) & 63]);\n"
    return text + "  out[t] = a;\n}\n"


def expected(x: np.ndarray, loops: int, trips: int, inner: int) -> np.ndarray:
    a, t = x[:32].copy(), np.arange(32)
    for loop in range(loops):
        for i in range(trips):
            for j in range(inner):
                # Products with 0.5 are exact: fma rounds once, and so does this.
                a = a * np.float32(0.5) + x[(t * (loop + 3) + i * 5 + j) & 63]
    return a


@pytest.mark.parametrize(
    ("loops", "trips", "inner"), [(1, 32, 4), (24, 256, 4), (2, 64, 512), (1, 65536, 2)]
)
def test_unrolling_is_bounded(tmp_path: Path, loops: int, trips: int, inner: int) -> None:
    x = np.random.default_rng(0).standard_normal(64).astype(np.float32)
    buffers = {"x": x, "out": np.zeros(32, np.float32)}
    (out,) = run(unrolled(loops, trips, inner), tmp_path, buffers, ["out"], "--grid=32", "--count")
    np.testing.assert_array_equal(out, expected(x, loops, trips, inner))


def test_arrays_in_loops_that_stay_loops(tmp_path: Path) -> None:
    text = HEAD + "  float kept[64];\n"
    text += "  #pragma unroll\n  for (int i = 0; i < 64; ++i) kept[i] = x[i] * a;\n"
    for step in range(1, 40):
        text += f"  #pragma unroll\n  for (int i = 0; i < 64; ++i) kept[i] += kept[(i * {step}) & 63] * 0.25f;\n"
    text += "  #pragma unroll\n  for (int i = 0; i < 64; ++i) a += kept[i];\n  out[t] = a;\n}\n"
    x = np.random.default_rng(0).integers(-8, 8, 64).astype(np.float32)
    (out,) = run(text, tmp_path, {"x": x, "out": np.zeros(32, np.float32)}, ["out"], "--grid=32")
    kept = x[:, None] * x[:32]
    for step in range(1, 40):
        for i in range(64):
            kept[i] = np.float32(kept[(i * step) & 63] * np.float32(0.25)) + kept[i]
    total = x[:32].copy()
    for i in range(64):
        total += kept[i]
    np.testing.assert_allclose(out, total, rtol=1e-4)


def test_a_long_chain(tmp_path: Path) -> None:
    steps = 2000
    text = HEAD + "  uint b = t;\n"
    for step in range(steps):
        text += f"  a = fma(a, 0.5f, {step % 7}.0f);\n  b = b * 3u + (b >> {step % 5 + 1});\n"
    text += "  out[t] = a + float(b & 1u);\n}\n"
    x = np.random.default_rng(0).standard_normal(64).astype(np.float32)
    (out,) = run(text, tmp_path, {"x": x, "out": np.zeros(32, np.float32)}, ["out"], "--grid=32")
    a, b = x[:32].copy(), np.arange(32, dtype=np.uint32)
    for step in range(steps):
        a = a * np.float32(0.5) + np.float32(step % 7)
        b = b * np.uint32(3) + (b >> np.uint32(step % 5 + 1))
    np.testing.assert_array_equal(out, a + (b & 1).astype(np.float32))


TURNS = """#include <metal_stdlib>
using namespace metal;
kernel void k(volatile device ulong *x [[buffer(0)]], device ulong *out [[buffer(1)]],
              uint t [[thread_position_in_grid]]) {
  ulong found = 0;
  for (uint turn = 0; turn < 32; ++turn) {
    threadgroup_barrier(mem_flags::mem_device);
    ulong now = found;
    if (t == turn) {
      now = x[t];
      x[t] = 5;
    }
    found = now;
  }
  out[t] = found;
}
"""


def test_a_load_in_some_lanes_stays_before_a_store_to_the_same_place(tmp_path: Path) -> None:
    x = np.arange(32, dtype=np.uint64) + 100
    buffers = {"x": x, "out": np.zeros(32, np.uint64)}
    left, found = run(TURNS, tmp_path, buffers, ["x", "out"], "--grid=32")
    np.testing.assert_array_equal(found, x)
    np.testing.assert_array_equal(left, np.full(32, 5, np.uint64))
