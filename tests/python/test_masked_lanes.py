"""Lanes that a condition leaves out do not change the addresses of those that it lets through."""

from __future__ import annotations

import numpy as np
import pytest
from triton_metal import _native

TEXT = """#include <metal_stdlib>
using namespace metal;
[[kernel, max_total_threads_per_threadgroup(32)]] void k(
    device const float *in [[buffer(0)]], device float *out [[buffer(1)]],
    uint3 group [[threadgroup_position_in_grid]], ushort lane [[thread_index_in_simdgroup]]) {
  int line = lane >> 3, place = lane & 7;
  int first_row = group.y * 4, first_column = group.x * 8;
  int row = uint(first_row) + line, column = uint(first_column) + place;
  int at = column - 1u;
  float found = CONDITION ? in[INDEX] : 0.0f;
  if (column < 35)
    *(out + long(first_row) * 35l + first_column + line * 35 + place) = found * 2.0f;
}
"""


@pytest.mark.parametrize("condition", ["at >= 0 && at < 32", "uint(at) < 16u"])
@pytest.mark.parametrize(
    "index", ["int(at + row * 32u)", "at + row * 32", "uint(at) + uint(row) * 32u", "ulong(uint(at)) + ulong(uint(row)) * 32ul", "(at | row * 32)"]
)  # fmt: skip
@pytest.mark.parametrize("options", [{}, {"checks": "bounds"}])
def test_sums_without_carry_under_a_condition(
    condition: str, index: str, options: dict[str, bool]
) -> None:
    """The condition says that the numbers have no bit in common; the first lane, which it leaves out, has -1."""
    x, out = np.arange(32 * 32, dtype=np.float32), np.zeros((32, 35), np.float32)
    library = _native.MetalLibrary(
        TEXT.replace("CONDITION", condition).replace("INDEX", index), **options
    )
    buffers = [(x.ctypes.data, x.nbytes, False), (out.ctypes.data, out.nbytes, True)]
    library.dispatch("k", buffers, (5 * 32, 8, 1), (32, 1, 1))
    expected = np.pad(x.reshape(32, 32), ((0, 0), (1, 2)), constant_values=0)
    if "16" in condition:
        expected[:, 17:] = 0
    assert np.array_equal(out, expected * 2)


def test_a_long_chain_of_vectors() -> None:
    """Values are built in pieces: a vector at the end of a piece has all of its components."""
    steps = 400
    text = (
        """#include <metal_stdlib>
using namespace metal;
[[kernel]] void k(device short2 *out [[buffer(0)]], ushort lane [[thread_index_in_simdgroup]]) {
  short2 v = short2(lane, 7 * lane + 1);
"""
        + "  v = as_type<short2>(as_type<int>(short2(v.y, max(v.x, short(v.y + 3)))) * 3 + 7);\n"
        * steps
        + "  out[lane] = v;\n}\n"
    )
    out = np.zeros((32, 2), np.int16)
    lane = np.arange(32)
    expected = np.stack([lane, 7 * lane + 1], 1).astype(np.int16)
    for _ in range(steps):
        x, y = expected.T
        swapped = np.ascontiguousarray(np.stack([y, np.maximum(x, y + np.int16(3))], 1))
        expected = (swapped.view(np.int32) * 3 + 7).view(np.int16)
    _native.MetalLibrary(text).dispatch(
        "k", [(out.ctypes.data, out.nbytes, True)], (32, 1, 1), (32, 1, 1)
    )
    assert np.array_equal(out, expected)
