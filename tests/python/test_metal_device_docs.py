"""Every example of docs/metal-device.md runs, and prints what the page says."""

from __future__ import annotations

import contextlib
import fnmatch
import io
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from metal_run import metal_run_path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "metal-device.md"


def blocks() -> Iterator[tuple[str, str]]:
    """The language and the text of each example, in order."""
    for match in re.finditer(r"^```(\w+)\n(.*?)^```$", PAGE.read_text(), re.M | re.S):
        yield match[1], match[2]


def assert_printed(printed: str, expected: str) -> None:
    """Compares lines, of which "..." stands for any text."""
    lines, wanted = printed.splitlines(), expected.splitlines()
    assert len(lines) == len(wanted), printed
    for line, pattern in zip(lines, wanted, strict=True):
        escaped = re.sub(r"([\[?*])", r"[\1]", pattern).replace("...", "*")
        assert fnmatch.fnmatchcase(line, escaped), f"{line!r} is not {pattern!r}"


def write_kernels(folder: Path) -> None:
    for language, text in blocks():
        if language == "metal":
            name = re.match(r"// (\w+\.metal)\n", text)
            assert name, text
            (folder / name[1]).write_text(text)


def test_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_kernels(tmp_path)
    monkeypatch.chdir(tmp_path)
    variables: dict[str, object] = {}
    printed, count = "", 0
    for language, text in blocks():
        if language == "python":
            assert printed == "", f"the page does not show {printed!r}"
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(compile(text, str(PAGE), "exec"), variables)
            printed = output.getvalue()
            count += 1
        elif language == "text":
            assert_printed(printed, text)
            printed = ""
    assert printed == ""
    assert count >= 9


def test_the_command_line(tmp_path: Path) -> None:
    write_kernels(tmp_path)
    path = f"{metal_run_path().parent}{os.pathsep}{os.environ['PATH']}"
    count = 0
    for language, text in blocks():
        if language != "console":
            continue
        for step in re.split(r"^\$ ", text, flags=re.M)[1:]:
            command, _, expected = step.partition("\n")
            done = subprocess.run(
                ["bash", "-c", f"{command} 2>&1"],
                cwd=tmp_path,
                env=dict(os.environ, PATH=path),
                capture_output=True,
                text=True,
                check=False,
            )
            assert_printed(done.stdout, expected)
            count += 1
    assert count >= 4


def test_cpp() -> None:
    test = (ROOT / "tests" / "unit" / "host_metal" / "TutorialTest.cpp").read_text()
    shown = [text for language, text in blocks() if language == "cpp"]
    assert shown
    assert all(text in test for text in shown)
