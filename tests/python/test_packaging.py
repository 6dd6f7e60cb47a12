"""What the two packages promise: one version, no framework at import, one sentence where the host device is missing."""

import ast
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import triton_metal
import triton_metal_host

ROOT = Path(__file__).resolve().parents[2]

KERNEL = """
import sys
import zipfile
import numpy as np
{before}
import triton_metal, triton_metal.language as tl

@triton_metal.jit
def twice(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i) * 2)

x = np.ones(32, np.float32)
try:
    twice[(1,)](x, BLOCK=32)
except triton_metal.DeviceError as error:
    print(error)
print(x.sum())
"""


def run(tmp_path, source):
    path = tmp_path / "program.py"
    path.write_text(source)
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def program(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "python"))
    monkeypatch.setenv("TRITON_METAL_CACHE_DIR", str(tmp_path / "cache"))
    return lambda source: run(tmp_path, source)


def versions():
    for name in ("pyproject.toml", "packaging/host/pyproject.toml"):
        yield re.search(r'^version = "(.*)"', (ROOT / name).read_text(), re.M).group(1)
    text = (ROOT / "pyproject.toml").read_text()
    yield re.search(r'"triton-metal-host==(.*)"', text).group(1)
    yield re.search(r"VERSION ([0-9.]+) LANG", (ROOT / "CMakeLists.txt").read_text()).group(1)


def test_one_version():
    assert triton_metal.__version__ == triton_metal_host.__version__
    assert set(versions()) == {triton_metal.__version__}


def test_import_brings_in_no_framework_and_no_device(program):
    source = "import sys, triton_metal\nprint(sorted({'torch', 'mlx', 'triton', 'numpy', 'triton_metal_host'} & set(sys.modules)))"
    assert program(source) == ["[]"]


def test_without_the_host_device_a_launch_says_how_to_get_it(program):
    missing = KERNEL.format(before="sys.modules['triton_metal_host'] = None")
    assert program(missing) == [
        "twice: NumPy arrays and CPU tensors run on the host device, which is not installed: "
        "pip install triton-metal[host]",
        "32.0",
    ]


def test_a_host_device_that_is_broken_says_so(program):
    broken = (
        "import types\nsys.modules['triton_metal_host'] = types.ModuleType('triton_metal_host')"
    )
    message, total = program(KERNEL.format(before=broken))
    assert message == "twice: the host device cannot be loaded: triton_metal_host carries no table"
    assert total == "32.0"


def test_with_it_the_launch_runs(program):
    assert program(KERNEL.format(before="")) == ["64.0"]


def test_sources_are_python_3_10():
    paths = sorted((ROOT / "python").rglob("*.py"))
    assert len(paths) > 20
    for path in paths:
        ast.parse(path.read_text(), str(path), feature_version=(3, 10))
    modules = {"tomllib", "ExceptionGroup", "add_note", "StrEnum", "assert_never"}
    for path in paths:
        found = modules & set(re.findall(r"\w+", path.read_text()))
        assert not found, f"{path} uses {found}, which Python 3.10 has not"


def test_the_check_of_wheels_misses_no_file(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "packaging")
    import check_wheels

    files = check_wheels.files_of_sources()
    assert check_wheels.lacks(files) == []
    for name in (
        "triton_metal/tutorial/02-softmax.md",
        "triton_metal/report/report.css",
        "triton_metal/report/report.js",
        "triton_metal/ops/_tiles.py",
        *(f"triton_metal/{path.relative_to(ROOT / 'python' / 'triton_metal')}"
          for path in (ROOT / "python" / "triton_metal" / "ops").rglob("*.json")),
    ):  # fmt: skip
        assert check_wheels.lacks(files - {name}) == [name]


def test_a_wheel_has_every_file_of_the_sources(tmp_path, monkeypatch):
    """The part of it that no compiler makes, by the project's own settings of a release."""
    pytest.importorskip("scikit_build_core")
    monkeypatch.syspath_prepend(ROOT / "packaging")
    monkeypatch.setenv("TRITON_METAL_RELEASE", "1")
    import check_wheels

    wheel = "-m pip wheel -q --no-deps --no-build-isolation -C wheel.cmake=false".split()
    command = [sys.executable, *wheel, "-w", tmp_path, ROOT]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        assert check_wheels.lacks(archive.namelist()) == []
