"""metal-ir: what the front end makes of a Metal text for GPUs' compilers, none of which is needed here."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2]))
from benchmarks.agx.measure import AgxError, front_end, lower

pytestmark = pytest.mark.skipif(not front_end().exists(), reason="metal-ir has not been built")

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
SUM = (
    HEAD
    + """constant int more [[function_constant(7)]];
[[kernel, max_total_threads_per_threadgroup(64)]] void sum(device const float *x [[buffer(0)]],
    device float *out [[buffer(1)]], constant uint &n [[buffer(2)]], uint i [[thread_position_in_grid]],
    uint lane [[thread_index_in_threadgroup]]) {
  threadgroup float tile[64];
  float total = more;
  for (uint k = 0u; k < n; k += 4u)
    total += x[i + k];
  #pragma clang loop unroll(disable)
  for (int k = 0; k < 40; ++k)
    total = total * x[k] + 1.0f;
  tile[lane] = total;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = tile[63 - lane];
}
"""
)


@pytest.fixture
def sum_text(tmp_path: Path) -> Path:
    path = tmp_path / "sum.metal"
    path.write_text(SUM)
    return path


def test_it_says_what_the_kernel_takes(sum_text: Path) -> None:
    said = lower(sum_text, sum_text.with_suffix(".spv"), constants={7: 3})
    assert said["kernel"] == "sum"
    assert said["threads"] == 64
    assert said["threadgroup_bytes"] == 256
    assert [each["name"] for each in said["parameters"]][:2] == ["x", "out"]
    assert [(loop["depth"], loop["trips"]) for loop in said["loops"]] == [(1, None), (1, 40)]
    assert sum_text.with_suffix(".spv").read_bytes()[:4] == b"\x03\x02\x23\x07"


def test_counters_keep_their_width(sum_text: Path) -> None:
    """A counter of 64 bits would take two of a GPU's registers."""
    code = sum_text.with_suffix(".ptx")
    lower(sum_text, code, target="nvptx", constants={7: 3})
    text = code.read_text()
    assert ".entry" in text
    spirv = sum_text.with_suffix(".spv")
    lower(sum_text, spirv, constants={7: 3}, form="ir")
    counters = [line for line in spirv.read_text().splitlines() if " = phi i" in line]
    assert counters
    assert not [line for line in counters if "phi i64" in line]


@pytest.mark.parametrize(
    ("text", "options", "why"),
    [
        (HEAD, {}, "no kernel"),
        (SUM, {"kernel": "other"}, "no kernel 'other'"),
        (SUM + SUM.replace(HEAD, "").split("\n", 1)[1].replace("sum(", "twice("), {}, "several"),
        (HEAD + "[[kernel]] void f(threadgroup float *x [[threadgroup(0)]]) {}", {}, "whose size"),
    ],
)
def test_it_says_why_it_refuses(tmp_path: Path, text: str, options: dict, why: str) -> None:
    path = tmp_path / "kernel.metal"
    path.write_text(text)
    with pytest.raises(AgxError, match=why):
        lower(path, tmp_path / "kernel.spv", constants={7: 0}, threads=32, **options)


SCALED = (
    HEAD
    + """[[kernel, max_total_threads_per_threadgroup(64)]] void scaled(device float *out [[buffer(0)]],
    constant uint *args [[buffer(1)]], device const uint *more [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  out[i] = as_type<float>(args[2]) * float(more[i]) + float(args[0]);
}
"""
)


def test_a_launch_hands_over_constants_itself(tmp_path: Path) -> None:
    """As `setBytes` does, so that no thread waits for memory to learn them."""
    path, code = tmp_path / "scaled.metal", tmp_path / "scaled.ptx"
    path.write_text(SCALED)
    lower(path, code, target="nvptx")
    assert code.read_text().count("ld.global") == 3
    said = lower(path, code, target="nvptx", by_value={1: 12}, threads=32)
    text = code.read_text()
    assert ".param .align 4 .b8 scaled_param_1[12]" in text
    assert text.count("ld.param.b32") == 2
    assert text.count("ld.global") == 1
    assert ".reqntid 32" in text
    assert [each["buffer"] for each in said["parameters"]] == [0, 1, 2]


@pytest.mark.parametrize(
    ("target", "buffer", "why"),
    [
        ("spirv", 1, "cannot be handed over by value to this GPU"),
        ("nvptx", 2, "buffer 2 cannot be handed over by value: it is not only read as constants"),
        ("nvptx", 7, "buffer 7 is to be handed over by value, but the kernel has none"),
    ],
)
def test_what_cannot_be_handed_over_by_value(
    tmp_path: Path, target: str, buffer: int, why: str
) -> None:
    path = tmp_path / "scaled.metal"
    path.write_text(SCALED)
    with pytest.raises(AgxError, match=why):
        lower(path, tmp_path / "scaled.code", target=target, by_value={buffer: 12})


def test_both_halves_of_a_product_are_one_multiplication(tmp_path: Path) -> None:
    """Also where the low half comes first, is in another block, or is a factor of another product."""
    path, code = tmp_path / "halves.metal", tmp_path / "halves.ptx"
    path.write_text(
        HEAD
        + """[[kernel, max_total_threads_per_threadgroup(32)]] void halves(device uint *out [[buffer(0)]],
    device const uint *x [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  uint a = x[i], b = x[i + 32u], low = a * b;
  out[i] = low ^ mulhi(a, b);
  uint again = mulhi(3528531795u, low);
  if (again & 1u)
    again ^= 3528531795u * low;
  out[i + 32u] = again;
  out[i + 64u] = a * 77u;
}
"""
    )
    lower(path, code, target="nvptx")
    products = [line for line in code.read_text().splitlines() if "\tmul" in line]
    wide = [line for line in products if "mul.wide.u32" in line and line.split()[-1] != "4;"]
    assert len(wide) == 2
    assert not [line for line in products if "mul.hi" in line]
    assert len([line for line in products if "mul.lo.s32" in line]) == 1


def test_integers_become_bfloats_and_bfloats_integers(tmp_path: Path) -> None:
    """G13 has no bfloat: a conversion goes by way of float."""
    path = tmp_path / "kernel.metal"
    path.write_text(
        HEAD
        + """[[kernel]] void turn(device const uchar *x [[buffer(0)]], device const int *y [[buffer(1)]],
    device bfloat *out [[buffer(2)]], device uint *back [[buffer(3)]], uint i [[thread_position_in_grid]]) {
  bfloat sum = bfloat(x[i]) + bfloat(y[i]);
  out[i] = sum;
  back[i] = uint(sum) + uint(int(sum));
}
"""
    )
    lower(path, tmp_path / "kernel.spv", threads=32, form="ir")
    text = (tmp_path / "kernel.spv").read_text()
    assert "uitofp i8" in text
    assert "sitofp i32" in text
    assert "fptoui float" in text
    assert "fptosi float" in text
    assert "bfloat" not in "\n".join(line for line in text.splitlines() if "to" in line)


def test_functions_of_bfloats_are_those_of_floats(tmp_path: Path) -> None:
    """LLVM moves fabs before a conversion; the bfloat's sign is a bit like any other."""
    path = tmp_path / "kernel.metal"
    path.write_text(
        HEAD
        + """[[kernel]] void turn(device const bfloat *x [[buffer(0)]], device float *out [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  out[i] = fabs(float(x[i]));
}
"""
    )
    lower(path, tmp_path / "kernel.spv", threads=32)
    lower(path, tmp_path / "kernel.ll", threads=32, form="ir")
    text = (tmp_path / "kernel.ll").read_text()
    assert "and i16" in text
    assert "bf16" not in text


def test_vectors_are_read_whole_where_a_launch_aligns_them(tmp_path: Path) -> None:
    """A packed vector promises the alignment of its elements; a test at run time finds that of the whole."""
    path, code = tmp_path / "packed.metal", tmp_path / "packed.ptx"
    path.write_text(
        HEAD
        + """[[kernel, max_total_threads_per_threadgroup(32)]] void packed(device half *out [[buffer(0)]],
    device const half *x [[buffer(1)]], constant int *n [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  half4 row = *(device const packed_half4 *)(x + n[0] + i * 4u);
  *(device packed_half4 *)(out + n[1] + i * 4u) = row * half(n[2] + n[3]);
}
"""
    )
    lower(path, code, target="nvptx", by_value={2: 16})
    text = code.read_text()
    for way in ("ld.global", "st.global"):
        assert text.count(f"{way}.v4.b16") + text.count(f"{way}.v2.b32") == 1
        assert text.count(f"{way}.b16") == 4
    # The scalars of the launch are followed by nothing that could be read with them.
    assert text.count("ld.param.b32") == 4


ATOMICS = (
    HEAD
    + """kernel void add(device atomic_float *y [[buffer(0)]], device const float *x [[buffer(1)]],
    device float *z [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  z[i] = 2.0f * atomic_fetch_add_explicit(y + i % 8, x[i], memory_order_relaxed);
  atomic_fetch_sub_explicit(y + 8, x[i], memory_order_relaxed);
}
"""
)


def test_atomics_of_floats_are_measured_as_those_of_integers(tmp_path: Path) -> None:
    """Mesa's SPIR-V has none of floats. On NVIDIA's GPUs, where the code runs, they stay what they are."""
    path = tmp_path / "add.metal"
    path.write_text(ATOMICS)
    lower(path, path.with_suffix(".spv"))
    code = {}
    for target in ("spirv", "nvptx"):
        out = path.with_suffix(f".{target}")
        command = [front_end(), f"--target={target}", "--emit=ir", path, "-o", out]
        subprocess.run(command, check=True, capture_output=True)
        code[target] = out.read_text()
    assert len(re.findall(r"atomicrmw add ptr.* i32", code["spirv"])) == 2
    assert "atomicrmw f" not in code["spirv"]
    assert len(re.findall(r"atomicrmw f(add|sub) ptr.* float", code["nvptx"])) == 2
