"""metal-run beyond one kernel with files: several dispatches, constants, bytes, times, counters, reflection."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from metal_run import invoke, metal_run_path

ROOT = Path(__file__).resolve().parents[2]

SOURCE = """#include <metal_stdlib>
using namespace metal;
constant bool use_bias [[function_constant(0)]];
constant float shift [[function_constant(3)]];
struct Sizes { uint rows; float factor; };
kernel void scale(device float *x, constant float &a, uint i [[thread_position_in_grid]]) { x[i] *= a; }
kernel void add(device const float *x, device float *y, uint i [[thread_position_in_grid]]) { y[i] += x[i]; }
kernel void biased(device float *x, uint i [[thread_position_in_grid]]) { if (use_bias) x[i] += shift; }
kernel void sized(device float *x, constant Sizes &sizes, constant int3 &v) {
  x[0] = sizes.rows; x[1] = sizes.factor; x[2] = v.z;
}
kernel void any(device void *x) {}
[[max_total_threads_per_threadgroup(64)]]
kernel void tiled(device float *x, threadgroup float *t [[threadgroup(0)]]) {
  threadgroup float own[8];
  own[uint(x[0]) % 8] = 1; t[0] = own[0]; x[1] = t[0];
}
"""


def output(*arguments: str) -> str:
    result = invoke([*arguments, "-"], SOURCE)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_several_dispatches_share_their_arrays(tmp_path: Path) -> None:
    text = output(
        *("--kernel=scale", "--buffer", "x=arange:float:4", "--scalar", "a=3", "--threads", "4"),
        *("--then", "--kernel=add", "--buffer=y=full:float:4:1", "--threads=4"),
        *("--then", "--kernel=scale", "--buffer=x=@y", "--scalar=a=10", "--threads=2"),
        *("--print", "y", "--print=x", f"--output=y={tmp_path / 'y.npy'}"),
    )
    assert text == "y = 10 40 7 10\nx = 10 40 7 10\n"
    assert np.load(tmp_path / "y.npy").tolist() == [10, 40, 7, 10]


def test_function_constants_by_name_and_index() -> None:
    common = ["--kernel=biased", "--buffer=x=zeros:float:2", "--threads=2", "--print=x"]
    assert output(*common, "--constant=use_bias=true", "--constant=3=0.5") == "x = 0.5 0.5\n"
    assert output(*common, "--constant=0=false", "--constant=shift=1") == "x = 0 0\n"


def test_bytes_and_vectors(tmp_path: Path) -> None:
    path = tmp_path / "sizes.bin"
    path.write_bytes(np.uint32(7).tobytes() + np.float32(0.5).tobytes())
    for given in (path.read_bytes().hex(), f"@{path}"):
        text = output(
            *("--kernel=sized", "--buffer=x=zeros:float:3", f"--bytes=sizes={given}"),
            *("--scalar=v=1,2,-3", "--threads=1", "--print=x"),
        )
        assert text == "x = 7 0.5 -3\n"


def test_arrays_that_are_made() -> None:
    run = ("--kernel=any", "--threads=1", "--print=x")
    assert output("--buffer=x=arange:half:2x3", *run) == "x = 0 1 2\n    3 4 5\n"
    assert output("--buffer=x=full:char:4:-5", *run[:-1], "--print=0") == "0 = -5 -5 -5 -5\n"
    drawn = output("--buffer=x=random:float:4:1", *run)
    assert drawn == output("--buffer=x=random:float:4:1", *run)
    assert drawn != output("--buffer=x=random:float:4:2", *run)
    numbers = [float(word) for word in drawn.split()[2:]]
    assert len(set(numbers)) == 4
    assert all(0 <= number < 1 for number in numbers)


def test_times_and_counters() -> None:
    run = ["--kernel=scale", "--buffer=x=zeros:float:64", "--scalar=a=2", "--threads=64"]
    text = output(*run, "--time=3")
    assert text.startswith("median ")
    assert text.endswith(" of 3 runs\n")
    result = json.loads(output(*run, "--counters=json", "--time"))
    assert result["counters"]["device_bytes_read"] == 256
    assert result["counters"]["threads"] == 64
    assert result["runs"] == 20
    assert 0 < result["best_seconds"] <= result["seconds"]
    text = output(*run, "--then", *run, "--counters")
    assert dict(line.split() for line in text.splitlines())["threads"] == "128"


def test_reflection() -> None:
    text = output("--list")
    assert "biased\n  device float *x  (buffer 0, 4 bytes each)\n" in text
    assert "  constant bool use_bias  (function constant 0, required)\n" in text
    assert "  constant Sizes &sizes  (buffer 1, 8 bytes)\n" in text
    assert "tiled  (at most 64 threads per threadgroup)\n" in text
    assert "  threadgroup float *t  (threadgroup memory 0, 4 bytes each)\n" in text
    text = output(
        *("--kernel=tiled", "--info", "--buffer=x=zeros:float:2", "--threads=1"),
        "--threadgroup-memory=t=16",
    )
    assert text == (
        "tiled\n"
        "  threads of a SIMD-group             32\n"
        "  most threads of a threadgroup       64\n"
        "  static threadgroup memory, bytes    32\n"
        "  buffers that it may write           x\n"
    )


def test_reflection_estimates_registers_of_counted_kernels() -> None:
    text = output(
        *("--kernel=tiled", "--info", "--counters", "--buffer=x=zeros:float:2", "--threads=1"),
        "--threadgroup-memory=t=16",
    )
    (line,) = (line for line in text.splitlines() if "registers of a thread" in line)
    assert line.startswith("  registers of a thread (estimate)    ")
    assert 1 <= int(line.split()[-1]) <= 32


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--kernel=scale", "--buffer=x=zeros:half:4", "--scalar=a=1", "--threads=1"],
            "parameter 'x' (float) takes an array of float ('<f4'), and this one has type '<f2'",
        ),
        (
            ["--kernel=scale", "--buffer=x=zeros:int:4", "--scalar=a=1", "--threads=1"],
            "takes an array of float ('<f4'), and this one has type '<i4': convert it",
        ),
        (["--kernel=scale", "--max-steps=9", "--threads=1"], "--max-steps is the limit of"),
        (["--kernel=scale", "--check", "--max-steps=0"], "--max-steps takes a whole number of at"),
        (["--kernel=scale", "--whole=x", "--threads=1"], "--whole names what the check outputs"),
        (["--kernel=scale", "-DA B=1", "--threads=1"], "'A B' is no name of a macro"),
        (["--bogus"], "more. See --help"),
        (["--bufer=x=1"], "there is no option '--bufer'; did you mean '--buffer'?"),
        (["--list=3"], "--list takes no value"),
        (["--kernel=scal", "--threads=1"], "no function 'scal'; did you mean 'scale'?"),
        (
            ["--kernel=biased", "--threads=1"],
            "needs a value for function constants 'use_bias' (index 0, bool)",
        ),
        (["--kernel=biased", "--constant=9=1", "--threads=1"], "no function constant 9"),
        (["--kernel=biased", "--constant=0=x", "--threads=1"], "'x' is no number"),
        (["--kernel=scale", "--buffer=x=@z", "--threads=1"], "no dispatch before has bound 'z'"),
        (["--kernel=scale", "--buffer=x", "--threads=1"], "write --buffer parameter=array"),
        (["--kernel=scale", "--buffer=x=zeros:float", "--threads=1"], "cannot read 'zeros:float'"),
        (["--kernel=scale", "--buffer=x=full:float:4", "--threads=1"], "is no array: write"),
        (
            ["--kernel=scale", "--buffer=x=full:uchar:4:256", "--threads=1"],
            "256 does not fit into 'uchar'",
        ),
        (
            ["--kernel=scale", "--buffer=x=arange:char:200", "--threads=1"],
            "128 does not fit into 'char'",
        ),
        (
            ["--kernel=scale", "--scalar=a=1,2", "--threads=1"],
            "'a' takes 1 number of type float, and '1,2' has 2",
        ),
        (
            ["--kernel=sized", "--scalar=sizes=1", "--threads=1"],
            "use --bytes: the parameter's is 'Sizes'",
        ),
        (["--kernel=sized", "--bytes=sizes=0g", "--threads=1"], "'0g' is no sequence of bytes"),
        (
            ["--kernel=sized", "--buffer=x=zeros:float:3", "--bytes=sizes=00", "--threads=1"],
            "'sizes' (buffer 1) needs at least 8 bytes, but has 1",
        ),
        (["--kernel=scale", "--time=x", "--threads=1"], "--time takes a whole number"),
        (["--kernel=scale", "--counters=xml", "--threads=1"], "table or json, not 'xml'"),
        (["--kernel=scale", "--check=bound", "--threads=1"], "there is no check 'bound'"),
        (["--kernel=scale", "--seed=1", "--threads=1"], "--seed draws the choices of --portable"),
        (
            ["--kernel=tiled", "--threadgroup-memory=9=4", "--threads=1"],
            "no threadgroup argument '9'",
        ),
        (
            [
                "--kernel=scale",
                "--buffer=x=zeros:float:1",
                "--scalar=a=1",
                "--threads=1",
                "--print=z",
            ],
            "no buffer parameter 'z'",
        ),
        (["other.metal", "--list"], "several files are only taken with --quirks"),
    ],
)
def test_wrong_use(arguments: list[str], message: str) -> None:
    result = invoke([*arguments, "-"], SOURCE)
    assert result.returncode == 1
    assert message in result.stderr
    assert result.stdout == ""


def test_the_python_package_is_the_same_tool(tmp_path: Path) -> None:
    path = tmp_path / "kernels.metal"
    path.write_text(SOURCE)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "triton_metal_host", *arguments],
            capture_output=True,
            text=True,
            env=dict(os.environ, PYTHONPATH=str(ROOT / "python")),
            check=False,
        )

    arguments = ["--kernel=scale", "--buffer=x=arange:float:4", "--scalar=a=2", "--threads=4"]
    done = run(str(path), *arguments, "--print=x")
    assert (done.stdout, done.stderr, done.returncode) == ("x = 0 2 4 6\n", "", 0)
    done = run(str(path), "--kernel=nothing", "--threads=1")
    assert done.returncode == 1
    assert done.stderr.startswith("metal-run: the library has no function 'nothing'")
    assert run("--help").stdout == invoke(["--help"], "").stdout


def test_bytes_and_signs_are_of_any_type() -> None:
    run = ("--kernel=scale", "--scalar=a=1", "--threads=1", "--print=x")
    assert output("--buffer=x=zeros:uchar:4", *run) == "x = 0 0 0 0\n"


def test_a_file_must_be_named_at_a_terminal() -> None:
    terminal, end = os.openpty()
    try:
        result = subprocess.run(
            [str(metal_run_path())],
            stdin=end,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    finally:
        os.close(terminal)
        os.close(end)
    assert result.returncode == 1
    assert "name a file of Metal text, or - for the standard input. See --help" in result.stderr
