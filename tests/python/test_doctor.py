"""python -m triton_metal doctor."""

import argparse
import doctest
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from triton_metal import _native, doctor
from triton_metal.__main__ import main
from triton_metal.doctor import kernels, report, run, text

from mac_support import found_on_mac

# Which device a launch takes is what is tested here.
pytestmark = pytest.mark.own_route

PROBES = [
    "elementwise float32",
    "elementwise float16",
    "elementwise bfloat16",
    "softmax of rows",
    "matrix product float32",
    "matrix product float16",
    "matrix product bfloat16",
    "atomic counts",
    "atomic sum",
    "launch of a cached kernel",
]


def doctor_command(*options, **environment):
    return subprocess.run(
        [sys.executable, "-m", "triton_metal", "doctor", *options],
        capture_output=True,
        text=True,
        env=os.environ | environment,
        timeout=600,
    )


def test_without_ml_dtypes(tmp_path):
    """bfloat16 is left out, with what to install, and nothing has failed."""
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['ml_dtypes'] = None")
    path = f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    for options in (["--quick"], ["--full", "--only", "add"]):
        done = doctor_command(*options, "--json", TRITON_METAL_DEVICE="host", PYTHONPATH=path)
        assert done.returncode == 0, done.stdout
        found = json.loads(done.stdout)
        records = found["devices"][0]["records"]
        skipped = [record for record in records if "skipped" in record]
        assert skipped
        assert all("bfloat16" in record["name"] for record in skipped)
        assert all("pip install ml_dtypes" in record["skipped"] for record in skipped)
        assert all(record["ok"] for record in records)
        assert "pip install ml_dtypes" in found["advice"]
        shown = text.plain(found)
        assert "skipped ml_dtypes: is not installed" in shown
        assert "FAILED" not in shown
        assert "| skipped | " in text.markdown(found)


def test_json_of_the_small_kernels():
    done = doctor_command("--json", "--quick", TRITON_METAL_DEVICE="host")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["ok"] is True
    by_name = {device["name"]: device for device in found["devices"]}
    assert list(by_name) == ["host", "mlx", "mps", "mlx-graph"]
    host = by_name["host"]
    assert host["problem"] is None
    assert host["properties"]["msl_version"] == "3.2"
    assert [record["name"] for record in host["records"]] == PROBES
    for record in host["records"][:-1]:
        assert record["ok"]
        assert 0 <= record["largest_error"] <= record["tolerance"]
        assert record["first_ms"] > 0
    assert 0 < host["records"][-1]["us"] < 1000
    if by_name["mlx"]["problem"] is None:
        functional = "functional form, in mx.compile"
        names = [*PROBES[:-1], functional, PROBES[-1]]
        assert [record["name"] for record in by_name["mlx"]["records"]] == names
        assert by_name["mlx"]["ok"]
    if sys.platform != "darwin":
        assert "has no Apple GPU" in found["gpu"]["problem"]
        assert by_name["mps"]["problem"]
        assert any("kernels run on the CPU" in line for line in found["advice"])


def test_report_of_an_example(tmp_path):
    file = tmp_path / "report.md"
    done = doctor_command("--report", str(file), "--only", "sum_partials")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"The report is in {file}." in done.stdout.replace("\n", " ").replace("  ", " ") or str(
        file
    ) in done.stdout.replace("\n", "")
    content = file.read_text()
    assert content.startswith("# triton_metal doctor\n")
    assert "| ok | sum_partials_kernel 64x1024 float32 | error " in content
    assert "GB/s |" in content
    everything = json.loads(content.split("```json\n")[1].split("\n```")[0])
    host = everything["devices"][0]
    assert [r["name"] for r in host["records"]] == [*PROBES, "sum_partials_kernel", "y += a * x"]
    example = host["records"][-2]
    assert example["ms"] > 0
    assert example["gb_per_s"] > 0
    assert example["largest_error"] <= example["tolerance"]
    assert str(Path.home()) + "/" not in content or str(Path.home()) == "/"


def test_every_example_is_covered():
    """The examples that the doctor finds are those of the table of `make demo`, and one that is MLX's alone."""
    folder = run.examples_folder()
    assert folder is not None
    names = {path.stem for path in folder.glob("*.py") if not path.stem.startswith("_")}
    assert names == {
        "attention", "demo", "digits", "dropout", "layer_norm", "matmul", "mlx_transformer", "softmax", "vector_add",
    }  # fmt: skip


def failing_probes():
    """One whose result is wrong, one that does not compile, and one that is right."""
    good = kernels.probes()[0]

    def launch(arrays):
        kernels.axpy_kernel[(1,)](arrays[0], arrays[1], 4, 1.0, BLOCK=1000)

    return [
        replace(good, name="wrong", expected=lambda a: a[1] + 1.0),
        replace(good, name="broken", launch=launch),
        good,
    ]


def test_what_fails_is_told_with_its_text(monkeypatch):
    probes = failing_probes()
    monkeypatch.setattr(kernels, "probes", lambda: probes)
    records = []
    run.probe("host", records.append)
    wrong, broken, right, launch = records
    assert wrong["ok"] is False
    assert "the result is off by" in wrong["error"]
    assert broken["ok"] is False
    assert "CompilationError" in broken["error"]
    assert "power of 2" in broken["error"]
    assert right["ok"] is True
    assert launch["ok"] is True
    whole = {
        "triton_metal": "0",
        "system": {"os": "Linux", "machine": "x", "python": "3"},
        "packages": {"mlx": None, "numpy": "2"},
        "gpu": {"problem": "none"},
        "checks": [],
        "devices": [
            {
                "name": "host",
                "problem": None,
                "ok": False,
                "target": "msl=3.2",
                "properties": {"name": "host Metal device"},
                "records": [
                    {
                        "kind": "probe",
                        "name": "a",
                        "ok": False,
                        "error": "is off",
                        "metal": "kernel text",
                    },
                    {"kind": "probe", "name": "b", "ok": True, "first_ms": 2.0},
                ],
            },
            {"name": "mps", "problem": "torch is not installed: pip install torch", "records": []},
        ],
        "advice": ["do this"],
    }
    written = text.markdown(whole)
    assert "| **failed** | a | is off |" in written
    assert "```cpp\nkernel text\n```" in written
    assert "Not there: torch is not installed" in written
    assert written.count("kernel text") == 1
    shown = text.plain(whole)
    assert "  FAILED  a: is off\n  ok      b: first launch 2 ms" in shown
    assert "mps: not available: torch is not installed" in shown
    assert shown.endswith("-> do this")
    assert report.verdict(whole) is False


def test_a_refusal_is_no_failure(monkeypatch):
    """What the target lacks is refused, and the report says so."""
    from dataclasses import replace

    from triton_metal import devices
    from triton_metal.devices.target import apple

    guest = replace(apple("15.0", "Apple M1 (Virtual)"), threadgroup_bytes=256)
    monkeypatch.setattr(devices.get("host"), "target", lambda: guest)
    monkeypatch.setattr(kernels, "probes", lambda original=kernels.probes: original()[3:6])
    _native.configuration_changed()
    records = []
    try:
        run.probe("host", records.append)
    finally:
        _native.configuration_changed()
    assert [r["ok"] for r in records] == [True] * 4
    assert ["refused" in r for r in records] == [False, True, False, False]
    assert text.measured(records[1]).startswith("refused: needs ")


@pytest.mark.parametrize(
    ("script", "seconds", "words"),
    [
        ("kill -SEGV $$", 60, "was ended by signal 11"),
        ("echo dying words >&2; exit 3", 60, "ended with status 3: dying words"),
        ("exec sleep 60", 0.5, "took more than 0 s and was stopped"),
    ],
)
def test_a_process_that_dies_is_a_record(tmp_path, monkeypatch, script, seconds, words):
    shell = tmp_path / "python"
    shell.write_text(f"#!/bin/sh\n{script}\n")
    shell.chmod(0o755)
    monkeypatch.setattr(report.sys, "executable", str(shell))
    records = []
    report.in_a_process(["probe", "host"], seconds, records.append)
    assert records == [{"kind": "process", "name": "probe", "ok": False, "error": words}]


def test_a_device_that_is_not_there_is_a_record():
    records = []
    report.in_a_process(["probe", "gpu"], 60, records.append)
    assert [r["ok"] for r in records] == [False]
    assert (
        records[0]["error"] == "there is no device 'gpu'; the devices are host, mlx, mps, mlx-graph"
    )


def test_what_it_says_of_a_mac():
    """Values from stand-ins: nothing here was seen on a Mac."""
    found = found_on_mac("Apple M3 Max", "15.1", mlx={"version": "0.32.0"})
    gpu = report.gpu(found)
    assert gpu["problem"] is None
    assert gpu["targets"]["mlx"].startswith(
        "msl=3.2,threads=1024,threadgroup=32768,atomic64_min_max,"
    )
    whole = {
        "triton_metal": "0", "gpu": gpu, "packages": {}, "checks": [],
        "system": {"os": "macOS 15.1", "machine": "arm64", "python": "3.12"},
        "devices": [
            {"name": name, "problem": "absent" if name != "host" else None, "records": []}
            for name in ("host", "mlx", "mps")
        ],
    }  # fmt: skip
    facts = dict(text.facts(whole))
    assert facts["chip"] == "Apple M3 Max"
    assert facts["GPU family"] == "apple9"
    assert facts["GPU cores"] == "unknown"
    assert facts["working set"] == "unknown"
    assert "tensor_ops: no" in facts["features"]
    assert report.advice(whole, found) == ["to run kernels on the GPU: pip install mlx (or torch)"]

    old = found_on_mac("Apple M1", "12.4", mlx={"version": "0.32.0"})
    whole["gpu"] = report.gpu(old)
    assert report.advice(whole, old) == [
        "macOS 12.4 is not supported: kernels need Metal 3, which requires macOS 13 or later; kernels still run on "
        "the host device"
    ]


def test_bad_command_lines(tmp_path, capsys):
    with pytest.raises(SystemExit) as caught:
        main([])
    assert caught.value.code == 2
    assert main(["doctor", "--report", str(tmp_path / "no" / "report.md")]) == 2
    assert "is not a folder: --report needs a file in an existing folder" in capsys.readouterr().err
    assert main(["doctor", "--report", str(tmp_path)]) == 2
    assert "is a folder: --report needs the name of a file" in capsys.readouterr().err
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0


@pytest.mark.skipif(sys.platform == "darwin", reason="a Mac runs every example")
def test_examples_by_name_need_the_examples(capsys):
    assert main(["doctor", "--only", "add"]) == 2
    assert capsys.readouterr().err == "doctor: --only belongs to --full, --report or --quirks\n"


@pytest.mark.parametrize("other", ["--full", "--quirks"])
def test_quick_stands_alone(other: str, capsys) -> None:
    assert main(["doctor", "--quick", other]) == 2
    assert capsys.readouterr().err == (
        f"doctor: --quick runs the small kernels alone: leave out {other} or --quick\n"
    )


def test_a_name_of_no_example(tmp_path, capsys):
    for options in (["--full"], ["--report", str(tmp_path / "report.md")]):
        assert main(["doctor", *options, "--only", "nosuch"]) == 2
        said = capsys.readouterr().err
        assert said.startswith(
            "doctor: --only nosuch names no example; the examples are add_kernel, "
        )
        assert "digits" in said
        assert "ops.softmax" in said
    assert list(tmp_path.iterdir()) == []
    assert main(["doctor", "--quick", "--only", "add"]) == 2
    assert "--quick runs none" in capsys.readouterr().err


def test_the_cache_counts_its_kernels(monkeypatch, tmp_path):
    monkeypatch.setenv("TRITON_METAL_CACHE_DIR", str(tmp_path))
    for count in (0, 1, 2):
        for number in range(count):
            (tmp_path / f"{number}.json").write_text("")
        assert report.check_cache()["detail"].endswith(
            f": {count} kernel" if count == 1 else f": {count} kernels"
        )


def test_a_cache_that_cannot_be_written(monkeypatch, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("TRITON_METAL_CACHE_DIR", str(blocked / "cache"))
    check = report.check_cache()
    assert check["ok"] is False
    assert "cannot be written" in check["error"]
    assert "TRITON_METAL_CACHE_DIR" in check["advice"]


def test_paths_do_not_name_their_owner(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    value = {"a": [f"{tmp_path}/x.py", 3], "b": None}
    assert report.without_owner(value) == {"a": ["~/x.py", 3], "b": None}
    assert report.shown_path(tmp_path / "y") == "~/y"


def test_help_names_the_options():
    parser = argparse.ArgumentParser()
    doctor.add_arguments(parser)
    words = parser.format_help()
    for option in ("--json", "--report FILE", "--full", "--quick", "--only NAME"):
        assert option in words
    assert doctest.testmod(text).failed == 0
