"""metal-run where what it writes cannot be written, and numbers as people write them."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from metal_run import ROOT, invoke, metal_run_path

KERNEL = """#include <metal_stdlib>
using namespace metal;
kernel void fill(device float *out, constant float &value, uint i [[thread_position_in_grid]]) {
  out[i] = value;
}
"""


def fill(tmp_path: Path, *options: str, out: str = "out.npy") -> subprocess.CompletedProcess[str]:
    buffers = ["--buffer=out=zeros:float:64", "--scalar=value=7", f"--output=out={tmp_path / out}"]
    return invoke([*buffers, *options, "-"], KERNEL)


def test_an_array_that_cannot_be_written_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "out.npy"
    np.save(path, np.arange(3))
    before = path.read_bytes()

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))

    done = subprocess.run(
        [str(metal_run_path()), "--buffer=out=zeros:float:4096", "--scalar=value=7", f"--output=out={path}", "--threads=64", "-"],
        input=KERNEL,
        text=True,
        capture_output=True,
        check=False,
        preexec_fn=limited,
        env=os.environ | {"TRITON_METAL_CACHE_DIR": ""},
    )  # fmt: skip
    assert done.returncode != 0
    assert path.read_bytes() == before


def test_symbolic_links_and_pipes_stay(tmp_path: Path) -> None:
    (tmp_path / "out.npy").symlink_to("target.npy")
    done = fill(tmp_path, "--threads=64")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out.npy").is_symlink()
    assert np.load(tmp_path / "target.npy").tolist() == [7.0] * 64
    assert sorted(os.listdir(tmp_path)) == ["out.npy", "target.npy"]
    done = fill(tmp_path, "--threads=64", out="none/out.npy")
    assert done.returncode == 1
    assert "none/out.npy': No such file or directory" in done.stderr


@pytest.mark.parametrize(
    "tool", [[], [sys.executable, "-m", "triton_metal_host"]], ids=["metal-run", "python"]
)
def test_an_output_that_fails_is_one_line(tool: list[str]) -> None:
    command = tool or [str(metal_run_path())]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python")}
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("there is no /dev/full")
    with full.open("w") as output:
        done = subprocess.run(
            [*command, "--help"], stdout=output, stderr=subprocess.PIPE, text=True, check=False, env=environment
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == "metal-run: the output cannot be written: No space left on device\n"
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*command, "--help"], stdout=writer, stderr=subprocess.PIPE, text=True, check=False, env=environment
    )  # fmt: skip
    os.close(writer)
    assert done.returncode in (141, -13)
    assert done.stderr == ""


@pytest.mark.parametrize(("written", "threads"), [("010", 10), ("0x10", 16), ("10", 10)])
def test_numbers_are_decimal_unless_a_prefix_says_otherwise(
    tmp_path: Path, written: str, threads: int
) -> None:
    done = invoke(
        ["--buffer=out=zeros:float:64", f"--scalar=value={written}", f"--output=out={tmp_path / 'o.npy'}", f"--threads={written}", "-"],
        KERNEL,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert np.load(tmp_path / "o.npy").tolist() == [float(threads)] * threads + [0.0] * (
        64 - threads
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--buffer=out=zeros:float:64", "--scalar=value=int:3"], "is of type float, and the number is given as int"),
        (["--bytes=out=000000000000", "--scalar=value=3"], "takes values of 4 bytes each, and '000000000000' has 6 bytes"),
    ],
)  # fmt: skip
def test_arguments_that_are_not_the_parameters(options: list[str], message: str) -> None:
    done = invoke([*options, "--threads=1", "-"], KERNEL)
    assert done.returncode == 1
    assert message in done.stderr
