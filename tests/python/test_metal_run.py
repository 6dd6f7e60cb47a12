"""The metal-run tool: arrays in and out, and what it says about wrong use."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from metal_run import invoke, run

SAXPY = """#include <metal_stdlib>
using namespace metal;
kernel void saxpy(device const float *x, device float *y, constant float &a, uint i [[thread_position_in_grid]]) {
  y[i] = a * x[i] + y[i];
}
"""


def test_runs_a_kernel_on_arrays(tmp_path: Path) -> None:
    x = np.linspace(-1, 1, 1000, dtype=np.float32)
    y = np.full(1000, 2, np.float32)
    (out,) = run(
        SAXPY, tmp_path, {"x": x, "y": y}, ["y"], "--scalar=a=2.5", "--grid=1000", "--group=256"
    )
    np.testing.assert_array_equal(out, np.float32(2.5) * x + y)


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4"])
@pytest.mark.parametrize("shape", [(6,), (2, 3), ()])
def test_keeps_types_and_shapes(tmp_path: Path, dtype: str, shape: tuple[int, ...]) -> None:
    names = {
        "i1": "char",
        "u1": "uchar",
        "i2": "short",
        "u2": "ushort",
        "i4": "int",
        "u4": "uint",
        "i8": "long",
        "u8": "ulong",
        "f2": "half",
        "f4": "float",
    }
    text = f"kernel void twice(device {names[dtype]} *a, uint i [[thread_position_in_grid]]) {{ a[i] = a[i] * 2; }}"
    array = np.arange(1, 1 + int(np.prod(shape)), dtype=dtype).reshape(shape)
    (out,) = run(text, tmp_path, {"a": array}, ["a"], f"--grid={array.size}")
    np.testing.assert_array_equal(out, array * np.array(2, dtype))
    assert out.dtype == array.dtype
    assert out.shape == array.shape


def test_makes_buffers_and_writes_several(tmp_path: Path) -> None:
    text = """
constant uint factor [[function_constant(2)]];
kernel void f(device uint *a, device half *b, constant bfloat &s, threadgroup uint *t [[threadgroup(0)]],
              uint2 i [[thread_position_in_grid]], uint l [[thread_index_in_threadgroup]]) {
  t[l] = l;
  metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
  a[i.y * 4 + i.x] += factor * FACTOR + t[3 - l];
  b[i.y * 4 + i.x] = half(s);
}
kernel void g() {}
"""
    arguments = [
        "--kernel=f",
        "--buffer=0=full:uint:2x4:7",
        "--buffer=b=zeros:half:8",
        "--scalar=s=1.5",
        "--constant=2=3",
        "-DFACTOR=10",
        "--threadgroup-memory=0=16",
        "--grid=4,2",
        "--group=4",
        f"--output=a={tmp_path}/a.npy",
        f"--output=b={tmp_path}/b.npy",
    ]
    result = invoke([*arguments, "-"], text)
    assert result.returncode == 0, result.stderr
    np.testing.assert_array_equal(
        np.load(tmp_path / "a.npy"), np.tile(np.arange(40, 36, -1, dtype=np.uint32), (2, 1))
    )
    np.testing.assert_array_equal(np.load(tmp_path / "b.npy"), np.full(8, 1.5, np.float16))


def test_lists_kernels() -> None:
    result = invoke(["--list", "-"], SAXPY)
    assert result.returncode == 0
    assert result.stdout == (
        "saxpy\n"
        "  device const float *x  (buffer 0, 4 bytes each)\n"
        "  device float *y  (buffer 1, 4 bytes each)\n"
        "  constant float &a  (buffer 2, 4 bytes)\n"
    )


def test_counts(tmp_path: Path) -> None:
    result = invoke(
        [
            "--buffer=x=zeros:float:64",
            "--buffer=y=zeros:float:64",
            "--scalar=a=1",
            "--grid=64",
            "--count",
            "-",
        ],
        SAXPY,
    )
    counts = dict(line.split() for line in result.stdout.splitlines())
    assert counts["device_bytes_read"] == "512"
    assert counts["device_bytes_written"] == "256"
    assert counts["device_lines_read"] == "4"
    assert counts["threads"] == "64"


def test_help_is_for_strangers() -> None:
    result = invoke(["--help"], "")
    assert result.returncode == 0
    for word in [
        "metal-run",
        "--buffer",
        "--scalar",
        "--grid",
        "--check",
        "--count",
        "No GPU is needed",
    ]:
        assert word in result.stdout


@pytest.mark.parametrize(
    ("arguments", "text", "message"),
    [
        (
            ["--grid=64"],
            "kernel void f(device int *a) { a[0] = b; }",
            "<stdin>:1:39: error: use of undeclared identifier 'b'",
        ),
        (["--grid=64"], SAXPY, "buffer 0"),
        ([], SAXPY, "give the grid"),
        (["--grid=0"], SAXPY, "--grid takes positive numbers"),
        (["--grid=1,2,3,4"], SAXPY, "--grid takes one to three numbers"),
        (
            ["--grid=64", "--buffer=z=zeros:float:4"],
            SAXPY,
            "kernel 'saxpy' has no buffer parameter 'z'",
        ),
        (["--grid=64", "--buffer=x=nothing.npy"], SAXPY, "cannot read 'nothing.npy'"),
        (["--grid=64", "--buffer=x=zeros:double:4"], SAXPY, "'double' is no type"),
        (["--grid=64", "--scalar=a=five"], SAXPY, "'five' is no number"),
        (["--grid=64", "--kernel=other"], SAXPY, "other"),
        (["--grid=64"], "kernel void f() {} kernel void g() {}", "choose one with --kernel: f, g"),
        (["--grid=64"], "constant int x = 1;", "has no kernel"),
        (["--grid=64", "--group=2048"], "kernel void f() {}", "1024"),
    ],
)
def test_wrong_use_is_one_clear_error(arguments: list[str], text: str, message: str) -> None:
    result = invoke([*arguments, "-"], text)
    assert result.returncode == 1
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert "LLVM ERROR" not in result.stderr


def test_check_names_the_line(tmp_path: Path) -> None:
    result = invoke(
        [
            "--buffer=x=zeros:float:64",
            "--buffer=y=zeros:float:60",
            "--scalar=a=1",
            "--grid=64",
            "--check",
            "-",
        ],
        SAXPY,
    )
    assert result.returncode == 1
    assert "line 4" in result.stderr
    assert "'y'" in result.stderr


@pytest.mark.parametrize("change", ["big-endian", "Fortran", "text", "short", "objects", "huge"])
def test_files_that_are_no_arrays_for_metal(tmp_path: Path, change: str) -> None:
    path = tmp_path / "x.npy"
    array = np.ones((4, 4), np.float32)
    if change == "big-endian":
        np.save(path, array.astype(">f4"))
    elif change == "Fortran":
        np.save(path, np.asfortranarray(array))
    elif change == "text":
        path.write_text("no array")
    elif change == "objects":
        np.save(path, np.array([None]))
    elif change == "huge":  # as many bytes as 0 in 64 bits
        np.save(path, array)
        path.write_bytes(
            path.read_bytes().replace(b"(4, 4), }  ", b"(4294967296, 4294967296), }")[:144]
        )
    else:
        np.save(path, array)
        path.write_bytes(path.read_bytes()[:-8])
    message = {
        "big-endian": "another order",
        "Fortran": "Fortran order",
        "text": "is no .npy file",
        "objects": "no type of numbers",
        "huge": "bytes of numbers where its shape needs 18446744073709551615",
        "short": "56 bytes of numbers where its shape needs 64",
    }[change]
    result = invoke([f"--buffer=x={path}", "--grid=1", "-"], SAXPY)
    assert result.returncode == 1
    assert message in result.stderr


INCLUDING = """#include "offset.h"
kernel void f(device int *o, uint i [[thread_position_in_grid]]) { o[i] = offset; }
"""


@pytest.mark.parametrize(
    "spelling", ["{0}", "{0}/", "{0}//", "{0}/.", "{0}/../{1}", "{0}/sub/..", "relative"]
)
def test_folders_to_include_from(tmp_path: Path, spelling: str) -> None:
    folder = tmp_path / "headers"
    (folder / "sub").mkdir(parents=True)
    (folder / "offset.h").write_text('#include "sub/number.h"\nconstant int offset = number;\n')
    (folder / "sub" / "number.h").write_text("constant int number = 7;\n")
    path = (
        os.path.relpath(folder) if spelling == "relative" else spelling.format(folder, folder.name)
    )
    o = np.zeros(4, np.int32)
    (out,) = run(INCLUDING, tmp_path, {"o": o}, ["o"], "--grid=4", f"-I{path}")
    assert (out == 7).all()


def test_folders_to_include_from_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for name, message in (("missing", "does not exist"), ("file", "is not a folder")):
        result = invoke([f"-I{tmp_path / name}", "--list", "-"], INCLUDING)
        assert result.returncode == 1
        assert f"'{tmp_path / name}' {message}" in result.stderr
    # A folder whose name begins like that of one that is given is another one.
    (tmp_path / "head").mkdir()
    (tmp_path / "headers").mkdir()
    (tmp_path / "headers" / "offset.h").write_text("constant int offset = 1;\n")
    other = tmp_path / "headers" / "offset.h"
    result = invoke(
        [f"-I{tmp_path / 'head'}", "--list", "-"], INCLUDING.replace("offset.h", str(other))
    )
    assert result.returncode == 1
    assert "file not found" in result.stderr
