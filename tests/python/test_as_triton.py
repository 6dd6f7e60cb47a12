"""``import triton`` means triton_metal: after install(), and in programs that ``python -m triton_metal`` runs."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from process_support import ROOT, run_program

PROGRAM = """
import sys
import triton
import triton.language as tl
print(__name__, sys.argv, sys.path[0], triton.__version__)
"""


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def run(*arguments: object, cwd: Path, **environment: object) -> subprocess.CompletedProcess[str]:
    return run_program("-m", "triton_metal", *arguments, cwd=cwd, **environment)


def output(*arguments: object, cwd: Path, **environment: object) -> str:
    done = run(*arguments, cwd=cwd, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


# --- how a program starts


def test_a_program_sees_what_python_shows_it(tmp_path: Path) -> None:
    path = write(tmp_path / "program.py", PROGRAM)
    text = output(path, "a", "--b", "-m", cwd=tmp_path)
    assert text == f"__main__ {[str(path), 'a', '--b', '-m']} {tmp_path} 3.9.0+metal\n"


def test_a_program_in_another_folder_finds_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    write(tmp_path / "deep" / "neighbour.py", "print('neighbour')")
    write(tmp_path / "deep" / "program.py", "import neighbour")
    (tmp_path / "link.py").symlink_to(tmp_path / "deep" / "program.py")
    assert output("deep/program.py", cwd=tmp_path) == "neighbour\n"
    assert output("link.py", cwd=tmp_path) == "neighbour\n"  # Python follows links, too


def test_a_module_a_text_and_the_standard_input_run(tmp_path: Path) -> None:
    path = write(tmp_path / "module.py", PROGRAM)
    end = "3.9.0+metal\n"
    text = output("-m", "module", "a", cwd=tmp_path)
    assert text == f"__main__ {[str(path), 'a']} {tmp_path} {end}"
    assert output("-c", PROGRAM, "a", cwd=tmp_path) == f"__main__ ['-c', 'a']  {end}"
    command = [sys.executable, "-m", "triton_metal", "-", "a"]
    environment = {"PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run(command, input=PROGRAM, env=environment, capture_output=True, text=True)
    assert done.stdout == f"__main__ ['-', 'a']  {end}"


def test_a_folder_and_an_archive_run(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    write(folder / "__main__.py", PROGRAM)
    assert f"{folder} 3.9.0" in output("folder", cwd=tmp_path).replace("folder ", f"{folder} ")
    with zipfile.ZipFile(tmp_path / "archive.zip", "w") as archive:
        archive.writestr("__main__.py", PROGRAM)
    assert "archive.zip 3.9.0" in output("archive.zip", cwd=tmp_path)


def test_a_file_named_like_a_command_runs_with_its_folder(tmp_path: Path) -> None:
    write(tmp_path / "doctor", "print('the file')")
    assert output("./doctor", cwd=tmp_path) == "the file\n"
    assert "--quirks" in output("doctor", "--help", cwd=tmp_path)


def test_annotations_of_the_runner_do_not_reach_a_program(tmp_path: Path) -> None:
    """The runner's own ``from __future__ import annotations`` is not the program's."""
    path = write(
        tmp_path / "program.py", "def f(x: int): pass\nprint(f.__annotations__['x'] is int)"
    )
    assert output(path, cwd=tmp_path) == "True\n"


# --- how a program ends


@pytest.mark.parametrize(
    ("text", "status", "stderr"),
    [
        ("raise SystemExit(7)", 7, ""),
        ("import sys; sys.exit('no good')", 1, "no good\n"),
        ("import os; os._exit(5)", 5, ""),
        ("import atexit; atexit.register(print, 'end')", 0, ""),
    ],
)
def test_a_program_ends_with_its_status(
    tmp_path: Path, text: str, status: int, stderr: str
) -> None:
    done = run(write(tmp_path / "program.py", text), cwd=tmp_path)
    assert (done.returncode, done.stderr) == (status, stderr)


@pytest.mark.parametrize(
    "text",
    [
        "def f():\n    raise ValueError('deep')\nf()",
        "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    raise KeyError(3) from error",
        "this is no program",
        "import absent_module",
        "import sys\nsys.excepthook = lambda kind, error, tb: print(kind, tb.tb_lineno)\n1 / 0",
    ],
)
def test_a_traceback_is_the_one_that_python_prints(tmp_path: Path, text: str) -> None:
    path = write(tmp_path / "program.py", text)
    plain = run_program(path, cwd=tmp_path)
    ours = run(path, cwd=tmp_path)
    assert plain.returncode == ours.returncode == 1
    assert (ours.stdout, ours.stderr) == (plain.stdout, plain.stderr)


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["absent.py"], 2, ["can't open file", "absent.py", "report, shim, tune-ops and tutorial"]),
        (["deep/absent.py"], 2, ["can't open file", "No such file"]),
        (["-m"], 2, ["argument expected for the -m option"]),
        (["-m", "absent_module"], 1, ["No module named absent_module"]),
        (["."], 1, ["__main__"]),
        ([], 2, ["PROGRAM.py | -m MODULE"]),
        (["--absent"], 2, ["usage"]),
    ],
)
def test_what_cannot_be_run_is_told(
    tmp_path: Path, arguments: list[str], status: int, words: list[str]
) -> None:
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == status
    for word in words:
        assert word in done.stderr
    assert "Traceback" not in done.stderr


# --- processes that it starts

CHILDREN = """
import multiprocessing, os, subprocess, sys

def version(_):
    import importlib.metadata, triton, triton.language
    assert triton.language.__name__ == "triton_metal.language"
    return importlib.metadata.version("triton") + " " + triton.__version__

if __name__ == "__main__":
    for method in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            print(method, pool.map(version, [0]))
    code = "import triton; print(triton.__version__)"
    print(subprocess.check_output([sys.executable, "-c", code], cwd="/", text=True), end="")
"""


def test_child_processes_find_the_same_triton(tmp_path: Path) -> None:
    lines = output(write(tmp_path / "program.py", CHILDREN), cwd=tmp_path).splitlines()
    both = ["3.9.0+metal 3.9.0+metal"]
    expected = [f"{method} {both}" for method in ("fork", "spawn", "forkserver")]
    assert lines == [*expected, "3.9.0+metal"]


# --- another Triton


def other_triton(folder: Path) -> Path:
    (folder / "triton").mkdir(parents=True)
    write(folder / "triton" / "__init__.py", "__version__ = '1.2.3'")
    return folder


def test_another_triton_that_is_imported_is_refused(tmp_path: Path) -> None:
    folder = other_triton(tmp_path / "other")
    text = f"import sys; sys.path.insert(0, {str(folder)!r})\nimport triton, triton_metal\ntriton_metal.install()"
    done = run_program("-c", text, cwd=tmp_path)
    last = done.stderr.splitlines()[-1]
    assert last.startswith("RuntimeError: triton has already been imported from")
    assert str(folder) in last
    assert "python -m triton_metal PROGRAM.py" in last


def test_ours_stays_where_a_program_puts_another_on_the_path(tmp_path: Path) -> None:
    folder = other_triton(tmp_path / "other")
    text = f"""
import importlib, sys
sys.path.insert(0, {str(folder)!r})
import triton
print(triton.__version__)
del sys.modules["triton"]
import triton
print(triton.__version__, importlib.reload(triton).__version__)
"""
    path = write(tmp_path / "program.py", text)
    assert output(path, cwd=tmp_path).split() == ["3.9.0+metal"] * 3
    # The program's own folder has another one in it.
    path = write(folder / "program.py", "import triton; print(triton.__version__)")
    assert output(path, cwd=tmp_path) == "3.9.0+metal\n"


def test_install_twice_changes_nothing_more(tmp_path: Path) -> None:
    text = """
import os, sys, triton_metal
triton_metal.install()
before = (list(sys.path), os.environ["PYTHONPATH"], len(sys.meta_path), sys.modules["triton"])
triton_metal.install()
print(before == (list(sys.path), os.environ["PYTHONPATH"], len(sys.meta_path), sys.modules["triton"]))
"""
    assert run_program("-c", text, cwd=tmp_path).stdout == "True\n"


# --- what other packages ask


def test_what_packages_ask_of_triton_is_answered(tmp_path: Path) -> None:
    text = """
import importlib.metadata, importlib.util, inspect, os, pkgutil
print(importlib.util.find_spec("triton") is not None)       # transformers, accelerate
import triton
import triton_metal
print(importlib.util.find_spec("triton").name, importlib.util.find_spec("triton.language").name)
print(importlib.util.find_spec("triton.profiler"), importlib.util.find_spec("triton.absent"))
print(tuple(map(int, triton.__version__.split("+")[0].split("."))) >= (3, 0))
print(importlib.metadata.distribution("triton").metadata["Name"])
print(inspect.getfile(triton) == inspect.getfile(triton_metal), os.path.isdir(os.path.dirname(triton.__file__)))
names = {module.name for module in pkgutil.iter_modules(triton.__path__, "triton.")}
print({"triton.language", "triton.testing"} <= names)
print(triton.jit is triton_metal.jit, triton.language is triton_metal.language, set(triton_metal.__all__) <= set(dir(triton)))
import triton.language.extra
from triton.language.extra import libdevice
import triton.language.extra.libdevice as other
print(libdevice is other, hasattr(triton, "absent"))
"""
    lines = output("-c", text, cwd=tmp_path).splitlines()
    assert lines == [
        "True",
        "triton triton.language",
        "None None",
        "True",
        "triton",
        "True True",
        "True",
        "True True True",
        "True False",
    ]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("triton.experimental.gluon", "Gluon programs the layouts"),
        ("triton.language.extra.cuda", "NVIDIA's GPUs; use triton.language.extra.libdevice"),
        ("triton.language.extra.hip", "AMD's GPUs; use triton.language.extra.libdevice"),
        ("triton.profiler.scope", "Proton measures"),
        ("triton._C.libproton", "has no module 'triton._C.libproton'"),
        ("triton.absent", "has no module 'triton.absent'"),
    ],
)
def test_absent_parts_say_why(tmp_path: Path, name: str, reason: str) -> None:
    text = f"try:\n    import {name}\nexcept ModuleNotFoundError as error:\n    print(error)"
    line = output("-c", text, cwd=tmp_path)
    assert line.startswith("triton-metal has no module 'triton.")
    assert reason in line


def test_a_program_runs_a_kernel(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    text = """
import torch, triton, triton.language as tl
from torch.utils._triton import has_triton_package
assert has_triton_package()

@triton.jit
def double(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)

x = torch.arange(100.0)
double[(triton.cdiv(100, 32),)](x, 100, BLOCK=32)
print(torch.equal(x, torch.arange(100.0) * 2))
"""
    path = write(tmp_path / "program.py", text)
    assert output(path, cwd=tmp_path, TRITON_METAL_CACHE_DIR=tmp_path / "cache") == "True\n"
