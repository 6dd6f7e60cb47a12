"""The tutorial at the terminal: docs/tutorial, one step at a time.

    python -m triton_metal tutorial            # from the step where you were
    python -m triton_metal tutorial --step 8   # from a page or a step
    python -m triton_metal tutorial --list

Each step explains, shows code and waits: Enter runs the code, anything else is run instead. It says what the launches
counted on the host device, and whether the result is right.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import select
import sys
from collections.abc import Iterator
from pathlib import Path

from ..as_triton.streams import is_lost
from .pages import TutorialError, read_pages


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument(
        "--step", metavar="N", default="", help="begin at a page or step, such as 8 or 8.2"
    )
    parser.add_argument("--list", action="store_true", help="list the steps, and end")
    parser.add_argument(
        "--state",
        type=Path,
        metavar="FILE",
        help="the file that remembers the step (default: in your state folder)",
    )


def main(options: argparse.Namespace) -> int:
    """Runs the command; returns the exit status."""
    try:
        pages = read_pages()
    except TutorialError as error:
        return _fail(str(error))
    if options.list:
        for page in pages:
            print(f"{page.number}. {page.title}")
            for step in page.steps:
                print(f"     {step.name}  {step.title}")
        return 0
    names = {step.name for page in pages for step in page.steps}
    start = options.step if not options.step or "." in options.step else f"{options.step}.1"
    if start and start not in names:
        return _fail(f"there is no step {options.step!r}; --list has all of them")
    try:
        import numpy  # noqa: F401
    except ImportError:
        return _fail(
            "the tutorial needs NumPy and the host device: pip install triton-metal[tutorial]"
        )
    if sys.stdin is None:
        return _fail("it reads what you type, but its standard input is closed")
    from .session import Session
    from .state import State, default_path
    from .view import make_view

    if isinstance(sys.stdin, io.TextIOWrapper):
        # A character that the encoding of the input lacks is shown as such, in an error of what was typed.
        sys.stdin.reconfigure(errors="replace")
    view = make_view()
    reader = Terminal() if sys.stdin.isatty() else Lines()
    # What is typed may change the current folder.
    state = State((options.state or default_path()).absolute(), view.bad)
    return Session(pages, view, state, reader).run(start)


def _fail(message: str) -> int:
    print(f"python -m triton_metal tutorial: {message}", file=sys.stderr)
    return 2


def _check_output() -> None:
    """Ends a conversation that nobody sees. Raises EOFError."""
    sys.stdout.flush()
    if is_lost():
        raise EOFError


@contextlib.contextmanager
def _closed_is_end() -> Iterator[None]:
    """What is typed may close the input, or its descriptor: that is its end. Raises EOFError then."""
    try:
        yield
    except (OSError, ValueError, RuntimeError) as error:
        raise EOFError from error


class Terminal:
    """Lines from a person, with Python's line editing and history."""

    def __init__(self) -> None:
        with contextlib.suppress(ImportError):
            import readline  # noqa: F401

    def read(self, prompt: str) -> str:
        """The next line."""
        _check_output()
        with _closed_is_end():
            return input(prompt)

    def more(self) -> bool:
        """Whether the terminal has more, as it does while text is pasted."""
        try:
            return bool(select.select([sys.stdin], [], [], 0.02)[0])
        except (OSError, ValueError):  # closed: the next line is the end
            return False


class Lines:
    """Lines from a file or a pipe, without prompts. Each empty line is an Enter."""

    def read(self, prompt: str) -> str:
        """The next line."""
        _check_output()
        with _closed_is_end():
            line = sys.stdin.readline()
        if not line:
            raise EOFError
        return line.rstrip("\n")

    def more(self) -> bool:
        """Never: whoever writes the file knows what it says."""
        return False
