"""What the tutorial prints: with rich where it is installed, as plain text otherwise."""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from typing import Any

_WIDTH = 96


class PlainView:
    """Plain text. Markdown is printed nearly as it is."""

    def title(self, text: str) -> None:
        """The heading of a step."""
        print(f"\n{text}\n{'-' * min(len(text), _width())}\n")

    def prose(self, markdown: str) -> None:
        """Paragraphs, lists and tables."""
        for part in re.split(r"\n{2,}", markdown.strip()):
            print(_wrapped(part.replace("**", "")))
            print()

    def code(self, text: str) -> None:
        """Python code."""
        print(textwrap.indent(text.rstrip(), "    "), end="\n\n")

    def note(self, text: str) -> None:
        """What the tutorial itself says."""
        print(_wrapped(text))

    def good(self, text: str) -> None:
        """Something is right."""
        self.note(text)

    def bad(self, text: str) -> None:
        """Something is wrong: as it is, because carets must stay under what they point at."""
        print(text)

    def table(self, head: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
        """Columns of figures; the first one has names."""
        widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
        for row in (head, *rows):
            cells = [row[0].ljust(widths[0])]
            cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
            print(f"  {'  '.join(cells)}".rstrip())


class RichView(PlainView):
    """The same with colours and styles. rich itself respects NO_COLOR and leaves them out if no terminal is there."""

    def __init__(self) -> None:
        from rich.console import Console

        self.console = Console(width=_width(), highlight=False, soft_wrap=False)

    def _print(self, what: Any) -> None:
        # The learner's output is redirected at times: ours goes to what is stdout now.
        self.console.file = sys.stdout
        self.console.print(what)

    def title(self, text: str) -> None:
        from rich.rule import Rule
        from rich.text import Text

        self._print("")
        self._print(Rule(Text(text, style="bold"), align="left", style="dim"))

    def prose(self, markdown: str) -> None:
        from rich.markdown import Markdown

        if markdown.strip():
            self._print(Markdown(markdown, hyperlinks=False))
            self._print("")

    def code(self, text: str) -> None:
        from rich.syntax import Syntax

        # The theme has the terminal's own colours, on a dark and on a light background.
        syntax = Syntax("", "python", theme="ansi_dark", background_color="default")
        self.console.file = sys.stdout
        self.console.print(syntax.highlight(textwrap.indent(text.rstrip(), "    ")), soft_wrap=True)
        self._print("")

    def note(self, text: str) -> None:
        from rich.text import Text

        self._print(Text(text))

    def good(self, text: str) -> None:
        from rich.text import Text

        self._print(Text(text, style="green"))

    def bad(self, text: str) -> None:
        from rich.text import Text

        self.console.file = sys.stdout
        self.console.print(Text(text, style="red"), soft_wrap=True)

    def table(self, head: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
        from rich.table import Table

        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        for i, name in enumerate(head):
            table.add_column(name, justify="left" if i == 0 else "right", no_wrap=True)
        for row in rows:
            table.add_row(*row)
        self._print(table)


def make_view() -> PlainView:
    """The view for what is installed."""
    try:
        return RichView()
    except ImportError:
        return PlainView()


def _width() -> int:
    return min(shutil.get_terminal_size().columns, _WIDTH)


def _wrapped(text: str) -> str:
    """A paragraph in lines that fit; items of lists keep their indentation, tables and code their lines."""
    if text.startswith(("|", "    ", "```")):
        return text
    lines = []
    for item in re.split(r"\n(?=[-*] |\d+\. )", text):
        rest = "  " if re.match(r"[-*] ", item) else ""
        lines.append(
            textwrap.fill(
                " ".join(item.split()), _width(), subsequent_indent=rest, break_on_hyphens=False
            )
        )
    return "\n".join(lines)
