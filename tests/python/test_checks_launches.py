"""Checks of launches through the launcher: the option, the report, and arrays that stay as they were."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl
import triton_metal_host

from metal_run import invoke

SHARED = "s[i] = 1;\nthreadgroup_barrier(mem_flags::mem_threadgroup);\no[i] = s[63 - i];\n"
METAL = "#include <metal_stdlib>\nusing namespace metal;\n"
DOCS = Path(__file__).resolve().parents[2] / "docs" / "checks.md"


@triton.jit
def shift_left(x, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at + 1, at + 1 < n, 0), at < n)


@triton.jit
def spin(x, n):
    i = 0
    while i < n:
        i += tl.load(x)
    tl.store(x, i)


@pytest.mark.own_check(reason="it asks for races")
def test_a_race_of_two_programs_is_reported_and_leaves_the_array() -> None:
    x = np.arange(512, dtype=np.float32)
    with (
        triton.launch_options(check="races"),
        pytest.raises(triton.DeviceError, match=r"a race: .* of 'x' .*two threadgroups") as raised,
    ):
        shift_left[4,](x, 512, BLOCK=128)
    assert "shift_left" in str(raised.value)
    np.testing.assert_array_equal(x, np.arange(512, dtype=np.float32))


@pytest.mark.own_check(reason="it asks for steps")
def test_a_step_budget_ends_a_loop() -> None:
    x = np.zeros(1, np.int32)
    with (
        triton.launch_options(check=["bounds", "steps"], max_steps=1000),
        pytest.raises(triton.DeviceError, match="has run 1000 iterations of its loops"),
    ):
        spin[1,](x, 5)


def test_wrong_options_are_named() -> None:
    for check in ("reces", ["bounds", "portable"]):
        with pytest.raises(triton.LaunchValueError), triton.launch_options(check=check):
            pass
    with (
        pytest.raises(triton.LaunchValueError, match="max_steps"),
        triton.launch_options(check="bounds", max_steps=5),
    ):
        pass


def test_outputs_without_names_are_refused() -> None:
    """A launch does not say which arrays are outputs, so that the check would find nothing."""
    for check in ("outputs", ["bounds", "outputs"]):
        with (
            pytest.raises(triton.LaunchValueError, match="needs the names of the outputs"),
            triton.launch_options(check=check),
        ):
            pass


def test_named_outputs_of_a_pipeline_are_checked() -> None:
    text = (
        METAL
        + "kernel void half_of_it(device float *o [[buffer(0)]], uint i [[thread_position_in_grid]]) {\n"
        "  if (i % 2 == 0)\n    o[i] = 1;\n}\n"
    )
    device = triton_metal_host.Device()
    function = device.library(text).function("half_of_it")
    out = np.zeros(64, np.float32)
    for checks in (None, "all", "bounds"):
        pipeline = device.pipeline(function, checks=checks, outputs=["o"])
        with pytest.raises(
            triton_metal_host.LaunchError, match="no thread has written byte 4 of 'o'"
        ):
            pipeline(out, threads=64)
    with pytest.raises(ValueError, match="needs `outputs`"):
        device.pipeline(function, checks="outputs")


def test_buffers_that_overlap_race() -> None:
    """Two indices with memory in common, which the kernel cannot know."""
    text = (
        METAL
        + "kernel void shift(device const float *a [[buffer(0)]], device float *b [[buffer(1)]],\n"
        "                  uint i [[thread_position_in_grid]]) {\n  b[i] = a[i];\n}\n"
    )
    device = triton_metal_host.Device()
    pipeline = device.pipeline(device.library(text).function("shift"), checks="all")
    memory = np.arange(513, dtype=np.float32)
    with pytest.raises(
        triton_metal_host.LaunchError, match=r"line 5:\d+: a race: .*of 'b'.* meets "
    ):
        pipeline(memory[:512], memory[1:], threads=512)
    np.testing.assert_array_equal(memory, np.arange(513, dtype=np.float32))
    pipeline(memory[:256], memory[256:512], threads=256)
    np.testing.assert_array_equal(memory[:256], memory[256:512])


@pytest.mark.parametrize(
    ("before", "options", "said"),
    [
        ("", ["--threadgroup-memory=0=32784"], "at most 32768 bytes of memory, but needs 32784"),
        ("threadgroup float s[8000];\n", ["--threadgroup-memory=0=1024"], "but needs 33024"),
        ("float a[70000];\na[i] = 1;\n", [], "280000 bytes"),
    ],
    ids=["argument", "variable and argument", "private array"],
)
def test_too_much_memory_is_refused(before: str, options: list[str], said: str) -> None:
    use = {"threadgroup": SHARED, "float": "o[i] = a[63 - i];\n"}.get(before.split(" ")[0], "")
    text = (
        METAL
        + "kernel void k(device float *o [[buffer(0)]], threadgroup float *arg [[threadgroup(0)]],\n"
        "              uint i [[thread_position_in_grid]]) {\n"
        + before
        + use
        + "arg[i] = 1;\no[i] += arg[i];\n}\n"
    )
    memory = options or ["--threadgroup-memory=0=256"]
    result = invoke(
        ["--buffer=o=zeros:float:64", "--threadgroups=1", "--group=64", *memory, "-"], text
    )
    assert result.returncode == 1
    assert said in result.stderr


def test_the_race_of_the_documentation() -> None:
    page = DOCS.read_text()
    body, report = re.search(r"```metal\n(.*?)```\n\n```\n(kernel .*?)\n```", page, re.S).groups()
    text = (
        "#include <metal_stdlib>\nusing namespace metal;\n"
        "kernel void k(device const float *x [[buffer(0)]], device float *o [[buffer(1)]],\n"
        "              uint t [[thread_index_in_threadgroup]], uint i [[thread_position_in_grid]]) {\n"
        + body
        + "}\n"
    )
    said = invoke(
        [
            "--buffer=x=full:float:256:2",
            "--buffer=o=zeros:float:256",
            "--threadgroups=2",
            "--group=128",
            "--check=all",
            "-",
        ],
        text,
    )
    assert said.stderr.strip() == report


CHAIN = """#include <metal_stdlib>
using namespace metal;
kernel void k(device const float2 *x, device float2 *y, constant uint &n) {{
  float2 t{value};
  for (uint j = 0; j < n; ++j)
    y[j] = x[j] + t{decrements};
}}
"""


def test_thousands_of_temporaries_are_checked() -> None:
    """A chain of calls in a loop: LLVM took time that grew with the cube of its length."""
    decrements = "--" * 600  # of t and of the copies that they return
    device = triton_metal_host.Device(checks="initialized")
    x, y = np.ones((4, 2), np.float32), np.zeros((4, 2), np.float32)
    text = CHAIN.format(value=" = x[0]", decrements=decrements)
    device.pipeline(device.library(text).function("k"))(x, y, 4, threads=1)
    assert (y == np.array([[2], [1], [0], [-1]])).all()
    text = CHAIN.format(value="", decrements=decrements)
    with pytest.raises(
        triton_metal_host.LaunchError, match=r"line 6.* is read before it has a value"
    ):
        device.pipeline(device.library(text).function("k"))(x, y, 4, threads=1)
