"""The comparison of the estimate of registers with Mesa's compiler for G13, and the estimate where its compiler is built."""

import json
import math
from pathlib import Path

import pytest
from benchmarks.agx import AgxError, available
from benchmarks.agx.measure import front_end
from benchmarks.agx.registers import (
    Compared,
    Source,
    compare,
    compiled_sources,
    estimate,
    summarise,
    table_of,
    threads_of,
)

TEXT = """#include <metal_stdlib>
using namespace metal;
[[kernel, max_total_threads_per_threadgroup(64)]] void sums(
    device const float4 *x [[buffer(0)]], device float4 *y [[buffer(1)]], constant uint &n [[buffer(2)]],
    uint i [[thread_position_in_grid]]) {
  float4 total[COUNT] = {};
  for (uint k = 0; k < n; ++k) {
    #pragma unroll
    for (uint j = 0; j < COUNT; ++j)
      total[j] += x[k * COUNT + j];
  }
  #pragma unroll
  for (uint j = 0; j < COUNT; ++j)
    y[i * COUNT + j] = total[j];
}
"""

needs_metal_run = pytest.mark.skipif(
    not front_end().with_name("metal-run").exists(), reason="metal-run is not built"
)


def text_of(count: int) -> Source:
    return Source("test", f"{count} sums", TEXT.replace("COUNT", str(count)), "sums", 64)


def test_summary_counts_what_is_within_and_what_holds_as_many_threads() -> None:
    rows = [
        Compared("a", "same", 40, 40),
        Compared("a", "little less", 54, 60),  # 896 threads, and 832
        Compared("b", "half", 20, 40),
        Compared("b", "more", 100, 80),
    ]
    summary = summarise(rows)
    assert (summary.texts, summary.within, summary.in_flight) == (4, 2, 2)
    assert summary.mean == pytest.approx((1 * 0.9 * 0.5 * 1.25) ** 0.25)
    assert (summary.least, summary.most) == (0.5, 1.25)
    assert summary.rank_correlation == pytest.approx(0.949, abs=1e-3)
    assert math.isnan(summarise(rows[:1]).rank_correlation)
    assert table_of(rows).row_count == 3
    assert table_of(rows[:2]).row_count == 1


def test_threads_by_registers_are_those_of_the_table() -> None:
    assert [threads_of(registers) for registers in (1, 52, 52.5, 104, 128, 300)] == [
        1024,
        1024,
        896,
        512,
        384,
        384,
    ]


def test_compiled_kernels_are_read_from_a_folder(tmp_path: Path) -> None:
    entry = {"metal": TEXT, "metadata": json.dumps({"name": "sums", "threads": 64})}
    (tmp_path / "a.json").write_text(json.dumps(entry))
    (tmp_path / "b.json").write_text("{}")
    (source,) = compiled_sources(tmp_path)
    assert (source.group, source.name, source.threads) == (tmp_path.name, "sums", 64)


@needs_metal_run
def test_accumulators_count_whole() -> None:
    few, many = estimate(text_of(2)), estimate(text_of(8))
    assert 8 <= few <= 24
    # Six more vectors of four floats, and an address or two.
    assert 24 <= many - few <= 32


@needs_metal_run
def test_a_text_that_is_refused_says_why() -> None:
    with pytest.raises(AgxError, match=r"metal-run: .*nonsense"):
        estimate(Source("test", "bad", "nonsense", "k"))


@pytest.mark.skipif(available() is not None, reason="benchmarks/agx is not built")
@pytest.mark.parametrize("count", [1, 4, 8])
def test_estimate_is_near_what_is_allocated(count: int) -> None:
    compared = compare(text_of(count))
    assert isinstance(compared, Compared), compared
    assert 0.7 <= compared.ratio <= 1.4
