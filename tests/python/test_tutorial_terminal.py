"""`python -m triton_metal tutorial`: through pipes and at a pseudo-terminal."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kernel_support import ON_STOCK

pytestmark = pytest.mark.skipif(ON_STOCK, reason="the tutorial is of this package")

RIGHT = """@triton.jit
def k(x_ptr, y_ptr, n, B: tl.constexpr):
    at = tl.arange(0, B)
    y = 2 * tl.load(x_ptr + at, at < n) + tl.load(y_ptr + at, at < n)
    tl.store(y_ptr + at, y, at < n)

k[(1,)](x, y, 1000, B=1024)
"""


def environment(**more: str) -> dict[str, str]:
    return dict(
        os.environ, PYTHONPATH=os.pathsep.join(sys.path), TERM="xterm", COLUMNS="100", **more
    )


def talk(state: Path, text: str, *arguments: str, before: str = "") -> str:
    start = f"{before}\nfrom triton_metal.__main__ import main\nraise SystemExit(main())"
    done = subprocess.run(
        [sys.executable, "-c", start, "tutorial", "--state", str(state), *arguments],
        input=text, capture_output=True, text=True, env=environment(), check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "tutorial.json"


def test_enter_runs_the_step_and_its_place_is_remembered(state: Path) -> None:
    said = talk(state, "\n\n")
    assert "[1. 2. 3.] [ 998.  999. 1000.]" in said
    assert "Right." in said
    assert "8,000" in said  # bytes read
    assert "1.2  Which program has which elements" in said
    assert json.loads(state.read_text()) == {"version": 1, "step": "1.2", "passed": ["1.1"]}
    assert "You were at step 1.2" in talk(state, "quit\n")


def test_own_code_is_judged_and_compared_with_the_page(state: Path) -> None:
    said = talk(state, RIGHT, "--step", "1.5")
    assert "Right." in said
    assert "the page's" in said
    wrong = talk(state, RIGHT.replace("2 *", "3 *"), "--step", "1.5")
    assert "Not as expected" in wrong
    assert "np.array_equal(y, 2 * x + 1)" in wrong
    assert "Hint: Load x and y" in wrong
    assert "Right." not in wrong


def test_a_compiler_error_is_shown_with_its_caret(state: Path) -> None:
    said = talk(state, RIGHT.replace("B: tl.constexpr", "B"), "--step", "1.5")
    assert "CompilationError: <typed 1>:3:" in said
    line = next(i for i, text in enumerate(said.splitlines()) if text.strip().startswith("^"))
    assert "tl.arange(0, B)" in said.splitlines()[line - 1]


def test_commands(state: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(RIGHT)
    text = f"back\nnext\nlist\ngoto 99\ngoto 1.5\nhint\nload {tmp_path}/none.py\nload {tmp_path}/mine.py\nquit\n"
    said = talk(state, text)
    for words in (
        "This is the first step.", "> [ ] 1.2", "There is no step '99'", "Hint: Load x and y",
        "none.py cannot be read: No such file", "Right.", "remembers step 1.5",
    ):  # fmt: skip
        assert words in said, words
    assert "edit` needs a terminal" in talk(state, "edit x.py\n")
    assert json.loads(state.read_text())["passed"] == ["1.5"]
    talk(state, "reset all\n")
    assert json.loads(state.read_text()) == {"version": 1, "step": "1.1", "passed": []}


def test_next_runs_what_was_skipped(state: Path) -> None:
    said = talk(state, "next\nnext\n\n")
    assert "8000 bytes read, 4000 bytes written" in said
    assert "Right." in said


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"version": 1, "step": 3, "passed": []}', '{"version": 7}']
)
def test_a_damaged_state_is_set_aside(state: Path, content: str) -> None:
    state.parent.mkdir()
    state.write_text(content)
    said = talk(state, "quit\n")
    assert said.count("is damaged") == 1
    assert state.with_name("tutorial.json.damaged").read_text() == content
    assert json.loads(state.read_text())["step"] == "1.1"
    assert "damaged" not in talk(state, "quit\n")


def test_a_state_that_cannot_be_written_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said = talk(tmp_path / "file" / "tutorial.json", "\n\nquit\n")
    assert said.count("does not remember your place") == 1
    assert "Right." in said


def test_without_rich(state: Path) -> None:
    said = talk(
        state,
        "\nquit\n",
        before="import sys; sys.modules['rich'] = sys.modules['rich.console'] = None",
    )
    assert "1.1  A kernel and its launch\n---" in said
    assert "    @triton.jit" in said
    assert "Right." in said
    assert "\x1b" not in said


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("load ~nosuchuser/x.py", "~nosuchuser/x.py cannot be read: there is no such user"),
        ("load a\0b", "cannot be read: embedded null byte"),
        ("x" + ".a" * 20000, "Error"),
        ("-" * 50000 + "1", "Error"),
    ],
    ids=["no user", "a null byte", "a long expression", "a deep expression"],
)
def test_a_line_that_cannot_be_read_does_not_end_the_tutorial(
    state: Path, line: str, said: str
) -> None:
    found = talk(state, f"{line}\nprint('still', 'here')\nquit\n")
    assert said in found
    assert "still here" in found


def test_after_own_code_the_hint_says_what_works(state: Path) -> None:
    said = talk(state, "print('mine')\n\nshow\n\nquit\n")
    hint = "`show` shows the page's code again; Enter then runs it. `next` goes on."
    assert hint in " ".join(said.split())
    assert said.count("def add_kernel") == 2
    assert said.index("mine") < said.index("`show` shows") < said.index("Right.")


def test_a_step_that_does_not_exist(state: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "triton_metal", "tutorial", "--step", "77"],
        capture_output=True, text=True, env=environment(), check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert (
        done.stderr
        == "python -m triton_metal tutorial: there is no step '77'; --list has all of them\n"
    )


def at_terminal(state: Path, keys: list[tuple[str, bytes]], **more: str) -> tuple[str, int]:
    """Waits for each text, such as a prompt (what is sent before it may be lost), and then sends the keys; returns what was on the screen, and the exit status."""
    pid, terminal = pty.fork()
    if pid == 0:
        # A shell starts what runs in its background with these ignored.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        command = [sys.executable, "-m", "triton_metal", "tutorial", "--state", str(state)]
        os.execve(sys.executable, command, environment(**more))
    screen, seen = "", 0
    end = time.monotonic() + 240
    last, sent = b"", end
    while time.monotonic() < end:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                part = os.read(terminal, 65536)
            except OSError:
                break
            if not part:
                break
            screen += part.decode(errors="replace")
        if keys and (found := screen.find(keys[0][0], seen)) >= 0:
            seen = found + len(keys[0][0])
            last, sent = keys.pop(0)[1], time.monotonic()
            os.write(terminal, last)
        elif time.monotonic() > sent + (40 if keys else 10):
            # Keys may be lost that come between the prompt and the call that reads.
            sent = time.monotonic()
            with contextlib.suppress(OSError):
                os.write(terminal, last)
    os.close(terminal)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert not keys, screen
    return screen, status


@pytest.mark.parametrize("leave", [b"\x04", b"\x03", b"quit\n"])
def test_at_a_terminal(state: Path, leave: bytes) -> None:
    keys = [(">>> ", b"\n"), (">>> ", b"\n"), (">>> ", leave)]
    screen, status = at_terminal(state, keys)
    assert status == 0
    assert "Right." in screen
    assert "\x1b[3" in screen  # colours
    assert "remembers step 1.2" in screen
    assert "Traceback" not in screen


def test_no_color(state: Path) -> None:
    screen, _ = at_terminal(state, [(">>> ", b"\n"), (">>> ", b"\x04")], NO_COLOR="1")
    assert "\x1b[3" not in screen.replace("\x1b[3m", "")  # italics are no colour


def test_a_state_that_is_no_file_stays_what_it_is(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    endless = tmp_path / "endless"
    endless.symlink_to("/dev/zero")
    for path in (pipe, endless):
        said = talk(path, "quit\n")
        assert said.count("cannot be read (it is no regular file)") == 1
    assert pipe.is_fifo()
    assert endless.is_symlink()
    link, target = tmp_path / "link.json", tmp_path / "target.json"
    link.symlink_to(target.name)
    talk(link, "next\nquit\n")
    assert link.is_symlink()
    assert json.loads(target.read_text())["step"] == "1.2"


def test_a_state_is_where_the_tutorial_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "inner").mkdir()
    talk(Path("state.json"), "import os; os.chdir('inner')\n\nnext\nquit\n")
    assert json.loads((tmp_path / "state.json").read_text())["step"] == "1.2"
    assert not list((tmp_path / "inner").iterdir())


@pytest.mark.parametrize(
    "text",
    ["import sys; sys.stdin.close()\n\n", "import os; os.close(0)\n\n", "# \u00e9\n\nquit\n"],
)
def test_an_input_that_ends_in_its_own_way(state: Path, text: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "triton_metal", "tutorial", "--state", str(state)],
        input=text.encode(), capture_output=True, env=environment(PYTHONIOENCODING="ascii"), check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"the tutorial remembers step 1.1" in done.stdout
