"""`python -m triton_metal report`, and the example of docs/report.md."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

# A report launches on the host device, whatever the arrays are.
pytestmark = pytest.mark.own_route

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python")}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def example() -> str:
    found = re.search(r"```python\n(.*?)```", (ROOT / "docs" / "report.md").read_text(), re.DOTALL)
    assert found
    return found[1]


def test_the_example_of_the_docs(tmp_path: Path) -> None:
    (tmp_path / "example.py").write_text(example() + "assert not out.any()\n")
    done = run("example.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "12% of each 128-byte line is used" in (tmp_path / "column.html").read_text()


def test_the_command_writes_a_page_for_each_kernel(tmp_path: Path) -> None:
    launches = re.sub(r"column_kernel\.report.*", "", example())
    launches += (
        "import sys\nassert sys.argv[1:] == ['--size', '3'], sys.argv\n"
        "for stride in (1, 8, 8):\n    column_kernel[(8,)](x, out, 1000, STRIDE=stride, BLOCK=128)\n"
    )
    (tmp_path / "program.py").write_text(launches)
    done = run(
        *(
            "-m",
            "triton_metal",
            "report",
            "--chip",
            "M2",
            "program.py",
            "--size",
            "3",
            "-o",
            "pages",
        ),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert sorted(p.name for p in (tmp_path / "pages").iterdir()) == [
        "column_kernel-2.html",
        "column_kernel.html",
    ]
    assert "column_kernel, 2 launches" in done.stdout
    assert "M2 (10 cores)" in (tmp_path / "pages" / "column_kernel.html").read_text()


def test_the_command_writes_pages_of_a_module(tmp_path: Path) -> None:
    launch = re.sub(r"column_kernel\.report.*", "", example())
    (tmp_path / "launching.py").write_text(
        launch + "column_kernel[(8,)](x, out, 1000, STRIDE=8, BLOCK=128)\n"
    )
    for words in (["-o", "pages", "-m", "launching"], ["-m", "launching", "-o", "others"]):
        done = run("-m", "triton_metal", "report", *words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        folder = tmp_path / words[words.index("-o") + 1]
        assert [page.name for page in folder.iterdir()] == ["column_kernel.html"]


def test_a_program_that_fails_has_pages_of_what_it_launched(tmp_path: Path) -> None:
    launch = re.sub(r"column_kernel\.report.*", "", example())
    launch += "column_kernel[(8,)](x, out, 1000, STRIDE=8, BLOCK=128)\nraise KeyError('late')\n"
    (tmp_path / "program.py").write_text(launch)
    done = run("-m", "triton_metal", "report", "program.py", "-o", "pages", cwd=tmp_path)
    assert done.returncode == 1
    assert "KeyError: 'late'" in done.stderr
    assert [page.name for page in (tmp_path / "pages").iterdir()] == ["column_kernel.html"]


def test_the_command_writes_pages_of_launches_in_graphs_of_mlx(tmp_path: Path) -> None:
    pytest.importorskip("mlx.core")
    (tmp_path / "program.py").write_text(
        """import mlx.core as mx
import triton_metal as triton
import triton_metal.language as tl
import triton_metal.mlx as tm
import sys

@triton.jit
def double_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, 2 * tl.load(x_ptr + i, i < n), i < n)

def double(x):
    return tm.call(double_kernel, x, n=64, BLOCK=64, grid=(1,), outputs={"out_ptr": x})

x = mx.ones(64)
if len(sys.argv) == 1:
    assert double(x).tolist() == [2] * 64
assert mx.compile(double)(x).tolist() == [2] * 64
"""
    )
    done = run("-m", "triton_metal", "report", "program.py", "-o", "pages", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [page.name for page in (tmp_path / "pages").iterdir()] == ["double_kernel.html"]
    assert "without a page: 1 launch was in a function that MLX traces" in done.stdout
    done = run("-m", "triton_metal", "report", "program.py", "traced", "-o", "none", cwd=tmp_path)
    assert (done.returncode, (tmp_path / "none").exists()) == (1, False)
    assert "there is no page: 1 launch was in a function that MLX traces" in done.stderr
    done = run("-m", "triton_metal", "cost", "program.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "1 launch" in done.stdout + done.stderr


def test_errors_of_the_command(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("print('ran')\n")
    (tmp_path / "file").write_text("")
    for arguments, message in (
        (["program.py"], "a folder for the pages is needed: -o FOLDER"),
        (["-o", "pages"], "a program is needed"),
        (["-o", "file", "program.py"], "the folder 'file' cannot be created"),
        (["-o", "pages", "--chip", "M77", "program.py"], "but is 'M77'"),
        (["-o", "file/pages", "program.py"], "the folder 'file/pages' cannot be created"),
        (["-o", "pages" * 100, "program.py"], "cannot be created: File name too long"),
        (["-o", "pages", "program.py"], "the program launched no kernel"),
    ):
        done = run("-m", "triton_metal", "report", *arguments, cwd=tmp_path)
        assert done.returncode != 0
        assert message in done.stderr
        assert "Traceback" not in done.stderr
        assert ("ran" in done.stdout) == ("no kernel" in message)
    assert not (tmp_path / "pages").exists()
