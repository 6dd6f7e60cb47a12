"""``python -m triton_metal shim``: a distribution named triton that pip believes in, and that goes without a trace."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from process_support import ROOT

METADATA = "triton-3.9.0+metal.dist-info"


class Environment:
    """A virtual environment with this checkout's triton_metal in it, and nothing else."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder, with_pip=False, symlinks=True)
        self.python = folder / "bin/python"
        self.site = next(folder.glob("lib/python*/site-packages"))
        platformdirs = importlib.util.find_spec("platformdirs")
        assert platformdirs is not None
        assert platformdirs.origin is not None
        (self.site / "platformdirs").symlink_to(Path(platformdirs.origin).parent)
        (self.site / "checkout.pth").write_text(f"{ROOT / 'python'}\n")

    def run(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        return self._start(self.python, *arguments)

    def shim(self, action: str) -> subprocess.CompletedProcess[str]:
        return self.run("-m", "triton_metal", "shim", action)

    def pip(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        if importlib.util.find_spec("pip") is None:
            pytest.skip("pip is not installed")
        quiet = "--disable-pip-version-check"
        command = [sys.executable, "-m", "pip", "--python", self.python, quiet, *arguments]
        return self._start(*command)

    def text(self, *arguments: object) -> str:
        done = self.run(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def files(self) -> set[str]:
        """What is in site-packages, without bytecode."""
        return {
            path.relative_to(self.site).as_posix()
            for path in self.site.rglob("*")
            if "__pycache__" not in path.parts
        }

    @staticmethod
    def _start(*command: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            list(map(str, command)),
            env={"PATH": "/usr/bin:/bin", "HOME": os.environ.get("HOME", "/")},
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
            timeout=100,
        )


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    return Environment(tmp_path / "environment")


def test_the_shim_is_there_and_gone(environment: Environment) -> None:
    before = environment.files()
    status = environment.shim("status")
    assert status.returncode == 1
    assert "no triton is installed" in status.stdout
    done = environment.shim("install")
    assert done.returncode == 0, done.stderr
    assert "installed triton 3.9.0+metal" in done.stdout
    program = "import triton, triton.language as tl; print(triton.__version__, tl.__name__)"
    assert environment.text("-c", program) == "3.9.0+metal triton_metal.language"
    assert environment.shim("status").returncode == 0
    done = environment.shim("uninstall")
    assert "removed triton 3.9.0+metal" in done.stdout
    assert environment.files() == before
    assert not (environment.site / "triton").exists()  # with the bytecode
    done = environment.shim("uninstall")
    assert (done.returncode, "there is no triton" in done.stdout) == (0, True)


def test_a_second_install_changes_nothing(environment: Environment) -> None:
    environment.shim("install")
    record = environment.site / METADATA / "RECORD"
    before = record.stat()
    done = environment.shim("install")
    assert "is installed already" in done.stdout
    assert record.stat().st_mtime_ns == before.st_mtime_ns
    # What someone has changed is put right.
    (environment.site / "triton" / "__init__.py").write_text("broken =")
    assert "replaced" in environment.shim("install").stdout
    assert environment.text("-c", "import triton; print(triton.__version__)") == "3.9.0+metal"


def test_pip_knows_the_shim(environment: Environment, tmp_path: Path) -> None:
    environment.shim("install")
    assert "triton 3.9.0+metal" in " ".join(environment.pip("list").stdout.split())
    # A package that needs Triton installs, without an index to take one from.
    with zipfile.ZipFile(tmp_path / "needy-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("needy.py", "import triton")
        metadata = (
            "Metadata-Version: 2.1\nName: needy\nVersion: 1.0\nRequires-Dist: triton>=2.3.1\n"
        )
        wheel.writestr("needy-1.0.dist-info/METADATA", metadata)
        wheel.writestr(
            "needy-1.0.dist-info/WHEEL",
            "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        wheel.writestr("needy-1.0.dist-info/RECORD", "")
    done = environment.pip("install", "--no-index", "--find-links", tmp_path, "needy")
    assert done.returncode == 0, done.stderr
    check = environment.pip("check")
    assert "triton" not in check.stdout, check.stdout
    assert METADATA in environment.pip("show", "-f", "triton").stdout
    done = environment.pip("uninstall", "-y", "triton")
    assert "Successfully uninstalled triton" in done.stdout, done.stderr
    assert not (environment.site / "triton").exists()
    assert not (environment.site / METADATA).exists()
    assert "needy 1.0 requires triton" in environment.pip("check").stdout


def test_every_file_is_recorded_with_its_hash(environment: Environment) -> None:
    environment.shim("install")
    program = """
import importlib.metadata
for path in importlib.metadata.files("triton"):
    data = path.locate().read_bytes()
    if path.hash is None:
        assert path.name == "RECORD", path
        continue
    import base64, hashlib
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    assert (path.hash.mode, path.hash.value, path.size) == ("sha256", digest, len(data)), path
    print(path)
"""
    names = environment.text("-c", program).splitlines()
    assert set(names) | {f"{METADATA}/RECORD"} == {
        name
        for name in environment.files()
        if name.startswith("triton") and (environment.site / name).is_file()
    }


def test_an_older_shim_is_replaced(environment: Environment) -> None:
    environment.shim("install")
    old = environment.site / "triton-3.8.0+metal.dist-info"
    (environment.site / METADATA).rename(old)
    for name in ("METADATA", "RECORD"):
        text = (old / name).read_text().replace("3.9.0", "3.8.0")
        (old / name).write_text(text)
    assert "this triton-metal has 3.9.0+metal" in environment.shim("status").stdout
    done = environment.shim("install")
    assert "replaced triton 3.8.0+metal by triton 3.9.0+metal" in done.stdout
    assert not old.exists()
    assert environment.text("-c", "import triton; print(triton.__version__)") == "3.9.0+metal"


def test_files_of_others_stay(environment: Environment) -> None:
    environment.shim("install")
    mine = environment.site / "triton" / "mine.py"
    mine.write_text("x = 1")
    assert environment.shim("uninstall").returncode == 0
    assert mine.read_text() == "x = 1"
    # And such a folder is in the way of the next install.
    done = environment.shim("install")
    assert done.returncode == 1
    assert f"{mine.parent} is in the way" in done.stderr


def real_triton(folder: Path, metadata: bool = True) -> None:
    (folder / "triton").mkdir(parents=True)
    (folder / "triton" / "__init__.py").write_text("__version__ = '3.1.0'")
    if metadata:
        (folder / "triton-3.1.0.dist-info").mkdir()
        text = "Metadata-Version: 2.1\nName: triton\nVersion: 3.1.0\n"
        (folder / "triton-3.1.0.dist-info" / "METADATA").write_text(text)


@pytest.mark.parametrize("place", ["in it", "without metadata", "elsewhere on the path"])
def test_a_real_triton_stays(environment: Environment, tmp_path: Path, place: str) -> None:
    folder = environment.site
    if place == "elsewhere on the path":
        folder = tmp_path / "other"
        (environment.site / "other.pth").write_text(f"{folder}\n")
    real_triton(folder, metadata=place != "without metadata")
    before = environment.files()
    for action in ("install", "uninstall"):
        done = environment.shim(action)
        assert done.returncode == 1
        assert str(folder) in done.stderr
        assert done.stderr.startswith("shim: ")
        assert done.stderr.count("\n") == 1
    assert "python -m triton_metal PROGRAM.py" in environment.shim("install").stderr
    assert environment.files() == before
    assert environment.shim("status").returncode == 1


def test_programs_run_beside_a_real_triton(environment: Environment) -> None:
    real_triton(environment.site)
    program = "import importlib.metadata, triton; print(triton.__version__, importlib.metadata.version('triton'))"
    text = environment.text("-m", "triton_metal", "-c", program)
    assert text == "3.9.0+metal 3.9.0+metal"


@pytest.mark.parametrize("fails", ["mkdtemp", "rename 1", "rename 2", "write"])
def test_nothing_half_written_stays(environment: Environment, fails: str) -> None:
    """A full or protected disk, at each step: of an install, of a replacement, and of a removal."""
    program = f"""
import os, pathlib, sys, tempfile
from triton_metal.as_triton import shim
fails = {fails!r}
left = int(fails[-1]) if fails.startswith("rename") else 0
def refuse(*arguments, **named):
    raise PermissionError(13, "Permission denied")
rename = os.rename
def count(a, b):
    global left
    left -= 1
    if left == 0:
        refuse()
    rename(a, b)
if fails == "mkdtemp":
    tempfile.mkdtemp = refuse
elif fails == "write":
    pathlib.Path.write_bytes = refuse
else:
    os.rename = count
try:
    print(getattr(shim, sys.argv[1])())
except shim.ShimError as error:
    print(error)
"""
    before = environment.files()
    text = environment.text("-c", program, "install")
    assert "cannot write to" in text
    assert "permission denied" in text
    assert environment.files() == before
    environment.shim("install")
    (environment.site / "triton" / "__init__.py").write_text("# old")
    before = environment.files()
    assert "cannot write to" in environment.text("-c", program, "install")
    assert environment.files() == before
    assert (environment.site / "triton" / "__init__.py").read_text() == "# old"
    if fails != "write":
        assert "cannot write to" in environment.text("-c", program, "uninstall")
        assert environment.files() == before


def test_the_systems_python_is_left_alone(environment: Environment, tmp_path: Path) -> None:
    program = f"""
import sys, sysconfig
from triton_metal.as_triton import shim
path = sysconfig.get_path
sysconfig.get_path = lambda name: {str(tmp_path)!r} if name == "stdlib" else path(name)
sys.base_prefix = sys.prefix
try:
    shim.install()
except shim.ShimError as error:
    print(error)
"""
    (tmp_path / "EXTERNALLY-MANAGED").write_text("")
    before = environment.files()
    assert "belong to the system" in environment.text("-c", program)
    assert environment.files() == before


def test_a_record_that_names_files_outside_is_refused(environment: Environment) -> None:
    environment.shim("install")
    record = environment.site / METADATA / "RECORD"
    record.write_text("../../../../precious.txt,,\n")
    before = environment.files()
    done = environment.shim("uninstall")
    assert done.returncode == 1
    assert "outside of its folder" in done.stderr
    assert environment.files() == before


def test_the_shim_tells_that_triton_metal_is_gone(environment: Environment) -> None:
    environment.shim("install")
    (environment.site / "checkout.pth").unlink()
    done = environment.run("-c", "import triton")
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ModuleNotFoundError: this triton is triton-metal's")
    assert "pip uninstall triton" in last
