"""triton_metal_host: the addresses that a launch with ``trace=`` keeps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import triton_metal_host as metal

TEXT = """
#include <metal_stdlib>
using namespace metal;
kernel void contiguous(device const float *x, device float *y, uint i [[thread_position_in_grid]]) { y[i] = x[i]; }
kernel void strided(device const float *x, device float *y, uint i [[thread_position_in_grid]]) { y[i] = x[2 * i]; }
kernel void masked(device const float *x, device float *y, uint i [[thread_position_in_grid]]) { if (i < 70) y[i] = x[i]; }
kernel void gathered(device const int *at, device float *y, uint i [[thread_position_in_grid]]) { y[at[i]] = 1; }
kernel void repeated(device const float *x, device float *y, uint i [[thread_position_in_grid]]) {
  float sum = 0;
  for (uint k = 0; k < uint(x[0]) + 20; ++k)
    sum += x[i + 64 * k];
  y[i] = sum;
}
"""


def pipeline(name: str, **options: Any) -> metal.Pipeline:
    device = metal.Device()
    return device.pipeline(device.library(TEXT).function(name), **{"counters": True, **options})


def traced(name: str, x: Any, y: Any, positions: Any = ((0, 0, 0),)) -> metal.Run:
    return pipeline(name)(x, y, threads=128, threads_per_threadgroup=64, trace=positions)


def offsets(run: metal.Run, reads: bool, group: int = 0, simdgroup: int = 0) -> list[Any]:
    trace = run.trace
    return [
        access.offsets
        for access in trace.threadgroups[group].accesses
        if trace.sites[access.site].reads is reads and access.simdgroup == simdgroup
    ]


def test_contiguous_and_strided_lanes() -> None:
    x, y = np.zeros(256, np.float32), np.zeros(128, np.float32)
    run = traced("contiguous", x, y)
    assert offsets(run, True) == [tuple(range(0, 128, 4))]
    assert offsets(run, False, simdgroup=1) == [tuple(range(128, 256, 4))]
    assert [(s.line, s.reads, s.bytes) for s in run.trace.sites] in (
        [(4, True, 4), (4, False, 4)],
        [(4, False, 4), (4, True, 4)],
    )
    assert offsets(traced("strided", x, y), True) == [tuple(range(0, 256, 8))]


def test_lanes_that_take_no_part_have_no_address() -> None:
    x, y = np.zeros(128, np.float32), np.zeros(128, np.float32)
    run = traced("masked", x, y, [(0, 0, 0), (1, 0, 0)])
    assert offsets(run, True, group=1) == [(*range(256, 280, 4), *[None] * 26)]
    assert offsets(run, True, group=1, simdgroup=1) == []


def test_gathered_lanes_have_the_addresses_of_the_data() -> None:
    at = np.random.default_rng(0).permutation(128).astype(np.int32)
    run = traced("gathered", at, np.zeros(128, np.float32), [(1, 0, 0)])
    assert offsets(run, False) == [tuple((4 * at[64:96]).tolist())]


def test_the_first_executions_are_kept_and_all_are_counted() -> None:
    x, y = np.zeros(128 * 64, np.float32), np.zeros(128, np.float32)
    run = pipeline("repeated")(
        x, y, threads=128, threads_per_threadgroup=64, trace=[(0, 0, 0)], trace_executions=3
    )
    (group,) = run.trace.threadgroups
    sums = [i for i, site in enumerate(run.trace.sites) if site.line == 11]
    kept = [a for a in group.accesses if a.site in sums and a.simdgroup == 0]
    assert [a.offsets[0] for a in kept] == [0, 256, 512]
    assert sum(group.executions[site, 0] for site in sums) == 20


def test_what_cannot_be_traced() -> None:
    x, y = np.zeros(128, np.float32), np.zeros(128, np.float32)
    grid = {"threads": 128, "threads_per_threadgroup": 64}
    with pytest.raises(ValueError, match=r"not traced: call the pipeline with trace="):
        _ = pipeline("contiguous")(x, y, **grid).trace
    with pytest.raises(ValueError, match=r"a trace needs a pipeline that counts"):
        pipeline("contiguous", counters=False)(x, y, **grid, trace=[(0, 0, 0)])
    with pytest.raises(TypeError, match=r"trace takes positions of threadgroups"):
        pipeline("contiguous")(x, y, **grid, trace="0")
    with pytest.raises(ValueError, match=r"trace_executions is 0"):
        pipeline("contiguous")(x, y, **grid, trace=[0], trace_executions=0)
