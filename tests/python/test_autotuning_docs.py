"""The examples of docs/autotuning.md are a program that runs."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from kernel_support import ON_STOCK

PAGE = Path(__file__).resolve().parents[2] / "docs" / "autotuning.md"
pytestmark = [
    pytest.mark.own_check,
    pytest.mark.skipif(ON_STOCK, reason="spaces and results are no part of stock Triton"),
]


def test_the_examples_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 6
    program = tmp_path / "page.py"
    program.write_text("\n".join(blocks))
    variables = runpy.run_path(str(program))
    output = capsys.readouterr().out
    assert str(variables["add"].best_config) in output
    assert "not times on an Apple GPU" in output
    assert "addition:" in output
    assert variables["out"].tolist() == (variables["x"] + variables["y"]).tolist()
