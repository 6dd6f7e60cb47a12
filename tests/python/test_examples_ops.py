"""The functions of triton_metal.ops that stand beside the examples' kernels in the table of `make demo`."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("triton_metal.ops", reason="stock Triton has no such functions")

from kernel_support import assert_within, dtype, needs_counters

from _counts import counting  # isort: skip
import demo  # isort: skip

CASES = {case.text_name: case for case in demo.ops_cases(lambda array: array)}
EXAMPLES = Path(demo.__file__).parent


@needs_counters
@pytest.mark.own_target
@pytest.mark.parametrize("name", CASES)
def test_the_bounds_and_counts_of_the_examples(name: str) -> None:
    case = CASES[name]
    with counting(case.kernel) as counts:
        result = case.run()
    assert_within(result, case.expected, case.bound)
    assert counts.device_bytes == case.least_bytes
    assert counts.multiplies == case.least_multiplies
    assert counts.private_bytes == 0


def test_each_row_of_the_table_has_a_file_of_its_own() -> None:
    dtype("bfloat16")
    names = [case.text_name for case in demo.cases()]
    assert len(set(names)) == len(names)
    assert {name.split("-")[0] for name in CASES} == {
        "ops.attention", "ops.dropout", "ops.layer_norm", "ops.matmul", "ops.softmax",
    }  # fmt: skip


@pytest.mark.own_route
@pytest.mark.parametrize("name", ["attention", "dropout", "layer_norm", "matmul", "softmax"])
def test_an_example_runs_by_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with np.errstate(all="raise", under="ignore"):
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    said = capsys.readouterr().out
    assert f"ops.{name}" in said
    for line in said.splitlines():
        if "bound" in line:
            error, bound = (float(word) for word in line.split("error ")[1].split(", bound "))
            assert error <= bound, line
