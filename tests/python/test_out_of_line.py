"""Long functions of numbers, which the host device compiles once where a kernel calls them often."""

from __future__ import annotations

import secrets
import time

import numpy as np
import pytest
from triton_metal import _native

LENGTH = 24

FUNCTIONS = (
    """#include <metal_stdlib>
using namespace metal;
constant ulong table[9] = {3ul, 1ul, 4ul, 1ul, 5ul, 9ul, 2ul, 6ul, SALTul};
inline ulong mix(ulong a, uint n, thread uint &count) {
"""
    + "  a = (a ^ (a >> 7)) * 0x9e3779b97f4a7c15ul + (a << 3 ^ ulong(n));\n" * LENGTH
    + """  count += 1u;
  return a;
}
// Returns from several places, has a loop that lanes leave one by one, a table and an array.
inline ulong walk(ulong a, uint n) {
  uint count = 0u, steps[4] = {1u, 2u, 3u, 5u};
  if (n == 3u)
    return a + 1ul;
  for (uint i = 0u; i < (n & 7u); ++i) {
    a = mix(a, i, count) + table[(a >> 5) & 7ul];
    if ((a & 15ul) == 0ul)
      return a - ulong(count);
  }
  return a * ulong(steps[n & 3u]) + ulong(count);
}
// Calls another, and has operands of several types.
inline float scaled(ulong a, short n, float x) {
  float y = float(walk(a, uint(n)) >> 40);
  return n < 0 ? x : y * 0.5f + x;
}
inline uchar low(ulong a) {
  return uchar(walk(a, 5u));
}
"""
)


def mix(a: int, n: int) -> int:
    for _ in range(LENGTH):
        a = ((a ^ a >> 7) * 0x9E3779B97F4A7C15 + (a << 3 ^ n)) & (2**64 - 1)
    return a


def walk(a: int, n: int) -> int:
    count = 0
    if n == 3:
        return a + 1
    for i in range(n & 7):
        a = (mix(a, i) + (3, 1, 4, 1, 5, 9, 2, 6)[a >> 5 & 7]) & (2**64 - 1)
        count += 1
        if a & 15 == 0:
            return a - count
    return (a * (1, 2, 3, 5)[n & 3] + count) & (2**64 - 1)


def text(repeats: int, salt: int = 0) -> str:
    """A kernel that calls each function so many times. Another salt is another text that does the same."""
    body = ""
    for at in range(repeats):
        body += f"  if ((i + {at}u) % 3u != 0u)\n    sum += walk(a + {at}ul, (i + {at}u) & 15u);\n"
    body += "  float y = scaled(a, short(i) - 20, 0.25f);\n"
    return (
        FUNCTIONS.replace("SALT", str(salt))
        + "kernel void k(device const ulong *x [[buffer(0)]], device ulong *out [[buffer(1)]], "
        "device float *f [[buffer(2)]], uint i [[thread_position_in_grid]]) {\n"
        f"  ulong a = x[i], sum = walk(7ul, 6u) + ulong(low(a));\n{body}"
        "  out[i] = sum;\n  f[i] = y;\n}\n"
    )


def run(
    repeats: int, grid: int = 77, salt: int = 0, **options: bool
) -> tuple[np.ndarray, np.ndarray, float]:
    x = np.random.default_rng(3).integers(0, 2**64, grid, np.uint64)
    out, f = np.zeros(grid, np.uint64), np.zeros(grid, np.float32)
    start = time.process_time()
    library = _native.MetalLibrary(text(repeats, salt), **options)
    buffers = [(array.ctypes.data, array.nbytes, array is not x) for array in (x, out, f)]
    library.dispatch("k", buffers, (grid, 1, 1), (64, 1, 1))
    return out, f, time.process_time() - start


def expected(repeats: int, grid: int = 77) -> tuple[list[int], list[float]]:
    sums, floats = [], []
    for i, a in enumerate(np.random.default_rng(3).integers(0, 2**64, grid, np.uint64).tolist()):
        total = walk(7, 6) + walk(a, 5) % 256
        for at in range(repeats):
            if (i + at) % 3:
                total += walk((a + at) % 2**64, (i + at) & 15)
        sums.append(total % 2**64)
        y = np.float32(walk(a, (i - 20) & 0xFFFFFFFF) >> 40)
        floats.append(0.25 if i < 20 else float(y * np.float32(0.5) + np.float32(0.25)))
    return sums, floats


def check(repeats: int, out: np.ndarray, f: np.ndarray) -> None:
    sums, floats = expected(repeats)
    assert out.tolist() == sums
    assert f.tolist() == floats


# Few calls are inlined.
@pytest.mark.parametrize("repeats", [1, 50])
def test_results(repeats: int) -> None:
    out, f, _ = run(repeats)
    check(repeats, out, f)


@pytest.mark.parametrize("options", [{"checks": "bounds"}, {"portable": True}])
def test_checked_results(options: dict[str, bool]) -> None:
    out, f, _ = run(2, **options)
    check(2, out, f)


def test_functions_are_compiled_once() -> None:
    # A text that no cache knows: what is compared is the compiler's work.
    salt = secrets.randbits(63)
    *_, time_once = run(50, salt=salt)
    # Where accesses are checked, all are inlined.
    out, f, time_inlined = run(50, salt=salt, checks="bounds")
    check(50, out, f)
    assert time_once < time_inlined / 2
