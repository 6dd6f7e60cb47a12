"""Pointers inside of buffers: addresses that the host writes, and the memory behind them that a launch names."""

from __future__ import annotations

import numpy as np
import pytest
import triton_metal_host as metal

TEXT = """
#include <metal_stdlib>
using namespace metal;
struct Matrix {
  device float *values;
  uint columns;
};
kernel void total(constant Matrix &matrix [[buffer(0)]], device float *sums [[buffer(1)]],
                  uint row [[thread_position_in_grid]]) {
  float sum = 0;
  for (uint i = 0; i < matrix.columns; ++i)
    sum += matrix.values[row * matrix.columns + i];
  sums[row] = sum;
}
kernel void fill(device float *device *rows [[buffer(0)]], constant uint &count [[buffer(1)]],
                 uint row [[thread_position_in_grid]]) {
  for (uint i = 0; i < count; ++i)
    rows[row][i] = row * 10 + i;
}
"""
MATRIX = np.dtype([("values", "u8"), ("columns", "u4")], align=True)


@pytest.fixture(scope="module")
def library() -> metal.Library:
    return metal.Device().library(TEXT)


@pytest.mark.parametrize("checks", [(), "bounds", True])
def test_a_structure_with_a_pointer(library: metal.Library, checks: object) -> None:
    values = metal.Buffer(np.arange(12, dtype=np.float32))
    matrix = np.zeros(1, MATRIX)
    matrix["values"], matrix["columns"] = values.gpu_address, 4
    sums = np.zeros(3, np.float32)
    pipeline = metal.Device().pipeline(library.function("total"), checks=checks)
    pipeline(matrix, sums, threads=3, resources=[values])
    assert sums.tolist() == [6, 22, 38]
    assert pipeline.written_buffers == (1,)


def test_pointers_to_pointers_are_written_and_restored(library: metal.Library) -> None:
    rows = [metal.Buffer(np.zeros(4, np.float32)) for _ in range(3)]
    table = metal.Buffer(np.array([row.gpu_address for row in rows], np.uint64))
    checked = metal.Device().pipeline(library.function("fill"), checks=True)
    with pytest.raises(metal.LaunchError, match=r"which is in no buffer|which has 16 bytes"):
        checked(table, 5, threads=3, resources=rows)
    assert all(not row.contents(np.float32).any() for row in rows)
    checked(table, 4, threads=3, resources=rows)
    assert [row.contents(np.float32).tolist() for row in rows] == [
        [10 * row + i for i in range(4)] for row in range(3)
    ]


def test_checks_allow_no_memory_that_is_not_named(library: metal.Library) -> None:
    values = metal.Buffer(np.arange(12, dtype=np.float32))
    matrix = np.zeros(1, MATRIX)
    matrix["values"], matrix["columns"] = values.gpu_address, 4
    pipeline = metal.Device().pipeline(library.function("total"), checks="bounds")
    with pytest.raises(metal.LaunchError, match=r"line 12:.* which is in no buffer"):
        pipeline(matrix, np.zeros(3, np.float32), threads=3)


def test_wrong_resources(library: metal.Library) -> None:
    pipeline = metal.Device().pipeline(library.function("total"))
    matrix, sums = np.zeros(1, MATRIX), np.zeros(3, np.float32)
    with pytest.raises(TypeError, match=r"total: resources takes metal\.Buffers, not ndarray"):
        pipeline(matrix, sums, threads=3, resources=[sums])
    with pytest.raises(ValueError, match="can have 31 buffers and resources in all"):
        pipeline(matrix, sums, threads=3, resources=[metal.Buffer(16)] * 30)
