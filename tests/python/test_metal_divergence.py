"""Functions of the SIMD-group in divergent loops of Metal texts: each thread sees those that are in the same step with it."""

from __future__ import annotations

import numpy as np
import pytest
import triton_metal_host as metal

from divergent_programs import LANES, Program

HEAD = """#include <metal_stdlib>
using namespace metal;
"""
KERNEL = """
kernel void k(device const uint *key [[buffer(0)]], device const float *value [[buffer(1)]],
              device float *out [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  float sum = -1;
  uint mine = key[i];
  %s
  out[i] = sum;
}
"""

# Each adds the values of the threads with one key. There are five keys.
LOOPS = {
    "break": """while (true) {
    if (mine == simd_broadcast_first(mine)) { sum = simd_sum(value[i]); break; }
  }""",
    "break of both branches": """for (;;) {
    if (mine != simd_broadcast_first(mine)) continue;
    if (mine & 1) { sum = simd_sum(value[i]); break; } else { sum = simd_sum(value[i]) + 0; break; }
  }""",
    "return of the kernel": """for (int n = 0; n < 9; ++n)
    if (mine == simd_broadcast_first(mine)) { out[i] = simd_sum(value[i]); return; }""",
    "do while and switch": """do {
    switch (mine == simd_broadcast_first(mine)) {
    case 1: sum = simd_sum(value[i]); break;
    default: continue;
    }
    break;
  } while (sum < 0);""",
    "unrolled": """
  #pragma unroll
  for (uint n = 0; n < 5; ++n)
    if (mine == n) { sum = simd_sum(value[i]); break; }""",
    "range": """uint keys[5] = {4, 3, 2, 1, 0};
  for (uint n : keys)
    if (mine == n) { sum = simd_sum(value[i]); break; }""",
    "flag that the loop asks": """bool done = false;
  while (!done)
    if (mine == simd_broadcast_first(mine)) { sum = simd_sum(value[i]); done = true; }""",
    "flag that a break asks": """bool done = false;
  for (uint n = 0; n < 64; ++n) {
    if (mine == simd_broadcast_first(mine)) { sum = simd_sum(value[i]); done = true; }
    if (done) break;
  }""",
    "result that the loop asks": """do {
    if (mine == simd_broadcast_first(mine)) sum = simd_sum(value[i]);
  } while (sum < 0);""",
    "bound that ends the loop": """for (uint n = 0, end = 8; n < end; ++n)
    if (mine == n) { sum = simd_sum(value[i]); end = 0; }""",
    "function with a return": "sum = find(mine, value[i]);",
    "function that the loop asks": "while (!isFirst(mine, value[i], sum)) {}",
    "template": "sum = findAny<float>(mine, value[i]);",
    "lambda": """auto find = [&](uint k) {
    while (true) { if (k == simd_broadcast_first(k)) return simd_sum(value[i]); }
  };
  sum = find(mine);""",
    "method with a function": """Total total;
  total.add(mine, [&] { return simd_sum(value[i]); });
  sum = total.sum;""",
    "inner loops": """for (;;) {
    uint first = simd_broadcast_first(mine);
    for (int n = 0; n < 2; ++n) { sum += n; if (sum > 1e9f) break; }
    if (mine == first) {
      while (true) { sum = simd_sum(value[i]); break; }
      for (int n = 0; n < 2; ++n) { if (sum > 1e9f) return; }
      break;
    }
  }""",
    "constant expression": """for (int n = 0; n < firstAbove(40); ++n)
    if (mine == simd_broadcast_first(mine)) { sum = simd_sum(value[i]); break; }""",
}
FUNCTIONS = """
static float find(uint k, float v) {
  for (int n = 0; n < 64; ++n)
    if (k == simd_broadcast_first(k)) return k > 2 ? simd_sum(v) : simd_sum(v) + 0;
  return -2;
}
static bool isFirst(uint k, float v, thread float &sum) {
  if (k == simd_broadcast_first(k)) { sum = simd_sum(v); return true; }
  return false;
}
template <typename T> T findAny(uint k, T v) {
  for (;;) if (k == simd_broadcast_first(k)) return simd_sum(v);
}
struct Total {
  float sum = 0;
  template <typename F> void add(uint k, F f) {
    for (;;) if (k == simd_broadcast_first(k)) { sum += f(); return; }
  }
};
constexpr int firstAbove(int n) {
  for (int i = 0; i < 100; ++i) { if (i * i > n) return i; if (i > 90) break; }
  return -1;
}
static_assert(firstAbove(40) == 7, "");
"""


@pytest.fixture(scope="module")
def device() -> metal.Device:
    return metal.Device()


@pytest.mark.parametrize("options", [{}, {"checks": True}, {"portable": True}], ids=str)
@pytest.mark.parametrize("loop", LOOPS)
def test_a_loop_takes_the_threads_of_one_key_in_each_step(
    device: metal.Device, loop: str, options: dict
) -> None:
    random = np.random.default_rng(3)
    key = random.integers(0, 5, 128).astype(np.uint32)
    value = random.integers(1, 9, 128).astype(np.float32)
    group = np.arange(128) // LANES
    same = (key[:, None] == key) & (group[:, None] == group)
    out = np.zeros(128, np.float32)
    library = device.library(HEAD + FUNCTIONS + KERNEL % LOOPS[loop])
    device.pipeline(library.function("k"), **options)(key, value, out, threads=128)
    np.testing.assert_array_equal(out, same @ value)


@pytest.mark.parametrize("seed", range(60))
def test_random_kernels_run_in_lockstep(device: metal.Device, seed: int) -> None:
    program = Program(seed)
    numbers = np.random.default_rng(seed).integers(0, 8, LANES).astype(np.uint32)
    function = device.library(program.text()).function("k")
    for options in ({}, {"checks": ["bounds", "divergence"]}, {"portable": True})[
        : 3 if seed % 10 == 0 else 1
    ]:
        out = np.zeros(LANES, np.uint32)
        device.pipeline(function, **options)(numbers, out, threads=LANES)
        np.testing.assert_array_equal(out, program.run(numbers))
