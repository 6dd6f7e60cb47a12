"""What each line of a kernel did: exact counts, whatever the order and the number of threads."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
import triton_metal_host as metal

from metal_run import invoke

SOURCE = """#include <metal_stdlib>
using namespace metal;
static float fetch(device const float *x, uint i) {
  return x[i];
}
kernel void k(device const float *x, device float *y, constant uint &stride,
              uint i [[thread_position_in_grid]], uint l [[thread_index_in_threadgroup]]) {
  threadgroup float tile[1024];
  tile[l * stride] = fetch(x, i * 2);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float s = 0;
  for (uint k = 0; k < l % 4; ++k)
    s += tile[k * stride] / 3.0f;
  y[i] = s;  // <script> & "quotes"
}
"""
LINES = {"fetch": 4, "store": 9, "loop": 12, "body": 13, "end": 14}


@pytest.fixture(scope="module")
def pipeline() -> metal.Pipeline:
    device = metal.Device(counters=True)
    return device.pipeline(device.library(SOURCE, file_name="strided.metal").function("k"))


def run(pipeline: metal.Pipeline, stride: int = 32, **options) -> metal.Run:
    x, y = np.zeros(256, np.float32), np.zeros(128, np.float32)
    return pipeline(x, y, stride, threads=128, threads_per_threadgroup=32, **options)


def of_line(profile: metal.Profile, line: int) -> dict[str, int]:
    (found,) = [entry for entry in profile.lines if entry.line == line]
    assert found.file == "strided.metal"
    return found.counters


def test_each_line_has_its_own_counts(pipeline) -> None:
    profile = run(pipeline).profile
    fetch = of_line(profile, LINES["fetch"])
    assert fetch["device_bytes_read"] == 512
    assert fetch["device_lines_read"] == 8  # every second number: two lines for each SIMD-group
    assert "device_bytes_written" not in fetch
    store = of_line(profile, LINES["store"])
    assert store["threadgroup_bytes_written"] == 512
    assert store["threadgroup_bank_conflicts"] == 4 * 31  # all words in one bank
    body = of_line(profile, LINES["body"])
    assert body["f32_div"] == 4 * 8 * (0 + 1 + 2 + 3)
    assert of_line(profile, LINES["end"])["device_bytes_written"] == 512
    # 3 rounds, of which the lanes with 3, 2 and 1 of 4 take part
    assert body["lane_instructions"] * 2 == body["simdgroup_instructions"] * 32


ACCESSES = """#include <metal_stdlib>
using namespace metal;
kernel void k(device const packed_float3 *x, device float *y, constant uint &zero,
              uint i [[thread_position_in_grid]]) {
  float one = x[zero].y;
  float shared = x[i / 4].x;
  float across = x[10 * i + 10].z + x[i].x;
  y[i] = one + shared + across;
}
"""


def test_a_byte_that_several_lanes_read_is_needed_once() -> None:
    device = metal.Device(counters=True)
    pipeline = device.pipeline(device.library(ACCESSES, file_name="strided.metal").function("k"))
    x, y = np.zeros(3 * 400, np.float32), np.zeros(32, np.float32)
    profile = pipeline(x, y, np.uint32(0), threads=32, threads_per_threadgroup=32).profile
    one, shared, end = (of_line(profile, line) for line in (5, 6, 8))
    assert (one["device_bytes_read"], one["device_distinct_bytes_read"]) == (32 * 4, 4)
    assert one["device_lines_read"] == 1
    assert (shared["device_bytes_read"], shared["device_distinct_bytes_read"]) == (32 * 4, 8 * 4)
    across = of_line(profile, 7)
    assert across["device_distinct_bytes_read"] == across["device_bytes_read"] == 2 * 32 * 4
    assert (end["device_distinct_bytes_written"], end["device_lines_written"]) == (128, 1)
    listing = str(profile)
    assert re.search(r" 3% .*one = x", listing), listing
    assert re.search(r" 100% .*y.i. = one", listing), listing


def test_strides_without_conflicts(pipeline) -> None:
    store = of_line(run(pipeline, stride=1).profile, LINES["store"])
    assert "threadgroup_bank_conflicts" not in store
    store = of_line(run(pipeline, stride=2).profile, LINES["store"])
    assert store["threadgroup_bank_conflicts"] == 4


def test_lines_add_up_to_the_counters_of_the_run(pipeline) -> None:
    done = run(pipeline)
    total: dict[str, int] = {}
    for line in done.profile.lines:
        for name, value in line.counters.items():
            total[name] = total.get(name, 0) + value
    once = {"registers_per_thread", "threadgroup_memory_bytes", "threadgroups"}
    once |= {"device_memory_lines_read", "device_memory_lines_written"}
    for name, value in done.counters.items():
        if name not in once:
            assert total.get(name, 0) == value, name
    assert sum(line.modelled_share for line in done.profile.lines) == pytest.approx(1)


def test_counts_depend_on_no_order_and_no_number_of_threads(pipeline) -> None:
    expected = run(pipeline).profile.json()
    for seed in (1, 2, 3):
        assert run(pipeline, seed=seed).profile.json() == expected
    x, y = np.zeros(256, np.float32), np.zeros(128, np.float32)
    submitted = pipeline.submit(x, y, 32, threads=128, threads_per_threadgroup=32).wait()
    assert submitted.profile.json() == expected


def test_command_buffers_sum_their_dispatches(pipeline) -> None:
    x, y = np.zeros(256, np.float32), np.zeros(128, np.float32)
    commands = metal.Device().command_buffer()
    for _ in range(3):
        commands.dispatch(pipeline, x, y, 32, threads=128, threads_per_threadgroup=32)
    profile = commands.commit().wait().profile
    assert of_line(profile, LINES["fetch"])["device_bytes_read"] == 3 * 512


def test_the_listing_has_every_line_of_the_text(pipeline) -> None:
    profile = run(pipeline).profile
    listing = str(profile).splitlines()
    assert listing[0] == "strided.metal"
    assert [line.split("|", 1)[1][7:] for line in listing[2:-2]] == SOURCE.splitlines()
    assert re.search(r"512 +8 +50% +100% .*\|    4    return x\[i\];", str(profile))
    assert "modelled, not measured" in listing[-1]
    table = profile.table().splitlines()
    assert table[-1].endswith("in all")
    shares = [float(line.split("%")[0]) for line in table[1:-1] if "%" in line[:8]]
    assert shares == sorted(shares, reverse=True)


def test_the_page_stands_by_itself(pipeline) -> None:
    page = run(pipeline).profile.html()
    assert page.startswith("<!doctype html>")
    assert "y[i] = s;  // &lt;script&gt; &amp; &quot;quotes&quot;" in page
    assert not re.search(r"<script|src=|href=|https?:", page)
    assert page.count("<tr") == len(SOURCE.splitlines()) + 1


def test_a_pipeline_that_does_not_count_has_no_profile() -> None:
    device = metal.Device()
    pipeline = device.pipeline(device.library(SOURCE).function("k"))
    with pytest.raises(ValueError, match="counters=True"):
        run(pipeline).profile


def test_lines_of_included_files(tmp_path) -> None:
    (tmp_path / "fetch.h").write_text(
        "\nstatic float fetch(device const float *x) {\n  return *x;\n}\n"
    )
    device = metal.Device(counters=True)
    text = '#include "fetch.h"\nkernel void f(device float *x) {\n  x[1] = fetch(x);\n}\n'
    library = device.library(text, include=[tmp_path])
    x = np.zeros(2, np.float32)
    profile = device.pipeline(library.function("f"))(x, threads=1).profile
    places = {(line.file.rsplit("/", 1)[-1], line.line) for line in profile.lines}
    assert {("fetch.h", 3), ("kernel.metal", 3)} <= places
    assert "|    3    return *x;" in str(profile)


def test_the_tool_prints_the_same() -> None:
    arguments = [
        *("--buffer=x=zeros:float:256", "--buffer=y=zeros:float:128", "--scalar=stride=32"),
        *("--threads=128", "--group=32"),
    ]
    result = invoke([*arguments, "--profile=json", "-"], SOURCE)
    assert result.returncode == 0, result.stderr
    lines = {line["line"]: line["counters"] for line in json.loads(result.stdout)["lines"]}
    assert lines[LINES["fetch"]]["device_lines_read"] == 8
    assert "<table>" in invoke([*arguments, "--profile=html", "-"], SOURCE).stdout
    assert "|    4    return x[i];" in invoke([*arguments, "--profile", "-"], SOURCE).stdout
    assert "in all" in invoke([*arguments, "--profile=table", "-"], SOURCE).stdout
    assert "not 'xml'" in invoke([*arguments, "--profile=xml", "-"], SOURCE).stderr
