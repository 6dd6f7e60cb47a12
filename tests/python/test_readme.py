"""The README's kernel runs, and its Metal text is what the compiler prints.

`python tests/python/test_readme.py` writes the present text into the README.
"""

from __future__ import annotations

import os
import re
import runpy
import shlex
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

import numpy
import pytest

from kernel_support import ON_STOCK

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
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
    # Under stress, the same program has another text.
    if not os.environ.get("TRITON_METAL_STRESS"):
        assert README.read_text() == with_metal(README.read_text(), metal)


@pytest.mark.skipif(ON_STOCK, reason="stock Triton takes no MLX arrays")
def test_the_kernel_on_mlx_arrays(tmp_path: Path) -> None:
    mx = pytest.importorskip("mlx.core")
    variables = run_readme(tmp_path, blocks=2)
    expected = mx.arange(98_432, dtype=mx.float32) + 1
    assert mx.array_equal(variables["out"], expected)
    assert mx.array_equal(variables["total"], expected)
    assert mx.array_equal(variables["x"], mx.ones(98_432))


def test_the_metal_kernel_and_what_is_said_of_it(tmp_path: Path) -> None:
    _, rest = README.read_text().split("## Metal kernels without a Mac\n")
    kernel, command, message = (part.split("```")[0] for part in re.split("```[a-z]+\n", rest)[1:4])
    (tmp_path / "saxpy.metal").write_text(kernel)
    program, *arguments = shlex.split(command)
    assert Path(program).name == "metal-run"
    done = subprocess.run(
        [sys.executable, "-m", "triton_metal_host", *arguments],
        cwd=tmp_path,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.strip() == message.strip()


def snippet_runs(python: Path, folder: Path) -> None:
    """Runs the first Python block as it stands, from a folder of its own."""
    path = folder / "snippet.py"
    path.write_text(README.read_text().split("```python\n")[1].split("```")[0])
    done = subprocess.run(
        [python, path],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "TRITON_METAL_CACHE_DIR": str(folder / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "add_kernel" in done.stdout


@pytest.mark.skipif(ON_STOCK, reason="the interpreter prints no Metal")
def test_the_snippet_in_an_environment_that_was_set_up(tmp_path: Path) -> None:
    venv.create(tmp_path / "env", symlinks=True)
    python = tmp_path / "env" / "bin" / "python"
    subprocess.run([python, ROOT / "scripts" / "make_importable.py"], check=True, cwd=tmp_path)
    (site,) = (tmp_path / "env").glob("lib/python*/site-packages")
    # What requirements/base.txt brings.
    (site / "numpy.pth").write_text(str(Path(numpy.__file__).parents[1]))
    snippet_runs(python, tmp_path)


@pytest.mark.skipif(ON_STOCK, reason="the interpreter prints no Metal")
def test_the_snippet_after_make(tmp_path: Path) -> None:
    paths = list((ROOT / ".venv").glob("lib/python*/site-packages/triton_metal_checkout.pth"))
    if not paths or paths[0].read_text().strip() != str(ROOT / "python"):
        pytest.skip("scripts/setup.sh has not set up .venv for this checkout")
    snippet_runs(ROOT / ".venv" / "bin" / "python", tmp_path)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        kernel = run_readme(Path(folder))["kernel"]
    README.write_text(with_metal(README.read_text(), kernel.asm["metal"]))
    sys.exit(0)
