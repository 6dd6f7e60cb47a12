"""The README's kernel runs, and its Metal text is what the compiler prints.

`python tests/python/test_readme.py` writes the present text into the README.
"""

from __future__ import annotations

import runpy
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from kernel_support import ON_STOCK

README = Path(__file__).resolve().parents[2] / "README.md"
pytestmark = pytest.mark.own_route  # the text depends on what is known of the arrays
BEGIN, END = "<!-- metal: begin -->\n", "<!-- metal: end -->"


def run_readme(folder: Path, blocks: int = 1) -> dict[str, Any]:
    """The variables after the README's first Python blocks have run."""
    parts = README.read_text().split("```python\n")[1 : blocks + 1]
    code = "".join(part.split("```")[0] for part in parts)
    path = folder / "readme_kernel.py"
    path.write_text(code)
    return runpy.run_path(str(path))


def with_metal(text: str, metal: str) -> str:
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}```metal\n{metal.rstrip()}\n```\n{END}{rest.split(END)[1]}"


@pytest.mark.skipif(ON_STOCK, reason="the interpreter prints no Metal")
def test_the_readme_is_true(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    variables = run_readme(tmp_path)
    assert (variables["out"] == variables["x"] + variables["y"]).all()
    metal = variables["kernel"].asm["metal"]
    assert capsys.readouterr().out == metal + "\n"
    assert README.read_text() == with_metal(README.read_text(), metal)


@pytest.mark.skipif(ON_STOCK, reason="stock Triton takes no MLX arrays")
def test_the_kernel_on_mlx_arrays(tmp_path: Path) -> None:
    mx = pytest.importorskip("mlx.core")
    variables = run_readme(tmp_path, blocks=2)
    expected = mx.arange(98_432, dtype=mx.float32) + 1
    assert mx.array_equal(variables["out"], expected)
    assert mx.array_equal(variables["total"], expected)
    assert mx.array_equal(variables["x"], mx.ones(98_432))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        kernel = run_readme(Path(folder))["kernel"]
    README.write_text(with_metal(README.read_text(), kernel.asm["metal"]))
    sys.exit(0)
