"""The excerpts of docs/from-python-to-metal.md are what the compiler prints."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
from pathlib import Path

import pytest

from kernel_support import ON_STOCK
from language_support import optimizer

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "from-python-to-metal.md").read_text()
NAME = re.compile(r"[%#]\w+")
pytestmark = pytest.mark.skipif(ON_STOCK, reason="the interpreter has no stages")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def excerpts(language: str, heading: str) -> list[tuple[tuple[str, ...], str]]:
    """The parts of each block's first line, and the quoted lines."""
    found = []
    for block in blocks(language):
        first, _, quoted = block.partition("\n")
        match = re.fullmatch(heading, first)
        assert match, f"{first!r} does not say where the excerpt is from"
        found.append((match.groups(), quoted))
    return found


def run(*arguments: str, cwd: Path) -> tuple[str, str]:
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_METAL_STRESS"}
    done = subprocess.run(
        [optimizer(), *arguments], cwd=cwd, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def matched(quoted: str, line: str, names: dict[str, str]) -> dict[str, str] | None:
    """The names of values and layouts if a line is the quoted one with the same names; " ..." ends with anything."""
    rest = ".*" if quoted.endswith(" ...") else ""
    quoted = quoted.removesuffix(" ...")
    pattern = "([%#]\\w+)".join(re.escape(part) for part in NAME.split(quoted)) + rest
    match = re.fullmatch(pattern, line)
    if not match:
        return None
    new = dict(zip(NAME.findall(quoted), match.groups(), strict=True))
    if any(names.get(name, actual) != actual for name, actual in new.items()):
        return None
    return names | new


def matches(
    excerpt: list[str], lines: list[str], at: int, anywhere: bool, names: dict[str, str]
) -> int:
    """How many lines of the excerpt the text has, in order. Only after `...` need they not be neighbours."""
    if not excerpt:
        return 0
    if excerpt[0] == "...":
        return 1 + matches(excerpt[1:], lines, at, True, names)
    most = 0
    for index in range(at, len(lines) if anywhere else min(at + 1, len(lines))):
        new = matched(excerpt[0], lines[index], names)
        if new is not None:
            most = max(most, 1 + matches(excerpt[1:], lines, index + 1, False, new))
        if most == len(excerpt):
            break
    return most


def check(excerpt: str, text: str) -> None:
    quoted = [line.strip() for line in excerpt.splitlines()]
    found = matches(quoted, [line.strip() for line in text.splitlines()], 0, True, {})
    assert found == len(quoted), f"not there, or not behind the line before it: {quoted[found]}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the page's script has written the kernels."""
    path = tmp_path_factory.mktemp("page")
    (script,) = blocks("python")
    (path / "page_kernels.py").write_text(script)
    before = Path.cwd()
    os.chdir(path)
    try:
        runpy.run_path("page_kernels.py")
    finally:
        os.chdir(before)
    return path


@pytest.mark.own_route  # the text depends on what is known of the arrays
def test_the_ir(folder: Path) -> None:
    stages: dict[str, dict[str, str]] = {}
    for kernel in ("scale", "dot"):
        given, _ = run(f"{kernel}.ttir", cwd=folder)
        _, dumps = run(
            f"{kernel}.ttir",
            "--metal-pipeline",
            "--mlir-print-ir-after-all",
            "-o",
            os.devnull,
            cwd=folder,
        )
        parts = re.split(
            r"^// -----// IR Dump After \S.* \((\S+)\) //----- //\n", dumps, flags=re.M
        )
        stages[kernel] = {"before any pass": given} | {
            f"after {name}": text for name, text in zip(parts[1::2], parts[2::2], strict=True)
        }
    for (kernel, stage), quoted in excerpts("mlir", "// (\\w+), (.+)"):
        check(quoted, stages[kernel][stage])


@pytest.mark.own_route
def test_the_metal(folder: Path) -> None:
    for (kernel,), quoted in excerpts("metal", "// (\\w+)"):
        arguments = ("--metal-pipeline", "--msl-print-metal", "-o", os.devnull)
        check(quoted, run(f"{kernel}.ttir", *arguments, cwd=folder)[0])


def test_the_page_names_files_and_passes_that_exist() -> None:
    files = sorted((ROOT / "compiler" / "transforms").glob("*Passes.td"))
    passes = "".join(file.read_text() for file in files)
    for name in re.findall(r"`((?:tt|ttm|msl|convert)-[a-z-]+)`", PAGE):
        assert f'Pass<"{name}"' in passes, name
    for name in re.findall(r"`((?:compiler|python|docs|tests)/[\w./-]+)`", PAGE):
        assert (ROOT / name).exists(), name
