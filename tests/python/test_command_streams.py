"""Commands whose output, error output or input is closed, full, or lacks characters; and programs that they run."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from triton_metal.as_triton.streams import Guarded, guarded, unguarded

from kernel_support import ON_STOCK
from process_support import ROOT

pytestmark = [
    pytest.mark.own_route,
    pytest.mark.skipif(ON_STOCK, reason="the commands are of this package"),
]

PROGRAM = """
import sys
import numpy as np, triton, triton.language as tl

@triton.jit
def double(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, 2 * tl.load(x + i, i < n), i < n)

@triton.jit
def triple(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, 3 * tl.load(x + i, i < n), i < n)

x = np.ones(1000, np.float32)
double[(4,)](x, 1000, BLOCK=256)
triple[(4,)](x, 1000, BLOCK=256)
"""
STOPPED = 141  # what a shell says of a program that SIGPIPE has ended


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def run(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python")} | options.pop("env", {})
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
    if "input" in options:
        del streams["stdin"]
    return subprocess.run(
        [sys.executable, "-m", "triton_metal", *map(str, arguments)],
        env=environment, text=True, encoding="utf-8", check=False, timeout=200, **(streams | options),
    )  # fmt: skip


def run_unread(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Runs a command whose output is a pipe that nobody reads."""
    read, write = os.pipe()
    os.close(read)
    try:
        return run(*arguments, stdout=write, **options)
    finally:
        os.close(write)


# --- The output


@pytest.mark.parametrize(
    "words",
    [
        ["cost", "--chips"],
        ["tutorial", "--list"],
        ["doctor", "--quick"],
        ["shim", "status"],
        ["report", "--help"],
        ["--version"],
    ],
    ids=lambda words: words[0],
)
def test_a_closed_pipe_and_a_full_output(words: list[str]) -> None:
    done = run_unread(*words)
    assert (done.returncode, done.stderr) == (STOPPED, "")
    with open("/dev/full", "w") as full:
        done = run(*words, stdout=full)
    name = " ".join(["python -m triton_metal", *words[:1]]).removesuffix(" --version")
    reason = os.strerror(errno.ENOSPC)
    assert done.returncode == 1
    assert done.stderr == f"{name}: the output cannot be written: {reason}\n"


def test_pages_are_written_though_nobody_reads_their_names(program: Path) -> None:
    folder = program.parent / "pages"
    done = run_unread("report", "-o", folder, program)
    assert (done.returncode, done.stderr) == (STOPPED, "")
    assert sorted(page.name for page in folder.iterdir()) == ["double.html", "triple.html"]


def test_a_program_of_a_command_ends_as_it_does_alone(program: Path) -> None:
    """The program's own error is told, and nothing else, where nobody reads the output."""
    program.write_text(f"{PROGRAM}\nprint('\\u03bb', flush=True)\n")
    done = run_unread("cost", program)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("BrokenPipeError")
    assert "triton_metal" not in done.stderr
    done = run("cost", program, env={"PYTHONIOENCODING": "ascii"})
    assert "UnicodeEncodeError" in done.stderr
    assert "all 2 launches on M1: at least" in done.stdout


def test_results_have_replacements_for_characters_that_the_output_lacks(program: Path) -> None:
    done = run("cost", program, env={"PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, "")
    assert " ?s, bound by memory" in done.stdout
    folder = program.parent / "p\u03bbges"
    done = run("report", "-o", folder, program, env={"PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "p?ges" in done.stdout


@pytest.mark.parametrize(
    "text",
    [
        "import sys; sys.stdout.flush()",
        "import io, sys; sys.stdout = io.StringIO()",
        "import io, sys; sys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding='utf-8')",
        "import io, sys; sys.stdout = io.TextIOWrapper(sys.stdout.detach(), encoding='utf-8')",
    ],
    ids=["kept", "elsewhere", "another", "taken apart"],
)
@pytest.mark.parametrize("words", [["cost"], ["cost", "--json"]], ids=lambda words: words[-1])
def test_a_program_may_replace_the_output(text: str, words: list[str]) -> None:
    done = run(*words, "-c", f"{text}\nprint('own')")
    assert (done.returncode, "Error" in done.stderr) == (0, False)
    assert done.stdout.endswith("[]\n" if "--json" in words else "no launch was counted\n")
    own = done.stderr if "--json" in words else done.stdout
    assert own.startswith("own\n") != ("StringIO" in text)


@pytest.mark.parametrize(
    ("code", "status", "said"),
    [("None", 0, ""), ("4", 4, ""), ("'why'", 1, "why\n"), ("(1, 2)", 1, "(1, 2)\n")],
)
def test_a_command_has_the_status_of_its_program(code: str, status: int, said: str) -> None:
    done = run("cost", "-c", f"raise SystemExit({code})")
    assert (done.returncode, done.stdout, done.stderr) == (status, "no launch was counted\n", said)


# --- Closed streams


def run_closed(descriptor: int, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Runs a command as a shell does with ``<&-``, ``>&-`` or ``2>&-``."""
    words = [sys.executable, "-m", "triton_metal", *map(str, arguments)]
    close = f'exec {descriptor}{"<" if descriptor == 0 else ">"}&-; exec "$@"'
    return subprocess.run(
        ["sh", "-c", close, "sh", *words],
        env=os.environ | {"PYTHONPATH": str(ROOT / "python")},
        capture_output=True, text=True, encoding="utf-8", check=False, timeout=200,
    )  # fmt: skip


def test_a_closed_input(program: Path) -> None:
    done = run_closed(0, "tutorial")
    said = "it reads what you type, but its standard input is closed"
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"python -m triton_metal tutorial: {said}\n"
    done = run_closed(0, "cost", program)
    assert (done.returncode, done.stderr) == (0, "")
    assert "all 2 launches on M1" in done.stdout
    done = run_closed(0, "-")  # an empty program, as for Python
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("descriptor", [1, 2])
def test_a_closed_output(program: Path, descriptor: int) -> None:
    folder = program.parent / "pages"
    done = run_closed(descriptor, "report", "-o", folder, program)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(list(folder.iterdir())) == 2
    done = run_closed(descriptor, "doctor", "--quick", "--json")
    assert (done.returncode, done.stderr) == (0, "")


def test_the_tutorial_ends_where_nobody_sees_it(tmp_path: Path) -> None:
    words = ["tutorial", "--state", str(tmp_path / "state.json")]
    done = run_unread(*words, input="print('a' * 100000)\n" + "\n" * 100)
    assert (done.returncode, done.stderr) == (STOPPED, "")
    assert '"step": "1.1"' in (tmp_path / "state.json").read_text()


# --- The frames of a program's error


@pytest.mark.parametrize(
    "text",
    [
        "def f():\n    raise ValueError('deep')\nf()",
        "double[(4,)]('x', 1000, BLOCK=256)",
        "double[(4,)](x, 1000, BLOCK=255)",
        "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    raise KeyError(3) from error",
        "this is no program",
    ],
    ids=["own", "launch", "compiler", "chain", "syntax"],
)
def test_a_command_shows_the_frames_that_a_plain_run_shows(program: Path, text: str) -> None:
    program.write_text(f"{PROGRAM}\n{text}\n")
    plain = run(program)
    assert plain.returncode == 1
    for words in (["cost"], ["report", "-o", str(program.parent / "pages")]):
        done = run(*words, program)
        assert (done.returncode, done.stderr) == (1, plain.stderr)


def test_a_module_and_a_text_show_their_own_frames(tmp_path: Path) -> None:
    (tmp_path / "failing.py").write_text("1 / 0\n")
    for words in (["-m", "failing"], ["-c", "import failing"]):
        plain = run(*words, cwd=tmp_path)
        assert "failing.py" in plain.stderr
        assert run("cost", *words, cwd=tmp_path).stderr == plain.stderr


# --- Programs that are not there


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["absent.py"], 2, "absent.py': [Errno 2] No such file or directory\n"),
        (["-m", "absent_module"], 1, "No module named absent_module\n"),
        (["-m"], 2, "argument expected for the -m option\n"),
        (["."], 1, "can't find '__main__' module in '.'\n"),
    ],
    ids=["file", "module", "no name", "folder"],
)
def test_a_program_that_is_not_there_is_the_one_thing_said(
    tmp_path: Path, words: list[str], status: int, said: str
) -> None:
    for command in (["cost"], ["report", "-o", "pages"]):
        done = run(*command, *words, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (status, "")
        assert done.stderr.endswith(said)
        assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_pages_are_where_the_command_began(program: Path) -> None:
    (program.parent / "elsewhere").mkdir()
    program.write_text(f"import os\n{PROGRAM}\nos.chdir('elsewhere')\n")
    done = run("report", "-o", "pages", program.name, cwd=program.parent)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0] == "pages/double.html: double, 1 launch"
    assert len(list((program.parent / "pages").iterdir())) == 2


# --- The streams themselves


class Failing:
    """A stream that fails at its first text."""

    encoding = "utf-8"
    closed = False

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.calls = 0

    def write(self, text: str) -> int:
        self.calls += 1
        raise self.error

    def flush(self) -> None:
        pass

    def fileno(self) -> int:
        raise OSError


def test_a_stream_that_has_failed_is_asked_no_more(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stream = Failing(OSError(errno.EIO, "Input/output error"))
    monkeypatch.setattr(sys, "stdout", stream)

    def command() -> int:
        print("one")
        print("two")
        with unguarded():
            assert sys.stdout is stream
        assert isinstance(sys.stdout, Guarded)
        return 0

    assert guarded("name", command) == 1
    assert (sys.stdout, stream.calls) == (stream, 1)
    assert capsys.readouterr().err == "name: the output cannot be written: Input/output error\n"


FURTHER_OUTPUT = """
import atexit, os, subprocess, sys, threading, time
atexit.register(print, "at the end")
print("by print")
os.write(1, b"by the descriptor\\n")
subprocess.run([sys.executable, "-c", "print('by a child')"], check=True)
def late():
    time.sleep(0.5)
    print("late")
threading.Thread(target=late).start()
"""


def test_the_figures_are_alone_on_the_output_of_json(program: Path) -> None:
    program.write_text(PROGRAM + FURTHER_OUTPUT)
    done = run("cost", "--json", program)
    assert [each["kernel"] for each in json.loads(done.stdout)] == ["double", "triple"]
    for said in ("at the end", "by print", "by the descriptor", "by a child", "late"):
        assert said in done.stderr
    assert done.returncode == 0


THREADS = PROGRAM.replace(
    "triple[", "import threading\nt = threading.Thread(target=lambda: triple["
)


def test_launches_of_other_threads_are_said_to_be_left_out(program: Path) -> None:
    program.write_text(THREADS.rstrip() + ")\nt.start(); t.join()\n")
    done = run("cost", program)
    assert "the launch on M1" in done.stdout
    said = "1 launch was left out: only launches of the program's main thread are counted"
    assert said in done.stdout
    pages = program.parent / "pages"
    done = run("report", program, "-o", pages)
    assert "without a page: 1 launch was not in the program's main thread" in done.stdout
    program.write_text(program.read_text().replace("double[(4,)](x, 1000, BLOCK=256)", ""))
    done = run("report", program, "-o", pages)
    assert "there is no page: 1 launch was not in the program's main thread" in done.stderr
    assert done.returncode == 1


def test_two_dashes_stand_before_a_program(program: Path) -> None:
    done = run("cost", "--chip", "M1", "--", program)
    assert done.stdout.count("on M1") >= 1, done.stderr


def test_an_unknown_option_is_named() -> None:
    done = run("--bogus")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--bogus" in done.stderr
    assert "a program or a command is needed" in run().stderr


def test_errors_go_nowhere_where_the_error_stream_is_closed(tmp_path: Path) -> None:
    command = f"{sys.executable} -m triton_metal {tmp_path}/nothing.py 2>&-"
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run(command, shell=True, stdout=subprocess.PIPE, env=environment, check=False)
    assert (done.returncode, done.stdout) == (2, b"")
