"""Defects in long programs are named with both of their sides, and the programs as they are have none."""

from __future__ import annotations

import re

import pytest

from metal_run import invoke
from planted_programs import CHANGES, PROGRAMS, Change
from planted_reports import marked


def checked(text: str, launch: tuple[str, ...]) -> str:
    done = invoke([*launch, "--check=all,nans", "--max-steps=200000", "-"], text)
    return done.stderr.strip() if done.returncode else ""


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_right_program_is_not_reported(name: str) -> None:
    program = PROGRAMS[name]
    assert len(program.text.splitlines()) > 300
    assert checked(program.text, program.launch) == ""


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: f"{change.program}-{change.name}")
def test_a_defect_in_a_program_is_named(change: Change) -> None:
    text = change.text()
    said = checked(text, PROGRAMS[change.program].launch)
    assert all(part in said for part in change.says), said
    assert said.startswith(f"kernel '{change.program}'")
    lines = [int(line) for line in re.findall(r"(?<!declared in )(?<!called in )line (\d+):", said)]
    here, there = marked(text, "HERE"), marked(text, "THERE")
    if here:
        assert set(lines) & set(here), said
    if there:
        assert sorted(lines) == sorted(here + there), said


def test_there_are_enough() -> None:
    assert len(CHANGES) >= 25
    assert len({(change.program, change.name) for change in CHANGES}) == len(CHANGES)
