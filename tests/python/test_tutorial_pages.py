"""The pages of docs/tutorial: every snippet runs, prints what the page says, and passes the page's own checks."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from triton_metal.tutorial.pages import folder, read_page, read_pages
from triton_metal.tutorial.running import missing

from kernel_support import ON_STOCK

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import tutorial_pages  # noqa: E402

PAGES = read_pages()
pytestmark = [
    pytest.mark.own_route,
    pytest.mark.own_check("the pages' outputs are those of their own checks"),
    pytest.mark.own_target,
    pytest.mark.skipif(ON_STOCK, reason="the pages count launches"),
]


@pytest.mark.parametrize("path", tutorial_pages.pages(), ids=lambda path: path.stem)
def test_outputs_are_what_the_code_prints(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRITON_METAL_STRESS", raising=False)
    text = path.read_text(encoding="utf-8")
    needs = re.findall(r"<!-- needs: (\w+) -->", text)
    if missing(needs):
        pytest.skip(f"needs {needs}")
    assert tutorial_pages.rewritten(path)[0] == text


def test_every_step_with_code_is_checked_and_every_task_has_a_hint() -> None:
    assert folder() == ROOT / "docs" / "tutorial"
    assert [page.number for page in PAGES] == list(range(1, 10))
    for page in PAGES:
        for step in page.steps:
            assert bool(step.checks) == bool(step.code), step.name
            assert step.hint or not step.is_task, step.name
        assert sum(step.is_task for step in page.steps) == 1


def test_links_and_pictures_exist() -> None:
    for path in tutorial_pages.pages():
        text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
        for target in re.findall(r"\]\(([^)#]+)", text):
            assert "://" in target or (path.parent / target).exists(), f"{path.name}: {target}"


def test_a_page_is_read_in_parts() -> None:
    page = read_page(
        "# 3. Title\n\nAbout [x.md](../x.md).\n\n## One\n\nBefore.\n\n<!-- check: a == 1 -->\n<!-- hint: Two\nlines. -->\n\n"
        "```python\na = 1\n## no heading\n```\n\n```text\n1\n```\n\nAfter.\n",
        "03-slug",
    )
    (step,) = page.steps
    assert (page.title, page.about, step.name, step.title) == (
        "Title",
        "About docs/x.md.",
        "3.1",
        "One",
    )
    assert (step.before, step.code, step.output) == ("Before.", "a = 1\n## no heading\n", "1\n")
    assert (step.after, step.checks, step.hint) == ("After.", ("a == 1",), "Two lines.")


def test_a_stale_output_is_found(tmp_path: Path) -> None:
    path = tmp_path / "01-page.md"
    path.write_text("# 1. T\n\n## One\n\n```python\nprint(1)\n```\n\n```text\n2\n```\n")
    assert "```text\n1\n```" in tutorial_pages.rewritten(path)[0]


@pytest.mark.parametrize(
    "name", ["blocks", "softmax", "fusing", "lines", "sums", "matmul", "order", "tuning"]
)
def test_pictures_are_drawn_from_present_numbers(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    import tutorial_pictures

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRITON_METAL_STRESS", raising=False)
    text = (ROOT / "docs" / "tutorial" / f"{name}.svg").read_text(encoding="utf-8")
    assert tutorial_pictures.numbers_of(text) == tutorial_pictures.NUMBERS[name]()
    assert "prefers-color-scheme: dark" in text


def test_a_wheel_has_the_pages_beside_the_modules() -> None:
    tomllib = pytest.importorskip("tomllib")
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["scikit-build"]
    for wheel in (settings["wheel"], *(each["wheel"] for each in settings["overrides"])):
        assert wheel["packages"]["triton_metal/tutorial"] == "docs/tutorial"
