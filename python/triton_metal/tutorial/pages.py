"""The pages of the tutorial: Markdown of docs/tutorial, which the package has beside this module.

A page is one program. Each section is a step with at most one block of Python, what the block prints, and, in comments that
a reader of the page does not see, what must hold after it:

    <!-- check: np.array_equal(out, x + y) -->
    <!-- hint: The last program has lanes that belong to no element. -->
    <!-- needs: mlx -->
    <!-- uncounted: why the launches of the step cannot be counted -->
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```\n?", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"^<!-- (check|hint|needs|uncounted): (.*?) -->\n?", re.MULTILINE | re.DOTALL)
_FOLDED = re.compile(r"^</?details>\n?|^<summary>.*?</summary>\n?", re.MULTILINE)
_PICTURE = re.compile(r"^!\[(.*?)\]\((.*?)\)$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[([^\]]+)\]\(([^)]+)\)")


class TutorialError(Exception):
    """Pages that cannot be read."""


@dataclass(frozen=True)
class Step:
    """One section of a page."""

    page: int
    number: int
    title: str
    #: Markdown before the code, and behind what it prints.
    before: str
    code: str
    output: str
    after: str
    #: Expressions over the program's variables that are true after the step.
    checks: tuple[str, ...] = ()
    hint: str = ""
    #: Packages that the step imports beside NumPy.
    needs: tuple[str, ...] = ()
    #: Why launches are not counted, if they are not.
    uncounted: str = ""
    #: The learner writes the code; the page has it as a solution.
    is_task: bool = False

    @property
    def name(self) -> str:
        """Such as 2.3, the third step of the second page."""
        return f"{self.page}.{self.number}"

    @property
    def file(self) -> str:
        """The file that errors and tracebacks name for the step's code."""
        return f"<step {self.name}>"


@dataclass(frozen=True)
class Page:
    """One page: a title, what it is about, and its steps."""

    number: int
    slug: str
    title: str
    about: str
    steps: tuple[Step, ...]


def folder() -> Path:
    """Where the pages are: in the installed package, or in the checkout that this package is a part of."""
    here = Path(__file__).resolve().parent
    return here if any(here.glob("01-*.md")) else here.parents[2] / "docs" / "tutorial"


def read_pages(path: Path | None = None) -> tuple[Page, ...]:
    """All pages, in their order. Raises TutorialError if there are none."""
    path = path or folder()
    files = sorted(path.glob("[0-9][0-9]-*.md"))
    if not files:
        raise TutorialError(
            f"the pages of the tutorial are not in {path}; install triton-metal again"
        )
    return tuple(read_page(file.read_text(encoding="utf-8"), file.stem) for file in files)


def read_page(text: str, stem: str) -> Page:
    """One page from its Markdown and the name of its file, such as 02-softmax."""
    number, slug = stem.split("-", 1)
    head, *sections = _sections(text)
    title, _, about = head.partition("\n")
    title = re.sub(r"^# (\d+\. )?", "", title)
    steps = tuple(_step(int(number), i, section) for i, section in enumerate(sections, 1))
    return Page(int(number), slug, title, _plain(about), steps)


def _sections(text: str) -> list[str]:
    """The text before the first heading of level two, and each such heading with what follows."""
    sections, fenced = [""], False
    for line in text.splitlines(keepends=True):
        if line.startswith("```"):
            fenced = not fenced
        if line.startswith("## ") and not fenced:
            sections.append("")
        sections[-1] += line
    return sections


def _step(page: int, number: int, section: str) -> Step:
    title, _, body = section.partition("\n")
    comments = [(kind, " ".join(words.split())) for kind, words in _COMMENT.findall(body)]
    is_task = "<summary>A solution</summary>" in body
    body = _FOLDED.sub("", _COMMENT.sub("", body))
    code = output = ""
    before, after = body, ""
    blocks = {match[1]: match for match in reversed(list(_FENCE.finditer(body)))}
    if "python" in blocks:
        code, end = blocks["python"][2], blocks["python"].end()
        before, after = body[: blocks["python"].start()], body[end:]
        # What the code prints follows it at once.
        printed = re.compile(r"\n*```text\n(.*?)^```\n?", re.MULTILINE | re.DOTALL).match(body, end)
        if printed:
            output, after = printed[1], body[printed.end() :]
    return Step(
        page,
        number,
        title.removeprefix("## ").strip(),
        _plain(before),
        code,
        output,
        _plain(after),
        tuple(words for kind, words in comments if kind == "check"),
        " ".join(words for kind, words in comments if kind == "hint"),
        tuple(words for kind, words in comments if kind == "needs"),
        " ".join(words for kind, words in comments if kind == "uncounted"),
        is_task,
    )


def _plain(markdown: str) -> str:
    """Markdown for a terminal: a picture is its description, and a link names the page in docs."""
    markdown = _PICTURE.sub(lambda m: f"*Picture docs/tutorial/{m[2]}: {m[1]}*", markdown)
    return _LINK.sub(_linked, markdown).strip()


def _linked(match: re.Match[str]) -> str:
    label, target = match[1], match[2]
    if "://" in target:
        return f"{label} ({target})"
    page = target.partition("#")[0]
    where = (
        f"docs/{page.removeprefix('../')}" if page.startswith("../") else f"docs/tutorial/{page}"
    )
    return where if label.strip("`") == Path(page).name else f"{label} ({where})"
