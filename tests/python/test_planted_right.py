"""No check of the host device reports a kernel that is right, and stores of one value are reported on request only."""

from __future__ import annotations

import pytest

from planted_defects import SYNC, TILE, Defect
from planted_reports import LONG, report
from planted_right import RIGHT


@pytest.mark.parametrize("kernel", RIGHT, ids=lambda kernel: kernel.name)
def test_a_right_kernel_is_not_reported(kernel: Defect) -> None:
    assert report(kernel.text(), "all,nans") == ""


@pytest.mark.parametrize("kernel", RIGHT, ids=lambda kernel: kernel.name)
def test_nor_is_a_long_one(kernel: Defect) -> None:
    assert report(kernel.text(LONG), "all,nans") == ""


def test_there_are_thirty_of_them() -> None:
    assert len(RIGHT) >= 30
    assert len({kernel.name for kernel in RIGHT}) == len(RIGHT)


SAME = {
    "lanes": "o[0] = 3; // HERE",
    "SIMD-groups": "if (lane == 0)\n  o[g] = 3; // HERE",
    "threadgroups": "if (t == 0)\n  n[7] = 5; // HERE",
    "threadgroup memory": TILE + "s[t / 64] = 1; // HERE\n" + SYNC + "o[i] = s[t / 64];",
    "vectors": "((device float4 *)o)[t % 32] = float4(1); // HERE",
}


@pytest.mark.parametrize("body", SAME.values(), ids=SAME)
def test_stores_of_one_value_race_on_request(body: str) -> None:
    text = Defect("same", "same-values", body, ()).text()
    assert report(text, "all") == ""
    said = report(text, "same-values")
    assert "a race: a store of" in said
    assert ", with the same value. " in said
    line = next(number for number, line in enumerate(text.splitlines(), 1) if "HERE" in line)
    assert f"line {line}:" in said


def test_stores_of_several_values_are_not_said_to_be_the_same() -> None:
    said = report(Defect("other", "same-values", "o[0] = float(t);", ()).text(), "same-values")
    assert "a race: a store of" in said
    assert "same value" not in said
