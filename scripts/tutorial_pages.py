"""Writes what the code blocks of pages print into the pages: `python scripts/tutorial_pages.py [PAGE.md ...]`.

Without names, into the tutorial's and into docs/performance.md. The tests use `rewritten` and hold that it changes nothing.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path

from triton_metal.tutorial.pages import read_page
from triton_metal.tutorial.running import Program, described

ROOT = Path(__file__).resolve().parents[1]
_SECTION = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n.*?^```\n)?", re.MULTILINE | re.DOTALL)


def pages() -> list[Path]:
    """The pages whose outputs are kept true."""
    return [
        *sorted((ROOT / "docs" / "tutorial").glob("[0-9][0-9]-*.md")),
        ROOT / "docs" / "performance.md",
    ]


def rewritten(path: Path) -> tuple[str, Program]:
    """A page with the present output of each block, and its program. Raises what a block raises."""
    text = path.read_text(encoding="utf-8")
    stem = path.stem if path.stem[0].isdigit() else f"00-{path.stem}"
    steps = iter([step for step in read_page(text, stem).steps if step.code])
    program = Program()

    def run(match: re.Match[str]) -> str:
        step = next(steps)
        assert step.code == match[1], (
            f"{path.name}, {step.title!r}: a section has one block of Python"
        )
        ran = program.run(step.code, step.file, counts=not step.uncounted)
        if ran.error is not None:
            raise RuntimeError(
                f"{path.name}, {step.title!r}: {described(ran.error)}"
            ) from ran.error
        for check in step.checks:
            if not program.holds(check):
                raise RuntimeError(f"{path.name}, {step.title!r}: it does not hold that {check}")
        printed = "\n".join(line.rstrip() for line in ran.output.splitlines())
        output = f"\n```text\n{printed}\n```\n" if printed else ""
        return f"```python\n{step.code}```\n{output}"

    return _SECTION.sub(run, text), program


def main(names: list[str]) -> int:
    here = Path.cwd()
    for path in [here / name for name in names] or pages():
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                text, _ = rewritten(path)
            finally:
                os.chdir(here)
        if text != path.read_text(encoding="utf-8"):
            path.write_text(text, encoding="utf-8")
            print(f"{path}: written anew")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
