"""The reader of the G13 compiler's reports, which needs no compiler."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2]))
from benchmarks.agx import AgxError, available, measure
from benchmarks.agx.report import ReportError, kind_of, parse_report
from benchmarks.agx.spills import (
    Kernel,
    complaints,
    demo_kernels,
    find,
    ops_kernels,
    read_known,
    write_known,
)

REPORT = """report main registers16 49 threads 1024 scratch 0 spills 1 fills 2 instructions 6
report cycles block0 f_scib 3 ic 0
report cycles block1 f_scib 10 ic 4
report cycles block2 f_scib 1 ic 0
block0 {
   r1 = bitop u0, #0, #a
   r2 = iadd r1, u2, #0
} -> block1

block1 {
   r3 = ffma r1, r2, r3
   r4 = exp2 r3
   while_icmp r1, r2, n=1
} -> block1 block2  from block0 block1

block2 {
   stop
}  from block1

report end
report kernel sum threadgroup 8192
"""


def test_loops_weigh_their_instructions_by_their_steps():
    described = {"loops": [{"depth": 1, "trips": 5, "line": 7}]}
    stats = parse_report(REPORT, described, threads=128)
    assert (stats.registers, stats.spills, stats.fills) == (24.5, 1, 2)
    assert stats.weighted_mix["special function"] == 5
    assert stats.weighted_mix["integer"] == 1
    assert stats.weighted_cycles == 3 + 5 * 10 + 1
    assert stats.main_loop.line == 7
    assert stats.main_loop.weight == 5


def test_a_loop_of_unknown_length_counts_the_assumed_steps():
    described = {"loops": [{"depth": 1, "trips": None, "line": 7}]}
    stats = parse_report(REPORT, described, threads=128, assumed_trips=9)
    assert stats.loops[0].trips is None
    assert stats.weighted_mix["float"] == 9


def test_threadgroup_memory_limits_the_threads_in_flight():
    assert parse_report(REPORT, {"loops": []}, threads=128).in_flight == 7 * 128


def test_moves_are_told_from_arithmetic():
    assert kind_of("   r1 = bitop u0, #0, #a") == "move"
    assert kind_of("   r1 = xor r2, r3") == "integer"
    assert kind_of("   r5 = shuffle_xor r4, #16") == "across lanes"


def test_an_unfinished_report_is_refused():
    with pytest.raises(ReportError, match="no kernel"):
        parse_report("", {}, threads=32)


@pytest.mark.skipif(available() is not None, reason=f"no G13 compiler: {available()}")
def test_exp_and_max_are_single_instructions():
    text = """#include <metal_stdlib>
using namespace metal;
[[kernel, max_total_threads_per_threadgroup(32)]] void f(device float *p [[buffer(0)]],
    uint i [[thread_position_in_grid]]) { p[i] = fmax(fast::exp2(p[i]), p[i + 1]); }
"""
    stats = measure(text)
    assert stats.mix["special function"] == 1
    assert stats.mix["float"] == 1


def asked_about(kernels):
    asked = []

    def ask(text, threads, kernel):
        asked.append(text)
        if text == "refused":
            raise AgxError("no\nand why")
        return SimpleNamespace(spills=int(text == "large"), fills=0, registers=128.0)

    return find(kernels, ask), sorted(asked)


KERNELS = [
    Kernel("a", "large", 64),
    Kernel("b", "small"),
    Kernel("c", "large", 64),
    Kernel("d: e", "refused"),
]


def test_kernels_that_spill_are_named_and_each_text_is_asked_about_once():
    found, asked = asked_about(KERNELS)
    assert asked == ["large", "refused", "small"]
    assert found.count == 3
    assert found.names == {"a", "b", "c", "d: e"}
    assert found.spilling == dict.fromkeys("ac", "1 spills and 0 fills, 128 registers")
    assert found.refused == {"d: e": "no"}


def test_the_list_of_known_spills_is_checked_both_ways():
    found, _ = asked_about(KERNELS)
    assert complaints(found, ["a", "c"], True) == []
    assert complaints(found, ["a"], True) == ["spills: c: 1 spills and 0 fills, 128 registers"]
    (gone,) = complaints(found, ["a", "b", "c"], True)
    assert gone.startswith("does not spill any more: b ")
    (absent,) = complaints(found, ["a", "c", "old"], True)
    assert absent.startswith("is no kernel any more: old ")
    # Nothing is known of a text that is refused, and with --only not every kernel was asked about.
    assert complaints(found, ["a", "c", "d: e"], True) == []
    assert complaints(found, ["a", "c", "old"], False) == []


def test_the_list_of_known_spills_keeps_its_heading(tmp_path):
    path = tmp_path / "known.txt"
    path.write_text("# Why.\nold  # and this\n\n")
    assert read_known(path) == ["old"]
    write_known({"ops.b x: k", "ops.a: k"}, path)
    assert path.read_text() == "# Why.\nops.a: k\nops.b x: k\n"
    known = read_known()
    assert known == sorted(set(known))


def test_every_function_of_ops_is_called():
    pytest.importorskip("torch")
    from benchmarks.agx.ops_calls import calls
    from triton_metal import ops

    names = [name for name, _ in calls()]
    assert len(set(names)) == len(names)
    assert {name.split()[0] for name in names} == set(ops.__all__)


@pytest.mark.own_target
@pytest.mark.own_route
def test_calls_give_the_kernels_of_both_directions_and_run_nothing(monkeypatch):
    pytest.importorskip("torch")
    kernels = list(ops_kernels(["layer_norm 4x1000 float16 weight bias"]))
    assert [each.name.split(": ")[1] for each in kernels] == [
        "norm_row_kernel",
        "norm_backward_kernel",
        "column_sums_kernel",
    ]
    assert {each.threads for each in kernels} <= {32, 64, 128, 256, 512, 1024}


def test_the_demo_s_texts_are_kernels(tmp_path):
    (tmp_path / "add_kernel-64.metal").write_text("text")
    (tmp_path / "demo.json").write_text("[]")
    assert list(demo_kernels(tmp_path)) == [Kernel("demo: add_kernel-64", "text")]
