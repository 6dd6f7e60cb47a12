"""Defects of the shapes that programs in the wild have are named, and right kernels of such shapes are not reported."""

from __future__ import annotations

import pytest

from planted_defects import Defect
from planted_reports import LONG, problems, report
from planted_tricky import TRICKY
from planted_unusual import UNUSUAL


@pytest.mark.parametrize("defect", UNUSUAL, ids=lambda defect: f"{defect.check}-{defect.name}")
def test_an_unusual_defect_is_named(defect: Defect) -> None:
    text = defect.text()
    said = report(text, defect.check, *defect.options)
    assert not problems(defect, text, said), said


@pytest.mark.parametrize("defect", UNUSUAL[::2], ids=lambda defect: f"{defect.check}-{defect.name}")
def test_it_is_named_in_a_long_kernel_under_all_checks(defect: Defect) -> None:
    text = defect.text(LONG)
    assert len(text.splitlines()) > 300
    said = report(text, "all,nans" if defect.check == "nans" else "all", *defect.options)
    assert not problems(defect, text, said), said


@pytest.mark.parametrize("kernel", TRICKY, ids=lambda kernel: kernel.name)
def test_a_tricky_kernel_is_not_reported(kernel: Defect) -> None:
    assert report(kernel.text(), "all,nans") == ""


@pytest.mark.parametrize("kernel", TRICKY[1::2], ids=lambda kernel: kernel.name)
def test_nor_is_a_long_one(kernel: Defect) -> None:
    assert report(kernel.text(LONG), "all,nans") == ""


def test_each_has_a_name_of_its_own() -> None:
    assert len(UNUSUAL) >= 120
    assert len({(defect.check, defect.name) for defect in UNUSUAL}) == len(UNUSUAL)
    assert len(TRICKY) >= 60
    assert len({kernel.name for kernel in TRICKY}) == len(TRICKY)
