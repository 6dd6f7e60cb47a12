"""A fixed sample of what `make fuzz-ttir` does: changed texts of Triton IR are compiled or refused, and nothing crashes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(
    not (ROOT / "build/bin/triton-metal-compile-texts").exists(), reason="the tools are not built"
)


def test_no_changed_text_crashes_the_compiler(tmp_path: Path) -> None:
    command = [sys.executable, ROOT / "tests/fuzz/fuzz_ttir.py", "--seed", "20", "--jobs", "1"]
    command += ["--mutants", "500", "--programs", "20", "--out", tmp_path]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    # Most changes leave no program, and some do.
    assert done.stdout.startswith("520 texts")
    assert " ok" in done.stdout
    assert "refused" in done.stdout
