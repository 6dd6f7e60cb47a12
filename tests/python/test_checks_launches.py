"""Checks of launches through the launcher: the option, the report, and arrays that stay as they were."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import triton_metal as triton
import triton_metal.language as tl

from metal_run import invoke

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
