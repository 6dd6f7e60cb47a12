"""The tool that runs mutated Metal texts: it finds crashes and hangs, and whose they are; and a sample of what it runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FUZZ = ROOT / "tests/fuzz"

KERNEL = """
kernel void k(device int *p [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  p[i] = 7;
  while (p[i] == 8) {}
}
"""


def run(script: str) -> list[str]:
    """What a script prints that imports the tool, which must not have this process's threads."""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=FUZZ, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


PREFIX = f"""
import os, signal, time
import metal_workers as w
from metal_launches import Plan
KERNEL = {KERNEL!r}
def results(text, plan, numbers, jobs=1):
    for result in sorted(w.Pool(w.Source(text, plan), jobs).run(numbers), key=lambda r: r.number):
        print(result.number, result.outcome, result.failed or "-", len(result.company))
"""


def test_a_crash_belongs_to_the_text_that_crashes_alone() -> None:
    lines = run(
        PREFIX
        + """
def text(number):
    if number == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return KERNEL
results(text, lambda number: Plan(checks="all"), range(5))
"""
    )
    assert lines == ["0 ran - 0", "1 ran - 0", "2 crash crash 0", "3 ran - 0", "4 ran - 0"]


@pytest.mark.parametrize("checks", ["all", ""])
def test_a_crash_that_only_comes_after_other_texts_counts_if_these_were_checked(
    checks: str,
) -> None:
    lines = run(
        PREFIX
        + f"""
before = []
def text(number):
    if number == 2 and before:
        os.kill(os.getpid(), signal.SIGKILL)
    before.append(number)
    return KERNEL
results(text, lambda number: Plan(checks={checks!r}), range(4))
"""
    )
    company = 2 if checks else 0
    assert lines == ["0 ran - 0", "1 ran - 0", f"2 ran crash {company}", "3 ran - 0"]


def test_checked_and_unchecked_texts_do_not_share_processes() -> None:
    lines = run(
        PREFIX
        + """
kinds = set()
def text(number):
    kinds.add(number % 2)
    assert len(kinds) == 1
    return KERNEL
results(text, lambda number: Plan(checks="all" if number % 2 else ""), range(8), 2)
"""
    )
    assert lines == [f"{number} ran - 0" for number in range(8)]


def test_what_does_not_end_is_stopped_and_what_cannot_be_stopped_is_a_hang() -> None:
    lines = run(
        PREFIX
        + """
w.COMPILE_SECONDS, w.RUN_SECONDS = 3, 1
def text(number):
    if number == 1:
        time.sleep(100)
    return KERNEL.replace("== 8", "== 7") if number == 2 else KERNEL
results(text, lambda number: Plan(), range(4))
"""
    )
    assert lines == ["0 ran - 0", "1 hang hang 0", "2 stopped - 0", "3 ran - 0"]


def test_what_grows_without_end_is_found() -> None:
    lines = run(
        PREFIX
        + """
w.TOO_MANY_BYTES = 1 << 30
def text(number):
    if number == 1:
        block = bytearray(b"x") * (1 << 30)
        time.sleep(100)
    return KERNEL
results(text, lambda number: Plan(), range(3))
"""
    )
    assert lines == ["0 ran - 0", "1 memory memory 0", "2 ran - 0"]


def test_no_changed_text_crashes_the_device(tmp_path: Path) -> None:
    command = [sys.executable, FUZZ / "metal_texts.py", "--without-examples", "--seed", "5"]
    command += ["--count", "120", "--jobs", "1", "--out", tmp_path]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    last = done.stdout.splitlines()[-1]
    assert last.startswith("120 texts")
    assert "'ran'" in last
    assert "'error'" in last


def test_texts_that_are_not_changed_run(tmp_path: Path) -> None:
    command = [sys.executable, FUZZ / "metal_texts.py", "--replay", *FUZZ.glob("texts/*.metal")]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    unchecked = [line for line in done.stdout.splitlines() if "unchecked" in line]
    assert unchecked
    assert all("unchecked: ran" in line for line in unchecked), done.stdout
