"""Each check of the host device finds the defects that are planted for it, in short kernels and in long ones."""

from __future__ import annotations

import pytest

from planted_defects import DEFECTS, Defect
from planted_further import FURTHER
from planted_reports import LONG, problems, report

ALL = [*DEFECTS, *FURTHER]


@pytest.mark.parametrize("defect", ALL, ids=lambda defect: f"{defect.check}-{defect.name}")
def test_a_planted_defect_is_named(defect: Defect) -> None:
    text = defect.text()
    said = report(text, defect.check, *defect.options)
    assert not problems(defect, text, said), said


@pytest.mark.parametrize("defect", ALL, ids=lambda defect: f"{defect.check}-{defect.name}")
def test_it_is_named_in_a_long_kernel_under_all_checks(defect: Defect) -> None:
    text = defect.text(LONG)
    assert len(text.splitlines()) > 300
    checks = "all,nans" if defect.check == "nans" else "all"
    said = report(text, checks, *defect.options)
    assert not problems(defect, text, said), said


def test_the_long_text_itself_is_right() -> None:
    text = Defect("none", "all", "o[i] = 1;", ()).text(LONG)
    assert report(text, "all,nans", "--whole=o") == ""


def test_there_are_hundred_and_fifty_of_them() -> None:
    assert len(ALL) >= 150
    assert len({(defect.check, defect.name) for defect in ALL}) == len(ALL)
